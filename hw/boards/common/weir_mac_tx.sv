// Frames out of the card's clock to a transmitting MAC that cannot take a pause within a frame.
//
//   s_ (card's clock) -> weir_async_fifo -> gate -> m_ (MAC's clock)
//
// Promise      Frames leave in order and unchanged, and without a pause within a frame: one leaves when its first beat
//              has waited for Hold clocks.
// Hold         At least (clocks that the longest frame takes to arrive) - (those that it takes to leave): for 9,216 bytes
//              that come at 100 Gb/s, in a clock of 300 MHz, and may leave at a beat per clock of 322 MHz, 221 - 134 = 87.
//              The rest of the default is for the unevenness of receiving MAC and crossings, 80 ns.
// Throughput   One beat per clock of either side.
// Latency      Hold + 10 clocks, for every size, while the MAC is ready.
// Backpressure s_tready falls when the FIFO is full; in a reset of the MAC too, so that what cannot be sent is lost and
//              counted where all such frames are (weir_elastic).
// Resets       A reset of the MAC loses the frames inside; the rest of one that is just coming is taken and dropped.

`default_nettype none

module weir_mac_tx #(
    parameter int Hold  = 112,
    // Beats; more than Hold.
    parameter int Depth = 512
) (
    input var logic s_clk,
    input var logic s_rst,
    input var logic [511:0] s_tdata,
    input var logic [63:0] s_tkeep,
    input var logic s_tlast,
    input var logic s_terror,
    input var logic s_tvalid,
    output var logic s_tready,

    input var logic m_clk,
    input var logic m_rst,
    output var logic [511:0] m_tdata,
    output var logic [63:0] m_tkeep,
    output var logic m_tlast,
    output var logic m_terror,
    output var logic m_tvalid,
    input var logic m_tready
);

  localparam int CountWidth = $clog2(Depth) + 2;

  if (Hold < 1 || Depth < 2 * Hold) begin : gen_check_hold
    $error("Hold must be positive, Depth at least twice as much");
  end

  typedef logic [CountWidth-1:0] count_t;
  typedef struct packed {
    logic error;
    logic last;
    logic [63:0] keep;
    logic [511:0] data;
  } beat_t;

  beat_t in, out;
  logic fifo_ready, fifo_valid, fifo_s_reset, fifo_m_reset;
  logic takes, skipping, in_frame, may_leave;

  assign in = '{error: s_terror, last: s_tlast, keep: s_tkeep, data: s_tdata};
  assign s_tready = fifo_ready || skipping;
  assign takes = s_tvalid && s_tready;

  always_ff @(posedge s_clk) begin
    if (takes) begin
      in_frame <= !s_tlast;
    end
    if (fifo_s_reset && (takes ? !s_tlast : in_frame)) begin
      skipping <= 1'b1;
    end else if (takes && s_tlast) begin
      skipping <= 1'b0;
    end
    if (s_rst) begin
      in_frame <= 1'b0;
      skipping <= 1'b0;
    end
  end

  weir_async_fifo #(
      .Width($bits(beat_t)),
      .Depth(Depth),
      .RamStyle("block")
  ) fifo (
      .s_clk,
      .s_rst,
      .s_data (in),
      .s_valid(s_tvalid && !skipping),
      .s_ready(fifo_ready),
      .s_reset(fifo_s_reset),
      .m_clk,
      .m_rst,
      .m_data (out),
      .m_valid(fifo_valid),
      .m_ready(m_tready && may_leave),
      .m_reset(fifo_m_reset)
  );

  // --- Frames whose first beat came Hold clocks ago, counted on this side and seen on the other -----

  logic [Hold-1:0] starts;
  count_t due, due_gray, due_gray_seen, due_seen, left;
  logic out_in_frame;

  always_ff @(posedge s_clk) begin
    starts   <= {starts[Hold-2:0], takes && !skipping && !in_frame};
    due      <= due + count_t'(starts[Hold-1]);
    due_gray <= due ^ (due >> 1);
    if (fifo_s_reset) begin
      starts <= '0;
      due <= '0;
      due_gray <= '0;
    end
  end

  weir_sync #(
      .Width (CountWidth),
      .Stages(3)
  ) due_sync (
      .clk(m_clk),
      .s_data(due_gray),
      .m_data(due_gray_seen)
  );

  assign may_leave = out_in_frame || due_seen != left;
  assign m_tvalid  = fifo_valid && may_leave;
  assign m_tdata   = out.data;
  assign m_tkeep   = out.keep;
  assign m_tlast   = out.last;
  assign m_terror  = out.error;

  always_ff @(posedge m_clk) begin
    for (int i = 0; i < CountWidth; i++) due_seen[i] <= ^(due_gray_seen >> i);
    if (m_tvalid && m_tready) begin
      out_in_frame <= !m_tlast;
      left <= left + count_t'(!out_in_frame);
    end
    if (fifo_m_reset) begin
      due_seen <= '0;
      left <= '0;
      out_in_frame <= 1'b0;
    end
  end

`ifndef SYNTHESIS
  a_output_stable :
  assert property (@(posedge m_clk) disable iff (fifo_m_reset) m_tvalid && !m_tready |=> fifo_m_reset || (
      m_tvalid && $stable(
      out
  )));
`endif

endmodule

`default_nettype wire
