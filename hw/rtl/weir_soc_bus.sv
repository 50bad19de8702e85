// The CPU's two buses (instructions, data; Wishbone) onto its boot ROM, its memory and the registers.
//
// Promise      One access at a time; when both buses ask, they take turns. An access ends with `ack`, or with `err` when
//              no slave has its address, a write goes to the ROM or the slave says so; then 0 is read. `unknown` for a
//              clock when no slave has it, with m_address.
// Addresses    0x0000_0000 ROM, 0x4000_0000 memory, 0xF000_0000 registers. Of the bits above a slave's size
//              all must be 0.
// Throughput   4 clocks per word of ROM or memory.
// Slaves       m_request for a clock with one bit of m_select; m_ signals stay until the slave's bit of m_done.
// Hazards      A master that is reset within an access: the access goes on to its end; `idle` says when.

`default_nettype none

module weir_soc_bus #(
    parameter int RomBytes = 4096,
    parameter int RamBytes = 128 << 10,
    parameter int RegisterBytes = 16 << 10
) (
    input var logic clk,
    input var logic rst,

    // 0 instructions, 1 data. Word addresses.
    input var logic [1:0] s_cyc,
    input var logic [1:0] s_stb,
    input var logic [1:0] s_we,
    input var logic [1:0][29:0] s_adr,
    input var logic [1:0][31:0] s_dat_w,
    input var logic [1:0][3:0] s_sel,
    output var logic [1:0] s_ack,
    output var logic [1:0] s_err,
    output var logic [31:0] s_dat_r,

    // 0 ROM, 1 memory, 2 registers.
    output var logic [2:0] m_request,
    output var logic m_write,
    output var logic [29:0] m_address,
    output var logic [31:0] m_wdata,
    output var logic [3:0] m_strobe,
    input var logic [2:0] m_done,
    input var logic [2:0] m_error,
    input var logic [2:0][31:0] m_data,

    output var logic unknown,
    output var logic idle
);

  localparam int RomBits = $clog2(RomBytes) - 2;
  localparam int RamBits = $clog2(RamBytes) - 2;
  localparam int RegisterBits = $clog2(RegisterBytes) - 2;
  localparam logic [29:0] RamBase = 30'(32'h4000_0000 >> 2);
  localparam logic [29:0] RegisterBase = 30'(32'hF000_0000 >> 2);

  typedef enum logic [1:0] {
    IDLE,
    DECODE,
    ACCESS,
    ANSWER
  } state_e;

  state_e state;
  logic turn, chosen;
  logic [1:0] wanted;
  logic [2:0] hit;

  assign idle = state == IDLE;
  assign wanted = s_cyc & s_stb;
  assign chosen = wanted[!turn] ? !turn : turn;

  assign hit = {
    m_address[29:RegisterBits] == RegisterBase[29:RegisterBits],
    m_address[29:RamBits] == RamBase[29:RamBits],
    m_address[29:RomBits] == '0 && !m_write
  };

  always_ff @(posedge clk) begin
    s_ack <= '0;
    s_err <= '0;
    m_request <= '0;
    unknown <= 1'b0;
    unique case (state)
      IDLE: begin
        if (wanted != '0) begin
          turn <= chosen;
          m_write <= s_we[chosen];
          m_address <= s_adr[chosen];
          m_wdata <= s_dat_w[chosen];
          m_strobe <= s_sel[chosen];
          state <= DECODE;
        end
      end
      DECODE: begin
        m_request <= hit;
        state <= ACCESS;
        if (hit == '0) begin
          s_err[turn] <= 1'b1;
          unknown <= 1'b1;
          state <= ANSWER;
        end
      end
      ACCESS: begin
        if (m_done != '0) begin
          s_ack[turn] <= (m_done & m_error) == '0;
          s_err[turn] <= (m_done & m_error) != '0;
          state <= ANSWER;
        end
      end
      // The master sees its answer; what it asks next is there from the next clock on.
      default: state <= IDLE;
    endcase
    s_dat_r <= '0;
    for (int i = 0; i < 3; i++) begin
      if (m_done[i] && !m_error[i]) s_dat_r <= m_data[i];
    end
    if (rst) begin
      state <= IDLE;
      turn <= 1'b0;
      s_ack <= '0;
      s_err <= '0;
      m_request <= '0;
      unknown <= 1'b0;
    end
  end

`ifndef SYNTHESIS
  a_one_slave :
  assert property (@(posedge clk) disable iff (rst) $onehot0(m_request) && $onehot0(m_done));
  a_one_answer :
  assert property (@(posedge clk) disable iff (rst) $onehot0({s_ack, s_err}));
  a_no_answer_unasked :
  assert property (@(posedge clk) disable iff (rst) m_done != '0 |-> state == ACCESS);
`endif

endmodule

`default_nettype wire
