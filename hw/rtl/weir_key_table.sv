// Fingerprint -> context index: two tables of buckets, a stash for what is on its way into them, a mover.
//
// Promise      A lookup given in clock c sees each key inserted in a clock before c and not killed in a clock
//              before c. Keys that were killed may also be seen, until `deleted` is given for their
//              index, but never in place of a key inserted since: the caller knows which indices are live.
//              Entries move; the index of a key does not.
// Throughput   One lookup per clock, one insertion or kill per clock while `room` is high. The mover sustains
//              one insertion per two and a half clocks at 80 % load, per five at 90 %.
// Latency      Lookup: weir_lookup_pkg::TableLatency. Room falls in time for what is decided until it is seen.
// Ports        Bucket memories: port A reads for lookups, port B belongs to the mover. Bucket numbers by index:
//              written by insertions, read by deletions.
// Deletions    kill takes a key out of the stash at once and leaves it in the buckets; the caller then gives
//              the killed indices at s_delete in any order, and `deleted` answers each in order.
// Clearing     `ready` is low after reset until the buckets are empty (Buckets clocks); lookups miss.
// Faults       Parity of all entries (weir_bucket_parity): table_bad for a clock for each wrong one that is read, by a lookup
//              or by the mover. It is not found, and the mover takes it out where it comes by; its key may be inserted
//              again. After table_flip the next valid entry that is written into a bucket has the lowest bit of its
//              index wrong.
// Hazards      insert: no live key has this fingerprint and no entry this index. Bucket numbers are the low
//              bits of the fingerprint, so that the mover knows both from what a bucket holds.

