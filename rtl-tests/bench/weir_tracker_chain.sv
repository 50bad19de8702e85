// A tracker with an endless queue of jobs and the formatter behind it.

`default_nettype none

module weir_tracker_chain
  import weir_pkg::*;
  import weir_tracker_pkg::*;
#(
    parameter int Contexts = 32,
    parameter int Ports = 2
) (
    input wire logic clk,
    input wire logic rst,
    input wire logic s_valid,
    input wire word_t s_word,
    input wire lookup_t s_lookup,
    input wire shed_t shed,
    input wire logic digest,
    output timeout_update_t timeout_update,
    output shed_t left_out,
    output logic m_valid,
    output logic [511:0] m_record,
    // Jobs wait, or a record is on its way.
    output logic busy
);

  logic job_valid, head_valid, head_ready;
  job_t job, head;
  job_t jobs[$];

  weir_tracker #(
      .Ports(Ports),
      .Contexts(Contexts)
  ) tracker (
      .clk,
      .rst,
      .digest,
      .shed,
      .dropped('0),
      .s_valid,
      .s_word,
      .s_lookup,
      .timeout_update,
      .m_valid(job_valid),
      .m_job(job),
      .trouble_valid(),
      .trouble_index(),
      .trouble_time(),
      .left_out
  );
  weir_formatter formatter (
      .clk,
      .rst,
      .epoch(16'hbeef),
      .lane(4'd3),
      .s_valid(head_valid),
      .s_ready(head_ready),
      .s_job(head),
      .m_valid,
      .m_ready(1'b1),
      .m_record
  );

  assign busy = head_valid || m_valid || job_valid;

  always_ff @(posedge clk) begin
    if (job_valid) jobs.push_back(job);
    if (!head_valid || head_ready) begin
      head_valid <= jobs.size() != 0;
      if (jobs.size() != 0) head <= jobs.pop_front();
    end
    if (rst) begin
      head_valid <= 1'b0;
      jobs.delete();
    end
  end

endmodule

`default_nettype wire
