// The three kernels beside the measuring pipeline: its words in, their results out.
//
// Promise      Each kernel gets the words in order; a word that finds a kernel's queue full is not counted by that kernel,
//              and counted in its `dropped`. Nothing here holds up the measuring pipeline. Result words of a kernel come
//              out in its order, those of different kernels in turn.
// Throughput   One word per clock; one result per clock.
// Latency      Three clocks and the kernel's.
// Backpressure None at s_; m_ may wait.
// Hazards      Needs weir_kernel_*: the models of hw/hls/dpi in simulation, the vendor's IP on a card.

`default_nettype none

module weir_kernels
  import weir_kernel_pkg::*;
#(
    // Words that wait for a kernel. It takes one per clock but for 4,096 clocks after reset.
    parameter int Depth = 16,
    localparam int Kernels = 3,
    localparam int Ports = 2,
    localparam int Services = 7
) (
    input wire logic clk,
    input wire logic rst,

    input wire kernel_word_t s_word,
    input wire logic         s_valid,

    // Bytes in 100 us that make a bin part of a burst; 0: none.
    input wire logic [   Ports-1:0][31:0] thresholds,
    // Server ports with histograms of their own; 0: no entry.
    input wire logic [Services-1:0][15:0] services,
    input wire logic [       191:0]       seed,

    output var logic      [511:0] m_data,
    // The last word of a kernel's interval.
    output var logic              m_last,
    output var logic              m_valid,
    input      wire logic         m_ready,

    output var logic [Kernels-1:0][31:0] dropped
);

  logic [Kernels-1:0] room, valid, ready, result_last, result_valid, result_ready;
  kernel_word_t word[Kernels];
  logic [511:0] result[Kernels];

  // Results are whole words, and how full a queue is matters to nobody.
  // verilator lint_off PINCONNECTEMPTY

  for (genvar k = 0; k < Kernels; k++) begin : gen_queue
    weir_fifo #(
        .Width($bits(kernel_word_t)),
        .Depth(Depth)
    ) u_fifo (
        .clk,
        .rst,
        .s_data (s_word),
        .s_valid(s_valid && room[k]),
        .s_ready(room[k]),
        .m_data (word[k]),
        .m_valid(valid[k]),
        .m_ready(ready[k]),
        .level  ()
    );

    always_ff @(posedge clk) begin
      if (s_valid && !room[k]) dropped[k] <= dropped[k] + 1;
      if (rst) dropped[k] <= '0;
    end
  end

  weir_kernel_bursts u_bursts (
      .ap_clk(clk),
      .ap_rst_n(!rst),
      .s_word_TDATA(word[0]),
      .s_word_TVALID(valid[0]),
      .s_word_TREADY(ready[0]),
      .m_result_TDATA(result[0]),
      .m_result_TKEEP(),
      .m_result_TSTRB(),
      .m_result_TLAST(result_last[0]),
      .m_result_TVALID(result_valid[0]),
      .m_result_TREADY(result_ready[0]),
      .threshold(thresholds)
  );

  weir_kernel_histograms u_histograms (
      .ap_clk(clk),
      .ap_rst_n(!rst),
      .s_word_TDATA(word[1]),
      .s_word_TVALID(valid[1]),
      .s_word_TREADY(ready[1]),
      .m_result_TDATA(result[1]),
      .m_result_TKEEP(),
      .m_result_TSTRB(),
      .m_result_TLAST(result_last[1]),
      .m_result_TVALID(result_valid[1]),
      .m_result_TREADY(result_ready[1]),
      .services
  );

  weir_kernel_talkers u_talkers (
      .ap_clk(clk),
      .ap_rst_n(!rst),
      .s_word_TDATA(word[2]),
      .s_word_TVALID(valid[2]),
      .s_word_TREADY(ready[2]),
      .m_result_TDATA(result[2]),
      .m_result_TKEEP(),
      .m_result_TSTRB(),
      .m_result_TLAST(result_last[2]),
      .m_result_TVALID(result_valid[2]),
      .m_result_TREADY(result_ready[2]),
      .seed
  );

  // verilator lint_on PINCONNECTEMPTY

  // One looked at in each clock, in turn: a kernel makes far fewer results than one in three clocks.
  logic [1:0] turn;
  logic room_out, take;

  assign take = result_valid[turn] && room_out;
  always_comb begin
    result_ready = '0;
    result_ready[turn] = room_out;
  end

  always_ff @(posedge clk) begin
    turn <= turn == 2'(Kernels - 1) ? '0 : turn + 1;
    if (rst) turn <= '0;
  end

  weir_skid #(
      .Width(513)
  ) u_skid (
      .clk,
      .rst,
      .s_data ({result_last[turn], result[turn]}),
      .s_valid(take),
      .s_ready(room_out),
      .m_data ({m_last, m_data}),
      .m_valid,
      .m_ready
  );

endmodule

`default_nettype wire
