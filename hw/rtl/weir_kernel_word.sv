// What the HLS kernels are told of each word: hw/hls/include/weir_word.h.
//
// Promise      Each word with s_valid comes out at m_, in order, as weir_kernel_pkg::kernel_word has it.
// Throughput   One word per clock.
// Latency      One clock.
// Backpressure None: hw/hls/weir_kernels.sv takes a word in every clock.
// Hazards      s_facts are those after the word: of a packet that opens its flow, the client it opened it with.

`default_nettype none

module weir_kernel_word
  import weir_pkg::*;
  import weir_kernel_pkg::*;
(
    input wire logic clk,
    input wire logic rst,

    input wire word_t         s_word,
    input wire lookup_t       s_lookup,
    input wire kernel_facts_t s_facts,
    input wire logic          s_valid,

    output kernel_word_t m_word,
    output logic         m_valid
);

  always_ff @(posedge clk) begin
    m_word  <= kernel_word(s_word, s_lookup, s_facts);
    m_valid <= s_valid;
    if (rst) m_valid <= 1'b0;
  end

endmodule

`default_nettype wire
