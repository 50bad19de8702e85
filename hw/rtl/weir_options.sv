// The options loop of the tracker: what the SYNs offered, and which window scale holds (sections 4.4 and 4.7 of
// docs/src/flow-engine.md). One clock, before the window loop. Combinational.

`default_nettype none

// Structures are taken whole, whatever part of them is used.
// verilator lint_off UNUSEDSIGNAL

module weir_options
  import weir_pkg::*;
  import weir_tracker_pkg::*;
(
    input  wire word_t          word,
    input  wire facts_t         facts,
    input  wire order_out_t     order,
    input  wire options_state_t current,
    output options_state_t      next_state
);

  logic s;
  logic [1:0] lacks;
  assign s = order.sender;
  for (genvar i = 0; i < 2; i++) begin : g_lacks
    assign lacks[i] = current[i].scale == NoScale && !current[i].cut;
  end

  always_comb begin
    next_state = order.opened ? {2{NewOptionsSide}} : current;
    if (order.leaves_setup) begin
      // RFC 7323 2.2: only if both SYNs carried it; what was cut may have.
      if ((order.had_syn && lacks[0]) || (order.had_syn_ack && lacks[1])) begin
        next_state[0].scale = '0;
        next_state[1].scale = '0;
      end else if (current[1].scale == NoScale) begin
        next_state[0].scale = NoScale;
      end
    end
    if (order.take_options) begin
      next_state[s].mss = word.meta.options.mss;
      next_state[s].scale = order.options_unknown ? NoScale : facts.scale;
      next_state[s].sack_ok = word.meta.options.sack_permitted;
      next_state[s].timestamps = word.meta.options.has_timestamps;
      next_state[s].cut = word.meta.options.incomplete;
      next_state[s].ecn = facts.ecn;
    end
  end

endmodule

// verilator lint_on UNUSEDSIGNAL

`default_nettype wire
