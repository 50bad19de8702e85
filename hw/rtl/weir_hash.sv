// Keyed fingerprint of a flow key: Toeplitz hash over all bits of key_t.
//
// Promise      Bit i of the fingerprint is the parity of key & seed[i +: bits of the key]. For two keys and a
//              seed drawn at random the fingerprints are equal with a chance of 2^-80.
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

  if (KeyWidth % Chunk != 0) begin : gen_check_chunk
    $error("Chunk must divide the width of the key");
  end

  key_t key;
  logic [FingerprintWidth-1:0][Chunks-1:0] parity;

  always_ff @(posedge clk) begin
    key <= s_key;
    if (!vlan_in_key) begin
      key.vlans <= '0;
    end
    for (int i = 0; i < FingerprintWidth; i++) begin
      for (int c = 0; c < Chunks; c++) begin
        parity[i][c] <= ^(key[c*Chunk+:Chunk] & seed[i+c*Chunk+:Chunk]);
      end
      m_fingerprint[i] <= ^parity[i];
    end
  end

endmodule

`default_nettype wire
