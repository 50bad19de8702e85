// Register slice for a valid/ready stream: cuts the path of data and valid and the path of ready.
//
// Promise      What is accepted at s_ comes out at m_ in the same order, once.
// Throughput   One word per clock.
// Latency      One clock.
// Backpressure Holds two words; s_ready is a register and falls in the clock after the output
//              stalled with a word in it.
// Hazards      None; s_ready may be high in reset, so the source must be in reset too.

`default_nettype none

module weir_skid #(
    parameter int Width = 64
) (
    input var logic clk,
    input var logic rst,

    input var logic [Width-1:0] s_data,
    input var logic s_valid,
    output var logic s_ready,

    output var logic [Width-1:0] m_data,
    output var logic m_valid,
    input var logic m_ready
);

  if (Width < 1) begin : gen_check_width
    $error("Width must be positive");
  end

  // The word that came while the output stood still; s_ready is low while there is one.
  logic [Width-1:0] spare;
  logic out_advance;

  assign out_advance = !m_valid || m_ready;

  always_ff @(posedge clk) begin
    if (s_ready) begin
      spare <= s_data;
    end
    if (out_advance) begin
      m_data <= s_ready ? s_data : spare;
    end
  end

  always_ff @(posedge clk) begin
    if (out_advance) begin
      m_valid <= s_valid || !s_ready;
      s_ready <= 1'b1;
    end else if (s_valid) begin
      s_ready <= 1'b0;
    end

    if (rst) begin
      m_valid <= 1'b0;
      s_ready <= 1'b1;
    end
  end

`ifndef SYNTHESIS
  a_output_stable :
  assert property (@(posedge clk) disable iff (rst) m_valid && !m_ready |=> m_valid && $stable(m_data));
  a_spare_behind_output :
  assert property (@(posedge clk) disable iff (rst) !s_ready |-> m_valid);
`endif

endmodule

`default_nettype wire
