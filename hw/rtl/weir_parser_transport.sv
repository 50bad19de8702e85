// The header behind IP and its extension headers: TCP (RFC 9293 3.1) but for its options, UDP, SCTP,
// ICMP; any other protocol has only a payload.
//
// Throughput   One frame per clock.
// Latency      2 clocks.
// Backpressure None.

`default_nettype none

module weir_parser_transport
  import weir_pkg::*;
  import weir_parser_pkg::*;
  import weir_records_pkg::*;
(
    input var logic clk,

    // The header's first words.
    // verilator lint_off UNUSEDSIGNAL
    input var logic [3:0][31:0] s_words,
    // verilator lint_on UNUSEDSIGNAL
    input var walk_t s_walk,
    input var logic [7:0] s_next,

    output var walk_t m_walk,
    output var transport_t m_transport
);

  // 1: everything that can be compared at once.
  walk_t walk_1;
  logic [3:0][31:0] words_1;
  logic [7:0] next_1;
  logic tcp_1, udp_1, sctp_1, icmp_1, other_1;
  logic echo_1, error_1;
  logic [5:0] header_1;
  logic short_2_1, short_4_1, short_8_1, short_12_1, short_20_1;
  logic unseen_2_1, unseen_4_1, unseen_6_1, unseen_16_1;

  wire [7:0] kind = s_words[0][31:24];
  wire version_4 = s_next == ProtocolIcmp;
  wire version_6 = s_next == ProtocolIcmpV6;

  always_ff @(posedge clk) begin
    walk_1 <= s_walk;
    words_1 <= s_words;
    next_1 <= s_next;
    tcp_1 <= s_next == ProtocolTcp;
    udp_1 <= s_next == ProtocolUdp;
    sctp_1 <= s_next == ProtocolSctp;
    icmp_1 <= version_4 || version_6;
    other_1 <= !(s_next inside {ProtocolTcp, ProtocolUdp, ProtocolSctp, ProtocolIcmp, ProtocolIcmpV6});
    echo_1 <= (version_4 && kind inside {8'd0, 8'd8}) || (version_6 && kind inside {8'd128, 8'd129});
    error_1 <= (version_4 && kind inside {8'd3, 8'd4, 8'd5, 8'd11, 8'd12}) ||
        (version_6 && kind inside {[8'd1 : 8'd4]});
    header_1 <= {s_words[3][31:28], 2'b0};
    short_2_1 <= s_walk.left < 16'd2;
    short_4_1 <= s_walk.left < 16'd4;
    short_8_1 <= s_walk.left < 16'd8;
    short_12_1 <= s_walk.left < 16'd12;
    short_20_1 <= s_walk.left < 16'd20;
    unseen_2_1 <= s_walk.have < 9'd2;
    unseen_4_1 <= s_walk.have < 9'd4;
    unseen_6_1 <= s_walk.have < 9'd6;
    unseen_16_1 <= s_walk.have < 9'd16;
  end

  // 2
  walk_t walk;
  always_comb begin
    walk = walk_1;
    walk = stop_if(walk, tcp_1 && short_20_1, UNTRACKED_MALFORMED);
    walk = stop_if(walk, tcp_1 && unseen_16_1, beyond(walk_1.deep));
    walk = stop_if(walk, tcp_1 && (header_1 < 6'd20 || 16'(header_1) > walk_1.left), UNTRACKED_MALFORMED);
    walk = stop_if(walk, (udp_1 || sctp_1) && short_4_1, UNTRACKED_MALFORMED);
    walk = stop_if(walk, (udp_1 || sctp_1) && unseen_4_1, beyond(walk_1.deep));
    walk = stop_if(walk, icmp_1 && short_2_1, UNTRACKED_MALFORMED);
    walk = stop_if(walk, icmp_1 && unseen_2_1, beyond(walk_1.deep));
    walk = stop_if(walk, ((udp_1 || icmp_1) && short_8_1) || (sctp_1 && short_12_1), UNTRACKED_MALFORMED);
    walk = stop_if(walk, echo_1 && unseen_6_1, beyond(walk_1.deep));
  end

  logic [5:0] header;
  always_comb begin
    header = '0;
    if (tcp_1) header = header_1;
    if (udp_1 || icmp_1) header = 6'd8;
    if (sctp_1) header = 6'd12;
  end

  always_ff @(posedge clk) begin
    m_walk <= walk;
    m_transport <= '0;
    m_transport.tcp <= tcp_1;
    m_transport.icmp_error <= error_1;
    m_transport.protocol <= next_1;
    m_transport.kind_code <= words_1[0][31:16];
    m_transport.payload <= other_1 && next_1 == ProtocolNoNext ? '0 : walk_1.left - 16'(header);
    m_transport.options_cut <= tcp_1 && 9'(header_1) > walk_1.have && header_1 > 6'd20;
    if (tcp_1 || udp_1 || sctp_1) begin
      m_transport.source_port <= words_1[0][31:16];
      m_transport.destination_port <= words_1[0][15:0];
    end
    if (echo_1) begin
      m_transport.source_port <= words_1[1][31:16];
      m_transport.destination_port <= words_1[1][31:16];
    end
    if (tcp_1) begin
      m_transport.seq <= words_1[1];
      m_transport.ack <= words_1[3][16+TcpFlagAckBit] ? words_1[2] : '0;
      m_transport.flags <= words_1[3][23:16];
      m_transport.window <= words_1[3][15:0];
    end
  end

endmodule

`default_nettype wire
