// Chooses the packets that get PACKET records and header slices; stands beside the lookup.
//
// Promise      `digest` says, in the clock in which the lookup gives a word out (`q_`), Latency clocks after
//              the word came in (`s_`), whether the word is wanted:
//                off     none
//                all     every tracked packet
//                filter  tracked packets that match an enabled entry, in either direction, or whose flow
//                        was reported through `trigger`: the next trigger_packets packets of the flow,
//                        none later than trigger_ns after the report (modulo 2^48 ns, 78 hours), none of a flow
//                        that has its index later
//              A word that is no packet is never wanted.
// Throughput   One word per clock, no back-pressure.
// Triggers     The Triggers flows reported last are remembered; a further report on one of them starts it
//              anew, any other takes the place of the oldest. A report counts from the next clock on. A new flow shows
//              in q_fresh, or, where its packet ends another of the same key, when the tracker says so (trigger_opened):
//              the few words that the tracker has not seen by then still count for the one before.
// Counters     Wanted words; wraps.
// Hazards      Entries may be rewritten at any time; a word that is on its way may meet a mixture of the old
//              and the new entry.

`default_nettype none

module weir_digest
  import weir_pkg::*;
  import weir_digest_pkg::*;
#(
    parameter int Entries  = 4,
    parameter int Triggers = 4,
    // Of the lookup; at least 4.
    parameter int Latency  = weir_lookup_pkg::LookupLatency
) (
    input var logic clk,
    input var logic rst,

    input var digest_mode_e mode,
    input var digest_entry_t [Entries-1:0] entries,
    input var logic [15:0] trigger_packets,
    input var logic [46:0] trigger_ns,

    // Key of the word that enters the lookup.
    input var key_t s_key,

    // The word that entered Latency clocks before.
    input var logic q_valid,
    input var logic q_tracked,
    // It opens a flow.
    input var logic q_fresh,
    input var word_kind_e q_kind,
    input var index_t q_index,
    // Low bits of its time.
    input var logic [47:0] q_time,
    output var logic digest,

    input var logic trigger_valid,
    // A word opened a flow with trigger_index.
    input var logic trigger_opened,
    input var index_t trigger_index,
    input var logic [47:0] trigger_time,

    output var logic [31:0] wanted
);

  if (Latency < 4) begin : gen_check_latency
    $error("Latency must be at least 4");
  end
  if (Entries < 1 || Triggers < 1) begin : gen_check_sizes
    $error("Entries and Triggers must be positive");
  end

  // --- Filter: three clocks, then the outcome waits for the lookup ---------------------------------

  localparam int EndBits = $bits(end_t);
  localparam int Parts = 12;
  localparam int PartBits = EndBits / Parts;

  typedef logic [Parts-1:0] parts_t;

  function automatic parts_t differs(end_t got, end_filter_t want);
    parts_t parts;
    logic [EndBits-1:0] bits = (got ^ want.value) & want.mask;
    for (int i = 0; i < Parts; i++) begin
      parts[i] = |bits[PartBits*i+:PartBits];
    end
    return parts;
  endfunction

  // First clock: which parts differ. In both senses: low against a and high against b, and the reverse.
  parts_t [Entries-1:0][3:0] end_parts;
  logic [Entries-1:0] protocol_differs;
  logic [Entries-1:0] vlans_differ;
  logic [Entries-1:0] enabled;
  // Second clock.
  logic [Entries-1:0][3:0] end_differs;
  logic [Entries-1:0] rest_matches;
  // Third clock, and then on with the word.
  logic [Latency-1:2] matched;

  always_ff @(posedge clk) begin
    for (int i = 0; i < Entries; i++) begin
      end_parts[i][0] <= differs(s_key.low, entries[i].a);
      end_parts[i][1] <= differs(s_key.high, entries[i].b);
      end_parts[i][2] <= differs(s_key.low, entries[i].b);
      end_parts[i][3] <= differs(s_key.high, entries[i].a);
      protocol_differs[i] <= |((s_key.protocol ^ entries[i].protocol) & entries[i].protocol_mask);
      vlans_differ[i] <= |((s_key.vlans ^ entries[i].vlans) & entries[i].vlans_mask);
      enabled[i] <= entries[i].enable;

      for (int j = 0; j < 4; j++) begin
        end_differs[i][j] <= |end_parts[i][j];
      end
      rest_matches[i] <= enabled[i] && !protocol_differs[i] && !vlans_differ[i];
    end

    matched[2] <= 1'b0;
    for (int i = 0; i < Entries; i++) begin
      if (rest_matches[i] && (end_differs[i][1:0] == '0 || end_differs[i][3:2] == '0)) begin
        matched[2] <= 1'b1;
      end
    end
    for (int i = 3; i < Latency; i++) begin
      matched[i] <= matched[i-1];
    end
  end

  // --- Triggers: by context index, at the lookup's output ------------------------------------------

  typedef struct packed {
    index_t index;
    logic [47:0] from;
  } trigger_t;

  trigger_t [Triggers-1:0] triggers;
  logic [Triggers-1:0][15:0] left;
  // One bit set: the place of the oldest.
  logic [Triggers-1:0] oldest;
  logic [Triggers-1:0] known;
  logic [Triggers-1:0] found;
  logic [Triggers-1:0] hit;
  logic packet;
  // The counter follows a clock later.
  logic counted;

  assign packet = q_valid && q_tracked && q_kind == WORD_PACKET;

  always_comb begin
    for (int i = 0; i < Triggers; i++) begin
      known[i] = left[i] != 0 && triggers[i].index == trigger_index;
      found[i] = left[i] != 0 && triggers[i].index == q_index;
      hit[i]   = found[i] && !q_fresh && 48'(q_time - triggers[i].from) <= {1'b0, trigger_ns};
    end
    unique case (mode)
      DIGEST_ALL: digest = packet;
      DIGEST_FILTER: digest = packet && (matched[Latency-1] || hit != '0);
      default: digest = 1'b0;
    endcase
  end

  always_ff @(posedge clk) begin
    for (int i = 0; i < Triggers; i++) begin
      if (trigger_valid && (known != '0 ? known[i] : oldest[i])) begin
        triggers[i] <= '{index: trigger_index, from : trigger_time};
      end
    end
  end

  always_ff @(posedge clk) begin
    for (int i = 0; i < Triggers; i++) begin
      if (trigger_valid && (known != '0 ? known[i] : oldest[i])) begin
        left[i] <= trigger_packets;
      end else if ((trigger_opened && known[i]) || (packet && q_fresh && found[i])) begin
        left[i] <= '0;
      end else if (packet && hit[i]) begin
        left[i] <= left[i] - 1'b1;
      end
    end
    if (trigger_valid && known == '0) begin
      oldest <= Triggers'({oldest, oldest} >> (Triggers - 1));
    end
    counted <= digest;
    wanted  <= wanted + 32'(counted);

    if (rst) begin
      left <= '0;
      oldest <= Triggers'(1);
      counted <= 1'b0;
      wanted <= '0;
    end
  end

`ifndef SYNTHESIS
  a_one_place :
  assert property (@(posedge clk) disable iff (rst) $onehot(oldest) && $onehot0(known));
`endif

endmodule

`default_nettype wire
