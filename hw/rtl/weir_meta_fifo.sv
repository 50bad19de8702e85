// Metadata words of one port between the parser, which never waits, and the merge, which may.
//
// Promise      What is not dropped comes out at m_ in the same order, once. A word that finds no room is
//              dropped whole and counted.
// Throughput   One word in and one out per clock.
// Latency      That of weir_fifo: 3 clocks when empty.
// Backpressure None at s_.
// dropped      Words dropped since reset, modulo 2^32.
// level        Words held; highest is the largest level since reset.

`default_nettype none

module weir_meta_fifo
  import weir_pkg::*;
#(
    // Words; a power of two.
    parameter int Depth = 512,
    parameter string RamStyle = "block",
    localparam int LevelWidth = $clog2(Depth + 3)
) (
    input var logic clk,
    input var logic rst,

    input var meta_t s_meta,
    input var logic  s_valid,

    output var meta_t m_meta,
    output var logic  m_valid,
    input var  logic  m_ready,

    output var logic [31:0] dropped,
    output var logic [LevelWidth-1:0] level,
    output var logic [LevelWidth-1:0] highest
);

  logic has_room;

  weir_fifo #(
      .Width($bits(meta_t)),
      .Depth(Depth),
      .RamStyle(RamStyle)
  ) u_fifo (
      .clk,
      .rst,
      .s_data (s_meta),
      .s_valid,
      .s_ready(has_room),
      .m_data ({m_meta}),
      .m_valid,
      .m_ready,
      .level
  );

  always_ff @(posedge clk) begin
    if (s_valid && !has_room) dropped <= dropped + 1'b1;
    if (level > highest) highest <= level;
    if (rst) begin
      dropped <= '0;
      highest <= '0;
    end
  end

`ifndef SYNTHESIS
  // Nothing is lost silently: words in = words out + dropped + held.
  logic [31:0] accepted, delivered;
  always_ff @(posedge clk) begin
    accepted  <= accepted + 32'(s_valid);
    delivered <= delivered + 32'(m_valid && m_ready);
    if (rst) begin
      accepted  <= '0;
      delivered <= '0;
    end
  end
  a_conserves :
  assert property (@(posedge clk) disable iff (rst) accepted == delivered + dropped + 32'(level));
  // Frames of a port that is not held up never go missing.
  a_drops_only_when_full :
  assert property (@(posedge clk) disable iff (rst) s_valid && !has_room |-> 32'(level) >= Depth);
`endif

endmodule

`default_nettype wire