`default_nettype none

module weir_key_table
  import weir_lookup_pkg::TableReadLatency;
#(
    // Per table; a power of two.
    parameter int Buckets = 1 << 15,
    parameter int Ways = 5,
    parameter int StashEntries = 32,
    parameter int Contexts = 1 << 18,
    parameter int FingerprintWidth = weir_lookup_pkg::FingerprintWidth,
    parameter int IndexWidth = weir_pkg::IndexWidth,
    parameter string RamStyle = "ultra",
    parameter int DeleteRest = 16,
    localparam int LevelWidth = $clog2(StashEntries + 1)
) (
    input  wire logic clk,
    input  wire logic rst,
    output logic      ready,

    input  wire logic [FingerprintWidth-1:0] s_fingerprint,
    output logic                             m_hit,
    output logic      [      IndexWidth-1:0] m_index,

    input  wire logic                        insert,
    input  wire logic [FingerprintWidth-1:0] insert_fingerprint,
    input  wire logic [      IndexWidth-1:0] insert_index,
    output logic                             room,

    input wire logic                  kill,
    input wire logic [IndexWidth-1:0] kill_index,

    input  wire logic                  s_delete_valid,
    input  wire logic [IndexWidth-1:0] s_delete_index,
    output logic                       s_delete_ready,
    output logic                       deleted,
    // Kills whose deletion is not done.
    output logic      [  IndexWidth:0] deletions,

    output logic [LevelWidth-1:0] stash_level,

    input  wire logic table_flip,
    output logic      table_bad
);

  localparam int AddressWidth = $clog2(Buckets);
  localparam int EntryWidth = 1 + FingerprintWidth + IndexWidth;
  localparam int ContextAddressWidth = $clog2(Contexts);
  localparam int BucketLatency = 2;

  if (Buckets < 2 || Buckets != 1 << AddressWidth) begin : gen_check_buckets
    $error("Buckets must be a power of two and at least 2");
  end

  typedef struct packed {
    logic valid;
    logic [IndexWidth-1:0] index;
    logic [FingerprintWidth-1:0] fingerprint;
  } entry_t;

  // Buckets.
  entry_t [1:0][Ways-1:0] a_bucket;
  logic [1:0][AddressWidth-1:0] b_address;
  logic [1:0][Ways-1:0] b_write;
  logic [EntryWidth-1:0] b_entry;
  logic [1:0][Ways-1:0][EntryWidth-1:0] b_data;

  // A bit with which the entry would be another flow's.
  logic flip_next, flip_now;
  entry_t b_stored;
  assign flip_now = flip_next && b_write != '0 && b_entry[EntryWidth-1];

  always_comb begin
    b_stored = entry_t'(b_entry);
    b_stored.index[0] ^= flip_next && b_stored.valid;
  end

  always_ff @(posedge clk) begin
    flip_next <= (flip_next && !flip_now) || table_flip;
    if (rst) flip_next <= 1'b0;
  end

  logic [1:0] bucket_bad;
  logic [1:0][Ways-1:0] a_wrong, b_wrong, b_over_wrong;
  // Buckets hold nothing until they are cleared; what was read of them before is a few clocks under way.
  localparam int Settle = TableReadLatency + 4;
  logic [Settle-1:0] settled;

  always_ff @(posedge clk) begin
    settled   <= {settled[Settle-2:0], ready};
    table_bad <= bucket_bad != '0 && settled[Settle-1];
    if (rst) begin
      settled   <= '0;
      table_bad <= 1'b0;
    end
  end

  for (genvar t = 0; t < 2; t++) begin : gen_table
    weir_bucket_parity #(
        .Buckets(Buckets),
        .Ways(Ways),
        .EntryWidth(EntryWidth),
        .Latency(TableReadLatency)
    ) parity (
        .clk,
        .a_address(s_fingerprint[t*AddressWidth+:AddressWidth]),
        .a_data(a_bucket[t]),
        .b_address(b_address[t]),
        .b_write(b_write[t]),
        .b_entry,
        .b_data(b_data[t]),
        .b_over_wrong(b_over_wrong[t]),
        .a_wrong(a_wrong[t]),
        .b_wrong(b_wrong[t]),
        .bad(bucket_bad[t])
    );
    weir_bucket_ram #(
        .Buckets(Buckets),
        .Ways(Ways),
        .EntryWidth(EntryWidth),
        .Latency(TableReadLatency),
        .RamStyle(RamStyle)
    ) ram (
        .clk,
        .a_address(s_fingerprint[t*AddressWidth+:AddressWidth]),
        .a_data(a_bucket[t]),
        .b_address(b_address[t]),
        .b_write(b_write[t]),
        .b_entry(b_stored),
        .b_data(b_data[t])
    );
  end

  // Stash and mover.
  logic pick;
  logic picked;
  logic [StashEntries-1:0] picked_slot;
  logic [FingerprintWidth-1:0] picked_fingerprint;
  logic [IndexWidth-1:0] picked_index;
  logic picked_evicted;
  logic picked_table;
  logic finish;
  logic [StashEntries-1:0] finish_slot;
  logic finish_keep;
  logic finish_swap;
  logic [FingerprintWidth-1:0] finish_fingerprint;
  logic [IndexWidth-1:0] finish_index;
  logic finish_table;
  logic finish_live;
  logic stash_hit;
  logic [IndexWidth-1:0] stash_index;
  logic stash_room;

  weir_stash #(
      .Entries(StashEntries),
      .FingerprintWidth(FingerprintWidth),
      .IndexWidth(IndexWidth)
  ) stash (
      .clk,
      .rst,
      .s_fingerprint,
      .m_hit(stash_hit),
      .m_index(stash_index),
      .insert,
      .insert_fingerprint,
      .insert_index,
      .room(stash_room),
      .kill,
      .kill_index,
      .pick,
      .picked,
      .picked_slot,
      .picked_fingerprint,
      .picked_index,
      .picked_evicted,
      .picked_table,
      .finish,
      .finish_slot,
      .finish_keep,
      .finish_swap,
      .finish_fingerprint,
      .finish_index,
      .finish_table,
      .finish_live,
      .level(stash_level)
  );

  logic delete_valid;
  logic [IndexWidth-1:0] delete_index;
  logic [1:0][AddressWidth-1:0] delete_bucket;
  logic delete_done;

  weir_mover #(
      .Buckets(Buckets),
      .Ways(Ways),
      .FingerprintWidth(FingerprintWidth),
      .IndexWidth(IndexWidth),
      .SlotWidth(StashEntries),
      .ReadLatency(TableReadLatency),
      .DeleteRest(DeleteRest)
  ) mover (
      .clk,
      .rst,
      .ready,
      .pick,
      .picked,
      .picked_slot,
      .picked_fingerprint,
      .picked_index,
      .picked_evicted,
      .picked_table,
      .finish,
      .finish_slot,
      .finish_keep,
      .finish_swap,
      .finish_fingerprint,
      .finish_index,
      .finish_table,
      .finish_live,
      .kill,
      .delete_valid,
      .delete_index,
      .delete_bucket,
      .delete_done,
      .deleted,
      .deletions,
      .b_address,
      .b_write,
      .b_entry,
      .b_data,
      .b_wrong,
      .b_over_wrong
  );

  assign room = stash_room && ready;

  // Deletions: the bucket numbers of the index, one deletion ahead of the mover's.
  logic fetch_valid;
  logic [IndexWidth-1:0] fetch_index;
  logic [BucketLatency-1:0] fetched;
  logic fetch_leaves;
  logic [1:0][AddressWidth-1:0] fetch_bucket;

  weir_context #(
      .Width(2 * AddressWidth),
      .Contexts(1 << ContextAddressWidth),
      .Latency(BucketLatency)
  ) buckets (
      .clk,
      .read_index(fetch_index[ContextAddressWidth-1:0]),
      .read_data(fetch_bucket),
      .write(insert),
      .write_index(insert_index[ContextAddressWidth-1:0]),
      .write_data(insert_fingerprint[2*AddressWidth-1:0])
  );

  assign s_delete_ready = !fetch_valid;
  assign fetch_leaves   = fetched[BucketLatency-1] && (!delete_valid || delete_done);

  always_ff @(posedge clk) begin
    if (fetch_leaves) begin
      delete_index  <= fetch_index;
      delete_bucket <= fetch_bucket;
      delete_valid  <= 1'b1;
    end else if (delete_done) begin
      delete_valid <= 1'b0;
    end
    fetched <= {fetched[BucketLatency-2:0], fetch_valid};
    if (s_delete_valid && s_delete_ready) begin
      fetch_valid <= 1'b1;
      fetch_index <= s_delete_index;
    end else if (fetch_leaves) begin
      fetch_valid <= 1'b0;
    end
    if (fetch_leaves) begin
      fetched <= '0;
    end
    if (rst) begin
      delete_valid <= 1'b0;
      fetched <= '0;
      fetch_valid <= 1'b0;
    end
  end

  // Lookup: compare all ways, select those of right parity, which is known a clock later than they are, and put the stash
  // first: what a bucket holds of the same key is killed.
  logic [FingerprintWidth-1:0] read_fingerprint;
  logic [1:0][Ways-1:0] same, match;
  logic [1:0][Ways-1:0][IndexWidth-1:0] index;
  logic [IndexWidth-1:0] bucket_index;
  logic stash_hit_selected;
  logic [IndexWidth-1:0] stash_index_selected;

  weir_delay #(
      .Width (FingerprintWidth),
      .Clocks(TableReadLatency)
  ) delay_fingerprint (
      .clk,
      .s_data(s_fingerprint),
      .m_data(read_fingerprint)
  );

  // The stash answers after two clocks, the buckets are compared after TableReadLatency + 1.
  weir_delay #(
      .Width (1 + IndexWidth),
      .Clocks(TableReadLatency - 1)
  ) delay_stash (
      .clk,
      .s_data({stash_hit, stash_index}),
      .m_data({stash_hit_selected, stash_index_selected})
  );

  assign match = same & ~a_wrong;

  always_comb begin
    bucket_index = '0;
    for (int t = 0; t < 2; t++) begin
      for (int w = 0; w < Ways; w++) begin
        bucket_index |= index[t][w] & {IndexWidth{match[t][w]}};
      end
    end
  end

  always_ff @(posedge clk) begin
    for (int t = 0; t < 2; t++) begin
      for (int w = 0; w < Ways; w++) begin
        same[t][w]  <= a_bucket[t][w].valid && a_bucket[t][w].fingerprint == read_fingerprint;
        index[t][w] <= a_bucket[t][w].index;
      end
    end
    m_hit   <= ready && (stash_hit_selected || match != '0);
    m_index <= stash_hit_selected ? stash_index_selected : bucket_index;
  end

`ifndef SYNTHESIS
  always_ff @(posedge clk) begin
    if (!rst && ready) begin
      a_one_match :
      assert ($onehot0(match))
      else $error("weir_key_table: one fingerprint twice in the buckets");
      a_one_place :
      assert (!stash_hit_selected || match == '0 || bucket_index != stash_index_selected)
      else $error("weir_key_table: one entry in the stash and in a bucket");
    end
  end
`endif

endmodule

`default_nettype wire
