// The context of a flow as the tracker's loops hold it (docs/src/flow-engine.md section 3), and what
// the loops tell each other about a word. Sides: 0 is the client, 1 the server.

`default_nettype none

// A package offers more constants than any one design uses.
// verilator lint_off UNUSEDPARAM

// Functions take structures whole.
// verilator lint_off UNUSEDSIGNAL

package weir_tracker_pkg;
  import weir_pkg::*;
  import weir_records_pkg::*;

  localparam logic [3:0] NoScale = 4'd15;
  localparam logic [23:0] NoRtt = '1;
  localparam int ChainMax = 63;
  // Times of 40 bits are given up when this old (section 3).
  localparam int TimeLimitBit = 38;
  // A server that goes on this long after its SYN-ACK was answered, seen or not.
  localparam int OneSidedBit = 32;
  localparam int DefaultMss = 536;
  localparam int BlockIdleNs = 1_000_000_000;

  // Bit 2 without bit 1: the setup is pending.
  typedef enum logic [2:0] {
    STATE_MID = 3'd0,
    STATE_UP = 3'd1,
    STATE_CLOSED_FIN = 3'd2,
    STATE_CLOSED_RST = 3'd3,
    STATE_SYN = 3'd4,
    STATE_SYN_ACK = 3'd5,
    STATE_OTHER = 3'd6
  } state_e;

  function automatic logic is_pending(state_e state);
    return state[2] && !state[1];
  endfunction

  // `a` after `b` in sequence space.
  function automatic logic after(logic [31:0] a, logic [31:0] b);
    logic [31:0] d;
    d = a - b;
    return d != 0 && !d[31];
  endfunction

  // |a - b| >= 2^30 as a signed number.
  function automatic logic is_far(logic [31:0] a, logic [31:0] b);
    logic [31:0] d;
    d = a - b;
    // The equality beside the subtraction, not behind it.
    return d[31] != d[30] || b == {a[31:30] + 2'd1, a[29:0]};
  endfunction

  // Section 4.5, 4.6, 4.7: order of segments, acknowledgments, state of the connection. Its sides are
  // 0 the low end of the key, 1 the high: which one sends a packet is known before the context.
  typedef struct packed {
    logic [31:0] next;
    logic [31:0] ack;
    logic [15:0] ip_id;

    logic has_next;
    logic has_ack;
    logic wild;
    logic wild_ack;
    logic fin;
    logic fin_acked;
    logic rst;
  } order_side_t;

  // What the setup keeps, in bits of later loops' fields; it holds only while the setup is pending.
  typedef struct packed {
    // SYNs of the client, SYN-ACKs of the server.
    logic [5:0] syns;
    logic [5:0] syn_acks;
    // First SYN's sequence number + 1, or the SYN-ACK's ack.
    logic [31:0] client_start;
    // First SYN-ACK's sequence number + 1.
    logic [31:0] server_start;
    logic [39:0] first_syn;
    logic [39:0] last_syn;
    logic [39:0] syn_ack;
    logic [13:0] syn_payload;
  } setup_t;

  typedef struct packed {
    logic [23:0] generation;
    // CLOSED_FIN shows in it one word late: see closing().
    state_e state;
    logic client_is_low;
    setup_t setup;
    order_side_t [1:0] side;
  } order_t;

  // Both FINs are acknowledged: the state is CLOSED_FIN from here on (section 4.10).
  function automatic logic closing(order_t o);
    return (o.state == STATE_UP || o.state == STATE_MID) && o.side[0].fin && o.side[0].fin_acked && o.side[1].fin &&
        o.side[1].fin_acked;
  endfunction
  function automatic state_e state_of(order_t o);
    return closing(o) ? STATE_CLOSED_FIN : o.state;
  endfunction

  // The fields of the client (0) or the server (1).
  function automatic order_side_t side_of(order_t o, logic role);
    return role == o.client_is_low ? o.side[1] : o.side[0];
  endfunction

  // Options of the SYNs; which window scale holds.
  typedef struct packed {
    logic [3:0] scale;
    logic [15:0] mss;
    logic sack_ok;
    logic timestamps;
    logic ecn;
    // Only while the setup is pending: options incomplete.
    logic cut;
  } options_side_t;
  typedef options_side_t [1:0] options_state_t;

  // Section 4.8, windows; section 4.6, duplicate ACKs and SACK.
  typedef struct packed {
    logic [15:0] window;
    // Duplicate ACKs in a row; 0 while the setup is pending.
    logic [5:0] chain;
    logic [11:0] sack_hash;
    logic zero;
    // `small` of the specification, a reserved word here.
    logic tiny;
  } window_side_t;
  typedef window_side_t [1:0] window_t;

  // The timed segment of each side.
  typedef struct packed {
    logic slot;
    // The slot is free and times an ACK without data: slot_seq is its TSval.
    logic echo;
    logic [31:0] slot_seq;
    logic [39:0] slot_time;
    logic [7:0] rtt_gate;
    // Something came again that no later ack has answered.
    logic repeated;
  } round_trip_side_t;
  typedef round_trip_side_t [1:0] round_trip_t;

  typedef struct packed {
    logic open;
    logic idle;
    logic full;
    logic [39:0] first;
    logic [31:0] last;
    logic [31:0] seq;
    logic [15:0] packets;
    logic [13:0] max;
    logic merged;
  } block_side_t;
  typedef block_side_t [1:0] block_t;

  typedef struct packed {
    logic active;
    logic [29:0] flight_max;
    logic [15:0] window_min;
    logic [15:0] window_max;
    logic [23:0] rtt_min;
    logic [23:0] rtt_max;
    logic [7:0] rtt_count;
  } interval_side_t;

  typedef struct packed {
    // Low bits of the number of the 10 ms in which it began; one is in progress if a side is active.
    logic [15:0] number;
    logic fine;
    logic trouble;
    // EVENTs were left out since the last one.
    logic folded;
    interval_side_t [1:0] side;
  } interval_t;

  typedef struct packed {
    logic [31:0] packets;
    logic [35:0] payload;
    logic [15:0] dup_acks;
    logic [12:0] zero_windows;
    logic [14:0] small_windows;
    logic [11:0] copies;
  } counters_side_t;
  typedef counters_side_t [1:0] counters_t;

  // A new flow has these (the order loop sets what its first packet says).
  localparam options_side_t NewOptionsSide = '{scale: NoScale, default: '0};
  localparam block_side_t NewBlockSide = '{idle: 1'b1, default: '0};
  localparam interval_side_t NewIntervalSide = '{window_min: '1, rtt_min: NoRtt, default: '0};

  typedef struct packed {
    order_t order;
    options_state_t options;
    window_t window;
    round_trip_t round_trip;
    block_t block;
    interval_t interval;
    counters_t counters;
  } context_t;

  // What to leave out because records cannot leave (section 8), each with those before it.
  typedef struct packed {
    logic event_;
    logic block;
    logic interval;
    logic rtt;
    logic packet;
  } shed_t;

  // What follows from the word alone, computed while the context is being read.
  typedef struct packed {
    // A TCP packet, one that is not TCP, an ICMP error, of or about a flow.
    logic tcp;
    logic other;
    logic icmp;
    // A visit to a flow, the end of one.
    logic visit;
    logic ended;
    logic fresh;
    logic expired;
    logic is_syn;
    logic is_rst;
    // An acknowledgment to look at.
    logic is_ack;
    logic fin;
    logic push;
    logic has_payload;
    // Payload, SYN or FIN: the segment takes sequence space.
    logic occupies;
    // COPY is possible.
    logic has_id;
    // Its SYN carries ECN (RFC 3168 6.1.1).
    logic ecn;
    logic [31:0] segment_end;
    logic [31:0] payload_end;
    // Data that is older makes its side idle (a visit).
    logic [31:0] idle_before;
    // What next of the sender becomes if the packet moves it.
    logic [31:0] next_value;
    // The sequence number after a SYN.
    logic [31:0] seq_1;
    logic [13:0] block_length;
    logic [3:0] scale;
    // 0: no SACK block.
    logic [11:0] sack_hash;
    logic dsack;
    // What the packet makes of an empty context (section 4.3).
    client_how_e open_how;
    state_e open_state;
    logic sender_is_client;
    shed_t shed;
  } facts_t;

  // What the order loop decides about a packet or visit, beside its new state.
  typedef struct packed {
    logic reuse;
    logic opened;
    // SYN packets (section 4.4).
    logic first_syn;
    logic again_syn;
    logic first_syn_ack;
    logic again_syn_ack;
    logic late_syn;
    logic other_syn;
    // Segments (section 4.5).
    logic data;
    logic distant;
    logic resync;
    logic below;
    logic partial;
    // Acknowledgment (section 4.6).
    logic acked;
    logic challenge;
    logic ack_far;
    logic ack_resync;
    logic ack_moves;
    // Ends of the setup, reset (sections 4.7, 4.9).
    logic client_ends;
    logic server_ends;
    logic times_out;
    logic wild_reset;
    logic resets;
  } order_decision_t;

  // From the order loop.
  typedef struct packed {
    logic sender;
    // Opens a flow; closes the one before.
    logic opened;
    logic closed;
    close_cause_e close_cause;
    setup_end_e close_setup;
    // Records of SETUP at the end of the old flow, by the packet or the visit.
    logic setup_closed;
    setup_end_e setup_cause;
    // The setup was pending before the packet's own end of it; is it still.
    logic pending;
    logic still_pending;
    logic leaves_setup;
    // Of the setup that is left: options of SYN and SYN-ACK were seen.
    logic had_syn;
    logic had_syn_ack;
    logic take_options;
    logic options_unknown;
    logic take_window;
    // Bits of EVENT.what that this loop knows.
    logic [31:0] what;
    logic new_bytes;
    logic [31:0] new_start;
    logic own_block;
    logic syn_block;
    // The segment ends its block if it has PSH or FIN.
    logic closes;
    // Its FIN set the next expected.
    logic fin_counted;
    // A COPY if the SACK option is the same, too.
    logic copy_if_sack;
    // The ACK counts; it moves on; it is a duplicate if window or SACK say so.
    logic ack_used;
    logic ack_moves;
    logic may_repeat;
    // A PROBE if the other side's window is closed.
    logic may_probe;
    // IDS_SKIPPED if the data before is old enough.
    logic ids_skipped;
    // Handshake samples: of the client's SYN, of the server's SYN-ACK.
    logic syn_answered;
    logic syn_ack_answered;
    // After the word: next of the sender.
    logic [31:0] sender_next;
    // Flight of both sides before and after the word.
    logic [1:0][31:0] flight_before;
    logic [1:0][31:0] flight_after;
  } order_out_t;

  typedef struct packed {
    logic [31:0] what;
    // The window conditions were looked at.
    logic counted;
    logic repeated;
    logic zero;
    logic tiny;
    // Window of the receiver in bytes, if known.
    logic receiver_known;
    logic [29:0] receiver_window;
    // Bytes in flight of the sender and the payload once more: what must not be beyond the window.
    logic [32:0] reach;
  } window_out_t;

  typedef struct packed {
    // A sample for the interval, of this side.
    logic sampled;
    logic side;
    logic [37:0] value;
    // It is also a record.
    logic written;
    rtt_how_e how;
    logic [31:0] seq_end;
    // The packet's ack is the first that can answer what the other side sent again.
    logic acks_repeat;
  } round_trip_out_t;

  typedef struct packed {
    logic [31:0] what;
    // By a visit; by the packet: of the other side, of its own, of both by RST.
    logic [1:0] idle_ends;
    logic turn;
    logic own;
    block_end_e own_cause;
    logic reset;
    // PSH did not end the block.
    logic merged;
  } block_out_t;

  typedef struct packed {
    logic ended;
    // A packet did not end the interval.
    logic stretched;
    // An EVENT is due; it is left out; others were before it.
    logic has_event;
    logic folds;
    logic folded;
    // The packet met trouble (section 5).
    logic trouble;
  } interval_out_t;

  // The context as the memory holds it: fields share bits where they are not alive at the same time.
  typedef struct packed {
    logic [31:0] packets;
    logic [35:0] payload;
    logic [15:0] dup_acks;
    logic [12:0] zero_windows;
    logic [14:0] small_windows;
    logic [11:0] copies;
    logic [31:0] next;
    logic [31:0] ack;
    logic [15:0] window;
    logic [3:0] scale;
    logic [15:0] mss;
    logic [15:0] ip_id;
    logic [5:0] chain;
    logic [11:0] sack_hash;
    logic [15:0] flags;
    logic [39:0] block_first;
    logic [31:0] block_last;
    logic [31:0] block_seq;
    logic [15:0] block_packets;
    logic [13:0] block_max;
    logic block_merged;
    logic repeated;
    logic echo;
    logic [31:0] slot_seq;
    logic [39:0] slot_time;
    logic [7:0] rtt_gate;
    logic [29:0] flight_max;
    logic [15:0] window_min;
    logic [15:0] window_max;
    logic [23:0] rtt_min;
    logic [23:0] rtt_max;
    logic [7:0] rtt_count;
  } stored_side_t;

  typedef struct packed {
    logic [23:0] generation;
    logic [3:0] state;
    logic client_is_low;
    logic [15:0] interval;
    logic fine;
    logic trouble;
    logic folded;
    logic [1:0] active;
    stored_side_t [1:0] side;
  } stored_t;

  function automatic stored_t store(context_t c);
    stored_t m;
    logic pending;
    pending = is_pending(c.order.state);
    m.generation = c.order.generation;
    m.state = {1'b0, state_of(c.order)};
    m.client_is_low = c.order.client_is_low;
    m.interval = c.interval.number;
    m.fine = c.interval.fine;
    m.trouble = c.interval.trouble;
    m.folded = c.interval.folded;
    for (int i = 0; i < 2; i++) begin
      m.active[i] = c.interval.side[i].active;
      m.side[i].packets = c.counters[i].packets;
      m.side[i].payload = c.counters[i].payload;
      m.side[i].dup_acks = c.counters[i].dup_acks;
      m.side[i].zero_windows = c.counters[i].zero_windows;
      m.side[i].small_windows = c.counters[i].small_windows;
      m.side[i].copies = c.counters[i].copies;
      m.side[i].next = c.order.side[i].next;
      m.side[i].ack = c.order.side[i].ack;
      m.side[i].window = c.window[i].window;
      m.side[i].scale = c.options[i].scale;
      m.side[i].mss = c.options[i].mss;
      m.side[i].ip_id = c.order.side[i].ip_id;
      if (pending) m.side[i].chain = i == 0 ? c.order.setup.syns : c.order.setup.syn_acks;
      else m.side[i].chain = c.window[i].chain;
      m.side[i].sack_hash = c.window[i].sack_hash;
      m.side[i].flags = {
        pending ? c.options[i].cut : c.order.side[i].wild_ack,
        c.options[i].ecn,
        c.options[i].timestamps,
        c.options[i].sack_ok,
        c.block[i].idle,
        c.order.side[i].wild,
        c.order.side[i].fin_acked,
        c.order.side[i].rst,
        c.order.side[i].fin,
        c.block[i].full,
        c.window[i].tiny,
        c.window[i].zero,
        c.round_trip[i].slot,
        c.block[i].open,
        c.order.side[i].has_ack,
        c.order.side[i].has_next
      };
      m.side[i].block_first = c.block[i].first;
      m.side[i].block_last = c.block[i].last;
      m.side[i].block_seq = c.block[i].seq;
      m.side[i].block_packets = c.block[i].packets;
      m.side[i].block_max = c.block[i].max;
      m.side[i].block_merged = c.block[i].merged;
      m.side[i].repeated = c.round_trip[i].repeated;
      m.side[i].echo = c.round_trip[i].echo;
      m.side[i].slot_seq = c.round_trip[i].slot_seq;
      m.side[i].slot_time = c.round_trip[i].slot_time;
      m.side[i].rtt_gate = c.round_trip[i].rtt_gate;
      m.side[i].flight_max = c.interval.side[i].flight_max;
      m.side[i].window_min = c.interval.side[i].window_min;
      m.side[i].window_max = c.interval.side[i].window_max;
      m.side[i].rtt_min = c.interval.side[i].rtt_min;
      m.side[i].rtt_max = c.interval.side[i].rtt_max;
      m.side[i].rtt_count = c.interval.side[i].rtt_count;
    end
    if (pending) begin
      m.side[0].block_first = c.order.setup.first_syn;
      m.side[0].block_seq = c.order.setup.client_start;
      m.side[0].block_max = c.order.setup.syn_payload;
      m.side[0].slot_time = c.order.setup.last_syn;
      m.side[1].slot_time = c.order.setup.syn_ack;
      m.side[1].slot_seq = c.order.setup.server_start;
    end
    return m;
  endfunction

  function automatic context_t load(stored_t m);
    context_t c;
    logic pending;
    c.order.generation = m.generation;
    c.order.state = state_e'(m.state[2:0]);
    pending = is_pending(c.order.state);
    c.order.client_is_low = m.client_is_low;
    c.order.setup.syns = m.side[0].chain;
    c.order.setup.syn_acks = m.side[1].chain;
    c.order.setup.first_syn = m.side[0].block_first;
    c.order.setup.client_start = m.side[0].block_seq;
    c.order.setup.syn_payload = m.side[0].block_max;
    c.order.setup.last_syn = m.side[0].slot_time;
    c.order.setup.syn_ack = m.side[1].slot_time;
    c.order.setup.server_start = m.side[1].slot_seq;
    c.interval.number = m.interval;
    c.interval.fine = m.fine;
    c.interval.trouble = m.trouble;
    c.interval.folded = m.folded;
    for (int i = 0; i < 2; i++) begin
      c.interval.side[i].active = m.active[i];
      c.counters[i].packets = m.side[i].packets;
      c.counters[i].payload = m.side[i].payload;
      c.counters[i].dup_acks = m.side[i].dup_acks;
      c.counters[i].zero_windows = m.side[i].zero_windows;
      c.counters[i].small_windows = m.side[i].small_windows;
      c.counters[i].copies = m.side[i].copies;
      c.order.side[i].next = m.side[i].next;
      c.order.side[i].ack = m.side[i].ack;
      c.window[i].window = m.side[i].window;
      c.options[i].scale = m.side[i].scale;
      c.options[i].mss = m.side[i].mss;
      c.order.side[i].ip_id = m.side[i].ip_id;

      c.window[i].chain = pending ? '0 : m.side[i].chain;
      c.window[i].sack_hash = m.side[i].sack_hash;
      c.options[i].cut = pending && m.side[i].flags[15];
      c.order.side[i].wild_ack = !pending && m.side[i].flags[15];
      {
        c.options[i].ecn,
        c.options[i].timestamps,
        c.options[i].sack_ok,
        c.block[i].idle,
        c.order.side[i].wild,
        c.order.side[i].fin_acked,
        c.order.side[i].rst,
        c.order.side[i].fin,
        c.block[i].full,
        c.window[i].tiny,
        c.window[i].zero,
        c.round_trip[i].slot,
        c.block[i].open,
        c.order.side[i].has_ack,
        c.order.side[i].has_next
      } = m.side[i].flags[14:0];
      c.block[i].first = m.side[i].block_first;
      c.block[i].last = m.side[i].block_last;
      c.block[i].seq = m.side[i].block_seq;
      c.block[i].packets = m.side[i].block_packets;
      c.block[i].max = m.side[i].block_max;
      c.block[i].merged = m.side[i].block_merged;
      c.round_trip[i].repeated = m.side[i].repeated;
      c.round_trip[i].echo = m.side[i].echo;
      c.round_trip[i].slot_seq = m.side[i].slot_seq;
      c.round_trip[i].slot_time = m.side[i].slot_time;
      c.round_trip[i].rtt_gate = m.side[i].rtt_gate;
      c.interval.side[i].flight_max = m.side[i].flight_max;
      c.interval.side[i].window_min = m.side[i].window_min;
      c.interval.side[i].window_max = m.side[i].window_max;
      c.interval.side[i].rtt_min = m.side[i].rtt_min;
      c.interval.side[i].rtt_max = m.side[i].rtt_max;
      c.interval.side[i].rtt_count = m.side[i].rtt_count;
    end
    return c;
  endfunction

  // Running counters of one port, as PORT carries them.
  typedef struct packed {
    logic [63:0] frames;
    logic [63:0] bytes;
    logic [63:0] tracked;
    logic [31:0] clamped;
    logic [31:0] cut;
    logic [31:0] dropped;
    logic [31:0] options_skipped;
    logic [UntrackedReasons-1:0][31:0] untracked;
  } port_counters_t;

  // Records that one word can make, in the order of section 6.
  localparam int JobSetupClosed = 0;
  localparam int JobBlockClient = 2;
  localparam int JobBlockServer = 3;
  localparam int JobSetupVisit = 4;
  localparam int JobIntervalClosedClient = 6;
  localparam int JobIntervalClosedServer = 7;
  localparam int JobClose = 8;
  localparam int JobOpen = 10;
  localparam int JobSetup = 12;
  localparam int JobEvent = 14;
  localparam int JobEventMore = 15;
  localparam int JobRtt = 16;
  localparam int JobTurn = 17;
  localparam int JobOwn = 18;
  localparam int JobIntervalClient = 19;
  localparam int JobIntervalServer = 20;
  localparam int JobPacket = 21;
  localparam int JobPacketMore = 22;
  localparam int JobPort = 23;
  localparam int JobRecords = 25;

  // A word that makes records, with all that they tell.
  typedef struct packed {
    // One bit for each record above; a record's continuation has the next bit.
    logic [JobRecords-1:0] records;
    word_t word;
    lookup_t lookup;
    facts_t facts;
    order_out_t order;
    block_out_t block;
    interval_out_t interval;
    round_trip_out_t round_trip;
    logic [31:0] what;
    context_t old;
    context_t updated;
    port_counters_t port;
  } job_t;

endpackage

// verilator lint_on UNUSEDSIGNAL
// verilator lint_on UNUSEDPARAM

`default_nettype wire
