// weir_measure as the comparison drives it: plain ports, and a look inside at what the driver must know so that it
// stays within the contract (queues of metadata, stash and deletions of the lookup) and keeps the words of the ports in
// the capture's order.

`default_nettype none

module weir_compare
  import weir_pkg::*;
  import weir_kernel_pkg::kernel_word_t;
  import weir_lookup_pkg::*;
  import weir_tracker_pkg::*;
#(
    parameter int Ports = 2,
    parameter int Contexts = 1 << 18,
    parameter int Buckets = 1 << 15
) (
    input var clk,
    input var rst,
    output logic ready,

    // Random bits; the lookup takes as many as it needs.
    input var logic [511:0] seed,
    input var logic digests,
    input var logic shed_enable,
    input var logic vlan_in_key,

    input var logic [Ports-1:0][511:0] s_tdata,
    input var logic [Ports-1:0][63:0] s_tkeep,
    input var logic [Ports-1:0] s_tvalid,
    input var logic [Ports-1:0] s_tlast,
    input var logic [Ports-1:0][63:0] s_timestamp,
    input var logic [Ports-1:0][19:0] s_wire_length,
    input var logic [Ports-1:0][63:0] s_horizon,

    input var logic [2:0] s_visit_kind,
    input var logic [17:0] s_visit_index,
    input var logic [63:0] s_visit_time,
    input var logic s_visit_valid,
    output logic s_visit_ready,
    input var logic [63:0] s_visit_horizon,

    output logic [511:0] m_record,
    output logic m_valid,
    input var logic m_ready,

    // Statistics, of lane 8; the sketch takes its seed from `seed`, too.
    input var logic statistics_enable,
    input var logic [1:0][31:0] burst_bytes,
    input var logic [6:0][15:0] services,
    output logic [511:0] statistic,
    output logic statistic_valid,
    input var logic statistic_ready,
    output logic [2:0][31:0] words_lost,

    // The merge lets a word of the port go in this clock.
    output logic [Ports-1:0] gone,
    output logic looked_up,
    output logic looked_up_tracked,
    output logic [2:0] looked_up_kind,
    output logic [5:0] stash_level,
    output logic [18:0] deletions,
    output logic [4:0] left_out,
    output logic [31:0] no_index_count,
    output logic [31:0] no_room_count,
    output logic [Ports-1:0][31:0] dropped
);

  frame_user_t [Ports-1:0] user;
  for (genvar p = 0; p < Ports; p++) begin : gen_user
    assign user[p] = '{wire_length: s_wire_length[p], timestamp: s_timestamp[p]};
  end
  word_kind_e kind;
  shed_t left;
  logic table_bad;
  kernel_word_t kernel_word;
  logic kernel_valid;

  weir_measure #(
      .Ports(Ports),
      .Contexts(Contexts),
      .Buckets(Buckets)
  ) dut (
      .clk,
      .rst,
      .ready,
      .seed(seed[SeedWidth-1:0]),
      .vlan_in_key,
      .timeouts(
      '{
          handshake: 47'd90_000_000_000,
          idle: 47'd900_000_000_000,
          linger: 47'd4_000_000_000,
          other: 47'd60_000_000_000
      }
      ),
      .epoch('0),
      .record_lane('0),
      .digest_mode(digests ? weir_digest_pkg::DIGEST_ALL : weir_digest_pkg::DIGEST_OFF),
      .digest_entries('0),
      .trigger_packets('0),
      .trigger_ns('0),
      .waiting(),
      .looked_up_wanted(),
      .looked_up_port(),
      .looked_up_number(),
      .wanted(),
      .shed_enable,
      .s_tdata,
      .s_tkeep,
      .s_tvalid,
      .s_tlast,
      .s_tuser(user),
      .s_horizon,
      // Files order their own times.
      .s_latest('1),
      .s_visit_kind(word_kind_e'(s_visit_kind)),
      .s_visit_index,
      .s_visit_time,
      .s_visit_valid,
      .s_visit_ready,
      .s_visit_horizon,
      .m_record,
      .m_valid,
      .m_ready,
      .kernel_word,
      .kernel_valid,
      .used(),
      .occupancy(),
      .looked_up,
      .looked_up_tracked,
      .looked_up_kind(kind),
      .looked_up_index(),
      .left_out(left),
      .no_index_count,
      .no_room_count,
      .dropped,
      .table_flip(1'b0),
      .table_bad
  );

  weir_statistics statistics (
      .clk,
      .rst,
      .enable(statistics_enable),
      .lane(4'd8),
      .thresholds(burst_bytes),
      .services,
      .seed(seed[191:0]),
      .s_word(kernel_word),
      .s_valid(kernel_valid),
      .m_record(statistic),
      .m_valid(statistic_valid),
      .m_ready(statistic_ready),
      .words_lost,
      .results_lost(),
      .records_out()
  );

  a_parity_holds :
  assert property (@(posedge clk) disable iff (rst) !table_bad);

  assign looked_up_kind = kind;
  assign left_out = left;
  assign gone = dut.merge.head_valid & dut.merge.head_ready;
  assign stash_level = dut.stash_level;
  assign deletions = dut.deletions;

endmodule

`default_nettype wire
