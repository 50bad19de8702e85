// CRC-32 of IEEE 802.3 over 64 bytes, lowest byte first, as Ethernet has it (start and result inverted).
//
// Latency      One clock, while `enable`.

`default_nettype none

module weir_crc32 (
    input var logic clk,
    input var logic enable,
    input var logic [511:0] data,
    output var logic [31:0] crc
);

  localparam logic [31:0] Polynomial = 32'hEDB8_8320;

  function automatic logic [31:0] step(logic [31:0] state, logic data_bit);
    return (state >> 1) ^ (state[0] ^ data_bit ? Polynomial : '0);
  endfunction

  // What a single one at bit i leaves after the bits behind it.
  function automatic logic [511:0][31:0] shares();
    shares[511] = step('0, 1'b1);
    for (int i = 510; i >= 0; i--) shares[i] = step(shares[i+1], 1'b0);
  endfunction

  function automatic logic [31:0] of_start();
    of_start = '1;
    for (int i = 0; i < 512; i++) of_start = step(of_start, 1'b0);
  endfunction

  function automatic logic [31:0][511:0] masks(logic [511:0][31:0] share);
    for (int b = 0; b < 32; b++) begin
      for (int i = 0; i < 512; i++) masks[b][i] = share[i][b];
    end
  endfunction

  localparam logic [31:0][511:0] Mask = masks(shares());
  localparam logic [31:0] Start = ~of_start();

  always_ff @(posedge clk) begin
    if (enable) begin
      for (int b = 0; b < 32; b++) crc[b] <= ^(data & Mask[b]) ^ Start[b];
    end
  end

endmodule

`default_nettype wire
