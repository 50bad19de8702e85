// AXI4-Lite from one clock to another: each of its five channels through a weir_async_fifo.
//
// Promise      Accesses arrive as they were made, answers likewise.
// Latency      An access takes about 20 clocks more than without.
// Resets       Either side's reset empties all channels; m_reset tells. An access under way is lost: its master gets no
//              answer, and what answers it is to drop the answer.

`default_nettype none

module weir_axil_crossing #(
    parameter int AddressWidth = 32
) (
    input var logic s_clk,
    input var logic s_rst,
    input var logic [AddressWidth-1:0] s_awaddr,
    input var logic s_awvalid,
    output var logic s_awready,
    input var logic [31:0] s_wdata,
    input var logic [3:0] s_wstrb,
    input var logic s_wvalid,
    output var logic s_wready,
    output var logic [1:0] s_bresp,
    output var logic s_bvalid,
    input var logic s_bready,
    input var logic [AddressWidth-1:0] s_araddr,
    input var logic s_arvalid,
    output var logic s_arready,
    output var logic [31:0] s_rdata,
    output var logic [1:0] s_rresp,
    output var logic s_rvalid,
    input var logic s_rready,

    input var logic m_clk,
    input var logic m_rst,
    output var logic [AddressWidth-1:0] m_awaddr,
    output var logic m_awvalid,
    input var logic m_awready,
    output var logic [31:0] m_wdata,
    output var logic [3:0] m_wstrb,
    output var logic m_wvalid,
    input var logic m_wready,
    input var logic [1:0] m_bresp,
    input var logic m_bvalid,
    output var logic m_bready,
    output var logic [AddressWidth-1:0] m_araddr,
    output var logic m_arvalid,
    input var logic m_arready,
    input var logic [31:0] m_rdata,
    input var logic [1:0] m_rresp,
    input var logic m_rvalid,
    output var logic m_rready,
    output var logic m_reset
);

  // verilator lint_off UNUSEDSIGNAL
  logic [4:0] s_resets, m_resets;
  // verilator lint_on UNUSEDSIGNAL
  assign m_reset = m_resets[0];

  weir_async_fifo #(
      .Width(AddressWidth)
  ) write_address (
      .s_clk,
      .s_rst,
      .s_data (s_awaddr),
      .s_valid(s_awvalid),
      .s_ready(s_awready),
      .s_reset(s_resets[0]),
      .m_clk,
      .m_rst,
      .m_data (m_awaddr),
      .m_valid(m_awvalid),
      .m_ready(m_awready),
      .m_reset(m_resets[0])
  );

  weir_async_fifo #(
      .Width(36)
  ) write_data (
      .s_clk,
      .s_rst,
      .s_data ({s_wstrb, s_wdata}),
      .s_valid(s_wvalid),
      .s_ready(s_wready),
      .s_reset(s_resets[1]),
      .m_clk,
      .m_rst,
      .m_data ({m_wstrb, m_wdata}),
      .m_valid(m_wvalid),
      .m_ready(m_wready),
      .m_reset(m_resets[1])
  );

  weir_async_fifo #(
      .Width(2)
  ) write_answer (
      .s_clk  (m_clk),
      .s_rst  (m_rst),
      .s_data (m_bresp),
      .s_valid(m_bvalid),
      .s_ready(m_bready),
      .s_reset(m_resets[2]),
      .m_clk  (s_clk),
      .m_rst  (s_rst),
      .m_data (s_bresp),
      .m_valid(s_bvalid),
      .m_ready(s_bready),
      .m_reset(s_resets[2])
  );

  weir_async_fifo #(
      .Width(AddressWidth)
  ) read_address (
      .s_clk,
      .s_rst,
      .s_data (s_araddr),
      .s_valid(s_arvalid),
      .s_ready(s_arready),
      .s_reset(s_resets[3]),
      .m_clk,
      .m_rst,
      .m_data (m_araddr),
      .m_valid(m_arvalid),
      .m_ready(m_arready),
      .m_reset(m_resets[3])
  );

  weir_async_fifo #(
      .Width(34)
  ) read_answer (
      .s_clk  (m_clk),
      .s_rst  (m_rst),
      .s_data ({m_rresp, m_rdata}),
      .s_valid(m_rvalid),
      .s_ready(m_rready),
      .s_reset(m_resets[4]),
      .m_clk  (s_clk),
      .m_rst  (s_rst),
      .m_data ({s_rresp, s_rdata}),
      .m_valid(s_rvalid),
      .m_ready(s_rready),
      .m_reset(s_resets[4])
  );

endmodule

`default_nettype wire
