// The card's processor: VexRiscv (RV32IM, caches) with boot ROM, memory and watchdog; the registers are at m_.
//
// Promise      The CPU starts at address 0 when nothing holds it in reset. While it is in reset the host may read and
//              write its memory by the load window. Every reset ends after the access that is under way and lasts 32
//              clocks at least; the memory's content stays.
// Resets       `cpu_reset` while high; `cpu_restart` and an expiry of the watchdog once. `boot_reason` (0 none yet,
//              1 cpu_reset, 2 watchdog, 3 cpu_restart) and `boot_count` change when a reset ends.
// Addresses    See weir_soc_bus; registers have bit 31 set, which makes them uncached. Caches write through; they
//              are empty after a reset and know nothing of the load window. The CPU takes no bus errors: where
//              nothing is, it reads 0 (an illegal instruction); `bus_unknown` for a clock with bus_address.
// Interrupts   Level-sensitive: `timer_irq` machine timer interrupt; `irqs` machine external interrupts, masked by
//              CSR 0xBC0, pending in 0xFC0.
// Hazards      VexRiscv comes from outside of this repository (rtl-tests/runner.py finds it).

`default_nettype none

module weir_soc #(
    parameter int RomWords = 1024,
    parameter string RomFile = "",
    parameter int RamWords = 32768,
    parameter int AddressWidth = 14,
    localparam int RamAddressWidth = $clog2(RamWords)
) (
    input var logic clk,
    input var logic rst,

    input var logic cpu_reset,
    input var logic cpu_restart,
    output var logic cpu_in_reset,
    output var logic [1:0] boot_reason,
    output var logic [15:0] boot_count,

    // weir_watchdog
    input var logic watchdog_enable,
    input var logic [31:0] watchdog_timeout,
    input var logic watchdog_kick_valid,
    input var logic [31:0] watchdog_kick_key,
    output var logic watchdog_expired,
    output var logic [31:0] watchdog_left,
    output var logic [15:0] watchdog_expiries,
    output var logic [15:0] watchdog_bad_kicks,

    // Load window and parity (weir_firmware_ram).
    input var logic [RamAddressWidth-1:0] load_address,
    input var logic load_write,
    input var logic [31:0] load_wdata,
    input var logic load_read,
    output var logic [31:0] load_data,
    input var logic ram_flip,
    output var logic ram_bad,
    output var logic [RamAddressWidth-1:0] ram_bad_address,

    output var logic bus_unknown,
    output var logic [31:0] bus_address,

    input var logic timer_irq,
    input var logic [31:0] irqs,

    // Registers.
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
    output var logic m_rready
);

  localparam int RomAddressWidth = $clog2(RomWords);
  localparam logic [4:0] HoldClocks = 5'd31;

  typedef enum logic [1:0] {
    POWER_ON,
    HOST,
    WATCHDOG,
    RESTART
  } boot_reason_e;

  // --- Reset of the CPU ----------------------------------------------------------------------------

  logic bus_idle;
  logic [4:0] hold;
  boot_reason_e cause, reason;

  assign boot_reason = reason;

  always_ff @(posedge clk) begin
    if (hold != '0) begin
      hold <= hold - 1'b1;
    end else if (cpu_in_reset && bus_idle) begin
      cpu_in_reset <= 1'b0;
      reason <= cause;
      boot_count <= boot_count + 1'b1;
    end
    if (cpu_reset || watchdog_expired || cpu_restart) begin
      cpu_in_reset <= 1'b1;
      hold <= HoldClocks;
      reason <= reason;
      boot_count <= boot_count;
      if (cpu_reset) cause <= HOST;
      else if (watchdog_expired) cause <= WATCHDOG;
      else cause <= RESTART;
    end
    if (rst) begin
      cpu_in_reset <= 1'b1;
      hold <= HoldClocks;
      cause <= POWER_ON;
      reason <= POWER_ON;
      boot_count <= '0;
    end
  end

  weir_watchdog watchdog (
      .clk,
      .rst,
      .running(!cpu_in_reset),
      .enable(watchdog_enable),
      .timeout(watchdog_timeout),
      .kick_valid(watchdog_kick_valid),
      .kick_key(watchdog_kick_key),
      .expired(watchdog_expired),
      .left(watchdog_left),
      .expiries(watchdog_expiries),
      .bad_kicks(watchdog_bad_kicks)
  );

  // --- CPU -----------------------------------------------------------------------------------------

  logic [1:0] cyc, stb, we, ack, err;
  logic [1:0][29:0] adr;
  logic [1:0][31:0] dat_w;
  logic [1:0][3:0] sel;
  logic [31:0] dat_r;
  // verilator lint_off UNUSEDSIGNAL
  logic [1:0][2:0] cti;
  logic [1:0][1:0] bte;
  // verilator lint_on UNUSEDSIGNAL

  VexRiscv cpu (
      .clk,
      .reset(cpu_in_reset),
      .externalResetVector('0),
      .timerInterrupt(timer_irq),
      .softwareInterrupt(1'b0),
      .externalInterruptArray(irqs),
      .iBusWishbone_CYC(cyc[0]),
      .iBusWishbone_STB(stb[0]),
      .iBusWishbone_ACK(ack[0] || err[0]),
      .iBusWishbone_WE(we[0]),
      .iBusWishbone_ADR(adr[0]),
      .iBusWishbone_DAT_MISO(dat_r),
      .iBusWishbone_DAT_MOSI(dat_w[0]),
      .iBusWishbone_SEL(sel[0]),
      .iBusWishbone_ERR(err[0]),
      .iBusWishbone_CTI(cti[0]),
      .iBusWishbone_BTE(bte[0]),
      .dBusWishbone_CYC(cyc[1]),
      .dBusWishbone_STB(stb[1]),
      .dBusWishbone_ACK(ack[1] || err[1]),
      .dBusWishbone_WE(we[1]),
      .dBusWishbone_ADR(adr[1]),
      .dBusWishbone_DAT_MISO(dat_r),
      .dBusWishbone_DAT_MOSI(dat_w[1]),
      .dBusWishbone_SEL(sel[1]),
      .dBusWishbone_ERR(err[1]),
      .dBusWishbone_CTI(cti[1]),
      .dBusWishbone_BTE(bte[1])
  );

  // --- What it sees --------------------------------------------------------------------------------

  logic [2:0] request, done, error;
  logic [2:0][31:0] data;
  logic write;
  logic [29:0] address;
  logic [31:0] wdata;
  logic [3:0] strobe;

  weir_soc_bus #(
      .RomBytes(4 * RomWords),
      .RamBytes(4 * RamWords),
      .RegisterBytes(1 << AddressWidth)
  ) bus (
      .clk,
      .rst,
      .s_cyc(cpu_in_reset ? '0 : cyc),
      .s_stb(stb),
      .s_we(we),
      .s_adr(adr),
      .s_dat_w(dat_w),
      .s_sel(sel),
      .s_ack(ack),
      .s_err(err),
      .s_dat_r(dat_r),
      .m_request(request),
      .m_write(write),
      .m_address(address),
      .m_wdata(wdata),
      .m_strobe(strobe),
      .m_done(done),
      .m_error(error),
      .m_data(data),
      .unknown(bus_unknown),
      .idle(bus_idle)
  );

  assign bus_address = {address, 2'b0};
  assign error[1:0]  = '0;

  weir_boot_rom #(
      .Words(RomWords),
      .File (RomFile)
  ) rom (
      .clk,
      .rst,
      .s_request(request[0]),
      .s_address(address[RomAddressWidth-1:0]),
      .s_done(done[0]),
      .s_data(data[0])
  );

  weir_firmware_ram #(
      .Words(RamWords)
  ) ram (
      .clk,
      .rst,
      .s_request(request[1]),
      .s_write(write),
      .s_address(address[RamAddressWidth-1:0]),
      .s_wdata(wdata),
      .s_strobe(strobe),
      .s_done(done[1]),
      .s_data(data[1]),
      .b_address(load_address),
      .b_write(load_write),
      .b_wdata(load_wdata),
      .b_read(load_read),
      .b_data(load_data),
      .flip(ram_flip),
      .bad(ram_bad),
      .bad_address(ram_bad_address)
  );

  weir_wishbone_axil #(
      .AddressWidth(AddressWidth)
  ) bridge (
      .clk,
      .rst,
      .s_request(request[2]),
      .s_write(write),
      .s_address({address[AddressWidth-3:0], 2'b0}),
      .s_wdata(wdata),
      .s_strobe(strobe),
      .s_done(done[2]),
      .s_error(error[2]),
      .s_data(data[2]),
      .m_awaddr,
      .m_awvalid,
      .m_awready,
      .m_wdata,
      .m_wstrb,
      .m_wvalid,
      .m_wready,
      .m_bresp,
      .m_bvalid,
      .m_bready,
      .m_araddr,
      .m_arvalid,
      .m_arready,
      .m_rdata,
      .m_rresp,
      .m_rvalid,
      .m_rready
  );

`ifndef SYNTHESIS
  a_reset_lasts :
  assert property (@(posedge clk) disable iff (rst) cpu_reset || watchdog_expired || cpu_restart |=> cpu_in_reset);
  a_reset_ends_idle :
  assert property (@(posedge clk) disable iff (rst) $fell(cpu_in_reset) |-> $past(bus_idle));

  // Clocks since its cause, at most 32.
  logic [5:0] lasted;
  always_ff @(posedge clk) begin
    if (rst || cpu_reset || watchdog_expired || cpu_restart) lasted <= '0;
    else if (!lasted[5]) lasted <= lasted + 1'b1;
  end
  a_reset_is_long :
  assert property (@(posedge clk) disable iff (rst) $fell(cpu_in_reset) |-> lasted[5]);
`endif

endmodule

`default_nettype wire
