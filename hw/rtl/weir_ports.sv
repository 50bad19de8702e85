// Counters of the ports, in word order, and whether a port's changed since they were last reported
// (sections 1 and 6 of docs/src/flow-engine.md).
//
// Contract: one word per clock; `report` are the counters of the word's port before the word, `changed`
// whether a WORD_PORT must write them. They count as reported when such a word has passed.

`default_nettype none

// Structures are taken whole, whatever part of them is used.
// verilator lint_off UNUSEDSIGNAL

module weir_ports
  import weir_pkg::*;
  import weir_tracker_pkg::*;
#(
    parameter int Ports = 2
) (
    input  wire logic                        clk,
    input  wire logic                        rst,
    input  wire logic                        valid,
    input  wire word_t                       word,
    input  wire lookup_t                     lookup,
    // Frames lost before the engine, by port.
    input  wire logic      [Ports-1:0][31:0] dropped,
    output port_counters_t                   report,
    output logic                             changed
);

  localparam int PortWidth = $clog2(Ports) > 0 ? $clog2(Ports) : 1;

  port_counters_t [Ports-1:0] counters;
  port_counters_t reported[Ports];
  logic [PortWidth-1:0] port;
  port_counters_t counted;

  assign port = word.meta.port[PortWidth-1:0];

  always_comb begin
    report = counters[port];
    report.dropped = dropped[port];
    changed = report != reported[port];
    counted = counters[port];
    counted.frames = counters[port].frames + 1;
    counted.bytes = counters[port].bytes + 64'(word.meta.wire_length);
    counted.clamped = counters[port].clamped + 32'(word.clamped);
    counted.cut = counters[port].cut + 32'(word.meta.cut);
    counted.options_skipped = counters[port].options_skipped +
        32'(word.meta.class_ != CLASS_UNTRACKED && word.meta.options.incomplete);
    if (lookup.tracked) counted.tracked = counters[port].tracked + 1;
    else counted.untracked[lookup.reason] = counters[port].untracked[lookup.reason] + 1;
  end

  always_ff @(posedge clk) begin
    if (valid && word.kind == WORD_PACKET) counters[port] <= counted;
    if (valid && word.kind == WORD_PORT) reported[port] <= report;
    if (rst) begin
      counters <= '0;
      for (int i = 0; i < Ports; i++) reported[i] <= '0;
    end
  end

`ifndef SYNTHESIS
  for (genvar p = 0; p < Ports; p++) begin : gen_conserved
    logic [31:0] untracked;
    always_comb begin
      untracked = '0;
      for (int i = 0; i < UntrackedReasons; i++) untracked += counters[p].untracked[i];
    end
    a_counted_once :
    assert property (@(posedge clk) disable iff (rst)
                     counters[p].frames[31:0] == counters[p].tracked[31:0] + untracked);
  end
  a_reason :
  assert property (@(posedge clk) disable iff (rst)
                   valid && word.kind == WORD_PACKET && !lookup.tracked |-> 32'(lookup.reason) < UntrackedReasons);
`endif

endmodule

// verilator lint_on UNUSEDSIGNAL

`default_nettype wire
