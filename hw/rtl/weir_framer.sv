// Record frames: packs the records of one lane into Ethernet frames for the host.
//
// Promise      Every accepted record leaves once, in order, in a frame of a header beat
//              (frame_header_t) and 1 .. MaxRecords records. Frames are numbered without a gap from
//              reset. A frame is closed when it is full, FlushClocks after its first record, or
//              after a pulse on `flush`, which covers records accepted up to and with that clock.
// Throughput   MaxRecords records in MaxRecords + 1 clocks.
// Latency      Store and forward, since the header counts the records: a full frame's header comes
//              five clocks after its last record when the output is free.
// Backpressure s_ready falls when Depth records wait, or Frames closed frames do; nothing is dropped
//              here. Within a frame m_tvalid does not fall.
// Counters     records_in = records_out + what is inside; both and frames_out from reset.
// Hazards      Addresses, lane and epoch are to stand still while frames leave. `time` in the header
//              is `now` when the header was offered, so an output that stalls makes it old.

`default_nettype none

module weir_framer
  import weir_records_pkg::*;
#(
    parameter int MaxRecords = FrameMaxRecords,
    parameter logic [15:0] EtherType = 16'(FrameEtherType),
    // At least 1; 30,000 is 100 us at 300 MHz.
    parameter int FlushClocks = 30_000,
    // Records that can wait; a power of two, at least MaxRecords.
    parameter int Depth = 256,
    // Closed frames that can wait; a power of two.
    parameter int Frames = 16,
    // Of the counters; less than 64 only to keep proofs small.
    parameter int CounterWidth = 64
) (
    input var logic clk,
    input var logic rst,

    // TAI ns.
    input var logic [63:0] now,
    // First byte on the wire is the highest.
    input var logic [47:0] destination_mac,
    input var logic [47:0] source_mac,
    input var logic [7:0] lane,
    input var logic [15:0] epoch,
    input var logic flush,

    input var logic [511:0] s_data,
    input var logic s_valid,
    output var logic s_ready,

    output var logic [511:0] m_tdata,
    output var logic [63:0] m_tkeep,
    output var logic m_tlast,
    output var logic m_tvalid,
    input var logic m_tready,

    output var logic [CounterWidth-1:0] records_in,
    output var logic [CounterWidth-1:0] records_out,
    output var logic [CounterWidth-1:0] frames_out
);

  localparam int CountWidth = $clog2(MaxRecords + 1);
  localparam int AgeWidth = $clog2(FlushClocks + 1);

  if (MaxRecords < 1 || MaxRecords > FrameMaxRecords) begin : gen_check_records
    $error("MaxRecords must be in 1 .. FrameMaxRecords");
  end
  if (Depth < MaxRecords) begin : gen_check_depth
    $error("Depth must hold a whole frame");
  end
  if (FlushClocks < 1) begin : gen_check_flush
    $error("FlushClocks must be positive");
  end

  typedef logic [CountWidth-1:0] count_t;

  typedef struct packed {
    count_t records;
    logic [31:0] first_sequence;
  } closed_t;

  // --- In: records into the FIFO, a word for each closed frame ------------------------------------

  // Of a record, only its number is looked at.
  // verilator lint_off UNUSEDSIGNAL
  record_header_t s_header;
  // verilator lint_on UNUSEDSIGNAL
  logic accept;
  logic store_ready;
  // Records of the frame that is still open, number of the first, clocks since it came.
  count_t open_records;
  logic open_full;
  logic [31:0] open_first;
  logic [AgeWidth-1:0] open_age;
  logic due;
  logic told;
  logic close;
  logic close_ready;

  assign s_header = s_data[$bits(record_header_t)-1:0];
  assign s_ready = store_ready && (!open_full || close_ready);
  assign accept = s_valid && s_ready;
  assign close = close_ready && (open_full || ((due || told) && open_records != 0));

  always_ff @(posedge clk) begin
    if (accept && (close || open_records == 0)) begin
      open_first <= s_header.sequence_;
    end

    if (close) begin
      open_records <= count_t'(accept);
      open_full <= accept && MaxRecords == 1;
      open_age <= '0;
      due <= 1'b0;
    end else begin
      open_records <= open_records + count_t'(accept);
      open_full <= open_full || (accept && open_records == count_t'(MaxRecords - 1));
      if (open_records != 0 && !due) begin
        open_age <= open_age + 1'b1;
        due <= open_age == AgeWidth'(FlushClocks - 1);
      end
    end
    told <= flush ? accept || (open_records != 0 && !close) : told && !close;
    records_in <= records_in + CounterWidth'(accept);

    if (rst) begin
      open_records <= '0;
      open_full <= 1'b0;
      open_age <= '0;
      due <= 1'b0;
      told <= 1'b0;
      records_in <= '0;
    end
  end

  logic [511:0] stored;
  logic stored_valid;
  logic stored_ready;
  closed_t closed;
  logic closed_valid;
  logic closed_ready;

  logic unused_levels;
  logic [$clog2(Depth+3)-1:0] records_level;
  logic [$clog2(Frames+3)-1:0] frames_level;
  assign unused_levels = &{records_level, frames_level};

  weir_fifo #(
      .Width(512),
      .Depth(Depth),
      .RamStyle("block")
  ) records (
      .clk,
      .rst,
      .s_data,
      .s_valid(accept),
      .s_ready(store_ready),
      .m_data (stored),
      .m_valid(stored_valid),
      .m_ready(stored_ready),
      .level  (records_level)
  );

  weir_fifo #(
      .Width($bits(closed_t)),
      .Depth(Frames),
      .RamStyle("distributed")
  ) frames (
      .clk,
      .rst,
      .s_data ({open_records, open_first}),
      .s_valid(close),
      .s_ready(close_ready),
      .m_data (closed),
      .m_valid(closed_valid),
      .m_ready(closed_ready),
      .level  (frames_level)
  );

  // --- Out: a header, then as many records as it says ---------------------------------------------

  frame_header_t header;
  // Records of the frame that has to follow the beat in the output register.
  count_t remaining;
  logic in_body;
  logic out_advance;
  logic out_is_record;
  logic [CounterWidth-1:0] next_sequence;
  logic [CounterWidth-1:0] next_total;

  assign out_advance = !m_tvalid || m_tready;
  assign in_body = remaining != 0;
  assign stored_ready = out_advance && in_body;
  assign closed_ready = out_advance && !in_body;
  assign m_tkeep = '1;

  always_comb begin
    header = '0;
    header.destination = {<<8{destination_mac}};
    header.source = {<<8{source_mac}};
    header.ethertype = {<<8{EtherType}};
    header.version = 8'(FrameVersion);
    header.lane = lane;
    header.epoch = epoch;
    header.records = 16'(closed.records);
    header.first_sequence = closed.first_sequence;
    header.sequence_ = 64'(next_sequence);
    header.time_ = now;
    header.total = 64'(next_total);
  end

  always_ff @(posedge clk) begin
    if (out_advance) begin
      m_tdata <= in_body ? stored : header;
      m_tlast <= remaining == count_t'(1);
      out_is_record <= in_body;
    end
  end

  always_ff @(posedge clk) begin
    if (out_advance) begin
      m_tvalid <= in_body ? stored_valid : closed_valid;
      if (in_body) begin
        remaining <= remaining - count_t'(stored_valid);
      end else if (closed_valid) begin
        remaining <= closed.records;
        next_sequence <= next_sequence + 1'b1;
        next_total <= next_total + CounterWidth'(closed.records);
      end
    end
    if (m_tvalid && m_tready) begin
      records_out <= records_out + CounterWidth'(out_is_record);
      frames_out  <= frames_out + CounterWidth'(m_tlast);
    end

    if (rst) begin
      m_tvalid <= 1'b0;
      remaining <= '0;
      next_sequence <= '0;
      next_total <= '0;
      records_out <= '0;
      frames_out <= '0;
    end
  end

`ifndef SYNTHESIS
  a_output_stable :
  assert property (@(posedge clk) disable iff (rst) m_tvalid && !m_tready |=> m_tvalid && $stable({m_tdata, m_tlast}));
  a_no_gap_in_frame :
  assert property (@(posedge clk) disable iff (rst) in_body |-> stored_valid && m_tvalid);
  a_header_within_limit :
  assert property (@(posedge clk) disable iff (rst) close |-> open_records inside {[1 : MaxRecords]});
  a_nothing_made_up :
  assert property (@(posedge clk) disable iff (rst) 32'(records_in - records_out) <= Depth + 3);
`endif

endmodule

`default_nettype wire
