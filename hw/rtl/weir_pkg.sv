// Types that the measuring pipeline's modules hand to each other. Bit 0 of a number is its lowest
// bit; bytes of addresses are in network order, first byte highest, so that numbers compare as bytes do.

`default_nettype none

// A package offers more constants than any one design uses.
// verilator lint_off UNUSEDPARAM

package weir_pkg;

  // Bytes from the start of a frame that the parser sees, and the limits of the nic profile
  // (docs/src/flow-engine.md section 7; host/engine/src/parse.rs).
  localparam int HeaderBytes = 256;
  localparam int MaxFrameBytes = 9216;
  localparam int MaxVlanTags = 2;
  localparam int MaxMplsLabels = 4;
  localparam int MaxExtensionHeaders = 4;

  // A context index has this width on every interface; memories may be smaller.
  localparam int IndexWidth = 18;
  // Contexts that one scan period looks at, and log2 of the ns between two visits (section 1).
  localparam int ScanWidth = 18;
  localparam int VisitShift = 10;

  // Reasons of untracked frames that PORT counts.
  localparam int UntrackedReasons = 10;

  typedef logic [IndexWidth-1:0] index_t;

  // What comes with the first beat of a frame.
  typedef struct packed {
    // Length on the wire when the source cut the frame; 0: as many bytes as arrive.
    logic [19:0] wire_length;
    // TAI ns at start of frame.
    logic [63:0] timestamp;
  } frame_user_t;

  // One end of a flow; IPv4 addresses are IPv4-mapped.
  typedef struct packed {
    logic [127:0] addr;
    logic [15:0] port;
  } end_t;

  // The symmetric key: low compares bytewise below or equal to high.
  typedef struct packed {
    end_t low;
    end_t high;
    logic [7:0] protocol;
    // Outer VLAN id in bits 11..0, inner in 23..12.
    logic [23:0] vlans;
  } key_t;

  typedef enum logic [1:0] {
    CLASS_TCP = 2'd0,
    CLASS_OTHER = 2'd1,
    // key, from_low, seq are those of the quoted packet; payload is type * 256 + code.
    CLASS_ICMP_ERROR = 2'd2,
    // reason says why no flow counts the frame.
    CLASS_UNTRACKED = 2'd3
  } class_e;

  // A SACK block (RFC 2018 section 3).
  typedef struct packed {
    logic [31:0] left;
    logic [31:0] right;
  } sack_block_t;

  typedef struct packed {
    // 0: absent.
    logic [15:0] mss;
    // As sent; 255: absent.
    logic [7:0] scale;
    logic sack_permitted;
    logic has_timestamps;
    // 0 without the option, as are unused SACK blocks.
    logic [31:0] tsval;
    logic [31:0] tsecr;
    // 0..4
    logic [2:0] sack_count;
    sack_block_t [3:0] sack;
    // Cut, malformed or beyond the limits: some may be missing.
    logic incomplete;
  } options_t;

  // The parsed frame: docs/src/flow-engine.md section 1, host/engine/src/meta.rs. Of a frame of
  // CLASS_UNTRACKED only timestamp, number, port, wire_length, cut and reason hold.
  typedef struct packed {
    logic [63:0] timestamp;
    // Number of the frame on its port, from 1.
    logic [63:0] number;
    logic [3:0] port;
    class_e class_;
    // untracked_e
    logic [3:0] reason;
    key_t key;
    // The source is key.low.
    logic from_low;
    logic [19:0] wire_length;
    // Fewer bytes arrived than were on the wire.
    logic cut;
    // Payload by the IP length.
    logic [19:0] payload;
    logic [31:0] seq;
    // 0 without the ACK flag.
    logic [31:0] ack;
    logic [7:0] flags;
    logic [15:0] window;
    // 0 for IPv6.
    logic [15:0] ip_id;
    logic [7:0] ttl;
    logic [7:0] tos;
    options_t options;
    logic [47:0] source_mac;
    logic [47:0] destination_mac;
  } meta_t;

  // Words of the engine (section 1) after the merge.
  typedef enum logic [2:0] {
    WORD_PACKET = 3'd0,
    // A scan visit to `index`.
    WORD_VISIT = 3'd1,
    // PORT of meta.port is due.
    WORD_PORT = 3'd2,
    // The input is over: close `index`.
    WORD_END = 3'd3
  } word_kind_e;

  typedef struct packed {
    word_kind_e kind;
    index_t index;
    // The frame's own time was behind: meta.timestamp is `now`, as it is in words of all kinds.
    logic clamped;
    // The 10 ms of TAI time that `now` lies in: its start, its number's low bits, its number modulo 10.
    logic [63:0] fine_start;
    logic [15:0] fine_number;
    logic [3:0] fine_digit;
    meta_t meta;
  } word_t;

  // What the lookup adds to a word.
  typedef struct packed {
    // The packet is counted in the flow of `index`; the visited or ended context is in use.
    logic tracked;
    // For packets that are not tracked (untracked_e).
    logic [3:0] reason;
    index_t index;
    // The flow that was in the context is timed out: close it, with last_seen and by its state.
    logic expired;
    // The packet opens a flow in the context.
    logic fresh;
    // Time of the flow's last packet before this word, low bits.
    logic [47:0] last_seen;
  } lookup_t;

  // Which timeout a context has (section 2).
  typedef enum logic [1:0] {
    TIMEOUT_HANDSHAKE = 2'd0,
    TIMEOUT_IDLE = 2'd1,
    TIMEOUT_LINGER = 2'd2,
    TIMEOUT_OTHER = 2'd3
  } timeout_e;

  // From the tracker back to the lookup, for each tracked packet: see weir_lookup on why its delay
  // does not matter.
  typedef struct packed {
    logic valid;
    index_t index;
    timeout_e timeout;
  } timeout_update_t;

  // Timeouts in ns, at most 2^46.
  typedef struct packed {
    logic [46:0] handshake;
    logic [46:0] idle;
    logic [46:0] linger;
    logic [46:0] other;
  } timeouts_t;

endpackage

// verilator lint_on UNUSEDPARAM

`default_nettype wire
