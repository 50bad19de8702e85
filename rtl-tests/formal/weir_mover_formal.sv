// Checks weir_stash and weir_mover with two tables of two buckets of one entry: in every clock each live key is in the
// stash or in one of its buckets, and nothing is found for a key but its own index; what a deletion has answered for is
// gone. The tables begin with any contents, so that the first insertion may already have to exchange entries; which keys
// come, are killed and deleted, and when, is the solver's choice.

`default_nettype none

module weir_mover_formal #(
    localparam int FingerprintWidth = 2,
    localparam int IndexWidth = 2,
    localparam int Indices = 1 << IndexWidth,
    // Any key will do: bucket numbers are only compared with each other.
    localparam logic [FingerprintWidth-1:0] Key = '0
) (
    input wire logic clk,
    input wire logic rst,
    input wire logic insert,
    input wire logic [FingerprintWidth-1:0] insert_fingerprint,
    input wire logic [IndexWidth-1:0] insert_index,
    input wire logic kill,
    input wire logic [IndexWidth-1:0] kill_index,
    input wire logic delete_offered,
    input wire logic [IndexWidth-1:0] delete_offered_index
);

  typedef struct packed {
    logic valid;
    logic [IndexWidth-1:0] index;
    logic [FingerprintWidth-1:0] fingerprint;
  } entry_t;

  logic started = 1'b0;
  logic ready;
  logic room;
  logic stash_hit;
  logic [IndexWidth-1:0] stash_index;
  logic pick;
  logic picked;
  logic [7:0] picked_slot;
  logic [FingerprintWidth-1:0] picked_fingerprint;
  logic [IndexWidth-1:0] picked_index;
  logic picked_evicted;
  logic picked_table;
  logic finish;
  logic [7:0] finish_slot;
  logic finish_keep;
  logic finish_swap;
  logic [FingerprintWidth-1:0] finish_fingerprint;
  logic [IndexWidth-1:0] finish_index;
  logic finish_table;
  logic finish_live;
  logic [3:0] level;
  logic delete_valid;
  logic [IndexWidth-1:0] delete_index;
  logic [1:0][0:0] delete_bucket;
  logic delete_done;
  logic deleted;
  logic [IndexWidth:0] deletions;
  logic [1:0][0:0] b_address;
  logic [1:0][0:0] b_write;
  entry_t b_entry;
  entry_t [1:0][0:0] b_data;
  logic [1:0][0:0] b_wrong;
  logic [1:0][0:0] b_over_wrong;

  weir_stash #(
      .Entries(8),
      .FingerprintWidth(FingerprintWidth),
      .IndexWidth(IndexWidth)
  ) stash (
      .s_fingerprint(Key),
      .m_hit(stash_hit),
      .m_index(stash_index),
      .*
  );

  weir_mover #(
      .Buckets(2),
      .Ways(1),
      .FingerprintWidth(FingerprintWidth),
      .IndexWidth(IndexWidth),
      .SlotWidth(8),
      .ReadLatency(3),
      .DeleteRest(1)
  ) mover (
      .*
  );

  // The tables: [table][bucket]. Clearing is left out.
  entry_t [1:0][1:0] memory;
  entry_t [2:0][1:0] line;
  // What stood in the buckets of `Key` when the stash was asked for it.
  entry_t [1:0][1:0] seen;

  assign b_data  = line[2];
  // All parities are right: with a wrong one a live key may be nowhere.
  assign b_wrong = '0;

  always_ff @(posedge clk) begin
    line[2:1] <= line[1:0];
    seen[1]   <= seen[0];
    for (int t = 0; t < 2; t++) begin
      line[0][t] <= memory[t][b_address[t]];
      seen[0][t] <= memory[t][Key[t]];
      if (ready && !rst && b_write[t]) begin
        memory[t][b_address[t]] <= b_entry;
      end
    end
  end

  // What each index stands for: a live key, a killed one.
  logic [Indices-1:0] live;
  logic [Indices-1:0] killed;
  logic [Indices-1:0][FingerprintWidth-1:0] fingerprint;
  logic [1:0] expected;
  logic [1:0][IndexWidth-1:0] expected_index;
  logic expected_next;
  logic [IndexWidth-1:0] expected_index_next;
  logic insert_is_new;
  logic [1:0][Indices-1:0] used;
  logic [2:0] age = '0;

  always_comb begin
    insert_is_new = 1'b1;
    expected_next = 1'b0;
    expected_index_next = '0;
    for (int i = 0; i < Indices; i++) begin
      if (live[i] && fingerprint[i] == Key) begin
        expected_next = 1'b1;
        expected_index_next = IndexWidth'(i);
      end
      if (live[i] && fingerprint[i] == insert_fingerprint) begin
        insert_is_new = 1'b0;
      end
    end
  end

  assign delete_bucket = fingerprint[delete_index];

  always_ff @(posedge clk) begin
    started <= 1'b1;
    age <= {age[1:0], 1'b1};
    expected <= {expected[0], expected_next};
    expected_index <= {expected_index[0], expected_index_next};
    used <= {used[0], live | killed};
    if (insert) begin
      live[insert_index] <= 1'b1;
      fingerprint[insert_index] <= insert_fingerprint;
    end
    if (kill) begin
      live[kill_index]   <= 1'b0;
      killed[kill_index] <= 1'b1;
    end
    if (delete_done) begin
      killed[delete_index] <= 1'b0;
      delete_valid <= 1'b0;
    end
    if (!delete_valid && delete_offered) begin
      delete_valid <= 1'b1;
      delete_index <= delete_offered_index;
    end
    if (rst) begin
      killed <= '0;
      delete_valid <= 1'b0;
      age <= '0;
    end
  end

  // At the start the tables hold the live keys, each once and where it belongs.
  logic consistent;
  always_comb begin
    consistent = 1'b1;
    for (int t = 0; t < 2; t++) begin
      for (int b = 0; b < 2; b++) begin
        if (memory[t][b].valid) begin
          if (memory[t][b].fingerprint[t] != 1'(b) || !live[memory[t][b].index] ||
              fingerprint[memory[t][b].index] != memory[t][b].fingerprint) begin
            consistent = 1'b0;
          end
          for (int b1 = 0; b1 < 2; b1++) begin
            if ((t == 0 || b1 != b) && memory[1][b1].valid && memory[1][b1].index == memory[t][b].index) begin
              consistent = 1'b0;
            end
          end
        end
      end
    end
    for (int i = 0; i < Indices; i++) begin
      if (live[i]) begin
        if (!(memory[0][fingerprint[i][0]].valid && memory[0][fingerprint[i][0]].index == IndexWidth'(i)) &&
            !(memory[1][fingerprint[i][1]].valid && memory[1][fingerprint[i][1]].index == IndexWidth'(i))) begin
          consistent = 1'b0;
        end
        for (int j = 0; j < i; j++) begin
          if (live[j] && fingerprint[j] == fingerprint[i]) begin
            consistent = 1'b0;
          end
        end
      end
    end
  end

  logic [1:0] in_bucket;
  logic bucket_hit;
  logic [IndexWidth-1:0] bucket_index;
  always_comb begin
    bucket_index = '0;
    for (int t = 0; t < 2; t++) begin
      in_bucket[t] = seen[1][t].valid && seen[1][t].fingerprint == Key;
      bucket_index |= seen[1][t].index & {IndexWidth{in_bucket[t]}};
    end
    bucket_hit = in_bucket != '0;
  end

  always_comb begin
    assume (rst == !started);
    assume (started || (consistent && !insert && !kill && !delete_offered));
    assume (!insert || (room && ready && !kill && !live[insert_index] && !killed[insert_index] && insert_is_new));
    assume (!kill || (ready && live[kill_index]));
    assume (!delete_offered || (killed[delete_offered_index]));
    if (age[2]) begin
      // Where the key is: the stash first, as in the lookup.
      assert (!expected[1] || stash_hit || bucket_hit);
      assert (!expected[1] || !stash_hit || stash_index == expected_index[1]);
      assert (!expected[1] || stash_hit || (in_bucket != 2'b11 && bucket_index == expected_index[1]));
      assert (expected[1] || !stash_hit || used[1][stash_index]);
      assert (expected[1] || stash_hit || !bucket_hit || used[1][bucket_index]);
      cover (finish && finish_live && finish_swap && !finish_keep);
      cover (delete_done);
    end
  end

endmodule

`default_nettype wire
