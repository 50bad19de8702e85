// Carries keys from the stash into the buckets and takes deleted ones out, beside the lookups.
//
// Promise      A lookup reads the stash and both buckets in one clock; in every clock each key that was inserted
//              and not killed is in exactly one of the three places. An entry changes place in one clock: the
//              bucket is written in the clock in which the stash slot is given up, and if another entry stood
//              there, that one takes the slot. Nothing is ever out of the table on its way.
// Operations   An operation reads both buckets of a key, and five clocks later writes one way of one:
//              - insertion: over the entry of the same fingerprint (a killed one that waits for its deletion),
//                else into a free way of the bucket with more of them, else in exchange for a random entry of
//                one bucket; for an entry that was exchanged before, of the table that it did not come from.
//              - deletion: clears the way that holds the index, if one does. When it is done, `delete_done` is
//                high for one clock.
//              An entry of wrong parity is worth nothing: an insertion takes its way before a free one, a deletion clears
//              it, and none comes back into the stash.
//              Port B reads in even clocks and writes in odd ones.
// Throughput   One operation per two clocks; one deletion per eight, which go first.
// Hazards      What was written after an operation has read its buckets: it begins again (`keep`). An
//              insertion killed under way: its slot is released and nothing is written. An exchange while a
//              deletion is due: it begins again, so that no killed entry can come back into the stash.
// Clearing     After reset the buckets are emptied, one address per clock; `ready` tells when it is done.

