// The vendor's 100G MAC with its transceivers (cmac_usplus, PG203), as ip.tcl makes it for one of the card's two cages.
//
// Promise      As PG203 has it: received frames come without back-pressure and without their check sequence, error at the
//              last beat; sent frames want no pause within them.
// Clocks       `clk` comes from the MAC, 322.265625 MHz, and drives both directions; init_clk is 100 MHz.

`default_nettype none

module weir_u250_mac #(
    // Cage.
    parameter int Index = 0,
    // Reed-Solomon FEC: as the modules want it (SR4 and copper do, LR4 does not).
    parameter bit RsFec = 1'b1
) (
    input var logic [3:0] gt_rxp,
    input var logic [3:0] gt_rxn,
    output var logic [3:0] gt_txp,
    output var logic [3:0] gt_txn,
    input var logic refclk_p,
    input var logic refclk_n,
    input var logic init_clk,
    input var logic sys_reset,
    // UG578: 3'b010 is the near end of the PMA.
    input var logic [2:0] loopback,

    output var logic clk,
    // Either direction is in reset.
    output var logic rst,
    input var  logic rx_enable,
    input var  logic tx_enable,
    input var  logic tx_send_rfi,
    output var logic rx_aligned,
    output var logic rx_remote_fault,
    output var logic tx_underflow,

    output var logic [511:0] rx_tdata,
    output var logic [63:0] rx_tkeep,
    output var logic rx_tlast,
    output var logic rx_terror,
    output var logic rx_tvalid,
    input var logic [511:0] tx_tdata,
    input var logic [63:0] tx_tkeep,
    input var logic tx_tlast,
    input var logic tx_terror,
    input var logic tx_tvalid,
    output var logic tx_tready
);

  logic rx_reset, tx_reset;

  // usr_rx_reset and usr_tx_reset are of this clock.
  always_ff @(posedge clk) rst <= rx_reset || tx_reset;

  // The two differ in where they are.
  if (Index == 0) begin : gen_cage_0
    cmac_usplus_0 mac (
        .gt_rxp_in(gt_rxp),
        .gt_rxn_in(gt_rxn),
        .gt_txp_out(gt_txp),
        .gt_txn_out(gt_txn),
        .gt_ref_clk_p(refclk_p),
        .gt_ref_clk_n(refclk_n),
        .gt_txusrclk2(clk),
        .rx_clk(clk),
        .gt_loopback_in({4{loopback}}),
        .gtwiz_reset_tx_datapath(1'b0),
        .gtwiz_reset_rx_datapath(1'b0),
        .sys_reset(sys_reset),
        .init_clk(init_clk),
        .core_rx_reset(1'b0),
        .core_tx_reset(1'b0),
        .usr_rx_reset(rx_reset),
        .usr_tx_reset(tx_reset),
        .ctl_rx_enable(rx_enable),
        .ctl_rx_force_resync(1'b0),
        .ctl_rx_test_pattern(1'b0),
        .ctl_tx_enable(tx_enable),
        .ctl_tx_test_pattern(1'b0),
        .ctl_tx_send_idle(1'b0),
        .ctl_tx_send_rfi(tx_send_rfi),
        .ctl_tx_send_lfi(1'b0),
        .ctl_tx_rsfec_enable(RsFec),
        .ctl_rx_rsfec_enable(RsFec),
        .ctl_rx_rsfec_enable_correction(RsFec),
        .ctl_rx_rsfec_enable_indication(RsFec),
        .ctl_rsfec_ieee_error_indication_mode(1'b0),
        .stat_rx_aligned(rx_aligned),
        .stat_rx_remote_fault(rx_remote_fault),
        .rx_axis_tdata(rx_tdata),
        .rx_axis_tkeep(rx_tkeep),
        .rx_axis_tlast(rx_tlast),
        .rx_axis_tuser(rx_terror),
        .rx_axis_tvalid(rx_tvalid),
        .tx_axis_tdata(tx_tdata),
        .tx_axis_tkeep(tx_tkeep),
        .tx_axis_tlast(tx_tlast),
        .tx_axis_tuser(tx_terror),
        .tx_axis_tvalid(tx_tvalid),
        .tx_axis_tready(tx_tready),
        .tx_unfout(tx_underflow),
        .tx_preamblein(56'b0),
        .core_drp_reset(1'b0),
        .drp_clk(1'b0),
        .drp_addr(10'b0),
        .drp_di(16'b0),
        .drp_en(1'b0),
        .drp_we(1'b0)
    );
  end else begin : gen_cage_1
    cmac_usplus_1 mac (
        .gt_rxp_in(gt_rxp),
        .gt_rxn_in(gt_rxn),
        .gt_txp_out(gt_txp),
        .gt_txn_out(gt_txn),
        .gt_ref_clk_p(refclk_p),
        .gt_ref_clk_n(refclk_n),
        .gt_txusrclk2(clk),
        .rx_clk(clk),
        .gt_loopback_in({4{loopback}}),
        .gtwiz_reset_tx_datapath(1'b0),
        .gtwiz_reset_rx_datapath(1'b0),
        .sys_reset(sys_reset),
        .init_clk(init_clk),
        .core_rx_reset(1'b0),
        .core_tx_reset(1'b0),
        .usr_rx_reset(rx_reset),
        .usr_tx_reset(tx_reset),
        .ctl_rx_enable(rx_enable),
        .ctl_rx_force_resync(1'b0),
        .ctl_rx_test_pattern(1'b0),
        .ctl_tx_enable(tx_enable),
        .ctl_tx_test_pattern(1'b0),
        .ctl_tx_send_idle(1'b0),
        .ctl_tx_send_rfi(tx_send_rfi),
        .ctl_tx_send_lfi(1'b0),
        .ctl_tx_rsfec_enable(RsFec),
        .ctl_rx_rsfec_enable(RsFec),
        .ctl_rx_rsfec_enable_correction(RsFec),
        .ctl_rx_rsfec_enable_indication(RsFec),
        .ctl_rsfec_ieee_error_indication_mode(1'b0),
        .stat_rx_aligned(rx_aligned),
        .stat_rx_remote_fault(rx_remote_fault),
        .rx_axis_tdata(rx_tdata),
        .rx_axis_tkeep(rx_tkeep),
        .rx_axis_tlast(rx_tlast),
        .rx_axis_tuser(rx_terror),
        .rx_axis_tvalid(rx_tvalid),
        .tx_axis_tdata(tx_tdata),
        .tx_axis_tkeep(tx_tkeep),
        .tx_axis_tlast(tx_tlast),
        .tx_axis_tuser(tx_terror),
        .tx_axis_tvalid(tx_tvalid),
        .tx_axis_tready(tx_tready),
        .tx_unfout(tx_underflow),
        .tx_preamblein(56'b0),
        .core_drp_reset(1'b0),
        .drp_clk(1'b0),
        .drp_addr(10'b0),
        .drp_di(16'b0),
        .drp_en(1'b0),
        .drp_we(1'b0)
    );
  end

endmodule

`default_nettype wire
