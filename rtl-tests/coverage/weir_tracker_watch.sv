// Counts what happens inside of every weir_tracker, for functional coverage (coverage.py): the slots of jobs, the
// distance to the nearest word before on the same context, kinds of words, records left out. Printed at the end.

`default_nettype none

module weir_tracker_watch
  import weir_pkg::*;
  import weir_tracker_pkg::*;
#(
    parameter int Depth = 2
) (
    input wire logic clk,
    input wire logic rst,
    input wire logic valid,
    input wire word_t word,
    input wire lookup_t lookup,
    input wire logic [Depth-1:0] same,
    input wire logic m_valid,
    input wire job_t m_job,
    input wire shed_t left_out
);

  longint slots[JobRecords];
  longint records[JobRecords+1];
  // 0: none so near, the context comes from memory.
  longint distances[Depth+1];
  longint kinds[4];
  longint sheds[5];

  always @(posedge clk) begin
    if (!rst) begin
      if (valid) begin
        kinds[word.kind]++;
        if (lookup.tracked) begin
          if (same == '0) distances[0]++;
          for (int i = 0; i < Depth; i++) begin
            if (same[i]) distances[i+1]++;
          end
        end
      end
      if (m_valid) begin
        records[$countones(m_job.records)]++;
        for (int i = 0; i < JobRecords; i++) begin
          if (m_job.records[i]) slots[i]++;
        end
      end
      for (int i = 0; i < 5; i++) begin
        if (left_out[i]) sheds[i]++;
      end
    end
  end

  final begin
    for (int i = 0; i < JobRecords; i++) $display("watch slot %0d %0d", i, slots[i]);
    for (int i = 0; i <= JobRecords; i++) $display("watch records %0d %0d", i, records[i]);
    for (int i = 0; i <= Depth; i++) $display("watch distance %0d %0d", i, distances[i]);
    for (int i = 0; i < 4; i++) $display("watch kind %0d %0d", i, kinds[i]);
    for (int i = 0; i < 5; i++) $display("watch shed %0d %0d", i, sheds[i]);
  end

endmodule

bind weir_tracker weir_tracker_watch #(
    .Depth(Depth)
) watch (
    .clk,
    .rst,
    .valid (valid[2]),
    .word  (word[2]),
    .lookup(lookup[2]),
    .same  (same[2]),
    .m_valid,
    .m_job,
    .left_out
);

`default_nettype wire
