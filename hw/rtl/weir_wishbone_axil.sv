// The CPU's accesses to registers, as AXI4-Lite.
//
// Promise      One access per `s_request`; `s_done` for a clock when it is over, s_data with it, `s_error` when the
//              response was not OKAY.
// Throughput   One access at a time: 2 clocks and what the slave needs.
// Hazards      A request while one is under way is lost; s_ inputs are to stay as they are until s_done.

`default_nettype none

module weir_wishbone_axil #(
    parameter int AddressWidth = 14
) (
    input var logic clk,
    input var logic rst,

    input var logic s_request,
    input var logic s_write,
    input var logic [AddressWidth-1:0] s_address,
    input var logic [31:0] s_wdata,
    input var logic [3:0] s_strobe,
    output var logic s_done,
    output var logic s_error,
    output var logic [31:0] s_data,

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
    output var logic m_rready
);

  assign m_awaddr = s_address;
  assign m_araddr = s_address;
  assign m_wdata  = s_wdata;
  assign m_wstrb  = s_strobe;
  assign m_bready = 1'b1;
  assign m_rready = 1'b1;

  always_ff @(posedge clk) begin
    s_data  <= m_rdata;
    s_done  <= m_bvalid || m_rvalid;
    s_error <= m_bvalid ? m_bresp != '0 : m_rresp != '0;
    if (m_awready) m_awvalid <= 1'b0;
    if (m_wready) m_wvalid <= 1'b0;
    if (m_arready) m_arvalid <= 1'b0;
    if (s_request) begin
      m_awvalid <= s_write;
      m_wvalid  <= s_write;
      m_arvalid <= !s_write;
    end
    if (rst) begin
      s_done <= 1'b0;
      m_awvalid <= 1'b0;
      m_wvalid <= 1'b0;
      m_arvalid <= 1'b0;
    end
  end

`ifndef SYNTHESIS
  a_read_request_stable :
  assert property (@(posedge clk) disable iff (rst) m_arvalid && !m_arready |=> m_arvalid && $stable(m_araddr));
  a_write_request_stable :
  assert property (@(posedge clk) disable iff (rst) m_awvalid && !m_awready |=> m_awvalid && $stable(
      {m_awaddr, m_wdata, m_wstrb}
  ));
  a_one_answer :
  assert property (@(posedge clk) disable iff (rst) !(m_bvalid && m_rvalid));
`endif

endmodule

`default_nettype wire
