// TCP options (RFC 9293 3.2) in any layout. One whose length cannot be (0, 1, beyond the header) ends
// the reading; one whose length is not that of its kind is passed over. Both mark the result
// incomplete. Of an option that comes twice the last counts.
//
// Throughput   One header per clock.
// Latency      TcpOptionsLatency clocks: two to look at each byte as if an option began there, ten to
//              find out where options do begin, four bytes per clock, two to fetch their values.
// Backpressure None.

`default_nettype none

module weir_tcp_options
  import weir_pkg::*;
  import weir_parser_pkg::*;
(
    input var logic clk,

    // From the first option on, in network order.
    input var logic [OptionBytes-1:0][7:0] s_bytes,
    // Bytes of options that are there.
    input var logic [5:0] s_length,

    output var options_t m_options
);

  localparam int OffsetsPerStep = 4;
  localparam int Steps = OptionBytes / OffsetsPerStep;
  // No option begins here: the reading has ended.
  localparam logic [5:0] Ended = '1;

  if (TcpOptionsLatency != Steps + 4) begin : gen_check_latency
    $error("TcpOptionsLatency is wrong");
  end

  typedef logic [OptionBytes-1:0][7:0] bytes_t;

  // An option that would begin at an offset.
  typedef struct packed {
    logic mss;
    logic scale;
    logic sack_permitted;
    logic timestamps;
    logic sack;
    logic [2:0] sack_count;
    // Its length is not that of its kind.
    logic wrong;
    // Its length cannot be.
    logic bad;
    // Where the next begins, or Ended.
    logic [5:0] next;
  } option_t;

  typedef struct packed {
    // Where the next option begins.
    logic [5:0] next;
    // Where the value of the last option of a kind begins; 0 if there was none.
    logic [5:0] mss;
    logic [5:0] scale;
    logic [5:0] timestamps;
    logic [5:0] sack;
    logic [2:0] sack_count;
    logic sack_permitted;
    logic incomplete;
  } found_t;

  // 1
  bytes_t bytes_1;
  logic [5:0] length_1;
  option_t [OptionBytes-1:0] option_1;
  logic [OptionBytes-1:0][8:0] end_1;
  logic [OptionBytes-1:0] nop_1, last_1, short_1;

  always_ff @(posedge clk) begin
    bytes_1  <= s_bytes;
    length_1 <= s_length;
    for (int i = 0; i < OptionBytes; i++) begin
      automatic logic [7:0] kind = s_bytes[i];
      automatic logic [7:0] length = i + 1 < OptionBytes ? s_bytes[(i+1)%OptionBytes] : '0;
      automatic logic sack = kind == 8'd5 && length inside {8'd10, 8'd18, 8'd26, 8'd34};
      option_1[i] <= '0;
      option_1[i].mss <= kind == 8'd2 && length == 8'd4;
      option_1[i].scale <= kind == 8'd3 && length == 8'd3;
      option_1[i].sack_permitted <= kind == 8'd4 && length == 8'd2;
      option_1[i].timestamps <= kind == 8'd8 && length == 8'd10;
      option_1[i].sack <= sack;
      option_1[i].sack_count <= length[5:3];
      option_1[i].wrong <= (kind == 8'd2 && length != 8'd4) || (kind == 8'd3 && length != 8'd3) ||
          (kind == 8'd4 && length != 8'd2) || (kind == 8'd8 && length != 8'd10) || (kind == 8'd5 && !sack);
      end_1[i] <= 9'(i) + 9'(length);
      nop_1[i] <= kind == 8'd1;
      last_1[i] <= kind == 8'd0 || s_length <= 6'(i);
      short_1[i] <= length < 8'd2;
    end
  end

  // 2
  bytes_t bytes_2;
  option_t [OptionBytes-1:0] option_2;

  always_ff @(posedge clk) begin
    bytes_2 <= bytes_1;
    for (int i = 0; i < OptionBytes; i++) begin
      automatic logic bad = short_1[i] || end_1[i] > 9'(length_1);
      option_2[i] <= '0;
      option_2[i].next <= Ended;
      if (!last_1[i]) begin
        if (nop_1[i]) begin
          option_2[i].next <= 6'(i + 1);
        end else if (bad) begin
          option_2[i].bad <= 1'b1;
        end else begin
          option_2[i] <= option_1[i];
          option_2[i].next <= end_1[i][5:0];
        end
      end
    end
  end

  // 3 .. 12
  found_t found[Steps+1];
  assign found[0] = '0;

  for (genvar step = 0; step < Steps; step++) begin : gen_step
    localparam int Base = step * OffsetsPerStep;

    option_t [OffsetsPerStep-1:0] option;
    weir_delay #(
        .Width (OffsetsPerStep * $bits(option_t)),
        .Clocks(step)
    ) u_options (
        .clk,
        .s_data(option_2[Base+:OffsetsPerStep]),
        .m_data(option)
    );

    // An option begins where the walk stands, or where one before it in these four ends.
    logic [OffsetsPerStep-1:0] begins;
    found_t next;
    always_comb begin
      next = found[step];
      for (int i = 0; i < OffsetsPerStep; i++) begin
        begins[i] = found[step].next == 6'(Base + i);
        for (int j = 0; j < i; j++) begin
          if (begins[j] && option[j].next == 6'(Base + i)) begins[i] = 1'b1;
        end
        if (begins[i]) begin
          next.next = option[i].next;
          if (option[i].mss) next.mss = 6'(Base + i + 2);
          if (option[i].scale) next.scale = 6'(Base + i + 2);
          if (option[i].timestamps) next.timestamps = 6'(Base + i + 2);
          if (option[i].sack) begin
            next.sack = 6'(Base + i + 2);
            next.sack_count = option[i].sack_count;
          end
          if (option[i].sack_permitted) next.sack_permitted = 1'b1;
          if (option[i].wrong || option[i].bad) next.incomplete = 1'b1;
        end
      end
    end

    always_ff @(posedge clk) found[step+1] <= next;
  end

  // 13, 14
  bytes_t bytes;
  weir_delay #(
      .Width ($bits(bytes_t)),
      .Clocks(Steps)
  ) u_bytes (
      .clk,
      .s_data(bytes_2),
      .m_data(bytes)
  );

  // verilator lint_off UNUSEDSIGNAL
  found_t last;
  // verilator lint_on UNUSEDSIGNAL
  weir_delay #(
      .Width ($bits(found_t)),
      .Clocks(2)
  ) u_found (
      .clk,
      .s_data(found[Steps]),
      .m_data(last)
  );

  logic [ 1:0][7:0] mss;
  logic [ 0:0][7:0] scale;
  logic [ 7:0][7:0] timestamps;
  logic [31:0][7:0] sack;

  weir_word_shift #(
      .Width(8),
      .ElementsIn(OptionBytes),
      .ElementsOut(2),
      .AmountWidth(6)
  ) u_mss (
      .clk,
      .s_data  (bytes),
      .s_amount(found[Steps].mss),
      .m_data  (mss)
  );
  weir_word_shift #(
      .Width(8),
      .ElementsIn(OptionBytes),
      .ElementsOut(1),
      .AmountWidth(6)
  ) u_scale (
      .clk,
      .s_data  (bytes),
      .s_amount(found[Steps].scale),
      .m_data  (scale)
  );
  weir_word_shift #(
      .Width(8),
      .ElementsIn(OptionBytes),
      .ElementsOut(8),
      .AmountWidth(6)
  ) u_timestamps (
      .clk,
      .s_data  (bytes),
      .s_amount(found[Steps].timestamps),
      .m_data  (timestamps)
  );
  weir_word_shift #(
      .Width(8),
      .ElementsIn(OptionBytes),
      .ElementsOut(32),
      .AmountWidth(6)
  ) u_sack (
      .clk,
      .s_data  (bytes),
      .s_amount(found[Steps].sack),
      .m_data  (sack)
  );

  always_comb begin
    m_options = '0;
    m_options.scale = 8'd255;
    if (last.mss != '0) m_options.mss = {mss[0], mss[1]};
    if (last.scale != '0) m_options.scale = scale[0];
    m_options.sack_permitted = last.sack_permitted;
    if (last.timestamps != '0) begin
      m_options.has_timestamps = 1'b1;
      m_options.tsval = {timestamps[0], timestamps[1], timestamps[2], timestamps[3]};
      m_options.tsecr = {timestamps[4], timestamps[5], timestamps[6], timestamps[7]};
    end
    m_options.sack_count = last.sack_count;
    for (int i = 0; i < 4; i++) begin
      if (last.sack_count > 3'(i)) begin
        m_options.sack[i].left  = {sack[8*i], sack[8*i+1], sack[8*i+2], sack[8*i+3]};
        m_options.sack[i].right = {sack[8*i+4], sack[8*i+5], sack[8*i+6], sack[8*i+7]};
      end
    end
    m_options.incomplete = last.incomplete;
  end

endmodule

`default_nettype wire
