// What the parts of a board say to each other.

package weir_board_pkg;

  // Counters of a wire port, in the order of their registers.
  typedef enum logic [2:0] {
    RX_FRAMES = 3'd0,
    RX_ERRORS = 3'd1,
    RX_DROPPED = 3'd2,
    RX_CUT = 3'd3,
    RX_ALIGNMENTS = 3'd4,
    TX_FRAMES = 3'd5,
    TX_UNDERFLOWS = 3'd6
  } port_counter_e;

  localparam int PortCounters = 7;

  typedef struct packed {
    logic in_reset;
    logic remote_fault;
    logic aligned;
    logic [PortCounters-1:0][31:0] counters;
  } port_state_t;

  // Of a port: what the host sets.
  typedef struct packed {
    logic mac_reset;
    logic module_reset;
    logic low_power;
    // Frames that the MAC sends come back to it, within the transceiver.
    logic loopback;
  } port_control_t;

  // Of the DMA: frames given to it, and those that it dropped because the host had no descriptors.
  typedef struct packed {
    logic link_up;
    logic [31:0] frames;
    logic [31:0] dropped;
  } dma_state_t;

endpackage
