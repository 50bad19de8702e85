// The block loop of the tracker: data up to PSH, a turn or idle, and the full window (sections 4.8 and 5
// of docs/src/flow-engine.md). One clock, after the window loop. Combinational.

`default_nettype none

// Structures are taken whole, whatever part of them is used.
// verilator lint_off UNUSEDSIGNAL

module weir_block
  import weir_pkg::*;
  import weir_records_pkg::*;
  import weir_tracker_pkg::*;
(
    input  wire word_t              word,
    input  wire facts_t             facts,
    input  wire order_out_t         order,
    input  wire window_out_t        window,
    input  wire logic        [31:0] what,
    // After the word: next of the sender.
    input  wire logic        [31:0] sender_next,
    input  wire block_t             current,
    output block_t                  next_state,
    output block_out_t              out
);

  block_t met;
  logic s, r;
  logic [39:0] now, first_age;
  logic [31:0] bytes;
  logic segment, starts, open, closes, limit, full, reset;
  logic [1:0][31:0] idle_for;

  assign met = order.opened ? {2{NewBlockSide}} : current;
  assign s = order.sender;
  assign r = !order.sender;
  assign now = word.meta.timestamp[39:0];

  assign segment = facts.tcp && !facts.is_syn && !facts.is_rst;
  assign reset = facts.tcp && facts.is_rst && !what[WhatWildBit];
  assign starts = segment && order.new_bytes && !order.own_block;
  assign full = window.receiver_known && !order.still_pending && window.receiver_window != 0 &&
      33'(order.flight_after[s]) + 33'(word.meta.payload) > 33'(window.receiver_window);

  // The block after the segment: its packets and age decide whether it is at its limit.
  block_side_t grown;
  always_comb begin
    grown = met[s];
    if (starts) begin
      if (!met[s].open) begin
        grown.first = now;
        grown.seq = order.new_start;
        grown.packets = '0;
        grown.max = '0;
        grown.merged = 1'b0;
      end
      grown.open = 1'b1;
      grown.packets = grown.packets + 1;
      if (facts.block_length > grown.max) grown.max = facts.block_length;
    end
    if (segment && facts.has_payload) begin
      grown.last = now[31:0];
      grown.idle = 1'b0;
    end
    if (segment) grown.full = full && (met[s].full || order.new_bytes);
  end

  assign open = segment && grown.open;
  assign closes = order.new_bytes || what[WhatFinBit] ||
      (what[WhatBelowBit] && !what[WhatPartialBit] && facts.segment_end == sender_next);
  assign first_age = now - grown.first;
  assign bytes = sender_next - grown.seq;
  assign limit = grown.packets == '1 || bytes[31] || first_age[39:TimeLimitBit] != 0;
  assign idle_for = {now[31:0] - met[1].last, now[31:0] - met[0].last};

  always_comb begin
    out.what = '0;
    out.idle_ends = '0;
    out.what[WhatWindowFullBit] = segment && full && order.new_bytes && !met[s].full;
    out.what[WhatIdleBeforeBit] = facts.tcp && met[s].idle;
    out.turn = segment && order.new_bytes && met[r].open;
    out.merged = open && closes && facts.push && !facts.fin && !limit && facts.shed.block;
    out.own = open && ((closes && (facts.fin || facts.push)) || limit) && !out.merged;
    out.own_cause = (facts.fin && closes) ? BLOCK_END_FIN : (facts.push && closes) ? BLOCK_END_PUSH : BLOCK_END_LIMIT;
    out.reset = reset;

    next_state = met;
    if (facts.tcp) begin
      next_state[s] = grown;
      if (out.merged) next_state[s].merged = 1'b1;
      if (out.own || reset) next_state[s].open = 1'b0;
      if (out.turn || reset) next_state[r].open = 1'b0;
    end
    if (facts.visit) begin
      for (int i = 0; i < 2; i++) begin
        if (!met[i].idle && idle_for[i] >= 32'(BlockIdleNs)) begin
          out.idle_ends[i]   = met[i].open;
          next_state[i].open = 1'b0;
          next_state[i].idle = 1'b1;
        end
      end
    end
  end

endmodule

// verilator lint_on UNUSEDSIGNAL

`default_nettype wire
