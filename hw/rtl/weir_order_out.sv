// What later loops and the records need of the order loop, from what it decided: no loop of its own.
// Combinational.

`default_nettype none

// Structures are taken whole, whatever part of them is used.
// verilator lint_off UNUSEDSIGNAL

module weir_order_out
  import weir_pkg::*;
  import weir_records_pkg::*;
  import weir_tracker_pkg::*;
(
    input  wire word_t           word,
    input  wire facts_t          facts,
    input  wire order_decision_t decision,
    // Before the word (of the flow before, if the word opens one) and after it.
    input  wire order_t          old,
    input  wire order_t          updated,
    output order_out_t           out
);

  function automatic logic [31:0] flight(order_side_t sender, order_side_t receiver);
    logic [31:0] bytes;
    bytes = sender.next - receiver.ack;
    return (sender.has_next && receiver.has_ack && !bytes[31]) ? bytes : '0;
  endfunction

  // By roles.
  order_side_t [1:0] before_word, after_word;
  assign before_word = {side_of(old, 1'b1), side_of(old, 1'b0)};
  assign after_word  = {side_of(updated, 1'b1), side_of(updated, 1'b0)};

  logic opened, closed, s, pending, leaves, ack_used, keep_alive, fits;
  logic [31:0] distance;
  state_e old_state, state;
  order_side_t snd, rcv;
  setup_t setup;
  assign opened = decision.opened;
  assign closed = facts.expired || decision.reuse || facts.ended;
  assign s = word.meta.from_low != updated.client_is_low;
  assign old_state = state_of(old);
  // What the word met.
  assign state = opened ? facts.open_state : old_state;
  assign snd = opened ? '0 : word.meta.from_low ? old.side[0] : old.side[1];
  assign rcv = opened ? '0 : word.meta.from_low ? old.side[1] : old.side[0];
  assign setup = opened ? '0 : old.setup;
  assign pending = is_pending(state);
  assign leaves = decision.client_ends || decision.server_ends || decision.times_out || (decision.resets && pending);
  assign distance = snd.has_next ? word.meta.seq - snd.next : '0;
  assign ack_used = decision.acked && !decision.challenge && (!decision.ack_far || decision.ack_resync);
  assign keep_alive = facts.tcp && !facts.is_syn && !facts.is_rst && !decision.data && snd.has_next &&
      word.meta.seq == snd.next - 1;
  assign fits = after(facts.payload_end, snd.next);

  // IP id above that of the sender's packet before.
  logic [15:0] id_step;
  assign id_step = word.meta.ip_id - snd.ip_id;

  logic ahead, moved, new_bytes;
  // In order or a gap.
  assign ahead = decision.data && !decision.distant && !decision.below;
  // Payload or FIN set the next expected.
  assign moved = decision.resync || ahead || decision.partial;
  assign new_bytes = facts.has_payload && (decision.resync || ahead || (decision.partial && fits));

  always_comb begin
    out.sender = s;
    out.opened = opened;
    out.closed = closed;
    out.close_cause = CLOSE_CAUSE_REUSE;
    out.close_setup = SETUP_END_REUSE;
    if (facts.expired || facts.ended) begin
      out.close_setup = facts.expired ? SETUP_END_TIMEOUT : SETUP_END_END;
      unique case (old_state)
        STATE_CLOSED_FIN: out.close_cause = CLOSE_CAUSE_FIN;
        STATE_CLOSED_RST: out.close_cause = CLOSE_CAUSE_RST;
        default: begin
          if (facts.ended) out.close_cause = CLOSE_CAUSE_END;
          else out.close_cause = is_pending(old_state) ? CLOSE_CAUSE_HANDSHAKE : CLOSE_CAUSE_IDLE;
        end
      endcase
    end
    out.setup_closed = closed && is_pending(old_state);
    out.setup_cause  = SETUP_END_DONE;
    if (decision.server_ends) out.setup_cause = SETUP_END_ONE_SIDED;
    if (decision.resets) out.setup_cause = SETUP_END_RESET;
    if (decision.times_out) out.setup_cause = SETUP_END_TIMEOUT;
    out.pending = pending;
    out.still_pending = pending && !leaves;
    out.leaves_setup = leaves;
    out.had_syn = setup.syns != 0;
    out.had_syn_ack = setup.syn_acks != 0;
    out.take_options = decision.first_syn || decision.first_syn_ack || (decision.other_syn && !snd.has_next);
    out.options_unknown = decision.other_syn;
    out.take_window = decision.first_syn || decision.again_syn || decision.first_syn_ack || decision.again_syn_ack;
    out.new_bytes = new_bytes;
    out.new_start = (decision.partial || (ahead && distance != 0)) ? snd.next : word.meta.seq;
    out.own_block = pending && !leaves && !s && new_bytes;
    out.syn_block = facts.has_payload && (decision.first_syn || decision.first_syn_ack);
    out.fin_counted = facts.fin && moved;
    out.closes = moved || (decision.data && facts.fin && !snd.fin) ||
        (decision.below && facts.segment_end == after_word[s].next);
    out.copy_if_sack = facts.tcp && facts.has_id && !facts.occupies && snd.ip_id == word.meta.ip_id && snd.has_ack &&
        word.meta.ack == snd.ack;
    out.ack_used = ack_used;
    out.ack_moves = snd.has_ack && decision.ack_moves && word.meta.ack != snd.ack;
    out.may_repeat = ack_used && !facts.occupies && snd.has_ack && word.meta.ack == snd.ack && rcv.has_next &&
        after(rcv.next, snd.ack);
    out.may_probe = keep_alive || (decision.data && !decision.distant && word.meta.payload == 1 && !facts.fin &&
        (distance == 0 || distance == '1));
    // id_step from 2 to 17.
    out.ids_skipped = decision.data && snd.has_next && distance == 0 && facts.has_id && snd.ip_id != 0 &&
        id_step[15:5] == 0 && id_step[4] == (id_step[3:1] == 0);
    out.syn_answered = decision.first_syn_ack && setup.syns == 1;
    out.syn_ack_answered = decision.client_ends && state == STATE_SYN_ACK && setup.syn_acks == 1;
    for (int i = 0; i < 2; i++) begin
      out.flight_before[i] = flight(before_word[i], before_word[1-i]);
      out.flight_after[i]  = flight(after_word[i], after_word[1-i]);
    end
    out.sender_next = after_word[s].next;

    out.what = '0;
    out.what[WhatIcmpBit] = facts.icmp;
    if (facts.tcp) begin
      out.what[WhatCopyBit] = facts.has_id && facts.occupies && snd.ip_id == word.meta.ip_id && snd.has_next &&
          facts.segment_end == snd.next;
      out.what[WhatSynRepeatBit] = decision.again_syn || (decision.late_syn && !facts.is_ack);
      out.what[WhatSynAckRepeatBit] = decision.again_syn_ack || (decision.late_syn && facts.is_ack);
      out.what[WhatSynOtherBit] = decision.other_syn;
      out.what[WhatSynDataBit] = facts.is_syn && facts.has_payload;
      out.what[WhatWildBit] = decision.distant || decision.wild_reset;
      out.what[WhatResyncBit] = decision.resync || decision.ack_resync;
      out.what[WhatGapBit] = ahead && distance != 0;
      out.what[WhatBelowBit] = decision.below || keep_alive;
      out.what[WhatPartialBit] = decision.partial;
      out.what[WhatFinBit] = decision.data && facts.fin && !snd.fin;
      out.what[WhatFinRepeatBit] = decision.data && facts.fin && snd.fin;
      out.what[WhatWildAckBit] = decision.challenge || decision.ack_far;
      out.what[WhatAckUnseenBit] = ack_used && rcv.has_next && after(word.meta.ack, rcv.next) &&
          !(snd.has_ack && after(snd.ack, rcv.next));
      out.what[WhatAcksMoreBit] = after_word[s].has_ack && (!snd.has_ack || after_word[s].ack != snd.ack);
      out.what[WhatRstBit] = facts.is_rst;
      out.what[WhatPushBit] = facts.push;
      out.what[WhatExpectedUnknownBit] = !snd.has_next;
      out.what[WhatAckedUnknownBit] = !rcv.has_ack;
    end
  end

endmodule

// verilator lint_on UNUSEDSIGNAL

`default_nettype wire
