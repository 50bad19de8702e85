// A level-sensitive interrupt as a message of the DMA (MSI-X).
//
// Promise      One request for each rise of `irq`, repeated until the DMA acknowledges it.
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

  logic seen, earlier, pending, waits;

  weir_sync sync (
      .clk,
      .s_data(irq),
      .m_data(seen)
  );

  always_ff @(posedge clk) begin
    earlier <= seen;
    m_valid <= pending && !waits && !m_valid;
    if (m_valid) waits <= 1'b1;
    if (m_ack || m_fail) waits <= 1'b0;
    if (m_ack) pending <= 1'b0;
    if (seen && !earlier) pending <= 1'b1;
    if (rst) begin
      earlier <= 1'b0;
      m_valid <= 1'b0;
      waits   <= 1'b0;
      pending <= 1'b0;
    end
  end

endmodule

`default_nettype wire
