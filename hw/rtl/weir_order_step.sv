// What a word makes of the order loop's fields: sections 4.4 to 4.7 and 4.9 of docs/src/flow-engine.md, but
// for what opens a flow. Combinational.
//
// Built for depth: comparisons of sequence numbers start at `current` and stand beside each other;
// every number that a field can become is known from the word.

`default_nettype none

// Structures are taken whole, whatever part of them is used.
// verilator lint_off UNUSEDSIGNAL

module weir_order_step
  import weir_pkg::*;
  import weir_records_pkg::*;
  import weir_tracker_pkg::*;
(
    input  wire word_t      word,
    input  wire facts_t     facts,
    input  wire order_t     current,
    output order_t          next_state,
    output order_decision_t decision
);

  logic [39:0] now;
  logic [31:0] seq, ack;
  logic s, pending, segment;
  order_side_t snd, rcv;
  assign now = word.meta.timestamp[39:0];
  assign seq = word.meta.seq;
  assign ack = word.meta.ack;
  // The sender is the server.
  assign s = word.meta.from_low != current.client_is_low;
  assign snd = word.meta.from_low ? current.side[0] : current.side[1];
  assign rcv = word.meta.from_low ? current.side[1] : current.side[0];
  assign pending = is_pending(current.state);
  assign segment = facts.tcp && !facts.is_syn && !facts.is_rst;

  // What the packet's numbers are to those of each end, if that end sends it or receives it. For both ends at
  // once: the choice of the end stands behind the subtractions.
  typedef struct packed {
    // Sender: before next; far from it; ends at it; ends beyond it; is close behind it (section 4.2).
    logic behind;
    logic distant;
    logic equal_end;
    logic beyond;
    logic close_by;
    // Sender: no receiver would take its RST.
    logic wild_reset;
    // Sender: its IP id is 1 to 256 below the newest.
    logic overtaken;
    // Sender: ends at what the other end acknowledged so far.
    logic end_acked;
    // Sender: the ack is before its highest; far from it.
    logic ack_behind;
    logic ack_distant;
    // Receiver: the ack is its next; beyond it.
    logic ack_equal;
    logic ack_beyond;
    // Receiver: what the other end acknowledged so far is its next.
    logic all_acked;
  } relation_t;

  relation_t [1:0] relation;
  for (genvar i = 0; i < 2; i++) begin : gen_relation
    logic [31:0] distance, ahead, to_end, repeated, advance, to_next;
    assign distance = seq - current.side[i].next;
    assign ahead    = current.side[i].next - seq;
    assign to_end   = facts.segment_end - current.side[i].next;
    assign repeated = current.side[i].next - facts.seq_1;
    assign advance  = ack - current.side[i].ack;
    assign to_next  = ack - current.side[i].next;
    // Less one.
    logic [15:0] ids_back;
    assign ids_back = current.side[i].ip_id + ~word.meta.ip_id;
    assign relation[i] = '{
            behind: current.side[i].has_next && distance[31],
            distant: current.side[i].has_next && is_far(seq, current.side[i].next),
            equal_end: facts.segment_end == current.side[i].next,
            beyond: !to_end[31],
            close_by: current.side[i].has_next && (repeated[31:16] == 0 || repeated == 32'h1_0000),
            wild_reset: current.side[i].has_next && distance[31:16] != 0 && ahead[31:16] != 0,
            overtaken: current.side[i].ip_id != 0 && word.meta.ip_id != 0 && ids_back[15:8] == 0,
            end_acked: current.side[1-i].has_ack && facts.segment_end == current.side[1-i].ack,
            ack_behind: advance[31],
            ack_distant: current.side[i].has_ack && is_far(ack, current.side[i].ack),
            ack_equal: current.side[i].next == ack,
            ack_beyond: !to_next[31] && ack != current.side[i].next,
            all_acked: current.side[i].next == current.side[1-i].ack
        };
  end
  relation_t sends, receives;
  assign sends = word.meta.from_low ? relation[0] : relation[1];
  assign receives = word.meta.from_low ? relation[1] : relation[0];

  // Section 4.5.
  logic behind, distant, equal_end;
  assign behind = sends.behind;
  assign distant = sends.distant;
  assign equal_end = sends.equal_end;

  always_comb begin
    decision.data = segment && (facts.has_payload || facts.fin);
    decision.distant = decision.data && distant;
    decision.resync = decision.data && distant && snd.wild;
    decision.below = decision.data && !distant && behind;
    decision.partial = decision.data && !distant && behind && !equal_end && sends.beyond;
  end

  // Section 4.4: the handshake. `answers`: initial sequence number < ack <= next of the client.
  logic from_isn_wraps, answers, again_start;
  logic [31:0] from_isn;
  assign from_isn = ack - current.setup.client_start;
  assign from_isn_wraps = current.setup.client_start == ack - 32'h7fff_ffff;
  assign answers = current.setup.syns == 0 || (!from_isn[31] && !from_isn_wraps && !receives.ack_beyond);
  assign again_start = current.setup.server_start == facts.seq_1;

  logic syn, copy, syn_known;
  assign syn  = facts.tcp && facts.is_syn;
  assign copy = facts.has_id && facts.occupies && snd.ip_id == word.meta.ip_id && snd.has_next && equal_end;
  always_comb begin
    decision.first_syn = syn && !facts.is_ack && pending && !s && current.setup.syns == 0;
    decision.again_syn = syn && !facts.is_ack && pending && !s && current.setup.syns != 0;
    decision.first_syn_ack = syn && facts.is_ack && pending && s && current.setup.syn_acks == 0 && answers;
    decision.again_syn_ack = syn && facts.is_ack && current.state == STATE_SYN_ACK && s &&
        current.setup.syn_acks != 0 && again_start;
    decision.late_syn = syn && !pending && sends.close_by;
    syn_known = decision.first_syn || decision.again_syn || decision.first_syn_ack || decision.again_syn_ack ||
        decision.late_syn;
    decision.other_syn = syn && !syn_known;
  end

  // Section 4.6.
  logic ack_far;
  assign ack_far = sends.ack_distant;
  always_comb begin
    decision.acked = facts.tcp && facts.is_ack && (!facts.is_syn || syn_known);
    decision.challenge = decision.acked && pending && s && !answers;
    decision.ack_far = decision.acked && !decision.challenge && ack_far;
    decision.ack_resync = decision.ack_far && !pending && snd.wild_ack;
    decision.ack_moves = decision.acked && !decision.challenge &&
        (!snd.has_ack || (ack_far ? !pending && snd.wild_ack : !sends.ack_behind));
  end

  // Sections 4.7 and 4.9.
  logic wild_reset, unseen;
  logic [39:0] since_syn_ack, since_syn;
  assign since_syn_ack = now - current.setup.syn_ack;
  assign since_syn = now - current.setup.first_syn;
  assign unseen = rcv.has_next && receives.ack_beyond;
  assign wild_reset = sends.wild_reset;
  always_comb begin
    decision.client_ends = segment && facts.is_ack && pending && !s;
    decision.server_ends = segment && facts.is_ack && current.state == STATE_SYN_ACK && s &&
        (unseen || since_syn_ack[39:OneSidedBit] != 0);
    decision.times_out = facts.visit && pending &&
        (current.setup.syns != 0 ? since_syn[39:TimeLimitBit] != 0 : since_syn_ack[39:TimeLimitBit] != 0);
    decision.wild_reset = facts.tcp && facts.is_rst && wild_reset;
    decision.resets = facts.tcp && facts.is_rst && !wild_reset;
    decision.reuse = 1'b0;
    decision.opened = 1'b0;
  end

  logic next_moves, peer_moves, eq_moved, eq_kept, ack_used;
  // Not distant: in order or a gap, or more than a repeat.
  assign next_moves = decision.data ? (distant ? snd.wild : !behind || (!equal_end && sends.beyond)) :
      syn ? decision.first_syn || decision.first_syn_ack || (decision.other_syn && !snd.has_next) :
      segment && !snd.has_next;
  assign peer_moves = decision.first_syn_ack && !rcv.has_next;
  assign ack_used = decision.acked && !decision.challenge && (!ack_far || (!pending && snd.wild_ack));
  assign eq_moved = rcv.fin && receives.ack_equal;
  assign eq_kept = rcv.fin && receives.all_acked;

  order_side_t sent, received;
  always_comb begin
    sent = snd;
    if (next_moves) begin
      sent.next = facts.next_value;
      sent.has_next = 1'b1;
    end
    if (facts.tcp && !sends.overtaken) sent.ip_id = word.meta.ip_id;
    if (decision.data) begin
      sent.wild = distant && !snd.wild;
      if (facts.fin && (!distant || snd.wild)) sent.fin = 1'b1;
      if (facts.fin && next_moves) sent.fin_acked = sends.end_acked;
    end
    if (decision.acked && !decision.challenge) begin
      sent.has_ack = 1'b1;
      if (snd.has_ack && !pending) sent.wild_ack = ack_far && !snd.wild_ack;
    end
    if (decision.ack_moves) sent.ack = ack;
    if (decision.resets) sent.rst = 1'b1;

    received = rcv;
    if (peer_moves) begin
      received.next = ack;
      received.has_next = 1'b1;
    end
    if (ack_used) received.fin_acked = decision.ack_moves ? eq_moved : eq_kept;
  end

  always_comb begin
    next_state = current;
    next_state.state = state_of(current);
    next_state.side[0] = word.meta.from_low ? sent : received;
    next_state.side[1] = word.meta.from_low ? received : sent;
    if (decision.first_syn) begin
      next_state.setup.first_syn = now;
      next_state.setup.client_start = facts.seq_1;
      next_state.setup.syn_payload = facts.block_length;
    end
    if (decision.first_syn || (decision.again_syn && current.setup.syn_acks == 0 && !copy)) begin
      next_state.setup.last_syn = now;
    end
    if ((decision.first_syn || decision.again_syn) && !copy && current.setup.syns != 6'(ChainMax)) begin
      next_state.setup.syns = current.setup.syns + 1;
    end
    if (decision.first_syn_ack) begin
      next_state.setup.syn_acks = 6'd1;
      next_state.setup.syn_ack = now;
      next_state.setup.server_start = facts.seq_1;
      next_state.state = STATE_SYN_ACK;
    end
    if (peer_moves) next_state.setup.client_start = ack;
    if (decision.again_syn_ack && !copy && current.setup.syn_acks != 6'(ChainMax)) begin
      next_state.setup.syn_acks = current.setup.syn_acks + 1;
    end
    if (decision.client_ends || decision.server_ends || decision.times_out) next_state.state = STATE_UP;
    if (decision.resets) next_state.state = STATE_CLOSED_RST;
  end

endmodule

// verilator lint_on UNUSEDSIGNAL

`default_nettype wire
