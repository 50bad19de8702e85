// The round-trip loop of the tracker: one timed segment per side (sections 4.6 and 4.8 of
// docs/src/flow-engine.md; Karn's rule, RFC 6298 3), and the samples of the setup. One clock, after the
// window loop. Combinational.

`default_nettype none

// Structures are taken whole, whatever part of them is used.
// verilator lint_off UNUSEDSIGNAL

module weir_round_trip
  import weir_pkg::*;
  import weir_records_pkg::*;
  import weir_tracker_pkg::*;
(
    input  wire word_t              word,
    input  wire facts_t             facts,
    input  wire order_out_t         order,
    input  wire setup_t             setup,
    input  wire logic        [31:0] what,
    input  wire round_trip_t        current,
    output round_trip_t             next_state,
    output round_trip_out_t         out
);

  round_trip_t met;
  logic s, r;
  logic [39:0] now, age;
  logic answered, slot_left, gate;
  logic [7:0] gate_now;

  assign met = order.opened ? '0 : current;
  assign s = order.sender;
  assign r = !order.sender;
  assign now = word.meta.timestamp[39:0];
  assign gate_now = word.meta.timestamp[27:20];

  assign answered = facts.tcp && order.ack_used && met[r].slot && !order.pending && !after(
      met[r].slot_seq, word.meta.ack
  );
  logic [1:0][39:0] visit_age;
  assign visit_age = {now - met[1].slot_time, now - met[0].slot_time};
  assign gate = gate_now != met[r].rtt_gate;

  always_comb begin
    if (order.syn_answered) age = now - setup.last_syn;
    else if (order.syn_ack_answered) age = now - setup.syn_ack;
    else age = now - met[r].slot_time;
    out.sampled = (answered || order.syn_answered || order.syn_ack_answered) && age[39:TimeLimitBit] == 0;
    out.value = age[37:0];
    out.side = order.syn_answered ? 1'b0 : order.syn_ack_answered ? 1'b1 : r;
    out.written = out.sampled && (!answered || gate);
    out.how = answered ? RTT_HOW_DATA : RTT_HOW_HANDSHAKE;
    if (order.syn_answered) out.seq_end = word.meta.ack;
    else if (order.syn_ack_answered) out.seq_end = setup.server_start;
    else out.seq_end = met[r].slot_seq;
  end

  always_comb begin
    next_state = met;
    slot_left  = met[s].slot;
    if (answered) begin
      next_state[r].slot = 1'b0;
      if (out.written) next_state[r].rtt_gate = gate_now;
    end
    if (order.leaves_setup) begin
      next_state[0].slot = 1'b0;
      next_state[1].slot = 1'b0;
      slot_left = 1'b0;
    end
    if (facts.tcp && !facts.is_syn && !facts.is_rst) begin
      if (facts.has_payload && what[WhatBelowBit] && !what[WhatCopyBit]) begin
        next_state[s].slot = 1'b0;
        slot_left = 1'b0;
      end
      if (order.new_bytes && !slot_left && !order.still_pending && !what[WhatGapBit] && !what[WhatProbeBit] &&
          !what[WhatBelowBit]) begin
        next_state[s].slot = 1'b1;
        next_state[s].slot_seq = facts.payload_end;
        next_state[s].slot_time = now;
      end
    end
    if (facts.visit) begin
      for (int i = 0; i < 2; i++) begin
        if (visit_age[i][39:TimeLimitBit] != 0) next_state[i].slot = 1'b0;
      end
    end
  end

endmodule

// verilator lint_on UNUSEDSIGNAL

`default_nettype wire
