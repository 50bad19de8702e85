// Packets as the vendor's QDMA takes them (PG302): data with length, CRC and check bits beside it, and for each packet
// an entry for the completion ring.
//
// Promise      Packets leave in order, each with one completion that waits for it (wait_pld_pkt_id). The entry is the
//              standard one of 8 bytes that the vendor's drivers read: descriptor used, length in bytes.
// Throughput   One beat per clock.
// Backpressure To s_, also while Completions packets wait for theirs to be taken.
// Check bits   Come from a cell of the vendor beside this: of ecc_data, one clock later, while ecc_enable.

`default_nettype none

module weir_qdma_c2h
  import weir_board_pkg::*;
#(
    parameter int LengthWidth = 9,
    parameter int Completions = 32,
    parameter int QueueWidth  = 2
) (
    input var logic clk,
    input var logic rst,

    // weir_c2h's.
    input var logic [511:0] s_tdata,
    input var logic s_tlast,
    input var logic s_tvalid,
    output var logic s_tready,
    input var logic [LengthWidth-1:0] s_beats,
    input var logic [QueueWidth-1:0] s_queue,

    output var logic ecc_enable,
    output var logic [56:0] ecc_data,

    output var logic [511:0] m_tdata,
    output var logic [31:0] m_tcrc,
    output var logic [15:0] m_length,
    output var logic [10:0] m_qid,
    output var logic m_tlast,
    output var logic m_tvalid,
    input var logic m_tready,

    output var logic [511:0] cmpt_tdata,
    output var logic [15:0] cmpt_dpar,
    output var logic [10:0] cmpt_qid,
    output var logic [15:0] cmpt_packet,
    output var logic cmpt_tvalid,
    input var logic cmpt_tready
);

  typedef struct packed {
    logic [15:0] packet;
    logic [QueueWidth-1:0] number;
    logic [15:0] length;
  } completion_t;

  logic advance, room;
  logic [15:0] length, packet;
  logic [10:0] qid;

  assign advance = !m_tvalid || m_tready;
  assign s_tready = advance && room;
  assign length = 16'(s_beats) << 6;
  assign qid = 11'(s_queue);

  // has_cmpt, marker, port_id and a reserved bit, queue, length.
  assign ecc_data = {24'b0, 1'b1, 1'b0, 3'b0, 1'b0, qid, length};
  assign ecc_enable = advance;

  weir_crc32 checksum (
      .clk,
      .enable(advance),
      .data(s_tdata),
      .crc(m_tcrc)
  );

  always_ff @(posedge clk) begin
    if (advance) begin
      m_tdata  <= s_tdata;
      m_tlast  <= s_tlast;
      m_length <= length;
      m_qid    <= qid;
    end
  end

  // Numbers of packets start at 1.
  always_ff @(posedge clk) begin
    if (advance) m_tvalid <= s_tvalid && room;
    if (m_tvalid && m_tready && m_tlast) packet <= packet + 1'b1;
    if (rst) begin
      m_tvalid <= 1'b0;
      packet   <= 16'd1;
    end
  end

  completion_t cmpt_in, cmpt;
  logic [$clog2(Completions+3)-1:0] level;
  // verilator lint_off UNUSEDSIGNAL
  logic cmpt_ready;
  // verilator lint_on UNUSEDSIGNAL

  assign cmpt_in = '{packet: packet, number: QueueWidth'(m_qid), length: m_length};

  weir_fifo #(
      .Width($bits(completion_t)),
      .Depth(Completions),
      .RamStyle("distributed")
  ) completions (
      .clk,
      .rst,
      .s_data (cmpt_in),
      .s_valid(m_tvalid && m_tready && m_tlast),
      .s_ready(cmpt_ready),
      .m_data (cmpt),
      .m_valid(cmpt_tvalid),
      .m_ready(cmpt_tready),
      .level
  );

  // One packet may be at m_, and one more is let in before its completion counts.
  always_ff @(posedge clk) begin
    room <= 32'(level) < Completions - 4;
    if (rst) room <= 1'b0;
  end

  // Bit 0 format, 1 colour and 2 error (the QDMA's), 3 descriptor used, 4..19 length.
  assign cmpt_tdata = 512'({cmpt.length, 1'b1, 3'b0});
  assign cmpt_qid = 11'(cmpt.number);
  assign cmpt_packet = cmpt.packet;

  // Odd parity of each 32 bits.
  always_comb begin
    for (int i = 0; i < 16; i++) cmpt_dpar[i] = ~^cmpt_tdata[32*i+:32];
  end

`ifndef SYNTHESIS
  a_completion_has_room :
  assert property (@(posedge clk) disable iff (rst) m_tvalid && m_tready && m_tlast |-> cmpt_ready);
  a_output_stable :
  assert property (@(posedge clk) disable iff (rst) m_tvalid && !m_tready |=> m_tvalid && $stable(
      {m_tdata, m_tlast, m_length, m_qid, m_tcrc}
  ));
`endif

endmodule

`default_nettype wire
