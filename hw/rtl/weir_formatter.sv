// Jobs to records of 64 bytes, in the order of section 6 of docs/src/flow-engine.md.
//
// Contract: takes a job when it has room, gives one record per clock while `m_ready`; two clocks from a
// job to its first record. Sequence numbers count all records from 0 (`rst` begins again).
// Records are stable while they wait.

`default_nettype none

// Structures are taken whole, whatever part of them is used.
// verilator lint_off UNUSEDSIGNAL

module weir_formatter
  import weir_pkg::*;
  import weir_records_pkg::*;
  import weir_tracker_pkg::*;
(
    input  wire logic         clk,
    input  wire logic         rst,
    // Boot epoch in the flow ids; lane of the records.
    input  wire logic [ 15:0] epoch,
    input  wire logic [  3:0] lane,
    input  wire logic         s_valid,
    output logic              s_ready,
    input  wire job_t         s_job,
    output logic              m_valid,
    input  wire logic         m_ready,
    output logic      [511:0] m_record
);

  // Network order to the record's: the first byte lowest.
  function automatic logic [127:0] bytes16(logic [127:0] a);
    for (int i = 0; i < 16; i++) bytes16[8*i+:8] = a[127-8*i-:8];
  endfunction
  function automatic logic [47:0] bytes6(logic [47:0] a);
    for (int i = 0; i < 6; i++) bytes6[8*i+:8] = a[47-8*i-:8];
  endfunction

  // The full time of which `low` are the low bits; it is not later than `now`.
  function automatic logic [63:0] time40(logic [63:0] now, logic [39:0] low);
    return now - 64'(40'(now[39:0] - low));
  endfunction
  function automatic logic [63:0] time32(logic [63:0] now, logic [31:0] low);
    return now - 64'(32'(now[31:0] - low));
  endfunction

  function automatic logic [7:0] shift(logic [3:0] scale);
    return scale == NoScale ? 8'(RecordNoScale) : 8'(scale);
  endfunction

  // The job in work and its records still to come.
  job_t job;
  logic [JobRecords-1:0] left;
  // EVENT.tsval of it; bytes of the BLOCK that its packet ends.
  logic [31:0] stamp, own_bytes;
  logic [JobRecords-1:0] first, rest;
  logic advance, take;
  // From the interval of the context to that of the word.
  logic [15:0] intervals_back;
  assign first = left & (~left + 1);
  assign rest = left & ~first;
  assign advance = !m_valid || m_ready;
  assign s_ready = left == '0 || (advance && rest == '0);
  assign take = s_valid && s_ready;

  // Number of the first record still to come.
  logic [$clog2(JobRecords)-1:0] number;
  always_comb begin
    number = '0;
    for (int i = 0; i < JobRecords; i++) begin
      if (first[i]) number |= $clog2(JobRecords)'(i);
    end
  end

  // The bytes as the job comes: a FIN that `next` counts is none.
  logic [31:0] s_next, s_seq, s_own_bytes;
  assign s_next = side_of(s_job.updated.order, s_job.order.sender).next;
  assign s_seq = s_job.order.own_block ? s_job.order.new_start : s_job.updated.block[s_job.order.sender].seq;
  assign s_own_bytes = s_job.order.syn_block ? 32'(s_job.word.meta.payload) :
      s_next - s_seq - 32'(s_job.order.fin_counted);

  logic [63:0] now;
  meta_t meta;
  order_out_t o;
  logic s;
  assign now = job.word.meta.timestamp;
  assign meta = job.word.meta;
  assign o = job.order;
  assign s = o.sender;

  // Sides of the order loop by roles.
  order_side_t [1:0] old_side, updated_side;
  assign old_side = {side_of(job.old.order, 1'b1), side_of(job.old.order, 1'b0)};
  assign updated_side = {side_of(job.updated.order, 1'b1), side_of(job.updated.order, 1'b0)};

  logic [31:0] sequence_number;

  function automatic record_header_t header(kind_e kind, logic more, logic continuation, logic server, logic ipv6,
                                            logic [7:0] arg, logic [23:0] generation);
    record_header_t h;
    h = '0;
    h.kind = kind;
    h.flags[FlagContinuationBit] = continuation;
    h.flags[FlagServerToClientBit] = server;
    h.flags[FlagIpv6Bit] = ipv6;
    h.flags[FlagMoreBit] = more;
    h.version_lane = {4'(RecordVersion), lane};
    h.arg = arg;
    h.sequence_ = sequence_number;
    h.flow = {epoch, generation, 24'(job.lookup.index)};
    h.time_ = now;
    return h;
  endfunction

  // BLOCK of `side` as the context stands.
  function automatic record_block_t block(context_t c, logic side, logic [31:0] flight, block_end_e cause,
                                          logic [7:0] ttl);
    record_block_t r;
    order_side_t sender, receiver;
    sender = side_of(c.order, side);
    receiver = side_of(c.order, !side);
    r = '0;
    r.header = header(KIND_BLOCK, 1'b0, 1'b0, side, 1'b0, cause, c.order.generation);
    r.header.flags[FlagMergedBit] = job.old.block[side].merged && job.old.block[side].open;
    r.first = time40(now, c.block[side].first);
    r.last = time32(now, c.block[side].last);
    r.seq = c.block[side].seq;
    r.bytes = sender.next - c.block[side].seq;
    r.ack = sender.ack;
    r.flight = flight;
    r.packets = c.block[side].packets;
    r.max_segment = 16'(c.block[side].max);
    r.window = c.window[!side].window;
    r.ttl = ttl;
    r.known = {6'd0, receiver.has_ack, sender.has_ack};
    return r;
  endfunction

  function automatic record_setup_t setup(setup_end_e cause, logic [63:0] end_time, logic [15:0] end_window);
    record_setup_t r;
    context_t c;
    c = job.old;
    r = '0;
    r.header = header(KIND_SETUP, 1'b1, 1'b0, 1'b0, 1'b0, cause, c.order.generation);
    if (c.order.setup.syns != 0) begin
      r.first_syn = time40(now, c.order.setup.first_syn);
      r.last_syn  = time40(now, c.order.setup.last_syn);
    end
    if (c.order.setup.syn_acks != 0) r.syn_ack = time40(now, c.order.setup.syn_ack);
    r.end_ = end_time;
    r.syn_count = 8'(c.order.setup.syns);
    r.syn_ack_count = 8'(c.order.setup.syn_acks);
    r.bits[SetupBitSynBit] = c.order.setup.syns != 0;
    r.bits[SetupBitSynAckBit] = c.order.setup.syn_acks != 0;
    r.bits[SetupBitAckBit] = cause == SETUP_END_DONE;
    r.bits[SetupBitClientSackBit] = c.options[0].sack_ok;
    r.bits[SetupBitServerSackBit] = c.options[1].sack_ok;
    r.bits[SetupBitClientTimestampsBit] = c.options[0].timestamps;
    r.bits[SetupBitServerTimestampsBit] = c.options[1].timestamps;
    r.bits[SetupBitClientEcnBit] = c.options[0].ecn;
    r.bits[SetupBitServerEcnBit] = c.options[1].ecn;
    r.bits[SetupBitClientOptionsCutBit] = c.options[0].cut;
    r.bits[SetupBitServerOptionsCutBit] = c.options[1].cut;
    r.bits[SetupBitRstByServerBit] = cause == SETUP_END_RESET ? updated_side[1].rst : old_side[1].rst;
    r.syn_payload = 16'(c.order.setup.syn_payload);
    r.end_window = end_window;
    return r;
  endfunction

  function automatic record_setup_more_t setup_more(setup_end_e cause);
    record_setup_more_t r;
    context_t c;
    c = job.old;
    r = '0;
    r.header = header(KIND_SETUP, 1'b0, 1'b1, 1'b0, 1'b0, cause, c.order.generation);
    if (c.order.setup.syns != 0 || c.order.setup.syn_acks != 0) r.client_isn = c.order.setup.client_start - 1;
    if (c.order.setup.syn_acks != 0) r.server_isn = c.order.setup.server_start - 1;
    r.client_mss = c.options[0].mss;
    r.server_mss = c.options[1].mss;
    r.client_window = c.window[0].window;
    r.server_window = c.window[1].window;
    r.client_scale = shift(c.options[0].scale);
    r.server_scale = shift(c.options[1].scale);
    return r;
  endfunction

  function automatic record_interval_t interval(logic side, logic [7:0] how);
    record_interval_t r;
    r = '0;
    r.header = header(KIND_INTERVAL, 1'b0, 1'b0, side, 1'b0, how, job.old.order.generation);
    r.start = job.word.fine_start - 64'(intervals_back) * 64'(RecordFineIntervalNs);
    r.packets = job.old.counters[side].packets;
    r.payload = 48'(job.old.counters[side].payload);
    r.flight_max = 32'(job.old.interval.side[side].flight_max);
    r.window_min = job.old.interval.side[side].window_min;
    r.window_max = job.old.interval.side[side].window_max;
    r.rtt_min = job.old.interval.side[side].rtt_min;
    r.rtt_max = job.old.interval.side[side].rtt_max;
    r.rtt_count = job.old.interval.side[side].rtt_count;
    r.fine = 8'(job.old.interval.fine);
    r.ip_id = old_side[side].ip_id;
    return r;
  endfunction

  function automatic record_close_t close();
    record_close_t r;
    context_t c;
    c = job.old;
    r = '0;
    r.header = header(KIND_CLOSE, 1'b1, 1'b0, 1'b0, 1'b0, o.close_cause, c.order.generation);
    r.header.flags[FlagMergedBit] = c.interval.folded;
    r.last = now - 64'(48'(now[47:0] - job.lookup.last_seen));
    r.client_packets = c.counters[0].packets;
    r.server_packets = c.counters[1].packets;
    r.client_payload = 48'(c.counters[0].payload);
    r.server_payload = 48'(c.counters[1].payload);
    r.client_next = old_side[0].next;
    r.server_next = old_side[1].next;
    return r;
  endfunction

  function automatic record_close_more_t close_more();
    record_close_more_t r;
    context_t c;
    c = job.old;
    r = '0;
    r.header = header(KIND_CLOSE, 1'b0, 1'b1, 1'b0, 1'b0, o.close_cause, c.order.generation);
    r.client_dup_acks = 32'(c.counters[0].dup_acks);
    r.server_dup_acks = 32'(c.counters[1].dup_acks);
    r.client_zero_windows = 16'(c.counters[0].zero_windows);
    r.server_zero_windows = 16'(c.counters[1].zero_windows);
    r.client_small_windows = 16'(c.counters[0].small_windows);
    r.server_small_windows = 16'(c.counters[1].small_windows);
    r.client_copies = 16'(c.counters[0].copies);
    r.server_copies = 16'(c.counters[1].copies);
    r.bits[7:0] = {
      old_side[1].has_next,
      old_side[0].has_next,
      old_side[1].fin_acked,
      old_side[0].fin_acked,
      old_side[1].rst,
      old_side[0].rst,
      old_side[1].fin,
      old_side[0].fin
    };
    return r;
  endfunction

  logic ipv6, low_is_client;
  assign ipv6 = meta.key.low.addr[127:32] != 96'hffff;
  assign low_is_client = job.updated.order.client_is_low;

  function automatic record_open_t open();
    record_open_t r;
    r = '0;
    r.header = header(KIND_OPEN, 1'b1, 1'b0, s, ipv6, job.facts.open_how, job.updated.order.generation);
    r.client_addr = bytes16(low_is_client ? meta.key.low.addr : meta.key.high.addr);
    r.server_addr = bytes16(low_is_client ? meta.key.high.addr : meta.key.low.addr);
    r.client_port = low_is_client ? meta.key.low.port : meta.key.high.port;
    r.server_port = low_is_client ? meta.key.high.port : meta.key.low.port;
    r.protocol = meta.key.protocol;
    r.vlans = meta.key.vlans;
    return r;
  endfunction

  function automatic record_open_more_t open_more();
    record_open_more_t r;
    r = '0;
    r.header = header(KIND_OPEN, 1'b0, 1'b1, s, ipv6, job.facts.open_how, job.updated.order.generation);
    r.client_mac = bytes6(s ? meta.destination_mac : meta.source_mac);
    r.server_mac = bytes6(s ? meta.source_mac : meta.destination_mac);
    r.first_ttl = meta.ttl;
    r.first_port = 8'(meta.port);
    r.first_tcp_flags = meta.flags;
    r.first_seq = meta.seq;
    r.first_ack = meta.ack;
    r.first_length = 32'(meta.payload);
    r.first_wire = 32'(meta.wire_length);
    r.first_sent_by_server = 8'(s);
    return r;
  endfunction

  // What answers a repeat tells which copy it answers, unless its own place in the order matters more.
  function automatic logic holds_echo(logic [31:0] what);
    return what[WhatAcksRepeatBit] && !what[WhatGapBit] && !what[WhatBelowBit] && !what[WhatWildBit] &&
        !what[WhatIdsSkippedBit];
  endfunction

  // EVENT tells of the flow as it was before the packet; a new flow was empty.
  function automatic record_event_t event_record();
    record_event_t r;
    logic unseen;
    logic [15:0] id_step;
    logic [31:0] since;
    r = '0;
    id_step = meta.ip_id - old_side[s].ip_id;
    unseen = job.what[WhatAckUnseenBit] && !job.what[WhatGapBit] && !job.what[WhatBelowBit] && !job.what[WhatWildBit];
    since = now[31:0] - job.old.block[s].last;
    r.header = header(KIND_EVENT, job.records[JobEventMore], 1'b0, s, 1'b0, 8'd0, job.updated.order.generation);
    r.header.flags[FlagMergedBit] = job.interval.folded;
    r.what = job.what;
    r.seq = meta.seq;
    r.length = 32'(meta.payload);
    r.ip_id = meta.ip_id;
    r.ttl = meta.ttl;
    r.since_data = '1;
    if (!o.opened) begin
      r.expected = unseen ? old_side[!s].next : old_side[s].next;
      r.acked = old_side[!s].ack;
    end
    if (!job.facts.icmp) begin
      r.ack = meta.ack;
      r.tsval = stamp;
      r.window = meta.window;
      r.tcp_flags = meta.flags;
      if (!o.opened && !job.old.block[s].idle) r.since_data = since >> 6;
      if (!o.opened && !o.pending) r.dup_acks = 8'(job.old.window[!s].chain);
      if (!o.opened && meta.ip_id != 0 && old_side[s].ip_id != 0) begin
        if (id_step[15:8] == '1) r.id_step = ID_STEP_OVERTAKEN;
        else r.id_step = id_step[15:8] != 0 || &id_step[7:1] ? ID_STEP_FAR : id_step[7:0];
      end
    end
    return r;
  endfunction

  function automatic record_event_more_t event_more();
    record_event_more_t r;
    r = '0;
    r.header = header(KIND_EVENT, 1'b0, 1'b1, s, 1'b0, 8'd0, job.updated.order.generation);
    r.left0 = meta.options.sack[0].left;
    r.right0 = meta.options.sack[0].right;
    r.left1 = meta.options.sack[1].left;
    r.right1 = meta.options.sack[1].right;
    r.left2 = meta.options.sack[2].left;
    r.right2 = meta.options.sack[2].right;
    r.left3 = meta.options.sack[3].left;
    r.right3 = meta.options.sack[3].right;
    r.sack_count = 8'(meta.options.sack_count);
    r.scale = meta.options.scale;
    r.mss = meta.options.mss;
    r.sack_permitted = 8'(meta.options.sack_permitted);
    r.timestamps = 8'(meta.options.has_timestamps);
    return r;
  endfunction

  function automatic record_rtt_t rtt();
    record_rtt_t r;
    r = '0;
    r.header =
        header(KIND_RTT, 1'b0, 1'b0, job.round_trip.side, 1'b0, job.round_trip.how, job.updated.order.generation);
    r.rtt = 64'(job.round_trip.value);
    r.seq_end = job.round_trip.seq_end;
    r.ack = meta.ack;
    r.flight = o.flight_after[job.round_trip.side^(job.round_trip.how==RTT_HOW_ECHO)];
    r.window = meta.window;
    r.tcp_flags = meta.flags;
    return r;
  endfunction

  // BLOCK that the packet itself ends. Its block may be that packet alone: payload of a SYN, or of a client before the
  // handshake is done.
  function automatic record_block_t own_block();
    record_block_t r;
    r = block(job.updated, s, o.flight_after[s], job.block.own_cause, meta.ttl);
    r.bytes = own_bytes;
    // What was open in the context of a new flow is another's.
    if (o.opened || o.syn_block || o.own_block) r.header.flags[FlagMergedBit] = 1'b0;
    if (o.syn_block || o.own_block) begin
      r.first = now;
      r.last = now;
      r.seq = o.syn_block ? job.facts.seq_1 : o.new_start;
      r.packets = 16'd1;
      r.max_segment = 16'(job.facts.block_length);
    end
    return r;
  endfunction

  function automatic record_packet_t packet();
    record_packet_t r;
    r = '0;
    r.header = header(KIND_PACKET, meta.options.sack_count != 0, 1'b0, s, 1'b0, 8'd0, job.updated.order.generation);
    r.number = meta.number;
    r.seq = meta.seq;
    r.ack = meta.ack;
    r.length = 32'(meta.payload);
    r.tsval = meta.options.tsval;
    r.tsecr = meta.options.tsecr;
    r.wire_ = meta.wire_length > 20'hffff ? 16'hffff : meta.wire_length[15:0];
    r.window = meta.window;
    r.ip_id = meta.ip_id;
    r.ttl = meta.ttl;
    r.tos = meta.tos;
    r.tcp_flags = meta.flags;
    r.port = 8'(meta.port);
    r.option_bits = {5'd0, meta.options.incomplete, meta.options.sack_count != 0, meta.options.has_timestamps};
    return r;
  endfunction

  function automatic record_packet_more_t packet_more();
    record_packet_more_t r;
    r = '0;
    r.header = header(KIND_PACKET, 1'b0, 1'b1, s, 1'b0, 8'd0, job.updated.order.generation);
    r.left0 = meta.options.sack[0].left;
    r.right0 = meta.options.sack[0].right;
    r.left1 = meta.options.sack[1].left;
    r.right1 = meta.options.sack[1].right;
    r.left2 = meta.options.sack[2].left;
    r.right2 = meta.options.sack[2].right;
    r.left3 = meta.options.sack[3].left;
    r.right3 = meta.options.sack[3].right;
    r.sack_count = 8'(meta.options.sack_count);
    return r;
  endfunction

  // PORT is of no flow.
  function automatic record_port_t port_record();
    record_port_t r;
    r = '0;
    r.header = header(KIND_PORT, 1'b1, 1'b0, 1'b0, 1'b0, 8'(meta.port), '0);
    r.header.flow = '0;
    r.frames = job.port.frames;
    r.bytes = job.port.bytes;
    r.tracked = job.port.tracked;
    r.clamped = job.port.clamped;
    r.cut = job.port.cut;
    r.dropped = job.port.dropped;
    r.options_skipped = job.port.options_skipped;
    return r;
  endfunction

  function automatic record_port_more_t port_more();
    record_port_more_t r;
    r = '0;
    r.header = header(KIND_PORT, 1'b0, 1'b1, 1'b0, 1'b0, 8'(meta.port), '0);
    r.header.flow = '0;
    r.untracked = job.port.untracked;
    return r;
  endfunction

  logic [511:0] record;
  logic visited;
  logic [7:0] interval_how;
  assign visited = job.facts.visit;
  assign interval_how = visited ? 8'd2 : 8'd1;

  always_comb begin
    record = '0;
    unique case (int'(number))
      JobSetupClosed: record = setup(o.close_setup, '0, '0);
      JobSetupClosed + 1: record = setup_more(o.close_setup);
      JobBlockClient, JobBlockServer:
      record = block(job.old, number[0], o.flight_before[number[0]], visited ? BLOCK_END_IDLE : BLOCK_END_CLOSE, '0);
      JobSetupVisit: record = setup(SETUP_END_TIMEOUT, '0, '0);
      JobSetupVisit + 1: record = setup_more(SETUP_END_TIMEOUT);
      JobIntervalClosedClient, JobIntervalClosedServer: record = interval(number[0], 8'd3);
      JobClose: record = close();
      JobClose + 1: record = close_more();
      JobOpen: record = open();
      JobOpen + 1: record = open_more();
      JobSetup: record = setup(o.setup_cause, o.setup_cause == SETUP_END_ONE_SIDED ? '0 : now, meta.window);
      JobSetup + 1: record = setup_more(o.setup_cause);
      JobEvent: record = event_record();
      JobEventMore: record = event_more();
      JobRtt: record = rtt();
      JobTurn:
      record = block(
        job.updated,
        job.block.reset ? 1'b0 : !s,
        o.flight_after[job.block.reset?1'b0 : !s],
        job.block.reset ? BLOCK_END_CLOSE : BLOCK_END_TURN,
        '0
      );
      JobOwn: begin
        if (job.block.reset) record = block(job.updated, 1'b1, o.flight_after[1], BLOCK_END_CLOSE, '0);
        else record = own_block();
      end
      JobIntervalClient: record = interval(1'b0, interval_how);
      JobIntervalServer: record = interval(1'b1, interval_how);
      JobPacket: record = packet();
      JobPacketMore: record = packet_more();
      JobPort: record = port_record();
      JobPort + 1: record = port_more();
      default: record = '0;
    endcase
  end

  always_ff @(posedge clk) begin
    if (advance) begin
      m_valid  <= left != '0;
      m_record <= record;
      if (left != '0) begin
        left <= rest;
        sequence_number <= sequence_number + 1;
      end
    end
    if (take) begin
      job <= s_job;
      stamp <= holds_echo(s_job.what) ? s_job.word.meta.options.tsecr : s_job.word.meta.options.tsval;
      own_bytes <= s_own_bytes;
      left <= s_job.records;
      intervals_back <= s_job.word.fine_number - s_job.old.interval.number;
    end
    if (rst) begin
      m_valid <= 1'b0;
      left <= '0;
      sequence_number <= '0;
    end
  end

`ifndef SYNTHESIS
  logic waited;
  logic [511:0] was;
  always_ff @(posedge clk) begin
    waited <= m_valid && !m_ready && !rst;
    was <= m_record;
    if (waited && !rst) begin
      assert (m_valid && m_record == was)
      else $error("weir_formatter: a record changed while it waited");
    end
  end
`endif

endmodule

// verilator lint_on UNUSEDSIGNAL

`default_nettype wire
