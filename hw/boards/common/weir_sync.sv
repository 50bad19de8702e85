// Synchroniser: the one way in which a bit gets into another clock's domain.
//
// Promise      m_data is s_data, Stages clocks later or one more; each bit for itself, so a number that changes in more
//              than one bit at a time is to come as a Gray code. In simulation, too: which of the two is chance.
// Constraints  hw/boards/common/crossings.tcl finds `crossing` by its name.
// Hazards      s_data is to come straight from registers. There is no reset: m_data shows what s_data was.

`default_nettype none

module weir_sync #(
    parameter int Width  = 1,
    parameter int Stages = 2
) (
    input var logic clk,
    input var logic [Width-1:0] s_data,
    output var logic [Width-1:0] m_data
);

  if (Stages < 2) begin : gen_check_stages
    $error("Stages must be at least 2");
  end

  (* async_reg = "true" *)
  logic [Width-1:0] crossing;
  (* async_reg = "true" *)
  logic [Stages-2:0][Width-1:0] settling;

`ifdef SYNTHESIS
  always_ff @(posedge clk) crossing <= s_data;
`else
  // A change so short before the edge, the bound of crossings.tcl, may be seen a clock later.
  localparam realtime Bound = 2.5ns;
  for (genvar i = 0; i < Width; i++) begin : gen_bit
    realtime changed;
    logic earlier;
    always @(posedge s_data[i] or negedge s_data[i]) changed <= $realtime;
    always_ff @(posedge clk) begin
      earlier <= s_data[i];
      crossing[i] <= $realtime - changed < Bound && $urandom_range(1) == 0 ? earlier : s_data[i];
    end
  end
`endif

  always_ff @(posedge clk) begin
    settling[0] <= crossing;
    for (int i = 1; i < Stages - 1; i++) settling[i] <= settling[i-1];
  end

  assign m_data = settling[Stages-2];

endmodule

`default_nettype wire
