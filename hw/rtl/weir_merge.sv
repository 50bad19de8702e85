// The ports' words and the scan visits, in time order, as words of the engine.
//
// Promise      Everything accepted at s_meta and s_visit goes out once, the words of a port in their order,
//              the smallest time first; at equal times visits, then the lowest port. See weir_timeline for
//              clamping, WORD_PORT and pauses.
// Horizons     A source that offers nothing holds the others up until it is known what it may still send:
//              in each clock, whatever it offers or will offer and was not accepted in an earlier clock has a
//              time of at least its horizon. For a port of the card that is the clock's time, less the time
//              from start of frame to this module (longest frame, ParserLatency, weir_meta_fifo, a margin).
//              Where no more will come, it is all ones. A source that breaks the promise is clamped and
//              counted.
// Back         A head later than its port's s_latest was stamped before the clock went back. Horizons would hold it,
//              and all behind it, until the clock is there again. So it goes as if nothing else came any more: in
//              order among its like and before what was stamped since, which is clamped and counted (but for a
//              word that is free to go in the one clock in which this is found out).
// Visits       s_visit_kind WORD_VISIT: context s_visit_index is visited at s_visit_time. WORD_END: it is closed
//              because the input is over. WORD_PORT: a report of all ports is asked for. The last two hold no
//              port up, and wait until no port offers anything and all horizons are later than their time.
// Throughput   One word per clock (less what weir_timeline says).
// Latency      4 clocks when nothing holds a word up.
// Backpressure All ready signals are registers.

