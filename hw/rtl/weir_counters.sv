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

  counters_side_t more;
  logic [3:0] over;
  always_comb begin
    next_state = met;
    more = '0;
    over = '0;
    if (facts.tcp || facts.other) begin
      next_state[s].packets = met[s].packets + 1;
      next_state[s].payload = met[s].payload + 36'(word.meta.payload);
    end
    if (facts.tcp) begin
      // What carries out is as large as it gets: one adder says both.
      {over[0], more.dup_acks} = {1'b0, met[s].dup_acks} + 17'(window.repeated);
      {over[1], more.zero_windows} = {1'b0, met[s].zero_windows} + 14'(window.zero);
      {over[2], more.small_windows} = {1'b0, met[s].small_windows} + 16'(window.tiny);
      {over[3], more.copies} = {1'b0, met[s].copies} + 13'(what[WhatCopyBit]);
      if (!over[0]) next_state[s].dup_acks = more.dup_acks;
      if (!over[1]) next_state[s].zero_windows = more.zero_windows;
      if (!over[2]) next_state[s].small_windows = more.small_windows;
      if (!over[3]) next_state[s].copies = more.copies;
    end
  end

endmodule

// verilator lint_on UNUSEDSIGNAL

`default_nettype wire
