// Keys on their way into the buckets: a content-addressed memory.
//
// Promise      A lookup sees exactly the keys that were inserted (or swapped in) in clocks before its own and
//              not killed, removed or swapped out in clocks before its own. `kill` works one clock after it is
//              given and also on what is swapped in in its clock.
// Throughput   One lookup, one insertion, one kill and one answer of the mover per clock.
// Latency      Lookup: 2 clocks. Room: insertions decided up to three clocks after `room` fell still fit.
// Slots        Slot numbers are one-hot, so that no clock has to decode one.
// Mover        `pick` in one clock chooses the next entry in turn, in the next clock `picked` tells whether
//              there was one, with its contents. It stays here, and its slot is not used again, until `finish`
//              says that it stays (keep), is in a bucket now (neither), or that the bucket gave an entry for
//              it (swap). `finish_live` tells in that clock whether it has not been killed.
// Hazards      Two entries of one fingerprint are never live together: the caller kills before it inserts.

`default_nettype none

module weir_stash #(
    parameter int Entries = 32,
    parameter int FingerprintWidth = 80,
    parameter int IndexWidth = 18,
    localparam int LevelWidth = $clog2(Entries + 1)
) (
    input wire logic clk,
    input wire logic rst,

    input  wire logic [FingerprintWidth-1:0] s_fingerprint,
    output logic                             m_hit,
    output logic      [      IndexWidth-1:0] m_index,

    input  wire logic                        insert,
    input  wire logic [FingerprintWidth-1:0] insert_fingerprint,
    input  wire logic [      IndexWidth-1:0] insert_index,
    output logic                             room,

    input wire logic                  kill,
    input wire logic [IndexWidth-1:0] kill_index,

    input  wire logic                        pick,
    output logic                             picked,
    output logic      [         Entries-1:0] picked_slot,
    output logic      [FingerprintWidth-1:0] picked_fingerprint,
    output logic      [      IndexWidth-1:0] picked_index,
    // The entry comes out of a bucket, of table `picked_table`.
    output logic                             picked_evicted,
    output logic                             picked_table,

    input  wire logic                        finish,
    input  wire logic [         Entries-1:0] finish_slot,
    input  wire logic                        finish_keep,
    input  wire logic                        finish_swap,
    input  wire logic [FingerprintWidth-1:0] finish_fingerprint,
    input  wire logic [      IndexWidth-1:0] finish_index,
    input  wire logic                        finish_table,
    output logic                             finish_live,

    // Slots taken.
    output logic [LevelWidth-1:0] level
);

  // Slots that insertions under way may need when `room` falls.
  localparam int Reserve = 4;

  if (Entries < Reserve + 3) begin : gen_check_entries
    $error("Entries must be at least %0d", Reserve + 3);
  end

  typedef struct packed {
    logic [FingerprintWidth-1:0] fingerprint;
    logic [IndexWidth-1:0] index;
    logic evicted;
    logic table_;
  } entry_t;

  logic   [Entries-1:0] valid;
  // In the mover's hands.
  logic   [Entries-1:0] busy;
  entry_t [Entries-1:0] entry;

  // Lookup: compare, then select.
  logic   [Entries-1:0] match;

  always_ff @(posedge clk) begin
    for (int i = 0; i < Entries; i++) begin
      match[i] <= valid[i] && entry[i].fingerprint == s_fingerprint;
    end
  end

  logic [Entries-1:0][IndexWidth-1:0] entry_index;
  logic [IndexWidth-1:0] selected;

  // The index may leave its slot between the two clocks.
  always_ff @(posedge clk) begin
    for (int i = 0; i < Entries; i++) begin
      entry_index[i] <= entry[i].index;
    end
  end

  always_comb begin
    selected = '0;
    for (int i = 0; i < Entries; i++) begin
      selected |= entry_index[i] & {IndexWidth{match[i]}};
    end
  end

  always_ff @(posedge clk) begin
    m_hit   <= match != '0;
    m_index <= selected;
  end

  // The lowest bit alone.
  function automatic logic [Entries-1:0] lowest(logic [Entries-1:0] bits);
    return bits & (~bits + 1'b1);
  endfunction

  // The slot for the next insertion, one ahead; 0 when there is none.
  logic [Entries-1:0] free_slot;
  logic [Entries-1:0] next_free_slot;
  logic [Entries-1:0] taken;

  assign taken = valid | busy;
  assign next_free_slot = lowest(~taken & ~free_slot);

  // Mover: the first entry after the one picked before.
  logic [Entries-1:0] waiting;
  logic [Entries-1:0] after_last;
  logic [Entries-1:0] pick_slot;

  assign waiting   = valid & ~busy;
  assign pick_slot = (waiting & after_last) != '0 ? lowest(waiting & after_last) : lowest(waiting);

  always_ff @(posedge clk) begin
    picked <= pick && waiting != '0;
    if (pick) begin
      picked_slot <= pick_slot;
    end
    if (picked) begin
      after_last <= ~(picked_slot | (picked_slot - 1'b1));
    end
    if (rst) begin
      picked <= 1'b0;
      after_last <= '1;
    end
  end

  always_comb begin
    picked_fingerprint = '0;
    picked_index = '0;
    picked_evicted = 1'b0;
    picked_table = 1'b0;
    for (int i = 0; i < Entries; i++) begin
      if (picked_slot[i]) begin
        picked_fingerprint |= entry[i].fingerprint;
        picked_index |= entry[i].index;
        picked_evicted |= entry[i].evicted;
        picked_table |= entry[i].table_;
      end
    end
  end

  assign finish_live = (valid & finish_slot) != '0;

  // Slots taken, counted in two clocks.
  localparam int Group = 8;
  localparam int Groups = (Entries + Group - 1) / Group;
  localparam int GroupWidth = $clog2(Group + 1);

  logic [Groups-1:0][GroupWidth-1:0] group_level;
  logic [LevelWidth-1:0] level_next;

  always_comb begin
    level_next = '0;
    for (int g = 0; g < Groups; g++) begin
      level_next += LevelWidth'(group_level[g]);
    end
  end

  always_ff @(posedge clk) begin
    for (int g = 0; g < Groups; g++) begin
      group_level[g] <= GroupWidth'($countones(Group'(taken >> (g * Group))));
    end
    level <= level_next;
    room  <= level_next <= LevelWidth'(Entries - Reserve);
    if (rst) begin
      group_level <= '0;
      level <= '0;
      room <= 1'b0;
    end
  end

  // What insertion, kill and mover make of the slots.
  always_ff @(posedge clk) begin
    for (int i = 0; i < Entries; i++) begin
      if (kill && entry[i].index == kill_index) begin
        valid[i] <= 1'b0;
      end
      if (pick && pick_slot[i]) begin
        busy[i] <= 1'b1;
      end
      if (finish && finish_slot[i]) begin
        busy[i] <= 1'b0;
        if (!finish_keep && valid[i]) begin
          valid[i] <= finish_swap && !(kill && kill_index == finish_index);
          if (finish_swap) begin
            entry[i] <= '{
                fingerprint: finish_fingerprint,
                index: finish_index,
                evicted: 1'b1,
                table_: finish_table
            };
          end
        end
      end
      if (insert && free_slot[i]) begin
        valid[i] <= 1'b1;
        entry[i] <= '{fingerprint: insert_fingerprint, index: insert_index, evicted: 1'b0, table_: 1'b0};
      end
    end
    if (insert || free_slot == '0) begin
      free_slot <= next_free_slot;
    end

    if (rst) begin
      valid <= '0;
      busy <= '0;
      free_slot <= Entries'(1);
    end
  end

`ifndef SYNTHESIS
  always_ff @(posedge clk) begin
    if (!rst) begin
      a_slot_free :
      assert (!insert || (free_slot != '0 && (taken & free_slot) == '0))
      else $error("weir_stash: insertion without room");
      a_finish_busy :
      assert (!finish || ($onehot(finish_slot) && (busy & finish_slot) != '0))
      else $error("weir_stash: finish of a slot that was not picked");
      a_one_match :
      assert ($onehot0(match))
      else $error("weir_stash: one fingerprint twice");
    end
  end
`endif

endmodule

`default_nettype wire
