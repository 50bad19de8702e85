// Free context indices, by docs/src/flow-engine.md section 2.
//
// Promise      For a word whose time was at s_time in the clock before: m_index is the index that was released
//              longest ago, if that was 2^RestShift ns before or more and it is clean; else the lowest index
//              never used; m_valid is low if there is neither. `take` takes it.
// Throughput   One take and one release per clock, sustained.
// Cleaning     A released index is offered at m_clean, in the order of the releases; `cleaned` tells, in the
//              same order, that its key is out of the table. Until then it rests.
// Ports        One memory: port A writes releases and, in clocks without one, reads for m_clean; port B reads
//              what rests, ahead into a few registers.
// Hazards      Times given do not decrease. An index that rested for 2^ReleaseTimeWidth ns (208 days) more or
//              less counts as just released.

`default_nettype none

module weir_free_list
  import weir_pkg::*;
  import weir_lookup_pkg::*;
#(
    parameter int Contexts = 1 << 18,
    // Only synthesis reads it.
    // verilator lint_off UNUSEDPARAM
    parameter string RamStyle = "ultra"
    // verilator lint_on UNUSEDPARAM
) (
    input wire logic clk,
    input wire logic rst,

    input  wire logic [ReleaseTimeWidth-1:0] s_time,
    output logic                             m_valid,
    output index_t                           m_index,
    input  wire logic                        take,

    input wire logic                          release_valid,
    input wire index_t                        release_index,
    input wire logic   [ReleaseTimeWidth-1:0] release_time,

    output logic      m_clean_valid,
    output index_t    m_clean_index,
    input  wire logic m_clean_ready,
    input  wire logic cleaned,

    // Indices used so far: all below.
    output logic [IndexWidth:0] used
);

  localparam int AddressWidth = $clog2(Contexts);
  localparam int ReadLatency = 2;
  // Read ahead: what is on its way, and as much again.
  localparam int AheadWidth = 3;

  if (Contexts < 2 || Contexts > 1 << IndexWidth) begin : gen_check_contexts
    $error("Contexts must be 2 to 2^%0d", IndexWidth);
  end

  typedef struct packed {
    logic [ReleaseTimeWidth-1:0] time_;
    index_t index;
  } rest_t;

  typedef logic [AddressWidth:0] pointer_t;

  (* ram_style = RamStyle *)
  rest_t memory[1 << AddressWidth];

  pointer_t written;
  // Offered for cleaning, cleaned, read.
  pointer_t offered;
  pointer_t clean;
  pointer_t read;

  // Port A.
  // verilator lint_off UNUSEDSIGNAL
  rest_t a_data;  // its time is not needed here
  // verilator lint_on UNUSEDSIGNAL
  index_t a_index;
  logic offer;
  logic [ReadLatency-1:0] offering;

  assign offer = !release_valid && offered != written && !m_clean_valid && offering == '0;

  always_ff @(posedge clk) begin
    if (release_valid) begin
      memory[written[AddressWidth-1:0]] <= '{time_: release_time, index: release_index};
    end else begin
      a_data <= memory[offered[AddressWidth-1:0]];
    end
    a_index <= a_data.index;
  end

  // Port B, and the words read ahead.
  rest_t b_data;
  rest_t b_data_2;
  logic fetch;
  logic [ReadLatency-1:0] fetching;
  rest_t ahead[1 << AheadWidth];
  logic [AheadWidth:0] ahead_written;
  logic [AheadWidth:0] ahead_read;
  // Words in `ahead` or on their way to it, counted until one clock after they left.
  logic [AheadWidth:0] ahead_level;
  logic ahead_advance;
  logic ahead_left;

  assign fetch = read != clean && !ahead_level[AheadWidth];

  always_ff @(posedge clk) begin
    b_data   <= memory[read[AddressWidth-1:0]];
    b_data_2 <= b_data;
    if (fetching[ReadLatency-1]) begin
      ahead[ahead_written[AheadWidth-1:0]] <= b_data_2;
    end
  end

  // The two that come next. Whether they have rested is decided one clock before they are needed.
  rest_t first;
  rest_t second;
  logic  first_valid;
  logic  second_valid;
  logic  first_rested;
  logic  first_advance;
  logic  second_advance;
  logic  first_old;
  logic  second_old;
  logic  fresh;
  logic  take_first;
  logic  take_fresh;

  function automatic logic old(logic [ReleaseTimeWidth-1:0] now, logic [ReleaseTimeWidth-1:0] then_);
    return ((now - then_) >> RestShift) != '0;
  endfunction

  assign first_old = first_valid && old(s_time, first.time_);
  assign second_old = second_valid && old(s_time, second.time_);
  assign take_first = take && first_rested;
  assign take_fresh = take && !first_rested;
  assign first_advance = take_first || !first_valid;
  assign second_advance = first_advance || !second_valid;
  assign ahead_advance = second_advance && ahead_written != ahead_read;

  assign m_valid = first_rested || fresh;
  assign m_index = first_rested ? first.index : used[IndexWidth-1:0];

  always_ff @(posedge clk) begin
    if (first_advance) begin
      first <= second;
      first_valid <= second_valid;
    end
    if (second_advance) begin
      second <= ahead[ahead_read[AheadWidth-1:0]];
      second_valid <= ahead_written != ahead_read;
    end
    first_rested <= first_advance ? second_old : first_old;
    if (take_fresh) begin
      used  <= used + 1'b1;
      fresh <= used != (IndexWidth + 1)'(Contexts - 1);
    end

    fetching <= {fetching[ReadLatency-2:0], fetch};
    if (fetch) begin
      read <= read + 1'b1;
    end
    if (fetching[ReadLatency-1]) begin
      ahead_written <= ahead_written + 1'b1;
    end
    if (ahead_advance) begin
      ahead_read <= ahead_read + 1'b1;
    end
    ahead_left  <= ahead_advance;
    ahead_level <= ahead_level + (AheadWidth + 1)'(fetch) - (AheadWidth + 1)'(ahead_left);

    if (release_valid) begin
      written <= written + 1'b1;
    end
    offering <= {offering[ReadLatency-2:0], offer};
    if (offering[ReadLatency-1]) begin
      m_clean_index <= a_index;
      m_clean_valid <= 1'b1;
    end else if (m_clean_ready) begin
      m_clean_valid <= 1'b0;
    end
    if (offer) begin
      offered <= offered + 1'b1;
    end
    if (cleaned) begin
      clean <= clean + 1'b1;
    end

    if (rst) begin
      first_valid <= 1'b0;
      second_valid <= 1'b0;
      first_rested <= 1'b0;
      used <= '0;
      fresh <= 1'b1;
      ahead_left <= 1'b0;
      fetching <= '0;
      read <= '0;
      ahead_written <= '0;
      ahead_read <= '0;
      ahead_level <= '0;
      written <= '0;
      offering <= '0;
      m_clean_valid <= 1'b0;
      offered <= '0;
      clean <= '0;
    end
  end

`ifndef SYNTHESIS
  a_take_valid :
  assert property (@(posedge clk) disable iff (rst) take |-> m_valid);
  a_clean_stable :
  assert property (@(posedge clk) disable iff (rst) m_clean_valid && !m_clean_ready |=> m_clean_valid && $stable(
      m_clean_index
  ));
  a_release_used :
  assert property (@(posedge clk) disable iff (rst) release_valid |-> {1'b0, release_index} < used);
  a_released_once :
  assert property (@(posedge clk) disable iff (rst) 32'(pointer_t'(written - read)) + 32'(ahead_level) +
                   32'(first_valid) + 32'(second_valid) <= 32'(used) + 32'(ahead_left));
  a_cleaned_offered :
  assert property (@(posedge clk) disable iff (rst) cleaned |-> clean != offered);
`endif

endmodule

`default_nettype wire
