// Two streams of frames onto one link.
//
// Promise      Frames leave whole, those of a stream in order; none is lost. While both streams have frames, they take
//              turns.
// Throughput   One beat per clock; one clock is lost where the stream that is listened to has none and the other does.
// Latency      None.
// Backpressure m_tready, to the stream whose turn it is.
// Hazards      Within a frame s_tvalid is not to fall, as weir_framer promises.

`default_nettype none

module weir_frame_merge #(
    parameter int Width = 512
) (
    input var logic clk,
    input var logic rst,

    input var logic [1:0][Width-1:0] s_tdata,
    input var logic [1:0] s_tlast,
    input var logic [1:0] s_tvalid,
    output var logic [1:0] s_tready,

    output var logic [Width-1:0] m_tdata,
    output var logic m_tlast,
    output var logic m_tvalid,
    input var logic m_tready
);

  logic turn;

  assign m_tdata  = s_tdata[turn];
  assign m_tlast  = s_tlast[turn];
  assign m_tvalid = s_tvalid[turn];
  assign s_tready = {turn && m_tready, !turn && m_tready};

  always_ff @(posedge clk) begin
    if (s_tvalid[!turn] && (!m_tvalid || (m_tready && m_tlast))) turn <= !turn;
    if (rst) turn <= 1'b0;
  end

`ifndef SYNTHESIS
  logic in_frame;
  always_ff @(posedge clk) begin
    if (m_tvalid && m_tready) in_frame <= !m_tlast;
    if (rst) in_frame <= 1'b0;
  end
  a_whole :
  assert property (@(posedge clk) disable iff (rst) in_frame |-> m_tvalid && $stable(turn));
  a_output_stable :
  assert property (@(posedge clk) disable iff (rst) m_tvalid && !m_tready |=> m_tvalid && $stable({m_tdata, m_tlast}));
`endif

endmodule

`default_nettype wire
