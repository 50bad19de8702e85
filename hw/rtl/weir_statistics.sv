// Statistics per 100 ms as records: section 10 of docs/src/flow-engine.md.
//
// Promise      The kernels (hw/hls) see each word if `enable` is set, else they are held in reset. Their results come out
//              as records of `lane`, numbered without a gap from reset.
// Throughput   One word per clock; one record per clock.
// Backpressure None at s_. m_ may wait; results that the kernels cannot keep meanwhile are lost and counted.
// Counters     words_lost: words that a kernel had no room for. results_lost: as the kernels' last record of an interval
//              says. records_out: records that have left. In the order bursts, histograms, talkers.
// Hazards      Settings are to be changed in reset only.

`default_nettype none

module weir_statistics
  import weir_kernel_pkg::*;
  import weir_records_pkg::*;
#(
    localparam int Ports = 2,
    localparam int Services = 7,
    localparam int Kernels = 3
) (
    input var logic clk,
    input var logic rst,

    input var logic enable,
    input var logic [3:0] lane,
    input var logic [Ports-1:0][31:0] thresholds,
    input var logic [Services-1:0][15:0] services,
    input var logic [191:0] seed,

    input var kernel_word_t s_word,
    input var logic s_valid,

    output var logic [511:0] m_record,
    output var logic m_valid,
    input var logic m_ready,

    output var logic [Kernels-1:0][31:0] words_lost,
    output var logic [Kernels-1:0][31:0] results_lost,
    output var logic [31:0] records_out
);

  logic [511:0] result;
  logic last;
  weir_kernels kernels (
      .clk,
      .rst(rst || !enable),
      .s_word,
      .s_valid,
      .thresholds,
      .services,
      .seed,
      .m_data(result),
      .m_last(last),
      .m_valid,
      .m_ready,
      .dropped(words_lost)
  );

  logic [31:0] sequence_;
  record_header_t header;
  always_comb begin
    header = record_header_t'(result[$bits(record_header_t)-1:0]);
    header.version_lane = {4'(RecordVersion), lane};
    header.sequence_ = sequence_;
    m_record = {result[511:$bits(record_header_t)], header};
  end

  assign records_out = sequence_;

  // Structures are taken whole, whatever part of them is used.
  // verilator lint_off UNUSEDSIGNAL
  record_burst_t burst;
  record_histogram_more_t histogram;
  record_top_more_t top;
  // verilator lint_on UNUSEDSIGNAL
  assign burst = result;
  assign histogram = result;
  assign top = result;

  always_ff @(posedge clk) begin
    if (m_valid && m_ready) begin
      sequence_ <= sequence_ + 1;
      if (last) begin
        case (header.kind)
          KIND_BURST: results_lost[0] <= burst.lost;
          KIND_HISTOGRAM: results_lost[1] <= histogram.lost;
          default: results_lost[2] <= top.lost;
        endcase
      end
    end
    if (rst) begin
      sequence_ <= '0;
      results_lost <= '0;
    end
  end

`ifndef SYNTHESIS
  a_kind :
  assert property (@(posedge clk) disable iff (rst) m_valid |->
                   header.kind inside {KIND_BURST, KIND_HISTOGRAM, KIND_TOP});
  a_stable :
  assert property (@(posedge clk) disable iff (rst) m_valid && !m_ready |=> m_valid && $stable(m_record));
`endif

endmodule

`default_nettype wire
