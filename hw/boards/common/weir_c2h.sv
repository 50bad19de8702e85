// Record frames and header slices to the host: streams of the card's clock into packets of the DMA's.
//
//   s_[0..2] (card's clock) -> one frame after another -> weir_async_fifo -> m_ (DMA's clock), queue by stream
//                                          '-> length  -> weir_async_fifo -'
//
// Promise      Each frame leaves whole, in order within its stream, with its length at its first beat; m_tvalid does not
//              fall within a frame. Streams take turns.
// Throughput   One beat per clock.
// Latency      Store and forward, since the DMA wants the length first.
// Backpressure To the streams; nothing is lost here but in a reset.
// Resets       m_rst loses what is inside; the rest of a frame that is just coming is taken and dropped.
// Hazards      Beats are whole: records and slices are of 64 bytes. A frame is to be shorter than Depth beats.

`default_nettype none

module weir_c2h #(
    parameter int Queues = 3,
    // Beats that can wait.
    parameter int Depth = 512,
    localparam int LengthWidth = $clog2(Depth),
    localparam int QueueWidth = $clog2(Queues)
) (
    input var logic s_clk,
    input var logic s_rst,
    input var logic [Queues-1:0][511:0] s_tdata,
    input var logic [Queues-1:0] s_tlast,
    input var logic [Queues-1:0] s_tvalid,
    output var logic [Queues-1:0] s_tready,

    input var logic m_clk,
    input var logic m_rst,
    output var logic [511:0] m_tdata,
    output var logic m_tlast,
    output var logic m_tvalid,
    input var logic m_tready,
    // These stand still from the first beat of a frame to its last.
    output var logic [LengthWidth-1:0] m_beats,
    output var logic [QueueWidth-1:0] m_queue
);

  typedef logic [QueueWidth-1:0] queue_t;

  // --- One frame after another ------------------------------------------------------------------------

  queue_t queue;
  logic in_frame;
  logic [LengthWidth-1:0] beats;
  logic [512:0] chosen, joined;
  logic chosen_valid, chosen_ready, skid_ready, joined_valid, joined_ready;
  logic data_ready, length_ready;
  queue_t joined_queue;
  logic   joined_in_frame;
  logic takes, s_reset, m_reset;

  logic skipping, accepts, open_after;

  assign chosen_ready = skipping || (skid_ready && !s_reset);
  assign accepts = chosen_valid && chosen_ready;
  assign open_after = accepts ? !s_tlast[queue] : in_frame;

  always_ff @(posedge s_clk) begin
    in_frame <= open_after;
    skipping <= open_after && (skipping || s_reset);
    // The next stream that has something, else the next one.
    if (!open_after && (accepts || !chosen_valid)) begin
      queue <= queue == queue_t'(Queues - 1) ? '0 : queue + 1'b1;
    end
    if (s_rst) begin
      in_frame <= 1'b0;
      skipping <= 1'b0;
      queue <= '0;
    end
  end

  assign chosen = {s_tlast[queue], s_tdata[queue]};
  assign chosen_valid = s_tvalid[queue];

  always_comb begin
    s_tready = '0;
    s_tready[queue] = chosen_ready;
  end

  weir_skid #(
      .Width(513 + QueueWidth)
  ) skid (
      .clk(s_clk),
      .rst(s_reset),
      .s_data({queue, chosen}),
      .s_valid(chosen_valid && !skipping && !s_reset),
      .s_ready(skid_ready),
      .m_data({joined_queue, joined}),
      .m_valid(joined_valid),
      .m_ready(joined_ready)
  );

  assign joined_ready = data_ready && length_ready;
  assign takes = joined_valid && joined_ready;

  always_ff @(posedge s_clk) begin
    if (takes) begin
      beats <= joined[512] ? LengthWidth'(1) : beats + 1'b1;
      joined_in_frame <= !joined[512];
    end
    if (s_reset) begin
      beats <= LengthWidth'(1);
      joined_in_frame <= 1'b0;
    end
  end

  // --- To the DMA's clock -----------------------------------------------------------------------------

  logic length_valid, data_valid;
  // verilator lint_off UNUSEDSIGNAL
  logic length_s_reset, length_m_reset;
  // verilator lint_on UNUSEDSIGNAL

  weir_async_fifo #(
      .Width(513),
      .Depth(Depth),
      .RamStyle("block")
  ) data (
      .s_clk,
      .s_rst,
      .s_data (joined),
      .s_valid(joined_valid && length_ready),
      .s_ready(data_ready),
      .s_reset,
      .m_clk,
      .m_rst,
      .m_data ({m_tlast, m_tdata}),
      .m_valid(data_valid),
      .m_ready(m_tready && length_valid),
      .m_reset
  );

  weir_async_fifo #(
      .Width(LengthWidth + QueueWidth),
      .Depth(64)
  ) lengths (
      .s_clk,
      .s_rst,
      .s_data ({joined_queue, beats}),
      .s_valid(takes && joined[512]),
      .s_ready(length_ready),
      .s_reset(length_s_reset),
      .m_clk,
      .m_rst,
      .m_data ({m_queue, m_beats}),
      .m_valid(length_valid),
      .m_ready(m_tvalid && m_tready && m_tlast),
      .m_reset(length_m_reset)
  );

  assign m_tvalid = length_valid && data_valid;

`ifndef SYNTHESIS
  logic m_in_frame;
  always_ff @(posedge m_clk) begin
    if (m_tvalid && m_tready) m_in_frame <= !m_tlast;
    if (m_reset) m_in_frame <= 1'b0;
  end
  a_without_a_gap :
  assert property (@(posedge m_clk) disable iff (m_reset) m_in_frame |-> m_tvalid || m_reset);
  a_output_stable :
  assert property (@(posedge m_clk) disable iff (m_reset) m_tvalid && !m_tready |=> m_reset || (m_tvalid && $stable(
      {m_tdata, m_tlast, m_beats, m_queue}
  )));
  a_fits :
  assert property (@(posedge s_clk) disable iff (s_reset) joined_in_frame |-> beats != '1);
`endif

endmodule

`default_nettype wire
