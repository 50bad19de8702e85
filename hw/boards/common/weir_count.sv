// Counts in one clock's domain what is read in another's.
//
// Promise      m_count is the number of clocks with `event_valid`, some clocks old; it wraps.
// Resets       `rst` sets it to 0.

`default_nettype none

module weir_count #(
    parameter int Width = 32
) (
    input var logic clk,
    input var logic rst,
    input var logic event_valid,

    input var logic m_clk,
    output var logic [Width-1:0] m_count
);

  logic [Width-1:0] count, gray, gray_seen;

  always_ff @(posedge clk) begin
    count <= count + Width'(event_valid);
    gray  <= count ^ (count >> 1);
    if (rst) begin
      count <= '0;
      gray  <= '0;
    end
  end

  weir_sync #(
      .Width(Width)
  ) sync (
      .clk(m_clk),
      .s_data(gray),
      .m_data(gray_seen)
  );

  always_ff @(posedge m_clk) begin
    for (int i = 0; i < Width; i++) m_count[i] <= ^(gray_seen >> i);
  end

endmodule

`default_nettype wire
