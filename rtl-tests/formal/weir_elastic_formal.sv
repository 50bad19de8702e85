// Proves weir_elastic: frames leave whole, once and in order, or are counted as dropped; none is cut but those beyond
// the limit, and none is dropped while one fits. Beats carry the number of their frame and their place in it.

`default_nettype none

module weir_elastic_formal (
    input var logic clk,
    input var logic rst,
    input var logic s_tvalid,
    input var logic s_tlast,
    input var logic m_tready
);

  localparam int MaxBeats = 2;
  localparam int Depth = 4;

  // The frame that is coming, modulo 8, and the place of its next beat (3: any later one).
  logic [2:0] frame;
  logic [1:0] place;
  // The frame that is leaving.
  logic [1:0] out_place;
  logic [2:0] out_frame;
  logic started = 1'b0;

  logic [7:0] m_tdata;
  logic m_tkeep;
  logic m_tlast;
  logic m_terror;
  logic m_tvalid;
  logic [31:0] frames_in;
  logic [31:0] frames_out;
  logic [31:0] frames_dropped;
  logic [31:0] frames_cut;
  logic [$clog2(Depth+3)-1:0] level;
  // Before the clock in which a frame could be dropped; the room is looked at one clock ahead.
  logic [1:0] had_room;
  logic [31:0] was_dropped;

  weir_elastic #(
      .Depth(Depth),
      .MaxBeats(MaxBeats),
      .Hold(1),
      .Width(8)
  ) dut (
      .clk,
      .rst,
      .s_tdata ({3'd0, frame, place}),
      .s_tkeep (1'b1),
      .s_tlast,
      .s_terror(1'b0),
      .s_tvalid,
      .m_tdata,
      .m_tkeep,
      .m_tlast,
      .m_terror,
      .m_tvalid,
      .m_tready,
      .frames_in,
      .frames_out,
      .frames_dropped,
      .frames_cut,
      .level
  );

  always_ff @(posedge clk) begin
    started <= 1'b1;
    if (s_tvalid) begin
      place <= s_tlast ? '0 : place == 2'd3 ? place : place + 1'b1;
      frame <= frame + 3'(s_tlast);
    end
    if (m_tvalid && m_tready) begin
      out_place <= m_tlast ? '0 : out_place + 1'b1;
      out_frame <= m_tdata[4:2];
    end
    had_room <= {had_room[0], 32'(level) + MaxBeats < Depth};
    was_dropped <= frames_dropped;
    if (rst) begin
      had_room <= '1;
      was_dropped <= '0;
      place <= '0;
      frame <= '0;
      out_place <= '0;
    end
  end

  always_comb begin
    assume (rst == !started);
    if (started) begin
      if (m_tvalid) begin
        // Beats of one frame, none missing, none twice.
        assert (m_tdata[1:0] == out_place);
        assert (out_place == 0 || m_tdata[4:2] == out_frame);
        // Of several beats that follow one another only the limit ends one early, and says so.
        assert (!m_terror || (m_tlast && out_place == 2'(MaxBeats - 1)));
        assert (m_tlast || out_place < 2'(MaxBeats - 1));
      end
      assert (frames_dropped == was_dropped || !had_room[1]);
      cover (frames_dropped == 1 && frames_out == 3);
      cover (frames_cut == 1 && m_tvalid && m_terror);
    end
  end

endmodule

`default_nettype wire
