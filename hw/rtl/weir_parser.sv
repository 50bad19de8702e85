// Frames of one port to metadata words: what host/engine/src/parse.rs does with Profile::Nic
// (docs/src/flow-engine.md section 7), field by field.
//
// Promise      One word for each frame, in order, whatever its bytes are.
// Throughput   One beat per clock, also if each is a frame of its own.
// Latency      ParserLatency (weir_parser_pkg) clocks from a frame's last beat, always.
// Backpressure None in either direction: no ready. A beat must be taken in every clock, and
//              weir_meta_fifo counts what cannot go on.
// Structure    The first HeaderBytes are collected in a window. The walk through the headers moves a
//              word number, not the window, but for two places: behind tags and labels, and behind
//              IP with its extension headers.
// Hazards      s_tkeep must be all ones but for the last beat, and ones followed by zeros there.

`default_nettype none

module weir_parser
  import weir_pkg::*;
  import weir_parser_pkg::*;
  import weir_records_pkg::*;
#(
    // Number of the port in its words.
    parameter int Port = 0
) (
    input var logic clk,
    input var logic rst,

    input var logic [511:0] s_tdata,
    input var logic [63:0] s_tkeep,
    input var logic s_tvalid,
    input var logic s_tlast,
    // Looked at with the first beat.
    input var frame_user_t s_tuser,

    output var meta_t m_meta,
    output var logic  m_valid
);

  if (Port < 0 || Port > 15) begin : gen_check_port
    $error("Port must be 0 .. 15");
  end

  // Link layer.
  logic link_valid, link_labels;
  ip_window_t link_window;
  walk_t link_walk;
  link_t link;

  weir_parser_link u_link (
      .clk,
      .rst,
      .s_tdata,
      .s_tkeep,
      .s_tvalid,
      .s_tlast,
      .s_tuser,
      .m_valid (link_valid),
      .m_window(link_window),
      .m_walk  (link_walk),
      .m_labels(link_labels),
      .m_link  (link)
  );

  // IP, then its extension headers.
  localparam int Steps = MaxExtensionHeaders;

  ip_window_t window[Steps+1];
  walk_t walk[Steps+1];
  logic [7:0] next[Steps+1];
  logic [ParserPointerWidth-1:0] place[Steps+1];
  ip_t ip;

  weir_parser_ip u_ip (
      .clk,
      .s_window(link_window),
      .s_walk(link_walk),
      .s_labels(link_labels),
      .m_walk(walk[0]),
      .m_next(next[0]),
      .m_place(place[0]),
      .m_ip(ip)
  );
  weir_delay #(
      .Width ($bits(ip_window_t)),
      .Clocks(IpLatency)
  ) u_window (
      .clk,
      .s_data(link_window),
      .m_data(window[0])
  );

  for (genvar i = 0; i < Steps; i++) begin : gen_extension
    weir_parser_extension u_extension (
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
        .Width ($bits(ip_window_t)),
        .Clocks(ExtensionLatency)
    ) u_window (
        .clk,
        .s_data(window[i]),
        .m_data(window[i+1])
    );
  end

  // The transport header to the start of the window.
  transport_window_t transport_window;
  weir_word_shift #(
      .Width(32),
      .ElementsIn(IpWords),
      .ElementsOut(TransportWords),
      .AmountWidth(ParserPointerWidth)
  ) u_shift (
      .clk,
      .s_data  (window[Steps]),
      .s_amount(place[Steps]),
      .m_data  (transport_window)
  );

  walk_t walk_a, walk_b;
  logic [7:0] next_a, next_b;
  // Bytes of TCP options that are there, and all that are seen but the first 20.
  logic [5:0] options_b;
  logic [8:0] seen_a;

  always_ff @(posedge clk) begin
    walk_a <= stop_if(walk[Steps], is_extension(next[Steps], 1'b0), UNTRACKED_DEPTH);
    next_a <= next[Steps];
    seen_a <= walk[Steps].have < 9'd20 ? '0 : walk[Steps].have - 9'd20;
    walk_b <= walk_a;
    next_b <= next_a;
    options_b <= seen_a < 9'(OptionBytes) ? seen_a[5:0] : 6'(OptionBytes);
  end

  // Transport header, options and the packet quoted by an ICMP error side by side.
  walk_t transport_walk;
  transport_t transport;
  weir_parser_transport u_transport (
      .clk,
      .s_words(transport_window[3:0]),
      .s_walk(walk_b),
      .s_next(next_b),
      .m_walk(transport_walk),
      .m_transport(transport)
  );

  logic [OptionBytes-1:0][7:0] option_bytes;
  logic [5:0] options_length;
  wire [3:0] header_words = transport_window[3][31:28];
  wire [5:0] stated = {header_words - 4'd5, 2'b0};

  always_ff @(posedge clk) begin
    for (int i = 0; i < OptionBytes; i++) option_bytes[i] <= transport_window[5+i/4][8*(3-i%4)+:8];
    options_length <= stated < options_b ? stated : options_b;
  end

  options_t options;
  weir_tcp_options u_options (
      .clk,
      .s_bytes  (option_bytes),
      .s_length (options_length),
      .m_options(options)
  );

  quoted_t quoted_w;
  weir_parser_quoted u_quoted (
      .clk,
      .s_window(transport_window),
      .s_walk  (walk_b),
      .s_next  (next_b),
      .m_quoted(quoted_w)
  );

  // They meet. Of the walk, only why it stopped matters here.
  // verilator lint_off UNUSEDSIGNAL
  walk_t walk_w;
  // verilator lint_on UNUSEDSIGNAL
  transport_t transport_w;
  ip_t ip_w;
  link_t link_w;
  logic valid_w;
  weir_delay #(
      .Width ($bits(walk_t) + $bits(transport_t)),
      .Clocks(QuotedLatency - 2)
  ) u_transport_delay (
      .clk,
      .s_data({transport_walk, transport}),
      .m_data({walk_w, transport_w})
  );
  weir_delay #(
      .Width ($bits(ip_t)),
      .Clocks(Steps * ExtensionLatency + 2 + QuotedLatency)
  ) u_ip_delay (
      .clk,
      .s_data(ip),
      .m_data(ip_w)
  );
  weir_delay #(
      .Width ($bits(link_t)),
      .Clocks(IpLatency + Steps * ExtensionLatency + 2 + QuotedLatency)
  ) u_link_delay (
      .clk,
      .s_data(link),
      .m_data(link_w)
  );

  // x: ends of the flow.
  meta_t meta_x;
  end_t source_x, destination_x;
  logic valid_x;

  wire  is_error = transport_w.icmp_error && quoted_w.found;

  always_ff @(posedge clk) begin
    meta_x <= '0;
    meta_x.timestamp <= link_w.timestamp;
    meta_x.port <= 4'(Port);
    meta_x.wire_length <= link_w.wire_length;
    meta_x.cut <= link_w.cut;
    meta_x.source_mac <= link_w.source_mac;
    meta_x.destination_mac <= link_w.destination_mac;
    meta_x.key.vlans <= link_w.vlans;
    meta_x.ip_id <= ip_w.id;
    meta_x.ttl <= ip_w.ttl;
    meta_x.tos <= ip_w.tos;
    meta_x.key.protocol <= transport_w.protocol;
    meta_x.payload <= 20'(transport_w.payload);
    meta_x.seq <= transport_w.seq;
    meta_x.ack <= transport_w.ack;
    meta_x.flags <= transport_w.flags;
    meta_x.window <= transport_w.window;
    meta_x.options.scale <= 8'd255;
    source_x <= {ip_w.source, transport_w.source_port};
    destination_x <= {ip_w.destination, transport_w.destination_port};
    if (walk_w.stopped) begin
      meta_x.class_ <= CLASS_UNTRACKED;
      meta_x.reason <= 4'(walk_w.reason);
    end else if (transport_w.tcp) begin
      meta_x.class_ <= CLASS_TCP;
      meta_x.options <= options;
      meta_x.options.incomplete <= options.incomplete || transport_w.options_cut;
    end else if (is_error) begin
      meta_x.class_ <= CLASS_ICMP_ERROR;
      meta_x.key.protocol <= quoted_w.protocol;
      meta_x.payload <= 20'(transport_w.kind_code);
      meta_x.seq <= quoted_w.seq;
      source_x <= quoted_w.source;
      destination_x <= quoted_w.destination;
    end else begin
      meta_x.class_ <= CLASS_OTHER;
    end
    valid_x <= valid_w;
    if (rst) valid_x <= 1'b0;
  end

  // y: which of them is the low one: parts of 24 bits.
  localparam int Parts = $bits(end_t) / 24;

  meta_t meta_y;
  end_t source_y, destination_y;
  logic valid_y;
  logic [Parts-1:0] above_y, below_y;

  always_ff @(posedge clk) begin
    meta_y <= meta_x;
    source_y <= source_x;
    destination_y <= destination_x;
    for (int i = 0; i < Parts; i++) begin
      above_y[i] <= source_x[24*i+:24] > destination_x[24*i+:24];
      below_y[i] <= source_x[24*i+:24] < destination_x[24*i+:24];
    end
    valid_y <= valid_x;
    if (rst) valid_y <= 1'b0;
  end

  // z: the word. As numbers, the highest part that differs decides.
  wire from_low = above_y <= below_y;
  logic [63:0] number;

  always_ff @(posedge clk) begin
    m_meta <= meta_y;
    m_meta.from_low <= from_low;
    m_meta.key.low <= from_low ? source_y : destination_y;
    m_meta.key.high <= from_low ? destination_y : source_y;
    m_meta.number <= number;
    if (valid_y) number <= number + 1'b1;
    m_valid <= valid_y;
    if (rst) begin
      m_valid <= 1'b0;
      number  <= 64'd1;
    end
  end

  // The valid bit's own line has a reset.
  localparam int Line = IpLatency + Steps * ExtensionLatency + 2 + QuotedLatency;
  logic [Line-1:0] line;
  always_ff @(posedge clk) begin
    line <= {line[Line-2:0], link_valid};
    if (rst) line <= '0;
  end
  assign valid_w = line[Line-1];

`ifndef SYNTHESIS
  // One word for each frame.
  assert property (@(posedge clk) disable iff (rst) s_tvalid && s_tlast |-> ##ParserLatency m_valid);
  assert property (@(posedge clk) disable iff (rst)
      m_valid && m_meta.class_ != CLASS_UNTRACKED |-> m_meta.key.low <= m_meta.key.high);
  assert property (@(posedge clk) disable iff (rst) m_valid |-> m_meta.options.sack_count <= 3'd4);
`endif

endmodule

`default_nettype wire
