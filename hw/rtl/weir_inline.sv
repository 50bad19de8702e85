// Inline path of one direction: from the receiving MAC to the transmitting one, with a copy for
// measuring on the side.
//
//   s_ -> register -+-> measured stage (rst_measure) -+-> weir_bypass -> weir_elastic -> m_
//                   |        '-> tap_                 |
//                   '-> register, nothing else -------'
//
// Promise      User frames leave as they came. Nothing that measuring does reaches them: the copy has
//              no back-pressure, rst_measure may come and go at any time, and weir_bypass takes each
//              beat from the direct register unless the measured stage agrees with it.
// Throughput   One beat per clock.
// Latency      Hold + 7 clocks from a frame's first beat at s_ to m_tvalid, in either mode, for every
//              size, while the transmitting MAC is ready. It is longer while a pause of that MAC
//              drains; beyond Depth beats whole frames are dropped and counted (weir_elastic).
// Takeover     See weir_bypass: none to wait for at a fault; Heartbeat + 2 clocks and the rest of a
//              frame when the firmware stops; `rst` starts in bypass.
// Backpressure None at s_ and tap_.
// Hazards      `rst` cuts frames; release it between frames. s_terror marks, in the last beat, a frame
//              that the MAC received damaged; it leaves marked.

`default_nettype none

module weir_inline #(
    parameter int Heartbeat = 3_000_000,
    parameter int Depth = 512,
    parameter int Hold = 0
) (
    input var logic clk,
    input var logic rst,
    // Reset of the measuring side.
    input var logic rst_measure,

    input var logic enable,
    input var logic heartbeat,

    input var logic [511:0] s_tdata,
    input var logic [63:0] s_tkeep,
    input var logic s_tlast,
    input var logic s_terror,
    input var logic s_tvalid,

    output var logic [511:0] m_tdata,
    output var logic [63:0] m_tkeep,
    output var logic m_tlast,
    output var logic m_terror,
    output var logic m_tvalid,
    input var logic m_tready,

    output var logic [511:0] tap_tdata,
    output var logic [63:0] tap_tkeep,
    output var logic tap_tlast,
    output var logic tap_tvalid,

    output var logic measured,
    output var logic [31:0] takeovers,
    output var logic [31:0] faults,
    output var logic [31:0] frames_in,
    output var logic [31:0] frames_out,
    output var logic [31:0] frames_dropped,
    output var logic [31:0] frames_cut,
    output var logic [$clog2(Depth+3)-1:0] level
);

  typedef struct packed {
    logic [511:0] data;
    logic [63:0] keep;
    logic last;
    logic error;
  } beat_t;

  beat_t source;
  beat_t direct;
  beat_t stage;
  beat_t chosen;
  logic  source_valid;
  logic  direct_valid;
  logic  stage_valid;
  logic  chosen_valid;
  logic  source_in_frame;
  // The measuring side saw the start of the frame that is open.
  logic  tap_follows;

  always_ff @(posedge clk) begin
    source <= '{data: s_tdata, keep: s_tkeep, last: s_tlast, error: s_terror};
    direct <= source;
    stage  <= source;
  end

  always_ff @(posedge clk) begin
    source_valid <= s_tvalid;
    direct_valid <= source_valid;
    if (source_valid) begin
      source_in_frame <= !source.last;
    end
    if (rst) begin
      source_valid <= 1'b0;
      direct_valid <= 1'b0;
      source_in_frame <= 1'b0;
    end
  end

  always_ff @(posedge clk) begin
    stage_valid <= source_valid;
    // After a reset within a frame, its rest is not for the measuring side.
    tap_tvalid  <= source_valid && (tap_follows || !source_in_frame);
    tap_follows <= tap_follows || (source_valid && !source_in_frame);
    if (rst_measure || rst) begin
      stage_valid <= 1'b0;
      tap_tvalid  <= 1'b0;
      tap_follows <= 1'b0;
    end
  end

  assign tap_tdata = stage.data;
  assign tap_tkeep = stage.keep;
  assign tap_tlast = stage.last;

  weir_bypass #(
      .Heartbeat(Heartbeat)
  ) bypass (
      .clk,
      .rst,
      .enable,
      .heartbeat,
      .direct_tdata(direct.data),
      .direct_tkeep(direct.keep),
      .direct_tlast(direct.last),
      .direct_terror(direct.error),
      .direct_tvalid(direct_valid),
      .measured_tdata(stage.data),
      .measured_tkeep(stage.keep),
      .measured_tlast(stage.last),
      .measured_terror(stage.error),
      .measured_tvalid(stage_valid),
      .m_tdata(chosen.data),
      .m_tkeep(chosen.keep),
      .m_tlast(chosen.last),
      .m_terror(chosen.error),
      .m_tvalid(chosen_valid),
      .measured,
      .takeovers,
      .faults
  );

  weir_elastic #(
      .Depth(Depth),
      .Hold (Hold)
  ) elastic (
      .clk,
      .rst,
      .s_tdata (chosen.data),
      .s_tkeep (chosen.keep),
      .s_tlast (chosen.last),
      .s_terror(chosen.error),
      .s_tvalid(chosen_valid),
      .m_tdata,
      .m_tkeep,
      .m_tlast,
      .m_terror,
      .m_tvalid,
      .m_tready,
      .frames_in,
      .frames_out,
      .frames_dropped,
      .frames_cut,
      .level
  );

endmodule

`default_nettype wire