`default_nettype none

module weir_mover #(
    parameter int Buckets = 1 << 15,
    parameter int Ways = 5,
    parameter int FingerprintWidth = 80,
    parameter int IndexWidth = 18,
    // Of the stash; a slot is only handed back.
    parameter int SlotWidth = 32,
    parameter int ReadLatency = 3,
    // Clocks after a deletion in which words that have read the entry may still be under way.
    parameter int DeleteRest = 16,
    localparam int AddressWidth = $clog2(Buckets),
    localparam int EntryWidth = 1 + FingerprintWidth + IndexWidth
) (
    input  wire logic clk,
    input  wire logic rst,
    output logic      ready,

    output logic                             pick,
    input  wire logic                        picked,
    input  wire logic [       SlotWidth-1:0] picked_slot,
    input  wire logic [FingerprintWidth-1:0] picked_fingerprint,
    input  wire logic [      IndexWidth-1:0] picked_index,
    input  wire logic                        picked_evicted,
    input  wire logic                        picked_table,
    output logic                             finish,
    output logic      [       SlotWidth-1:0] finish_slot,
    output logic                             finish_keep,
    output logic                             finish_swap,
    output logic      [FingerprintWidth-1:0] finish_fingerprint,
    output logic      [      IndexWidth-1:0] finish_index,
    output logic                             finish_table,
    input  wire logic                        finish_live,

    // A key was killed; its deletion follows.
    input wire logic kill,

    // The next deletion: index and bucket numbers. It stays until `delete_done`.
    input  wire logic                                    delete_valid,
    input  wire logic [IndexWidth-1:0]                   delete_index,
    input  wire logic [           1:0][AddressWidth-1:0] delete_bucket,
    output logic                                         delete_done,
    // DeleteRest clocks after delete_done: the index may be used again.
    output logic                                         deleted,
    // Deletions that are due.
    output logic      [  IndexWidth:0]                   deletions,

    // Port B of both tables.
    output logic      [           1:0][AddressWidth-1:0]                 b_address,
    output logic      [           1:0][        Ways-1:0]                 b_write,
    output logic      [EntryWidth-1:0]                                   b_entry,
    input  wire logic [           1:0][        Ways-1:0][EntryWidth-1:0] b_data,
    // Wrong parity of b_data, a clock later.
    input  wire logic [           1:0][        Ways-1:0]                 b_wrong,
    // Of b_write: what it writes over had wrong parity.
    output logic      [           1:0][        Ways-1:0]                 b_over_wrong
);

  // Clock of the operation, counted from its read: buckets known, analysed, decided.
  localparam int WriteClock = ReadLatency + 2;
  localparam int WayWidth = Ways > 1 ? $clog2(Ways) : 1;
  localparam int CountWidth = $clog2(Ways + 1);

  // Reads and writes share port B in turn, and two writes can lie between a read and its decision.
  if (ReadLatency != 3) begin : gen_check_latency
    $error("ReadLatency must be 3");
  end
  if (FingerprintWidth < 2 * AddressWidth) begin : gen_check_fingerprint
    $error("FingerprintWidth must hold both bucket numbers");
  end

  typedef struct packed {
    logic valid;
    logic [IndexWidth-1:0] index;
    logic [FingerprintWidth-1:0] fingerprint;
  } entry_t;

  typedef struct packed {
    logic is_delete;
    logic [SlotWidth-1:0] slot;
    logic [FingerprintWidth-1:0] fingerprint;
    logic [IndexWidth-1:0] index;
    logic [1:0][AddressWidth-1:0] bucket;
    // What to exchange when all ways are taken.
    logic victim_table;
    logic [WayWidth-1:0] victim_way;
  } operation_t;

  typedef logic [1:0][Ways-1:0] ways_t;

  // Clearing.
  logic [AddressWidth-1:0] clear_address;

  // Even clocks read, odd ones write.
  logic odd;

  // Choice of the next operation, in even clocks; the stash answers in the odd one.
  logic choose_delete;
  logic delete_chosen;
  logic delete_busy;

  assign choose_delete = ready && !odd && delete_valid && !delete_busy;
  assign pick = ready && !odd && !choose_delete;

  // Random bits (x^16 + x^15 + x^13 + x^4 + 1, which never is 0 again).
  logic [15:0] random;
  logic [WayWidth-1:0] random_way;
  assign random_way = WayWidth'((32'(random[7:0]) * Ways) >> 8);

  logic [WriteClock:0] valid;
  operation_t operation[WriteClock+1];

  entry_t [1:0][Ways-1:0] bucket;
  assign bucket = b_data;

  // Clock ReadLatency: what the buckets hold, registered for the clock after.
  // Each stage needs some of the fields.
  // verilator lint_off UNUSEDSIGNAL
  operation_t read_operation;
  operation_t deciding;
  operation_t writing;
  entry_t evicted;
  // verilator lint_on UNUSEDSIGNAL
  ways_t same_next;
  ways_t own_next;
  ways_t free_next;
  logic hazard_next;
  ways_t same;
  ways_t own;
  ways_t free_;
  logic hazard;
  logic [1:0][CountWidth-1:0] free_count;
  entry_t victim;

  // The write of this clock and the one before, where a read under way may have come too early.
  logic [1:0] written;
  logic [1:0] written_before;
  logic [1:0][AddressWidth-1:0] written_bucket_before;

  assign read_operation = operation[ReadLatency];

  always_comb begin
    hazard_next = 1'b0;
    for (int t = 0; t < 2; t++) begin
      for (int w = 0; w < Ways; w++) begin
        same_next[t][w] = bucket[t][w].valid && bucket[t][w].fingerprint == read_operation.fingerprint;
        own_next[t][w]  = bucket[t][w].valid && bucket[t][w].index == read_operation.index;
        free_next[t][w] = !bucket[t][w].valid;
      end
      if (written[t] && operation[WriteClock].bucket[t] == read_operation.bucket[t]) begin
        hazard_next = 1'b1;
      end
      if (written_before[t] && written_bucket_before[t] == read_operation.bucket[t]) begin
        hazard_next = 1'b1;
      end
    end
  end

  // Clock ReadLatency + 1: the decision.
  ways_t chosen;
  ways_t lowest_free;
  ways_t lowest_wrong;
  logic  full;
  logic  deletion_due;
  logic  keep_next;

  assign deciding = operation[ReadLatency+1];
  assign full = same == '0 && free_ == '0 && b_wrong == '0;
  assign deletion_due = deletions != '0 || kill;
  assign keep_next = hazard || (!deciding.is_delete && full && deletion_due);

  always_comb begin
    lowest_free  = '0;
    lowest_wrong = '0;
    for (int t = 0; t < 2; t++) begin
      for (int w = Ways - 1; w >= 0; w--) begin
        if (free_[t][w]) begin
          lowest_free[t] = Ways'(1) << w;
        end
        if (b_wrong[t][w]) begin
          lowest_wrong[t] = Ways'(1) << w;
        end
      end
    end
    if (b_wrong[0] != '0) begin
      lowest_wrong[1] = '0;
    end
    chosen = '0;
    if (hazard) begin
      chosen = '0;
    end else if (deciding.is_delete) begin
      chosen = own | b_wrong;
    end else if (same != '0) begin
      chosen = same;
    end else if (b_wrong != '0) begin
      chosen = lowest_wrong;
    end else if (free_ != '0) begin
      if (free_count[1] > free_count[0] || (free_count[1] == free_count[0] && deciding.victim_table)) begin
        chosen[1] = lowest_free[1];
      end else begin
        chosen[0] = lowest_free[0];
      end
    end else if (!deletion_due) begin
      chosen[deciding.victim_table] = Ways'(1) << deciding.victim_way;
    end
  end

  // Clock WriteClock.
  ways_t write;
  logic  keep;
  logic  swap;

  assign writing = operation[WriteClock];
  assign finish = valid[WriteClock] && !writing.is_delete;
  assign finish_slot = writing.slot;
  assign finish_keep = keep;
  assign finish_swap = swap;
  assign finish_fingerprint = evicted.fingerprint;
  assign finish_index = evicted.index;
  assign finish_table = writing.victim_table;
  assign delete_done = valid[WriteClock] && writing.is_delete && !keep;

  always_comb begin
    for (int t = 0; t < 2; t++) begin
      written[t] = valid[WriteClock] && write[t] != '0;
    end
    b_entry = {1'b1, writing.index, writing.fingerprint};
    if (writing.is_delete || !ready) begin
      b_entry = '0;
    end
    b_address = odd ? writing.bucket : operation[0].bucket;
    b_write   = '0;
    if (!ready) begin
      b_address = {2{clear_address}};
      b_write   = '1;
    end else if (valid[WriteClock] && (writing.is_delete || finish_live)) begin
      b_write = write;
    end
  end

  logic [DeleteRest-1:0] resting;
  assign deleted = resting[DeleteRest-1];

  always_ff @(posedge clk) begin
    random <= {random[14:0], random[15] ^ random[14] ^ random[12] ^ random[3]};

    // The operation chosen in an even clock reads in the next even one.
    valid  <= {valid[WriteClock-1:0], odd && (picked || delete_chosen)};
    for (int i = 1; i <= WriteClock; i++) begin
      operation[i] <= operation[i-1];
    end
    operation[0] <= '{
        is_delete: delete_chosen,
        slot: picked_slot,
        fingerprint: picked_fingerprint,
        index: delete_chosen ? delete_index : picked_index,
        bucket: delete_chosen ? delete_bucket : picked_fingerprint[2*AddressWidth-1:0],
        victim_table: picked_evicted ? !picked_table : random[8],
        victim_way: random_way
    };

    same <= same_next;
    own <= own_next;
    free_ <= free_next;
    hazard <= hazard_next;
    for (int t = 0; t < 2; t++) begin
      free_count[t] <= CountWidth'($countones(free_next[t]));
    end
    victim <= bucket[read_operation.victim_table][read_operation.victim_way];

    write <= chosen;
    b_over_wrong <= b_wrong;
    keep <= keep_next;
    swap <= full;
    evicted <= victim;
    written_before <= written;
    written_bucket_before <= writing.bucket;
    if (!odd) begin
      // Only odd clocks write; the one before is two clocks ago.
      written_before <= written_before;
      written_bucket_before <= written_bucket_before;
    end

    odd <= !odd;
    delete_chosen <= choose_delete;
    if (choose_delete) begin
      delete_busy <= 1'b1;
    end else if (valid[WriteClock] && writing.is_delete) begin
      delete_busy <= 1'b0;
    end
    deletions <= deletions + (IndexWidth + 1)'(kill) - (IndexWidth + 1)'(delete_done);
    resting   <= DeleteRest'({resting, delete_done});
    if (!ready) begin
      clear_address <= clear_address + 1'b1;
      ready <= clear_address == AddressWidth'(Buckets - 1);
    end

    if (rst) begin
      random <= 16'h5eed;
      valid <= '0;
      written_before <= '0;
      odd <= 1'b0;
      delete_chosen <= 1'b0;
      delete_busy <= 1'b0;
      deletions <= '0;
      resting <= '0;
      clear_address <= '0;
      ready <= 1'b0;
    end
  end

`ifndef SYNTHESIS
  always_ff @(posedge clk) begin
    if (!rst && ready) begin
      a_one_way :
      assert (!valid[WriteClock] || writing.is_delete || $onehot0(write))
      else $error("weir_mover: more than one way written");
      a_write_is_odd :
      assert (!valid[WriteClock] || odd)
      else $error("weir_mover: port B is due to read");
      a_read_is_even :
      assert (!valid[0] || !odd)
      else $error("weir_mover: port B is due to write");
      a_deletions :
      assert (!(delete_done && deletions == '0))
      else $error("weir_mover: deletion without kill");
    end
  end
`endif

endmodule

`default_nettype wire
