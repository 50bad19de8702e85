// Which flow a word is about: key to context index, flow ends by timeout, indices for new flows.
//
// Promise      For each word, in word order and as if each were finished before the next (sections 1, 2 and 5
//              of docs/src/flow-engine.md):
//              - a packet of CLASS_TCP or CLASS_OTHER is tracked in the flow of its key. A flow whose last
//                packet is its timeout or more ago is `expired` and opened anew (`fresh`) in the same context.
//                A key without a flow takes a free index (`fresh`); if none is free, or the stash of the key
//                table has no room, it is untracked, TABLE_FULL;
//              - CLASS_ICMP_ERROR is tracked if its key has a flow that is not timed out, else untracked,
//                ICMP_NO_FLOW; it changes nothing;
//              - CLASS_UNTRACKED is untracked for its own reason;
//              - a visit is tracked if the context is in use; if the flow's last packet is its timeout or more
//                ago it is also `expired`: the context ends;
//              - WORD_END is tracked if the context is in use, which ends;
//              - WORD_PORT passes.
//              last_seen is given with tracked words but those that are fresh and not expired.
// Throughput   One word per clock, whatever the keys. Nothing stalls.
// Latency      weir_lookup_pkg::LookupLatency.
// Stages       0 word; 5 fingerprint, key table and stash are read; 10 index, state is read; 13 state; 14 age;
//              15 (DecisionStage) decision; 17 output. A decision is in the memories HistoryDepth words later
//              at most; nearer words learn it from `history`, by equal fingerprints or indices.
// Time         m of weir_merge must keep two words whose times are MinTimeout (2^21 ns) or more apart at least
//              DrainClocks clocks apart. (Rule for it: keep the time A of the last word that waited; a word
//              after A + 2^20 ns waits DrainClocks empty clocks and becomes A.) And timeouts must be MinTimeout
//              or more. Then a word within DrainClocks of a packet of its flow finds an age below every timeout,
//              so that it does not matter that timeout_update comes some clocks (at most 20; weir_tracker takes 6) after
//              the packet, and until then the timeout of an older state, or of the context's flow before, is in
//              the memory.
// Start        Until `ready` (the key table is being emptied) packets are untracked, TABLE_FULL.
// Deletions    A key that ended is taken out of the table in the background; its index rests until that is done
//              (about 8 clocks each, in the order of the ends). Only where more flows end back to back than that
//              and the time then leaps by the rest of 2^29 ns can this be seen: a source that makes such leaps
//              waits until `deletions` has been 0 for 24 clocks (DeleteRest of the mover and the way to the head of
//              the free list).

