// The newest value of one loop's fields for the word in its stage.
//
// Contract: `loaded` is what the context memory held for the word, `same` tells (one-hot; none: no
// such word) how many clocks before it the nearest word on the same context came, both one clock
// before the word is in the stage. `current` is then the value after that word, or what the memory
// held. `after` is what the stage makes of it, in the same clock.
// Throughput: one word per clock whatever the contexts. Depth is the number of clocks from the
// reading of the context to the first reading that sees its write.
// Hazard: the loop is `current` -> stage -> `after` -> register -> one 2:1 multiplexer -> `current`.

`default_nettype none

module weir_forward #(
    parameter int Width = 1,
    parameter int Depth = 2
) (
    input  wire logic             clk,
    input  wire logic [Width-1:0] loaded,
    input  wire logic [Depth-1:0] same,
    input  wire logic [Width-1:0] after,
    output logic      [Width-1:0] current
);

  if (Depth < 2) begin : gen_bad_depth
    $error("Depth must be at least 2");
  end

  // history[i]: the value after the word that was in the stage i + 1 clocks ago.
  logic [Depth-1:0][Width-1:0] history;
  logic [Width-1:0] chosen;
  logic [Width-1:0] prefetched;
  logic use_last;

  // A word that came d clocks before was in the stage d - 1 clocks before now: history[d - 2].
  always_comb begin
    chosen = '0;
    for (int d = 2; d <= Depth; d++) begin
      chosen |= history[d-2] & {Width{same[d-1]}};
    end
    if (same[Depth-1:1] == '0) begin
      chosen = loaded;
    end
  end

  assign current = use_last ? history[0] : prefetched;

  always_ff @(posedge clk) begin
    prefetched <= chosen;
    use_last   <= same[0];
    history    <= {history[Depth-2:0], after};
  end

endmodule

`default_nettype wire
