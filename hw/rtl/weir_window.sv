// The window loop of the tracker: window conditions, duplicate ACKs and SACK, options of the SYNs
// (sections 4.4, 4.6, 4.7, 4.8 of docs/src/flow-engine.md). One clock, after the order loop.
// Combinational.

`default_nettype none

// Structures are taken whole, whatever part of them is used.
// verilator lint_off UNUSEDSIGNAL

module weir_window
  import weir_pkg::*;
  import weir_records_pkg::*;
  import weir_tracker_pkg::*;
(
    input  wire word_t      word,
    input  wire facts_t     facts,
    input  wire order_out_t order,
    input  wire window_t    current,
    output window_t         next_state,
    output window_out_t     out
);

  window_t met;
  logic s, r;
  window_side_t snd;
  assign met = order.opened ? {2{NewWindowSide}} : current;
  assign s   = order.sender;
  assign r   = !order.sender;
  assign snd = met[s];

  logic copy, new_sack, window_same;
  assign copy = order.what[WhatCopyBit] || (order.copy_if_sack && facts.sack_hash == snd.sack_hash);
  assign new_sack = order.ack_used && facts.sack_hash != 0 && facts.sack_hash != snd.sack_hash;
  assign window_same = word.meta.window == snd.window && word.meta.window != 0;

  // Section 4.7: window scaling as the setup left it (RFC 7323 2.2).
  logic [1:0][3:0] scale;
  always_comb begin
    scale = {met[1].scale, met[0].scale};
    if (order.leaves_setup) begin
      if ((order.had_syn && met[0].scale == NoScale) || (order.had_syn_ack && met[1].scale == NoScale)) begin
        scale = '0;
      end else if (!order.had_syn_ack) begin
        scale = {2{NoScale}};
      end
    end
  end

  logic tiny;
  logic [15:0] mss;
  assign mss  = snd.mss == 0 ? 16'(DefaultMss) : snd.mss;
  assign tiny = scale[s] != NoScale && word.meta.window != 0 && (30'(word.meta.window) << scale[s]) < 30'(mss);

  always_comb begin
    out.what = '0;
    out.repeated = facts.tcp && order.may_repeat && !copy && (window_same || new_sack);
    out.counted = facts.tcp && !facts.is_syn && !facts.is_rst && !order.still_pending && !copy;
    out.zero = out.counted && word.meta.window == 0;
    out.tiny = out.counted && tiny;

    next_state = met;
    next_state[0].scale = scale[0];
    next_state[1].scale = scale[1];
    if (facts.tcp) begin
      if (order.take_options) begin
        next_state[s].mss = word.meta.options.mss;
        next_state[s].scale = order.options_unknown ? NoScale : facts.scale;
        next_state[s].sack_ok = word.meta.options.sack_permitted;
        next_state[s].timestamps = word.meta.options.has_timestamps;
        next_state[s].cut = word.meta.options.incomplete;
        if (!order.options_unknown) next_state[s].ecn = facts.ecn;
      end
      if (order.take_window || out.counted) next_state[s].window = word.meta.window;

      if (order.ack_used) next_state[s].sack_hash = facts.sack_hash;
      if (order.pending) begin
        next_state[s].chain = '0;
      end else if (out.repeated) begin
        if (snd.chain != 6'(ChainMax)) next_state[s].chain = snd.chain + 1;
      end else if (order.ack_moves) begin
        next_state[s].chain = '0;
      end

      if (out.counted) begin
        next_state[s].zero = out.zero;
        next_state[s].tiny = tiny;
      end

      out.what[WhatCopyBit] = copy;
      out.what[WhatSackBit] = new_sack;
      out.what[WhatDsackBit] = new_sack && facts.dsack;
      out.what[WhatDupAckBit] = out.repeated && !order.pending && snd.chain == 2;
      out.what[WhatProbeBit] = order.may_probe && met[r].zero;
      out.what[WhatZeroWindowBit] = out.zero && !snd.zero;
      out.what[WhatSmallWindowBit] = out.tiny && !snd.tiny;
      out.what[WhatWindowOpenBit] = out.counted && !out.zero && !tiny && (snd.zero || snd.tiny);
    end
    out.receiver_known  = next_state[r].scale != NoScale;
    out.receiver_window = 30'(next_state[r].window) << next_state[r].scale;
  end

endmodule

// verilator lint_on UNUSEDSIGNAL

`default_nettype wire
