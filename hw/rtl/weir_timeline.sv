// Words in merged order to words of the engine (docs/src/flow-engine.md section 1): time that never runs
// backwards, the 10-ms grid, PORT words at whole seconds, and room between words far apart in time.
//
// Promise      Every word comes out once, in order, but for WORD_PORT.
//              - meta.timestamp becomes `now`: the largest time of any word so far, at most 2^63. `clamped` is
//                set for packets whose own time was below it.
//              - fine_start, fine_number, fine_digit are those of `now`.
//              - When a word reaches or passes a whole second, a visit when it passes it, WORD_PORT of each
//                port goes before it in ascending order, with the first such second as its time: one report
//                for any number of seconds passed, none before the first word.
//              - A word WORD_PORT at s_ asks for such a report at `now`.
// Pauses       Words that are 2^21 ns or more apart are DrainClocks clocks or more apart at m_: the lookup
//              needs that. (A word later than 2^20 ns after the last one that waited for DrainClocks clocks
//              without a word waits for them.)
// Throughput   One word per clock; a clock is lost at each step of the grid, some 70 when the time leaps by
//              more than one step (a division), DrainClocks when it leaps by 2^20 ns.
// Latency      2 clocks.
// Backpressure s_ready depends on m_ready of the same clock.
// Hazards      Nothing that can close the gap between two words may stand between m_ and the lookup.

