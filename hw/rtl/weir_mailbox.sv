// Two one-way queues of words between host and card; way 0 to the card, way 1 to the host.
//
// Promise      Words come out in the order in which they were pushed, once; one pushed at a full queue is lost and
//              counted.
// Capacity     Depth + 2 words each way.
// Throughput   One push and one pop per clock and way.
// Latency      Three clocks from a push to `valid` when empty.
// Hazards      A pop while `valid` is low does nothing; `pop_data` is 0 then. `clear` empties both; a word
//              pushed in that clock is lost.

`default_nettype none

module weir_mailbox #(
    parameter  int Depth = 64,
    localparam int Ways  = 2
) (
    input var logic clk,
    input var logic rst,
    input var logic clear,

    input var logic [Ways-1:0] push,
    input var logic [Ways-1:0][31:0] push_data,
    input var logic [Ways-1:0] pop,
    output var logic [Ways-1:0][31:0] pop_data,

    output var logic [Ways-1:0] ready,
    output var logic [Ways-1:0] valid,
    output var logic [Ways-1:0][7:0] words,
    output var logic [Ways-1:0][15:0] lost
);

  localparam int LevelWidth = $clog2(Depth + 3);
  if (LevelWidth > 8) begin : gen_check_depth
    $error("Depth must fit in 8 bits");
  end

  for (genvar w = 0; w < Ways; w++) begin : gen_way
    logic [31:0] data;
    logic [LevelWidth-1:0] level;

    weir_fifo #(
        .Width(32),
        .Depth(Depth),
        .RamStyle("distributed")
    ) queue (
        .clk,
        .rst(rst || clear),
        .s_data(push_data[w]),
        .s_valid(push[w]),
        .s_ready(ready[w]),
        .m_data(data),
        .m_valid(valid[w]),
        .m_ready(pop[w]),
        .level
    );

    assign pop_data[w] = valid[w] ? data : '0;
    assign words[w] = 8'(level);

    always_ff @(posedge clk) begin
      lost[w] <= lost[w] + 16'(push[w] && !ready[w]);
      if (rst) lost[w] <= '0;
    end

`ifndef SYNTHESIS
    a_lost_is_counted :
    assert property (@(posedge clk) disable iff (rst) push[w] && !ready[w] |=> lost[w] == $past(lost[w]) + 16'd1);
    a_nothing_when_empty :
    assert property (@(posedge clk) disable iff (rst) !valid[w] |-> pop_data[w] == '0);
`endif
  end

endmodule

`default_nettype wire
