// Drops the first elements of a vector: m_data[i] = s_data[i + s_amount], 0 beyond its end.
//
// Throughput   One vector per clock.
// Latency      (AmountWidth + 2) / 3 clocks: three bits of the amount are two levels of logic.
// Backpressure None.

`default_nettype none

module weir_word_shift #(
    // Bits of an element, a power of two.
    parameter int Width = 32,
    parameter int ElementsIn = 8,
    parameter int ElementsOut = 8,
    parameter int AmountWidth = 3
) (
    input var logic clk,
    input var logic [ElementsIn-1:0][Width-1:0] s_data,
    input var logic [AmountWidth-1:0] s_amount,
    output var logic [ElementsOut-1:0][Width-1:0] m_data
);

  localparam int Steps = (AmountWidth + 2) / 3;

  if (ElementsOut > ElementsIn) begin : gen_check_elements
    $error("ElementsOut must not be more than ElementsIn");
  end
  if (Width != 1 << $clog2(Width)) begin : gen_check_width
    $error("Width must be a power of two");
  end

  // Large steps first: what they drop needs no small ones.
  for (genvar step = 0; step < Steps; step++) begin : gen_step
    localparam int Low = 3 * (Steps - 1 - step);

    logic [ElementsIn-1:0][Width-1:0] from;
    // verilator lint_off UNUSEDSIGNAL
    logic [ElementsIn-1:0][Width-1:0] data;
    // verilator lint_on UNUSEDSIGNAL
    logic [Low+2:0] amount;

    if (step == 0) begin : gen_first
      assign from   = s_data;
      assign amount = (Low + 3)'(s_amount);
    end else begin : gen_later
      assign from = gen_step[step-1].data;
      always_ff @(posedge clk) amount <= gen_step[step-1].amount[Low+2:0];
    end

    always_ff @(posedge clk) data <= from >> (32'(amount[Low+:3]) << (Low + $clog2(Width)));
  end

  assign m_data = gen_step[Steps-1].data[ElementsOut-1:0];

endmodule

`default_nettype wire
