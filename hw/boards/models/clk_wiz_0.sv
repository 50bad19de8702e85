// Stand-in for the vendor's clock generator (clk_wiz, PG065). There is no PLL: clk_out1 is the input's clock, clk_out2 a
// third of it; `locked` rises after some clocks.

`default_nettype none

module clk_wiz_0 (
    input var  logic clk_in1_p,
    input var  logic clk_in1_n,
    output var logic clk_out1,
    output var logic clk_out2,
    output var logic locked
);

  // verilator lint_off PROCASSINIT
  logic [4:0] left = '1;
  logic [1:0] third = '0;
  // verilator lint_on PROCASSINIT

  assign clk_out1 = clk_in1_p && !clk_in1_n;
  assign clk_out2 = third[1];
  assign locked   = left == 0;

  always_ff @(posedge clk_in1_p) begin
    if (left != 0) left <= left - 1'b1;
    third <= third == 2'd2 ? 2'd0 : third + 1'b1;
  end

endmodule

`default_nettype wire
