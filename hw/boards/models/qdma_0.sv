// Behaviour of the vendor's DMA (qdma, streams of 512 bits, internal descriptors) at its user ports, as PG302 describes it.
//
// host_ is the host: its accesses to the BAR, how fast it takes packets and completions, packets without descriptors (the
// DMA takes and drops them), interrupts that cannot be sent (the DMA says so). A bench drives and looks at it and at the
// ports. A packet's completion is to come after it.
// Clock        There is no PLL: sys_clk_gt is to be the user clock.

`default_nettype none

module qdma_0 (
    input var logic sys_clk,
    input var logic sys_clk_gt,
    input var logic sys_rst_n,
    input var logic [15:0] pci_exp_rxp,
    input var logic [15:0] pci_exp_rxn,
    output var logic [15:0] pci_exp_txp,
    output var logic [15:0] pci_exp_txn,
    output var logic user_lnk_up,
    output var logic axi_aclk,
    output var logic axi_aresetn,
    input var logic soft_reset_n,
    output var logic [31:0] m_axil_awaddr,
    output var logic m_axil_awvalid,
    input var logic m_axil_awready,
    output var logic [31:0] m_axil_araddr,
    output var logic m_axil_arvalid,
    input var logic m_axil_arready,
    output var logic [31:0] m_axil_wdata,
    output var logic [3:0] m_axil_wstrb,
    output var logic m_axil_wvalid,
    input var logic m_axil_wready,
    input var logic [1:0] m_axil_bresp,
    input var logic m_axil_bvalid,
    output var logic m_axil_bready,
    input var logic [31:0] m_axil_rdata,
    input var logic [1:0] m_axil_rresp,
    input var logic m_axil_rvalid,
    output var logic m_axil_rready,
    input var logic usr_irq_in_vld,
    input var logic [4:0] usr_irq_in_vec,
    input var logic [7:0] usr_irq_in_fnc,
    output var logic usr_irq_out_ack,
    output var logic usr_irq_out_fail,
    input var logic tm_dsc_sts_rdy,
    input var logic qsts_out_rdy,
    input var logic dsc_crdt_in_vld,
    input var logic [15:0] dsc_crdt_in_crdt,
    input var logic [10:0] dsc_crdt_in_qid,
    input var logic dsc_crdt_in_dir,
    input var logic dsc_crdt_in_fence,
    input var logic m_axis_h2c_tready,
    input var logic [511:0] s_axis_c2h_tdata,
    input var logic [31:0] s_axis_c2h_tcrc,
    input var logic s_axis_c2h_ctrl_marker,
    input var logic [2:0] s_axis_c2h_ctrl_port_id,
    input var logic [6:0] s_axis_c2h_ctrl_ecc,
    input var logic [15:0] s_axis_c2h_ctrl_len,
    input var logic [10:0] s_axis_c2h_ctrl_qid,
    input var logic s_axis_c2h_ctrl_has_cmpt,
    input var logic [5:0] s_axis_c2h_mty,
    input var logic s_axis_c2h_tlast,
    input var logic s_axis_c2h_tvalid,
    output var logic s_axis_c2h_tready,
    input var logic [511:0] s_axis_c2h_cmpt_tdata,
    input var logic [1:0] s_axis_c2h_cmpt_size,
    input var logic [15:0] s_axis_c2h_cmpt_dpar,
    input var logic [10:0] s_axis_c2h_cmpt_ctrl_qid,
    input var logic [1:0] s_axis_c2h_cmpt_ctrl_cmpt_type,
    input var logic [15:0] s_axis_c2h_cmpt_ctrl_wait_pld_pkt_id,
    input var logic [2:0] s_axis_c2h_cmpt_ctrl_port_id,
    input var logic s_axis_c2h_cmpt_ctrl_marker,
    input var logic s_axis_c2h_cmpt_ctrl_user_trig,
    input var logic [2:0] s_axis_c2h_cmpt_ctrl_col_idx,
    input var logic [2:0] s_axis_c2h_cmpt_ctrl_err_idx,
    input var logic s_axis_c2h_cmpt_ctrl_no_wrb_marker,
    input var logic s_axis_c2h_cmpt_tvalid,
    output var logic s_axis_c2h_cmpt_tready,
    output var logic axis_c2h_status_valid,
    output var logic axis_c2h_status_drop
);

  // verilator lint_off UNDRIVEN
  // verilator lint_off UNUSEDSIGNAL
  logic [31:0] host_awaddr;
  logic host_awvalid;
  logic host_awready;
  logic [31:0] host_wdata;
  logic [3:0] host_wstrb;
  logic host_wvalid;
  logic host_wready;
  logic [1:0] host_bresp;
  logic host_bvalid;
  logic host_bready;
  logic [31:0] host_araddr;
  logic host_arvalid;
  logic host_arready;
  logic [31:0] host_rdata;
  logic [1:0] host_rresp;
  logic host_rvalid;
  logic host_rready;
  logic host_takes_data, host_takes_completions, host_drops, host_fails_irq;
  // verilator lint_on UNUSEDSIGNAL
  // verilator lint_on UNDRIVEN

  logic [2:0] reset_left;
  // Packets that came.
  logic [15:0] packets;
  // Clocks that a request for an interrupt has been there.
  logic [2:0] irq_clocks;
  logic irq_due;

  assign axi_aclk = sys_clk_gt;
  assign axi_aresetn = reset_left == 0;
  assign user_lnk_up = axi_aresetn;
  assign pci_exp_txp = '0;
  assign pci_exp_txn = '1;
  assign m_axil_awaddr = host_awaddr;
  assign m_axil_awvalid = host_awvalid;
  assign host_awready = m_axil_awready;
  assign m_axil_wdata = host_wdata;
  assign m_axil_wstrb = host_wstrb;
  assign m_axil_wvalid = host_wvalid;
  assign host_wready = m_axil_wready;
  assign host_bresp = m_axil_bresp;
  assign host_bvalid = m_axil_bvalid;
  assign m_axil_bready = host_bready;
  assign m_axil_araddr = host_araddr;
  assign m_axil_arvalid = host_arvalid;
  assign host_arready = m_axil_arready;
  assign host_rdata = m_axil_rdata;
  assign host_rresp = m_axil_rresp;
  assign host_rvalid = m_axil_rvalid;
  assign m_axil_rready = host_rready;

  assign s_axis_c2h_tready = host_takes_data && axi_aresetn;
  // What waits for a packet waits until that packet is here.
  assign s_axis_c2h_cmpt_tready = host_takes_completions && axi_aresetn && $signed(
      packets - s_axis_c2h_cmpt_ctrl_wait_pld_pkt_id
  ) >= 0;

  // The request must be there until it is answered, and as it was.
  assign irq_due = irq_clocks == '1;
  a_irq_stays :
  assert property (@(posedge axi_aclk) disable iff (!axi_aresetn)
                   usr_irq_in_vld && !usr_irq_out_ack && !usr_irq_out_fail |=> usr_irq_in_vld && $stable(
      usr_irq_in_vec
  ) && $stable(
      usr_irq_in_fnc
  ));

  always_ff @(posedge axi_aclk) begin
    if (!sys_rst_n) reset_left <= '1;
    else if (reset_left != 0) reset_left <= reset_left - 1'b1;
    axis_c2h_status_valid <= s_axis_c2h_tvalid && s_axis_c2h_tready && s_axis_c2h_tlast;
    axis_c2h_status_drop <= host_drops;
    irq_clocks <= usr_irq_in_vld && !usr_irq_out_ack && !usr_irq_out_fail ? irq_clocks + 1'b1 : '0;
    usr_irq_out_ack <= irq_due && !host_fails_irq;
    usr_irq_out_fail <= irq_due && host_fails_irq;
    if (s_axis_c2h_tvalid && s_axis_c2h_tready && s_axis_c2h_tlast) packets <= packets + 1'b1;
    if (!axi_aresetn) begin
      packets <= '0;
      irq_clocks <= '0;
      usr_irq_out_ack <= 1'b0;
      usr_irq_out_fail <= 1'b0;
      axis_c2h_status_valid <= 1'b0;
    end
  end

  // verilator lint_off UNUSEDSIGNAL
  logic unused;
  // verilator lint_on UNUSEDSIGNAL
  assign unused = &{
    sys_clk, pci_exp_rxp, pci_exp_rxn, soft_reset_n, tm_dsc_sts_rdy, qsts_out_rdy, dsc_crdt_in_vld,
    dsc_crdt_in_crdt, dsc_crdt_in_qid, dsc_crdt_in_dir, dsc_crdt_in_fence,
    m_axis_h2c_tready, s_axis_c2h_tdata, s_axis_c2h_tcrc, s_axis_c2h_ctrl_marker, s_axis_c2h_ctrl_port_id,
    s_axis_c2h_ctrl_ecc, s_axis_c2h_ctrl_len, s_axis_c2h_ctrl_qid, s_axis_c2h_ctrl_has_cmpt, s_axis_c2h_mty,
    s_axis_c2h_cmpt_tdata, s_axis_c2h_cmpt_size, s_axis_c2h_cmpt_dpar, s_axis_c2h_cmpt_ctrl_qid,
    s_axis_c2h_cmpt_ctrl_cmpt_type, s_axis_c2h_cmpt_ctrl_port_id, s_axis_c2h_cmpt_ctrl_marker,
    s_axis_c2h_cmpt_ctrl_user_trig, s_axis_c2h_cmpt_ctrl_col_idx, s_axis_c2h_cmpt_ctrl_err_idx,
    s_axis_c2h_cmpt_ctrl_no_wrb_marker, s_axis_c2h_cmpt_tvalid
  };

endmodule

`default_nettype wire
