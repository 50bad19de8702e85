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
      (32'd1 << WhatExpectedUnknownBit) | (32'd1 << WhatAckedUnknownBit);

  // Flight as the 30-bit field holds it.
  function automatic logic [29:0] limited(logic [31:0] flight);
    return flight[31:30] != 0 ? '1 : flight[29:0];
  endfunction

  function automatic interval_side_t begun(logic [31:0] flight);
    return '{flight_max: limited(flight), window_min: '1, rtt_min: NoRtt, default: '0};
  endfunction

  interval_t met;
  logic s, running, over, packet, harmless, trouble;
  logic [15:0] age;
  logic [23:0] sample;
  logic [29:0] in_flight;

  assign s = order.sender;
  assign packet = facts.tcp || facts.other;
  assign running = current.side[0].active || current.side[1].active;
  assign age = word.fine_number - current.number;
  // A normal interval began in the 100 ms of `now` if it is not older than the digit says.
  assign over = running && (current.fine ? age != 0 : age > 16'(word.fine_digit));
  assign out.stretched = !order.opened && packet && over && facts.shed.interval;
  assign out.ended = !order.opened && !order.closed && (packet || facts.visit) && over && !out.stretched;
  // Section 4.10: the bits that make an EVENT.
  assign out.has_event = (facts.tcp || facts.icmp) && (what & ~Beside) != '0;
  assign out.folds = out.has_event && facts.shed.event_;
  assign out.folded = current.folded && !order.opened;

  assign harmless = (what & Trouble) == (32'd1 << WhatBelowBit) && !what[WhatPartialBit] && word.meta.payload <= 1;
  assign trouble = facts.tcp && (what & Trouble) != 0 && !harmless;
  assign in_flight = limited(order.flight_after[s]);
  // RTT in units of 1,024 ns (section 4.6); the value is below 2^38.
  assign sample = round_trip.value[37:10] >= 28'(NoRtt) ? NoRtt - 1 : round_trip.value[33:10];

  always_comb begin
    met = current;
    if (order.opened) begin
      met = '{side: {2{NewIntervalSide}}, default: '0};
    end else if (out.ended) begin
      for (int i = 0; i < 2; i++) met.side[i] = begun(order.flight_before[i]);
    end
    next_state = met;
    if (packet) begin
      if (!met.side[0].active && !met.side[1].active) begin
        next_state.number = word.fine_number;
        next_state.fine = met.trouble;
        next_state.trouble = 1'b0;
      end
      next_state.side[s].active = 1'b1;
      if (facts.tcp && !facts.is_syn && !facts.is_rst && in_flight > met.side[s].flight_max) begin
        next_state.side[s].flight_max = in_flight;
      end
      if (window.counted) begin
        if (word.meta.window < met.side[s].window_min) next_state.side[s].window_min = word.meta.window;
        if (word.meta.window > met.side[s].window_max) next_state.side[s].window_max = word.meta.window;
      end
      if (round_trip.sampled) begin
        if (sample < met.side[round_trip.side].rtt_min) next_state.side[round_trip.side].rtt_min = sample;
        if (sample > met.side[round_trip.side].rtt_max) next_state.side[round_trip.side].rtt_max = sample;
        if (met.side[round_trip.side].rtt_count != '1) begin
          next_state.side[round_trip.side].rtt_count = met.side[round_trip.side].rtt_count + 1;
        end
      end
      if (trouble) next_state.trouble = 1'b1;
    end
    if (out.has_event) next_state.folded = out.folds;
  end

endmodule

// verilator lint_on UNUSEDSIGNAL

`default_nettype wire
