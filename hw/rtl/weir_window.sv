// The window loop of the tracker: window conditions, duplicate ACKs and SACK (sections 4.6 and 4.8 of
// docs/src/flow-engine.md). One clock, after the options loop.
// Combinational.

`default_nettype none

// Structures are taken whole, whatever part of them is used.
// verilator lint_off UNUSEDSIGNAL

module weir_window
  import weir_pkg::*;
  import weir_records_pkg::*;
  import weir_tracker_pkg::*;
(
    input  wire word_t         word,
    input  wire facts_t        facts,
    input  wire order_out_t    order,
    // After the word: of its sender and of the other side.
    input  wire options_side_t own_options,
    input  wire options_side_t peer_options,
    input  wire window_t       current,
    output window_t            next_state,
    output window_out_t        out
);

  logic s, r;
  window_side_t snd;
  assign s   = order.sender;
  assign r   = !order.sender;
  // A new flow has nothing.
  assign snd = order.opened ? '0 : current[s];

  logic copy, new_sack, window_same;
  assign copy = order.what[WhatCopyBit] || (order.copy_if_sack && facts.sack_hash == snd.sack_hash);
  assign new_sack = order.ack_used && facts.sack_hash != 0 && facts.sack_hash != snd.sack_hash;
  assign window_same = word.meta.window == snd.window && word.meta.window != 0;

  logic tiny, looked_at;
  logic [15:0] mss;
  assign mss = own_options.mss == 0 ? 16'(DefaultMss) : own_options.mss;
  assign tiny = own_options.scale != NoScale && word.meta.window != 0 &&
      (30'(word.meta.window) << own_options.scale) < 30'(mss);
  assign looked_at = facts.tcp && !facts.is_syn && !facts.is_rst && !order.still_pending;

  always_comb begin
    out.what = '0;
    out.repeated = facts.tcp && order.may_repeat && !copy && (window_same || new_sack);
    out.counted = looked_at && !copy;
    out.zero = out.counted && word.meta.window == 0;
    out.tiny = out.counted && tiny;

    next_state = order.opened ? '0 : current;
    if (facts.tcp) begin
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
        next_state[s].zero = word.meta.window == 0;
        next_state[s].tiny = tiny;
      end

      out.what[WhatCopyBit] = copy;
      out.what[WhatSackBit] = new_sack;
      out.what[WhatDsackBit] = new_sack && facts.dsack;
      out.what[WhatDupAckBit] = out.repeated && !order.pending && snd.chain == 2;
      out.what[WhatProbeBit] = order.may_probe && current[r].zero && !order.opened;
      out.what[WhatZeroWindowBit] = out.zero && !snd.zero;
      out.what[WhatSmallWindowBit] = out.tiny && !snd.tiny;
      out.what[WhatWindowOpenBit] = out.counted && word.meta.window != 0 && !tiny && (snd.zero || snd.tiny);
    end
    out.receiver_known = peer_options.scale != NoScale;
    out.receiver_window = order.opened ? '0 : 30'(current[r].window) << peer_options.scale;
    out.reach = 33'(order.flight_after[s]) + 33'(word.meta.payload);
  end

endmodule

// verilator lint_on UNUSEDSIGNAL

`default_nettype wire
