// The card without its measuring pipeline, for the firmware: registers and CPU, clock, inline path of port 0 with traffic
// that never ends. What the firmware asks of measuring are inputs.
//
// A frame of two beats enters every Gap clocks with its number in each beat; `frames` counts those that left as they
// came and in order, `wrong` whatever else left.

`default_nettype none

module weir_firmware_bench
  import weir_pkg::*;
  import weir_digest_pkg::*;
  import weir_lookup_pkg::*;
  import weir_tracker_pkg::*;
#(
    parameter int Heartbeat = 30_000,
    parameter int Gap = 20,
    parameter int ReadyClocks = 1000,
    parameter string RomFile = ""
) (
    input var logic clk,
    input var logic rst,

    input var logic bus_clk,  // for the model at s_ (registers.py)

    input var logic [13:0] s_awaddr,
    input var logic s_awvalid,
    output var logic s_awready,
    input var logic [31:0] s_wdata,
    input var logic [3:0] s_wstrb,
    input var logic s_wvalid,
    output var logic s_wready,
    output var logic [1:0] s_bresp,
    output var logic s_bvalid,
    input var logic s_bready,
    input var logic [13:0] s_araddr,
    input var logic s_arvalid,
    output var logic s_arready,
    output var logic [31:0] s_rdata,
    output var logic [1:0] s_rresp,
    output var logic s_rvalid,
    input var logic s_rready,
    output var logic irq,

    input var logic pps,
    input var logic [63:0] records_in,
    input var logic [63:0] records_out,
    input var logic table_bad,

    output var logic measured,
    output var logic heartbeat,
    output var logic rst_measure,
    output var logic flush,
    output var logic [63:0] tai_ns,
    output var logic [31:0] takeovers,
    output var logic [31:0] sent,
    output var logic [31:0] frames,
    output var logic [31:0] wrong
);

  // --- Traffic -------------------------------------------------------------------------------------

  typedef logic [31:0] number_t;

  number_t number, expected;
  logic [$clog2(Gap)-1:0] wait_;
  logic second_in, second_out;
  logic [511:0] rx_tdata, tx_tdata;
  logic [63:0] tx_tkeep;
  logic rx_tvalid, rx_tlast, tx_tvalid, tx_tlast, tx_terror;

  assign rx_tdata = {16{number}} ^ 512'(second_in);
  assign rx_tlast = second_in;
  assign sent = number;

  always_ff @(posedge clk) begin
    wait_ <= wait_ == '0 ? $bits(wait_)'(Gap - 1) : wait_ - 1'b1;
    rx_tvalid <= wait_ <= 1;
    second_in <= wait_ == '0;
    if (rx_tvalid && second_in) number <= number + 1'b1;
    if (tx_tvalid) begin
      second_out <= !tx_tlast;
      if (tx_tdata != ({16{expected}} ^ 512'(second_out)) || tx_tlast != second_out || tx_terror || !(&tx_tkeep)) begin
        wrong <= wrong + 1'b1;
      end else if (tx_tlast) begin
        frames   <= frames + 1'b1;
        expected <= expected + 1'b1;
      end
    end
    if (rst) begin
      wait_ <= $bits(wait_)'(Gap - 1);
      rx_tvalid <= 1'b0;
      second_in <= 1'b0;
      second_out <= 1'b0;
      number <= '0;
      expected <= '0;
      frames <= '0;
      wrong <= '0;
    end
  end

  // --- What measuring says -------------------------------------------------------------------------

  logic ready;
  logic [$clog2(ReadyClocks+1)-1:0] clearing;

  assign ready = clearing == '0;

  always_ff @(posedge clk) begin
    if (rst || rst_measure) clearing <= $bits(clearing)'(ReadyClocks);
    else if (!ready) clearing <= clearing - 1'b1;
  end

  // --- The card ------------------------------------------------------------------------------------

  logic signed [31:0] clock_rate, clock_slew_ns;
  logic clock_set_valid, clock_set_busy, clock_step_valid, clock_slew_valid, clock_slew_busy;
  logic [47:0] clock_set_seconds;
  logic [29:0] clock_set_ns;
  logic signed [30:0] clock_step_ns;
  logic pps_valid;
  logic [63:0] pps_tai_ns;
  logic [31:0] pps_fraction;
  logic inline_enable;
  logic [31:0] faults, frames_in, frames_out, frames_dropped, frames_cut;

  weir_control #(
      .Heartbeat(Heartbeat),
      .RomFile  (RomFile)
  ) control (
      .measured({2{measured}}),
      .takeovers({2{takeovers}}),
      .faults({2{faults}}),
      .frames_in({2{frames_in}}),
      .frames_out({2{frames_out}}),
      .frames_dropped({2{frames_dropped}}),
      .frames_cut({2{frames_cut}}),
      .port_offset(),
      .seed(),
      .vlan_in_key(),
      .timeouts(),
      .epoch(),
      .lane(),
      .shed_enable(),
      .digest_mode(),
      .digest_entries(),
      .trigger_packets(),
      .trigger_ns(),
      .slices_enable(),
      .contexts_used('0),
      .contexts_in_use('0),
      .left_out('0),
      .no_index_count('0),
      .no_room_count('0),
      .wanted('0),
      .dropped('0),
      .slices('0),
      .slices_dropped('0),
      .statistics_enable(),
      .burst_bytes(),
      .services(),
      .sketch_seed(),
      .words_lost('0),
      .results_lost('0),
      .statistics_records('0),
      .destination_mac(),
      .source_mac(),
      .record_frames('0),
      .record_valid(1'b0),
      .record_ready(1'b1),
      .slice_valid('0),
      .slice_ready('1),
      .table_flip(),
      .stop_records(),
      .*
  );

  weir_clock the_clock (
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
      .seconds(),
      .ns(),
      .fraction(),
      .*
  );

  weir_inline #(
      .Heartbeat(Heartbeat)
  ) inline_path (
      .rst_measure(rst || rst_measure),
      .enable(inline_enable),
      .s_tdata(rx_tdata),
      .s_tkeep('1),
      .s_tlast(rx_tlast),
      .s_terror(1'b0),
      .s_tvalid(rx_tvalid),
      .m_tdata(tx_tdata),
      .m_tkeep(tx_tkeep),
      .m_tlast(tx_tlast),
      .m_terror(tx_terror),
      .m_tvalid(tx_tvalid),
      .m_tready(1'b1),
      .tap_tdata(),
      .tap_tkeep(),
      .tap_tlast(),
      .tap_tvalid(),
      .level(),
      .*
  );

endmodule

`default_nettype wire