`default_nettype none

module weir_timeline
  import weir_pkg::*;
  import weir_records_pkg::*;
#(
    parameter int Ports = 2,
    parameter int DrainClocks = 64
) (
    input var logic clk,
    input var logic rst,

    // Kind, index and meta; the rest is not looked at.
    // verilator lint_off UNUSEDSIGNAL
    input var  word_t s_word,
    // verilator lint_on UNUSEDSIGNAL
    input var  logic  s_valid,
    output var logic  s_ready,

    output var word_t m_word,
    output var logic  m_valid,
    input var  logic  m_ready
);

  localparam logic [63:0] Second = 64'd1_000_000_000;
  localparam logic [63:0] Fine = 64'(RecordFineIntervalNs);
  localparam logic [63:0] MaxTime = 64'h8000_0000_0000_0000;
  localparam logic [63:0] DrainNs = 64'd1 << 20;
  localparam int IdleWidth = $clog2(DrainClocks + 1);

  if (Ports < 1 || Ports > 16) begin : gen_check_ports
    $error("Ports must be 1 .. 16");
  end
  if (DrainClocks < 1) begin : gen_check_drain
    $error("DrainClocks must be positive");
  end

  // First register: the word at its time.
  word_t word;
  logic word_valid;
  logic word_taken;
  logic [63:0] now;

  wire [63:0] own_time = s_word.meta.timestamp[63] ? MaxTime : s_word.meta.timestamp;
  wire behind = own_time < now;

  assign s_ready = !word_valid || word_taken;

  always_ff @(posedge clk) begin
    if (s_ready) begin
      word <= s_word;
      word.meta.timestamp <= behind ? now : own_time;
      word.clamped <= behind && s_word.kind == WORD_PACKET;
      word_valid <= s_valid;
    end
    if (s_ready && s_valid && !behind) now <= own_time;
    if (rst) begin
      word_valid <= 1'b0;
      now <= '0;
    end
  end

  // Where the words before it stand: the interval of 10 ms and the end of the next one, the next whole
  // second, and the time from which on a word waits.
  logic started;
  logic [63:0] fine_start, fine_end, fine_next_end;
  logic [15:0] fine_number;
  logic [3:0] fine_digit;
  logic [63:0] next_second;
  logic [63:0] wait_after;
  logic [IdleWidth-1:0] idle;

  // Of the word at hand: the report of its second is made.
  logic reported;
  logic [3:0] port;

  typedef enum logic [1:0] {
    RUN,
    REPORT_SECOND,
    REPORT_NOW,
    DIVIDE
  } state_e;
  state_e state;

  wire [63:0] time_ = word.meta.timestamp;
  // Visits at the second itself go before its report.
  wire passes = started && !reported && (word.kind == WORD_VISIT ? time_ > next_second : time_ >= next_second);
  wire leaps = time_ >= fine_next_end;
  wire steps = time_ >= fine_end;
  wire waits = time_ > wait_after && (m_valid || idle != IdleWidth'(DrainClocks));
  wire asks = word.kind == WORD_PORT;
  wire out_free = !m_valid || m_ready;

  // The first that applies.
  wire run = state == RUN && word_valid;
  wire begin_report = run && passes;
  wire divide = run && !passes && leaps;
  wire step = run && !passes && !leaps && steps;
  wire ready = run && !passes && !steps && !waits;
  wire begin_asked = ready && asks;
  wire emit = ready && !asks && out_free;

  wire report = (state == REPORT_SECOND || state == REPORT_NOW) && out_free;
  wire report_ends = report && port == 4'(Ports - 1);

  assign word_taken = emit || (report_ends && state == REPORT_NOW);

  logic divided;
  logic [63:0] divided_start, divided_second;
  logic [15:0] divided_number;
  logic [ 3:0] divided_digit;

  weir_grid_divider u_divider (
      .clk,
      .rst,
      .start(divide),
      .s_time(time_),
      .done(divided),
      .fine_start(divided_start),
      .fine_number(divided_number),
      .fine_digit(divided_digit),
      .second_start(divided_second)
  );

  always_ff @(posedge clk) begin
    if (begin_report) state <= REPORT_SECOND;
    if (begin_asked) state <= REPORT_NOW;
    if (divide) state <= DIVIDE;
    if (report_ends || divided) state <= RUN;

    if (report) port <= report_ends ? '0 : port + 1'b1;
    if (report_ends && state == REPORT_SECOND) begin
      reported <= 1'b1;
      // Right if the time does not leap; else the division corrects it.
      next_second <= next_second + Second;
    end

    if (step) begin
      fine_start <= fine_end;
      fine_end <= fine_next_end;
      fine_next_end <= fine_next_end + Fine;
      fine_number <= fine_number + 1'b1;
      fine_digit <= fine_digit == 4'd9 ? '0 : fine_digit + 1'b1;
    end
    if (divided) begin
      fine_start <= divided_start;
      fine_end <= divided_start + Fine;
      fine_next_end <= divided_start + 2 * Fine;
      fine_number <= divided_number;
      fine_digit <= divided_digit;
      // Not for a visit at the second itself: the report is due behind it.
      if (reported || !started) next_second <= divided_second + Second;
    end

    if (emit && time_ > wait_after) wait_after <= time_ + DrainNs;
    if (word_taken) begin
      started  <= 1'b1;
      reported <= 1'b0;
    end

    if (m_valid) idle <= '0;
    else if (idle != IdleWidth'(DrainClocks)) idle <= idle + 1'b1;

    if (rst) begin
      state <= RUN;
      started <= 1'b0;
      reported <= 1'b0;
      port <= '0;
      idle <= '0;
      next_second <= Second;
      wait_after <= '0;
      fine_start <= '0;
      fine_end <= Fine;
      fine_next_end <= 2 * Fine;
      fine_number <= '0;
      fine_digit <= '0;
    end
  end

  // Second register: the word with its grid, or a report.
  always_ff @(posedge clk) begin
    if (out_free) begin
      m_word <= word;
      m_word.fine_start <= fine_start;
      m_word.fine_number <= fine_number;
      m_word.fine_digit <= fine_digit;
      if (report) begin
        m_word.kind <= WORD_PORT;
        m_word.clamped <= 1'b0;
        m_word.meta.port <= port;
        if (state == REPORT_SECOND) m_word.meta.timestamp <= next_second;
      end
      m_valid <= emit || report;
    end
    if (rst) m_valid <= 1'b0;
  end

`ifndef SYNTHESIS
  a_output_stable :
  assert property (@(posedge clk) disable iff (rst) m_valid && !m_ready |=> m_valid && $stable(m_word));
  logic [63:0] last_time;
  logic [31:0] gap;
  logic any;
  always_ff @(posedge clk) begin
    gap <= m_valid ? '0 : gap + 1'b1;
    if (m_valid) begin
      any <= 1'b1;
      last_time <= m_word.meta.timestamp;
    end
    if (rst) begin
      any <= 1'b0;
      last_time <= '0;
      gap <= '0;
    end
  end
  a_time_runs_forward :
  assert property (@(posedge clk) disable iff (rst) m_valid |-> m_word.meta.timestamp >= last_time);
  a_room_behind_a_leap :
  assert property (@(posedge clk) disable iff (rst)
      m_valid && any && m_word.kind != WORD_PORT && m_word.meta.timestamp >= last_time + 2 * DrainNs
      |-> gap >= DrainClocks);
  a_grid :
  assert property (@(posedge clk) disable iff (rst) m_valid && m_word.kind != WORD_PORT |->
      m_word.fine_start <= m_word.meta.timestamp && m_word.meta.timestamp - m_word.fine_start < Fine);
`endif

endmodule

`default_nettype wire
