// Watchdog of the CPU: asks for its reset when no kick with the right key came for `timeout` clocks.
//
// Promise      While `running` and `enable`, `expired` is high for one clock when `timeout` clocks (0 counts as 1) have
//              passed since the last good kick, the begin of running or of enable. Otherwise never.
// Counters     Expiries; kicks with a wrong key, which do nothing else. They wrap and outlive what they count.
// Throughput   A kick per clock.
// Hazards      A new timeout holds from the next kick on.

`default_nettype none

module weir_watchdog #(
    // 'KICK'
    parameter logic [31:0] Key = 32'h4B49_434B
) (
    input var logic clk,
    input var logic rst,

    // The CPU is out of reset.
    input var logic running,
    input var logic enable,
    input var logic [31:0] timeout,
    input var logic kick_valid,
    input var logic [31:0] kick_key,

    output var logic expired,
    output var logic [31:0] left,
    output var logic [15:0] expiries,
    output var logic [15:0] bad_kicks
);

  logic good_kick, watching;

  always_ff @(posedge clk) begin
    good_kick <= kick_valid && kick_key == Key;
    bad_kicks <= bad_kicks + 16'(kick_valid && kick_key != Key);
    watching  <= running && enable;
    expired   <= 1'b0;
    if (!watching || good_kick || expired) begin
      left <= timeout;
    end else if (left[31:1] == '0) begin
      expired  <= 1'b1;
      expiries <= expiries + 1'b1;
    end else begin
      left <= left - 1'b1;
    end
    if (rst) begin
      good_kick <= 1'b0;
      watching <= 1'b0;
      expired <= 1'b0;
      left <= '1;
      expiries <= '0;
      bad_kicks <= '0;
    end
  end

`ifndef SYNTHESIS
  a_one_clock :
  assert property (@(posedge clk) disable iff (rst) expired |=> !expired);
  a_only_when_watching :
  assert property (@(posedge clk) disable iff (rst) expired |-> $past(watching));
`endif

endmodule

`default_nettype wire
