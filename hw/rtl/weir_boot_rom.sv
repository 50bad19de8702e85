// Boot ROM of the CPU.
//
// Promise      `s_done` with the word two clocks after s_request. Without a file every word is a jump to itself.
// Throughput   One word per clock.

`default_nettype none

module weir_boot_rom #(
    parameter int Words = 1024,
    // Words in hexadecimal, one a line ($readmemh).
    // verilator lint_off WIDTHTRUNC
    parameter string File = "",
    // verilator lint_on WIDTHTRUNC
    localparam int AddressWidth = $clog2(Words)
) (
    input var logic clk,
    input var logic rst,

    input var logic s_request,
    input var logic [AddressWidth-1:0] s_address,
    output var logic s_done,
    output var logic [31:0] s_data
);

  localparam logic [31:0] JumpToItself = 32'h0000_006F;

  (* rom_style = "block" *)
  logic [31:0] memory[Words];
  logic [31:0] word;
  logic read;

  initial begin
    for (int i = 0; i < Words; i++) begin
      memory[i] = JumpToItself;
    end
    if (File != "") $readmemh(File, memory);
  end

  always_ff @(posedge clk) begin
    word   <= memory[s_address];
    s_data <= word;
    read   <= s_request;
    s_done <= read;
    if (rst) begin
      read   <= 1'b0;
      s_done <= 1'b0;
    end
  end

endmodule

`default_nettype wire
