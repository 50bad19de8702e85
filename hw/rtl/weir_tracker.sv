// Words with their context index to jobs: sections 3 to 6 of docs/src/flow-engine.md.
//
// Contract: takes a word in every clock, whatever the contexts, and never stalls; the job of a word that
// makes records comes LATENCY clocks after it. Nobody may hold it up: whoever feeds it makes sure that
// there is room for the jobs of all words under way.
// The context is read when the word comes and written when it leaves; in between each loop (order, window,
// round trip, block, interval, counters) has one clock, and takes its fields from the nearest word
// before on the same context (weir_forward).
// Pipeline, clocks after the word: 0 memory read begins, ReadLatency the context is there,
// +1 order, +2 its outcome, +3 options, +4 window, +5 round trip and block, +6 interval and counters,
// +7 write and job.

`default_nettype none

// Structures are taken whole, whatever part of them is used.
// verilator lint_off UNUSEDSIGNAL

module weir_tracker
  import weir_pkg::*;
  import weir_records_pkg::*;
  import weir_tracker_pkg::*;
#(
    parameter int Ports = 2,
    parameter int Contexts = 1 << 18,
    parameter int ReadLatency = 3,
    // verilator lint_off UNUSEDPARAM
    localparam int Latency = ReadLatency + 8
    // verilator lint_on UNUSEDPARAM
) (
    input  wire logic                         clk,
    input  wire logic                         rst,
    // Write a PACKET record for the packet (with the word).
    input  wire logic                         digest,
    // What to leave out from this word on.
    input  wire shed_t                        shed,
    input  wire logic       [Ports-1:0][31:0] dropped,
    input  wire logic                         s_valid,
    input  wire word_t                        s_word,
    input  wire lookup_t                      s_lookup,
    output timeout_update_t                   timeout_update,
    output logic                              m_valid,
    output job_t                              m_job,
    // A packet of the context met trouble: its flow's next packets may be wanted whole (weir_digest).
    output logic                              trouble_valid,
    output index_t                            trouble_index,
    output logic            [     47:0]       trouble_time,
    // Records left out, a pulse each.
    output shed_t                             left_out
);

  localparam int Order = ReadLatency + 1;
  // The order loop's outcome has a clock of its own.
  localparam int Options = Order + 2;
  localparam int Window = Options + 1;
  localparam int RoundTrip = Order + 4;
  localparam int Interval = Order + 5;
  localparam int Write = Order + 6;
  // A word this many clocks later still misses the write of this one.
  localparam int Depth = Write;
  localparam int AddressWidth = $clog2(Contexts);

  if (ReadLatency < 3) begin : gen_bad_latency
    $error("ReadLatency must be at least 3: the nearest word on the context is found in that time");
  end

  // Words on their way. Index: clocks after they came.
  logic valid[1:Write];
  word_t word[1:Write];
  lookup_t lookup[1:Write];
  facts_t facts[1:Write];
  logic wants_digest[1:Write];
  facts_t s_facts;

  weir_facts facts_of (
      .word  (s_word),
      .lookup(s_lookup),
      .facts (s_facts),
      .shed
  );

  always_ff @(posedge clk) begin
    valid[1] <= s_valid;
    word[1] <= s_word;
    lookup[1] <= s_lookup;
    facts[1] <= s_valid ? s_facts : '{open_how: CLIENT_HOW_FIRST, open_state: STATE_OTHER, default: '0};
    wants_digest[1] <= digest;
    for (int i = 2; i <= Write; i++) begin
      valid[i] <= valid[i-1];
      word[i] <= word[i-1];
      lookup[i] <= lookup[i-1];
      facts[i] <= facts[i-1];
      wants_digest[i] <= wants_digest[i-1];
    end
    if (rst) begin
      for (int i = 1; i <= Write; i++) valid[i] <= 1'b0;
    end
  end

  // The nearest word before on the same context: candidates, one clock later the nearest.
  logic [Depth-1:0] match;
  logic [Depth-1:0] same  [2:Interval-1];
  always_ff @(posedge clk) begin
    for (int d = 1; d <= Depth; d++) begin
      match[d-1] <= s_valid && s_lookup.tracked && valid[d] && lookup[d].tracked && lookup[d].index == s_lookup.index;
    end
    for (int d = 1; d <= Depth; d++) begin
      same[2][d-1] <= match[d-1] && (match & ((Depth'(1) << (d - 1)) - Depth'(1))) == '0;
    end
    for (int i = 3; i < Interval; i++) same[i] <= same[i-1];
  end

  // The context as the memory holds it. Fields wait for their loop.
  stored_t  stored;
  context_t loaded [ReadLatency:Interval-1];
  always_comb loaded[ReadLatency] = load(stored);
  always_ff @(posedge clk) begin
    for (int i = ReadLatency + 1; i < Interval; i++) loaded[i] <= loaded[i-1];
  end

  // Order: what the packet makes of an empty context, a clock ahead; the loop; its outcome.
  order_t empty, opened_next, opened_state;
  order_decision_t opened_now, opened_decision;
  always_comb begin
    empty = '{state: facts[Order-1].open_state, default: '0};
    empty.client_is_low = word[Order-1].meta.from_low == facts[Order-1].sender_is_client;
  end
  weir_order_step opened_step (
      .word(word[Order-1]),
      .facts(facts[Order-1]),
      .current(empty),
      .next_state(opened_next),
      .decision(opened_now)
  );
  always_ff @(posedge clk) begin
    opened_state <= opened_next;
    opened_decision <= opened_now;
  end

  order_t order_current, order_next;
  order_decision_t decision_now, decision;
  weir_forward #(
      .Width($bits(order_t)),
      .Depth(Depth)
  ) order_forward (
      .clk,
      .loaded(loaded[Order-1].order),
      .same(same[Order-1]),
      .after(order_next),
      .current(order_current)
  );
  weir_order order_loop (
      .word(word[Order]),
      .facts(facts[Order]),
      .opened_state,
      .opened_decision,
      .current(order_current),
      .next_state(order_next),
      .decision(decision_now)
  );
  always_ff @(posedge clk) decision <= decision_now;

  order_t order_old[Order+1:Write];
  order_t order_new[Order+1:Write];
  order_out_t order[Options:Write];
  order_out_t order_now;
  weir_order_out order_outcome (
      .word(word[Order+1]),
      .facts(facts[Order+1]),
      .decision,
      .old(order_old[Order+1]),
      .updated(order_new[Order+1]),
      .out(order_now)
  );

  // Options.
  options_state_t options_current, options_next;
  weir_forward #(
      .Width($bits(options_state_t)),
      .Depth(Depth)
  ) options_forward (
      .clk,
      .loaded(loaded[Options-1].options),
      .same(same[Options-1]),
      .after(options_next),
      .current(options_current)
  );
  weir_options options_loop (
      .word(word[Options]),
      .facts(facts[Options]),
      .order(order[Options]),
      .current(options_current),
      .next_state(options_next)
  );
  options_state_t options_old[Options+1:Write];
  options_state_t options_new[Options+1:Write];
  // By roles for the window loop, a clock ahead.
  options_side_t own_options, peer_options;
  always_ff @(posedge clk) begin
    own_options  <= options_next[order[Options].sender];
    peer_options <= options_next[!order[Options].sender];
  end

  // Window.
  window_t window_current, window_next;
  window_out_t window_now;
  logic [31:0] window_what;
  weir_forward #(
      .Width($bits(window_t)),
      .Depth(Depth)
  ) window_forward (
      .clk,
      .loaded(loaded[Window-1].window),
      .same(same[Window-1]),
      .after(window_next),
      .current(window_current)
  );
  weir_window window_loop (
      .word(word[Window]),
      .facts(facts[Window]),
      .order(order[Window]),
      .own_options,
      .peer_options,
      .current(window_current),
      .next_state(window_next),
      .out(window_now)
  );
  assign window_what = order[Window].what | window_now.what;
  window_t window_old[Window+1:Write];
  window_t window_new[Window+1:Write];
  window_out_t window[Window+1:Interval];
  // Bits of EVENT.what known so far.
  logic [31:0] what[Window+1:Write];

  // Round trip.
  round_trip_t round_trip_current, round_trip_next;
  round_trip_out_t round_trip_now;
  weir_forward #(
      .Width($bits(round_trip_t)),
      .Depth(Depth)
  ) round_trip_forward (
      .clk,
      .loaded(loaded[RoundTrip-1].round_trip),
      .same(same[RoundTrip-1]),
      .after(round_trip_next),
      .current(round_trip_current)
  );
  order_side_t round_trip_sender;
  assign round_trip_sender = side_of(order_old[RoundTrip], order[RoundTrip].sender);
  // Nothing that the word's sender sent is in flight: told one clock ahead, as the loop has no level left for it.
  order_out_t ordered;
  logic acked_before;
  assign ordered = order[RoundTrip-1];
  always_ff @(posedge clk) begin
    acked_before <= ordered.flight_after[ordered.sender] == 0 && !ordered.what[WhatAckedUnknownBit];
  end
  weir_round_trip round_trip_loop (
      .word(word[RoundTrip]),
      .facts(facts[RoundTrip]),
      .order(order[RoundTrip]),
      .acked_before,
      .setup(order_old[RoundTrip].setup),
      .newest_id(round_trip_sender.ip_id),
      .what(what[RoundTrip]),
      .current(round_trip_current),
      .next_state(round_trip_next),
      .out(round_trip_now)
  );
  round_trip_t round_trip_old[RoundTrip+1:Write];
  round_trip_t round_trip_new[RoundTrip+1:Write];
  round_trip_out_t round_trip[RoundTrip+1:Write];

  // Block.
  block_t block_current, block_next;
  block_out_t block_now;
  weir_forward #(
      .Width($bits(block_t)),
      .Depth(Depth)
  ) block_forward (
      .clk,
      .loaded(loaded[RoundTrip-1].block),
      .same(same[RoundTrip-1]),
      .after(block_next),
      .current(block_current)
  );
  weir_block block_loop (
      .word(word[RoundTrip]),
      .facts(facts[RoundTrip]),
      .order(order[RoundTrip]),
      .window(window[RoundTrip]),
      .what(what[RoundTrip]),
      .current(block_current),
      .next_state(block_next),
      .out(block_now)
  );
  block_t block_old[RoundTrip+1:Write];
  block_t block_new[RoundTrip+1:Write];
  block_out_t block[RoundTrip+1:Write];

  // Interval.
  interval_t interval_current, interval_next;
  interval_out_t interval_now;
  weir_forward #(
      .Width($bits(interval_t)),
      .Depth(Depth)
  ) interval_forward (
      .clk,
      .loaded(loaded[Interval-1].interval),
      .same(same[Interval-1]),
      .after(interval_next),
      .current(interval_current)
  );
  weir_interval interval_loop (
      .word(word[Interval]),
      .facts(facts[Interval]),
      .order(order[Interval]),
      .window(window[Interval]),
      .round_trip(round_trip[Interval]),
      .what(what[Interval]),
      .current(interval_current),
      .next_state(interval_next),
      .out(interval_now)
  );
  interval_t interval_old, interval_new;
  interval_out_t interval;

  // Counters.
  counters_t counters_current, counters_next;
  weir_forward #(
      .Width($bits(counters_t)),
      .Depth(Depth)
  ) counters_forward (
      .clk,
      .loaded(loaded[Interval-1].counters),
      .same(same[Interval-1]),
      .after(counters_next),
      .current(counters_current)
  );
  weir_counters counters_loop (
      .word(word[Interval]),
      .facts(facts[Interval]),
      .order(order[Interval]),
      .window(window[Interval]),
      .what(what[Interval]),
      .current(counters_current),
      .next_state(counters_next)
  );
  counters_t counters_old, counters_new;

  always_ff @(posedge clk) begin
    order_old[Order+1] <= order_current;
    order_new[Order+1] <= order_next;
    order[Options] <= order_now;
    for (int i = Order + 2; i <= Write; i++) begin
      order_old[i] <= order_old[i-1];
      order_new[i] <= order_new[i-1];
    end
    for (int i = Options + 1; i <= Write; i++) order[i] <= order[i-1];
    options_old[Options+1] <= options_current;
    options_new[Options+1] <= options_next;
    for (int i = Options + 2; i <= Write; i++) begin
      options_old[i] <= options_old[i-1];
      options_new[i] <= options_new[i-1];
    end
    window_old[Window+1] <= window_current;
    window_new[Window+1] <= window_next;
    what[Window+1] <= window_what;
    for (int i = Window + 2; i <= Write; i++) begin
      window_old[i] <= window_old[i-1];
      window_new[i] <= window_new[i-1];
    end
    window[Window+1] <= window_now;
    for (int i = Window + 2; i <= Interval; i++) window[i] <= window[i-1];
    round_trip_old[RoundTrip+1] <= round_trip_current;
    round_trip_new[RoundTrip+1] <= round_trip_next;
    round_trip[RoundTrip+1] <= round_trip_now;
    block_old[RoundTrip+1] <= block_current;
    block_new[RoundTrip+1] <= block_next;
    block[RoundTrip+1] <= block_now;
    what[RoundTrip+1] <= what[RoundTrip] | block_now.what | (32'(round_trip_now.acks_repeat) << WhatAcksRepeatBit);
    for (int i = RoundTrip + 2; i <= Write; i++) begin
      round_trip_old[i] <= round_trip_old[i-1];
      round_trip_new[i] <= round_trip_new[i-1];
      round_trip[i] <= round_trip[i-1];
      block_old[i] <= block_old[i-1];
      block_new[i] <= block_new[i-1];
      block[i] <= block[i-1];
      what[i] <= what[i-1];
    end
    interval_old <= interval_current;
    interval_new <= interval_next;
    interval <= interval_now;
    counters_old <= counters_current;
    counters_new <= counters_next;
  end

  // The lookup learns the state that decides the timeout.
  always_ff @(posedge clk) begin
    timeout_update.valid <= valid[Order+1] && (facts[Order+1].tcp || facts[Order+1].other || facts[Order+1].visit);
    timeout_update.index <= lookup[Order+1].index;
    unique case (state_of(
        order_new[Order+1]
    ))
      STATE_SYN, STATE_SYN_ACK: timeout_update.timeout <= TIMEOUT_HANDSHAKE;
      STATE_CLOSED_FIN, STATE_CLOSED_RST: timeout_update.timeout <= TIMEOUT_LINGER;
      STATE_OTHER: timeout_update.timeout <= TIMEOUT_OTHER;
      default: timeout_update.timeout <= TIMEOUT_IDLE;
    endcase
    if (rst) timeout_update.valid <= 1'b0;
  end

  // Write back, and the job.
  context_t updated, old;
  assign updated = '{
          order: order_new[Write],
          options: options_new[Write],
          window: window_new[Write],
          round_trip: round_trip_new[Write],
          block: block_new[Write],
          interval: interval_new,
          counters: counters_new
      };
  assign old = '{
          order: order_old[Write],
          options: options_old[Write],
          window: window_old[Write],
          round_trip: round_trip_old[Write],
          block: block_old[Write],
          interval: interval_old,
          counters: counters_old
      };

  weir_context #(
      .Width($bits(stored_t)),
      .Contexts(Contexts),
      .Latency(ReadLatency)
  ) contexts (
      .clk,
      .read_index(s_lookup.index[AddressWidth-1:0]),
      .read_data(stored),
      .write(valid[Write] && lookup[Write].tracked),
      .write_index(lookup[Write].index[AddressWidth-1:0]),
      .write_data(store(updated))
  );

  port_counters_t port_report;
  logic port_changed;
  weir_ports #(
      .Ports(Ports)
  ) ports (
      .clk,
      .rst,
      .valid(valid[Write]),
      .word(word[Write]),
      .lookup(lookup[Write]),
      .dropped,
      .report(port_report),
      .changed(port_changed)
  );

  // Section 6: which records the word makes.
  localparam logic [31:0] WithMore = (32'd1 << WhatSackBit) | (32'd1 << WhatSynRepeatBit) |
      (32'd1 << WhatSynAckRepeatBit) | (32'd1 << WhatSynOtherBit);

  logic [JobRecords-1:0] records;
  order_out_t o;
  facts_t f;
  block_out_t b;
  logic closed_interval;
  assign o = order[Write];
  assign f = facts[Write];
  assign b = block[Write];
  assign closed_interval = interval_old.side[0].active || interval_old.side[1].active;

  always_comb begin
    records = '0;
    if (valid[Write]) begin
      if (o.closed) begin
        records[JobSetupClosed] = o.setup_closed;
        records[JobSetupClosed+1] = o.setup_closed;
        records[JobBlockClient] = block_old[Write][0].open;
        records[JobBlockServer] = block_old[Write][1].open;
        records[JobIntervalClosedClient] = closed_interval && interval_old.side[0].active;
        records[JobIntervalClosedServer] = closed_interval && interval_old.side[1].active;
        records[JobClose] = 1'b1;
        records[JobClose+1] = 1'b1;
      end
      if (f.visit) begin
        records[JobBlockClient]  = b.idle_ends[0];
        records[JobBlockServer]  = b.idle_ends[1];
        records[JobSetupVisit]   = o.leaves_setup;
        records[JobSetupVisit+1] = o.leaves_setup;
      end
      if (o.opened) begin
        records[JobOpen]   = 1'b1;
        records[JobOpen+1] = 1'b1;
      end
      if (f.tcp) begin
        records[JobSetup] = o.leaves_setup;
        records[JobSetup+1] = o.leaves_setup;
        records[JobRtt] = round_trip[Write].written && !f.shed.rtt;
        records[JobTurn] = b.reset ? block_old[Write][0].open && !o.opened : b.turn;
        records[JobOwn] = b.reset ? block_old[Write][1].open && !o.opened : (o.syn_block || o.own_block || b.own);
      end
      if (f.tcp || f.icmp) begin
        records[JobEvent] = interval.has_event && !interval.folds;
        records[JobEventMore] = records[JobEvent] && (what[Write] & WithMore) != '0;
      end
      if (interval.ended) begin
        records[JobIntervalClient] = interval_old.side[0].active;
        records[JobIntervalServer] = interval_old.side[1].active;
      end
      if (f.tcp || f.other) begin
        records[JobPacket] = wants_digest[Write] && !f.shed.packet;
        records[JobPacketMore] = records[JobPacket] && word[Write].meta.options.sack_count != 0;
      end
      if (word[Write].kind == WORD_PORT) begin
        records[JobPort]   = port_changed;
        records[JobPort+1] = port_changed;
      end
    end
  end

  always_ff @(posedge clk) begin
    m_valid <= records != '0;
    trouble_valid <= valid[Write] && interval.trouble;
    trouble_index <= lookup[Write].index;
    trouble_time <= word[Write].meta.timestamp[47:0];
    left_out.packet <= valid[Write] && (f.tcp || f.other) && wants_digest[Write] && f.shed.packet;
    left_out.rtt <= valid[Write] && f.tcp && round_trip[Write].written && f.shed.rtt;
    left_out.interval <= valid[Write] && interval.stretched;
    left_out.block <= valid[Write] && f.tcp && b.merged;
    left_out.event_ <= valid[Write] && interval.folds;
    m_job <= '{
        records: records,
        word: word[Write],
        lookup: lookup[Write],
        facts: f,
        order: o,
        block: b,
        interval: interval,
        round_trip: round_trip[Write],
        what: what[Write],
        old: old,
        updated: updated,
        port: port_report
    };
    if (rst) begin
      m_valid <= 1'b0;
      trouble_valid <= 1'b0;
    end
  end

`ifndef SYNTHESIS
  // Words between s_valid and the write of the context; those ever since reset.
  logic [63:0] words_in, words_out;
  logic [7:0] under_way;
  logic written;
  always_comb begin
    under_way = '0;
    for (int i = 1; i <= Write; i++) under_way += 8'(valid[i]);
  end
  always_ff @(posedge clk) begin
    written   <= valid[Write];
    words_in  <= words_in + 64'(s_valid);
    words_out <= words_out + 64'(valid[Write]);
    if (rst) begin
      words_in  <= '0;
      words_out <= '0;
    end
  end

  a_index_in_range :
  assert property (@(posedge clk) disable iff (rst) s_valid && s_lookup.tracked |-> 32'(s_lookup.index) < Contexts)
  else $error("weir_tracker: index %0d of %0d contexts", s_lookup.index, Contexts);
  a_known :
  assert property (@(posedge clk) disable iff (rst) s_valid |-> !$isunknown(s_word.kind) && !$isunknown(s_lookup));
  a_job_known :
  assert property (@(posedge clk) disable iff (rst) !$isunknown(m_valid) && (!m_valid || !$isunknown(m_job.records)));
  a_words_conserved :
  assert property (@(posedge clk) disable iff (rst) words_in == words_out + 64'(under_way));
  // The tracker never holds a word up and never lets one pass another.
  a_latency :
  assert property (@(posedge clk) disable iff (rst) s_valid |-> ##Write valid[Write]);
  a_only_words :
  assert property (@(posedge clk) disable iff (rst) m_valid |-> m_job.records != '0 && written);
  a_at_most_14_records :
  assert property (@(posedge clk) disable iff (rst) m_valid |-> $countones(m_job.records) <= 14);
  a_visit_by_lookup :
  assert property (@(posedge clk) disable iff (rst) s_valid && s_word.kind == WORD_VISIT |-> !s_lookup.fresh);
  for (genvar i = 2; i < Interval; i++) begin : gen_nearest
    a_nearest_is_one :
    assert property (@(posedge clk) disable iff (rst) valid[i] |-> $onehot0(same[i]));
  end
`endif

endmodule

// verilator lint_on UNUSEDSIGNAL

`default_nettype wire
