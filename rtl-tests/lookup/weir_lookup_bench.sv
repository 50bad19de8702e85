// weir_lookup with the fields of a word that it looks at as ports of their own.

`default_nettype none

module weir_lookup_bench
  import weir_pkg::*;
  import weir_lookup_pkg::*;
#(
    parameter int Contexts = 64,
    parameter int Buckets = 16,
    parameter int Ways = 5,
    parameter int StashEntries = 32,
    localparam int LevelWidth = $clog2(StashEntries + 1)
) (
    input  wire logic      clk,
    input  wire logic      rst,
    output logic           ready,
    input  wire seed_t     seed,
    input  wire logic      vlan_in_key,
    input  wire timeouts_t timeouts,

    input wire logic          s_valid,
    input wire logic   [ 2:0] s_kind,
    input wire logic   [ 1:0] s_class,
    input wire logic   [ 3:0] s_reason,
    input wire index_t        s_index,
    input wire logic   [63:0] s_time,
    input wire logic   [63:0] s_key,
    input wire logic   [23:0] s_vlans,
    input wire logic   [63:0] s_number,

    output logic          m_valid,
    output logic   [63:0] m_number,
    output logic   [23:0] m_vlans,
    output logic          m_tracked,
    output logic          m_expired,
    output logic          m_fresh,
    output logic   [ 3:0] m_reason,
    output index_t        m_index,
    output logic   [47:0] m_last_seen,

    input wire logic         update_valid,
    input wire index_t       update_index,
    input wire logic   [1:0] update_timeout,

    output logic [  IndexWidth:0] occupancy,
    output logic [  IndexWidth:0] used,
    output logic [  IndexWidth:0] deletions,
    output logic [LevelWidth-1:0] stash_level,
    output logic [LevelWidth-1:0] stash_high_water,
    output logic [          31:0] no_index_count,
    output logic [          31:0] no_room_count,
    output logic [          31:0] latency,
    output logic [          31:0] history,
    output logic [          31:0] drain
);

  word_t s_word;
  // verilator lint_off UNUSEDSIGNAL
  word_t m_word;  // most fields only pass
  // verilator lint_on UNUSEDSIGNAL
  lookup_t lookup;
  logic table_bad;
  timeout_update_t update;

  assign latency = 32'(LookupLatency);
  assign history = 32'(HistoryDepth);
  assign drain   = 32'(DrainClocks);

  always_comb begin
    s_word = '0;
    s_word.kind = word_kind_e'(s_kind);
    s_word.index = s_index;
    s_word.meta.class_ = class_e'(s_class);
    s_word.meta.reason = s_reason;
    s_word.meta.timestamp = s_time;
    s_word.meta.number = s_number;
    s_word.meta.key.low.addr = {s_key, ~s_key};
    s_word.meta.key.low.port = s_key[15:0];
    s_word.meta.key.high.addr[31:0] = s_key[31:0];
    s_word.meta.key.protocol = 8'd6;
    s_word.meta.key.vlans = s_vlans;
    update.valid = update_valid;
    update.index = update_index;
    update.timeout = timeout_e'(update_timeout);
  end

  assign m_number = m_word.meta.number;
  assign m_vlans = m_word.meta.key.vlans;
  assign m_tracked = lookup.tracked;
  assign m_expired = lookup.expired;
  assign m_fresh = lookup.fresh;
  assign m_reason = lookup.reason;
  assign m_index = lookup.index;
  assign m_last_seen = lookup.last_seen;

  weir_lookup #(
      .Contexts(Contexts),
      .Buckets(Buckets),
      .Ways(Ways),
      .StashEntries(StashEntries)
  ) dut (
      .clk,
      .rst,
      .ready,
      .seed,
      .vlan_in_key,
      .timeouts,
      .s_valid,
      .s_word,
      .m_valid,
      .m_word,
      .m_lookup(lookup),
      .timeout_update(update),
      .occupancy,
      .used,
      .deletions,
      .stash_level,
      .stash_high_water,
      .no_index_count,
      .no_room_count,
      .table_flip(1'b0),
      .table_bad
  );

  a_parity_holds :
  assert property (@(posedge clk) disable iff (rst) !table_bad);

endmodule

`default_nettype wire
