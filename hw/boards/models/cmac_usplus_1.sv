// Stand-in for the vendor's MAC of cage 1: cmac_model.

`default_nettype none

module cmac_usplus_1 (
    input var logic [3:0] gt_rxp_in,
    input var logic [3:0] gt_rxn_in,
    output var logic [3:0] gt_txp_out,
    output var logic [3:0] gt_txn_out,
    input var logic gt_ref_clk_p,
    input var logic gt_ref_clk_n,
    output var logic gt_txusrclk2,
    input var logic rx_clk,
    input var logic [11:0] gt_loopback_in,
    input var logic gtwiz_reset_tx_datapath,
    input var logic gtwiz_reset_rx_datapath,
    input var logic sys_reset,
    input var logic init_clk,
    input var logic core_rx_reset,
    input var logic core_tx_reset,
    output var logic usr_rx_reset,
    output var logic usr_tx_reset,
    input var logic ctl_rx_enable,
    input var logic ctl_rx_force_resync,
    input var logic ctl_rx_test_pattern,
    input var logic ctl_tx_enable,
    input var logic ctl_tx_test_pattern,
    input var logic ctl_tx_send_idle,
    input var logic ctl_tx_send_rfi,
    input var logic ctl_tx_send_lfi,
    input var logic ctl_tx_rsfec_enable,
    input var logic ctl_rx_rsfec_enable,
    input var logic ctl_rx_rsfec_enable_correction,
    input var logic ctl_rx_rsfec_enable_indication,
    input var logic ctl_rsfec_ieee_error_indication_mode,
    output var logic stat_rx_aligned,
    output var logic stat_rx_remote_fault,
    output var logic [511:0] rx_axis_tdata,
    output var logic [63:0] rx_axis_tkeep,
    output var logic rx_axis_tlast,
    output var logic rx_axis_tuser,
    output var logic rx_axis_tvalid,
    input var logic [511:0] tx_axis_tdata,
    input var logic [63:0] tx_axis_tkeep,
    input var logic tx_axis_tlast,
    input var logic tx_axis_tuser,
    input var logic tx_axis_tvalid,
    output var logic tx_axis_tready,
    output var logic tx_unfout,
    input var logic [55:0] tx_preamblein,
    input var logic core_drp_reset,
    input var logic drp_clk,
    input var logic [9:0] drp_addr,
    input var logic [15:0] drp_di,
    input var logic drp_en,
    input var logic drp_we
);

  // One that takes the longest frame at a beat per clock; that of cage 0 takes little more than the line does.
  cmac_model #(.BufferBytes(16384)) model (.*);

endmodule

`default_nettype wire
