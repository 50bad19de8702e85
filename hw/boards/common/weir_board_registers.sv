// Registers of the board beside those of the card, and the way to both.
//
//   s_ (host) --+-- 0x0000 .. 0x3fff  the card's registers, m_
//               '-- 0x4000 .. 0x40ff  these
//
// Promise      One access at a time, a write before a read that comes with it. Every access is answered; where nothing is,
//              with an error. The map is in docs/src/bring-up.md.
// Latency      Two clocks beyond the card's.

`default_nettype none

module weir_board_registers
  import weir_board_pkg::*;
#(
    // What board this is.
    parameter logic [31:0] BoardId = 0,
    localparam int Ports = 2,
    localparam int CardAddressWidth = 14
) (
    input var logic clk,
    input var logic rst,

    input var logic [31:0] s_awaddr,
    input var logic s_awvalid,
    output var logic s_awready,
    input var logic [31:0] s_wdata,
    input var logic [3:0] s_wstrb,
    input var logic s_wvalid,
    output var logic s_wready,
    output var logic [1:0] s_bresp,
    output var logic s_bvalid,
    input var logic s_bready,
    input var logic [31:0] s_araddr,
    input var logic s_arvalid,
    output var logic s_arready,
    output var logic [31:0] s_rdata,
    output var logic [1:0] s_rresp,
    output var logic s_rvalid,
    input var logic s_rready,
    // The host is gone: an answer to it is dropped.
    input var logic s_gone,

    output var logic [CardAddressWidth-1:0] m_awaddr,
    output var logic m_awvalid,
    input var logic m_awready,
    output var logic [31:0] m_wdata,
    output var logic [3:0] m_wstrb,
    output var logic m_wvalid,
    input var logic m_wready,
    input var logic [1:0] m_bresp,
    input var logic m_bvalid,
    output var logic m_bready,
    output var logic [CardAddressWidth-1:0] m_araddr,
    output var logic m_arvalid,
    input var logic m_arready,
    input var logic [31:0] m_rdata,
    input var logic [1:0] m_rresp,
    input var logic m_rvalid,
    output var logic m_rready,

    input var port_state_t [Ports-1:0] ports,
    input var dma_state_t dma,
    // Module present, interrupt of the module.
    input var logic [Ports-1:0] module_present,
    input var logic [Ports-1:0] module_irq,
    output var port_control_t [Ports-1:0] control
);

  localparam logic [31:0] Magic = 32'h57424F41;  // "WBOA"
  localparam logic [1:0] Okay = 2'b00;
  localparam logic [1:0] SlaveError = 2'b10;

  typedef enum logic [2:0] {
    IDLE = 3'd0,
    // Under way at the card.
    WRITING = 3'd1,
    READING = 3'd2,
    // The answer waits for the host.
    WRITTEN = 3'd3,
    READ = 3'd4
  } state_e;

  state_e state;
  logic take_write, take_read;
  logic write_to_card, read_from_card;
  logic [31:0] value;
  logic known;
  logic unwanted;

  assign take_write = state == IDLE && s_awvalid && s_wvalid;
  assign take_read = state == IDLE && s_arvalid && !take_write;
  assign s_awready = take_write;
  assign s_wready = take_write;
  assign s_arready = take_read;
  assign write_to_card = s_awaddr[31:CardAddressWidth] == '0;
  assign read_from_card = s_araddr[31:CardAddressWidth] == '0;
  assign s_bvalid = state == WRITTEN && !unwanted;
  assign s_rvalid = state == READ && !unwanted;
  assign m_bready = state == WRITING;
  assign m_rready = state == READING;

  // Word within the board's registers: 0x4000 the board, 0x4020 control, 0x4080 and 0x40c0 the ports.
  localparam logic [31:8] Block = 24'h000040;
  logic write_known;
  assign write_known = s_awaddr[31:8] == Block && (s_awaddr[7:2] == 6'h08 || s_awaddr[7:2] == 6'h09);

  always_comb begin
    known = s_araddr[31:8] == Block;
    value = '0;
    unique case (s_araddr[7:2])
      6'h00: value = Magic;
      6'h01: value = BoardId;
      6'h02: value[0] = dma.link_up;
      6'h03: value = dma.frames;
      6'h04: value = dma.dropped;
      6'h08: value[3:0] = control[0];
      6'h09: value[3:0] = control[1];
      default: begin
        known = known && s_araddr[7] && s_araddr[5:2] <= 4'(PortCounters);
        value = s_araddr[5:2] == 0 ?
            32'({module_irq[s_araddr[6]], module_present[s_araddr[6]], ports[s_araddr[6]].in_reset,
                 ports[s_araddr[6]].remote_fault, ports[s_araddr[6]].aligned}) :
            ports[s_araddr[6]].counters[3'(s_araddr[5:2]-4'd1)];
      end
    endcase
  end

  always_ff @(posedge clk) begin
    if (m_awready) m_awvalid <= 1'b0;
    if (m_wready) m_wvalid <= 1'b0;
    if (m_arready) m_arvalid <= 1'b0;
    if (s_gone) unwanted <= state == WRITING || state == READING;
    else if (state == IDLE) unwanted <= 1'b0;

    unique case (state)
      IDLE: begin
        if (take_write) begin
          state <= write_to_card ? WRITING : WRITTEN;
          m_awvalid <= write_to_card;
          m_wvalid <= write_to_card;
          s_bresp <= write_known ? Okay : SlaveError;
          if (write_known && s_wstrb[0]) control[s_awaddr[2]] <= s_wdata[3:0];
        end else if (take_read) begin
          state <= read_from_card ? READING : READ;
          m_arvalid <= read_from_card;
          s_rresp <= known ? Okay : SlaveError;
        end
      end
      WRITING: begin
        if (m_bvalid) begin
          state   <= WRITTEN;
          s_bresp <= m_bresp;
        end
      end
      READING: begin
        if (m_rvalid) begin
          state   <= READ;
          s_rresp <= m_rresp;
        end
      end
      WRITTEN: if (s_bready || s_gone || unwanted) state <= IDLE;
      READ: if (s_rready || s_gone || unwanted) state <= IDLE;
      default: state <= IDLE;
    endcase

    if (rst) begin
      state <= IDLE;
      unwanted <= 1'b0;
      m_awvalid <= 1'b0;
      m_wvalid <= 1'b0;
      m_arvalid <= 1'b0;
      control <= '0;
    end
  end

  always_ff @(posedge clk) begin
    if (take_write) begin
      m_awaddr <= s_awaddr[CardAddressWidth-1:0];
      m_wdata  <= s_wdata;
      m_wstrb  <= s_wstrb;
    end
    if (take_read) begin
      m_araddr <= s_araddr[CardAddressWidth-1:0];
      s_rdata  <= known ? value : '0;
    end
    if (m_rvalid && m_rready) begin
      s_rdata <= m_rdata;
    end
  end

endmodule

`default_nettype wire
