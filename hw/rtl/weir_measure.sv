// The measuring pipeline: frames of the ports to records (docs/src/flow-engine.md, docs/src/hardware.md).
//
// Promise      Records in the order of section 6 of the specification, numbered without a gap. Frames in =
//              tracked + untracked by reason + dropped, per port, in PORT records.
// Throughput   One beat per clock and port; one packet per clock through merge, lookup and tracker,
//              whatever flows they belong to; one record per clock out.
// Latency      From the last header beat of a frame to its first record: the parser's, the wait for the other
//              ports' horizons in weir_merge, weir_lookup (17), weir_tracker (11), 5 for queue and formatter.
// Backpressure None towards the ports, ever. Words leave the merge only while the queue of jobs has room for
//              all words under way; what waits, waits in weir_meta_fifo, whose overflow is counted. Before
//              that `shed` leaves records out (section 8) if `shed_enable` allows it.
// Hazards      `ready` is low until memories are clear after reset; frames before that are dropped and counted
//              once their queue is full.

`default_nettype none

module weir_measure
  import weir_pkg::*;
  import weir_digest_pkg::*;
  import weir_kernel_pkg::kernel_word_t;
  import weir_kernel_pkg::kernel_facts_t;
  import weir_lookup_pkg::*;
  import weir_records_pkg::*;
  import weir_tracker_pkg::*;
#(
    parameter int Ports = 2,
    parameter int Contexts = 1 << 18,
    // Of the key table: 2 * Buckets * Ways entries.
    parameter int Buckets = 1 << 15,
    parameter int Ways = 5,
    // Filters of weir_digest.
    parameter int DigestEntries = 4,
    // Metadata words that wait, per port; jobs that wait.
    parameter int MetaDepth = 512,
    parameter int JobDepth = 256
) (
    input var  logic clk,
    input var  logic rst,
    output var logic ready,

    // Settings; to be changed in reset only.
    input var seed_t seed,
    input var logic vlan_in_key,
    input var timeouts_t timeouts,
    input var logic [15:0] epoch,
    input var logic [3:0] record_lane,
    // Leave records out when they cannot leave.
    input var logic shed_enable,
    // Which packets get PACKET records (weir_digest).
    input var digest_mode_e digest_mode,
    input var digest_entry_t [DigestEntries-1:0] digest_entries,
    input var logic [15:0] trigger_packets,
    input var logic [46:0] trigger_ns,

    // Frames; s_tuser with the first beat. Never held up.
    input var logic [Ports-1:0][511:0] s_tdata,
    input var logic [Ports-1:0][63:0] s_tkeep,
    input var logic [Ports-1:0] s_tvalid,
    input var logic [Ports-1:0] s_tlast,
    input var frame_user_t [Ports-1:0] s_tuser,
    // No word of the port that is not in its queue yet is earlier (weir_merge).
    input var logic [Ports-1:0][63:0] s_horizon,
    // Nor is one later, unless the clock went back.
    input var logic [Ports-1:0][63:0] s_latest,

    // Scan visits and the end of input (weir_merge).
    input var word_kind_e s_visit_kind,
    input var index_t s_visit_index,
    input var logic [63:0] s_visit_time,
    input var logic s_visit_valid,
    output var logic s_visit_ready,
    input var logic [63:0] s_visit_horizon,

    output var logic [511:0] m_record,
    output var logic m_valid,
    input var logic m_ready,

    // Each word behind the tracker, for statistics (hw/hls); nobody waits for whoever takes it.
    output var kernel_word_t kernel_word,
    output var logic kernel_valid,

    // Words of the port wait for the merge (weir_horizon).
    output var logic [Ports-1:0] waiting,
    // Contexts used so far (all below); in use.
    output var logic [IndexWidth:0] used,
    output var logic [IndexWidth:0] occupancy,
    // A word with a context has left the lookup (benches follow it; registers count it).
    output var logic looked_up,
    output var logic looked_up_tracked,
    output var word_kind_e looked_up_kind,
    output var index_t looked_up_index,
    // The word is a packet that is wanted whole: its port and number there (weir_slice).
    output var logic looked_up_wanted,
    output var logic [3:0] looked_up_port,
    output var logic [63:0] looked_up_number,
    output var logic [31:0] wanted,
    // Records left out, a pulse each; packets without index or room for their key.
    output var shed_t left_out,
    output var logic [31:0] no_index_count,
    output var logic [31:0] no_room_count,
    output var logic [Ports-1:0][31:0] dropped,

    // Parity of the key table (weir_key_table).
    input var  logic table_flip,
    output var logic table_bad
);

  // Words that can be between the merge's output and the queue of jobs, with a margin.
  localparam int UnderWay = LookupLatency + 16;
  if (JobDepth < 4 * UnderWay) begin : gen_check_depth
    $error("JobDepth must leave room for the words under way");
  end

  localparam int MetaLevelWidth = $clog2(MetaDepth + 3);
  localparam int JobLevelWidth = $clog2(JobDepth + 3);

  meta_t [Ports-1:0] meta;
  logic [Ports-1:0] meta_valid, meta_ready;
  for (genvar p = 0; p < Ports; p++) begin : gen_port
    meta_t parsed;
    logic  parsed_valid;
    // verilator lint_off UNUSEDSIGNAL
    logic [MetaLevelWidth-1:0] level, highest;
    // verilator lint_on UNUSEDSIGNAL
    weir_parser #(
        .Port(p)
    ) parser (
        .clk,
        .rst,
        .s_tdata (s_tdata[p]),
        .s_tkeep (s_tkeep[p]),
        .s_tvalid(s_tvalid[p]),
        .s_tlast (s_tlast[p]),
        .s_tuser (s_tuser[p]),
        .m_meta  (parsed),
        .m_valid (parsed_valid)
    );
    weir_meta_fifo #(
        .Depth(MetaDepth)
    ) queue (
        .clk,
        .rst,
        .s_meta (parsed),
        .s_valid(parsed_valid),
        .m_meta (meta[p]),
        .m_valid(meta_valid[p]),
        .m_ready(meta_ready[p]),
        .dropped(dropped[p]),
        .level,
        .highest
    );
    assign waiting[p] = meta_valid[p] || level != '0;
  end

  word_t merged, word;
  lookup_t lookup;
  logic merged_valid, enter;
  logic room;
  weir_merge #(
      .Ports(Ports),
      .DrainClocks(DrainClocks)
  ) merge (
      .clk,
      .rst,
      .s_meta(meta),
      .s_meta_valid(meta_valid),
      .s_meta_ready(meta_ready),
      .s_horizon,
      .s_latest,
      .s_visit_kind,
      .s_visit_index,
      .s_visit_time,
      .s_visit_valid,
      .s_visit_ready,
      .s_visit_horizon,
      .m_word(merged),
      .m_valid(merged_valid),
      .m_ready(room)
  );
  assign enter = merged_valid && room;

  timeout_update_t timeout_update;
  // verilator lint_off UNUSEDSIGNAL
  logic [IndexWidth:0] deletions;
  logic [5:0] stash_level, stash_high_water;
  // verilator lint_on UNUSEDSIGNAL
  weir_lookup #(
      .Contexts(Contexts),
      .Buckets(Buckets),
      .Ways(Ways),
      // The contexts take nearly all UltraRAM of a large part.
      .RamStyle("block")
  ) finder (
      .clk,
      .rst,
      .ready,
      .seed,
      .vlan_in_key,
      .timeouts,
      .s_valid (enter),
      .s_word  (merged),
      .m_valid (looked_up),
      .m_word  (word),
      .m_lookup(lookup),
      .timeout_update,
      .occupancy,
      .used,
      .deletions,
      .stash_level,
      .stash_high_water,
      .no_index_count,
      .no_room_count,
      .table_flip,
      .table_bad
  );
  assign looked_up_tracked = lookup.tracked;
  assign looked_up_kind = word.kind;
  assign looked_up_index = lookup.index;
  assign looked_up_port = word.meta.port;
  assign looked_up_number = word.meta.number;

  logic digest, trouble_valid, opened;
  index_t trouble_index;
  logic [47:0] trouble_time;
  weir_digest #(
      .Entries(DigestEntries)
  ) choice (
      .clk,
      .rst,
      .mode(digest_mode),
      .entries(digest_entries),
      .trigger_packets,
      .trigger_ns,
      .s_key(merged.meta.key),
      .q_valid(looked_up),
      .q_tracked(lookup.tracked),
      .q_fresh(lookup.fresh),
      .q_kind(word.kind),
      .q_index(lookup.index),
      .q_time(word.meta.timestamp[47:0]),
      .digest,
      .trigger_valid(trouble_valid),
      .trigger_opened(opened),
      .trigger_index(trouble_index),
      .trigger_time(trouble_time),
      .wanted
  );
  assign looked_up_wanted = digest;

  logic [JobLevelWidth-1:0] jobs;
  shed_t shed;
  job_t job, next_job;
  logic job_valid, next_job_valid, next_job_ready;
  weir_tracker #(
      .Ports(Ports),
      .Contexts(Contexts)
  ) tracker (
      .clk,
      .rst,
      .digest,
      .shed,
      .dropped,
      .s_valid(looked_up),
      .s_word(word),
      .s_lookup(lookup),
      .timeout_update,
      .m_valid(job_valid),
      .m_job(job),
      .trouble_valid,
      .trouble_index,
      .trouble_time,
      .left_out
  );

  // The tracker's `job` tells of each word, whether it makes records or not, this long after the word came.
  localparam int TrackerLatency = 11;
  logic [TrackerLatency-1:0] passing;
  logic job_passed;
  assign job_passed = passing[TrackerLatency-1];
  assign opened = job_passed && job.order.opened;
  always_ff @(posedge clk) begin
    passing <= {passing[TrackerLatency-2:0], looked_up};
    if (rst) passing <= '0;
  end

  kernel_facts_t kernel_facts;
  assign kernel_facts = '{
          client_is_low: job.updated.order.client_is_low,
          opened: job.order.opened,
          new_bytes: job.order.new_bytes,
          rtt_valid: job.records[JobRtt] && job.round_trip.how != RTT_HOW_ECHO,
          rtt_of_server: job.round_trip.side,
          rtt: job.round_trip.value
      };
  weir_kernel_word kernel_words (
      .clk,
      .rst,
      .s_word  (job.word),
      .s_lookup(job.lookup),
      .s_facts (kernel_facts),
      .s_valid (job_passed),
      .m_word  (kernel_word),
      .m_valid (kernel_valid)
  );

  logic queue_ready;
  weir_fifo #(
      .Width($bits(job_t)),
      .Depth(JobDepth),
      .RamStyle("block")
  ) queue (
      .clk,
      .rst,
      .s_data (job),
      .s_valid(job_valid),
      .s_ready(queue_ready),
      .m_data (next_job),
      .m_valid(next_job_valid),
      .m_ready(next_job_ready),
      .level  (jobs)
  );

  // Section 8: from a quarter on more and more is left out; from JobDepth - UnderWay words wait.
  always_ff @(posedge clk) begin
    room <= ready && 32'(jobs) < JobDepth - UnderWay;
    shed.packet <= shed_enable && 32'(jobs) >= 2 * JobDepth / 8;
    shed.rtt <= shed_enable && 32'(jobs) >= 3 * JobDepth / 8;
    shed.interval <= shed_enable && 32'(jobs) >= 4 * JobDepth / 8;
    shed.block <= shed_enable && 32'(jobs) >= 5 * JobDepth / 8;
    shed.event_ <= shed_enable && 32'(jobs) >= 6 * JobDepth / 8;
    if (rst) room <= 1'b0;
  end

  weir_formatter formatter (
      .clk,
      .rst,
      .epoch,
      .lane(record_lane),
      .s_valid(next_job_valid),
      .s_ready(next_job_ready),
      .s_job(next_job),
      .m_valid,
      .m_ready,
      .m_record
  );

`ifndef SYNTHESIS
  // Words from the merge's output to the tracker's end, each of which may make a job.
  logic [63:0] entered;
  logic [31:0] under_way, next_sequence;
  // Clocks in which nothing was on its way to the tracker's end.
  logic [7:0] quiet;
  assign under_way = 32'(entered - tracker.words_out);
  always_ff @(posedge clk) begin
    entered <= entered + 64'(enter);
    if (m_valid && m_ready) next_sequence <= next_sequence + 1;
    if (quiet != '1) quiet <= quiet + 1;
    if ((meta_valid | merge.head_valid) != '0 || merged_valid || under_way != 0) quiet <= '0;
    if (rst) begin
      entered <= '0;
      next_sequence <= '0;
      quiet <= '0;
    end
  end

  a_word_with_its_job :
  assert property (@(posedge clk) disable iff (rst) job_passed == tracker.written);
  a_job_has_room :
  assert property (@(posedge clk) disable iff (rst) job_valid |-> queue_ready);
  // Credits: if all words under way make jobs, there is room for them.
  a_credits :
  assert property (@(posedge clk) disable iff (rst) 32'(jobs) + under_way <= JobDepth);
  a_words_under_way :
  assert property (@(posedge clk) disable iff (rst) under_way <= UnderWay);
  a_known :
  assert property (@(posedge clk) disable iff (rst) !$isunknown(m_valid) && (!m_valid || !$isunknown(m_record)));
  a_numbered :
  assert property (@(posedge clk) disable iff (rst) m_valid |-> m_record[63:32] == next_sequence);
  for (genvar p = 0; p < Ports; p++) begin : gen_conserved
    // Each frame that the parser ended is dropped or counted once, as tracked or untracked (weir_ports).
    logic [63:0] parsed_count;
    logic [ 7:0] parsed_before;
    always_ff @(posedge clk) begin
      parsed_count <= parsed_count + 64'(gen_port[p].parsed_valid);
      if (parsed_before != '1) parsed_before <= parsed_before + 1;
      if (gen_port[p].parsed_valid) parsed_before <= '0;
      if (rst) begin
        parsed_count  <= '0;
        parsed_before <= '0;
      end
    end
    a_frames_conserved :
    assert property (@(posedge clk) disable iff (rst) quiet == '1 && parsed_before == '1 |->
                     parsed_count == tracker.ports.counters[p].frames + 64'(dropped[p]));
  end
`else
  logic unused_queue_ready;
  assign unused_queue_ready = queue_ready;
`endif

endmodule

`default_nettype wire
