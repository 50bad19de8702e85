// Elastic buffer in front of a transmitting MAC: takes frames that cannot be stopped, gives them when
// the MAC is ready, and drops whole frames when it is not for too long.
//
// Promise      Frames leave in order, whole and unchanged, or not at all and counted; a frame is taken
//              or dropped at its first beat. A frame of more than MaxBeats beats leaves cut after
//              MaxBeats, marked m_terror (the MAC is to spoil its check sequence) and counted.
// Throughput   One beat per clock.
// Latency      The first beat of a frame leaves Hold + 3 clocks after it came, for every size, while
//              the MAC is ready and the buffer has drained. With a Hold of at least
//              (clocks that the longest frame takes to arrive) - (its beats), a frame leaves without a
//              pause within it: 77 for 9,216 bytes from a 100G MAC at 300 MHz. Hold 0 gives beats as
//              they come.
// Backpressure None at s_; m_ is valid/ready.
// Counters     Frames in = frames out + dropped + those inside. They wrap.
// Hazards      s_terror and m_terror count in the last beat of a frame.

`default_nettype none

module weir_elastic #(
    // Beats; a power of two, at least 2 * MaxBeats.
    parameter int Depth = 512,
    parameter int MaxBeats = weir_pkg::MaxFrameBytes / 64,
    parameter int Hold = 0,
    // Of data; a byte has a keep bit.
    parameter int Width = 512
) (
    input var logic clk,
    input var logic rst,

    input var logic [Width-1:0] s_tdata,
    input var logic [Width/8-1:0] s_tkeep,
    input var logic s_tlast,
    input var logic s_terror,
    input var logic s_tvalid,

    output var logic [Width-1:0] m_tdata,
    output var logic [Width/8-1:0] m_tkeep,
    output var logic m_tlast,
    output var logic m_terror,
    output var logic m_tvalid,
    input var logic m_tready,

    output var logic [31:0] frames_in,
    output var logic [31:0] frames_out,
    output var logic [31:0] frames_dropped,
    output var logic [31:0] frames_cut,
    output var logic [$clog2(Depth+3)-1:0] level
);

  localparam int BeatWidth = $clog2(MaxBeats + 1);

  if (MaxBeats < 2 || Depth < 2 * MaxBeats) begin : gen_check_depth
    $error("Depth must hold two frames, MaxBeats be at least 2");
  end
  if (Hold < 0) begin : gen_check_hold
    $error("Hold must not be negative");
  end

  typedef struct packed {
    logic error;
    logic last;
    logic [Width/8-1:0] keep;
    logic [Width-1:0] data;
  } beat_t;

  // --- In: room for a whole frame, or none of it --------------------------------------------------

  typedef enum logic [1:0] {
    BETWEEN = 2'd0,
    TAKING = 2'd1,
    // The rest of a dropped or cut frame.
    SKIPPING = 2'd2
  } state_e;

  state_e state;
  logic [BeatWidth-1:0] beats;
  logic has_room;
  logic first;
  logic take;
  logic cut;
  beat_t s_beat;

  assign first = s_tvalid && state == BETWEEN;
  assign take = s_tvalid && (state == TAKING || (state == BETWEEN && has_room));
  // The last beat that fits is not the last of the frame.
  assign cut = s_tvalid && state == TAKING && beats == BeatWidth'(MaxBeats - 1) && !s_tlast;
  assign s_beat = '{error: s_terror || cut, last: s_tlast || cut, keep: s_tkeep, data: s_tdata};

  always_ff @(posedge clk) begin
    // Compared one clock ahead: a beat of the frame before may come in the meantime.
    has_room <= 32'(level) < Depth - MaxBeats;
    if (s_tvalid) begin
      beats <= state == BETWEEN ? BeatWidth'(1) : beats + 1'b1;
      if (s_tlast) begin
        state <= BETWEEN;
      end else if (state == BETWEEN) begin
        state <= has_room ? TAKING : SKIPPING;
      end else if (cut) begin
        state <= SKIPPING;
      end
    end
    frames_in <= frames_in + 32'(first);
    frames_dropped <= frames_dropped + 32'(first && !has_room);
    frames_cut <= frames_cut + 32'(cut);

    if (rst) begin
      state <= BETWEEN;
      has_room <= 1'b1;
      frames_in <= '0;
      frames_dropped <= '0;
      frames_cut <= '0;
    end
  end

  // --- Out: a frame starts when its first beat is old enough --------------------------------------

  logic fifo_ready;
  logic fifo_valid;
  logic may_leave;
  logic out_in_frame;
  beat_t m_beat;
  // Frames whose first beat came Hold + 2 clocks ago and has not left.
  logic [$clog2(Depth+3)-1:0] due;
  logic [Hold+1:0] starts;
  logic leaves;

  weir_fifo #(
      .Width($bits(beat_t)),
      .Depth(Depth),
      .RamStyle("block")
  ) fifo (
      .clk,
      .rst,
      .s_data (s_beat),
      .s_valid(take),
      .s_ready(fifo_ready),
      .m_data (m_beat),
      .m_valid(fifo_valid),
      .m_ready(m_tready && may_leave),
      .level
  );

  assign may_leave = out_in_frame || due != 0;
  assign m_tvalid = fifo_valid && may_leave;
  assign leaves = m_tvalid && m_tready;
  assign m_tdata = m_beat.data;
  assign m_tkeep = m_beat.keep;
  assign m_tlast = m_beat.last;
  assign m_terror = m_beat.error;

  always_ff @(posedge clk) begin
    starts <= {starts[Hold:0], first && has_room};
    due <= due + $bits(due)'(starts[Hold+1]) - $bits(due)'(leaves && !out_in_frame);
    if (leaves) begin
      out_in_frame <= !m_tlast;
    end
    frames_out <= frames_out + 32'(leaves && m_tlast);

    if (rst) begin
      starts <= '0;
      due <= '0;
      out_in_frame <= 1'b0;
      frames_out <= '0;
    end
  end

`ifndef SYNTHESIS
  a_never_overflows :
  assert property (@(posedge clk) disable iff (rst) take |-> fifo_ready);
  a_output_stable :
  assert property (@(posedge clk) disable iff (rst) m_tvalid && !m_tready |=> m_tvalid && $stable(m_beat));
`endif

endmodule

`default_nettype wire
