// The context memory: one read and one write each clock, by context index.
//
// Contract: `read_data` holds the entry of `read_index` LATENCY clocks later; a write is seen by reads
// that begin after the clock of the write, so the caller forwards what is on its way.
// URAM of UltraScale+ (one port reads, the other writes); zero after configuration.

`default_nettype none

module weir_context #(
    parameter int Width    = 1,
    parameter int Contexts = 1 << 18,
    parameter int Latency  = 3,
    localparam int AddressWidth = $clog2(Contexts)
) (
    input  wire logic                    clk,
    input  wire logic [AddressWidth-1:0] read_index,
    output logic      [       Width-1:0] read_data,
    input  wire logic                    write,
    input  wire logic [AddressWidth-1:0] write_index,
    input  wire logic [       Width-1:0] write_data
);

  if (Latency < 2) begin : gen_bad_latency
    $error("Latency must be at least 2");
  end

  (* ram_style = "ultra" *)
  logic [Width-1:0] memory[Contexts];
  logic [Latency-1:0][Width-1:0] pipeline;

  assign read_data = pipeline[Latency-1];

`ifndef SYNTHESIS
  initial begin
    for (int i = 0; i < Contexts; i++) memory[i] = '0;
  end
`endif

  always_ff @(posedge clk) begin
    pipeline <= {pipeline[Latency-2:0], memory[read_index]};
    if (write) memory[write_index] <= write_data;
  end

endmodule

`default_nettype wire
