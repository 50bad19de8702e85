// Histograms of round-trip and response times: simulation model of the HLS kernel, its own C++ through DPI.
//
// On a card the IP that the vendor's tool makes of hw/hls/weir_kernel_histograms.cpp stands in its place, with this name
// and these ports. The C++ has the contract: hw/hls/weir_kernel_histograms.h.
//
// Promise      Words are counted in the order in which they come, none is lost.
// Throughput   One word per clock.
// Latency      Results appear from the clock after a word of the next interval; the model knows no pipeline, the
//              vendor's report says how deep it is.
// Backpressure s_word_TREADY falls while memories are cleared after reset (4,096 clocks at most), and where intervals end
//              faster than they are walked; m_result may wait: results that find no room are lost and counted.

`default_nettype none

module weir_kernel_histograms (
    input wire logic ap_clk,
    input wire logic ap_rst_n,

    input      wire logic [511:0] s_word_TDATA,
    input      wire logic         s_word_TVALID,
    output var logic              s_word_TREADY,

    output var logic      [511:0] m_result_TDATA,
    output var logic      [ 63:0] m_result_TKEEP,
    output var logic      [ 63:0] m_result_TSTRB,
    output var logic              m_result_TLAST,
    output var logic              m_result_TVALID,
    input      wire logic         m_result_TREADY,

    // Server ports with histograms of their own, 16 bits each; 0: no entry.
    input wire logic [111:0] services
);

`ifdef VERILATOR
  localparam int Kind = 1;

  import "DPI-C" function chandle weir_kernel_new(int kind);
  import "DPI-C" function void weir_kernel_reset(chandle kernel);
  import "DPI-C" function void weir_kernel_clock(
    chandle kernel,
    bit taken,
    bit [511:0] word,
    bit sent,
    bit [191:0] settings,
    output bit ready,
    output bit valid,
    output bit [511:0] result,
    output bit last
  );

  chandle kernel;
  // As after reset: it needs no other one.
  bit fresh;

  initial kernel = weir_kernel_new(Kind);

  always_ff @(posedge ap_clk) begin
    automatic bit ready = 1'b0;
    automatic bit valid = 1'b0;
    automatic bit last = 1'b0;
    automatic bit [511:0] result = '0;
    if (!ap_rst_n) begin
      if (!fresh) weir_kernel_reset(kernel);
      fresh <= 1'b1;
    end else begin
      fresh <= 1'b0;
      weir_kernel_clock(kernel, s_word_TVALID && s_word_TREADY, s_word_TDATA, m_result_TVALID && m_result_TREADY,
                        192'(services), ready, valid, result, last);
    end
    s_word_TREADY   <= ready;
    m_result_TVALID <= valid;
    m_result_TLAST  <= last;
    m_result_TDATA  <= result;
  end

  assign m_result_TKEEP = '1;
  assign m_result_TSTRB = '1;

  a_result_is_held :
  assert property (@(posedge ap_clk) disable iff (!ap_rst_n)
                   m_result_TVALID && !m_result_TREADY |=> m_result_TVALID && $stable(
      m_result_TDATA
  ) && $stable(
      m_result_TLAST
  ));
`else
  $error("a model for Verilator; elsewhere the vendor's IP of this name");
`endif

endmodule

`default_nettype wire
