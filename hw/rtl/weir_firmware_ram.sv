// Memory of the CPU, with a second port for the host's load window. Each byte has a parity bit.
//
// Promise      CPU: s_done two clocks after s_request, with the word as it was before a write of the same access.
//              Window: b_data is the word at b_address two clocks before. Each read word of either port is checked
//              (of the window when b_read says that it is used): `bad` for a clock, and its address.
// Throughput   One access per clock and port.
// Content      Zeros from configuration; no reset touches it.
// Injection    After `flip`, the next word that the window writes has its lowest bit inverted behind the parity.
// Hazards      Both ports at one address, one of them writing: what is read is not defined, so load with the CPU in
//              reset.

`default_nettype none

module weir_firmware_ram #(
    parameter int Words = 32768,
    localparam int AddressWidth = $clog2(Words)
) (
    input var logic clk,
    input var logic rst,

    input var logic s_request,
    input var logic s_write,
    input var logic [AddressWidth-1:0] s_address,
    input var logic [31:0] s_wdata,
    input var logic [3:0] s_strobe,
    output var logic s_done,
    output var logic [31:0] s_data,

    input var logic [AddressWidth-1:0] b_address,
    input var logic b_write,
    input var logic [31:0] b_wdata,
    input var logic b_read,
    output var logic [31:0] b_data,

    input var logic flip,
    output var logic bad,
    output var logic [AddressWidth-1:0] bad_address
);

  // Four bytes, each with its parity above it.
  typedef logic [3:0][8:0] word_t;

  function automatic word_t protect(logic [31:0] value);
    word_t word;
    for (int i = 0; i < 4; i++) word[i] = {^value[8*i+:8], value[8*i+:8]};
    return word;
  endfunction

  function automatic logic [31:0] plain(word_t word);
    logic [31:0] value;
    for (int i = 0; i < 4; i++) value[8*i+:8] = word[i][7:0];
    return value;
  endfunction

  function automatic logic wrong(word_t word);
    logic [3:0] lanes;
    for (int i = 0; i < 4; i++) lanes[i] = ^word[i];
    return |lanes;
  endfunction

  (* ram_style = "block" *)
  word_t memory[Words];
  initial memory = '{default: '0};

  word_t a_write_word, b_write_word, a_word, b_word, a_read_word, b_read_word;
  logic a_write, b_flip;
  logic [AddressWidth-1:0] a_address, b_address_1;
  logic flip_next;

  always_comb begin
    a_write_word = protect(s_wdata);
    b_write_word = protect(b_wdata);
    b_write_word[0][0] ^= b_flip;
  end
  assign a_write = s_request && s_write;
  assign b_flip  = flip_next || flip;

  always_ff @(posedge clk) begin
    for (int i = 0; i < 4; i++) begin
      if (a_write && s_strobe[i]) memory[s_address][i] <= a_write_word[i];
    end
    a_word <= memory[s_address];
  end

  // A memory with two ports.
  // verilator lint_off MULTIDRIVEN
  always_ff @(posedge clk) begin
    if (b_write) memory[b_address] <= b_write_word;
    b_word <= memory[b_address];
  end
  // verilator lint_on MULTIDRIVEN

  logic a_access, a_reads, a_check, b_check;
  logic [AddressWidth-1:0] a_check_address, b_check_address;

  always_ff @(posedge clk) begin
    a_read_word <= a_word;
    b_read_word <= b_word;
    a_address <= s_address;
    b_address_1 <= b_address;
    a_check_address <= a_address;
    b_check_address <= b_address_1;
    a_access <= s_request;
    a_reads <= s_request && !s_write;
    s_done <= a_access;
    a_check <= a_reads;
    // The word that the window shows while it is read.
    b_check <= b_read;
    bad <= (a_check && wrong(a_read_word)) || (b_check && wrong(b_read_word));
    bad_address <= a_check && wrong(a_read_word) ? a_check_address : b_check_address;
    flip_next <= b_flip && !b_write;
    if (rst) begin
      a_access <= 1'b0;
      a_reads <= 1'b0;
      s_done <= 1'b0;
      a_check <= 1'b0;
      b_check <= 1'b0;
      bad <= 1'b0;
      flip_next <= 1'b0;
    end
  end

  assign s_data = plain(a_read_word);
  assign b_data = plain(b_read_word);

endmodule

`default_nettype wire
