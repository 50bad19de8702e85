// weir_u250 between two lines and a host: what its models of MAC and DMA keep inside, as ports. `clk` and `rst` are the
// host's; the other clocks come from the bench.

`default_nettype none

module weir_u250_bench #(
    parameter int Contexts = 64,
    parameter int Buckets = 16,
    parameter int Heartbeat = 3000,
    parameter int FlushClocks = 100000,
    parameter string RomFile = "",
    localparam int Ports = 2
) (
    input var logic clk,
    input var logic rst,
    input var logic core_clk,
    input var logic mac_clk_0,
    input var logic mac_clk_1,

    input var logic [31:0] s_awaddr,
    input var logic s_awvalid,
    output var logic s_awready,
    input var logic [31:0] s_wdata,
    input var logic [3:0] s_wstrb,
    input var logic s_wvalid,
    output var logic s_wready,
    output var logic [1:0] s_bresp,
    output var logic s_bvalid,
    input var logic s_bready,
    input var logic [31:0] s_araddr,
    input var logic s_arvalid,
    output var logic s_arready,
    output var logic [31:0] s_rdata,
    output var logic [1:0] s_rresp,
    output var logic s_rvalid,
    input var logic s_rready,
    // A message leaves; a request for one fails.
    output var logic irq,
    output var logic irq_failed,

    input var logic [Ports-1:0] line_up,
    input var logic [Ports-1:0] line_remote_fault,
    input var logic [Ports-1:0][511:0] rx_tdata,
    input var logic [Ports-1:0][63:0] rx_tkeep,
    input var logic [Ports-1:0] rx_tlast,
    input var logic [Ports-1:0] rx_terror,
    input var logic [Ports-1:0] rx_tvalid,
    output var logic [Ports-1:0][511:0] tx_tdata,
    output var logic [Ports-1:0][63:0] tx_tkeep,
    output var logic [Ports-1:0] tx_tlast,
    output var logic [Ports-1:0] tx_terror,
    output var logic [Ports-1:0] tx_tvalid,
    output var logic [Ports-1:0] send_rfi,

    input var logic host_takes_data,
    input var logic host_takes_completions,
    input var logic host_drops,
    input var logic host_fails_irq,
    output var logic [511:0] c2h_tdata,
    output var logic [31:0] c2h_tcrc,
    output var logic [6:0] c2h_ecc,
    output var logic [15:0] c2h_length,
    output var logic [10:0] c2h_qid,
    output var logic c2h_tlast,
    // A beat goes over.
    output var logic c2h_taken,
    output var logic [63:0] cmpt_tdata,
    output var logic [15:0] cmpt_dpar,
    output var logic [10:0] cmpt_qid,
    output var logic [15:0] cmpt_packet,
    output var logic cmpt_taken,

    input var logic [Ports-1:0] qsfp_modprsl,
    input var logic [Ports-1:0] qsfp_intl,
    output var logic [Ports-1:0] qsfp_resetl,
    output var logic [Ports-1:0] qsfp_lpmode,
    output var logic [2:0] led
);

  logic [Ports-1:0] qsfp_modsell;
  logic [Ports-1:0][3:0] qsfp_txp, qsfp_txn;
  logic [15:0] pcie_txp, pcie_txn;

  weir_u250 #(
      .Contexts(Contexts),
      .Buckets(Buckets),
      .Heartbeat(Heartbeat),
      .FlushClocks(FlushClocks),
      .RomFile(RomFile)
  ) board (
      .sysclk_p(core_clk),
      .sysclk_n(1'b0),
      .qsfp_refclk_p({mac_clk_1, mac_clk_0}),
      .qsfp_refclk_n('0),
      .qsfp_rxp('0),
      .qsfp_rxn('0),
      .qsfp_txp,
      .qsfp_txn,
      .qsfp_resetl,
      .qsfp_modsell,
      .qsfp_lpmode,
      .qsfp_modprsl,
      .qsfp_intl,
      .pcie_refclk_p(clk),
      .pcie_refclk_n(1'b0),
      .pcie_perst_n(!rst),
      .pcie_rxp('0),
      .pcie_rxn('0),
      .pcie_txp,
      .pcie_txn,
      .led
  );

  `define WEIR_LINE(p) board.gen_port[p].mac.gen_cage_``p.mac.model
  `define WEIR_CAGE(p) \
  assign `WEIR_LINE(p).line_up = line_up[p]; \
  assign `WEIR_LINE(p).line_remote_fault = line_remote_fault[p]; \
  assign `WEIR_LINE(p).line_rx_tdata = rx_tdata[p]; \
  assign `WEIR_LINE(p).line_rx_tkeep = rx_tkeep[p]; \
  assign `WEIR_LINE(p).line_rx_tlast = rx_tlast[p]; \
  assign `WEIR_LINE(p).line_rx_terror = rx_terror[p]; \
  assign `WEIR_LINE(p).line_rx_tvalid = rx_tvalid[p]; \
  assign tx_tdata[p] = `WEIR_LINE(p).line_tx_tdata; \
  assign tx_tkeep[p] = `WEIR_LINE(p).line_tx_tkeep; \
  assign tx_tlast[p] = `WEIR_LINE(p).line_tx_tlast; \
  assign tx_terror[p] = `WEIR_LINE(p).line_tx_terror; \
  assign tx_tvalid[p] = `WEIR_LINE(p).line_tx_tvalid; \
  assign send_rfi[p] = `WEIR_LINE(p).ctl_tx_send_rfi;

  `WEIR_CAGE(0)
  `WEIR_CAGE(1)

  assign board.dma.host_awaddr = s_awaddr;
  assign board.dma.host_awvalid = s_awvalid;
  assign s_awready = board.dma.host_awready;
  assign board.dma.host_wdata = s_wdata;
  assign board.dma.host_wstrb = s_wstrb;
  assign board.dma.host_wvalid = s_wvalid;
  assign s_wready = board.dma.host_wready;
  assign s_bresp = board.dma.host_bresp;
  assign s_bvalid = board.dma.host_bvalid;
  assign board.dma.host_bready = s_bready;
  assign board.dma.host_araddr = s_araddr;
  assign board.dma.host_arvalid = s_arvalid;
  assign s_arready = board.dma.host_arready;
  assign s_rdata = board.dma.host_rdata;
  assign s_rresp = board.dma.host_rresp;
  assign s_rvalid = board.dma.host_rvalid;
  assign board.dma.host_rready = s_rready;
  assign irq = board.dma.usr_irq_out_ack;
  assign irq_failed = board.dma.usr_irq_out_fail;

  assign board.dma.host_takes_data = host_takes_data;
  assign board.dma.host_takes_completions = host_takes_completions;
  assign board.dma.host_drops = host_drops;
  assign board.dma.host_fails_irq = host_fails_irq;
  assign c2h_tdata = board.dma.s_axis_c2h_tdata;
  assign c2h_tcrc = board.dma.s_axis_c2h_tcrc;
  assign c2h_ecc = board.dma.s_axis_c2h_ctrl_ecc;
  assign c2h_length = board.dma.s_axis_c2h_ctrl_len;
  assign c2h_qid = board.dma.s_axis_c2h_ctrl_qid;
  assign c2h_tlast = board.dma.s_axis_c2h_tlast;
  assign c2h_taken = board.dma.s_axis_c2h_tvalid && board.dma.s_axis_c2h_tready;
  assign cmpt_tdata = board.dma.s_axis_c2h_cmpt_tdata[63:0];
  assign cmpt_dpar = board.dma.s_axis_c2h_cmpt_dpar;
  assign cmpt_qid = board.dma.s_axis_c2h_cmpt_ctrl_qid;
  assign cmpt_packet = board.dma.s_axis_c2h_cmpt_ctrl_wait_pld_pkt_id;
  assign cmpt_taken = board.dma.s_axis_c2h_cmpt_tvalid && board.dma.s_axis_c2h_cmpt_tready;

endmodule

`default_nettype wire
