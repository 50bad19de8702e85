// Where a time lies in the grids of 10 ms and of seconds, by division: for times that leap.
//
// Promise      From `start` on with s_time (which stays until `done`): GridDividerClocks clocks later `done`
//              for one clock, and from then until the next start fine_start = the time rounded down to 10 ms,
//              fine_number = the number of that interval since 1970 (low bits), fine_digit = that number
//              modulo 10, second_start = the time rounded down to seconds.
// Throughput   One division at a time; a start in the middle begins anew.

`default_nettype none

module weir_grid_divider
  import weir_pkg::*;
  import weir_records_pkg::*;
(
    input var logic clk,
    input var logic rst,

    input var logic start,
    input var logic [63:0] s_time,

    output var logic done,
    output var logic [63:0] fine_start,
    output var logic [15:0] fine_number,
    output var logic [3:0] fine_digit,
    output var logic [63:0] second_start
);

  localparam logic [23:0] Fine = 24'(RecordFineIntervalNs);
  localparam logic [29:0] Second = 30'd1_000_000_000;

  // Long division, one bit of the quotients per clock, highest first.
  logic [63:0] bits;
  logic [23:0] fine_rest;
  logic [29:0] second_rest;
  logic [6:0] left;
  logic finish;

  wire [24:0] fine_next = {fine_rest, bits[63]};
  wire [30:0] second_next = {second_rest, bits[63]};
  wire fine_bit = fine_next >= 25'(Fine);
  wire second_bit = second_next >= 31'(Second);
  wire [4:0] digit_next = {fine_digit, fine_bit};

  always_ff @(posedge clk) begin
    bits <= bits << 1;
    fine_rest <= fine_bit ? 24'(fine_next - 25'(Fine)) : fine_next[23:0];
    second_rest <= second_bit ? 30'(second_next - 31'(Second)) : second_next[29:0];
    if (left != '0) begin
      fine_number <= {fine_number[14:0], fine_bit};
      fine_digit <= digit_next >= 5'd10 ? 4'(digit_next - 5'd10) : digit_next[3:0];
      left <= left - 1'b1;
    end
    finish <= left == 7'd1;
    if (finish) begin
      fine_start   <= s_time - 64'(fine_rest);
      second_start <= s_time - 64'(second_rest);
    end
    done <= finish;

    if (start) begin
      bits <= s_time;
      fine_rest <= '0;
      second_rest <= '0;
      fine_number <= '0;
      fine_digit <= '0;
      left <= 7'd64;
      finish <= 1'b0;
      done <= 1'b0;
    end
    if (rst) begin
      left   <= '0;
      finish <= 1'b0;
      done   <= 1'b0;
    end
  end

`ifndef SYNTHESIS
  a_fine :
  assert property (@(posedge clk) disable iff (rst) done |->
      fine_start == s_time - s_time % 64'(RecordFineIntervalNs) &&
      fine_number == 16'(s_time / 64'(RecordFineIntervalNs)) &&
      64'(fine_digit) == s_time / 64'(RecordFineIntervalNs) % 10);
  a_second :
  assert property (@(posedge clk) disable iff (rst) done |-> second_start == s_time - s_time % 64'(Second));
`endif

endmodule

`default_nettype wire
