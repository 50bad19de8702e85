// The IP header: IPv4 (RFC 791 3.1) or IPv6 (RFC 8200 3), by its version.
//
// Throughput   One frame per clock.
// Latency      2 clocks.
// Backpressure None.

`default_nettype none

module weir_parser_ip
  import weir_pkg::*;
  import weir_parser_pkg::*;
  import weir_records_pkg::*;
(
    input var logic clk,

    // verilator lint_off UNUSEDSIGNAL
    input var ip_window_t s_window,
    // verilator lint_on UNUSEDSIGNAL
    input var walk_t s_walk,
    input var logic s_labels,

    output var walk_t m_walk,
    // Protocol number of the next header and the word at which it begins.
    output var logic [7:0] m_next,
    output var logic [ParserPointerWidth-1:0] m_place,
    output var ip_t m_ip
);

  // 1: as long as its header says. A length of 0 is that of a segment larger than the field, cut
  // into frames only behind this point: what is on the wire counts.
  walk_t walk_1;
  logic is_4_1, is_6_1, labels_1;
  logic [3:0] words_1;
  logic short_4_1, short_6_1, unseen_4_1, unseen_6_1, empty_1, unseen_1;
  logic [15:0] left_4_1, left_6_1;
  logic piece_1;
  logic [7:0] next_1;
  ip_t ip_1;

  wire [3:0] version = s_window[0][31:28];
  wire [15:0] total = s_window[0][15:0];
  wire [15:0] payload = s_window[1][31:16];

  always_ff @(posedge clk) begin
    walk_1 <= s_walk;
    labels_1 <= s_labels;
    is_4_1 <= version == 4'd4;
    is_6_1 <= version == 4'd6;
    words_1 <= s_window[0][27:24];
    empty_1 <= s_walk.left == '0;
    unseen_1 <= s_walk.have == '0;
    short_4_1 <= s_walk.left < 16'd20;
    short_6_1 <= s_walk.left < 16'd40;
    unseen_4_1 <= s_walk.have < 9'd20;
    unseen_6_1 <= s_walk.have < 9'd40;
    left_4_1 <= total == '0 ? s_walk.left : total;
    left_6_1 <= payload == '0 ? s_walk.left - 16'd40 : payload;
    // More fragments, or an offset.
    piece_1 <= s_window[1][13:0] != '0;
    if (version == 4'd4) begin
      next_1 <= s_window[2][23:16];
      ip_1.source <= mapped(s_window[3]);
      ip_1.destination <= mapped(s_window[4]);
      ip_1.id <= s_window[1][31:16];
      ip_1.ttl <= s_window[2][31:24];
      ip_1.tos <= s_window[0][23:16];
    end else begin
      next_1 <= s_window[1][15:8];
      ip_1.source <= {s_window[2], s_window[3], s_window[4], s_window[5]};
      ip_1.destination <= {s_window[6], s_window[7], s_window[8], s_window[9]};
      ip_1.id <= '0;
      ip_1.ttl <= s_window[1][7:0];
      ip_1.tos <= s_window[0][27:20];
    end
  end

  // 2: behind it.
  wire [5:0] header_4 = {words_1, 2'b0};

  walk_t walk;
  always_comb begin
    walk = stop_if(walk_1, empty_1, UNTRACKED_MALFORMED);
    walk = stop_if(walk, unseen_1, beyond(walk_1.deep));
    if (is_4_1) begin
      walk.left = left_4_1 - 16'(header_4);
      walk.have = walk_1.have < 9'(header_4) ? '0 : walk_1.have - 9'(header_4);
      walk = stop_if(walk, short_4_1, UNTRACKED_MALFORMED);
      walk = stop_if(walk, unseen_4_1, beyond(walk_1.deep));
      walk = stop_if(walk, words_1 < 4'd5 || left_4_1 < 16'(header_4), UNTRACKED_MALFORMED);
      walk = stop_if(walk, piece_1, UNTRACKED_FRAGMENT);
    end else begin
      walk.left = left_6_1;
      walk.have = walk_1.have - 9'd40;
      walk = stop_if(walk, !is_6_1, labels_1 ? UNTRACKED_NOT_IP : UNTRACKED_MALFORMED);
      walk = stop_if(walk, short_6_1, UNTRACKED_MALFORMED);
      walk = stop_if(walk, unseen_6_1, beyond(walk_1.deep));
    end
  end

  always_ff @(posedge clk) begin
    m_walk <= walk;
    m_next <= next_1;
    m_place <= is_4_1 ? ParserPointerWidth'(words_1) : ParserPointerWidth'(10);
    m_ip <= ip_1;
  end

endmodule

`default_nettype wire
