// FIFO between two clocks, first word falls through to a registered output.
//
// Promise      What is accepted at s_ comes out at m_ in the same order, once.
// Capacity     Depth words in the memory and two in registers behind it.
// Throughput   One word per clock of either side.
// Latency      Seven clocks of m_clk, or one more, from an accepted word to m_valid when empty.
// Backpressure s_ready is a register. Room that m_ made is seen at s_ four or five clocks later.
// Resets       Either side's reset empties the FIFO and resets the other: s_reset and m_reset tell. A reset is to last
//              for 16 clocks of the slower side; meanwhile s_ready may be high, and what comes then is lost.
// Constraints  hw/boards/common/crossings.tcl finds pointers and memory by their names.

`default_nettype none

module weir_async_fifo #(
    parameter int Width = 64,
    // A power of two, at least 16: the room that is seen is some clocks old.
    parameter int Depth = 16,
    // "distributed", "block"; only synthesis reads it.
    // verilator lint_off UNUSEDPARAM
    parameter string RamStyle = "distributed"
    // verilator lint_on UNUSEDPARAM
) (
    input var logic s_clk,
    input var logic s_rst,
    input var logic [Width-1:0] s_data,
    input var logic s_valid,
    output var logic s_ready,
    output var logic s_reset,

    input var logic m_clk,
    input var logic m_rst,
    output var logic [Width-1:0] m_data,
    output var logic m_valid,
    input var logic m_ready,
    output var logic m_reset
);

  localparam int AddressWidth = $clog2(Depth);

  typedef logic [AddressWidth:0] pointer_t;

  if (Width < 1) begin : gen_check_width
    $error("Width must be positive");
  end
  if (Depth < 16 || Depth != 1 << AddressWidth) begin : gen_check_depth
    $error("Depth must be a power of two and at least 16");
  end

  function automatic pointer_t to_gray(pointer_t value);
    return value ^ (value >> 1);
  endfunction

  function automatic pointer_t from_gray(pointer_t gray);
    for (int i = 0; i <= AddressWidth; i++) from_gray[i] = ^(gray >> i);
  endfunction

  (* ram_style = RamStyle *)
  logic [Width-1:0] async_memory[Depth];

  // --- Resets: each side knows of the other's before it can see what that made of the pointers -----

  logic s_rst_other, m_rst_other;

  weir_sync s_reset_sync (
      .clk(s_clk),
      .s_data(m_rst),
      .m_data(s_rst_other)
  );
  weir_sync m_reset_sync (
      .clk(m_clk),
      .s_data(s_rst),
      .m_data(m_rst_other)
  );
  assign s_reset = s_rst || s_rst_other;
  assign m_reset = m_rst || m_rst_other;

  // --- In ------------------------------------------------------------------------------------------

  pointer_t write_pointer, write_next, write_gray;
  pointer_t read_gray, read_gray_seen, read_seen;
  pointer_t stored;
  logic write;

  weir_sync #(
      .Width (AddressWidth + 1),
      .Stages(3)
  ) read_sync (
      .clk(s_clk),
      .s_data(read_gray),
      .m_data(read_gray_seen)
  );

  assign write = s_valid && s_ready;
  assign write_next = write_pointer + pointer_t'(write);
  assign stored = write_next - read_seen;

  always_ff @(posedge s_clk) begin
    if (write) begin
      async_memory[write_pointer[AddressWidth-1:0]] <= s_data;
    end
  end

  always_ff @(posedge s_clk) begin
    write_pointer <= write_next;
    write_gray <= to_gray(write_next);
    read_seen <= from_gray(read_gray_seen);
    s_ready <= !stored[AddressWidth];
    if (s_reset) begin
      write_pointer <= '0;
      write_gray <= '0;
      read_seen <= '0;
      s_ready <= 1'b0;
    end
  end

  // --- Out -----------------------------------------------------------------------------------------

  pointer_t read_pointer, read_next, write_gray_seen;
  // Output register of the RAM, then m_data: with both, a block RAM keeps its own output register.
  logic [Width-1:0] async_data;
  logic ram_valid, has_word, read, ram_advance, out_advance;

  weir_sync #(
      .Width (AddressWidth + 1),
      .Stages(3)
  ) write_sync (
      .clk(m_clk),
      .s_data(write_gray),
      .m_data(write_gray_seen)
  );

  assign out_advance = !m_valid || m_ready;
  assign ram_advance = !ram_valid || out_advance;
  assign has_word = write_gray_seen != read_gray;
  assign read = has_word && ram_advance;
  assign read_next = read_pointer + pointer_t'(read);

  always_ff @(posedge m_clk) begin
    if (read) begin
      async_data <= async_memory[read_pointer[AddressWidth-1:0]];
    end
    if (out_advance) begin
      m_data <= async_data;
    end
  end

  always_ff @(posedge m_clk) begin
    read_pointer <= read_next;
    read_gray <= to_gray(read_next);
    if (ram_advance) begin
      ram_valid <= read;
    end
    if (out_advance) begin
      m_valid <= ram_valid;
    end
    if (m_reset) begin
      read_pointer <= '0;
      read_gray <= '0;
      ram_valid <= 1'b0;
      m_valid <= 1'b0;
    end
  end

`ifndef SYNTHESIS
  a_output_stable :
  assert property (@(posedge m_clk) disable iff (m_reset) m_valid && !m_ready |=> m_reset || (m_valid && $stable(
      m_data
  )));
  a_never_overflows :
  assert property (@(posedge s_clk) disable iff (s_reset) 32'(pointer_t'(write_pointer - read_seen)) <= Depth);
  a_one_bit_at_a_time :
  assert property (@(posedge s_clk) disable iff (s_reset) $countones(write_gray ^ $past(write_gray)) <= 1);
`endif

endmodule

`default_nettype wire
