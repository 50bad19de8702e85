// The times between which the next stamp of a port lies, for weir_merge.
//
// Promise      Whatever the port's queue holds or will hold has a time of at least `horizon`, if a word reaches the
//              queue within MaxNs of its start-of-frame stamp. While words wait, the horizon stands. Whatever the
//              port stamped is at most `latest`, unless its time went back since.
// Latency      1 clock.
// Hazards      MaxNs covers the longest frame on the slowest link, the parser and the queue: 9,216 bytes take
//              737 ns at 100 Gb/s and 7.4 us at 10 Gb/s. All of a packet's records are late by as much.

`default_nettype none

module weir_horizon #(
    parameter int MaxNs = 2048
) (
    input var logic clk,
    input var logic rst,

    input var logic [63:0] tai_ns,
    // Of the port's stamps (weir_timestamp).
    input var logic signed [31:0] offset,
    // A word of the port is in its queue.
    input var logic waiting,

    output var logic [63:0] horizon,
    output var logic [63:0] latest
);

  // The constant parts first, so that the clock's time meets one addition.
  logic signed [63:0] shift, latest_shift;

  always_ff @(posedge clk) begin
    shift <= 64'(offset) - 64'(MaxNs);
    latest_shift <= 64'(offset);
    if (!waiting) horizon <= tai_ns + shift;
    latest <= tai_ns + latest_shift;
    if (rst) begin
      horizon <= '0;
      latest  <= '1;
    end
  end

endmodule

`default_nettype wire
