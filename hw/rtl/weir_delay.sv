// A value some clocks later. No reset and no enable, so that it becomes shift-register memory.

`default_nettype none

module weir_delay #(
    parameter int Width  = 1,
    // 0 is a wire.
    parameter int Clocks = 1
) (
    input var logic clk,
    input var logic [Width-1:0] s_data,
    output var logic [Width-1:0] m_data
);

  if (Clocks < 0) begin : gen_check_clocks
    $error("Clocks must not be negative");
  end

  if (Clocks <= 0) begin : gen_wire
    // verilator lint_off UNUSEDSIGNAL
    wire unused_clk = clk;
    // verilator lint_on UNUSEDSIGNAL
    assign m_data = s_data;
  end else begin : gen_line
    logic [Width-1:0] line[Clocks];
    always_ff @(posedge clk) begin
      line[0] <= s_data;
      for (int i = 1; i < Clocks; i++) line[i] <= line[i-1];
    end
    assign m_data = line[Clocks-1];
  end

endmodule

`default_nettype wire
