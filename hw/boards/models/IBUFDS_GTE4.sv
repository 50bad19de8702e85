// Stand-in for the vendor's buffer of a transceiver's reference clock; ODIV2 is undivided, as after configuration.

`default_nettype none

module IBUFDS_GTE4 (
    input var  logic CEB,
    input var  logic I,
    input var  logic IB,
    output var logic O,
    output var logic ODIV2
);

  assign O = I && !IB && !CEB;
  assign ODIV2 = O;

endmodule

`default_nettype wire
