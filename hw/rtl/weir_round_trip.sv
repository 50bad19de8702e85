// The round-trip loop of the tracker: one timed segment or ACK per side (sections 4.6 and 4.8 of
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
    // The ACK of this packet was captured before it.
    input  wire                     acked_before,
    input  wire setup_t             setup,
    // The newest IP id of the sender before the word.
    input  wire logic        [15:0] newest_id,
    input  wire logic        [31:0] what,
    input  wire round_trip_t        current,
    output round_trip_t             next_state,
    output round_trip_out_t         out
);

  // RTT DATA is written about once in 2 to the power of so many ns.
  localparam int GateBits = 20;
  // What was overtaken may hold up an ACK for 2 to the power of so many ns; an echo that is sooner is not told.
  localparam int SoonBits = 20;

  logic s, r, answered, echoed, echo_told, gate, young, setup_sample, overtaken, cleared;
  logic segment, slot_left, echo_left, starts, bare;
  logic [15:0] id_step;
  logic [39:0] now, setup_age, age;
  // Of both sides: the choice of the side stands behind the subtractions.
  logic [1:0][39:0] slot_age;
  logic [1:0] delays;
  logic [7:0] gate_now;

  assign s = order.sender;
  assign r = !order.sender;
  assign now = word.meta.timestamp[39:0];
  assign gate_now = word.meta.timestamp[GateBits+:8];

  // A new flow has no slot.
  assign answered = facts.tcp && order.ack_used && !order.opened && !order.pending && current[r].slot && !after(
      current[r].slot_seq, word.meta.ack
  );
  assign setup_sample = order.syn_answered || order.syn_ack_answered;
  assign setup_age = now - (order.syn_answered ? setup.last_syn : setup.syn_ack);
  assign slot_age = {now - current[1].slot_time, now - current[0].slot_time};
  assign age = slot_age[r];
  assign young = age[39:TimeLimitBit] == 0;
  // A packet that steps of data look at.
  assign segment = facts.tcp && !facts.is_syn && !facts.is_rst && !order.still_pending;
  // No side of a new flow, nor of one whose setup is pending, has an echo.
  assign echoed = segment && !order.opened && order.new_bytes && facts.is_ack && word.meta.options.has_timestamps &&
      current[r].echo && !after(
      current[r].slot_seq, word.meta.options.tsecr
  );
  // Who echoes a later one had heard more, and so short a time tells nothing.
  assign echo_told = echoed && current[r].slot_seq == word.meta.options.tsecr && age[39:SoonBits] != 0 && young;
  // So long a sample began after the last record; after one that leaves nothing in flight nobody waits for ACKs.
  assign gate = gate_now != current[r].rtt_gate || age[39:GateBits] != 0 || order.flight_after[r] == 0;

  always_comb begin
    if (setup_sample) begin
      out.sampled = setup_age[39:TimeLimitBit] == 0;
      out.value = setup_age[37:0];
      out.side = order.syn_ack_answered;
      out.seq_end = order.syn_answered ? word.meta.ack : setup.server_start;
      out.how = RTT_HOW_HANDSHAKE;
      out.written = out.sampled;
    end else begin
      // An echo never enters the interval.
      out.sampled = answered && young;
      out.value = age[37:0];
      out.side = r;
      out.seq_end = current[r].echo ? facts.payload_end : current[r].slot_seq;
      out.how = current[r].echo ? RTT_HOW_ECHO : RTT_HOW_DATA;
      out.written = (out.sampled && gate) || echo_told;
    end
    out.acks_repeat = what[WhatAcksMoreBit] && current[r].repeated && !order.opened;
  end

  // The sender made the packet 1 to 256 before the newest.
  assign id_step   = word.meta.ip_id - newest_id;
  assign overtaken = word.meta.ip_id != 0 && newest_id != 0 && id_step[15:8] == '1;
  // The ACK of the sender's slot may be one of this packet, or have waited for it for long (Karn).
  for (genvar i = 0; i < 2; i++) begin : gen_delays
    assign delays[i] = after(current[i].slot_seq, word.meta.seq) && slot_age[i][39:SoonBits] != 0;
  end
  assign cleared = facts.has_payload && what[WhatBelowBit] && !what[WhatCopyBit] && (!overtaken || delays[s]);
  assign slot_left = current[s].slot && !order.opened && !order.leaves_setup;
  assign echo_left = current[s].echo && !order.opened;
  assign starts = segment && order.new_bytes && !acked_before && !slot_left && !what[WhatGapBit] &&
      !what[WhatProbeBit] && !what[WhatBelowBit];
  // An ACK without data, to be timed by the data that echoes it.
  assign bare = segment && what[WhatAcksMoreBit] && !what[WhatCopyBit] && !facts.has_payload && !facts.fin &&
      word.meta.options.has_timestamps && !slot_left && !echo_left;

  logic again;
  assign again = !what[WhatCopyBit] && (what[WhatSynRepeatBit] || what[WhatSynAckRepeatBit] ||
      (what[WhatBelowBit] && (facts.has_payload || facts.fin)));

  always_comb begin
    next_state = order.opened ? '0 : current;
    if (answered) begin
      next_state[r].slot = 1'b0;
      if (gate && young) next_state[r].rtt_gate = gate_now;
    end
    if (echoed) next_state[r].echo = 1'b0;
    if (order.leaves_setup) begin
      next_state[0].slot = 1'b0;
      next_state[1].slot = 1'b0;
    end
    if (facts.tcp && !facts.is_syn && !facts.is_rst) begin
      if (cleared) next_state[s].slot = 1'b0;
      if (starts) begin
        next_state[s].slot = 1'b1;
        next_state[s].echo = 1'b0;
        next_state[s].slot_seq = facts.payload_end;
      end
      if (bare) begin
        next_state[s].echo = 1'b1;
        next_state[s].slot_seq = word.meta.options.tsval;
      end
      if (starts || bare) next_state[s].slot_time = now;
    end
    if (what[WhatAcksMoreBit]) next_state[r].repeated = 1'b0;
    if (again) next_state[s].repeated = 1'b1;
    if (facts.visit) begin
      for (int i = 0; i < 2; i++) begin
        if (slot_age[i][39:TimeLimitBit] != 0) begin
          next_state[i].slot = 1'b0;
          next_state[i].echo = 1'b0;
        end
      end
    end
  end

endmodule

// verilator lint_on UNUSEDSIGNAL

`default_nettype wire
