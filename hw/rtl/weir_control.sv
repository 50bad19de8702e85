// Everything of the card but the datapath: registers for host and CPU, the CPU, mailbox, timer, clock and fault
// registers. The ports towards the datapath are named as weir_datapath names them.
//
//   host ---- AXI4-Lite ---+
//                          +--> weir_axil_arbiter --> weir_registers --> settings, pulses
//   weir_soc - AXI4-Lite --+                                ^-- counters, states, mailbox, timer
//
// Promise      docs/src/registers.md. A register that stands for a request acts once per write. The high word of a
//              pair belongs to the low word that the same reader (host, CPU) read last.
// Settings     Of `measure`, `statistics` and `record`: as they were when rst_measure ended. All others at once.
// Throughput   A register access of the host takes 7 clocks when the CPU makes none; the datapath waits for neither.
// Resets       `rst` all. The CPU's reset touches nothing outside of weir_soc, but for the lock of the watchdog.
// Hazards      The clock's set and step are checked here; what is out of range is refused and counted.

`default_nettype none

module weir_control
  import weir_pkg::*;
  import weir_digest_pkg::*;
  import weir_lookup_pkg::*;
  import weir_tracker_pkg::*;
#(
    // What `info` tells of the datapath.
    parameter int Contexts = 1 << 18,
    parameter int Buckets = 1 << 15,
    parameter int Ways = 5,
    parameter int DigestEntries = 4,
    parameter int SliceBytes = 128,
    parameter int Heartbeat = 3_000_000,
    parameter int ClockKhz = 300_000,
    parameter logic [31:0] RtlVersion = 32'h0000_0100,
    // Boot ROM, in words of hexadecimal; without it the CPU stays where it starts.
    parameter string RomFile = "",
    parameter int RamWords = 32768,
    localparam int Ports = 2,
    localparam int AddressWidth = 14
) (
    input var logic clk,
    input var logic rst,

    // Host.
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
    // To the host, level-sensitive.
    output var logic irq,

    // Datapath.
    output var logic rst_measure,
    input var logic ready,
    output var logic signed [31:0] clock_rate,
    output var logic clock_set_valid,
    output var logic [47:0] clock_set_seconds,
    output var logic [29:0] clock_set_ns,
    input var logic clock_set_busy,
    output var logic clock_step_valid,
    output var logic signed [30:0] clock_step_ns,
    output var logic clock_slew_valid,
    output var logic signed [31:0] clock_slew_ns,
    input var logic clock_slew_busy,
    input var logic pps_valid,
    input var logic [63:0] pps_tai_ns,
    input var logic [31:0] pps_fraction,
    input var logic [63:0] tai_ns,
    output var logic [Ports-1:0][31:0] port_offset,

    output var logic inline_enable,
    output var logic heartbeat,
    input var logic [Ports-1:0] measured,
    input var logic [Ports-1:0][31:0] takeovers,
    input var logic [Ports-1:0][31:0] faults,
    input var logic [Ports-1:0][31:0] frames_in,
    input var logic [Ports-1:0][31:0] frames_out,
    input var logic [Ports-1:0][31:0] frames_dropped,
    input var logic [Ports-1:0][31:0] frames_cut,

    output var seed_t seed,
    output var logic vlan_in_key,
    output var timeouts_t timeouts,
    output var logic [15:0] epoch,
    output var logic [3:0] lane,
    output var logic shed_enable,
    output var digest_mode_e digest_mode,
    output var digest_entry_t [DigestEntries-1:0] digest_entries,
    output var logic [15:0] trigger_packets,
    output var logic [46:0] trigger_ns,
    output var logic slices_enable,
    input var logic [IndexWidth:0] contexts_used,
    input var logic [IndexWidth:0] contexts_in_use,
    input var shed_t left_out,
    input var logic [31:0] no_index_count,
    input var logic [31:0] no_room_count,
    input var logic [31:0] wanted,
    input var logic [Ports-1:0][31:0] dropped,
    input var logic [Ports-1:0][31:0] slices,
    input var logic [Ports-1:0][31:0] slices_dropped,

    output var logic statistics_enable,
    output var logic [Ports-1:0][31:0] burst_bytes,
    output var logic [6:0][15:0] services,
    output var logic [191:0] sketch_seed,
    input var logic [2:0][31:0] words_lost,
    input var logic [2:0][31:0] results_lost,
    input var logic [31:0] statistics_records,

    output var logic [47:0] destination_mac,
    output var logic [47:0] source_mac,
    output var logic flush,
    input var logic [63:0] records_in,
    input var logic [63:0] records_out,
    input var logic [63:0] record_frames,

    // Handshakes that are watched, and what is injected.
    input var logic record_valid,
    input var logic record_ready,
    input var logic [Ports-1:0] slice_valid,
    input var logic [Ports-1:0] slice_ready,
    input var logic table_bad,
    output var logic table_flip,
    output var logic stop_records
);

  if (DigestEntries > 4) begin : gen_check_entries
    $error("there are registers for four entries of the digest filter");
  end

  localparam int RamAddressWidth = $clog2(RamWords);
  localparam int MailboxDepth = 64;
  localparam int SeedWords = (SeedWidth + 31) / 32;
  localparam int FaultBits = 7;
  localparam logic [29:0] Second = 30'd1_000_000_000;
  localparam logic signed [30:0] MaxStepNs = 31'sd999_999_000;

  weir_registers_pkg::weir__in_t  set;
  weir_registers_pkg::weir__out_t got;

  // --- Bus -----------------------------------------------------------------------------------------

  logic [AddressWidth-1:0] card_awaddr, card_araddr, bus_awaddr, bus_araddr, bus_failed_address;
  logic card_awvalid, card_awready, card_wvalid, card_wready, card_bvalid, card_bready;
  logic card_arvalid, card_arready, card_rvalid, card_rready;
  logic bus_awvalid, bus_awready, bus_wvalid, bus_wready, bus_bvalid, bus_bready;
  logic bus_arvalid, bus_arready, bus_rvalid, bus_rready;
  logic [31:0] card_wdata, card_rdata, bus_wdata, bus_rdata;
  logic [3:0] card_wstrb, bus_wstrb;
  logic [1:0] card_bresp, card_rresp, bus_bresp, bus_rresp;
  // Whose access is in the registers: 0 host, 1 CPU.
  logic turn, bus_done, bus_failed;

  weir_axil_arbiter #(
      .AddressWidth(AddressWidth)
  ) arbiter (
      .clk,
      .rst,
      .s0_awaddr(s_awaddr),
      .s0_awvalid(s_awvalid),
      .s0_awready(s_awready),
      .s0_wdata(s_wdata),
      .s0_wstrb(s_wstrb),
      .s0_wvalid(s_wvalid),
      .s0_wready(s_wready),
      .s0_bresp(s_bresp),
      .s0_bvalid(s_bvalid),
      .s0_bready(s_bready),
      .s0_araddr(s_araddr),
      .s0_arvalid(s_arvalid),
      .s0_arready(s_arready),
      .s0_rdata(s_rdata),
      .s0_rresp(s_rresp),
      .s0_rvalid(s_rvalid),
      .s0_rready(s_rready),
      .s1_awaddr(card_awaddr),
      .s1_awvalid(card_awvalid),
      .s1_awready(card_awready),
      .s1_wdata(card_wdata),
      .s1_wstrb(card_wstrb),
      .s1_wvalid(card_wvalid),
      .s1_wready(card_wready),
      .s1_bresp(card_bresp),
      .s1_bvalid(card_bvalid),
      .s1_bready(card_bready),
      .s1_araddr(card_araddr),
      .s1_arvalid(card_arvalid),
      .s1_arready(card_arready),
      .s1_rdata(card_rdata),
      .s1_rresp(card_rresp),
      .s1_rvalid(card_rvalid),
      .s1_rready(card_rready),
      .m_awaddr(bus_awaddr),
      .m_awvalid(bus_awvalid),
      .m_awready(bus_awready),
      .m_wdata(bus_wdata),
      .m_wstrb(bus_wstrb),
      .m_wvalid(bus_wvalid),
      .m_wready(bus_wready),
      .m_bresp(bus_bresp),
      .m_bvalid(bus_bvalid),
      .m_bready(bus_bready),
      .m_araddr(bus_araddr),
      .m_arvalid(bus_arvalid),
      .m_arready(bus_arready),
      .m_rdata(bus_rdata),
      .m_rresp(bus_rresp),
      .m_rvalid(bus_rvalid),
      .m_rready(bus_rready),
      .turn,
      .done(bus_done),
      .failed(bus_failed),
      .failed_address(bus_failed_address)
  );

  weir_registers registers (
      .clk,
      .rst,
      .s_axil_awready(bus_awready),
      .s_axil_awvalid(bus_awvalid),
      .s_axil_awaddr(bus_awaddr),
      .s_axil_awprot('0),
      .s_axil_wready(bus_wready),
      .s_axil_wvalid(bus_wvalid),
      .s_axil_wdata(bus_wdata),
      .s_axil_wstrb(bus_wstrb),
      .s_axil_bready(bus_bready),
      .s_axil_bvalid(bus_bvalid),
      .s_axil_bresp(bus_bresp),
      .s_axil_arready(bus_arready),
      .s_axil_arvalid(bus_arvalid),
      .s_axil_araddr(bus_araddr),
      .s_axil_arprot('0),
      .s_axil_rready(bus_rready),
      .s_axil_rvalid(bus_rvalid),
      .s_axil_rdata(bus_rdata),
      .s_axil_rresp(bus_rresp),
      .hwif_in(set),
      .hwif_out(got)
  );

  // --- info ----------------------------------------------------------------------------------------

  assign set.info.contexts.value.next = 32'(Contexts);
  assign set.info.buckets.value.next = 32'(Buckets);
  assign set.info.ways.value.next = 32'(Ways);
  assign set.info.ports.value.next = 32'(Ports);
  assign set.info.clock_khz.value.next = 32'(ClockKhz);
  assign set.info.rtl_version.value.next = RtlVersion;
  assign set.info.digest_entries.value.next = 32'(DigestEntries);
  assign set.info.slice_bytes.value.next = 32'(SliceBytes);
  assign set.info.heartbeat_clocks.value.next = 32'(Heartbeat);
  assign set.info.ram_bytes.value.next = 32'(4 * RamWords);
  assign set.info.mailbox_words.value.next = 32'(MailboxDepth);

  // --- Pairs of words: the high one waits for its reader -------------------------------------------

  logic [63:0] timer_now, record_stall;
  logic [1:0][31:0] held;

  always_ff @(posedge clk) begin
    if (got.clock.pps_ns_low.value.swacc) held[turn] <= pps_tai_ns[63:32];
    if (got.clock.now_low.value.swacc) held[turn] <= tai_ns[63:32];
    if (got.record.records_in_low.value.swacc) held[turn] <= records_in[63:32];
    if (got.record.records_out_low.value.swacc) held[turn] <= records_out[63:32];
    if (got.record.frames_low.value.swacc) held[turn] <= record_frames[63:32];
    if (got.timer.now_low.value.swacc) held[turn] <= timer_now[63:32];
    if (got.debug.record_stall_low.value.swacc) held[turn] <= record_stall[63:32];
    if (rst) held <= '0;
  end

  assign set.clock.pps_ns_low.value.next = pps_tai_ns[31:0];
  assign set.clock.pps_ns_high.value.next = held[turn];
  assign set.clock.now_low.value.next = tai_ns[31:0];
  assign set.clock.now_high.value.next = held[turn];
  assign set.record.records_in_low.value.next = records_in[31:0];
  assign set.record.records_in_high.value.next = held[turn];
  assign set.record.records_out_low.value.next = records_out[31:0];
  assign set.record.records_out_high.value.next = held[turn];
  assign set.record.frames_low.value.next = record_frames[31:0];
  assign set.record.frames_high.value.next = held[turn];
  assign set.timer.now_low.value.next = timer_now[31:0];
  assign set.timer.now_high.value.next = held[turn];
  assign set.debug.record_stall_low.value.next = record_stall[31:0];
  assign set.debug.record_stall_high.value.next = held[turn];

  // --- system --------------------------------------------------------------------------------------

  logic cpu_in_reset;
  logic [1:0] boot_reason;
  logic [15:0] boot_count;
  logic load_write, load_read;
  logic [31:0] load_data;

  assign set.system.status.cpu_in_reset.next = cpu_in_reset;
  assign set.system.status.ready.next = ready;
  assign set.system.status.measure_in_reset.next = rst_measure;
  assign set.system.boot.reason.next = boot_reason;
  assign set.system.boot.count.next = boot_count;
  assign set.system.load_address.value.next = got.system.load_address.value.value + 1'b1;
  assign set.system.load_address.value.we = load_write || load_read;
  assign set.system.load_read.value.next = load_data;

  always_ff @(posedge clk) begin
    load_write <= got.system.load_write.value.swmod;
    load_read  <= got.system.load_read.value.swacc;
    if (rst) begin
      load_write <= 1'b0;
      load_read  <= 1'b0;
    end
  end

  // --- clock ---------------------------------------------------------------------------------------

  logic set_asked, step_asked, slew_asked;
  logic [15:0] refused;
  logic [31:0] pps_count;
  // Until it is done the clock takes nothing else.
  wire setting = clock_set_valid || clock_set_busy;
  wire set_fits = got.clock.set_ns.value.value < Second && !setting;
  wire signed [30:0] step = got.clock.step_ns.value.value;
  wire step_fits = step <= MaxStepNs && step >= -MaxStepNs && !setting;

  always_ff @(posedge clk) begin
    set_asked <= got.clock.set_ns.value.swmod;
    step_asked <= got.clock.step_ns.value.swmod;
    slew_asked <= got.clock.slew_ns.value.swmod;
    clock_rate <= got.clock.rate.value.value;
    clock_set_valid <= set_asked && set_fits;
    clock_set_seconds <= {got.clock.set_seconds_high.value.value, got.clock.set_seconds_low.value.value};
    clock_set_ns <= got.clock.set_ns.value.value;
    clock_step_valid <= step_asked && step_fits;
    clock_step_ns <= step;
    clock_slew_valid <= slew_asked && !setting;
    clock_slew_ns <= got.clock.slew_ns.value.value;
    refused <= refused + 16'((set_asked && !set_fits) || (step_asked && !step_fits) || (slew_asked && setting));
    pps_count <= pps_count + 32'(pps_valid);
    if (rst) begin
      set_asked <= 1'b0;
      step_asked <= 1'b0;
      slew_asked <= 1'b0;
      clock_rate <= '0;
      clock_set_valid <= 1'b0;
      clock_step_valid <= 1'b0;
      clock_slew_valid <= 1'b0;
      refused <= '0;
      pps_count <= '0;
    end
  end

  assign set.clock.status.set_busy.next = clock_set_busy;
  assign set.clock.status.slew_busy.next = clock_slew_busy;
  assign set.clock.status.refused.next = refused;
  assign set.clock.pps_count.value.next = pps_count;
  assign set.clock.pps_fraction.value.next = pps_fraction;

  // --- inline, port --------------------------------------------------------------------------------

  always_ff @(posedge clk) begin
    inline_enable <= got.inline.control.enable.value;
    heartbeat <= got.inline.heartbeat.beat.value;
    flush <= got.record.request.flush.value;
    for (int p = 0; p < Ports; p++) port_offset[p] <= got.port[p].time_offset.value.value;
    if (rst) begin
      inline_enable <= 1'b0;
      heartbeat <= 1'b0;
      flush <= 1'b0;
    end
  end

  for (genvar p = 0; p < Ports; p++) begin : gen_port
    assign set.inline.port[p].mode.measured.next = measured[p];
    assign set.inline.port[p].takeovers.value.next = takeovers[p];
    assign set.inline.port[p].faults.value.next = faults[p];
    assign set.inline.port[p].frames_in.value.next = frames_in[p];
    assign set.inline.port[p].frames_out.value.next = frames_out[p];
    assign set.inline.port[p].frames_dropped.value.next = frames_dropped[p];
    assign set.inline.port[p].frames_cut.value.next = frames_cut[p];
    assign set.port[p].dropped.value.next = dropped[p];
    assign set.port[p].slices.value.next = slices[p];
    assign set.port[p].slices_dropped.value.next = slices_dropped[p];
  end

  // --- measure, record: settings stand still while measuring runs ----------------------------------

  // verilator lint_off UNUSEDSIGNAL
  logic [SeedWords-1:0][31:0] seed_words;
  // verilator lint_on UNUSEDSIGNAL
  for (genvar i = 0; i < SeedWords; i++) begin : gen_seed
    assign seed_words[i] = got.measure.seed[i].value.value;
  end

  always_ff @(posedge clk) begin
    rst_measure <= got.system.control.measure_reset.value;
    if (rst_measure) begin
      seed <= seed_t'(seed_words);
      vlan_in_key <= got.measure.control.vlan_in_key.value;
      shed_enable <= got.measure.control.shed_enable.value;
      lane <= got.measure.control.lane.value;
      epoch <= got.measure.control.epoch.value;
      timeouts.handshake <= {got.measure.handshake_high.value.value, got.measure.handshake_low.value.value};
      timeouts.idle <= {got.measure.idle_high.value.value, got.measure.idle_low.value.value};
      timeouts.linger <= {got.measure.linger_high.value.value, got.measure.linger_low.value.value};
      timeouts.other <= {got.measure.other_high.value.value, got.measure.other_low.value.value};
      statistics_enable <= got.statistics.control.enable.value;
      for (int p = 0; p < Ports; p++) burst_bytes[p] <= got.statistics.burst_bytes[p].value.value;
      for (int i = 0; i < 7; i++) services[i] <= got.statistics.service[i].value.value;
      for (int i = 0; i < 6; i++) sketch_seed[32*i+:32] <= got.statistics.seed[i].value.value;
      destination_mac <= {got.record.destination_high.value.value, got.record.destination_low.value.value};
      source_mac <= {got.record.source_high.value.value, got.record.source_low.value.value};
    end
    if (rst) rst_measure <= 1'b1;
  end

  for (genvar k = 0; k < 3; k++) begin : gen_kernel
    assign set.statistics.words_lost[k].value.next   = words_lost[k];
    assign set.statistics.results_lost[k].value.next = results_lost[k];
  end
  assign set.statistics.records.value.next = statistics_records;

  logic [4:0][31:0] left_out_counts;
  always_ff @(posedge clk) begin
    left_out_counts[0] <= left_out_counts[0] + 32'(left_out.packet);
    left_out_counts[1] <= left_out_counts[1] + 32'(left_out.rtt);
    left_out_counts[2] <= left_out_counts[2] + 32'(left_out.interval);
    left_out_counts[3] <= left_out_counts[3] + 32'(left_out.block);
    left_out_counts[4] <= left_out_counts[4] + 32'(left_out.event_);
    if (rst || rst_measure) left_out_counts <= '0;
  end

  assign set.measure.used.value.next = 32'(contexts_used);
  assign set.measure.in_use.value.next = 32'(contexts_in_use);
  assign set.measure.left_out_packet.value.next = left_out_counts[0];
  assign set.measure.left_out_rtt.value.next = left_out_counts[1];
  assign set.measure.left_out_interval.value.next = left_out_counts[2];
  assign set.measure.left_out_block.value.next = left_out_counts[3];
  assign set.measure.left_out_event.value.next = left_out_counts[4];
  assign set.measure.no_index.value.next = no_index_count;
  assign set.measure.no_room.value.next = no_room_count;

  // --- digest --------------------------------------------------------------------------------------

  digest_entry_t [3:0] entries;
  for (genvar i = 0; i < 4; i++) begin : gen_entry
    assign entries[i].enable = got.digest_entry[i].control.enable.value;
    assign entries[i].protocol = got.digest_entry[i].control.protocol.value;
    assign entries[i].protocol_mask = got.digest_entry[i].control.protocol_mask.value;
    assign entries[i].vlans = got.digest_entry[i].vlans.value.value;
    assign entries[i].vlans_mask = got.digest_entry[i].vlan_mask.value.value;
    for (genvar w = 0; w < 4; w++) begin : gen_word
      assign entries[i].a.value.addr[32*w+:32] = got.digest_entry[i].a.address[w].value.value;
      assign entries[i].a.mask.addr[32*w+:32]  = got.digest_entry[i].a.address_mask[w].value.value;
      assign entries[i].b.value.addr[32*w+:32] = got.digest_entry[i].b.address[w].value.value;
      assign entries[i].b.mask.addr[32*w+:32]  = got.digest_entry[i].b.address_mask[w].value.value;
    end
    assign entries[i].a.value.port = got.digest_entry[i].a.port.value.value;
    assign entries[i].a.mask.port  = got.digest_entry[i].a.port.mask.value;
    assign entries[i].b.value.port = got.digest_entry[i].b.port.value.value;
    assign entries[i].b.mask.port  = got.digest_entry[i].b.port.mask.value;
  end

  always_ff @(posedge clk) begin
    digest_mode <= digest_mode_e'(got.digest.control.mode.value);
    digest_entries <= entries[DigestEntries-1:0];
    slices_enable <= got.digest.control.slices_enable.value;
    trigger_packets <= got.digest.trigger_packets.value.value;
    trigger_ns <= {got.digest.trigger_ns_high.value.value, got.digest.trigger_ns_low.value.value};
    if (rst) begin
      digest_mode   <= DIGEST_OFF;
      slices_enable <= 1'b0;
    end
  end

  assign set.digest.wanted.value.next = wanted;

  // --- mailbox -------------------------------------------------------------------------------------

  logic [1:0] push, pop, mail_ready, mail_valid;
  logic [1:0][31:0] pop_data;
  logic [1:0][ 7:0] words;
  logic [1:0][15:0] lost;

  always_ff @(posedge clk) begin
    push <= {got.mailbox.to_host.push.value.swmod, got.mailbox.to_card.push.value.swmod};
    pop  <= {got.mailbox.to_host.pop.value.swacc, got.mailbox.to_card.pop.value.swacc};
    if (rst) begin
      push <= '0;
      pop  <= '0;
    end
  end

  weir_mailbox #(
      .Depth(MailboxDepth)
  ) mailbox (
      .clk,
      .rst,
      .clear(got.mailbox.request.clear.value),
      .push,
      .push_data({got.mailbox.to_host.push.value.value, got.mailbox.to_card.push.value.value}),
      .pop,
      .pop_data,
      .ready(mail_ready),
      .valid(mail_valid),
      .words,
      .lost
  );

  assign set.mailbox.to_card.pop.value.next = pop_data[0];
  assign set.mailbox.to_card.status.words.next = words[0];
  assign set.mailbox.to_card.status.ready.next = mail_ready[0];
  assign set.mailbox.to_card.status.valid.next = mail_valid[0];
  assign set.mailbox.to_card.status.lost.next = lost[0];
  assign set.mailbox.to_host.pop.value.next = pop_data[1];
  assign set.mailbox.to_host.status.words.next = words[1];
  assign set.mailbox.to_host.status.ready.next = mail_ready[1];
  assign set.mailbox.to_host.status.valid.next = mail_valid[1];
  assign set.mailbox.to_host.status.lost.next = lost[1];

  // --- timer ---------------------------------------------------------------------------------------

  logic timer_due, timer_irq;

  weir_timer timer (
      .clk,
      .rst,
      .compare({got.timer.compare_high.value.value, got.timer.compare_low.value.value}),
      .enable(got.timer.control.irq_enable.value),
      .now(timer_now),
      .due(timer_due),
      .irq(timer_irq)
  );

  assign set.timer.control.due.next = timer_due;

  // --- fault, debug --------------------------------------------------------------------------------

  logic [2:0] stuck;
  logic ram_bad, watchdog_expired, bus_unknown;
  logic [31:0] bus_address;
  logic [RamAddressWidth-1:0] ram_bad_address;
  logic [31:0] table_bad_count, ram_bad_count, ram_bad_place, stuck_count, bus_error_count, bus_error_place;
  logic [31:0] host_accesses, card_accesses;
  logic [FaultBits-1:0] fault_status;

  for (genvar i = 0; i < 3; i++) begin : gen_watch
    weir_stuck watch (
        .clk,
        .rst  (rst || rst_measure),
        .valid(i == 0 ? record_valid : slice_valid[i-1]),
        .ready(i == 0 ? record_ready : slice_ready[i-1]),
        .limit(got.fault.stuck_clocks.value.value),
        .stuck(stuck[i])
    );
  end

  assign set.fault.status.table_parity.hwset = table_bad;
  assign set.fault.status.ram_parity.hwset = ram_bad;
  assign set.fault.status.stuck_records.hwset = stuck[0];
  assign set.fault.status.stuck_slices_0.hwset = stuck[1];
  assign set.fault.status.stuck_slices_1.hwset = stuck[2];
  assign set.fault.status.watchdog.hwset = watchdog_expired;
  assign set.fault.status.bus_error.hwset = bus_failed || bus_unknown;
  assign fault_status = {
    got.fault.status.bus_error.value,
    got.fault.status.watchdog.value,
    got.fault.status.stuck_slices_1.value,
    got.fault.status.stuck_slices_0.value,
    got.fault.status.stuck_records.value,
    got.fault.status.ram_parity.value,
    got.fault.status.table_parity.value
  };

  always_ff @(posedge clk) begin
    table_flip <= got.fault.inject.table_flip.value;
    stop_records <= got.fault.hold.stop_records.value;
    table_bad_count <= table_bad_count + 32'(table_bad);
    ram_bad_count <= ram_bad_count + 32'(ram_bad);
    if (ram_bad) ram_bad_place <= 32'({ram_bad_address, 2'b0});
    stuck_count <= stuck_count + 32'(stuck[0]) + 32'(stuck[1]) + 32'(stuck[2]);
    bus_error_count <= bus_error_count + 32'(bus_failed || bus_unknown);
    if (bus_failed) bus_error_place <= 32'(bus_failed_address);
    if (bus_unknown) bus_error_place <= bus_address;
    host_accesses <= host_accesses + 32'(bus_done && !turn);
    card_accesses <= card_accesses + 32'(bus_done && turn);
    record_stall  <= record_stall + 64'(record_valid && !record_ready);
    if (rst) begin
      table_flip <= 1'b0;
      stop_records <= 1'b0;
      table_bad_count <= '0;
      ram_bad_count <= '0;
      ram_bad_place <= '0;
      stuck_count <= '0;
      bus_error_count <= '0;
      bus_error_place <= '0;
      host_accesses <= '0;
      card_accesses <= '0;
      record_stall <= '0;
    end
  end

  assign set.fault.table_parity_count.value.next = table_bad_count;
  assign set.fault.ram_parity_count.value.next = ram_bad_count;
  assign set.fault.ram_parity_address.value.next = ram_bad_place;
  assign set.fault.stuck_count.value.next = stuck_count;
  assign set.fault.bus_error_count.value.next = bus_error_count;
  assign set.debug.bus_address.value.next = bus_error_place;
  assign set.debug.host_accesses.value.next = host_accesses;
  assign set.debug.card_accesses.value.next = card_accesses;

  // --- Interrupts ----------------------------------------------------------------------------------

  logic mail_irq, fault_irq;

  always_ff @(posedge clk) begin
    irq <= (mail_valid[1] && got.mailbox.host_irq_enable.to_host_valid.value) ||
        (mail_ready[0] && got.mailbox.host_irq_enable.to_card_ready.value) ||
        (fault_status & got.fault.host_irq_enable.mask.value) != '0;
    mail_irq <= (mail_valid[0] && got.mailbox.card_irq_enable.to_card_valid.value) ||
        (mail_ready[1] && got.mailbox.card_irq_enable.to_host_ready.value);
    fault_irq <= (fault_status & got.fault.card_irq_enable.mask.value) != '0;
    if (rst) begin
      irq <= 1'b0;
      mail_irq <= 1'b0;
      fault_irq <= 1'b0;
    end
  end

  // --- CPU -----------------------------------------------------------------------------------------

  logic kick;
  logic [31:0] watchdog_left;
  logic [15:0] expiries, bad_kicks;

  always_ff @(posedge clk) begin
    kick <= got.watchdog.kick.value.swmod;
    if (rst) kick <= 1'b0;
  end

  assign set.watchdog.control.lock.hwclr = cpu_in_reset;
  assign set.watchdog.left.value.next = watchdog_left;
  assign set.watchdog.status.expired.next = expiries;
  assign set.watchdog.status.bad_kicks.next = bad_kicks;

  weir_soc #(
      .RomFile(RomFile),
      .RamWords(RamWords),
      .AddressWidth(AddressWidth)
  ) soc (
      .clk,
      .rst,
      .cpu_reset(got.system.control.cpu_reset.value),
      .cpu_restart(got.system.request.cpu_restart.value),
      .cpu_in_reset,
      .boot_reason,
      .boot_count,
      .watchdog_enable(got.watchdog.control.enable.value),
      .watchdog_timeout(got.watchdog.timeout.value.value),
      .watchdog_kick_valid(kick),
      .watchdog_kick_key(got.watchdog.kick.value.value),
      .watchdog_expired,
      .watchdog_left,
      .watchdog_expiries(expiries),
      .watchdog_bad_kicks(bad_kicks),
      .load_address(got.system.load_address.value.value[RamAddressWidth-1:0]),
      .load_write,
      .load_wdata(got.system.load_write.value.value),
      .load_read(got.system.load_read.value.swacc),
      .load_data,
      .ram_flip(got.fault.inject.ram_flip.value),
      .ram_bad,
      .ram_bad_address,
      .bus_unknown,
      .bus_address,
      .timer_irq,
      .irqs({30'b0, fault_irq, mail_irq}),
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
      .m_rready(card_rready)
  );

`ifndef SYNTHESIS
  a_settings_stand_still :
  assert property (@(posedge clk) disable iff (rst) !rst_measure |=> $stable(
      {seed, vlan_in_key, shed_enable, lane, epoch, timeouts, destination_mac, source_mac}
  ) || rst_measure);
  a_set_below_a_second :
  assert property (@(posedge clk) disable iff (rst) clock_set_valid |-> clock_set_ns < Second);
  a_one_beat :
  assert property (@(posedge clk) disable iff (rst) heartbeat |=> !heartbeat);
`endif

endmodule

`default_nettype wire
