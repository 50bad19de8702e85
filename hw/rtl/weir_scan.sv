// Scan visits of the card (docs/src/flow-engine.md section 1), for s_visit of weir_merge.
//
// Promise      Visit number m has the time m * 1024 ns and looks at index m mod 2^18. As the clock passes the
//              time of a visit it is offered, unless its index is not below `used` or Contexts (a context never
//              used has no flow). Visits come in the order of their times, none twice.
// Lateness     One visit is looked at per clock, and those of indices not used take one clock together. So while
//              m_ready is high, a visit is offered two clocks after s_now has reached its time (three after
//              a leap over indices not used); held up for h clocks, the scan is again in time after at most
//              h / 306 + 3 clocks more (a visit is due every 307 clocks of 3.33 ns).
// Jumps        When s_now is more than a scan period (2^18 visits) ahead, as after reset or when the clock is
//              set, the scan begins a whole period before s_now: each index is visited once. When s_now is a
//              period or more behind, the scan begins anew at s_now; else it waits for s_now.
// m_horizon    No visit offered or to be offered has a lower time: time of the visit that is looked at.
// Throughput   One visit per clock.
// Hazards      s_now is the clock of the card, and `used` never falls but at reset.

`default_nettype none

module weir_scan
  import weir_pkg::*;
#(
    parameter int Contexts = 1 << 18
) (
    input wire logic clk,
    input wire logic rst,

    // verilator lint_off UNUSEDSIGNAL
    input wire logic [        63:0] s_now,  // its low bits lie between visits
    // verilator lint_on UNUSEDSIGNAL
    // Indices used so far: all below (weir_lookup).
    input wire logic [IndexWidth:0] used,

    output logic             m_valid,
    output index_t           m_index,
    output logic      [63:0] m_time,
    input  wire logic        m_ready,
    output logic      [63:0] m_horizon
);

  localparam int VisitWidth = 64 - VisitShift;

  if (Contexts < 1 || Contexts > 1 << ScanWidth) begin : gen_check_contexts
    $error("Contexts must be 1 to 2^%0d", ScanWidth);
  end

  typedef logic [VisitWidth-1:0] visit_t;

  // The next visit to look at. Nothing is offered before the clock is known.
  visit_t visit;
  visit_t now;
  logic   now_valid;
  // now - visit, one clock old: what the jumps are decided by.
  visit_t ahead;
  logic   ahead_valid;
  logic   jump;

  // Not yet due, or held up by the one that is offered.
  logic   due;
  logic   wanted;
  logic   advance;
  index_t index;
  visit_t next_period;
  visit_t next_visit;

  assign index = index_t'(visit[ScanWidth-1:0]);
  assign due = ahead_valid && !jump && now >= visit;
  assign next_period = {visit[VisitWidth-1:ScanWidth] + 1'b1, ScanWidth'(0)};
  assign wanted = {1'b0, index} < used && {1'b0, index} < (IndexWidth + 1)'(Contexts);
  assign advance = due && (!wanted || !m_valid || m_ready);
  // Ahead by more than a period, or behind by one or more (a negative number).
  assign jump = ahead_valid && (ahead[VisitWidth-1] ? ahead[VisitWidth-2:ScanWidth] != '1 :
                                ahead[VisitWidth-2:ScanWidth] != '0);

  // No index from here to the end of the period is used, as far as is known now.
  always_comb begin
    next_visit = visit + 1'b1;
    if (!wanted) begin
      next_visit = next_period <= now ? next_period : now + 1'b1;
    end
  end

  assign m_horizon = m_valid ? m_time : {visit, VisitShift'(0)};

  always_ff @(posedge clk) begin
    now <= s_now[63:VisitShift];
    now_valid <= 1'b1;
    ahead <= now - (advance ? next_visit : visit);
    ahead_valid <= now_valid;

    if (advance) begin
      visit <= next_visit;
    end
    if (jump) begin
      visit <= ahead[VisitWidth-1] ? now : now - visit_t'((1 << ScanWidth) - 1);
      ahead_valid <= 1'b0;
    end

    if (advance && wanted) begin
      m_valid <= 1'b1;
      m_index <= index;
      m_time  <= {visit, VisitShift'(0)};
    end else if (m_ready) begin
      m_valid <= 1'b0;
    end

    if (rst) begin
      visit <= '0;
      now_valid <= 1'b0;
      ahead_valid <= 1'b0;
      m_valid <= 1'b0;
    end
  end

`ifndef SYNTHESIS
  a_stable :
  assert property (@(posedge clk) disable iff (rst) m_valid && !m_ready |=> m_valid && $stable(
      m_time
  ) && $stable(
      m_index
  ));
  a_in_order :
  assert property (@(posedge clk) disable iff (rst || jump || $past(
      jump
  )) m_valid && visit != '0 |-> m_time < {visit, VisitShift'(0)});
  a_index_of_time :
  assert property (@(posedge clk) disable iff (rst) m_valid |-> m_index == index_t'(m_time[VisitShift+:ScanWidth]));
`endif

endmodule

`default_nettype wire
