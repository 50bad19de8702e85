// Keyed fingerprint of a flow key: Toeplitz hash over all bits of key_t, then a permutation.
//
// Promise      Bit i of the Toeplitz hash is the parity of key & seed[i +: bits of the key]: for two keys and a
//              seed drawn at random the hashes are equal with a chance of 2^-80. It is linear, so that keys which
//              count up (ports of a scan, addresses of a subnet) would often fill half of the buckets only; four
//              rounds of chi and rotations in five lanes of 16 bits end that. The permutation maps different
//              hashes to different fingerprints.
// Throughput   One key per clock, no stalls.
// Latency      weir_lookup_pkg::HashLatency.
// Hazards      The seed may only change while the key table is empty.

`default_nettype none

module weir_hash
  import weir_pkg::*;
  import weir_lookup_pkg::*;
(
    input  wire logic    clk,
    input  wire seed_t   seed,
    // 0: the VLAN ids are left out.
    input  wire logic    vlan_in_key,
    input  wire key_t    s_key,
    output fingerprint_t m_fingerprint
);

  localparam int KeyWidth = $bits(key_t);
  localparam int Chunk = 80;
  localparam int Chunks = KeyWidth / Chunk;

  localparam int Lanes = 5;
  localparam int LaneWidth = FingerprintWidth / Lanes;

  typedef logic [Lanes-1:0][LaneWidth-1:0] state_t;

  if (KeyWidth % Chunk != 0) begin : gen_check_chunk
    $error("Chunk must divide the width of the key");
  end

  key_t key;
  logic [FingerprintWidth-1:0][Chunks-1:0] parity;
  state_t linear;
  state_t mixed;

  function automatic logic [LaneWidth-1:0] rotated(logic [LaneWidth-1:0] bits, int by);
    return LaneWidth'({bits, bits} >> by);
  endfunction

  // Each lane is added to two rotations of itself: an odd number of terms can be undone in a lane of 2^n bits.
  function automatic state_t round(state_t in);
    state_t chi;
    state_t out;
    for (int i = 0; i < Lanes; i++) begin
      chi[i] = in[i] ^ (~in[(i+1)%Lanes] & in[(i+2)%Lanes]);
    end
    out[0] = chi[0] ^ rotated(chi[0], 3) ^ rotated(chi[0], 12);
    out[1] = chi[1] ^ rotated(chi[1], 1) ^ rotated(chi[1], 6);
    out[2] = chi[2] ^ rotated(chi[2], 5) ^ rotated(chi[2], 7);
    out[3] = chi[3] ^ rotated(chi[3], 2) ^ rotated(chi[3], 11);
    out[4] = chi[4] ^ rotated(chi[4], 9) ^ rotated(chi[4], 13);
    return out;
  endfunction

  always_ff @(posedge clk) begin
    key <= s_key;
    if (!vlan_in_key) begin
      key.vlans <= '0;
    end
    for (int i = 0; i < FingerprintWidth; i++) begin
      for (int c = 0; c < Chunks; c++) begin
        parity[i][c] <= ^(key[c*Chunk+:Chunk] & seed[i+c*Chunk+:Chunk]);
      end
    end
    for (int i = 0; i < FingerprintWidth; i++) begin
      linear[i/LaneWidth][i%LaneWidth] <= ^parity[i];
    end
    mixed <= round(round(linear));
    m_fingerprint <= round(round(mixed));
  end

endmodule

`default_nettype wire
