// The order loop of the tracker: sections 4.2 to 4.7 and 4.9 of docs/src/flow-engine.md. One clock;
// `current` is the context's state as the word finds it, `next_state` as it leaves it. Combinational.
//
// What a packet makes of an empty context depends on the packet alone: `opened_state` and
// `opened_decision` come from a stage before, so that a new flow costs the loop one multiplexer.

`default_nettype none

// Structures are taken whole, whatever part of them is used.
// verilator lint_off UNUSEDSIGNAL

module weir_order
  import weir_pkg::*;
  import weir_records_pkg::*;
  import weir_tracker_pkg::*;
(
    input  wire word_t           word,
    input  wire facts_t          facts,
    input  wire order_t          opened_state,
    input  wire order_decision_t opened_decision,
    input  wire order_t          current,
    output order_t               next_state,
    output order_decision_t      decision
);

  order_t step_state;
  order_decision_t step_decision;
  weir_order_step step (
      .word,
      .facts,
      .current,
      .next_state(step_state),
      .decision  (step_decision)
  );

  // Section 4.2: a SYN that begins anew. As in the step, the choice of the end stands behind.
  logic s, repeats, reuse;
  logic [1:0] close_by;
  state_e state;
  for (genvar i = 0; i < 2; i++) begin : gen_close_by
    logic [31:0] distance;
    assign distance = current.side[i].next - facts.seq_1;
    assign close_by[i] = current.side[i].has_next && (distance[31:16] == 0 || distance == 32'h1_0000);
  end
  assign s = word.meta.from_low != current.client_is_low;
  assign state = state_of(current);
  assign repeats = word.meta.from_low ? close_by[0] : close_by[1];
  assign reuse = facts.tcp && !facts.fresh && facts.is_syn && !repeats &&
      (facts.is_ack ? state == STATE_CLOSED_FIN || state == STATE_CLOSED_RST : !(state == STATE_SYN && s));

  always_comb begin
    next_state = step_state;
    decision   = step_decision;
    if (facts.fresh || reuse) begin
      next_state = opened_state;
      next_state.generation = current.generation + 1;
      decision = opened_decision;
    end
    decision.reuse  = reuse;
    decision.opened = facts.fresh || reuse;
  end

endmodule

// verilator lint_on UNUSEDSIGNAL

`default_nettype wire
