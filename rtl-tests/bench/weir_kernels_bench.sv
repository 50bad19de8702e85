// From a packet as the tracker has it to the kernels' results; `packed_word` is what the kernels get.

`default_nettype none

module weir_kernels_bench
  import weir_pkg::*;
  import weir_kernel_pkg::*;
(
    input wire logic clk,
    input wire logic rst,

    input wire word_t         s_word,
    input wire lookup_t       s_lookup,
    input wire kernel_facts_t s_facts,
    input wire logic          s_valid,

    input wire logic [1:0][31:0] thresholds,
    input wire logic [6:0][15:0] services,
    input wire logic [191:0] seed,

    output var logic [511:0] packed_word,

    output var logic      [511:0] m_data,
    output var logic              m_last,
    output var logic              m_valid,
    input      wire logic         m_ready,

    output var logic [2:0][31:0] dropped
);

  kernel_word_t word;
  logic valid;
  assign packed_word = word;

  weir_kernel_word u_word (
      .clk,
      .rst,
      .s_word,
      .s_lookup,
      .s_facts,
      .s_valid,
      .m_word (word),
      .m_valid(valid)
  );

  weir_kernels u_kernels (
      .clk,
      .rst,
      .s_word (word),
      .s_valid(valid),
      .thresholds,
      .services,
      .seed,
      .m_data,
      .m_last,
      .m_valid,
      .m_ready,
      .dropped
  );

endmodule

`default_nettype wire
