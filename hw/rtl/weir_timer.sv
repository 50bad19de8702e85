// Timer of the CPU: clocks since reset, and an interrupt from a given one on.
//
// Promise      `due` two clocks after `now` reached `compare` (now >= compare), and as long as it has; two clocks
//              after a change of compare the new one holds. `irq` is due while enabled, one clock later.
// Throughput   Nothing waits for anything.

`default_nettype none

module weir_timer (
    input var logic clk,
    input var logic rst,

    input var logic [63:0] compare,
    input var logic enable,

    output var logic [63:0] now,
    output var logic due,
    output var logic irq
);

  logic above, same, low_reached;

  always_ff @(posedge clk) begin
    now <= now + 1'b1;
    above <= now[63:32] > compare[63:32];
    same <= now[63:32] == compare[63:32];
    low_reached <= now[31:0] >= compare[31:0];
    due <= above || (same && low_reached);
    irq <= due && enable;
    if (rst) begin
      now   <= '0;
      above <= 1'b0;
      same  <= 1'b0;
      due   <= 1'b0;
      irq   <= 1'b0;
    end
  end

`ifndef SYNTHESIS
  a_due :
  assert property (@(posedge clk) disable iff (rst) 1'b1 |=> ##1 rst || due == ($past(now, 2) >= $past(compare, 2)));
`endif

endmodule

`default_nettype wire
