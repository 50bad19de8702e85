// Beats to frames, Ethernet, VLAN tags, MPLS labels: the parser up to the IP header.
//
// Promise      One result for each frame, in order: how far the walk came, and the rest of the first
//              HeaderBytes from the IP header on.
// Throughput   One beat per clock; a frame may be one beat.
// Latency      LinkLatency clocks from the frame's last beat.
// Backpressure None in either direction.
// Hazards      s_tkeep must be all ones but for the last beat, and ones followed by zeros there.

`default_nettype none

module weir_parser_link
  import weir_pkg::*;
  import weir_parser_pkg::*;
  import weir_records_pkg::*;
(
    input var logic clk,
    input var logic rst,

    input var logic [511:0] s_tdata,
    input var logic [63:0] s_tkeep,
    input var logic s_tvalid,
    input var logic s_tlast,
    // Looked at with the first beat.
    input var frame_user_t s_tuser,

    output var logic m_valid,
    output var ip_window_t m_window,
    output var walk_t m_walk,
    // A first nibble that is neither 4 nor 6 means that the label carries no IP.
    output var logic m_labels,
    output var link_t m_link
);

  localparam int HeaderBeats = HeaderBytes / 64;
  // Where IP may begin: behind up to MaxVlanTags + MaxMplsLabels words.
  localparam int MaxTags = MaxVlanTags + MaxMplsLabels;
  localparam int TagEnd = EthernetBytes + 4 * MaxTags;

  typedef logic [HeaderBytes-1:0][7:0] head_t;

  // 1: the beat, and its place in the frame.
  logic [511:0] data_1;
  logic [ 63:0] keep_1;
  logic valid_1, last_1, first_1;
  frame_user_t user_1;
  logic in_frame;

  always_ff @(posedge clk) begin
    data_1  <= s_tdata;
    keep_1  <= s_tkeep;
    last_1  <= s_tlast;
    first_1 <= !in_frame;
    user_1  <= s_tuser;
    valid_1 <= s_tvalid;
    if (s_tvalid) in_frame <= !s_tlast;
    if (rst) begin
      valid_1  <= 1'b0;
      in_frame <= 1'b0;
    end
  end

  // 2: the first beats side by side; a frame is there for the one clock in which valid_2 is set,
  // because the next frame may write at once. Bytes of an earlier frame behind a short one are never
  // looked at.
  logic [HeaderBeats-1:0][511:0] beats_2;
  logic [13:0] whole_2;
  logic [6:0] rest_2;
  frame_user_t user_2;
  logic valid_2;
  // Whole beats before this one.
  logic [13:0] whole_before;

  logic [6:0] kept;
  always_comb begin
    kept = '0;
    for (int i = 0; i < 64; i++) begin
      if (keep_1[i] && (i == 63 || !keep_1[(i+1)%64])) kept |= 7'(i + 1);
    end
  end

  wire [13:0] place = first_1 ? '0 : whole_before;

  always_ff @(posedge clk) begin
    for (int i = 0; i < HeaderBeats; i++) begin
      if (valid_1 && place == 14'(i)) beats_2[i] <= data_1;
    end
    if (valid_1) whole_before <= &place ? place : place + 1'b1;
    if (valid_1 && first_1) user_2 <= user_1;
    whole_2 <= place;
    rest_2  <= kept;
    valid_2 <= valid_1 && last_1;
    if (rst) valid_2 <= 1'b0;
  end

  // 3: length. 14 bits of whole beats are far beyond any frame: longer ones have the largest length.
  head_t head_3;
  logic [19:0] captured_3;
  frame_user_t user_3;
  logic valid_3;

  always_ff @(posedge clk) begin
    head_3 <= beats_2;
    captured_3 <= &whole_2 ? '1 : {whole_2, 6'b0} + 20'(rest_2);
    user_3 <= user_2;
    valid_3 <= valid_2;
    if (rst) valid_3 <= 1'b0;
  end

  // 4: the length on the wire is at least what arrived. Each place that may have a type or a label.
  function automatic logic is_vlan(logic [15:0] kind);
    return kind inside {16'h8100, 16'h88a8, 16'h9100};
  endfunction
  function automatic logic is_mpls(logic [15:0] kind);
    return kind inside {16'h8847, 16'h8848};
  endfunction
  function automatic logic is_ip(logic [15:0] kind);
    return kind inside {16'h0800, 16'h86dd};
  endfunction

  head_t head_4;
  logic [19:0] captured_4;
  link_t link_4;
  logic valid_4;
  logic [MaxVlanTags:0] vlan_4, mpls_4, ip_4, pppoe_4;
  logic [MaxTags-1:0] bottom_4;

  wire cut_3 = captured_3 < user_3.wire_length;

  always_ff @(posedge clk) begin
    head_4 <= head_3;
    captured_4 <= captured_3;
    link_4.timestamp <= user_3.timestamp;
    link_4.wire_length <= cut_3 ? user_3.wire_length : captured_3;
    link_4.cut <= cut_3;
    for (int i = 0; i < 6; i++) begin
      link_4.destination_mac[8*(5-i)+:8] <= head_3[i];
      link_4.source_mac[8*(5-i)+:8] <= head_3[6+i];
    end
    link_4.vlans <= {head_3[18][3:0], head_3[19], head_3[14][3:0], head_3[15]};
    for (int i = 0; i <= MaxVlanTags; i++) begin
      vlan_4[i] <= is_vlan({head_3[12+4*i], head_3[13+4*i]});
      mpls_4[i] <= is_mpls({head_3[12+4*i], head_3[13+4*i]});
      ip_4[i] <= is_ip({head_3[12+4*i], head_3[13+4*i]});
      pppoe_4[i] <= {head_3[12+4*i], head_3[13+4*i]} == 16'h8864;
    end
    for (int i = 0; i < MaxTags; i++) bottom_4[i] <= head_3[16+4*i][0];
    valid_4 <= valid_3;
    if (rst) valid_4 <= 1'b0;
  end

  // 5: number of tags. If the frame ends before TagEnd, end_5 is the end of the first header that
  // does not fit: whatever the counts say beyond it is of no account.
  head_t head_5;
  logic [19:0] captured_5;
  link_t link_5;
  logic valid_5;
  logic [1:0] tags_5;
  logic mpls_5, ip_5, pppoe_5;
  logic too_many_tags_5;
  logic [MaxMplsLabels-1:0] bottom_5;
  logic short_5;
  logic [5:0] end_5;

  logic [1:0] tags;
  always_comb begin
    tags = 2'd0;
    if (vlan_4[0]) tags = vlan_4[1] ? 2'd2 : 2'd1;
  end

  always_ff @(posedge clk) begin
    head_5 <= head_4;
    captured_5 <= captured_4;
    link_5 <= link_4;
    if (tags < 2'd1) link_5.vlans[11:0] <= '0;
    if (tags < 2'd2) link_5.vlans[23:12] <= '0;
    tags_5 <= tags;
    mpls_5 <= mpls_4[tags];
    ip_5 <= ip_4[tags];
    pppoe_5 <= pppoe_4[tags];
    too_many_tags_5 <= tags == 2'd2 && vlan_4[2];
    bottom_5 <= bottom_4[3'(tags)+:MaxMplsLabels];
    short_5 <= captured_4 < 20'(TagEnd);
    end_5 <= 6'(EthernetBytes);
    for (int i = 0; i < MaxTags; i++) begin
      if (captured_4[5:0] >= 6'(EthernetBytes + 4 * i)) end_5 <= 6'(EthernetBytes + 4 * (i + 1));
    end
    valid_5 <= valid_4;
    if (rst) valid_5 <= 1'b0;
  end

  // 6: number of labels.
  head_t head_6;
  logic [19:0] captured_6;
  link_t link_6;
  logic valid_6;
  logic [2:0] words_6;
  logic [5:0] next_6;
  logic labels_6, too_deep_6, pppoe_6, other_6;
  logic short_6, wire_short_6, oversize_6;

  logic [2:0] labels;
  always_comb begin
    labels = 3'd4;
    for (int i = MaxMplsLabels - 1; i >= 0; i--) begin
      if (bottom_5[i]) labels = 3'(i + 1);
    end
    if (!mpls_5) labels = '0;
  end

  wire [2:0] words = 3'(tags_5) + labels;

  always_ff @(posedge clk) begin
    head_6 <= head_5;
    captured_6 <= captured_5;
    link_6 <= link_5;
    words_6 <= words;
    next_6 <= 6'(EthernetBytes) + {1'b0, words, 2'b0};
    labels_6 <= mpls_5;
    too_deep_6 <= too_many_tags_5 || (mpls_5 && bottom_5 == '0);
    pppoe_6 <= pppoe_5;
    other_6 <= !mpls_5 && !ip_5;
    short_6 <= short_5;
    wire_short_6 <= link_5.wire_length < 20'(end_5);
    oversize_6 <= link_5.wire_length > 20'(MaxFrameBytes);
    valid_6 <= valid_5;
    if (rst) valid_6 <= 1'b0;
  end

  // 7: reason, lengths.
  walk_t walk_7;
  link_t link_7;
  logic valid_7;
  logic labels_7;
  logic [2:0] words_7;
  ip_window_t window_7;

  walk_t walk;
  always_comb begin
    walk = '0;
    walk.deep = captured_6 >= 20'(HeaderBytes);
    walk.have = (walk.deep ? 9'(HeaderBytes) : captured_6[8:0]) - 9'(next_6);
    walk.left = link_6.wire_length[15:0] - 16'(next_6);
    walk = stop_if(walk, oversize_6, UNTRACKED_OVERSIZE);
    walk = stop_if(walk, short_6 && captured_6[5:0] < next_6, wire_short_6 ? UNTRACKED_MALFORMED : UNTRACKED_TRUNCATED);
    walk = stop_if(walk, too_deep_6, UNTRACKED_DEPTH);
    walk = stop_if(walk, pppoe_6, UNTRACKED_PROFILE);
    walk = stop_if(walk, other_6, UNTRACKED_NOT_IP);
  end

  always_ff @(posedge clk) begin
    walk_7   <= walk;
    link_7   <= link_6;
    labels_7 <= labels_6;
    words_7  <= words_6;
    window_7 <= '0;
    for (int i = 0; i < HeaderBytes - EthernetBytes; i++) begin
      window_7[i/4][8*(3-i%4)+:8] <= head_6[EthernetBytes+i];
    end
    valid_7 <= valid_6;
    if (rst) valid_7 <= 1'b0;
  end

  // 8: the IP header to the start of the window.
  weir_word_shift #(
      .Width(32),
      .ElementsIn(IpWords),
      .ElementsOut(IpWords),
      .AmountWidth(3)
  ) u_shift (
      .clk,
      .s_data  (window_7),
      .s_amount(words_7),
      .m_data  (m_window)
  );

  always_ff @(posedge clk) begin
    m_walk   <= walk_7;
    m_link   <= link_7;
    m_labels <= labels_7;
    m_valid  <= valid_7;
    if (rst) m_valid <= 1'b0;
  end

`ifndef SYNTHESIS
  // Bytes have no holes.
  wire [63:0] gaps = s_tkeep & ~{s_tkeep[62:0], 1'b1};
  assert property (@(posedge clk) disable iff (rst) s_tvalid |-> gaps == '0);
  assert property (@(posedge clk) disable iff (rst) s_tvalid && !s_tlast |-> &s_tkeep);
  assert property (@(posedge clk) disable iff (rst) s_tvalid && s_tlast |-> ##LinkLatency m_valid);
`endif

endmodule

`default_nettype wire
