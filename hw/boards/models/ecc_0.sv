// Stand-in for the vendor's check-bit generator (ecc, PG092; 57 bits in, 7 check bits, registered). Its code is not
// published: here bit i is the parity of the data bits whose number + 1 has bit i set, and the last is that of all.

`default_nettype none

module ecc_0 (
    input var logic ecc_clk,
    input var logic ecc_clken,
    input var logic ecc_reset,
    input var logic [56:0] ecc_data_in,
    output var logic [56:0] ecc_data_out,
    output var logic [6:0] ecc_chkbits_out
);

  logic [6:0] check;

  always_comb begin
    check = {^ecc_data_in, 6'b0};
    for (int i = 0; i < 57; i++) if (ecc_data_in[i]) check[5:0] ^= 6'(i + 1);
  end

  always_ff @(posedge ecc_clk) begin
    if (ecc_clken) begin
      ecc_data_out <= ecc_data_in;
      ecc_chkbits_out <= check;
    end
    if (ecc_reset) begin
      ecc_data_out <= '0;
      ecc_chkbits_out <= '0;
    end
  end

endmodule

`default_nettype wire
