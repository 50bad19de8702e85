// Gives frames of one port the time of their start.
//
// Promise      Frames pass unchanged; tuser.timestamp of the first beat is the time in the clock in which that
//              beat was at s_, plus `offset`: the signed ns that light, PHY and MAC take, so that the time is
//              that at the port's reference plane. The sum wraps at 2^64.
// Throughput   One beat per clock.
// Latency      1 clock.
// Backpressure None in either direction.

`default_nettype none

module weir_timestamp
  import weir_pkg::*;
(
    input var logic clk,
    input var logic rst,

    // weir_clock.
    input var logic [63:0] tai_ns,
    // Looked at with each first beat.
    input var logic signed [31:0] offset,

    input var logic [511:0] s_tdata,
    input var logic [63:0] s_tkeep,
    input var logic s_tvalid,
    input var logic s_tlast,
    // Of a frame that the source cut, with its first beat; else 0.
    input var logic [19:0] s_wire_length,

    output var logic [511:0] m_tdata,
    output var logic [63:0] m_tkeep,
    output var logic m_tvalid,
    output var logic m_tlast,
    // Stays through the frame.
    output var frame_user_t m_tuser
);

  logic in_frame;

  always_ff @(posedge clk) begin
    m_tdata  <= s_tdata;
    m_tkeep  <= s_tkeep;
    m_tlast  <= s_tlast;
    m_tvalid <= s_tvalid;
    if (s_tvalid) begin
      in_frame <= !s_tlast;
      if (!in_frame) begin
        m_tuser.timestamp   <= tai_ns + 64'(offset);
        m_tuser.wire_length <= s_wire_length;
      end
    end
    if (rst) begin
      m_tvalid <= 1'b0;
      in_frame <= 1'b0;
    end
  end

`ifndef SYNTHESIS
  a_user_stays :
  assert property (@(posedge clk) disable iff (rst) m_tvalid && !m_tlast |=> $stable(m_tuser));
`endif

endmodule

`default_nettype wire
