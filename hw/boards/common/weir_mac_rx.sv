// Frames from a receiving MAC into the card's clock.
//
//   s_ (MAC's clock) -> weir_elastic -> weir_async_fifo -> m_ (card's clock)
//
// Promise      Frames come out in order, whole and unchanged, or not at all and counted: where weir_elastic has no room, and
//              where a frame came while this was in reset. What m_ has begun always ends: where a reset cuts a frame, one
//              beat marked m_terror ends it.
// Throughput   One beat per clock of the MAC for as long as the elastic buffer lasts, of the card's clock for good.
//              Frames of 65 bytes and their check sequence make 281 million beats a second at 100 Gb/s: the card's
//              300 MHz are enough.
// Backpressure None at either end.
// Counters     Pulses in the MAC's clock: a frame dropped; a frame cut because it was longer than the card takes.
// Resets       s_rst: the MAC gives nothing, and begins with a frame. s_hold, a register, follows it, lasts longer and
//              resets this module; frames that come meanwhile are dropped.

`default_nettype none

module weir_mac_rx (
    input var logic s_clk,
    input var logic s_rst,
    input var logic s_hold,
    input var logic [511:0] s_tdata,
    input var logic [63:0] s_tkeep,
    input var logic s_tlast,
    input var logic s_terror,
    input var logic s_tvalid,
    output var logic dropped,
    output var logic cut,

    input var logic m_clk,
    input var logic m_rst,
    output var logic [511:0] m_tdata,
    output var logic [63:0] m_tkeep,
    output var logic m_tlast,
    output var logic m_terror,
    output var logic m_tvalid
);

  typedef struct packed {
    logic error;
    logic last;
    logic [63:0] keep;
    logic [511:0] data;
  } beat_t;

  beat_t buffered, out;
  logic buffered_valid, buffered_ready, out_valid;
  logic fifo_s_reset, fifo_m_reset;
  logic [31:0] frames_dropped, frames_cut;
  // verilator lint_off UNUSEDSIGNAL
  logic [31:0] frames_in, frames_out;
  logic [9:0] level;
  // verilator lint_on UNUSEDSIGNAL

  // --- Whole frames, and none of which the beginning was missed ----------------------------------------

  logic s_in_frame, passing, passes;

  assign passes = s_tvalid && !fifo_s_reset && (s_in_frame ? passing : 1'b1);

  always_ff @(posedge s_clk) begin
    if (s_tvalid) s_in_frame <= !s_tlast;
    passing <= s_tvalid ? passes : passing && !fifo_s_reset;
    if (s_rst) s_in_frame <= 1'b0;
  end

  weir_elastic elastic (
      .clk(s_clk),
      .rst(fifo_s_reset),
      .s_tdata,
      .s_tkeep,
      .s_tlast,
      .s_terror,
      .s_tvalid(passes),
      .m_tdata(buffered.data),
      .m_tkeep(buffered.keep),
      .m_tlast(buffered.last),
      .m_terror(buffered.error),
      .m_tvalid(buffered_valid),
      .m_tready(buffered_ready),
      .frames_in,
      .frames_out,
      .frames_dropped,
      .frames_cut,
      .level
  );

  weir_async_fifo #(
      .Width($bits(beat_t)),
      .Depth(32)
  ) fifo (
      .s_clk,
      .s_rst  (s_hold),
      .s_data (buffered),
      .s_valid(buffered_valid),
      .s_ready(buffered_ready),
      .s_reset(fifo_s_reset),
      .m_clk,
      .m_rst,
      .m_data (out),
      .m_valid(out_valid),
      .m_ready(1'b1),
      .m_reset(fifo_m_reset)
  );

  logic missed, was_reset;
  logic [31:0] dropped_before, cut_before;

  always_ff @(posedge s_clk) begin
    missed <= s_tvalid && !s_in_frame && !passes;
    dropped_before <= frames_dropped;
    cut_before <= frames_cut;
    // In a reset the counters fall to 0; that is no frame.
    dropped <= missed || (frames_dropped != dropped_before && !fifo_s_reset && !was_reset);
    cut <= frames_cut != cut_before && !fifo_s_reset && !was_reset;
    was_reset <= fifo_s_reset;
  end

  // --- The card's side ----------------------------------------------------------------------------------

  logic in_frame;

  always_ff @(posedge m_clk) begin
    m_tdata  <= out.data;
    m_tkeep  <= out.keep;
    m_tlast  <= out.last;
    m_terror <= out.error;
    m_tvalid <= out_valid && !fifo_m_reset;
    if (out_valid && !fifo_m_reset) begin
      in_frame <= !out.last;
    end
    if (fifo_m_reset && in_frame) begin
      m_tkeep  <= 64'd1;
      m_tlast  <= 1'b1;
      m_terror <= 1'b1;
      m_tvalid <= 1'b1;
      in_frame <= 1'b0;
    end
    if (m_rst) begin
      m_tvalid <= 1'b0;
      in_frame <= 1'b0;
    end
  end

endmodule

`default_nettype wire
