// The datapath of a card with two ports, inline between two MACs: what passes, passes; what is measured leaves as
// record frames. Registers, host interface and MACs are around it.
//
// Promise      Frames of rx 0 leave at tx 1 and those of rx 1 at tx 0, by weir_inline. Copies are stamped, parsed and
//              measured (weir_measure); records leave in frames (weir_framer), header slices of wanted packets
//              beside them (weir_slice). Statistics of the same packets leave in frames of their own.
// Throughput   One beat per clock, port and direction.
// Backpressure None towards rx. m_ holds up the framer, and that the queues in front of the lookup, whose overflow
//              is counted; nothing of that reaches tx.
// Resets       `rst` all; `rst_measure` everything but the inline path, which goes on.

`default_nettype none

module weir_datapath
  import weir_pkg::*;
  import weir_digest_pkg::*;
  import weir_kernel_pkg::kernel_word_t;
  import weir_lookup_pkg::*;
  import weir_tracker_pkg::*;
#(
    parameter int Contexts = 1 << 18,
    parameter int Buckets = 1 << 15,
    parameter int Ways = 5,
    parameter int DigestEntries = 4,
    parameter int SliceBytes = 128,
    // Clocks without a heartbeat until bypass takes over.
    parameter int Heartbeat = 3_000_000,
    // Clocks that frames are held (weir_inline).
    parameter int Hold = 0,
    parameter int FlushClocks = 30_000,
    parameter int HorizonNs = 2048,
    parameter int ClockKhz = 300_000,
    localparam int Ports = 2
) (
    input var  logic clk,
    input var  logic rst,
    input var  logic rst_measure,
    // Measuring has begun.
    output var logic ready,

    // Clock (weir_clock).
    input var logic signed [31:0] clock_rate,
    input var logic clock_set_valid,
    input var logic [47:0] clock_set_seconds,
    input var logic [29:0] clock_set_ns,
    output var logic clock_set_busy,
    input var logic clock_step_valid,
    input var logic signed [30:0] clock_step_ns,
    input var logic clock_slew_valid,
    input var logic signed [31:0] clock_slew_ns,
    output var logic clock_slew_busy,
    input var logic pps,
    output var logic pps_valid,
    output var logic [63:0] pps_tai_ns,
    output var logic [31:0] pps_fraction,
    output var logic [63:0] tai_ns,
    input var logic [Ports-1:0][31:0] port_offset,

    // Inline path (weir_inline).
    input var logic inline_enable,
    input var logic heartbeat,
    output var logic [Ports-1:0] measured,
    output var logic [Ports-1:0][31:0] takeovers,
    output var logic [Ports-1:0][31:0] faults,
    output var logic [Ports-1:0][31:0] frames_in,
    output var logic [Ports-1:0][31:0] frames_out,
    output var logic [Ports-1:0][31:0] frames_dropped,
    output var logic [Ports-1:0][31:0] frames_cut,

    // Measuring (weir_measure); settings change in rst_measure only.
    input var seed_t seed,
    input var logic vlan_in_key,
    input var timeouts_t timeouts,
    input var logic [15:0] epoch,
    input var logic [3:0] lane,
    input var logic shed_enable,
    input var digest_mode_e digest_mode,
    input var digest_entry_t [DigestEntries-1:0] digest_entries,
    input var logic [15:0] trigger_packets,
    input var logic [46:0] trigger_ns,
    input var logic slices_enable,
    output var logic [IndexWidth:0] contexts_used,
    output var logic [IndexWidth:0] contexts_in_use,
    output var shed_t left_out,
    output var logic [31:0] no_index_count,
    output var logic [31:0] no_room_count,
    output var logic [31:0] wanted,
    output var logic [Ports-1:0][31:0] dropped,
    output var logic [Ports-1:0][31:0] slices,
    output var logic [Ports-1:0][31:0] slices_dropped,
    // Statistics per 100 ms (weir_statistics); settings change in rst_measure only.
    input var logic statistics_enable,
    input var logic [Ports-1:0][31:0] burst_bytes,
    input var logic [6:0][15:0] services,
    input var logic [191:0] sketch_seed,
    output var logic [2:0][31:0] words_lost,
    output var logic [2:0][31:0] results_lost,
    output var logic [31:0] statistics_records,
    // Parity of the key table (weir_key_table).
    input var logic table_flip,
    output var logic table_bad,

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
    input var logic [47:0] destination_mac,
    input var logic [47:0] source_mac,
    input var logic flush,
    output var logic [511:0] m_tdata,
    output var logic [63:0] m_tkeep,
    output var logic m_tlast,
    output var logic m_tvalid,
    input var logic m_tready,
    output var logic [63:0] records_in,
    output var logic [63:0] records_out,
    output var logic [63:0] record_frames,

    // Header slices, by port.
    output var logic [Ports-1:0][511:0] slice_tdata,
    output var logic [Ports-1:0] slice_tlast,
    output var logic [Ports-1:0] slice_tvalid,
    input var logic [Ports-1:0] slice_tready
);

  // Statistics that wait for their frame.
  localparam int StatisticsDepth = 64;

  logic reset_measure;
  // verilator lint_off UNUSEDSIGNAL
  logic [47:0] clock_seconds;
  logic [29:0] clock_ns;
  logic [31:0] clock_fraction;
  // verilator lint_on UNUSEDSIGNAL
  assign reset_measure = rst || rst_measure;

  // A clock and 500 ppm of it, in 2^-32 ns.
  localparam logic [63:0] ClockTime = ((64'd1_000_000 << 32) + 64'(ClockKhz / 2)) / 64'(ClockKhz);
  localparam logic [63:0] ClockSlew = ((64'd500 << 32) + 64'(ClockKhz / 2)) / 64'(ClockKhz);

  weir_clock #(
      .Increment(40'(ClockTime)),
      .SlewIncrement(24'(ClockSlew))
  ) clock (
      .clk,
      .rst,
      .rate(clock_rate),
      .set_valid(clock_set_valid),
      .set_seconds(clock_set_seconds),
      .set_ns(clock_set_ns),
      .set_busy(clock_set_busy),
      .step_valid(clock_step_valid),
      .step_ns(clock_step_ns),
      .slew_valid(clock_slew_valid),
      .slew_ns(clock_slew_ns),
      .slew_busy(clock_slew_busy),
      .pps,
      .pps_valid,
      .pps_tai_ns,
      .pps_fraction,
      .seconds(clock_seconds),
      .ns(clock_ns),
      .fraction(clock_fraction),
      .tai_ns
  );

  logic [Ports-1:0][511:0] stamped_tdata;
  logic [Ports-1:0][ 63:0] stamped_tkeep;
  logic [Ports-1:0] stamped_tlast, stamped_tvalid;
  frame_user_t [Ports-1:0] stamped_tuser;
  logic [Ports-1:0][63:0] horizon, latest;
  logic [Ports-1:0] waiting;

  logic looked_up, looked_up_wanted;
  logic [3:0] looked_up_port;
  logic [63:0] looked_up_number;
  // verilator lint_off UNUSEDSIGNAL
  word_kind_e looked_up_kind;
  logic looked_up_tracked;
  index_t looked_up_index;
  logic [Ports-1:0][31:0] slices_requested;
  // verilator lint_on UNUSEDSIGNAL

  for (genvar p = 0; p < Ports; p++) begin : gen_port
    logic [511:0] tap_tdata;
    logic [ 63:0] tap_tkeep;
    logic tap_tlast, tap_tvalid;
    // verilator lint_off UNUSEDSIGNAL
    logic [9:0] inline_level;
    // verilator lint_on UNUSEDSIGNAL
    weir_inline #(
        .Heartbeat(Heartbeat),
        .Hold(Hold)
    ) wire_path (
        .clk,
        .rst,
        .rst_measure(reset_measure),
        .enable(inline_enable),
        .heartbeat,
        .s_tdata(rx_tdata[p]),
        .s_tkeep(rx_tkeep[p]),
        .s_tlast(rx_tlast[p]),
        .s_terror(rx_terror[p]),
        .s_tvalid(rx_tvalid[p]),
        .m_tdata(tx_tdata[1-p]),
        .m_tkeep(tx_tkeep[1-p]),
        .m_tlast(tx_tlast[1-p]),
        .m_terror(tx_terror[1-p]),
        .m_tvalid(tx_tvalid[1-p]),
        .m_tready(tx_tready[1-p]),
        .tap_tdata,
        .tap_tkeep,
        .tap_tlast,
        .tap_tvalid,
        .measured(measured[p]),
        .takeovers(takeovers[p]),
        .faults(faults[p]),
        .frames_in(frames_in[p]),
        .frames_out(frames_out[p]),
        .frames_dropped(frames_dropped[p]),
        .frames_cut(frames_cut[p]),
        .level(inline_level)
    );
    weir_timestamp stamp (
        .clk,
        .rst(reset_measure),
        .tai_ns,
        .offset(port_offset[p]),
        .s_tdata(tap_tdata),
        .s_tkeep(tap_tkeep),
        .s_tvalid(tap_tvalid),
        .s_tlast(tap_tlast),
        .s_wire_length('0),
        .m_tdata(stamped_tdata[p]),
        .m_tkeep(stamped_tkeep[p]),
        .m_tvalid(stamped_tvalid[p]),
        .m_tlast(stamped_tlast[p]),
        .m_tuser(stamped_tuser[p])
    );
    weir_horizon #(
        .MaxNs(HorizonNs)
    ) bound (
        .clk,
        .rst(reset_measure),
        .tai_ns,
        .offset(port_offset[p]),
        .waiting(waiting[p]),
        .horizon(horizon[p]),
        .latest(latest[p])
    );
    weir_slice #(
        .Port (p),
        .Bytes(SliceBytes)
    ) slice (
        .clk,
        .rst(reset_measure),
        .s_tdata(stamped_tdata[p]),
        .s_tkeep(stamped_tkeep[p]),
        .s_tlast(stamped_tlast[p]),
        .s_tvalid(stamped_tvalid[p]),
        .s_tuser(stamped_tuser[p]),
        .request_number(looked_up_number),
        .request_valid(looked_up && looked_up_wanted && slices_enable && looked_up_port == 4'(p)),
        .m_tdata(slice_tdata[p]),
        .m_tlast(slice_tlast[p]),
        .m_tvalid(slice_tvalid[p]),
        .m_tready(slice_tready[p]),
        .requested(slices_requested[p]),
        .slices(slices[p]),
        .dropped(slices_dropped[p])
    );
  end

  logic visit_valid, visit_ready;
  index_t visit_index;
  logic [63:0] visit_time, visit_horizon;
  weir_scan #(
      .Contexts(Contexts)
  ) scan (
      .clk,
      .rst(reset_measure),
      .s_now(tai_ns),
      .used(contexts_used),
      .m_valid(visit_valid),
      .m_index(visit_index),
      .m_time(visit_time),
      .m_ready(visit_ready),
      .m_horizon(visit_horizon)
  );

  logic [511:0] record;
  logic record_valid, record_ready;
  kernel_word_t kernel_word;
  logic kernel_valid;
  weir_measure #(
      .Ports(Ports),
      .Contexts(Contexts),
      .Buckets(Buckets),
      .Ways(Ways),
      .DigestEntries(DigestEntries)
  ) measure (
      .clk,
      .rst(reset_measure),
      .ready,
      .seed,
      .vlan_in_key,
      .timeouts,
      .epoch,
      .record_lane(lane),
      .shed_enable,
      .digest_mode,
      .digest_entries,
      .trigger_packets,
      .trigger_ns,
      .s_tdata(stamped_tdata),
      .s_tkeep(stamped_tkeep),
      .s_tvalid(stamped_tvalid),
      .s_tlast(stamped_tlast),
      .s_tuser(stamped_tuser),
      .s_horizon(horizon),
      .s_latest(latest),
      .s_visit_kind(WORD_VISIT),
      .s_visit_index(visit_index),
      .s_visit_time(visit_time),
      .s_visit_valid(visit_valid),
      .s_visit_ready(visit_ready),
      .s_visit_horizon(visit_horizon),
      .m_record(record),
      .m_valid(record_valid),
      .m_ready(record_ready),
      .kernel_word,
      .kernel_valid,
      .waiting,
      .used(contexts_used),
      .occupancy(contexts_in_use),
      .looked_up,
      .looked_up_tracked,
      .looked_up_kind,
      .looked_up_index,
      .looked_up_wanted,
      .looked_up_port,
      .looked_up_number,
      .wanted,
      .left_out,
      .no_index_count,
      .no_room_count,
      .dropped,
      .table_flip,
      .table_bad
  );

  // Of a lane's statistics: 8 and it.
  logic [3:0] statistics_lane;
  assign statistics_lane = lane ^ 4'd8;
  logic [511:0] statistic;
  logic statistic_valid, statistic_ready;
  weir_statistics statistics (
      .clk,
      .rst(reset_measure),
      .enable(statistics_enable),
      .lane(statistics_lane),
      .thresholds(burst_bytes),
      .services,
      .seed(sketch_seed),
      .s_word(kernel_word),
      .s_valid(kernel_valid),
      .m_record(statistic),
      .m_valid(statistic_valid),
      .m_ready(statistic_ready),
      .words_lost,
      .results_lost,
      .records_out(statistics_records)
  );

  // Frames of the flows' records, of the statistics'.
  logic [1:0][511:0] frame_tdata;
  logic [1:0] frame_tlast, frame_tvalid, frame_tready;
  // verilator lint_off UNUSEDSIGNAL
  logic [1:0][63:0] frame_tkeep;
  logic [63:0] statistics_in, statistics_out, statistics_frames;
  // verilator lint_on UNUSEDSIGNAL
  assign m_tkeep = '1;
  weir_frame_merge merge (
      .clk,
      .rst(reset_measure),
      .s_tdata(frame_tdata),
      .s_tlast(frame_tlast),
      .s_tvalid(frame_tvalid),
      .s_tready(frame_tready),
      .m_tdata,
      .m_tlast,
      .m_tvalid,
      .m_tready
  );

  weir_framer #(
      .MaxRecords(StatisticsDepth),
      .FlushClocks(FlushClocks),
      .Depth(StatisticsDepth),
      .Frames(4)
  ) statistics_framer (
      .clk,
      .rst(reset_measure),
      .now(tai_ns),
      .destination_mac,
      .source_mac,
      .lane(8'(statistics_lane)),
      .epoch,
      .flush,
      .s_data(statistic),
      .s_valid(statistic_valid),
      .s_ready(statistic_ready),
      .m_tdata(frame_tdata[1]),
      .m_tkeep(frame_tkeep[1]),
      .m_tlast(frame_tlast[1]),
      .m_tvalid(frame_tvalid[1]),
      .m_tready(frame_tready[1]),
      .records_in(statistics_in),
      .records_out(statistics_out),
      .frames_out(statistics_frames)
  );

  weir_framer #(
      .FlushClocks(FlushClocks)
  ) framer (
      .clk,
      .rst(reset_measure),
      .now(tai_ns),
      .destination_mac,
      .source_mac,
      .lane(8'(lane)),
      .epoch,
      .flush,
      .s_data(record),
      .s_valid(record_valid),
      .s_ready(record_ready),
      .m_tdata(frame_tdata[0]),
      .m_tkeep(frame_tkeep[0]),
      .m_tlast(frame_tlast[0]),
      .m_tvalid(frame_tvalid[0]),
      .m_tready(frame_tready[0]),
      .records_in,
      .records_out,
      .frames_out(record_frames)
  );

endmodule

`default_nettype wire
