// Latencies, widths and limits of the lookup (weir_lookup and the modules below it).

`default_nettype none

// A package offers more constants than any one design uses.
// verilator lint_off UNUSEDPARAM

package weir_lookup_pkg;

  localparam int FingerprintWidth = 80;
  // A Toeplitz hash needs one seed bit for each pair of a key bit and a fingerprint bit that differ in distance.
  localparam int SeedWidth = $bits(weir_pkg::key_t) + FingerprintWidth - 1;

  typedef logic [FingerprintWidth-1:0] fingerprint_t;
  typedef logic [SeedWidth-1:0] seed_t;

  // Clocks from input to output.
  localparam int HashLatency = 5;
  localparam int TableReadLatency = 3;
  localparam int TableLatency = TableReadLatency + 2;
  localparam int StateLatency = 3;
  // Index known, its state read, age, comparison: then the word is decided.
  localparam int DecisionStage = HashLatency + TableLatency + StateLatency + 2;
  localparam int LookupLatency = DecisionStage + 2;
  // Words that may have read the key table before an insertion made for the word ahead of them is in it.
  localparam int HistoryDepth = DecisionStage - HashLatency + 1;

  // Every timeout is at least this many ns, and words that are so far apart in time come at least
  // DrainClocks clocks apart: more than from a decision to the next look at what the tracker made of it (15).
  localparam longint MinTimeout = 1 << 21;
  localparam int DrainClocks = 32;

  // log2 of the ns that a released index rests (two scan periods).
  localparam int RestShift = weir_pkg::ScanWidth + weir_pkg::VisitShift + 1;
  // Bits of time that the free list keeps: with the index they fill one word of URAM.
  localparam int ReleaseTimeWidth = 54;

endpackage

// verilator lint_on UNUSEDPARAM

`default_nettype wire
