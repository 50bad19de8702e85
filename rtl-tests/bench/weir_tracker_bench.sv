// Two trackers, each with a queue and a formatter behind it: one gets random words back to back (or with random
// bubbles), the other the same words so far apart that each finds the context in memory as the word before left it.
// Their records, timeout updates and counts of what was left out must be the same.
//
// A run: settings and `seed` are set, `go` is high for a clock; `done` rises after it. The words are those that a lookup
// would give: a flow begins before it goes on, and is closed once.

`default_nettype none

// verilator lint_off BLKSEQ
// verilator lint_off UNUSEDSIGNAL

module weir_tracker_bench
  import weir_pkg::*;
  import weir_records_pkg::*;
  import weir_tracker_pkg::*;
#(
    // Flows at a time; contexts, so that each run has its own.
    parameter int Flows = 32,
    parameter int Contexts = 2048,
    parameter int Ports = 2,
    // Clocks between two words of the slow one.
    parameter int Gap = 12
) (
    input wire logic clk,
    input wire logic rst,
    input wire logic go,
    input wire logic [63:0] seed,
    input wire logic [31:0] words,
    // So many of them, the first, also go to the slow one.
    input wire logic [31:0] checked,
    // The first context.
    input wire index_t base,
    // So many contexts in turn; 0: any of Flows.
    input wire logic [7:0] cycle,
    // In a hundred: empty clocks, visits among the words, packets out of order, words that leave out records.
    input wire logic [7:0] bubbles,
    input wire logic [7:0] visits,
    input wire logic [7:0] odd,
    input wire logic [7:0] sheds,
    output logic done,
    output logic differs,
    // The first difference: number of the record, what the fast and the slow one made.
    output logic [31:0] records,
    output logic [511:0] fast_record,
    output logic [511:0] slow_record,
    output logic [31:0] updates,
    output logic [31:0] left_out_count,
    // Clocks from the first word to the last.
    output logic [31:0] clocks,
    // Words by distance to the nearest word on the same context.
    output logic [15:0][31:0] distances
);

  typedef struct packed {
    word_t word;
    lookup_t lookup;
    shed_t shed;
    logic digest;
  } item_t;

  // xorshift64* (Vigna 2016).
  logic [63:0] state;
  function automatic logic [31:0] draw();
    logic [63:0] product;
    state   = state ^ (state >> 12);
    state   = state ^ (state << 25);
    state   = state ^ (state >> 27);
    product = state * 64'h2545_f491_4f6c_dd1d;
    return product[63:32];
  endfunction
  function automatic int below(int limit);
    return int'(draw() % limit);
  endfunction
  function automatic logic percent(int share);
    return below(100) < share;
  endfunction

  // What the flows do.
  logic [Flows-1:0] in_use;
  class_e flow_class[Flows];
  key_t flow_key[Flows];
  // Packets of the handshake sent so far; by the low end first?
  int phase[Flows];
  logic first_low[Flows];
  logic [1:0][31:0] next[Flows];
  logic [1:0][15:0] window[Flows];
  logic [1:0][15:0] ip_id[Flows];
  logic [63:0] now;
  int turn;

  function automatic logic [31:0] displaced(logic [31:0] value, int payload);
    case (below(
        12
    ))
      0: return value - 1;
      1: return value - 32'(payload);
      2: return value - 32'(payload) - 5;
      3: return value - 32'(payload) + 5;
      4: return value + 1000;
      5: return value + (32'd1 << 30) - 32'(below(3));
      6: return value - (32'd1 << 30) + 32'(below(3));
      7: return value + 32'd65537 - 32'(below(3));
      8: return value - 32'd65537 + 32'(below(3));
      9: return value + (32'd1 << 31) - 32'(below(2));
      10: return value + 1;
      default: return draw();
    endcase
  endfunction

  function automatic void pass_time();
    int style;
    style = below(1000);
    if (style < 600) now += 64'(below(64));
    else if (style < 900) now += 64'(below(100_000));
    else if (style < 985) now += 64'(below(20_000_000));
    else if (style < 998) now += 64'(1_000_000_000 + below(1_000_000_000));
    else now += 64'h40_0000_0000 + 64'(draw());
  endfunction

  function automatic item_t tcp_packet(item_t given, int index, logic opens);
    item_t item;
    logic low;
    logic [7:0] flags;
    int payload;
    logic is_odd;
    item = given;
    is_odd = percent(int'(odd));
    payload = 0;
    case (below(
        8
    ))
      0: payload = 1;
      1, 2, 3: payload = 1460;
      4: payload = below(1 << (percent(90) ? 14 : 20));
      default: payload = 0;
    endcase
    low = percent(50);
    if (opens) begin
      phase[index] = 0;
      first_low[index] = low;
      next[index] = {draw(), draw()};
    end
    if (phase[index] < 3 && !is_odd) begin
      low   = phase[index][0] ? !first_low[index] : first_low[index];
      flags = phase[index] == 0 ? 8'h02 : phase[index] == 1 ? 8'h12 : 8'h10;
      if (phase[index] == 0 && percent(30)) flags |= 8'hc0;
      if (phase[index] == 1 && percent(30)) flags |= 8'h40;
      if (!percent(5)) payload = 0;
      phase[index]++;
    end else begin
      case (below(
          32
      ))
        0: flags = 8'h02;
        1: flags = 8'h12;
        2: flags = 8'h11;
        3: flags = is_odd || percent(10) ? 8'h04 : 8'h10;
        4: flags = is_odd ? 8'(draw()) : 8'h10;
        5, 6, 7, 8: flags = 8'h18;
        9: flags = 8'h19;
        default: flags = 8'h10;
      endcase
    end
    item.word.meta.flags = flags;
    item.word.meta.from_low = low;
    item.word.meta.payload = 20'(payload);
    item.word.meta.seq = next[index][low] - 32'(flags[TcpFlagSynBit] && phase[index] > 3);
    if (is_odd) item.word.meta.seq = displaced(item.word.meta.seq, payload);
    if (flags[TcpFlagAckBit]) begin
      item.word.meta.ack = next[index][!low] - (percent(30) ? 32'(below(4) * 1460) : 32'd0);
      if (percent(int'(odd))) item.word.meta.ack = displaced(item.word.meta.ack, 1460);
    end
    if (!is_odd || percent(50)) begin
      next[index][low] = item.word.meta.seq + 32'(payload) + 32'(flags[TcpFlagSynBit]) + 32'(flags[TcpFlagFinBit]);
    end
    case (below(
        8
    ))
      0: window[index][low] = '0;
      1: window[index][low] = 16'(below(8));
      2, 3: window[index][low] = 16'(draw());
      default: ;
    endcase
    item.word.meta.window = window[index][low];
    if (!percent(10)) ip_id[index][low] = percent(10) ? '0 : ip_id[index][low] + 1;
    item.word.meta.ip_id = ip_id[index][low];
    item.word.meta.options.scale = percent(50) ? 8'(below(18)) : '1;
    item.word.meta.options.mss = percent(80) ? 16'(1000 + below(460)) : 16'(below(3));
    item.word.meta.options.sack_permitted = percent(70);
    item.word.meta.options.has_timestamps = percent(70);
    item.word.meta.options.incomplete = percent(5);
    if (percent(30)) begin
      item.word.meta.options.sack_count = 3'(1 + below(4));
      for (int i = 0; i < 4; i++) begin
        item.word.meta.options.sack[i].left  = item.word.meta.ack + 32'(below(4000)) - 32'd1000;
        item.word.meta.options.sack[i].right = item.word.meta.options.sack[i].left + 32'(below(3000));
      end
    end
    return item;
  endfunction

  function automatic item_t make();
    item_t item;
    int index, kind;
    logic opens;
    pass_time();
    index = cycle == 0 ? below(Flows) : turn % int'(cycle);
    turn++;
    item = '0;
    for (int i = 0; i < 4; i++) begin
      // Whatever is not set below.
      item.word.meta.options.tsval = draw();
      item.word.meta.options.tsecr = draw();
      item.word.meta.source_mac = {draw(), 16'(draw())};
      item.word.meta.destination_mac = {draw(), 16'(draw())};
    end
    item.word.meta.timestamp = now;
    item.word.meta.number = 64'(turn);
    item.word.meta.port = 4'(below(Ports));
    item.word.meta.ttl = 8'(draw());
    item.word.meta.tos = 8'(draw());
    item.word.meta.wire_length = 20'(60 + below(1459));
    item.word.meta.cut = percent(5);
    item.word.clamped = percent(5);
    item.word.fine_start = now - now % 64'(RecordFineIntervalNs);
    item.word.fine_number = 16'(now / 64'(RecordFineIntervalNs));
    item.word.fine_digit = 4'(now / 64'(RecordFineIntervalNs) % 10);
    item.digest = percent(20);
    if (percent(int'(sheds))) item.shed = shed_t'(draw());
    item.lookup.index = base + index_t'(index);
    item.lookup.last_seen = 48'(now - 64'(below(1000)));
    kind = below(1000);
    if (kind < 10 * int'(visits)) begin
      item.word.kind = WORD_VISIT;
      item.word.index = base + index_t'(index);
      item.lookup.tracked = in_use[index];
      item.lookup.expired = in_use[index] && percent(5);
      if (item.lookup.expired) in_use[index] = 1'b0;
    end else if (kind >= 995) begin
      item.word.kind = WORD_PORT;
    end else if (kind >= 993) begin
      item.word.kind = WORD_END;
      item.word.index = base + index_t'(index);
      item.lookup.tracked = in_use[index];
      in_use[index] = 1'b0;
    end else if (kind >= 980) begin
      item.word.kind = WORD_PACKET;
      item.word.meta.class_ = CLASS_UNTRACKED;
      item.lookup.reason = 4'(below(UntrackedReasons));
    end else if (kind >= 970) begin
      item = tcp_packet(item, index, 1'b0);
      item.word.meta.class_ = CLASS_ICMP_ERROR;
      item.word.meta.key = flow_key[index];
      item.lookup.tracked = in_use[index];
      item.lookup.reason = 4'd6;
    end else begin
      opens = !in_use[index];
      if (opens) begin
        flow_class[index] = percent(4) ? CLASS_OTHER : CLASS_TCP;
        for (int i = 0; i < $bits(key_t); i += 32) flow_key[index] = key_t'({flow_key[index], draw()});
        flow_key[index].protocol = flow_class[index] == CLASS_TCP ? 8'd6 : percent(70) ? 8'd17 : 8'd132;
      end
      item.lookup.tracked = 1'b1;
      item.lookup.expired = in_use[index] && below(500) == 0;
      item.lookup.fresh = opens || item.lookup.expired;
      in_use[index] = 1'b1;
      item = tcp_packet(item, index, item.lookup.fresh);
      item.word.meta.class_ = flow_class[index];
      item.word.meta.key = flow_key[index];
    end
    return item;
  endfunction

  // What each tracker gets, in words of the clock.
  logic running;
  logic [31:0] made, given, clock;
  logic [31:0] last_clock[Flows];
  item_t waiting[$];
  item_t fast_item, slow_item;
  logic fast_valid, slow_valid;
  int pause, quiet, flow;
  logic [31:0] distance;

  logic [ 1:0] record_valid;
  logic [511:0] fast_out, slow_out;
  logic [1:0] update_valid;
  timeout_update_t fast_update, slow_update;
  shed_t fast_left_out, slow_left_out;
  logic fast_busy, slow_busy;

  weir_tracker_chain #(
      .Ports(Ports),
      .Contexts(Contexts)
  ) fast (
      .clk,
      .rst,
      .s_valid(fast_valid),
      .s_word(fast_item.word),
      .s_lookup(fast_item.lookup),
      .shed(fast_item.shed),
      .digest(fast_item.digest),
      .timeout_update(fast_update),
      .left_out(fast_left_out),
      .m_valid(record_valid[0]),
      .m_record(fast_out),
      .busy(fast_busy)
  );
  weir_tracker_chain #(
      .Ports(Ports),
      .Contexts(Contexts)
  ) slow (
      .clk,
      .rst,
      .s_valid(slow_valid),
      .s_word(slow_item.word),
      .s_lookup(slow_item.lookup),
      .shed(slow_item.shed),
      .digest(slow_item.digest),
      .timeout_update(slow_update),
      .left_out(slow_left_out),
      .m_valid(record_valid[1]),
      .m_record(slow_out),
      .busy(slow_busy)
  );

  logic [511:0] fast_records[$], slow_records[$];
  timeout_update_t fast_updates[$], slow_updates[$];
  int fast_left[5], slow_left[5];

  // One process, in order: a model, not hardware.
  always @(posedge clk) begin
    clock = clock + 1;
    fast_valid <= 1'b0;
    slow_valid <= 1'b0;
    if (go) begin
      running = 1'b1;
      state = seed | 1;
      now = 64'd1_700_000_000_000_000_000 + {32'd0, draw()};
      in_use = '0;
      made = '0;
      given = '0;
      turn = 0;
      clocks <= '0;
      for (int i = 0; i < Flows; i++) last_clock[i] = '0;
      clock = 32'd1000;
      distances <= '0;
      quiet = 0;
    end
    if (running && made < words) begin
      if (made != 0) clocks <= clocks + 1;
      if (!percent(int'(bubbles))) begin
        fast_item = make();
        fast_valid <= 1'b1;
        if (made < checked) waiting.push_back(fast_item);
        made = made + 1;
        if (fast_item.lookup.tracked) begin
          flow = int'(fast_item.lookup.index - base);
          distance = clock - last_clock[flow];
          if (distance < 16) distances[distance[3:0]] <= distances[distance[3:0]] + 1;
          last_clock[flow] = clock;
        end
      end
    end
    pause = pause + 1;
    if (running && waiting.size() != 0 && pause >= Gap) begin
      pause = 0;
      slow_item = waiting.pop_front();
      slow_valid <= 1'b1;
      given = given + 1;
    end

    if (record_valid[0]) fast_records.push_back(fast_out);
    if (record_valid[1]) slow_records.push_back(slow_out);
    if (fast_records.size() != 0 && slow_records.size() != 0 && !differs) begin
      fast_record = fast_records.pop_front();
      slow_record = slow_records.pop_front();
      if (fast_record != slow_record) differs <= 1'b1;
      else records <= records + 1;
    end
    if (fast_update.valid) fast_updates.push_back(fast_update);
    if (slow_update.valid) slow_updates.push_back(slow_update);
    if (fast_updates.size() != 0 && slow_updates.size() != 0) begin
      if (fast_updates.pop_front() != slow_updates.pop_front()) differs <= 1'b1;
      updates <= updates + 1;
    end
    for (int i = 0; i < 5; i++) begin
      fast_left[i] += int'(fast_left_out[i]);
      slow_left[i] += int'(slow_left_out[i]);
      left_out_count <= left_out_count + 32'(slow_left_out[i]);
    end

    done <= 1'b0;
    quiet = quiet + 1;
    if (given != checked || made != words || fast_busy || slow_busy || waiting.size() != 0) quiet = 0;
    if (running && (quiet == 64 || differs)) begin
      running = 1'b0;
      done <= 1'b1;
      if (slow_records.size() != 0 || slow_updates.size() != 0) differs <= 1'b1;
      if (words == checked) begin
        if (fast_records.size() != 0 || fast_updates.size() != 0) differs <= 1'b1;
        for (int i = 0; i < 5; i++) begin
          if (fast_left[i] != slow_left[i]) differs <= 1'b1;
        end
      end
    end
    if (rst) begin
      running = 1'b0;
      pause   = 0;
      fast_valid <= 1'b0;
      slow_valid <= 1'b0;
      differs <= 1'b0;
      records <= '0;
      updates <= '0;
      left_out_count <= '0;
      waiting.delete();
      fast_records.delete();
      slow_records.delete();
      fast_updates.delete();
      slow_updates.delete();
      for (int i = 0; i < 5; i++) begin
        fast_left[i] = 0;
        slow_left[i] = 0;
      end
      // Zero as after configuration: registers that start random may write at the first edge.
      for (int i = 0; i < Contexts; i++) begin
        fast.tracker.contexts.memory[i] = '0;
        slow.tracker.contexts.memory[i] = '0;
      end
    end
  end

endmodule

// verilator lint_on UNUSEDSIGNAL
// verilator lint_on BLKSEQ

`default_nettype wire
