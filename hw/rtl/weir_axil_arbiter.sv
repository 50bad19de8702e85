// Two AXI4-Lite masters take turns at one slave: registers that host and CPU share.
//
// Promise      One access at a time; who waits, is next after the one that has the turn. A master's reads and writes come
//              in an order of their own choice (AXI gives none), the read first when both wait.
//              `turn` says whose access is at the slave, from its first clock to its response.
// Throughput   One access at a time: 5 clocks and what the slave needs.
// Backpressure Each side's own; a master that does not take its response holds up the other.
// Errors       The slave's response goes to the master as it is. `failed` for a clock with `failed_address`
//              for each that is not OKAY; `done` for a clock with each access.

`default_nettype none

module weir_axil_arbiter #(
    parameter int AddressWidth = 14
) (
    input var logic clk,
    input var logic rst,

    input var logic [AddressWidth-1:0] s0_awaddr,
    input var logic s0_awvalid,
    output var logic s0_awready,
    input var logic [31:0] s0_wdata,
    input var logic [3:0] s0_wstrb,
    input var logic s0_wvalid,
    output var logic s0_wready,
    output var logic [1:0] s0_bresp,
    output var logic s0_bvalid,
    input var logic s0_bready,
    input var logic [AddressWidth-1:0] s0_araddr,
    input var logic s0_arvalid,
    output var logic s0_arready,
    output var logic [31:0] s0_rdata,
    output var logic [1:0] s0_rresp,
    output var logic s0_rvalid,
    input var logic s0_rready,

    input var logic [AddressWidth-1:0] s1_awaddr,
    input var logic s1_awvalid,
    output var logic s1_awready,
    input var logic [31:0] s1_wdata,
    input var logic [3:0] s1_wstrb,
    input var logic s1_wvalid,
    output var logic s1_wready,
    output var logic [1:0] s1_bresp,
    output var logic s1_bvalid,
    input var logic s1_bready,
    input var logic [AddressWidth-1:0] s1_araddr,
    input var logic s1_arvalid,
    output var logic s1_arready,
    output var logic [31:0] s1_rdata,
    output var logic [1:0] s1_rresp,
    output var logic s1_rvalid,
    input var logic s1_rready,

    output var logic [AddressWidth-1:0] m_awaddr,
    output var logic m_awvalid,
    input var logic m_awready,
    output var logic [31:0] m_wdata,
    output var logic [3:0] m_wstrb,
    output var logic m_wvalid,
    input var logic m_wready,
    input var logic [1:0] m_bresp,
    input var logic m_bvalid,
    output var logic m_bready,
    output var logic [AddressWidth-1:0] m_araddr,
    output var logic m_arvalid,
    input var logic m_arready,
    input var logic [31:0] m_rdata,
    input var logic [1:0] m_rresp,
    input var logic m_rvalid,
    output var logic m_rready,

    output var logic turn,
    output var logic done,
    output var logic failed,
    output var logic [AddressWidth-1:0] failed_address
);

  typedef enum logic [1:0] {
    IDLE,
    // At the slave; then the response at the master.
    ACCESS,
    ANSWER
  } state_e;

  state_e state;
  logic is_write;
  logic [AddressWidth-1:0] address;
  logic [31:0] answer_data;
  logic [1:0] answer;
  // In IDLE: who would like to, and what.
  logic [1:0] reads, writes;
  logic chosen, chosen_reads;

  assign reads = {s1_arvalid, s0_arvalid};
  assign writes = {s1_awvalid && s1_wvalid, s0_awvalid && s0_wvalid};
  assign chosen = (reads[!turn] || writes[!turn]) ? !turn : turn;
  assign chosen_reads = reads[chosen];

  // Ready for the one that was taken in the clock before.
  logic [1:0] take_read, take_write;
  assign {s1_arready, s0_arready} = take_read;
  assign {s1_awready, s0_awready} = take_write;
  assign {s1_wready, s0_wready}   = take_write;

  logic [1:0] read_answers, write_answers;
  assign {s1_rvalid, s0_rvalid} = read_answers;
  assign {s1_bvalid, s0_bvalid} = write_answers;
  assign {s1_rdata, s0_rdata} = {2{answer_data}};
  assign {s1_rresp, s0_rresp} = {2{answer}};
  assign {s1_bresp, s0_bresp} = {2{answer}};

  assign m_awaddr = address;
  assign m_araddr = address;
  assign m_bready = state == ACCESS;
  assign m_rready = state == ACCESS;
  assign failed_address = address;

  always_ff @(posedge clk) begin
    take_read <= '0;
    take_write <= '0;
    done <= 1'b0;
    failed <= 1'b0;
    if (m_awready) m_awvalid <= 1'b0;
    if (m_wready) m_wvalid <= 1'b0;
    if (m_arready) m_arvalid <= 1'b0;

    unique case (state)
      IDLE: begin
        // A request that was just taken is still to be seen in its clock of ready.
        if ((|reads || |writes) && take_read == '0 && take_write == '0) begin
          turn <= chosen;
          is_write <= !chosen_reads;
          take_read[chosen] <= chosen_reads;
          take_write[chosen] <= !chosen_reads;
          m_arvalid <= chosen_reads;
          m_awvalid <= !chosen_reads;
          m_wvalid <= !chosen_reads;
          state <= ACCESS;
        end
      end
      ACCESS: begin
        if (is_write ? m_bvalid : m_rvalid) begin
          done <= 1'b1;
          failed <= (is_write ? m_bresp : m_rresp) != '0;
          write_answers[turn] <= is_write;
          read_answers[turn] <= !is_write;
          state <= ANSWER;
        end
      end
      ANSWER: begin
        if (is_write ? (turn ? s1_bready : s0_bready) : (turn ? s1_rready : s0_rready)) begin
          write_answers <= '0;
          read_answers <= '0;
          state <= IDLE;
        end
      end
      default: state <= IDLE;
    endcase

    if (rst) begin
      state <= IDLE;
      turn <= 1'b0;
      take_read <= '0;
      take_write <= '0;
      m_awvalid <= 1'b0;
      m_wvalid <= 1'b0;
      m_arvalid <= 1'b0;
      read_answers <= '0;
      write_answers <= '0;
      done <= 1'b0;
      failed <= 1'b0;
    end
  end

  always_ff @(posedge clk) begin
    if (state == IDLE) begin
      if (chosen_reads) address <= chosen ? s1_araddr : s0_araddr;
      else address <= chosen ? s1_awaddr : s0_awaddr;
      m_wdata <= chosen ? s1_wdata : s0_wdata;
      m_wstrb <= chosen ? s1_wstrb : s0_wstrb;
    end
    if (state == ACCESS) begin
      answer_data <= m_rdata;
      answer <= is_write ? m_bresp : m_rresp;
    end
  end

`ifndef SYNTHESIS
  a_ready_only_when_offered :
  assert property (@(posedge clk) disable iff (rst) (take_read & ~reads) == '0 && (take_write & ~writes) == '0);
  a_one_answer :
  assert property (@(posedge clk) disable iff (rst) $onehot0({read_answers, write_answers}));
  a_read_request_stable :
  assert property (@(posedge clk) disable iff (rst) m_arvalid && !m_arready |=> m_arvalid && $stable(m_araddr));
  a_write_request_stable :
  assert property (@(posedge clk) disable iff (rst) m_awvalid && !m_awready |=> m_awvalid && $stable(
      {m_awaddr, m_wdata, m_wstrb}
  ));
  a_read_answer_stable :
  assert property (@(posedge clk) disable iff (rst) s0_rvalid && !s0_rready |=> s0_rvalid && $stable(
      {s0_rdata, s0_rresp}
  ));
  a_turn_while_busy :
  assert property (@(posedge clk) disable iff (rst) state != IDLE |=> $stable(turn));
`endif

endmodule

`default_nettype wire
