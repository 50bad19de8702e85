// Weir on an Alveo U250: the card between the two QSFP28 cages, registers and record frames over PCIe Gen3 x16.
//
//   cage 0/1 <-> weir_u250_mac <-> weir_mac_port <-> weir_card <-> weir_board_registers <-> weir_axil_crossing <-> qdma_0
//                  322 MHz              300 MHz         '-- record frames, slices -> weir_c2h -> weir_qdma_c2h -----'
//                                                                                                  250 MHz
//
// Promise      That of weir_card, at the cages and at the DMA: queue 0 has the record frames, 1 and 2 the header slices of
//              ports 0 and 1. BAR 2 has the card's registers at 0 and the board's at 0x4000 (docs/src/bring-up.md).
//              Cages and datapath do not wait for PCIe: a host that boots or goes away leaves the link alone.
// Lacks        A PPS input: the board has no connector for one. The clock follows the host's TIME_SYNC.
// LEDs         0: both links up; 1: blinks with the card's clock (every 0.45 s); 2: PCIe up.

`default_nettype none

module weir_u250
  import weir_board_pkg::*;
#(
    parameter int Contexts = 1 << 18,
    parameter int Buckets = 1 << 15,
    parameter int Heartbeat = 3_000_000,
    parameter int FlushClocks = 30_000,
    // Of the CPU: build/firmware/boot.hex.
    parameter string RomFile = "",
    parameter bit RsFec = 1'b1,
    localparam int Ports = 2
) (
    input var logic sysclk_p,
    input var logic sysclk_n,

    input var logic [Ports-1:0] qsfp_refclk_p,
    input var logic [Ports-1:0] qsfp_refclk_n,
    input var logic [Ports-1:0][3:0] qsfp_rxp,
    input var logic [Ports-1:0][3:0] qsfp_rxn,
    output var logic [Ports-1:0][3:0] qsfp_txp,
    output var logic [Ports-1:0][3:0] qsfp_txn,
    output var logic [Ports-1:0] qsfp_resetl,
    output var logic [Ports-1:0] qsfp_modsell,
    output var logic [Ports-1:0] qsfp_lpmode,
    input var logic [Ports-1:0] qsfp_modprsl,
    input var logic [Ports-1:0] qsfp_intl,

    input var logic pcie_refclk_p,
    input var logic pcie_refclk_n,
    input var logic pcie_perst_n,
    input var logic [15:0] pcie_rxp,
    input var logic [15:0] pcie_rxn,
    output var logic [15:0] pcie_txp,
    output var logic [15:0] pcie_txn,

    output var logic [2:0] led
);

  localparam logic [31:0] BoardId = 32'h0000_0250;
  localparam logic [2:0] PmaLoopback = 3'b010;

  // --- Clocks and resets ------------------------------------------------------------------------------

  logic clk, init_clk, locked, rst;
  logic dma_clk, dma_rst_n, dma_rst;
  logic pcie_clk, pcie_clk_gt;

  // 300 MHz in; 300 MHz for the card, 100 MHz for the transceivers' start.
  clk_wiz_0 clocks (
      .clk_in1_p(sysclk_p),
      .clk_in1_n(sysclk_n),
      .clk_out1 (clk),
      .clk_out2 (init_clk),
      .locked
  );

  weir_reset core_reset (
      .clk,
      .clear(!locked),
      .rst
  );

  weir_reset dma_reset (
      .clk  (dma_clk),
      .clear(!dma_rst_n),
      .rst  (dma_rst)
  );

  IBUFDS_GTE4 pcie_refclk (
      .CEB(1'b0),
      .I(pcie_refclk_p),
      .IB(pcie_refclk_n),
      .O(pcie_clk_gt),
      .ODIV2(pcie_clk)
  );

  // --- Wire ports -------------------------------------------------------------------------------------

  logic [Ports-1:0][511:0] rx_tdata, tx_tdata;
  logic [Ports-1:0][63:0] rx_tkeep, tx_tkeep;
  logic [Ports-1:0] rx_tlast, rx_terror, rx_tvalid;
  logic [Ports-1:0] tx_tlast, tx_terror, tx_tvalid, tx_tready;
  port_state_t   [Ports-1:0] port_states;
  port_control_t [Ports-1:0] port_controls;
  logic [Ports-1:0] module_present, module_irq;

  for (genvar p = 0; p < Ports; p++) begin : gen_port
    logic mac_clk, mac_rst;
    logic [511:0] mac_rx_tdata, mac_tx_tdata;
    logic [63:0] mac_rx_tkeep, mac_tx_tkeep;
    logic mac_rx_tlast, mac_rx_terror, mac_rx_tvalid;
    logic mac_tx_tlast, mac_tx_terror, mac_tx_tvalid, mac_tx_tready, mac_tx_underflow;
    logic mac_rx_aligned, mac_rx_remote_fault, mac_rx_enable, mac_tx_enable, mac_tx_send_rfi;
    logic init_rst, mac_reset_wanted;

    always_ff @(posedge clk) mac_reset_wanted <= rst || port_controls[p].mac_reset;

    weir_reset mac_reset (
        .clk  (init_clk),
        .clear(mac_reset_wanted),
        .rst  (init_rst)
    );

    weir_u250_mac #(
        .Index(p),
        .RsFec(RsFec)
    ) mac (
        .gt_rxp(qsfp_rxp[p]),
        .gt_rxn(qsfp_rxn[p]),
        .gt_txp(qsfp_txp[p]),
        .gt_txn(qsfp_txn[p]),
        .refclk_p(qsfp_refclk_p[p]),
        .refclk_n(qsfp_refclk_n[p]),
        .init_clk,
        .sys_reset(init_rst),
        .loopback(port_controls[p].loopback ? PmaLoopback : 3'b000),
        .clk(mac_clk),
        .rst(mac_rst),
        .rx_enable(mac_rx_enable),
        .tx_enable(mac_tx_enable),
        .tx_send_rfi(mac_tx_send_rfi),
        .rx_aligned(mac_rx_aligned),
        .rx_remote_fault(mac_rx_remote_fault),
        .tx_underflow(mac_tx_underflow),
        .rx_tdata(mac_rx_tdata),
        .rx_tkeep(mac_rx_tkeep),
        .rx_tlast(mac_rx_tlast),
        .rx_terror(mac_rx_terror),
        .rx_tvalid(mac_rx_tvalid),
        .tx_tdata(mac_tx_tdata),
        .tx_tkeep(mac_tx_tkeep),
        .tx_tlast(mac_tx_tlast),
        .tx_terror(mac_tx_terror),
        .tx_tvalid(mac_tx_tvalid),
        .tx_tready(mac_tx_tready)
    );

    weir_mac_port wire_port (
        .clk,
        .rst,
        .rx_tdata(rx_tdata[p]),
        .rx_tkeep(rx_tkeep[p]),
        .rx_tlast(rx_tlast[p]),
        .rx_terror(rx_terror[p]),
        .rx_tvalid(rx_tvalid[p]),
        .tx_tdata(tx_tdata[p]),
        .tx_tkeep(tx_tkeep[p]),
        .tx_tlast(tx_tlast[p]),
        .tx_terror(tx_terror[p]),
        .tx_tvalid(tx_tvalid[p]),
        .tx_tready(tx_tready[p]),
        .state(port_states[p]),
        .mac_clk,
        .mac_rst,
        .mac_rx_tdata,
        .mac_rx_tkeep,
        .mac_rx_tlast,
        .mac_rx_terror,
        .mac_rx_tvalid,
        .mac_tx_tdata,
        .mac_tx_tkeep,
        .mac_tx_tlast,
        .mac_tx_terror,
        .mac_tx_tvalid,
        .mac_tx_tready,
        .mac_tx_underflow,
        .mac_rx_aligned,
        .mac_rx_remote_fault,
        .mac_rx_enable,
        .mac_tx_enable,
        .mac_tx_send_rfi
    );

    assign qsfp_resetl[p]  = !port_controls[p].module_reset;
    assign qsfp_lpmode[p]  = port_controls[p].low_power;
    // Nothing here speaks I2C to the module.
    assign qsfp_modsell[p] = 1'b1;
  end

  weir_sync #(
      .Width(2 * Ports)
  ) module_sync (
      .clk,
      .s_data({~qsfp_intl, ~qsfp_modprsl}),
      .m_data({module_irq, module_present})
  );

  // --- Host: DMA, registers ---------------------------------------------------------------------------

  logic [31:0] host_awaddr, host_wdata, host_araddr, host_rdata;
  logic [3:0] host_wstrb;
  logic [1:0] host_bresp, host_rresp;
  logic host_awvalid, host_awready, host_wvalid, host_wready, host_bvalid, host_bready;
  logic host_arvalid, host_arready, host_rvalid, host_rready;
  logic irq_valid, irq_ack, irq_fail;
  logic [511:0] c2h_tdata, cmpt_tdata;
  logic [31:0] c2h_tcrc;
  logic [15:0] c2h_length, cmpt_dpar, cmpt_packet;
  logic [10:0] c2h_qid, cmpt_qid;
  logic [6:0] c2h_ecc;
  logic c2h_tlast, c2h_tvalid, c2h_tready, cmpt_tvalid, cmpt_tready;
  logic c2h_status_valid, c2h_status_drop;
  logic dma_link_up;

  qdma_0 dma (
      .sys_clk(pcie_clk),
      .sys_clk_gt(pcie_clk_gt),
      .sys_rst_n(pcie_perst_n),
      .pci_exp_rxp(pcie_rxp),
      .pci_exp_rxn(pcie_rxn),
      .pci_exp_txp(pcie_txp),
      .pci_exp_txn(pcie_txn),
      .user_lnk_up(dma_link_up),
      .axi_aclk(dma_clk),
      .axi_aresetn(dma_rst_n),
      .soft_reset_n(1'b1),
      .m_axil_awaddr(host_awaddr),
      .m_axil_awvalid(host_awvalid),
      .m_axil_awready(host_awready),
      .m_axil_araddr(host_araddr),
      .m_axil_arvalid(host_arvalid),
      .m_axil_arready(host_arready),
      .m_axil_wdata(host_wdata),
      .m_axil_wstrb(host_wstrb),
      .m_axil_wvalid(host_wvalid),
      .m_axil_wready(host_wready),
      .m_axil_bresp(host_bresp),
      .m_axil_bvalid(host_bvalid),
      .m_axil_bready(host_bready),
      .m_axil_rdata(host_rdata),
      .m_axil_rresp(host_rresp),
      .m_axil_rvalid(host_rvalid),
      .m_axil_rready(host_rready),
      .usr_irq_in_vld(irq_valid),
      .usr_irq_in_vec(5'd0),
      .usr_irq_in_fnc(8'd0),
      .usr_irq_out_ack(irq_ack),
      .usr_irq_out_fail(irq_fail),
      .tm_dsc_sts_rdy(1'b1),
      .qsts_out_rdy(1'b1),
      .dsc_crdt_in_vld(1'b0),
      .dsc_crdt_in_crdt(16'd0),
      .dsc_crdt_in_qid(11'd0),
      .dsc_crdt_in_dir(1'b0),
      .dsc_crdt_in_fence(1'b0),
      .m_axis_h2c_tready(1'b1),
      .s_axis_c2h_tdata(c2h_tdata),
      .s_axis_c2h_tcrc(c2h_tcrc),
      .s_axis_c2h_ctrl_marker(1'b0),
      .s_axis_c2h_ctrl_port_id(3'd0),
      .s_axis_c2h_ctrl_ecc(c2h_ecc),
      .s_axis_c2h_ctrl_len(c2h_length),
      .s_axis_c2h_ctrl_qid(c2h_qid),
      .s_axis_c2h_ctrl_has_cmpt(1'b1),
      .s_axis_c2h_mty(6'd0),
      .s_axis_c2h_tlast(c2h_tlast),
      .s_axis_c2h_tvalid(c2h_tvalid),
      .s_axis_c2h_tready(c2h_tready),
      .s_axis_c2h_cmpt_tdata(cmpt_tdata),
      .s_axis_c2h_cmpt_size(2'd0),
      .s_axis_c2h_cmpt_dpar(cmpt_dpar),
      .s_axis_c2h_cmpt_ctrl_qid(cmpt_qid),
      .s_axis_c2h_cmpt_ctrl_cmpt_type(2'b11),
      .s_axis_c2h_cmpt_ctrl_wait_pld_pkt_id(cmpt_packet),
      .s_axis_c2h_cmpt_ctrl_port_id(3'd0),
      .s_axis_c2h_cmpt_ctrl_marker(1'b0),
      .s_axis_c2h_cmpt_ctrl_user_trig(1'b0),
      .s_axis_c2h_cmpt_ctrl_col_idx(3'd0),
      .s_axis_c2h_cmpt_ctrl_err_idx(3'd0),
      .s_axis_c2h_cmpt_ctrl_no_wrb_marker(1'b0),
      .s_axis_c2h_cmpt_tvalid(cmpt_tvalid),
      .s_axis_c2h_cmpt_tready(cmpt_tready),
      .axis_c2h_status_valid(c2h_status_valid),
      .axis_c2h_status_drop(c2h_status_drop)
  );

  logic [31:0] board_awaddr, board_wdata, board_araddr, board_rdata;
  logic [3:0] board_wstrb;
  logic [1:0] board_bresp, board_rresp;
  logic board_awvalid, board_awready, board_wvalid, board_wready, board_bvalid, board_bready;
  logic board_arvalid, board_arready, board_rvalid, board_rready, host_gone;

  weir_axil_crossing crossing (
      .s_clk(dma_clk),
      .s_rst(dma_rst),
      .s_awaddr(host_awaddr),
      .s_awvalid(host_awvalid),
      .s_awready(host_awready),
      .s_wdata(host_wdata),
      .s_wstrb(host_wstrb),
      .s_wvalid(host_wvalid),
      .s_wready(host_wready),
      .s_bresp(host_bresp),
      .s_bvalid(host_bvalid),
      .s_bready(host_bready),
      .s_araddr(host_araddr),
      .s_arvalid(host_arvalid),
      .s_arready(host_arready),
      .s_rdata(host_rdata),
      .s_rresp(host_rresp),
      .s_rvalid(host_rvalid),
      .s_rready(host_rready),
      .m_clk(clk),
      .m_rst(rst),
      .m_awaddr(board_awaddr),
      .m_awvalid(board_awvalid),
      .m_awready(board_awready),
      .m_wdata(board_wdata),
      .m_wstrb(board_wstrb),
      .m_wvalid(board_wvalid),
      .m_wready(board_wready),
      .m_bresp(board_bresp),
      .m_bvalid(board_bvalid),
      .m_bready(board_bready),
      .m_araddr(board_araddr),
      .m_arvalid(board_arvalid),
      .m_arready(board_arready),
      .m_rdata(board_rdata),
      .m_rresp(board_rresp),
      .m_rvalid(board_rvalid),
      .m_rready(board_rready),
      .m_reset(host_gone)
  );

  logic [13:0] card_awaddr, card_araddr;
  logic [31:0] card_wdata, card_rdata;
  logic [3:0] card_wstrb;
  logic [1:0] card_bresp, card_rresp;
  logic card_awvalid, card_awready, card_wvalid, card_wready, card_bvalid, card_bready;
  logic card_arvalid, card_arready, card_rvalid, card_rready;
  dma_state_t dma_state;

  weir_board_registers #(
      .BoardId(BoardId)
  ) registers (
      .clk,
      .rst,
      .s_awaddr(board_awaddr),
      .s_awvalid(board_awvalid),
      .s_awready(board_awready),
      .s_wdata(board_wdata),
      .s_wstrb(board_wstrb),
      .s_wvalid(board_wvalid),
      .s_wready(board_wready),
      .s_bresp(board_bresp),
      .s_bvalid(board_bvalid),
      .s_bready(board_bready),
      .s_araddr(board_araddr),
      .s_arvalid(board_arvalid),
      .s_arready(board_arready),
      .s_rdata(board_rdata),
      .s_rresp(board_rresp),
      .s_rvalid(board_rvalid),
      .s_rready(board_rready),
      .s_gone(host_gone),
      .m_awaddr(card_awaddr),
      .m_awvalid(card_awvalid),
      .m_awready(card_awready),
      .m_wdata(card_wdata),
      .m_wstrb(card_wstrb),
      .m_wvalid(card_wvalid),
      .m_wready(card_wready),
      .m_bresp(card_bresp),
      .m_bvalid(card_bvalid),
      .m_bready(card_bready),
      .m_araddr(card_araddr),
      .m_arvalid(card_arvalid),
      .m_arready(card_arready),
      .m_rdata(card_rdata),
      .m_rresp(card_rresp),
      .m_rvalid(card_rvalid),
      .m_rready(card_rready),
      .ports(port_states),
      .dma(dma_state),
      .module_present,
      .module_irq,
      .control(port_controls)
  );

  // --- Card -------------------------------------------------------------------------------------------

  logic [511:0] record_tdata;
  logic [Ports-1:0][511:0] slice_tdata;
  logic record_tlast, record_tvalid, record_tready;
  logic [Ports-1:0] slice_tlast, slice_tvalid, slice_tready;
  logic irq, irq_level;
  // verilator lint_off UNUSEDSIGNAL
  logic [63:0] record_tkeep;  // weir_c2h: beats are whole.
  // verilator lint_on UNUSEDSIGNAL

  weir_card #(
      .Contexts(Contexts),
      .Buckets(Buckets),
      .Heartbeat(Heartbeat),
      .FlushClocks(FlushClocks),
      .RomFile(RomFile)
  ) card (
      .clk,
      .rst,
      .s_awaddr(card_awaddr),
      .s_awvalid(card_awvalid),
      .s_awready(card_awready),
      .s_wdata(card_wdata),
      .s_wstrb(card_wstrb),
      .s_wvalid(card_wvalid),
      .s_wready(card_wready),
      .s_bresp(card_bresp),
      .s_bvalid(card_bvalid),
      .s_bready(card_bready),
      .s_araddr(card_araddr),
      .s_arvalid(card_arvalid),
      .s_arready(card_arready),
      .s_rdata(card_rdata),
      .s_rresp(card_rresp),
      .s_rvalid(card_rvalid),
      .s_rready(card_rready),
      .irq,
      .pps(1'b0),
      .rx_tdata,
      .rx_tkeep,
      .rx_tlast,
      .rx_terror,
      .rx_tvalid,
      .tx_tdata,
      .tx_tkeep,
      .tx_tlast,
      .tx_terror,
      .tx_tvalid,
      .tx_tready,
      .m_tdata(record_tdata),
      .m_tkeep(record_tkeep),
      .m_tlast(record_tlast),
      .m_tvalid(record_tvalid),
      .m_tready(record_tready),
      .slice_tdata,
      .slice_tlast,
      .slice_tvalid,
      .slice_tready
  );

  always_ff @(posedge clk) irq_level <= irq && !rst;

  weir_irq_message message (
      .clk(dma_clk),
      .rst(dma_rst),
      .irq(irq_level),
      .m_valid(irq_valid),
      .m_ack(irq_ack),
      .m_fail(irq_fail)
  );

  // --- Record frames and header slices ----------------------------------------------------------------

  localparam int LengthWidth = 9;

  logic [511:0] out_tdata;
  logic [LengthWidth-1:0] out_beats;
  logic [1:0] out_queue;
  logic out_tlast, out_tvalid, out_tready;
  logic ecc_enable;
  logic [56:0] ecc_data;
  // verilator lint_off UNUSEDSIGNAL
  logic [56:0] ecc_data_out;
  // verilator lint_on UNUSEDSIGNAL

  weir_c2h #(
      .Depth(1 << LengthWidth)
  ) c2h (
      .s_clk(clk),
      .s_rst(rst),
      .s_tdata({slice_tdata, record_tdata}),
      .s_tlast({slice_tlast, record_tlast}),
      .s_tvalid({slice_tvalid, record_tvalid}),
      .s_tready({slice_tready, record_tready}),
      .m_clk(dma_clk),
      .m_rst(dma_rst),
      .m_tdata(out_tdata),
      .m_tlast(out_tlast),
      .m_tvalid(out_tvalid),
      .m_tready(out_tready),
      .m_beats(out_beats),
      .m_queue(out_queue)
  );

  weir_qdma_c2h #(
      .LengthWidth(LengthWidth)
  ) packets (
      .clk(dma_clk),
      .rst(dma_rst),
      .s_tdata(out_tdata),
      .s_tlast(out_tlast),
      .s_tvalid(out_tvalid),
      .s_tready(out_tready),
      .s_beats(out_beats),
      .s_queue(out_queue),
      .ecc_enable,
      .ecc_data,
      .m_tdata(c2h_tdata),
      .m_tcrc(c2h_tcrc),
      .m_length(c2h_length),
      .m_qid(c2h_qid),
      .m_tlast(c2h_tlast),
      .m_tvalid(c2h_tvalid),
      .m_tready(c2h_tready),
      .cmpt_tdata,
      .cmpt_dpar,
      .cmpt_qid,
      .cmpt_packet,
      .cmpt_tvalid,
      .cmpt_tready
  );

  ecc_0 check_bits (
      .ecc_clk(dma_clk),
      .ecc_clken(ecc_enable),
      .ecc_reset(dma_rst),
      .ecc_data_in(ecc_data),
      .ecc_data_out,
      .ecc_chkbits_out(c2h_ecc)
  );

  logic packet_sent, packet_dropped;

  always_ff @(posedge dma_clk) begin
    packet_sent <= c2h_tvalid && c2h_tready && c2h_tlast;
    packet_dropped <= c2h_status_valid && c2h_status_drop;
  end

  // Counted from the card's reset on, as at the wire ports: a reset of PCIe leaves the counts.
  logic count_rst;

  weir_reset count_reset (
      .clk  (dma_clk),
      .clear(rst),
      .rst  (count_rst)
  );

  weir_count sent_count (
      .clk(dma_clk),
      .rst(count_rst),
      .event_valid(packet_sent),
      .m_clk(clk),
      .m_count(dma_state.frames)
  );

  weir_count dropped_count (
      .clk(dma_clk),
      .rst(count_rst),
      .event_valid(packet_dropped),
      .m_clk(clk),
      .m_count(dma_state.dropped)
  );

  weir_sync dma_sync (
      .clk,
      .s_data(dma_link_up),
      .m_data(dma_state.link_up)
  );

  // --- LEDs -------------------------------------------------------------------------------------------

  logic [26:0] blink;

  always_ff @(posedge clk) begin
    blink  <= blink + 1'b1;
    led[0] <= port_states[0].aligned && port_states[1].aligned;
    led[1] <= blink[26];
    led[2] <= dma_state.link_up;
    if (rst) begin
      blink <= '0;
      led   <= '0;
    end
  end

endmodule

`default_nettype wire
