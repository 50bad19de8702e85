// One step of the walk through extension headers: if the next header is one, it is passed over.
// (RFC 8200 4, RFC 4302; in IPv4 as well.) Each names the header behind it.
//
// Throughput   One frame per clock.
// Latency      ExtensionLatency clocks for everything, with or without a header.
// Backpressure None.

`default_nettype none

module weir_parser_extension
  import weir_pkg::*;
  import weir_parser_pkg::*;
  import weir_records_pkg::*;
#(
    // Words of the window.
    parameter int Words  = IpWords,
    // The packet quoted by an ICMP error: authentication and mobility headers end the walk, and of
    // fragments any first piece will do.
    parameter bit Quoted = 1'b0
) (
    input var logic clk,

    input var logic [Words-1:0][31:0] s_window,
    input var walk_t s_walk,
    // Protocol number of the header at s_place, a number of words from the start of the window.
    input var logic [7:0] s_next,
    input var logic [ParserPointerWidth-1:0] s_place,

    output var walk_t m_walk,
    output var logic [7:0] m_next,
    output var logic [ParserPointerWidth-1:0] m_place
);

  // 1: the header's first word.
  // verilator lint_off UNUSEDSIGNAL
  logic [31:0] word_1;
  // verilator lint_on UNUSEDSIGNAL
  walk_t walk_1;
  logic [7:0] next_1;
  logic [ParserPointerWidth-1:0] place_1;
  logic extension_1, fragment_1, authentication_1;

  // Any place can be asked for; what is beyond the window is not looked at.
  wire [2**ParserPointerWidth-1:0][31:0] window = (32 * 2 ** ParserPointerWidth)'(s_window);

  always_ff @(posedge clk) begin
    word_1 <= window[s_place];
    walk_1 <= s_walk;
    next_1 <= s_next;
    place_1 <= s_place;
    extension_1 <= is_extension(s_next, Quoted);
    fragment_1 <= s_next == ProtocolFragment;
    authentication_1 <= s_next == ProtocolAuthentication;
  end

  // 2: its length in words.
  logic [9:0] length_2;
  logic [7:0] following_2;
  walk_t walk_2;
  logic [7:0] next_2;
  logic [ParserPointerWidth-1:0] place_2;
  logic extension_2, piece_2;

  wire [12:0] offset = word_1[15:3];
  wire more = word_1[0];

  always_ff @(posedge clk) begin
    if (fragment_1) length_2 <= 10'd2;
    else if (authentication_1) length_2 <= 10'(word_1[23:16]) + 10'd2;
    else length_2 <= {1'b0, word_1[23:16], 1'b0} + 10'd2;
    following_2 <= word_1[31:24];
    walk_2 <= walk_1;
    next_2 <= next_1;
    place_2 <= place_1;
    extension_2 <= extension_1;
    // RFC 6946: an atomic fragment is a whole packet.
    piece_2 <= fragment_1 && (offset != '0 || (more && !Quoted));
  end

  // 3: behind it.
  wire [11:0] bytes = {length_2, 2'b0};

  walk_t walk;
  always_comb begin
    walk = walk_2;
    walk.left = walk_2.left - 16'(bytes);
    walk.have = 12'(walk_2.have) < bytes ? '0 : walk_2.have - bytes[8:0];
    walk = stop_if(walk, walk_2.left < 16'd8, UNTRACKED_MALFORMED);
    walk = stop_if(walk, walk_2.have < 9'd8, beyond(walk_2.deep));
    walk = stop_if(walk, piece_2, UNTRACKED_FRAGMENT);
    walk = stop_if(walk, walk_2.left < 16'(bytes), UNTRACKED_MALFORMED);
  end

  always_ff @(posedge clk) begin
    m_walk  <= extension_2 ? walk : walk_2;
    m_next  <= extension_2 ? following_2 : next_2;
    m_place <= extension_2 ? place_2 + ParserPointerWidth'(length_2) : place_2;
  end

endmodule

`default_nettype wire
