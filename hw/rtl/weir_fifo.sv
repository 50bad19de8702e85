// Synchronous FIFO, first word falls through to a registered output.
//
// Promise      What is accepted at s_ comes out at m_ in the same order, once.
// Capacity     Depth words in the memory and two in registers behind it.
// Throughput   One word in and one out per clock, at every fill level.
// Latency      Three clocks from an accepted word to m_valid when empty.
// Backpressure s_ready is a register and does not depend on m_ready of the same clock. After a
//              memory that was full has been read, s_ready rises one clock later.
// level        Words held, 0 .. Depth + 2; counts a word from the clock after it was accepted until
//              the clock after it was taken.
// Hazards      The memory is never read at the address that is written in the same clock, so any
//              collision behaviour of the RAM will do. RamStyle "ultra" needs a deep FIFO to pay.

`default_nettype none

module weir_fifo #(
    parameter int Width = 64,
    // A power of two, at least 2.
    parameter int Depth = 512,
    // "auto", "distributed", "block", "ultra"; only synthesis reads it.
    // verilator lint_off UNUSEDPARAM
    parameter string RamStyle = "auto",
    // verilator lint_on UNUSEDPARAM
    localparam int LevelWidth = $clog2(Depth + 3)
) (
    input var logic clk,
    input var logic rst,

    input var logic [Width-1:0] s_data,
    input var logic s_valid,
    output var logic s_ready,

    output var logic [Width-1:0] m_data,
    output var logic m_valid,
    input var logic m_ready,

    output var logic [LevelWidth-1:0] level
);

  localparam int AddressWidth = $clog2(Depth);

  if (Width < 1) begin : gen_check_width
    $error("Width must be positive");
  end
  if (Depth < 2 || Depth != 1 << AddressWidth) begin : gen_check_depth
    $error("Depth must be a power of two and at least 2");
  end

  (* ram_style = RamStyle *)
  logic [Width-1:0] memory[Depth];

  logic [AddressWidth-1:0] write_address;
  logic [AddressWidth-1:0] read_address;
  // Words in the memory.
  logic [AddressWidth:0] stored;
  logic empty;

  // Output register of the RAM, then m_data: with both, a block RAM keeps its own output register.
  logic [Width-1:0] ram_data;
  logic ram_valid;

  logic write;
  logic read;
  logic ram_advance;
  logic out_advance;

  assign write = s_valid && s_ready;
  assign out_advance = !m_valid || m_ready;
  assign ram_advance = !ram_valid || out_advance;
  assign read = ram_advance && !empty;

  always_ff @(posedge clk) begin
    if (write) begin
      memory[write_address] <= s_data;
    end
    if (read) begin
      ram_data <= memory[read_address];
    end
    if (out_advance) begin
      m_data <= ram_data;
    end
  end

  always_ff @(posedge clk) begin
    if (write) begin
      write_address <= write_address + 1'b1;
    end
    if (read) begin
      read_address <= read_address + 1'b1;
    end
    if (ram_advance) begin
      ram_valid <= read;
    end
    if (out_advance) begin
      m_valid <= ram_valid;
    end
    if (write && !read) begin
      stored  <= stored + 1'b1;
      empty   <= 1'b0;
      s_ready <= stored != (AddressWidth + 1)'(Depth - 1);
    end else if (read && !write) begin
      stored  <= stored - 1'b1;
      empty   <= stored == (AddressWidth + 1)'(1);
      s_ready <= 1'b1;
    end
    level <= level + LevelWidth'(write) - LevelWidth'(m_valid && m_ready);

    if (rst) begin
      write_address <= '0;
      read_address <= '0;
      stored <= '0;
      empty <= 1'b1;
      s_ready <= 1'b1;
      ram_valid <= 1'b0;
      m_valid <= 1'b0;
      level <= '0;
    end
  end

`ifndef SYNTHESIS
  a_output_stable :
  assert property (@(posedge clk) disable iff (rst) m_valid && !m_ready |=> m_valid && $stable(m_data));
  a_ready_stable :
  assert property (@(posedge clk) disable iff (rst) s_ready && !s_valid |=> s_ready);
  a_level_conserves :
  assert property (@(posedge clk) disable iff (rst) 32'(level) == 32'(stored) + 32'(ram_valid) + 32'(m_valid));
  a_no_collision :
  assert property (@(posedge clk) disable iff (rst) write && read |-> write_address != read_address);
`endif

endmodule

`default_nettype wire
