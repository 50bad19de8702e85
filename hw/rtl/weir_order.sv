// The order loop of the tracker: sections 4.2 to 4.7 and 4.9 of docs/src/flow-engine.md. One clock;
// `current` is the context's state as the word finds it, `next_state` as it leaves it. Combinational.

`default_nettype none

// Structures are taken whole, whatever part of them is used.
// verilator lint_off UNUSEDSIGNAL

module weir_order
  import weir_pkg::*;
  import weir_records_pkg::*;
  import weir_tracker_pkg::*;
(
    input  wire word_t  word,
    input  wire facts_t facts,
    input  wire order_t current,
    output order_t      next_state,
    output order_out_t  out
);

  function automatic logic [31:0] flight(order_side_t sender, order_side_t receiver);
    logic [31:0] bytes;
    bytes = sender.next - receiver.ack;
    return (sender.has_next && receiver.has_ack && !bytes[31]) ? bytes : '0;
  endfunction

  // Section 4.2: the SYN can be one of the connection in progress.
  function automatic logic repeats(order_side_t side, logic [31:0] seq_1);
    logic [31:0] distance;
    distance = side.next - seq_1;
    return side.has_next && distance <= 32'h1_0000;
  endfunction

  logic [39:0] now;
  assign now = word.meta.timestamp[39:0];

  // The state that the packet meets: the context's, or that of a flow it opens.
  order_t met;
  logic   reuse;
  logic s, r;
  logic old_sender;

  always_comb begin
    old_sender = word.meta.from_low != current.client_is_low;
    reuse = facts.tcp && !facts.fresh && facts.is_syn && !repeats(current.side[old_sender], facts.seq_1);
    if (word.meta.flags[TcpAckBit]) begin
      reuse &= current.state == STATE_CLOSED_FIN || current.state == STATE_CLOSED_RST;
    end else begin
      reuse &= !(current.state == STATE_SYN && old_sender);
    end

    met = current;
    if (facts.fresh || reuse) begin
      met = '{state: facts.open_state, default: '0};
      met.generation = current.generation + 1;
      met.client_is_low = word.meta.from_low == facts.sender_is_client;
    end
    s = word.meta.from_low != met.client_is_low;
    r = !s;
  end

  // Of the side that sends and of the one that receives, before the word.
  order_side_t snd, rcv;
  assign snd = met.side[s];
  assign rcv = met.side[r];

  logic pending;
  assign pending = is_pending(met.state);

  // Section 4.4.
  logic answers, copy_occupying, copy;
  logic first_syn, again_syn, first_syn_ack, again_syn_ack, late_syn, other_syn;
  always_comb begin
    answers = met.side[0].setups == 0 ||
        (after(word.meta.ack, met.setup.client_start - 1) && !after(word.meta.ack, met.side[0].next));
    copy_occupying = facts.has_id && facts.occupies && snd.ip_id == word.meta.ip_id && snd.has_next &&
        facts.segment_end == snd.next;
    copy = copy_occupying;
    first_syn = 1'b0;
    again_syn = 1'b0;
    first_syn_ack = 1'b0;
    again_syn_ack = 1'b0;
    late_syn = 1'b0;
    other_syn = 1'b0;
    if (facts.tcp && facts.is_syn) begin
      if (!facts.is_ack && !s && pending) begin
        first_syn = snd.setups == 0;
        again_syn = snd.setups != 0;
      end else if (facts.is_ack && s && pending && snd.setups == 0 && answers) begin
        first_syn_ack = 1'b1;
      end else if (facts.is_ack && s && met.state == STATE_SYN_ACK && snd.setups != 0 &&
                   met.setup.server_start == facts.seq_1) begin
        again_syn_ack = 1'b1;
      end else if (!pending && repeats(snd, facts.seq_1)) begin
        late_syn = 1'b1;
      end else begin
        other_syn = 1'b1;
      end
    end
  end

  // Section 4.5.
  logic [31:0] d;
  logic data, far, resync, is_gap, is_below, is_partial, in_order, keep_alive;
  always_comb begin
    d = snd.has_next ? word.meta.seq - snd.next : '0;
    data = facts.tcp && !facts.is_syn && !facts.is_rst && (facts.has_payload || facts.fin);
    far = data && is_far(d);
    resync = far && snd.wild;
    is_gap = data && !far && !d[31] && d != 0;
    is_below = data && !far && d[31];
    is_partial = is_below && after(facts.segment_end, snd.next);
    in_order = data && !far && d == 0;
    keep_alive = facts.tcp && !facts.is_syn && !facts.is_rst && !data && snd.has_next && word.meta.seq == snd.next - 1;
  end

  // Section 4.6.
  logic acked, challenge, ack_far, ack_resync, ack_moves, ack_used;
  logic [31:0] advance;
  always_comb begin
    acked = facts.tcp && facts.is_ack && !other_syn;
    challenge = acked && pending && s && !answers;
    advance = word.meta.ack - snd.ack;
    ack_far = acked && !challenge && snd.has_ack && is_far(advance);
    ack_resync = ack_far && !pending && snd.wild_ack;
    ack_moves = acked && !challenge && (!snd.has_ack || ack_resync || (!ack_far && !advance[31] && advance != 0));
    ack_used = acked && !challenge && (!ack_far || ack_resync);
  end

  // Section 4.7 and 4.9.
  logic client_ends, server_ends, wild_reset, resets, times_out, leaves_setup;
  logic [31:0] rst_distance;
  logic [39:0] since_syn_ack, since_setup;
  always_comb begin
    since_syn_ack = now - met.setup.syn_ack;
    since_setup = met.side[0].setups != 0 ? now - met.setup.first_syn : since_syn_ack;
    client_ends = facts.tcp && pending && facts.is_ack && !facts.is_syn && !s;
    server_ends = facts.tcp && met.state == STATE_SYN_ACK && facts.is_ack && !facts.is_syn && s &&
        ((rcv.has_next && after(word.meta.ack, rcv.next)) || since_syn_ack[39:OneSidedBit] != 0);
    rst_distance = word.meta.seq - snd.next;
    wild_reset = snd.has_next && rst_distance[31:16] != 16'h0000 &&
        !(rst_distance[31:16] == 16'hffff && rst_distance[15:0] != 0);
    resets = facts.tcp && facts.is_rst && !wild_reset;
    times_out = facts.visit && pending && since_setup[39:TimeLimitBit] != 0;
    leaves_setup = client_ends || server_ends || (resets && pending) || times_out;
  end

  always_comb begin
    next_state = met;
    if (facts.tcp) begin
      // SYN packets.
      if (first_syn) begin
        next_state.side[0].next = facts.segment_end;
        next_state.side[0].has_next = 1'b1;
        next_state.setup.first_syn = now;
        next_state.setup.last_syn = now;
        next_state.setup.client_start = facts.seq_1;
        next_state.setup.syn_payload = facts.block_length;
      end
      if (again_syn && met.side[1].setups == 0 && !copy) next_state.setup.last_syn = now;
      if ((first_syn || again_syn) && !copy && snd.setups != 6'(ChainMax)) begin
        next_state.side[0].setups = snd.setups + 1;
      end
      if (first_syn_ack) begin
        next_state.side[1].next = facts.segment_end;
        next_state.side[1].has_next = 1'b1;
        next_state.side[1].setups = 6'd1;
        next_state.setup.syn_ack = now;
        next_state.setup.server_start = facts.seq_1;
        next_state.state = STATE_SYN_ACK;
        if (!rcv.has_next) begin
          next_state.side[0].next = word.meta.ack;
          next_state.side[0].has_next = 1'b1;
          next_state.setup.client_start = word.meta.ack;
        end
      end
      if (again_syn_ack && !copy && snd.setups != 6'(ChainMax)) next_state.side[1].setups = snd.setups + 1;
      if (other_syn && !snd.has_next) begin
        next_state.side[s].next = facts.segment_end;
        next_state.side[s].has_next = 1'b1;
      end
      next_state.side[s].ip_id = word.meta.ip_id;

      // Segments.
      if (data) begin
        if (far) next_state.side[s].wild = !snd.wild;
        else next_state.side[s].wild = 1'b0;
        if (resync || is_gap || is_partial || in_order) next_state.side[s].next = facts.segment_end;
        if (is_gap || in_order) next_state.side[s].has_next = 1'b1;
        if (facts.fin && !snd.fin && (!far || resync)) next_state.side[s].fin = 1'b1;
      end else if (!facts.is_syn && !facts.is_rst && !snd.has_next) begin
        next_state.side[s].next = word.meta.seq;
        next_state.side[s].has_next = 1'b1;
      end

      // Acknowledgment.
      if (acked && !challenge) begin
        if (!snd.has_ack) next_state.side[s].has_ack = 1'b1;
        else if (!pending) next_state.side[s].wild_ack = ack_far && !snd.wild_ack;
        if (ack_moves) next_state.side[s].ack = word.meta.ack;
      end
      if (ack_used) begin
        next_state.side[r].fin_acked = rcv.fin && rcv.next == (ack_moves ? word.meta.ack : snd.ack);
      end

      if (resets) begin
        next_state.side[s].rst = 1'b1;
        next_state.state = STATE_CLOSED_RST;
      end
      if (client_ends || server_ends) next_state.state = STATE_UP;
    end
    if (times_out) next_state.state = STATE_UP;
    if (leaves_setup) begin
      for (int i = 0; i < 2; i++) begin
        next_state.side[i].setups   = '0;
        next_state.side[i].wild_ack = 1'b0;
      end
    end
    if (facts.tcp && (next_state.state == STATE_UP || next_state.state == STATE_MID)) begin
      if (next_state.side[0].fin && next_state.side[0].fin_acked && next_state.side[1].fin &&
          next_state.side[1].fin_acked) begin
        next_state.state = STATE_CLOSED_FIN;
      end
    end
  end

  // What the later loops and the records need.
  logic fits, new_bytes, still_pending, opened, closed;
  assign fits = after(facts.payload_end, snd.next);
  assign new_bytes = facts.has_payload && (resync || is_gap || in_order || (is_partial && fits));
  assign still_pending = pending && !leaves_setup;
  assign opened = facts.fresh || reuse;
  assign closed = facts.expired || reuse || facts.ended;

  always_comb begin
    out.sender = s;
    out.opened = opened;
    out.closed = closed;
    out.close_cause = CLOSE_CAUSE_END;
    out.close_setup = SETUP_END_END;
    if (facts.expired || facts.ended) begin
      if (facts.expired) begin
        out.close_setup = SETUP_END_TIMEOUT;
        out.close_cause = is_pending(current.state) ? CLOSE_CAUSE_HANDSHAKE : CLOSE_CAUSE_IDLE;
      end
      if (current.state == STATE_CLOSED_FIN) out.close_cause = CLOSE_CAUSE_FIN;
      if (current.state == STATE_CLOSED_RST) out.close_cause = CLOSE_CAUSE_RST;
    end else begin
      out.close_cause = CLOSE_CAUSE_REUSE;
      out.close_setup = SETUP_END_REUSE;
    end
    out.setup_closed = closed && is_pending(current.state);
    out.pending = pending;
    out.setup_cause = SETUP_END_DONE;
    if (server_ends) out.setup_cause = SETUP_END_ONE_SIDED;
    if (resets) out.setup_cause = SETUP_END_RESET;
    if (times_out) out.setup_cause = SETUP_END_TIMEOUT;
    out.leaves_setup = leaves_setup;
    out.still_pending = still_pending;
    out.had_syn = met.side[0].setups != 0;
    out.had_syn_ack = met.side[1].setups != 0;
    out.take_options = first_syn || first_syn_ack || (other_syn && !snd.has_next);
    out.options_unknown = other_syn;
    out.take_window = first_syn || again_syn || first_syn_ack || again_syn_ack;
    out.new_bytes = new_bytes;
    out.new_start = (is_gap || is_partial) ? snd.next : word.meta.seq;
    out.own_block = still_pending && !s && new_bytes;
    out.syn_block = facts.tcp && facts.is_syn && facts.has_payload && (first_syn || first_syn_ack);
    out.copy_if_sack = facts.tcp && facts.has_id && !facts.occupies && snd.ip_id == word.meta.ip_id && snd.has_ack &&
        word.meta.ack == snd.ack;
    out.ack_moves = snd.has_ack && ack_moves;
    out.ack_used = ack_used;
    out.may_repeat = ack_used && !facts.occupies && snd.has_ack && word.meta.ack == snd.ack && rcv.has_next &&
        after(rcv.next, snd.ack);
    out.may_probe = keep_alive || (data && !far && word.meta.payload == 1 && !facts.fin && (d == 0 || d == '1));
    out.syn_answered = first_syn_ack && rcv.setups == 1;
    out.syn_ack_answered = client_ends && met.state == STATE_SYN_ACK && met.side[1].setups == 1;
    for (int i = 0; i < 2; i++) begin
      out.flight_before[i] = flight(current.side[i], current.side[1-i]);
      out.flight_after[i]  = flight(next_state.side[i], next_state.side[1-i]);
    end

    out.what = '0;
    out.what[WhatIcmpBit] = facts.icmp;
    if (facts.tcp) begin
      out.what[WhatCopyBit] = copy_occupying;
      out.what[WhatSynRepeatBit] = again_syn || (late_syn && !facts.is_ack);
      out.what[WhatSynAckRepeatBit] = again_syn_ack || (late_syn && facts.is_ack);
      out.what[WhatSynOtherBit] = other_syn;
      out.what[WhatSynDataBit] = facts.is_syn && facts.has_payload;
      out.what[WhatWildBit] = far || (facts.is_rst && wild_reset);
      out.what[WhatResyncBit] = resync || ack_resync;
      out.what[WhatGapBit] = is_gap;
      out.what[WhatBelowBit] = is_below || keep_alive;
      out.what[WhatPartialBit] = is_partial;
      out.what[WhatFinBit] = data && facts.fin && !snd.fin;
      out.what[WhatFinRepeatBit] = data && facts.fin && snd.fin;
      out.what[WhatWildAckBit] = challenge || ack_far;
      out.what[WhatAckUnseenBit] = ack_used && rcv.has_next && after(word.meta.ack, rcv.next) &&
          !(snd.has_ack && after(snd.ack, rcv.next));
      out.what[WhatRstBit] = facts.is_rst;
      out.what[WhatPushBit] = facts.push;
      out.what[WhatExpectedUnknownBit] = !snd.has_next;
      out.what[WhatAckedUnknownBit] = !rcv.has_ack;
    end
  end

endmodule

// verilator lint_on UNUSEDSIGNAL

`default_nettype wire
