// What the parser's stages hand to each other; nothing outside weir_parser* uses it.

`default_nettype none

// A package offers more constants than any one design uses.
// verilator lint_off UNUSEDPARAM

package weir_parser_pkg;
  import weir_pkg::*;
  import weir_records_pkg::*;

  // Headers above Ethernet are looked at in 32-bit words in network order, word 0 at the header's
  // start. What lies behind the first HeaderBytes reads as 0 and is never looked at: `have` says so.
  localparam int EthernetBytes = 14;
  localparam int IpWords = (HeaderBytes - EthernetBytes + 3) / 4;
  // An IPv4 header has at least five words.
  localparam int TransportWords = IpWords - 5;
  localparam int ParserPointerWidth = 6;
  localparam int OptionBytes = 40;

  // Clocks from input to output of the modules.
  localparam int LinkLatency = 8;
  localparam int IpLatency = 2;
  localparam int ExtensionLatency = 3;
  localparam int TcpOptionsLatency = 14;
  localparam int QuotedLatency = 3 + MaxExtensionHeaders * ExtensionLatency;
  localparam int ParserLatency =
      LinkLatency + IpLatency + MaxExtensionHeaders * ExtensionLatency + 2 + QuotedLatency + 3;

  localparam logic [7:0] ProtocolIcmp = 8'd1;
  localparam logic [7:0] ProtocolTcp = 8'd6;
  localparam logic [7:0] ProtocolUdp = 8'd17;
  localparam logic [7:0] ProtocolFragment = 8'd44;
  localparam logic [7:0] ProtocolAuthentication = 8'd51;
  localparam logic [7:0] ProtocolIcmpV6 = 8'd58;
  localparam logic [7:0] ProtocolNoNext = 8'd59;
  localparam logic [7:0] ProtocolSctp = 8'd132;

  typedef logic [IpWords-1:0][31:0] ip_window_t;
  typedef logic [TransportWords-1:0][31:0] transport_window_t;

  // Where the walk through the headers stands: `Walk` of host/engine/src/parse.rs.
  typedef struct packed {
    // The frame is untracked.
    logic stopped;
    untracked_e reason;
    // A header beyond what the parser sees: DEPTH, else TRUNCATED.
    logic deep;
    // Bytes from here to the end of the enclosing layer, by its length.
    logic [15:0] left;
    // Bytes from here to the end of what the parser sees.
    logic [8:0] have;
  } walk_t;

  // What is known of the frame before its IP header.
  typedef struct packed {
    logic [63:0] timestamp;
    logic [19:0] wire_length;
    logic cut;
    logic [47:0] destination_mac;
    logic [47:0] source_mac;
    logic [23:0] vlans;
  } link_t;

  // What the IP header says.
  typedef struct packed {
    logic [127:0] source;
    logic [127:0] destination;
    logic [15:0] id;
    logic [7:0] ttl;
    logic [7:0] tos;
  } ip_t;

  // What the header behind IP says.
  typedef struct packed {
    logic tcp;
    logic icmp_error;
    logic [7:0] protocol;
    // ICMP type and code.
    logic [15:0] kind_code;
    logic [15:0] source_port;
    logic [15:0] destination_port;
    logic [15:0] payload;
    logic [31:0] seq;
    logic [31:0] ack;
    logic [7:0] flags;
    logic [15:0] window;
    // TCP options go on beyond what the parser sees.
    logic options_cut;
  } transport_t;

  // The packet in an ICMP error.
  typedef struct packed {
    logic found;
    logic [7:0] protocol;
    end_t source;
    end_t destination;
    logic [31:0] seq;
  } quoted_t;

  // The first reason counts.
  function automatic walk_t stop_if(walk_t walk, logic condition, untracked_e reason);
    stop_if = walk;
    if (condition && !walk.stopped) begin
      stop_if.stopped = 1'b1;
      stop_if.reason  = reason;
    end
  endfunction

  // The reason for a header that the parser does not see whole.
  function automatic untracked_e beyond(logic deep);
    return deep ? UNTRACKED_DEPTH : UNTRACKED_TRUNCATED;
  endfunction

  // Headers that name the one behind them and are passed over.
  function automatic logic is_extension(logic [7:0] protocol, logic quoted);
    logic common = protocol inside {8'd0, 8'd43, ProtocolFragment, 8'd60};
    return common || (!quoted && protocol inside {ProtocolAuthentication, 8'd135});
  endfunction

  // RFC 4291 2.5.5.2
  function automatic logic [127:0] mapped(logic [31:0] address);
    return {80'b0, 16'hffff, address};
  endfunction

endpackage

// verilator lint_on UNUSEDPARAM

`default_nettype wire
