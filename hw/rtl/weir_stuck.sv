// Tells when a stream makes no progress.
//
// Promise      `stuck` for a clock when a beat has waited (valid without ready) for `limit` clocks in a row (0 counts as 1);
//              once until the beat moves.
// Latency      Two clocks.

`default_nettype none

module weir_stuck (
    input var logic clk,
    input var logic rst,

    input var logic valid,
    input var logic ready,
    input var logic [31:0] limit,

    output var logic stuck
);

  logic waits, told;
  logic [31:0] left;

  always_ff @(posedge clk) begin
    waits <= valid && !ready;
    stuck <= 1'b0;
    if (!waits) begin
      left <= limit;
      told <= 1'b0;
    end else if (left[31:1] == '0) begin
      stuck <= !told;
      told  <= 1'b1;
    end else begin
      left <= left - 1'b1;
    end
    if (rst) begin
      waits <= 1'b0;
      stuck <= 1'b0;
      told  <= 1'b0;
      left  <= '1;
    end
  end

`ifndef SYNTHESIS
  a_once :
  assert property (@(posedge clk) disable iff (rst) stuck |=> !stuck);
  a_only_when_waiting :
  assert property (@(posedge clk) disable iff (rst) stuck |-> $past(waits));
`endif

endmodule

`default_nettype wire
