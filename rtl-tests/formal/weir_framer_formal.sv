// Proves weir_framer's sequence control: every record leaves once, in order, in a frame whose header tells the truth;
// frames are numbered without a gap; and what is inside leaves within a bounded time.
// The framer looks at nothing of a record but its number, so records that count up stand for all. Of each number only
// the bits that count here are compared: the others are constants, and a proof over all time has no room for them.

`default_nettype none

module weir_framer_formal
  import weir_records_pkg::*;
(
    input var logic clk,
    input var logic rst,
    input var logic flush,
    input var logic s_valid,
    input var logic m_tready
);

  localparam int Width = 3;
  localparam int MaxRecords = 2;
  localparam int FlushClocks = 3;
  // Clocks that the output may be silent though it could send and records are inside.
  localparam int Patience = FlushClocks + 6;

  record_header_t record;
  frame_header_t header;
  record_header_t beat;
  logic [Width-1:0] sent;
  logic [Width-1:0] taken;
  logic [Width-1:0] frames;
  logic [Width-1:0] total;
  // Records of the frame to come; 0: the next beat is a header.
  logic [1:0] remaining;
  logic [1:0] promised;
  logic s_ready;
  logic [511:0] m_tdata;
  logic m_tlast;
  logic [63:0] m_tkeep;
  logic m_tvalid;
  logic [Width-1:0] records_in;
  logic [Width-1:0] records_out;
  logic [Width-1:0] frames_out;
  logic started = 1'b0;
  logic [3:0] silent;

  always_comb begin
    record = '0;
    record.sequence_ = 32'(sent);
    header = m_tdata;
    promised = header.records[1:0];
    beat = m_tdata[$bits(record_header_t)-1:0];
  end

  weir_framer #(
      .MaxRecords(MaxRecords),
      .FlushClocks(FlushClocks),
      .Depth(2),
      .Frames(2),
      .CounterWidth(Width)
  ) dut (
      .clk,
      .rst,
      .now('0),
      .destination_mac('0),
      .source_mac('0),
      .lane('0),
      .epoch('0),
      .flush,
      .s_data(512'(record)),
      .s_valid,
      .s_ready,
      .m_tdata,
      .m_tkeep,
      .m_tlast,
      .m_tvalid,
      .m_tready,
      .records_in,
      .records_out,
      .frames_out
  );

  always_ff @(posedge clk) begin
    started <= 1'b1;
    sent <= sent + Width'(s_valid && s_ready);
    if (m_tvalid && m_tready) begin
      if (remaining == 0) begin
        remaining <= promised;
        total <= total + Width'(promised);
        frames <= frames + 1'b1;
      end else begin
        remaining <= remaining - 1'b1;
        taken <= taken + 1'b1;
      end
    end
    silent <= m_tvalid || !m_tready || sent == taken ? '0 : silent + 1'b1;
    if (rst) begin
      sent <= '0;
      taken <= '0;
      total <= '0;
      frames <= '0;
      remaining <= '0;
      silent <= '0;
    end
  end

  always_comb begin
    assume (rst == !started);
    if (started) begin
      assert (records_in == sent);
      assert (records_out == taken);
      assert (frames_out == frames - Width'(remaining != 0));
      assert (remaining == 0 || m_tvalid);
      // These two shorten the proof.
      assert (total == taken + Width'(remaining));
      assert (Width'(sent - taken) <= Width'(6));
      if (m_tvalid && remaining == 0) begin
        assert (promised >= 1 && promised <= 2'(MaxRecords));
        assert (header.sequence_[Width-1:0] == frames);
        assert (header.total[Width-1:0] == total);
        assert (header.first_sequence[Width-1:0] == taken);
        assert (total == taken);
        assert (!m_tlast);
      end
      if (m_tvalid && remaining != 0) begin
        assert (beat.sequence_[Width-1:0] == taken);
        assert (m_tlast == (remaining == 1));
      end
      assert (32'(silent) <= Patience);
      cover (m_tvalid && remaining == 0 && promised == 2'(MaxRecords));
      cover (m_tvalid && m_tlast && frames == 2);
    end
  end

endmodule

`default_nettype wire
