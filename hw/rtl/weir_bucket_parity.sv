// Parity of the entries in a weir_bucket_ram, kept beside it and checked with everything that is read there.
//
// Promise      a_wrong and b_wrong tell of the entries that were read, one clock behind a_data and b_data, which have not
//              the parity that b_entry had when they were written; `bad` for a clock, two clocks later, that there was one.
//              What the ram's users see is not changed or delayed.
// Throughput   As the ram: one read at A and one read or write at B each clock.
// Hazards      Before every bucket was written once, these mean nothing. Two wrong bits of one entry are not seen. What
//              block RAM gives for an address that is being written is anybody's guess: for an entry that is read at A
//              in the clock in which it is written over, b_over_wrong is taken.

`default_nettype none

module weir_bucket_parity #(
    parameter int Buckets = 1 << 15,
    parameter int Ways = 5,
    parameter int EntryWidth = 99,
    // Of the ram.
    parameter int Latency = 3,
    localparam int AddressWidth = $clog2(Buckets)
) (
    input var logic clk,

    // The ports of the ram, inputs and outputs.
    input var logic [AddressWidth-1:0] a_address,
    input var logic [Ways-1:0][EntryWidth-1:0] a_data,
    input var logic [AddressWidth-1:0] b_address,
    input var logic [Ways-1:0] b_write,
    input var logic [EntryWidth-1:0] b_entry,
    input var logic [Ways-1:0][EntryWidth-1:0] b_data,

    // Of b_write: the entry that is written over is known to be wrong.
    input var logic [Ways-1:0] b_over_wrong,

    output var logic [Ways-1:0] a_wrong,
    output var logic [Ways-1:0] b_wrong,
    output var logic bad
);

  if (Latency < 2) begin : gen_check_latency
    $error("Latency must be at least 2");
  end

  // All is one clock behind the ram, which leaves a clock for the parity of what is written and of what was read.
  logic [AddressWidth-1:0] a_address_1, b_address_1;
  logic [Ways-1:0] b_write_1, b_over_wrong_1;
  logic [EntryWidth-1:0] b_entry_1;
  logic [Ways-1:0] a_sum, b_sum, wrong;

  always_ff @(posedge clk) begin
    a_address_1 <= a_address;
    b_address_1 <= b_address;
    b_write_1 <= b_write;
    b_entry_1 <= b_entry;
    b_over_wrong_1 <= b_over_wrong;
    wrong <= a_wrong | b_wrong;
    bad <= wrong != '0;
  end

  for (genvar w = 0; w < Ways; w++) begin : gen_way
    (* ram_style = "block" *)
    logic memory[Buckets];
    logic [Latency-1:0] a_line;
    logic [Latency-1:0] b_line;
    // It is being written over, and is wrong.
    logic [Latency-1:0][1:0] over;

    always_ff @(posedge clk) begin
      a_line <= {a_line[Latency-2:0], memory[a_address_1]};
    end

    always_ff @(posedge clk) begin
      b_line[Latency-1:1] <= b_line[Latency-2:0];
      if (b_write_1 == '0) b_line[0] <= memory[b_address_1];
      if (b_write_1[w]) memory[b_address_1] <= ^b_entry_1;
    end

    always_ff @(posedge clk) begin
      a_sum[w] <= ^a_data[w];
      b_sum[w] <= ^b_data[w];
    end

    always_ff @(posedge clk) begin
      over <= {over[Latency-2:0], {b_write_1[w] && a_address_1 == b_address_1, b_over_wrong_1[w]}};
    end

    assign a_wrong[w] = over[Latency-1][1] ? over[Latency-1][0] : a_sum[w] != a_line[Latency-1];
    assign b_wrong[w] = b_sum[w] != b_line[Latency-1];
  end

endmodule

`default_nettype wire
