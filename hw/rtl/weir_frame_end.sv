// Ends the frame that a reset of its source cuts, so that what takes the frames is never left within one.
//
// Promise      Beats leave in order, once. A frame of which beats were taken when `cut` comes gets LastBeat as its last one;
//              nothing of the source is taken while `cut` or `hold` is high, or before that beat has found room.
//              m_tvalid does not fall, nor do data change, until a beat is taken, whatever the source does.
// Throughput   One beat per clock.
// Latency      One clock.
// Backpressure To the source; holds two beats.
// Hazards      What the source offers when `cut` falls is to be the first beat of a frame.

`default_nettype none

module weir_frame_end #(
    parameter int Width = 512,
    parameter logic [Width-1:0] LastBeat = '0
) (
    input var logic clk,
    input var logic rst,

    // The source is in reset.
    input var logic cut,
    // Nothing is to leave but the end of a frame that is cut.
    input var logic hold,

    input var logic [Width-1:0] s_tdata,
    input var logic s_tlast,
    input var logic s_tvalid,
    output var logic s_tready,

    output var logic [Width-1:0] m_tdata,
    output var logic m_tlast,
    output var logic m_tvalid,
    input var logic m_tready
);

  logic offered, room, in_frame, ending;
  assign offered  = s_tvalid && !hold && !ending && !cut;
  assign s_tready = room && !hold && !ending;

  always_ff @(posedge clk) begin
    if (offered && room) in_frame <= !s_tlast;
    if (cut && in_frame) ending <= 1'b1;
    if (ending && room) begin
      ending   <= 1'b0;
      in_frame <= 1'b0;
    end
    if (rst) begin
      ending   <= 1'b0;
      in_frame <= 1'b0;
    end
  end

  weir_skid #(
      .Width(Width + 1)
  ) skid (
      .clk,
      .rst,
      .s_data (ending ? {1'b1, LastBeat} : {s_tlast, s_tdata}),
      .s_valid(offered || ending),
      .s_ready(room),
      .m_data ({m_tlast, m_tdata}),
      .m_valid(m_tvalid),
      .m_ready(m_tready)
  );

`ifndef SYNTHESIS
  a_output_stable :
  assert property (@(posedge clk) disable iff (rst) m_tvalid && !m_tready |=> m_tvalid && $stable({m_tdata, m_tlast}));
`endif

endmodule

`default_nettype wire
