// Behaviour of the vendor's 100G MAC (cmac_usplus, AXI4-Stream of 512 bits) at its user ports, as PG203 describes it.
//
//   line_rx_ -> rx_axis_       tx_axis_ -> line_tx_
//
// The lines are for a bench to drive and look at: beats of 64 bytes, which the bench spaces as 100 Gb/s does.
//
// Receives     Only while enabled and aligned (which takes AlignClocks of a line that is up); no back-pressure.
// Sends        At 100 Gb/s with preamble, check sequence and gap counted: tx_axis_tready falls when the buffer is full;
//              until then a beat per clock is taken, which PG203 does not rule out for a whole frame. A pause within a frame (tready high, tvalid low) is an underflow: tx_unfout rises, and the
//              frame ends on the line there, marked bad. Nothing is taken while not enabled.
// Clock        There is no PLL: gt_ref_clk_p is to be the user clock.

`default_nettype none

module cmac_model #(
    parameter int AlignClocks = 40,
    parameter int BufferBytes = 256
) (
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

  // verilator lint_off UNDRIVEN
  logic line_up;
  logic line_remote_fault;
  logic [511:0] line_rx_tdata;
  logic [63:0] line_rx_tkeep;
  logic line_rx_tlast, line_rx_terror, line_rx_tvalid;
  // verilator lint_on UNDRIVEN
  // verilator lint_off UNUSEDSIGNAL
  logic [511:0] line_tx_tdata;
  logic [ 63:0] line_tx_tkeep;
  logic line_tx_tlast, line_tx_terror, line_tx_tvalid;
  // verilator lint_on UNUSEDSIGNAL

  // 12.5 GB/s in 322.265625 MHz, in 1/1024 bytes.
  localparam int BytesPerClock = 39_719;
  localparam int Byte = 1024;
  localparam int Buffer = BufferBytes * Byte;
  // Preamble, check sequence, gap.
  localparam int Overhead = 24 * Byte;

  logic [5:0] align;
  int held;
  logic in_frame;
  // The rest of a frame that ran dry.
  logic broken;

  assign gt_txusrclk2 = gt_ref_clk_p;
  assign gt_txp_out = '0;
  assign gt_txn_out = '1;
  assign stat_rx_aligned = 32'(align) == AlignClocks;
  assign stat_rx_remote_fault = stat_rx_aligned && line_remote_fault;
  assign tx_axis_tready = ctl_tx_enable && !ctl_tx_send_rfi && held < Buffer;

  always_ff @(posedge rx_clk) begin
    usr_rx_reset   <= sys_reset;
    rx_axis_tdata  <= line_rx_tdata;
    rx_axis_tkeep  <= line_rx_tkeep;
    rx_axis_tlast  <= line_rx_tlast;
    rx_axis_tuser  <= line_rx_terror;
    rx_axis_tvalid <= line_rx_tvalid && stat_rx_aligned;
    if (sys_reset || !ctl_rx_enable || !line_up) align <= '0;
    else if (!stat_rx_aligned) align <= align + 1'b1;
  end

  function automatic int bytes(logic [63:0] keep);
    bytes = 0;
    for (int i = 0; i < 64; i++) bytes += 32'(keep[i]);
  endfunction

  logic takes;
  int   taken;
  assign takes = tx_axis_tvalid && tx_axis_tready;
  assign taken = takes ? bytes(tx_axis_tkeep) * Byte + (tx_axis_tlast ? Overhead : 0) : 0;

  always_ff @(posedge gt_txusrclk2) begin
    usr_tx_reset <= sys_reset;
    held <= held + taken > BytesPerClock ? held + taken - BytesPerClock : 0;
    tx_unfout <= 1'b0;
    line_tx_tvalid <= 1'b0;
    if (takes) begin
      in_frame <= !tx_axis_tlast;
      broken <= broken && !tx_axis_tlast;
      line_tx_tdata <= tx_axis_tdata;
      line_tx_tkeep <= tx_axis_tkeep;
      line_tx_tlast <= tx_axis_tlast;
      line_tx_terror <= tx_axis_tlast && tx_axis_tuser;
      line_tx_tvalid <= !broken;
    end else if (in_frame && tx_axis_tready && !broken) begin
      tx_unfout <= 1'b1;
      broken <= 1'b1;
      line_tx_tkeep <= 64'd1;
      line_tx_tlast <= 1'b1;
      line_tx_terror <= 1'b1;
      line_tx_tvalid <= 1'b1;
    end
    if (sys_reset) begin
      held <= 0;
      in_frame <= 1'b0;
      broken <= 1'b0;
      line_tx_tvalid <= 1'b0;
    end
  end

  // verilator lint_off UNUSEDSIGNAL
  logic unused;
  // verilator lint_on UNUSEDSIGNAL
  assign unused = &{
    gt_rxp_in, gt_rxn_in, gt_ref_clk_n, gt_loopback_in, gtwiz_reset_tx_datapath, gtwiz_reset_rx_datapath,
    init_clk, core_rx_reset, core_tx_reset, ctl_rx_force_resync, ctl_rx_test_pattern, ctl_tx_test_pattern,
    ctl_tx_send_idle, ctl_tx_send_lfi, ctl_tx_rsfec_enable, ctl_rx_rsfec_enable,
    ctl_rx_rsfec_enable_correction, ctl_rx_rsfec_enable_indication, ctl_rsfec_ieee_error_indication_mode,
    tx_preamblein, core_drp_reset, drp_clk, drp_addr, drp_di, drp_en, drp_we
  };

endmodule

`default_nettype wire
