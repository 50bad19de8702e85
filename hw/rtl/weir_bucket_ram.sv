// One table of buckets: port A reads for lookups, port B reads or writes for the mover.
//
// Promise      `a_data` and `b_data` hold the bucket of the address Latency clocks later. A write is seen by
//              reads that begin after its clock; a read at A in the clock of a write gives the old bucket.
// Throughput   One read at A and one read or write at B each clock.
// Hazards      URAM serves port A before port B in one clock, as promised. For block RAM the write port must
//              be read-first.

`default_nettype none

module weir_bucket_ram #(
    parameter int Buckets = 1 << 15,
    parameter int Ways = 5,
    parameter int EntryWidth = 99,
    parameter int Latency = 3,
    // "ultra" or "block"; only synthesis reads it.
    // verilator lint_off UNUSEDPARAM
    parameter string RamStyle = "ultra",
    // verilator lint_on UNUSEDPARAM
    localparam int AddressWidth = $clog2(Buckets)
) (
    input  wire logic                                    clk,
    input  wire logic [AddressWidth-1:0]                 a_address,
    output logic      [        Ways-1:0][EntryWidth-1:0] a_data,
    input  wire logic [AddressWidth-1:0]                 b_address,
    // One bit for each way.
    input  wire logic [        Ways-1:0]                 b_write,
    input  wire logic [  EntryWidth-1:0]                 b_entry,
    output logic      [        Ways-1:0][EntryWidth-1:0] b_data
);

  if (Latency < 2) begin : gen_check_latency
    $error("Latency must be at least 2");
  end

  (* ram_style = RamStyle *)
  logic [Ways-1:0][EntryWidth-1:0] memory[Buckets];
  logic [Latency-1:0][Ways-1:0][EntryWidth-1:0] a_line;
  logic [Latency-1:0][Ways-1:0][EntryWidth-1:0] b_line;

  assign a_data = a_line[Latency-1];
  assign b_data = b_line[Latency-1];

  always_ff @(posedge clk) begin
    a_line <= {a_line[Latency-2:0], memory[a_address]};
  end

  always_ff @(posedge clk) begin
    b_line[Latency-1:1] <= b_line[Latency-2:0];
    if (b_write == '0) begin
      b_line[0] <= memory[b_address];
    end
    for (int w = 0; w < Ways; w++) begin
      if (b_write[w]) begin
        memory[b_address][w] <= b_entry;
      end
    end
  end

endmodule

`default_nettype wire