`default_nettype none

module weir_merge
  import weir_pkg::*;
#(
    parameter int Ports = 2,
    parameter int DrainClocks = 64
) (
    input var logic clk,
    input var logic rst,

    input var meta_t [Ports-1:0] s_meta,
    input var logic [Ports-1:0] s_meta_valid,
    output var logic [Ports-1:0] s_meta_ready,
    input var logic [Ports-1:0][63:0] s_horizon,
    // No word of the port has a later time, unless the clock went back; all ones where that cannot be.
    input var logic [Ports-1:0][63:0] s_latest,

    input var word_kind_e s_visit_kind,
    input var index_t s_visit_index,
    input var logic [63:0] s_visit_time,
    input var logic s_visit_valid,
    output var logic s_visit_ready,
    input var logic [63:0] s_visit_horizon,

    output var word_t m_word,
    output var logic  m_valid,
    input var  logic  m_ready
);

  if (Ports < 1 || Ports > 16) begin : gen_check_ports
    $error("Ports must be 1 .. 16");
  end

  typedef struct packed {
    word_kind_e kind;
    index_t index;
    logic [63:0] time_;
  } visit_t;

  // Later times count as this one.
  localparam logic [63:0] MaxTime = 64'h8000_0000_0000_0000;
  function automatic logic [63:0] at_most(logic [63:0] time_);
    return time_[63] ? MaxTime : time_;
  endfunction

  // What each source offers. Horizons of the clock before, as the words are.
  meta_t [Ports-1:0] head;
  logic  [Ports-1:0] head_valid;
  logic  [Ports-1:0] head_ready;
  logic [Ports-1:0][63:0] horizon, latest;
  visit_t visit;
  logic visit_valid;
  logic visit_ready;
  logic [63:0] visit_horizon;

  for (genvar i = 0; i < Ports; i++) begin : gen_port
    weir_skid #(
        .Width($bits(meta_t))
    ) u_meta (
        .clk,
        .rst,
        .s_data (s_meta[i]),
        .s_valid(s_meta_valid[i]),
        .s_ready(s_meta_ready[i]),
        .m_data ({head[i]}),
        .m_valid(head_valid[i]),
        .m_ready(head_ready[i])
    );
  end
  weir_skid #(
      .Width($bits(visit_t))
  ) u_visit (
      .clk,
      .rst,
      .s_data ({s_visit_kind, s_visit_index, s_visit_time}),
      .s_valid(s_visit_valid),
      .s_ready(s_visit_ready),
      .m_data ({visit}),
      .m_valid(visit_valid),
      .m_ready(visit_ready)
  );

  always_ff @(posedge clk) begin
    horizon <= s_horizon;
    latest <= s_latest;
    visit_horizon <= s_visit_horizon;
    if (rst) begin
      horizon <= '0;
      latest <= '1;
      visit_horizon <= '0;
    end
  end

  // The earliest time that a source can still bring.
  wire is_visit = visit.kind == WORD_VISIT;
  logic [Ports-1:0][63:0] head_time, bound;
  logic [63:0] visit_time, visit_bound;
  // Heads of the clock before that stay: looked at, found to be from before the clock went back.
  logic [Ports-1:0] looked_at, ahead;
  always_comb begin
    for (int i = 0; i < Ports; i++) begin
      head_time[i] = at_most(head[i].timestamp);
      bound[i] = head_valid[i] ? head_time[i] : horizon[i];
      if (ahead != '0 && !ahead[i] && (looked_at[i] || !head_valid[i])) bound[i] = '1;
    end
    visit_time  = at_most(visit.time_);
    visit_bound = '1;
    if (!visit_valid) visit_bound = ahead != '0 ? '1 : visit_horizon;
    else if (is_visit) visit_bound = visit_time;
  end

  always_ff @(posedge clk) begin
    for (int i = 0; i < Ports; i++) begin
      looked_at[i] <= head_valid[i] && !head_ready[i];
      ahead[i] <= head_valid[i] && !head_ready[i] && head_time[i] > latest[i];
    end
    if (rst) begin
      looked_at <= '0;
      ahead <= '0;
    end
  end

  // At most one goes.
  logic [Ports-1:0] go;
  logic visit_go;
  always_comb begin
    visit_go = visit_valid;
    for (int i = 0; i < Ports; i++) begin
      go[i] = head_valid[i] && (ahead == '0 || ahead[i]) && head_time[i] < visit_bound;
      for (int j = 0; j < Ports; j++) begin
        if (j < i && head_time[i] >= bound[j]) go[i] = 1'b0;
        if (j > i && head_time[i] > bound[j]) go[i] = 1'b0;
      end
      if (is_visit && visit_time > bound[i]) visit_go = 1'b0;
      if (!is_visit && (head_valid[i] || visit_time >= horizon[i])) visit_go = 1'b0;
    end
  end

  word_t merged;
  logic  merged_ready;
  always_comb begin
    merged = '0;
    merged.meta = head[0];
    for (int i = 1; i < Ports; i++) if (go[i]) merged.meta = head[i];
    merged.kind = WORD_PACKET;
    if (visit_go) begin
      merged.kind = visit.kind;
      merged.index = visit.index;
      merged.meta.timestamp = visit.time_;
    end
  end

  assign head_ready  = merged_ready ? go : '0;
  assign visit_ready = merged_ready && visit_go;

  logic timeline_valid, timeline_ready;
  word_t timeline_word;

  // Cuts the path from the choice to the time line.
  assign merged_ready = !timeline_valid || timeline_ready;
  always_ff @(posedge clk) begin
    if (merged_ready) begin
      timeline_word  <= merged;
      timeline_valid <= visit_go || |go;
    end
    if (rst) timeline_valid <= 1'b0;
  end

  weir_timeline #(
      .Ports(Ports),
      .DrainClocks(DrainClocks)
  ) u_timeline (
      .clk,
      .rst,
      .s_word (timeline_word),
      .s_valid(timeline_valid),
      .s_ready(timeline_ready),
      .m_word,
      .m_valid,
      .m_ready
  );

`ifndef SYNTHESIS
  a_one_goes :
  assert property (@(posedge clk) disable iff (rst) $onehot0({visit_go, go}));
  logic [31:0] accepted, chosen;
  always_ff @(posedge clk) begin
    accepted <= accepted + 32'($countones(s_meta_valid & s_meta_ready)) + 32'(s_visit_valid && s_visit_ready);
    chosen   <= chosen + 32'(timeline_valid && timeline_ready);
    if (rst) begin
      accepted <= '0;
      chosen   <= '0;
    end
  end
  // Two words at most in each slice, one in the register.
  a_conserves :
  assert property (@(posedge clk) disable iff (rst) accepted - chosen <= 32'(2 * Ports + 3));
`endif

endmodule

`default_nettype wire
