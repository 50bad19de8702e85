// The time of the card (TAI), disciplined from outside.
//
// Promise      Each clock the time grows by Increment + rate + what a slew adds, in units of 2^-32 ns, without
//              loss: nothing is rounded away. `tai_ns` = seconds * 10^9 + ns always.
// rate         Signed, 2^-32 ns per clock: 1 ppm at 300 MHz is 14,317.
// set          The time is seconds and ns, with no fraction, at the 33rd edge behind the one that takes it.
//              set_ns must be below 10^9. A slew under way is dropped; what comes while set_busy is lost.
// step         Adds step_ns at once; at most MaxStepNs either way.
// slew         Adds slew_ns little by little, SlewIncrement per clock (500 ppm); further ones add up. slew_busy
//              while some is left.
// Latency      What rate and step do is seen in the fifth clock, slew one later.
// pps          Not synchronous. At its rising edge the time is captured: pps_valid for one clock, pps_tai_ns and
//              pps_fraction stay. It is that of the second clock edge behind the first that sees pps high.
// Hazards      Steps and sets can make time run backwards: weir_merge lets go what was stamped before; the engine
//              clamps and counts what is stamped since.

`default_nettype none

module weir_clock #(
    // Of one clock in 2^-32 ns; 300 MHz: 10/3 ns.
    parameter logic [39:0] Increment = 40'd14_316_557_653,
    parameter logic [23:0] SlewIncrement = 24'd7_158_279
) (
    input var logic clk,
    input var logic rst,

    input var logic signed [31:0] rate,

    input var logic set_valid,
    input var logic [47:0] set_seconds,
    input var logic [29:0] set_ns,
    output var logic set_busy,

    input var logic step_valid,
    input var logic signed [30:0] step_ns,

    input var logic slew_valid,
    input var logic signed [31:0] slew_ns,
    output var logic slew_busy,

    input var logic pps,
    output var logic pps_valid,
    output var logic [63:0] pps_tai_ns,
    output var logic [31:0] pps_fraction,

    output var logic [47:0] seconds,
    output var logic [29:0] ns,
    output var logic [31:0] fraction,
    output var logic [63:0] tai_ns
);

  localparam logic [29:0] Second = 30'd1_000_000_000;
  // With a step the sum stays below two seconds.
  // verilator lint_off UNUSEDPARAM
  localparam logic signed [30:0] MaxStepNs = 31'sd999_999_000;
  // verilator lint_on UNUSEDPARAM

  localparam int SlewBits = 23;

  if (SlewIncrement == '0 || SlewIncrement[SlewBits]) begin : gen_check_slew
    $error("SlewIncrement must be 1 .. 2^23 - 1");
  end
  if (Increment < 40'd1 << 31 || Increment > 40'd100 << 32) begin : gen_check_increment
    $error("Increment must be 0.5 .. 100 ns");
  end

  // 1: what the next clock adds. Of a slew, small rests go whole.
  logic signed [63:0] slew_left;
  logic signed [SlewBits:0] slew, slew_1;
  logic signed [41:0] base_1;
  logic signed [30:0] step_1;
  logic signed [63:0] add_2;

  always_comb begin
    if (slew_left[63:SlewBits] == '0 || &slew_left[63:SlewBits]) slew = slew_left[SlewBits:0];
    else slew = slew_left[63] ? -signed'(SlewIncrement) : signed'(SlewIncrement);
  end

  always_ff @(posedge clk) begin
    slew_left <= slew_left - 64'(slew) + (slew_valid ? signed'({slew_ns, 32'b0}) : '0);
    slew_1 <= slew;
    slew_busy <= slew_left != '0;
    base_1 <= signed'({2'b0, Increment}) + 42'(rate);
    step_1 <= step_valid ? step_ns : '0;
    // 2
    add_2 <= 64'(base_1) + 64'(slew_1) + signed'({step_1[30], step_1, 32'b0});
    if (set_busy || rst) begin
      slew_left <= '0;
      slew_1 <= '0;
      step_1 <= '0;
    end
    if (rst) add_2 <= '0;
  end

  // A set: seconds * 10^9, one bit of 10^9 per clock, highest first; then all at once, stage by stage.
  logic [63:0] product;
  logic [63:0] new_tai_ns;
  logic [47:0] new_seconds;
  logic [29:0] new_ns;
  logic [29:0] factor;
  logic [ 4:0] factor_left;
  logic set_4, set_5;

  wire set_3 = set_busy && factor_left == '0;

  always_ff @(posedge clk) begin
    product <= (product << 1) + (factor[29] ? 64'(new_seconds) : '0);
    new_tai_ns <= product + 64'(new_ns);
    factor <= factor << 1;
    factor_left <= factor_left - 1'b1;
    set_4 <= set_3;
    set_5 <= set_4;
    if (set_3) set_busy <= 1'b0;
    if (set_valid && !set_busy) begin
      new_seconds <= set_seconds;
      new_ns <= set_ns;
      product <= '0;
      factor <= Second;
      factor_left <= 5'd30;
      set_busy <= 1'b1;
    end
    if (rst) begin
      set_busy <= 1'b0;
      set_4 <= 1'b0;
      set_5 <= 1'b0;
    end
  end

  // 3: fraction; whole ns to add.
  logic [31:0] fraction_3, fraction_4;
  logic signed [32:0] add_ns_3;
  wire [32:0] fraction_sum = {1'b0, fraction_3} + {1'b0, add_2[31:0]};

  always_ff @(posedge clk) begin
    fraction_3 <= fraction_sum[31:0];
    add_ns_3   <= 33'(signed'(add_2[63:32])) + 33'(fraction_sum[32]);
    if (set_3) fraction_3 <= '0;
    if (rst) begin
      fraction_3 <= '0;
      add_ns_3   <= '0;
    end
  end

  // 4: ns. The sum, and what it is a second earlier or later: which one holds is known as soon as they are.
  localparam logic signed [32:0] SecondNs = 33'(Second);
  logic [29:0] ns_4;
  logic [63:0] tai_ns_4;
  logic later_4, earlier_4;
  wire signed [32:0] sum = signed'({3'b0, ns_4}) + add_ns_3;
  wire signed [32:0] sum_less = signed'({3'b0, ns_4}) + add_ns_3 - SecondNs;
  wire [29:0] sum_more = ns_4 + add_ns_3[29:0] + Second;

  always_ff @(posedge clk) begin
    fraction_4 <= fraction_3;
    tai_ns_4   <= tai_ns_4 + 64'(add_ns_3);
    later_4    <= sum_less >= 0;
    earlier_4  <= sum < 0;
    if (sum_less >= 0) ns_4 <= 30'(sum_less);
    else if (sum < 0) ns_4 <= sum_more;
    else ns_4 <= 30'(sum);
    if (set_4) begin
      tai_ns_4 <= new_tai_ns;
      ns_4 <= new_ns;
    end
    if (rst) begin
      fraction_4 <= '0;
      tai_ns_4 <= '0;
      ns_4 <= '0;
      later_4 <= 1'b0;
      earlier_4 <= 1'b0;
    end
  end

  // 5: seconds.
  always_ff @(posedge clk) begin
    fraction <= fraction_4;
    tai_ns <= tai_ns_4;
    ns <= ns_4;
    seconds <= seconds + 48'(later_4) - 48'(earlier_4);
    if (set_5) seconds <= new_seconds;
    if (rst) begin
      seconds <= '0;
      ns <= '0;
      fraction <= '0;
      tai_ns <= '0;
    end
  end

  // Two registers against metastability, one for the edge.
  (* async_reg = "true" *)
  logic [1:0] pps_meta;
  logic pps_before;

  always_ff @(posedge clk) begin
    pps_meta   <= {pps_meta[0], pps};
    pps_before <= pps_meta[1];
    pps_valid  <= pps_meta[1] && !pps_before;
    if (pps_meta[1] && !pps_before) begin
      pps_tai_ns   <= tai_ns;
      pps_fraction <= fraction;
    end
    if (rst) begin
      pps_valid  <= 1'b0;
      // No edge out of a level that was high in reset.
      pps_before <= 1'b1;
    end
  end

`ifndef SYNTHESIS
  a_one_time :
  assert property (@(posedge clk) disable iff (rst) tai_ns == 64'(seconds) * 64'(Second) + 64'(ns));
  a_below_a_second :
  assert property (@(posedge clk) disable iff (rst) ns < Second);
  a_set_below_a_second :
  assert property (@(posedge clk) disable iff (rst) set_valid |-> set_ns < Second);
  a_small_step :
  assert property (@(posedge clk) disable iff (rst) step_valid |-> step_ns <= MaxStepNs && step_ns >= -MaxStepNs);
`endif

endmodule

`default_nettype wire
