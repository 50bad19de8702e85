// Reset of a clock domain, out of a level that belongs to no domain.
//
// Promise      `rst` is high from configuration on, and until `clear` has been low for Hold clocks in a row.
// Hazards      While `clk` stands still, `rst` stays as it is.

`default_nettype none

module weir_reset #(
    parameter int Hold = 16
) (
    input var  logic clk,
    // Asynchronous; straight from a register or a pin.
    input var  logic clear,
    // verilator lint_off PROCASSINIT
    output var logic rst = 1'b1
);

  localparam int CountWidth = $clog2(Hold + 1);

  logic clear_seen;
  logic [CountWidth-1:0] left = CountWidth'(Hold);
  // verilator lint_on PROCASSINIT

  weir_sync sync (
      .clk,
      .s_data(clear),
      .m_data(clear_seen)
  );

  always_ff @(posedge clk) begin
    if (clear_seen) begin
      left <= CountWidth'(Hold);
    end else if (left != 0) begin
      left <= left - 1'b1;
    end
    rst <= clear_seen || left != 0;
  end

endmodule

`default_nettype wire
