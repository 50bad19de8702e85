// A level-sensitive interrupt as a message of the DMA (MSI-X).
//
// Promise      One message for each rise of `irq`, asked for again when the DMA fails. A request stays until the DMA has
//              answered it, as PG302 wants it, and is low for a clock before the next.
// Hazards      A cause that comes while another still lasts makes no message: the host is to look until irq's causes are
//              all gone (docs/src/registers.md, host_irq).

`default_nettype none

module weir_irq_message (
    input var logic clk,
    input var logic rst,
    // Of any clock.
    input var logic irq,

    output var logic m_valid,
    input var  logic m_ack,
    input var  logic m_fail
);

  logic seen, earlier, pending;

  weir_sync sync (
      .clk,
      .s_data(irq),
      .m_data(seen)
  );

  // A rise while a request stands makes another: the message may have left before it.
  always_ff @(posedge clk) begin
    earlier <= seen;
    if (m_valid) begin
      m_valid <= !m_ack && !m_fail;
      if (m_fail) pending <= 1'b1;
    end else begin
      m_valid <= pending;
      pending <= 1'b0;
    end
    if (seen && !earlier) pending <= 1'b1;
    if (rst) begin
      earlier <= 1'b0;
      m_valid <= 1'b0;
      pending <= 1'b0;
    end
  end

`ifndef SYNTHESIS
  a_stays :
  assert property (@(posedge clk) disable iff (rst) m_valid && !m_ack && !m_fail |=> m_valid);
`endif

endmodule

`default_nettype wire
