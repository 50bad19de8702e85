// One wire port of the card: crossings to and from its MAC, the MAC's link, and what the board's registers tell of it.
//
// Promise      Those of weir_mac_rx and weir_mac_tx. The MAC receives from reset on, tells its peer of a remote fault until
//              it is aligned to what it receives, and only then sends frames (the sequence of PG203).
// Clocks       mac_clk drives both directions of the MAC.

`default_nettype none

module weir_mac_port
  import weir_board_pkg::*;
#(
    parameter int TxHold = 112
) (
    input var logic clk,
    input var logic rst,

    // Card.
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
    output var logic tx_tready,
    output var port_state_t state,

    // MAC.
    input var logic mac_clk,
    input var logic mac_rst,
    input var logic [511:0] mac_rx_tdata,
    input var logic [63:0] mac_rx_tkeep,
    input var logic mac_rx_tlast,
    input var logic mac_rx_terror,
    input var logic mac_rx_tvalid,
    output var logic [511:0] mac_tx_tdata,
    output var logic [63:0] mac_tx_tkeep,
    output var logic mac_tx_tlast,
    output var logic mac_tx_terror,
    output var logic mac_tx_tvalid,
    input var logic mac_tx_tready,
    input var logic mac_tx_underflow,
    input var logic mac_rx_aligned,
    input var logic mac_rx_remote_fault,
    output var logic mac_rx_enable,
    output var logic mac_tx_enable,
    output var logic mac_tx_send_rfi
);

  logic dropped, cut, rx_hold, link_down, aligned_before;

  // A link that is lost ends what was coming.
  always_ff @(posedge mac_clk) link_down <= mac_rst || !mac_rx_aligned;

  weir_reset rx_reset (
      .clk  (mac_clk),
      .clear(link_down),
      .rst  (rx_hold)
  );

  weir_mac_rx receive (
      .s_clk(mac_clk),
      .s_rst(mac_rst || !mac_rx_aligned),
      .s_hold(rx_hold),
      .s_tdata(mac_rx_tdata),
      .s_tkeep(mac_rx_tkeep),
      .s_tlast(mac_rx_tlast),
      .s_terror(mac_rx_terror),
      .s_tvalid(mac_rx_tvalid),
      .dropped,
      .cut,
      .m_clk(clk),
      .m_rst(rst),
      .m_tdata(rx_tdata),
      .m_tkeep(rx_tkeep),
      .m_tlast(rx_tlast),
      .m_terror(rx_terror),
      .m_tvalid(rx_tvalid)
  );

  weir_mac_tx #(
      .Hold(TxHold)
  ) transmit (
      .s_clk(clk),
      .s_rst(rst),
      .s_tdata(tx_tdata),
      .s_tkeep(tx_tkeep),
      .s_tlast(tx_tlast),
      .s_terror(tx_terror),
      .s_tvalid(tx_tvalid),
      .s_tready(tx_tready),
      .m_clk(mac_clk),
      .m_rst(mac_rst),
      .m_tdata(mac_tx_tdata),
      .m_tkeep(mac_tx_tkeep),
      .m_tlast(mac_tx_tlast),
      .m_terror(mac_tx_terror),
      .m_tvalid(mac_tx_tvalid),
      .m_tready(mac_tx_tready)
  );

  always_ff @(posedge mac_clk) begin
    mac_rx_enable   <= 1'b1;
    mac_tx_enable   <= mac_rx_aligned;
    mac_tx_send_rfi <= !mac_rx_aligned;
    if (mac_rst) begin
      mac_rx_enable   <= 1'b0;
      mac_tx_enable   <= 1'b0;
      mac_tx_send_rfi <= 1'b1;
    end
  end

  // --- What the registers tell -----------------------------------------------------------------------

  logic [PortCounters-1:0] events;
  logic remote_fault;

  always_ff @(posedge mac_clk) begin
    aligned_before <= mac_rx_aligned;
    remote_fault <= mac_rx_remote_fault;
    events <= '0;
    events[RX_FRAMES] <= mac_rx_tvalid && mac_rx_tlast;
    events[RX_ERRORS] <= mac_rx_tvalid && mac_rx_tlast && mac_rx_terror;
    events[RX_DROPPED] <= dropped;
    events[RX_CUT] <= cut;
    events[RX_ALIGNMENTS] <= mac_rx_aligned && !aligned_before;
    events[TX_FRAMES] <= mac_tx_tvalid && mac_tx_tready && mac_tx_tlast;
    events[TX_UNDERFLOWS] <= mac_tx_underflow;
    if (mac_rst) begin
      aligned_before <= 1'b0;
      events <= '0;
    end
  end

  // Counted from the card's reset on: a MAC that is reset goes on counting.
  logic count_rst;

  weir_reset count_reset (
      .clk  (mac_clk),
      .clear(rst),
      .rst  (count_rst)
  );

  for (genvar c = 0; c < PortCounters; c++) begin : gen_counter
    weir_count counter (
        .clk(mac_clk),
        .rst(count_rst),
        .event_valid(events[c]),
        .m_clk(clk),
        .m_count(state.counters[c])
    );
  end

  weir_sync #(
      .Width(3)
  ) status (
      .clk,
      .s_data({mac_rst, remote_fault, aligned_before}),
      .m_data({state.in_reset, state.remote_fault, state.aligned})
  );

endmodule

`default_nettype wire
