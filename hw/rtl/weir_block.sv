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
    input  wire block_t             current,
    output block_t                  next_state,
    output block_out_t              out
);

  logic s, r;
  logic [39:0] now;
  logic ends;
  logic segment, starts, was_open, open, closes, alone, limit, full, was_full, reset;
  logic [1:0][31:0] idle_margin;
  logic [1:0] goes_idle;

  assign s = order.sender;
  assign r = !order.sender;
  assign now = word.meta.timestamp[39:0];

  assign segment = facts.tcp && !facts.is_syn && !facts.is_rst;
  assign reset = facts.tcp && facts.is_rst && !what[WhatWildBit];
  assign starts = segment && order.new_bytes && !order.own_block;
  assign full = window.receiver_known && !order.still_pending && window.receiver_window != 0 &&
      window.reach > 33'(window.receiver_window);

  // A new flow has no block, was idle, and its window was not full.
  assign was_open = current[s].open && !order.opened;
  assign was_full = current[s].full && !order.opened;
  assign open = segment && (was_open || starts);
  assign closes = order.closes;
  // The packet is a block of its own.
  assign alone = order.syn_block || order.own_block;
  assign ends = closes && (facts.fin || (facts.push && !facts.shed.block));
  // For both sides at once: the choice of the side stands behind the subtractions. A block that begins with
  // this segment is far from its limit.
  logic [1:0] limits;
  for (genvar i = 0; i < 2; i++) begin : gen_limit
    logic [31:0] bytes;
    logic [39:0] age;
    assign bytes = order.sender_next - current[i].seq;
    assign age = now - current[i].first;
    assign limits[i] = current[i].open && !order.opened &&
        (bytes[31] || age[39:TimeLimitBit] != 0 || current[i].packets == (starts ? 16'hfffe : 16'hffff));
  end
  assign limit = limits[s];
  // Visits come every 268 ms: what is not idle yet is less than two seconds old.
  assign idle_margin = {facts.idle_before - current[1].last, facts.idle_before - current[0].last};
  assign goes_idle = {!current[1].idle && !idle_margin[1][31], !current[0].idle && !idle_margin[0][31]};

  // 2^20 ns or more since the sender's data before.
  logic [31:0] since_data;
  logic paused;
  assign since_data = now[31:0] - current[s].last;
  assign paused = current[s].idle || since_data[31:20] != 0;

  // What ends an open block whatever is in it, but for the limit of the sender's.
  logic [1:0] sends, shut;
  for (genvar i = 0; i < 2; i++) begin : gen_shut
    assign sends[i] = segment && s == i[0];
    assign shut[i] = (sends[i] && ends) || (segment && s != i[0] && order.new_bytes) || reset ||
        (facts.visit && goes_idle[i]);
  end

  // The sender's block with the segment in it, but for whether it is open.
  block_side_t grown;
  always_comb begin
    grown = order.opened ? NewBlockSide : current[s];
    if (starts && !was_open) begin
      grown.first = now;
      grown.seq = order.new_start;
      grown.packets = 16'd1;
      grown.max = facts.block_length;
    end else if (starts) begin
      grown.packets = current[s].packets + 1;
      if (facts.block_length > current[s].max) grown.max = facts.block_length;
    end
    if (segment && facts.has_payload) begin
      grown.last = now[31:0];
      grown.idle = 1'b0;
    end
    if (segment) grown.full = full && (was_full || order.new_bytes);
    // Of no meaning where no block is open.
    grown.merged = (closes && facts.push && facts.shed.block) || (current[s].merged && was_open);
  end

  always_comb begin
    out.what = '0;
    out.what[WhatWindowFullBit] = segment && full && order.new_bytes && !was_full;
    out.what[WhatIdsSkippedBit] = segment && order.ids_skipped && paused;
    out.what[WhatIdleBeforeBit] = facts.tcp && (current[s].idle || order.opened);
    out.turn = segment && order.new_bytes && current[r].open && !order.opened;
    out.merged = open && closes && facts.push && !facts.fin && !limit && facts.shed.block;
    out.own = open && (ends || limit);
    out.own_cause = (facts.fin && closes) ? BLOCK_END_FIN :
        (facts.push && closes) || alone ? BLOCK_END_PUSH : BLOCK_END_LIMIT;
    out.reset = reset;
    for (int i = 0; i < 2; i++) begin
      out.idle_ends[i] = facts.visit && current[i].open && goes_idle[i];
    end
  end

  always_comb begin
    next_state[r] = order.opened ? NewBlockSide : current[r];
    next_state[s] = grown;
    for (int i = 0; i < 2; i++) begin
      next_state[i].open = (current[i].open && !order.opened && !shut[i] && !(sends[i] && limits[i])) ||
          (sends[i] && starts && !ends && !limits[i]);
      if (facts.visit && goes_idle[i]) next_state[i].idle = 1'b1;
    end
  end

endmodule

// verilator lint_on UNUSEDSIGNAL

`default_nettype wire
