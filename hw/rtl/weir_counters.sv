// The counters of a flow (section 4.10 of docs/src/flow-engine.md): wrapping packets and payload,
// saturating counts of conditions. One clock, the last loop of the tracker. Combinational.

`default_nettype none

// Structures are taken whole, whatever part of them is used.
// verilator lint_off UNUSEDSIGNAL

module weir_counters
  import weir_pkg::*;
  import weir_records_pkg::*;
  import weir_tracker_pkg::*;
(
    input  wire word_t              word,
    input  wire facts_t             facts,
    input  wire order_out_t         order,
    input  wire window_out_t        window,
    input  wire logic        [31:0] what,
    input  wire counters_t          current,
    output counters_t               next_state
);

  counters_t met;
  logic s;
  assign met = order.opened ? '0 : current;
  assign s   = order.sender;

  always_comb begin
    next_state = met;
    if (facts.tcp || facts.other) begin
      next_state[s].packets = met[s].packets + 1;
      next_state[s].payload = met[s].payload + 36'(word.meta.payload);
    end
    if (facts.tcp) begin
      if (window.repeated && met[s].dup_acks != '1) next_state[s].dup_acks = met[s].dup_acks + 1;
      if (window.zero && met[s].zero_windows != '1) next_state[s].zero_windows = met[s].zero_windows + 1;
      if (window.tiny && met[s].small_windows != '1) next_state[s].small_windows = met[s].small_windows + 1;
      if (what[WhatCopyBit] && met[s].copies != '1) next_state[s].copies = met[s].copies + 1;
    end
  end

endmodule

// verilator lint_on UNUSEDSIGNAL

`default_nettype wire
