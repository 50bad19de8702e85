// Proves weir_fifo: words come out in order, once, and level is what is inside.
// The FIFO does not look at its data, so words that count up stand for all data.

`default_nettype none

module weir_fifo_formal #(
    parameter  int Depth = 4,
    localparam int Width = 4
) (
    input var logic clk,
    input var logic rst,
    input var logic s_valid,
    input var logic m_ready
);

  localparam int Capacity = Depth + 2;

  logic [Width-1:0] sent;
  logic [Width-1:0] taken;
  logic s_ready;
  logic m_valid;
  logic [Width-1:0] m_data;
  logic [$clog2(Depth+3)-1:0] level;
  logic started = 1'b0;
  logic stalled;
  // Clocks since a word was accepted while nothing was taken.
  logic [2:0] waited;

  weir_fifo #(
      .Width(Width),
      .Depth(Depth)
  ) dut (
      .clk,
      .rst,
      .s_data(sent),
      .s_valid,
      .s_ready,
      .m_data,
      .m_valid,
      .m_ready,
      .level
  );

  always_ff @(posedge clk) begin
    started <= 1'b1;
    sent <= sent + Width'(s_valid && s_ready);
    taken <= taken + Width'(m_valid && m_ready);
    stalled <= m_valid && !m_ready;
    waited <= level == 0 || m_valid ? '0 : waited + 1'b1;
    if (rst) begin
      sent <= '0;
      taken <= '0;
      stalled <= 1'b0;
      waited <= '0;
    end
  end

  always_comb begin
    if (!started) begin
      assume (rst);
    end
    if (started) begin
      assert (32'(level) <= Capacity);
      assert (Width'(level) == sent - taken);
      assert (!m_valid || m_data == taken);
      assert (!m_valid || level != 0);
      assert (!stalled || m_valid);
      // A word that is inside comes out, and what is not full accepts.
      assert (waited <= 2);
      assert (s_ready || 32'(level) >= Depth);
      cover (32'(level) == Capacity);
    end
  end

endmodule

`default_nettype wire
