// What follows from a word alone, for the loops of the tracker: ends of the segment, hash of its SACK
// option, what it would make of an empty context. Combinational.

`default_nettype none

// Structures are taken whole, whatever part of them is used.
// verilator lint_off UNUSEDSIGNAL

module weir_facts
  import weir_pkg::*;
  import weir_records_pkg::*;
  import weir_tracker_pkg::*;
(
    input  wire word_t   word,
    input  wire lookup_t lookup,
    input  wire shed_t   shed,
    output facts_t       facts
);

  logic packet;
  logic syn, ack, rst, fin;
  logic [31:0] left, right, hash;
  logic inside_second;
  logic [15:0] source_port, destination_port;
  logic ports_tell;

  assign packet = word.kind == WORD_PACKET && lookup.tracked;
  assign syn = word.meta.flags[TcpFlagSynBit];
  assign ack = word.meta.flags[TcpFlagAckBit];
  assign rst = word.meta.flags[TcpFlagRstBit];
  assign fin = word.meta.flags[TcpFlagFinBit];

  // Section 4.6: hash of the first SACK block and the ack; a D-SACK (RFC 2883 4).
  assign left = word.meta.options.sack[0].left;
  assign right = word.meta.options.sack[0].right;
  assign hash = left ^ (left >> 12) ^ (left >> 24) ^ {right[26:0], right[31:27]} ^ (right >> 7) ^ (right >> 19) ^
      word.meta.ack ^ (word.meta.ack >> 12);
  assign inside_second = word.meta.options.sack_count > 1 && !after(
      word.meta.options.sack[1].left, left
  ) && !after(
      right, word.meta.options.sack[1].right
  );

  // Section 4.3: the client is the end with the higher port where nothing better tells.
  assign source_port = word.meta.from_low ? word.meta.key.low.port : word.meta.key.high.port;
  assign destination_port = word.meta.from_low ? word.meta.key.high.port : word.meta.key.low.port;
  assign ports_tell = (word.meta.key.protocol == 6 || word.meta.key.protocol == 17) && source_port != destination_port;

  always_comb begin
    facts = '{open_how: CLIENT_HOW_FIRST, open_state: STATE_OTHER, default: '0};
    facts.tcp = packet && word.meta.class_ == CLASS_TCP;
    facts.other = packet && word.meta.class_ == CLASS_OTHER;
    facts.icmp = packet && word.meta.class_ == CLASS_ICMP_ERROR;
    facts.visit = word.kind == WORD_VISIT && lookup.tracked && !lookup.expired;
    facts.ended = word.kind == WORD_END && lookup.tracked;
    facts.shed = shed;
    facts.fresh = lookup.tracked && lookup.fresh;
    facts.expired = lookup.tracked && lookup.expired;
    facts.is_syn = syn && !rst;
    facts.is_rst = rst;
    facts.is_ack = ack && !rst;
    facts.fin = fin;
    facts.push = word.meta.flags[TcpFlagPshBit];
    facts.has_payload = word.meta.payload != 0;
    facts.occupies = word.meta.payload != 0 || fin || syn;
    facts.has_id = word.meta.ip_id != 0 && !rst;
    facts.ecn = word.meta.flags[TcpFlagEceBit] && (word.meta.flags[TcpFlagCwrBit] != ack);
    facts.idle_before = word.meta.timestamp[31:0] - 32'(BlockIdleNs);
    facts.payload_end = word.meta.seq + 32'(word.meta.payload);
    facts.segment_end = word.meta.seq + 32'(word.meta.payload) + 32'(syn) + 32'(fin);
    facts.next_value = facts.occupies ? facts.segment_end : word.meta.seq;
    facts.seq_1 = word.meta.seq + 1;
    facts.block_length = word.meta.payload > 20'h3fff ? 14'h3fff : word.meta.payload[13:0];
    if (word.meta.options.scale == 8'(RecordNoScale)) facts.scale = NoScale;
    else if (word.meta.options.scale > 14) facts.scale = 4'd14;
    else facts.scale = word.meta.options.scale[3:0];
    if (word.meta.options.sack_count != 0) facts.sack_hash = hash[11:0] == 0 ? 12'd1 : hash[11:0];
    facts.dsack = !after(right, word.meta.ack) || inside_second;

    if (facts.tcp && facts.is_syn) begin
      facts.open_how = ack ? CLIENT_HOW_SYN_ACK : CLIENT_HOW_SYN;
      facts.open_state = ack ? STATE_SYN_ACK : STATE_SYN;
      facts.sender_is_client = !ack;
    end else begin
      facts.open_how = ports_tell ? CLIENT_HOW_PORT : CLIENT_HOW_FIRST;
      facts.open_state = facts.tcp ? STATE_MID : STATE_OTHER;
      facts.sender_is_client = !ports_tell || source_port > destination_port;
    end
  end

endmodule

// verilator lint_on UNUSEDSIGNAL

`default_nettype wire
