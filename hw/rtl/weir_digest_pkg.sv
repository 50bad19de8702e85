// Settings of packet digests, and the head of a header slice.

`default_nettype none

// A package offers more constants than any one design uses.
// verilator lint_off UNUSEDPARAM

package weir_digest_pkg;

  typedef enum logic [1:0] {
    DIGEST_OFF = 2'd0,
    DIGEST_ALL = 2'd1,
    DIGEST_FILTER = 2'd2
  } digest_mode_e;

  // One end of a flow: a bit counts where its mask bit is set.
  typedef struct packed {
    weir_pkg::end_t value;
    weir_pkg::end_t mask;
  } end_filter_t;

  // Matches a flow whose one end matches `a` and the other `b`, whichever sent the packet.
  typedef struct packed {
    logic enable;
    end_filter_t a;
    end_filter_t b;
    logic [7:0] protocol;
    logic [7:0] protocol_mask;
    logic [23:0] vlans;
    logic [23:0] vlans_mask;
  } digest_entry_t;

  // The first beat of a slice; bit 0 is bit 0 of byte 0.
  typedef struct packed {
    logic [263:0] reserved;
    // Bytes of the frame that follow.
    logic [15:0] bytes;
    // Length on the wire when the source cut the frame, else 0.
    logic [31:0] wire_length;
    logic [7:0] port;
    // TAI ns at start of frame.
    logic [63:0] timestamp;
    // Number of the frame on its port, from 1.
    logic [63:0] number;
    // Number of the slice on its port, from 0: what is missing was dropped behind this module.
    logic [63:0] slice;
  } slice_head_t;

endpackage

// verilator lint_on UNUSEDPARAM

`default_nettype wire
