// Proves weir_skid: words come out in order, once, after one clock.
// The slice does not look at its data, so words that count up stand for all data.

`default_nettype none

module weir_skid_formal (
    input var logic clk,
    input var logic rst,
    input var logic s_valid,
    input var logic m_ready
);

  localparam int Width = 3;

  logic [Width-1:0] sent;
  logic [Width-1:0] taken;
  logic s_ready;
  logic m_valid;
  logic [Width-1:0] m_data;
  logic started = 1'b0;
  logic stalled;

  weir_skid #(
      .Width(Width)
  ) dut (
      .clk,
      .rst,
      .s_data(sent),
      .s_valid,
      .s_ready,
      .m_data,
      .m_valid,
      .m_ready
  );

  always_ff @(posedge clk) begin
    started <= 1'b1;
    sent <= sent + Width'(s_valid && s_ready);
    taken <= taken + Width'(m_valid && m_ready);
    stalled <= m_valid && !m_ready;
    if (rst) begin
      sent <= '0;
      taken <= '0;
      stalled <= 1'b0;
    end
  end

  always_comb begin
    if (!started) begin
      assume (rst);
    end
    if (started) begin
      // What is inside shows at once; a second word is only there with ready low.
      assert (m_valid == (sent != taken));
      assert (!m_valid || m_data == taken);
      assert (!stalled || m_valid);
      assert (s_ready == (sent - taken != Width'(2)));
      cover (!s_ready);
    end
  end

endmodule

`default_nettype wire
