// The TCP or UDP packet that an ICMP error quotes, if enough of it is there: the IP header and 8 bytes
// (RFC 792), which hold the ports and the sequence number.
//
// Throughput   One frame per clock.
// Latency      QuotedLatency clocks.
// Backpressure None.

`default_nettype none

module weir_parser_quoted
  import weir_pkg::*;
  import weir_parser_pkg::*;
  import weir_records_pkg::*;
(
    input var logic clk,

    // From the ICMP header on.
    input var transport_window_t s_window,
    // verilator lint_off UNUSEDSIGNAL
    input var walk_t s_walk,
    // verilator lint_on UNUSEDSIGNAL
    input var logic [7:0] s_next,

    output var quoted_t m_quoted
);

  // Words of the ICMP header, before the quoted packet.
  localparam int Header = 2;

  // 1: bytes of the quoted packet that are there.
  transport_window_t window_1;
  logic is_4_1, enough_1;
  logic [8:0] rest_1;

  wire  [8:0] there = s_walk.left < 16'(s_walk.have) ? s_walk.left[8:0] : s_walk.have;

  always_ff @(posedge clk) begin
    window_1 <= s_window;
    is_4_1   <= s_next == ProtocolIcmp;
    enough_1 <= there >= 9'd8;
    rest_1   <= there - 9'd8;
  end

  // 2: the quoted IP header.
  transport_window_t window_2;
  walk_t walk_2;
  logic [7:0] next_2;
  logic [ParserPointerWidth-1:0] place_2;
  logic [127:0] source_2, destination_2;

  wire [3:0] version = window_1[Header][31:28];
  wire [3:0] words = window_1[Header][27:24];
  wire [7:0] protocol = window_1[Header+2][23:16];
  wire [12:0] offset = window_1[Header+1][12:0];
  wire good_4 = version == 4'd4 && words >= 4'd5 && offset == '0 && rest_1 >= 9'({words, 2'b0}) &&
      protocol inside {ProtocolTcp, ProtocolUdp};
  wire good_6 = version == 4'd6 && rest_1 >= 9'd40;
  wire [8:0] behind = rest_1 - (is_4_1 ? 9'({words, 2'b0}) : 9'd40);

  always_ff @(posedge clk) begin
    window_2 <= window_1;
    walk_2 <= '0;
    walk_2.stopped <= !enough_1 || !(is_4_1 ? good_4 : good_6);
    walk_2.left <= 16'(behind);
    walk_2.have <= behind;
    if (is_4_1) begin
      next_2 <= protocol;
      place_2 <= ParserPointerWidth'(Header) + ParserPointerWidth'(words);
      source_2 <= mapped(window_1[Header+3]);
      destination_2 <= mapped(window_1[Header+4]);
    end else begin
      next_2 <= window_1[Header+1][15:8];
      place_2 <= ParserPointerWidth'(Header + 10);
      source_2 <= {window_1[Header+2], window_1[Header+3], window_1[Header+4], window_1[Header+5]};
      destination_2 <= {window_1[Header+6], window_1[Header+7], window_1[Header+8], window_1[Header+9]};
    end
  end

  // Extension headers.
  localparam int Steps = MaxExtensionHeaders;

  transport_window_t window[Steps+1];
  // Where it stopped is of no account.
  // verilator lint_off UNUSEDSIGNAL
  walk_t walk[Steps+1];
  // verilator lint_on UNUSEDSIGNAL
  logic [7:0] next[Steps+1];
  logic [ParserPointerWidth-1:0] place[Steps+1];

  assign window[0] = window_2;
  assign walk[0]   = walk_2;
  assign next[0]   = next_2;
  assign place[0]  = place_2;

  for (genvar i = 0; i < Steps; i++) begin : gen_step
    weir_parser_extension #(
        .Words (TransportWords),
        .Quoted(1'b1)
    ) u_extension (
        .clk,
        .s_window(window[i]),
        .s_walk  (walk[i]),
        .s_next  (next[i]),
        .s_place (place[i]),
        .m_walk  (walk[i+1]),
        .m_next  (next[i+1]),
        .m_place (place[i+1])
    );
    weir_delay #(
        .Width ($bits(transport_window_t)),
        .Clocks(ExtensionLatency)
    ) u_window (
        .clk,
        .s_data(window[i]),
        .m_data(window[i+1])
    );
  end

  logic [127:0] source, destination;
  weir_delay #(
      .Width (256),
      .Clocks(Steps * ExtensionLatency)
  ) u_addresses (
      .clk,
      .s_data({source_2, destination_2}),
      .m_data({source, destination})
  );

  // 15: ports and sequence number.
  wire [2**ParserPointerWidth-1:0][31:0] last_window = (32 * 2 ** ParserPointerWidth)'(window[Steps]);
  wire [31:0] ports = last_window[place[Steps]];
  wire [31:0] seq = last_window[place[Steps]+1'b1];

  always_ff @(posedge clk) begin
    m_quoted.found <= !walk[Steps].stopped && walk[Steps].have >= 9'd8 && next[Steps] inside {ProtocolTcp, ProtocolUdp};
    m_quoted.protocol <= next[Steps];
    m_quoted.source <= {source, ports[31:16]};
    m_quoted.destination <= {destination, ports[15:0]};
    m_quoted.seq <= next[Steps] == ProtocolTcp ? seq : '0;
  end

endmodule

`default_nettype wire