`default_nettype none

module weir_lookup
  import weir_pkg::*;
  import weir_lookup_pkg::*;
  import weir_records_pkg::*;
#(
    parameter int Contexts = 1 << 18,
    // Per table; a power of two. Entries: 2 * Buckets * Ways.
    parameter int Buckets = 1 << 15,
    parameter int Ways = 5,
    parameter int StashEntries = 32,
    parameter string RamStyle = "ultra",
    localparam int LevelWidth = $clog2(StashEntries + 1)
) (
    input  wire logic clk,
    input  wire logic rst,
    output logic      ready,

    input wire seed_t     seed,
    input wire logic      vlan_in_key,
    input wire timeouts_t timeouts,

    input wire logic  s_valid,
    input wire word_t s_word,

    output logic    m_valid,
    output word_t   m_word,
    output lookup_t m_lookup,

    input wire timeout_update_t timeout_update,

    // Contexts in use; used so far (all below).
    output logic [IndexWidth:0] occupancy,
    output logic [IndexWidth:0] used,
    output logic [IndexWidth:0] deletions,
    output logic [LevelWidth-1:0] stash_level,
    output logic [LevelWidth-1:0] stash_high_water,
    // Packets untracked, TABLE_FULL: no free index; no room for the key.
    output logic [31:0] no_index_count,
    output logic [31:0] no_room_count,

    // Parity of the key table (weir_key_table).
    input  wire logic table_flip,
    output logic      table_bad
);

  localparam int AddressWidth = $clog2(Contexts);
  localparam int Last = DecisionStage + 1;
  localparam int IndexStage = HashLatency + TableLatency;
  localparam int StateStage = IndexStage + StateLatency;
  localparam int TimeWidth = ReleaseTimeWidth;
  localparam int SeenWidth = 48;

  if (Contexts < 2 || Contexts > 1 << IndexWidth) begin : gen_check_contexts
    $error("Contexts must be 2 to 2^%0d", IndexWidth);
  end

  // What the stages need of a word.
  typedef struct packed {
    logic packet;
    logic icmp;
    logic visit;
    logic end_;
    logic [3:0] reason;
    logic [TimeWidth-1:0] time_;
  } control_t;

  // [0] is the word that comes.
  control_t first;
  control_t [Last:1] later;
  control_t [Last:0] control;
  logic [Last:1] later_valid;
  logic [Last:0] valid;
  assign control = {later, first};
  assign valid   = {later_valid, s_valid};

  always_comb begin
    first = '{
        packet: s_valid && s_word.kind == WORD_PACKET && s_word.meta.class_ inside {CLASS_TCP, CLASS_OTHER},
        icmp: s_valid && s_word.kind == WORD_PACKET && s_word.meta.class_ == CLASS_ICMP_ERROR,
        visit: s_valid && s_word.kind == WORD_VISIT,
        end_: s_valid && s_word.kind == WORD_END,
        reason: s_word.kind == WORD_PACKET && s_word.meta.class_ == CLASS_UNTRACKED ? s_word.meta.reason : '0,
        time_: s_word.meta.timestamp[TimeWidth-1:0]
    };
  end

  always_ff @(posedge clk) begin
    later <= control[Last-1:0];
    later_valid <= valid[Last-1:0];
    if (rst) begin
      later_valid <= '0;
      for (int i = 1; i <= Last; i++) begin
        later[i].packet <= 1'b0;
        later[i].icmp   <= 1'b0;
        later[i].visit  <= 1'b0;
        later[i].end_   <= 1'b0;
      end
    end
  end

  weir_delay #(
      .Width ($bits(word_t)),
      .Clocks(LookupLatency)
  ) delay_word (
      .clk,
      .s_data(s_word),
      .m_data({m_word})
  );

  // Fingerprints of the word in stage HashLatency and of those ahead of it, up to where keys are inserted.
  fingerprint_t [Last:HashLatency] fingerprint;
  logic [DecisionStage:HashLatency+1][HistoryDepth:1] same_key;

  weir_hash hash (
      .clk,
      .seed,
      .vlan_in_key,
      .s_key(s_word.meta.key),
      .m_fingerprint(fingerprint[HashLatency])
  );

  always_ff @(posedge clk) begin
    fingerprint[Last:HashLatency+1] <= fingerprint[Last-1:HashLatency];
    for (int d = 1; d <= HistoryDepth; d++) begin
      same_key[HashLatency+1][d] <= fingerprint[HashLatency] == fingerprint[HashLatency+d];
    end
    same_key[DecisionStage:HashLatency+2] <= same_key[DecisionStage-1:HashLatency+1];
  end

  // Key table.
  logic   table_hit;
  index_t table_index;
  logic   insert;
  index_t insert_index;
  logic   room;
  logic   release_;
  index_t release_index;
  logic   delete_valid;
  index_t delete_index;
  logic   delete_ready;
  logic   deleted;

  weir_key_table #(
      .Buckets(Buckets),
      .Ways(Ways),
      .StashEntries(StashEntries),
      .Contexts(Contexts),
      .RamStyle(RamStyle)
  ) key_table (
      .clk,
      .rst,
      .ready,
      .s_fingerprint(fingerprint[HashLatency]),
      .m_hit(table_hit),
      .m_index(table_index),
      .insert,
      .insert_fingerprint(fingerprint[Last]),
      .insert_index,
      .room,
      .kill(release_),
      .kill_index(release_index),
      .s_delete_valid(delete_valid),
      .s_delete_index(delete_index),
      .s_delete_ready(delete_ready),
      .deleted,
      .deletions,
      .stash_level,
      .table_flip,
      .table_bad
  );

  // Index of the word, before any allocation: of a visit its own. `known`: there is one.
  index_t [DecisionStage:IndexStage] index;
  logic [DecisionStage:IndexStage] known;
  index_t [IndexStage:0] own_index;

  assign own_index[0] = s_word.index;

  always_comb begin
    index[IndexStage] = table_index;
    known[IndexStage] = table_hit;
    if (control[IndexStage].visit || control[IndexStage].end_) begin
      index[IndexStage] = own_index[IndexStage];
      known[IndexStage] = 1'b1;
    end
  end

  // State of the context: in use, last packet, which timeout.
  logic state_write;
  index_t state_write_index;
  logic state_write_live;
  logic [SeenWidth-1:0] state_write_seen;
  logic state_live;
  logic [SeenWidth-1:0] state_seen;
  timeout_e state_timeout;

  weir_context #(
      .Width(1 + SeenWidth),
      .Contexts(1 << AddressWidth),
      .Latency(StateLatency)
  ) last_seen (
      .clk,
      .read_index(index[IndexStage][AddressWidth-1:0]),
      .read_data({state_live, state_seen}),
      .write(state_write),
      .write_index(state_write_index[AddressWidth-1:0]),
      .write_data({state_write_live, state_write_seen})
  );

  weir_context #(
      .Width(2),
      .Contexts(1 << AddressWidth),
      .Latency(StateLatency)
  ) timeout_class (
      .clk,
      .read_index(index[IndexStage][AddressWidth-1:0]),
      .read_data({state_timeout}),
      .write(timeout_update.valid),
      .write_index(timeout_update.index[AddressWidth-1:0]),
      .write_data(timeout_update.timeout)
  );

  // Age, then whether it is too high. An index never used has no state yet, whatever the memory holds.
  logic [SeenWidth-1:0] age;
  logic [46:0] timeout;
  logic live_next;
  logic live;
  logic too_old;
  logic [Last:StateStage+1][SeenWidth-1:0] seen;

  always_ff @(posedge clk) begin
    own_index[IndexStage:1] <= own_index[IndexStage-1:0];
    index[DecisionStage:IndexStage+1] <= index[DecisionStage-1:IndexStage];
    known[DecisionStage:IndexStage+1] <= known[DecisionStage-1:IndexStage];

    age <= control[StateStage].time_[SeenWidth-1:0] - state_seen;
    unique case (state_timeout)
      TIMEOUT_HANDSHAKE: timeout <= timeouts.handshake;
      TIMEOUT_IDLE: timeout <= timeouts.idle;
      TIMEOUT_LINGER: timeout <= timeouts.linger;
      default: timeout <= timeouts.other;
    endcase
    live_next <= known[StateStage] && state_live && {1'b0, index[StateStage]} < used;
    seen[StateStage+1] <= state_seen;

    too_old <= age >= {1'b0, timeout};
    live <= live_next;
    seen[Last:StateStage+2] <= seen[Last-1:StateStage+1];
  end

  // What the words before came to.
  typedef struct packed {
    // A packet was counted in the flow of `index`, and no WORD_END has ended it since.
    logic tracked;
    // The word ended the context `index`.
    logic released;
    index_t index;
    logic [SeenWidth-1:0] time_;
  } history_t;

  history_t [HistoryDepth+1:1] history;

  // Words before on the same context: one clock early, but for the nearest, whose index is not known yet.
  logic [HistoryDepth:1] same_context;
  logic [HistoryDepth:2] same_context_before;
  logic ended_before;
  logic same_as_last;

  always_ff @(posedge clk) begin
    same_as_last <= index[DecisionStage-1] == index[DecisionStage];
    ended_before <= 1'b0;
    for (int d = 2; d <= HistoryDepth; d++) begin
      same_context_before[d] <= history[d-1].index == index[DecisionStage-1];
      if (history[d-1].released && history[d-1].index == index[DecisionStage-1]) begin
        ended_before <= 1'b1;
      end
    end
  end

  // The decision.
  control_t word;
  logic free_valid;
  index_t free_index;
  logic [HistoryDepth:1] recent_key;
  logic [HistoryDepth:1] recent_context;
  logic by_index;
  index_t recent_index;
  logic in_use;
  logic key_found;
  logic context_found;
  logic key_expired;
  logic context_expired;
  logic allocate;
  logic end_context;
  index_t final_index;
  lookup_t lookup_next;

  assign word = control[DecisionStage];
  assign by_index = word.visit || word.end_;
  assign same_context = {same_context_before, history[1].index == index[DecisionStage]};

  always_comb begin
    recent_index = '0;
    for (int d = 1; d <= HistoryDepth; d++) begin
      recent_key[d] = history[d].tracked && same_key[DecisionStage][d];
      recent_context[d] = history[d].tracked && same_context[d];
      // All that match agree.
      recent_index |= history[d].index & {IndexWidth{recent_key[d]}};
    end
    in_use = live && !ended_before && !(same_as_last && history[1].released);
    key_found = in_use || recent_key != '0;
    context_found = in_use || recent_context != '0;
    key_expired = in_use && too_old && recent_key == '0;
    context_expired = in_use && too_old && recent_context == '0;
    allocate = word.packet && !key_found && free_valid && room;
    end_context = (word.visit && context_expired) || (word.end_ && context_found);
    final_index = free_index;
    if (by_index) begin
      final_index = index[DecisionStage];
    end else if (recent_key != '0) begin
      final_index = recent_index;
    end else if (in_use) begin
      final_index = index[DecisionStage];
    end

    lookup_next = '{
        tracked:
        (
        word.packet && (key_found || allocate)
        ) || (
        word.icmp && key_found && !key_expired
        ) || (
        by_index && context_found
        ),
        reason: word.reason,
        index: final_index,
        expired: (word.packet && key_expired) || (word.visit && context_expired),
        fresh: word.packet && (allocate || key_expired),
        last_seen: '0
    };
    if (word.packet && !key_found && !allocate) begin
      lookup_next.reason = 4'(UNTRACKED_TABLE_FULL);
    end
    if (word.icmp && !(key_found && !key_expired)) begin
      lookup_next.reason = 4'(UNTRACKED_ICMP_NO_FLOW);
    end
  end

  weir_free_list #(
      .Contexts(Contexts),
      .RamStyle(RamStyle)
  ) free_list (
      .clk,
      .rst,
      .s_time(control[DecisionStage-1].time_),
      .m_valid(free_valid),
      .m_index(free_index),
      .take(allocate),
      .release_valid(release_),
      .release_index,
      .release_time(control[Last].time_),
      .m_clean_valid(delete_valid),
      .m_clean_index(delete_index),
      .m_clean_ready(delete_ready),
      .cleaned(deleted),
      .used
  );

  // The clock after: memories learn the decision, last_seen is chosen, then all leaves.
  lookup_t decided;
  logic [HistoryDepth:1] recent_decided;
  logic [SeenWidth-1:0] last_seen_next;

  always_comb begin
    last_seen_next = seen[Last];
    for (int d = HistoryDepth; d >= 1; d--) begin
      if (recent_decided[d]) begin
        last_seen_next = history[d+1].time_;
      end
    end
  end

  always_ff @(posedge clk) begin
    history[1] <= '{
        tracked: word.packet && (key_found || allocate),
        released: end_context,
        index: final_index,
        time_: word.time_[SeenWidth-1:0]
    };
    for (int d = 1; d <= HistoryDepth; d++) begin
      history[d+1] <= history[d];
      if (end_context && same_context[d]) begin
        history[d+1].tracked <= 1'b0;
      end
    end

    state_write <= end_context || (word.packet && (key_found || allocate));
    state_write_index <= final_index;
    state_write_live <= !end_context;
    state_write_seen <= word.time_[SeenWidth-1:0];
    insert <= allocate;
    insert_index <= free_index;
    release_ <= end_context;
    release_index <= final_index;

    decided <= lookup_next;
    recent_decided <= by_index ? recent_context : recent_key;
    m_lookup <= decided;
    m_lookup.last_seen <= last_seen_next;
    m_valid <= valid[Last];

    occupancy <= occupancy + (IndexWidth + 1)'(insert) - (IndexWidth + 1)'(release_);
    if (stash_level > stash_high_water) begin
      stash_high_water <= stash_level;
    end
    if (word.packet && !key_found && !free_valid) begin
      no_index_count <= no_index_count + 1'b1;
    end
    if (word.packet && !key_found && free_valid && !room) begin
      no_room_count <= no_room_count + 1'b1;
    end

    if (rst) begin
      for (int d = 1; d <= HistoryDepth + 1; d++) begin
        history[d].tracked  <= 1'b0;
        history[d].released <= 1'b0;
      end
      state_write <= 1'b0;
      insert <= 1'b0;
      release_ <= 1'b0;
      m_valid <= 1'b0;
      occupancy <= '0;
      stash_high_water <= '0;
      no_index_count <= '0;
      no_room_count <= '0;
    end
  end

`ifndef SYNTHESIS
  a_allocated_was_free :
  assert property (@(posedge clk) disable iff (rst) occupancy <= used);
  a_timeouts :
  assert property (@(posedge clk) disable iff (rst) 64'(timeouts.handshake) >= MinTimeout &&
                   64'(timeouts.idle) >= MinTimeout && 64'(timeouts.linger) >= MinTimeout &&
                   64'(timeouts.other) >= MinTimeout);

  always_ff @(posedge clk) begin
    for (int d = 1; d <= HistoryDepth; d++) begin
      a_recent_agree :
      assert (rst || !valid[DecisionStage] || by_index || !recent_key[d] || recent_index == history[d].index)
      else $error("weir_lookup: one key in two contexts");
    end
  end

  // Times of the words of the last DrainClocks clocks, the oldest first. WORD_PORT, which passes, need not wait.
  logic [63:0] word_time[$];
  longint word_clock[$];
  longint clock;
  always_ff @(posedge clk) begin
    clock <= clock + 1;
    if (rst) begin
      clock <= 0;
      word_time.delete();
      word_clock.delete();
    end else if (s_valid && s_word.kind != WORD_PORT) begin
      while (word_clock.size() != 0 && word_clock[0] + 64'(DrainClocks) <= clock) begin
        void'(word_clock.pop_front());
        void'(word_time.pop_front());
      end
      if (word_time.size() != 0) begin
        a_time_order :
        assert (s_word.meta.timestamp >= word_time[$])
        else $error("weir_lookup: time runs backwards");
        a_drained :
        assert (s_word.meta.timestamp < word_time[0] + MinTimeout)
        else $error("weir_lookup: %0d ns within DrainClocks", s_word.meta.timestamp - word_time[0]);
      end
      word_time.push_back(s_word.meta.timestamp);
      word_clock.push_back(clock);
    end
  end
`endif

endmodule

`default_nettype wire
