// weir_card as the simulated card drives it: its ports, and a look inside at how far it has come, so that time is leapt
// over only where nothing is under way.

`default_nettype none

module weir_nic_sim
  import weir_pkg::*;
#(
    parameter int Contexts = 1 << 18,
    parameter int Buckets = 1 << 15,
    parameter string RomFile = ""
) (
    input var clk,
    input var rst,

    // Registers.
    input var logic [13:0] s_awaddr,
    input var logic s_awvalid,
    output var logic s_awready,
    input var logic [31:0] s_wdata,
    input var logic s_wvalid,
    output var logic s_wready,
    output var logic [1:0] s_bresp,
    output var logic s_bvalid,
    input var logic [13:0] s_araddr,
    input var logic s_arvalid,
    output var logic s_arready,
    output var logic [31:0] s_rdata,
    output var logic [1:0] s_rresp,
    output var logic s_rvalid,
    output var logic irq,
    input var logic pps,

    // Wire.
    input var logic [1:0][511:0] rx_tdata,
    input var logic [1:0][63:0] rx_tkeep,
    input var logic [1:0] rx_tlast,
    input var logic [1:0] rx_tvalid,
    output var logic [1:0][511:0] tx_tdata,
    output var logic [1:0][63:0] tx_tkeep,
    output var logic [1:0] tx_tlast,
    output var logic [1:0] tx_tvalid,

    // Record frames.
    output var logic [511:0] m_tdata,
    output var logic m_tlast,
    output var logic m_tvalid,
    input var logic m_tready,

    // How far it has come.
    output var logic ready,
    output var logic [63:0] tai_ns,
    output var logic [63:0] visit_ns,
    output var logic looked_up_packet,
    output var logic [5:0] stash_level,
    output var logic [18:0] deletions,
    output var logic [18:0] contexts_in_use,
    output var logic [1:0][31:0] dropped,
    output var logic [31:0] no_room
);

  logic [63:0] m_tkeep;
  logic [1:0] tx_terror;
  logic [1:0][511:0] slice_tdata;
  logic [1:0] slice_tlast, slice_tvalid;

  weir_card #(
      .Contexts(Contexts),
      .Buckets(Buckets),
      .RomFile(RomFile),
      // Simulated clocks are few: a frame of records does not wait long for more, a word not for other ports.
      .FlushClocks(2000),
      .HorizonNs(1024),
      .Heartbeat(300_000)
  ) card (
      .clk,
      .rst,
      .s_awaddr,
      .s_awvalid,
      .s_awready,
      .s_wdata,
      .s_wstrb('1),
      .s_wvalid,
      .s_wready,
      .s_bresp,
      .s_bvalid,
      .s_bready(1'b1),
      .s_araddr,
      .s_arvalid,
      .s_arready,
      .s_rdata,
      .s_rresp,
      .s_rvalid,
      .s_rready(1'b1),
      .irq,
      .pps,
      .rx_tdata,
      .rx_tkeep,
      .rx_tlast,
      .rx_terror('0),
      .rx_tvalid,
      .tx_tdata,
      .tx_tkeep,
      .tx_tlast,
      .tx_terror,
      .tx_tvalid,
      .tx_tready('1),
      .m_tdata,
      .m_tkeep,
      .m_tlast,
      .m_tvalid,
      .m_tready,
      .slice_tdata,
      .slice_tlast,
      .slice_tvalid,
      .slice_tready('1)
  );

  assign ready = card.datapath.ready;
  assign tai_ns = card.datapath.tai_ns;
  assign visit_ns = card.datapath.visit_horizon;
  assign looked_up_packet = card.datapath.looked_up && card.datapath.looked_up_kind == WORD_PACKET;
  assign stash_level = card.datapath.measure.stash_level;
  assign deletions = card.datapath.measure.deletions;
  assign contexts_in_use = card.datapath.contexts_in_use;
  assign dropped = card.datapath.dropped;
  assign no_room = card.datapath.no_room_count;

endmodule

`default_nettype wire
