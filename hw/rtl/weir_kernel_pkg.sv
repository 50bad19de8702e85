// The word of the HLS kernels. Its definition is hw/hls/include/weir_word.h; hw/hls/dpi's bench holds this equal.

`default_nettype none

package weir_kernel_pkg;
  import weir_pkg::*;
  import weir_records_pkg::*;

  // Bits without a name are 0.
  typedef struct packed {
    logic [127:0] source;
    logic [127:0] destination;
    logic [63:0] fine_start;
    logic [63:0] timestamp;
    logic [1:0] zero_126;
    logic [37:0] rtt;
    logic [3:0] zero_84;
    logic [19:0] wire_length;
    logic [15:0] server_port;
    logic [3:0] fine_digit;
    logic [1:0] zero_42;
    index_t index;
    logic [7:0] flags;
    logic [3:0] port;
    logic zero_11;
    logic rtt_of_server;
    class_e class_;
    logic rtt_valid;
    logic new_data;
    logic from_server;
    logic fresh;
    logic tracked;
    word_kind_e kind;
  } kernel_word_t;

  // What the tracker knows of a packet that its word and the lookup do not say.
  typedef struct packed {
    logic client_is_low;
    // It opened its flow; also one that took the place of another.
    logic opened;
    logic new_bytes;
    // An RTT record other than ECHO is written for the packet.
    logic rtt_valid;
    // Its timed segment was the server's.
    logic rtt_of_server;
    logic [37:0] rtt;
  } kernel_facts_t;

  // VISIT and PORT words only say what time it is; of a frame that is not tracked only what the parser says holds.
  // verilator lint_off UNUSEDSIGNAL
  function automatic kernel_word_t kernel_word(word_t word, lookup_t lookup, kernel_facts_t facts);
    kernel_word_t out;
    logic packet;
    logic tracked;
    packet = word.kind == WORD_PACKET;
    tracked = packet && lookup.tracked;
    out = '0;
    out.kind = word.kind;
    out.fine_start = word.fine_start;
    out.fine_digit = word.fine_digit;
    out.timestamp = word.meta.timestamp;
    if (packet) begin
      out.port = word.meta.port;
      out.wire_length = word.meta.wire_length;
      out.class_ = word.meta.class_;
      if (word.meta.class_ != CLASS_UNTRACKED) begin
        out.flags = word.meta.flags;
        out.source = word.meta.from_low ? word.meta.key.low.addr : word.meta.key.high.addr;
        out.destination = word.meta.from_low ? word.meta.key.high.addr : word.meta.key.low.addr;
      end
    end
    if (tracked) begin
      out.tracked = 1'b1;
      out.fresh = facts.opened;
      out.index = lookup.index;
      out.from_server = word.meta.from_low != facts.client_is_low;
      out.server_port = facts.client_is_low ? word.meta.key.high.port : word.meta.key.low.port;
      out.new_data = facts.new_bytes && word.meta.class_ == CLASS_TCP && !word.meta.flags[TcpFlagSynBit] &&
          !word.meta.flags[TcpFlagRstBit];
      out.rtt_valid = facts.rtt_valid;
      out.rtt_of_server = facts.rtt_valid && facts.rtt_of_server;
      out.rtt = facts.rtt_valid ? facts.rtt : '0;
    end
    return out;
  endfunction
  // verilator lint_on UNUSEDSIGNAL

endpackage

`default_nettype wire
