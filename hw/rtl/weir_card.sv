// The card: datapath, registers, CPU. Around it: MACs, the host's bus (AXI4-Lite) and the link of the record frames.
//
//   rx ---> weir_datapath ---> tx              what passes
//                |  '-------> m_, slice_       what is measured
//          settings, counters
//                |
//          weir_control <---> s_ (host)        registers, CPU, mailbox
//
// Promise      That of weir_datapath and of weir_control. Bypass after `rst` until firmware beats; measuring in reset until
//              it is released by register.
// Throughput   One beat per clock, port and direction.
// Latency      Record frames and slices: one clock behind weir_datapath's.
// Resets       A reset of measuring within a record frame or a slice ends it with a beat of zeros.
// Backpressure None towards rx. Register accesses wait for nothing in the datapath.

`default_nettype none

module weir_card
  import weir_pkg::*;
  import weir_digest_pkg::*;
  import weir_lookup_pkg::*;
  import weir_tracker_pkg::*;
#(
    parameter int Contexts = 1 << 18,
    parameter int Buckets = 1 << 15,
    parameter int Ways = 5,
    parameter int DigestEntries = 4,
    parameter int SliceBytes = 128,
    parameter int Heartbeat = 3_000_000,
    parameter int Hold = 0,
    parameter int FlushClocks = 30_000,
    parameter int HorizonNs = 2048,
    parameter int ClockKhz = 300_000,
    // Boot ROM, in words of hexadecimal; without it the CPU stays where it starts.
    parameter string RomFile = "",
    parameter int RamWords = 32768,
    localparam int Ports = 2,
    localparam int AddressWidth = 14
) (
    input var logic clk,
    input var logic rst,

    // Host: registers (docs/src/registers.md), and a level-sensitive interrupt.
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
    output var logic irq,

    // Pulse per second; not synchronous.
    input var logic pps,

    // From and to the MACs.
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
    input var logic [Ports-1:0] tx_tready,

    // Record frames.
    output var logic [511:0] m_tdata,
    output var logic [63:0] m_tkeep,
    output var logic m_tlast,
    output var logic m_tvalid,
    input var logic m_tready,

    // Header slices, by port.
    output var logic [Ports-1:0][511:0] slice_tdata,
    output var logic [Ports-1:0] slice_tlast,
    output var logic [Ports-1:0] slice_tvalid,
    input var logic [Ports-1:0] slice_tready
);

  logic rst_measure;
  logic ready;
  logic signed [31:0] clock_rate;
  logic clock_set_valid;
  logic [47:0] clock_set_seconds;
  logic [29:0] clock_set_ns;
  logic clock_set_busy;
  logic clock_step_valid;
  logic signed [30:0] clock_step_ns;
  logic clock_slew_valid;
  logic signed [31:0] clock_slew_ns;
  logic clock_slew_busy;
  logic pps_valid;
  logic [63:0] pps_tai_ns;
  logic [31:0] pps_fraction;
  logic [63:0] tai_ns;
  logic [Ports-1:0][31:0] port_offset;
  logic inline_enable;
  logic heartbeat;
  logic [Ports-1:0] measured;
  logic [Ports-1:0][31:0] takeovers;
  logic [Ports-1:0][31:0] faults;
  logic [Ports-1:0][31:0] frames_in;
  logic [Ports-1:0][31:0] frames_out;
  logic [Ports-1:0][31:0] frames_dropped;
  logic [Ports-1:0][31:0] frames_cut;
  seed_t seed;
  logic vlan_in_key;
  timeouts_t timeouts;
  logic [15:0] epoch;
  logic [3:0] lane;
  logic shed_enable;
  digest_mode_e digest_mode;
  digest_entry_t [DigestEntries-1:0] digest_entries;
  logic [15:0] trigger_packets;
  logic [46:0] trigger_ns;
  logic slices_enable;
  logic [IndexWidth:0] contexts_used;
  logic [IndexWidth:0] contexts_in_use;
  shed_t left_out;
  logic [31:0] no_index_count;
  logic [31:0] no_room_count;
  logic [31:0] wanted;
  logic [Ports-1:0][31:0] dropped;
  logic [Ports-1:0][31:0] slices;
  logic [Ports-1:0][31:0] slices_dropped;
  logic statistics_enable;
  logic [Ports-1:0][31:0] burst_bytes;
  logic [6:0][15:0] services;
  logic [191:0] sketch_seed;
  logic [2:0][31:0] words_lost;
  logic [2:0][31:0] results_lost;
  logic [31:0] statistics_records;
  logic [47:0] destination_mac;
  logic [47:0] source_mac;
  logic flush;
  logic [63:0] records_in;
  logic [63:0] records_out;
  logic [63:0] record_frames;
  logic stop_records;
  logic table_bad, table_flip;

  // Record frames and slices as they come out of the datapath.
  logic [511:0] record_tdata;
  logic [ 63:0] record_tkeep;
  logic record_tlast, record_tvalid, record_tready;
  logic [Ports-1:0][511:0] port_slice_tdata;
  logic [Ports-1:0] port_slice_tlast, port_slice_tvalid, port_slice_tready;

  weir_control #(
      .Contexts(Contexts),
      .Buckets(Buckets),
      .Ways(Ways),
      .DigestEntries(DigestEntries),
      .SliceBytes(SliceBytes),
      .Heartbeat(Heartbeat),
      .ClockKhz(ClockKhz),
      .RomFile(RomFile),
      .RamWords(RamWords)
  ) control (
      .clk,
      .rst,
      .s_awaddr,
      .s_awvalid,
      .s_awready,
      .s_wdata,
      .s_wstrb,
      .s_wvalid,
      .s_wready,
      .s_bresp,
      .s_bvalid,
      .s_bready,
      .s_araddr,
      .s_arvalid,
      .s_arready,
      .s_rdata,
      .s_rresp,
      .s_rvalid,
      .s_rready,
      .irq,
      .rst_measure,
      .ready,
      .clock_rate,
      .clock_set_valid,
      .clock_set_seconds,
      .clock_set_ns,
      .clock_set_busy,
      .clock_step_valid,
      .clock_step_ns,
      .clock_slew_valid,
      .clock_slew_ns,
      .clock_slew_busy,
      .pps_valid,
      .pps_tai_ns,
      .pps_fraction,
      .tai_ns,
      .port_offset,
      .inline_enable,
      .heartbeat,
      .measured,
      .takeovers,
      .faults,
      .frames_in,
      .frames_out,
      .frames_dropped,
      .frames_cut,
      .seed,
      .vlan_in_key,
      .timeouts,
      .epoch,
      .lane,
      .shed_enable,
      .digest_mode,
      .digest_entries,
      .trigger_packets,
      .trigger_ns,
      .slices_enable,
      .contexts_used,
      .contexts_in_use,
      .left_out,
      .no_index_count,
      .no_room_count,
      .wanted,
      .dropped,
      .slices,
      .slices_dropped,
      .statistics_enable,
      .burst_bytes,
      .services,
      .sketch_seed,
      .words_lost,
      .results_lost,
      .statistics_records,
      .destination_mac,
      .source_mac,
      .flush,
      .records_in,
      .records_out,
      .record_frames,
      .record_valid(record_tvalid),
      .record_ready(record_tready),
      .slice_valid (port_slice_tvalid),
      .slice_ready (port_slice_tready),
      .table_bad,
      .table_flip,
      .stop_records
  );

  weir_datapath #(
      .Contexts(Contexts),
      .Buckets(Buckets),
      .Ways(Ways),
      .DigestEntries(DigestEntries),
      .SliceBytes(SliceBytes),
      .Heartbeat(Heartbeat),
      .Hold(Hold),
      .FlushClocks(FlushClocks),
      .HorizonNs(HorizonNs),
      .ClockKhz(ClockKhz)
  ) datapath (
      .clk,
      .rst,
      .rst_measure,
      .ready,
      .clock_rate,
      .clock_set_valid,
      .clock_set_seconds,
      .clock_set_ns,
      .clock_set_busy,
      .clock_step_valid,
      .clock_step_ns,
      .clock_slew_valid,
      .clock_slew_ns,
      .clock_slew_busy,
      .pps,
      .pps_valid,
      .pps_tai_ns,
      .pps_fraction,
      .tai_ns,
      .port_offset,
      .inline_enable,
      .heartbeat,
      .measured,
      .takeovers,
      .faults,
      .frames_in,
      .frames_out,
      .frames_dropped,
      .frames_cut,
      .seed,
      .vlan_in_key,
      .timeouts,
      .epoch,
      .lane,
      .shed_enable,
      .digest_mode,
      .digest_entries,
      .trigger_packets,
      .trigger_ns,
      .slices_enable,
      .contexts_used,
      .contexts_in_use,
      .left_out,
      .no_index_count,
      .no_room_count,
      .wanted,
      .dropped,
      .slices,
      .slices_dropped,
      .statistics_enable,
      .burst_bytes,
      .services,
      .sketch_seed,
      .words_lost,
      .results_lost,
      .statistics_records,
      .table_flip,
      .table_bad,
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
      .destination_mac,
      .source_mac,
      .flush,
      .m_tdata(record_tdata),
      .m_tkeep(record_tkeep),
      .m_tlast(record_tlast),
      .m_tvalid(record_tvalid),
      .m_tready(record_tready),
      .records_in,
      .records_out,
      .record_frames,
      .slice_tdata(port_slice_tdata),
      .slice_tlast(port_slice_tlast),
      .slice_tvalid(port_slice_tvalid),
      .slice_tready(port_slice_tready)
  );

  // A reset of measuring ends in no frame: behind this, links and DMA see none that has no last beat.
  weir_frame_end #(
      .Width(512 + 64),
      .LastBeat({512'b0, {64{1'b1}}})
  ) record_end (
      .clk,
      .rst,
      .cut(rst_measure),
      .hold(stop_records),
      .s_tdata({record_tdata, record_tkeep}),
      .s_tlast(record_tlast),
      .s_tvalid(record_tvalid),
      .s_tready(record_tready),
      .m_tdata({m_tdata, m_tkeep}),
      .m_tlast,
      .m_tvalid,
      .m_tready
  );

  for (genvar p = 0; p < Ports; p++) begin : gen_slice_end
    weir_frame_end #(
        .Width(512)
    ) slice_end (
        .clk,
        .rst,
        .cut(rst_measure),
        .hold(1'b0),
        .s_tdata(port_slice_tdata[p]),
        .s_tlast(port_slice_tlast[p]),
        .s_tvalid(port_slice_tvalid[p]),
        .s_tready(port_slice_tready[p]),
        .m_tdata(slice_tdata[p]),
        .m_tlast(slice_tlast[p]),
        .m_tvalid(slice_tvalid[p]),
        .m_tready(slice_tready[p])
    );
  end

endmodule

`default_nettype wire
