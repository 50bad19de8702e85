// The interval loop of the tracker: extremes of 10 or 100 ms (section 5 of docs/src/flow-engine.md). One
// clock, after the round-trip and block loops. Combinational.

`default_nettype none

// Structures are taken whole, whatever part of them is used.
// verilator lint_off UNUSEDSIGNAL

module weir_interval
  import weir_pkg::*;
  import weir_records_pkg::*;
  import weir_tracker_pkg::*;
(
    input  wire word_t                  word,
    input  wire facts_t                 facts,
    input  wire order_out_t             order,
    input  wire window_out_t            window,
    input  wire round_trip_out_t        round_trip,
    input  wire logic            [31:0] what,
    input  wire interval_t              current,
    output interval_t                   next_state,
    output interval_out_t               out
);

  localparam logic [31:0] Trouble = (32'd1 << WhatGapBit) | (32'd1 << WhatBelowBit) | (32'd1 << WhatAckUnseenBit) |
      (32'd1 << WhatSackBit) | (32'd1 << WhatDupAckBit) | (32'd1 << WhatZeroWindowBit) |
      (32'd1 << WhatSmallWindowBit) | (32'd1 << WhatSynRepeatBit) | (32'd1 << WhatSynAckRepeatBit);
  // Bits that make no EVENT by themselves.
  localparam logic [31:0] Beside = (32'd1 << WhatPushBit) | (32'd1 << WhatIdleBeforeBit) |
      (32'd1 << WhatExpectedUnknownBit) | (32'd1 << WhatAckedUnknownBit) | (32'd1 << WhatAcksMoreBit);

  // Flight as the 30-bit field holds it.
  function automatic logic [29:0] limited(logic [31:0] flight);
    return flight[31:30] != 0 ? '1 : flight[29:0];
  endfunction

  function automatic interval_side_t begun(logic [31:0] flight);
    return '{flight_max: limited(flight), window_min: '1, rtt_min: NoRtt, default: '0};
  endfunction

  logic s, running, over, packet, harmless, trouble;
  logic stretched, ended, has_event, folds, folded;
  logic [15:0] age;
  logic [23:0] sample;
  logic [29:0] in_flight;

  assign s = order.sender;
  assign packet = facts.tcp || facts.other;
  assign running = current.side[0].active || current.side[1].active;
  assign age = word.fine_number - current.number;
  // A normal interval began in the 100 ms of `now` if it is not older than the digit says.
  assign over = running && (current.fine ? age != 0 : age > 16'(word.fine_digit));
  assign stretched = !order.opened && packet && over && facts.shed.interval;
  assign ended = !order.opened && !order.closed && (packet || facts.visit) && over && !stretched;
  // Section 4.10: the bits that make an EVENT.
  assign has_event = (facts.tcp || facts.icmp) && (what & ~Beside) != '0;
  assign folds = has_event && facts.shed.event_;
  assign folded = current.folded && !order.opened;

  assign harmless = (what & Trouble) == (32'd1 << WhatBelowBit) && !what[WhatPartialBit] && word.meta.payload <= 1;
  assign trouble = facts.tcp && (what & Trouble) != 0 && !harmless;
  assign in_flight = limited(order.flight_after[s]);
  // RTT in units of 1,024 ns (section 4.6); the value is below 2^38.
  assign sample = round_trip.value[37:10] >= 28'(NoRtt) ? NoRtt - 1 : round_trip.value[33:10];

  assign out = '{
          ended: ended,
          stretched: stretched,
          has_event: has_event,
          folds: folds,
          folded: folded,
          trouble: trouble
      };

  // Every extreme is compared with what the context has and with what an interval begins with, beside the
  // decision which of the two holds.
  logic renew;
  logic takes_flight;
  interval_side_t [1:0] begins;
  assign renew = order.opened || ended;
  assign takes_flight = facts.tcp && !facts.is_syn && !facts.is_rst;
  for (genvar i = 0; i < 2; i++) begin : gen_side
    interval_side_t kept, fresh;
    logic sends, sampled;
    assign begins[i] = order.opened ? NewIntervalSide : begun(order.flight_before[i]);
    assign sends = packet && s == i[0];
    assign sampled = packet && round_trip.sampled && round_trip.side == i[0];
    always_comb begin
      kept  = current.side[i];
      fresh = begins[i];
      if (sends) begin
        kept.active  = 1'b1;
        fresh.active = 1'b1;
      end
      if (sends && takes_flight) begin
        if (in_flight > current.side[i].flight_max) kept.flight_max = in_flight;
        if (in_flight > begins[i].flight_max) fresh.flight_max = in_flight;
      end
      if (sends && window.counted) begin
        if (word.meta.window < current.side[i].window_min) kept.window_min = word.meta.window;
        if (word.meta.window > current.side[i].window_max) kept.window_max = word.meta.window;
        fresh.window_min = word.meta.window;
        fresh.window_max = word.meta.window;
      end
      if (sampled) begin
        if (sample < current.side[i].rtt_min) kept.rtt_min = sample;
        if (sample > current.side[i].rtt_max) kept.rtt_max = sample;
        if (current.side[i].rtt_count != '1) kept.rtt_count = current.side[i].rtt_count + 1;
        fresh.rtt_min   = sample;
        fresh.rtt_max   = sample;
        fresh.rtt_count = 8'd1;
      end
    end
    assign next_state.side[i] = renew ? fresh : kept;
  end

  always_comb begin
    next_state.number = current.number;
    next_state.fine = current.fine;
    next_state.trouble = current.trouble && !order.opened;
    if (packet && (renew || !running)) begin
      next_state.number = word.fine_number;
      next_state.fine = current.trouble && !order.opened;
      next_state.trouble = 1'b0;
    end
    if (packet && trouble) next_state.trouble = 1'b1;
    next_state.folded = has_event ? folds : folded;
  end

endmodule

// verilator lint_on UNUSEDSIGNAL

`default_nettype wire
