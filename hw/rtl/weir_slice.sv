// Header slices of one port: the first Bytes bytes of the frames that are asked for.
//
// Promise      Each request for a frame gives one slice (a head beat, slice_head_t, and the frame's first
//              bytes in 1 .. Bytes / 64 beats, the last marked) or one count in `dropped`.
//              Slices leave in the order of the requests.
// Throughput   Frames: one beat per clock, never held up. A slice of n beats takes n + 2 clocks.
// Latency      Six clocks from a request to its head when idle.
// Memory       The heads of the last Slots frames are kept. A request finds its frame if no more than
//              Slots - 8 frames came since; that it comes before the frame's bytes did is no harm.
// Backpressure None at s_ and request; m_ is valid/ready. When m_ does not keep up, requests wait, then are
//              dropped: because the queue of Requests is full, or because the frame is too old.
// Counters     requests = slices + dropped + those inside. They wrap.
// Hazards      A request must name a frame that came or is coming: a number too high stops all behind it.

`default_nettype none

module weir_slice
  import weir_pkg::*;
  import weir_digest_pkg::*;
#(
    parameter int Port = 0,
    // 64, 128 or 256.
    parameter int Bytes = 128,
    // Powers of two.
    parameter int Slots = 1024,
    parameter int Requests = 64,
    // Beats that can wait at the output.
    parameter int Depth = 64
) (
    input var logic clk,
    input var logic rst,

    input var logic [511:0] s_tdata,
    input var logic [63:0] s_tkeep,
    input var logic s_tlast,
    input var logic s_tvalid,
    input var frame_user_t s_tuser,

    // meta_t.number of a frame of this port.
    input var logic [63:0] request_number,
    input var logic request_valid,

    output var logic [511:0] m_tdata,
    output var logic m_tlast,
    output var logic m_tvalid,
    input var logic m_tready,

    output var logic [31:0] requested,
    output var logic [31:0] slices,
    output var logic [31:0] dropped
);

  localparam int Beats = Bytes / 64;
  localparam int BeatWidth = Beats > 1 ? $clog2(Beats) : 1;
  localparam int SlotWidth = $clog2(Slots);
  // Frames that may come while a slice is read.
  localparam int Margin = 8;
  localparam int LevelWidth = $clog2(Depth + 3);

  if (Bytes != 64 && Bytes != 128 && Bytes != 256) begin : gen_check_bytes
    $error("Bytes must be 64, 128 or 256");
  end
  if (Slots < 2 * Margin || Slots != 1 << SlotWidth) begin : gen_check_slots
    $error("Slots must be a power of two and at least 16");
  end
  if (Depth < 2 * (Beats + 1)) begin : gen_check_output
    $error("Depth must hold two slices");
  end

  typedef struct packed {
    logic [8:0] bytes;
    logic [BeatWidth-1:0] last_beat;
    frame_user_t user;
  } info_t;

  // --- Frames in: their first beats into the ring --------------------------------------------------

  (* ram_style = "block" *) logic [511:0] ring[Slots*Beats];
  (* ram_style = "block" *) info_t infos[Slots];

  localparam int AddressWidth = $clog2(Slots * Beats);

  function automatic logic [AddressWidth-1:0] address(logic [SlotWidth-1:0] of_slot, logic [BeatWidth-1:0] of_beat);
    return Beats == 1 ? AddressWidth'(of_slot) : AddressWidth'({of_slot, of_beat});
  endfunction

  // Number of the frame that is coming or comes next.
  logic [63:0] number;
  logic in_frame;
  logic [BeatWidth-1:0] beat;
  logic sliced;
  frame_user_t user;
  // Number of the newest frame whose slice is whole.
  logic [63:0] whole;
  // One clock later, for the sake of the count of bytes.
  logic done;
  logic [SlotWidth-1:0] done_slot;
  logic [63:0] done_number;
  logic [BeatWidth-1:0] done_beat;
  logic [6:0] done_bytes;
  frame_user_t done_user;

  // Keep is ones followed by zeros: whole groups of eight, and what is set of the one after them.
  function automatic logic [6:0] count_keep(logic [63:0] keep);
    logic [3:0] groups = '0;
    logic [7:0] rest = '0;
    logic [2:0] ones = '0;
    for (int i = 0; i < 8; i++) begin
      if (keep[8*i+7]) begin
        groups = 4'(i + 1);
      end else begin
        rest |= keep[8*i+:8];
      end
    end
    for (int i = 0; i < 7; i++) begin
      if (rest[i]) begin
        ones = 3'(i + 1);
      end
    end
    return {groups, ones};
  endfunction

  always_ff @(posedge clk) begin
    if (s_tvalid && !sliced) begin
      ring[address(number[SlotWidth-1:0], beat)] <= s_tdata;
    end
    if (s_tvalid && !in_frame) begin
      user <= s_tuser;
    end
    done_slot   <= number[SlotWidth-1:0];
    done_number <= number;
    done_beat   <= beat;
    done_bytes  <= count_keep(s_tkeep);
    done_user   <= in_frame ? user : s_tuser;
    if (done) begin
      infos[done_slot] <= '{bytes: 9'({done_beat, 6'd0}) + 9'(done_bytes), last_beat: done_beat, user: done_user};
    end
  end

  logic slice_ends;
  assign slice_ends = s_tvalid && !sliced && (s_tlast || beat == BeatWidth'(Beats - 1));

  always_ff @(posedge clk) begin
    done <= slice_ends;
    if (done) begin
      whole <= done_number;
    end
    if (s_tvalid) begin
      in_frame <= !s_tlast;
      number <= number + 64'(s_tlast);
      beat <= s_tlast ? '0 : beat + 1'b1;
      sliced <= !s_tlast && (sliced || slice_ends);
    end

    if (rst) begin
      done <= 1'b0;
      whole <= '0;
      in_frame <= 1'b0;
      number <= 64'd1;
      beat <= '0;
      sliced <= 1'b0;
    end
  end

  // --- Requests: wait until the slice is whole, then read it unless it is too old -------------------

  logic [63:0] wanted;
  logic wanted_valid;
  logic wanted_ready;
  logic queue_ready;
  // verilator lint_off UNUSEDSIGNAL
  logic [$clog2(Requests+3)-1:0] queue_level;
  // verilator lint_on UNUSEDSIGNAL

  weir_fifo #(
      .Width(64),
      .Depth(Requests),
      .RamStyle("distributed")
  ) queue (
      .clk,
      .rst,
      .s_data (request_number),
      .s_valid(request_valid),
      .s_ready(queue_ready),
      .m_data (wanted),
      .m_valid(wanted_valid),
      .m_ready(wanted_ready),
      .level  (queue_level)
  );

  // Of the request that waits, as it was a clock ago.
  logic looked;
  logic is_whole;
  logic is_kept;
  logic has_room;
  info_t info;
  logic begins;
  logic too_old;
  logic [63:0] age;
  logic [LevelWidth-1:0] level;

  // The slice that is being read: its head, then its beats.
  logic reading;
  logic [BeatWidth:0] step;
  logic step_last;
  slice_head_t head;
  logic [SlotWidth-1:0] slot;
  logic [BeatWidth-1:0] last_beat;

  // RAM and its output register.
  logic [511:0] ring_data;
  logic [511:0] ring_out;
  logic [1:0] out_valid;
  logic [1:0] out_head;
  logic [1:0] out_last;
  logic store_ready;

  assign age = number - wanted;
  assign begins = looked && is_whole && is_kept && has_room && !reading;
  assign too_old = looked && !is_kept;
  assign wanted_ready = begins || too_old;
  assign step_last = step == (BeatWidth + 1)'(last_beat) + 1'b1;

  always_ff @(posedge clk) begin
    info <= infos[wanted[SlotWidth-1:0]];
    is_whole <= whole >= wanted;
    // A frame that is still to come has a negative age.
    is_kept <= age[63] || age < 64'(Slots - Margin);

    if (begins) begin
      slot <= wanted[SlotWidth-1:0];
      last_beat <= info.last_beat;
      head <= '{
          reserved: '0,
          bytes: 16'(info.bytes),
          wire_length: 32'(info.user.wire_length),
          port: 8'(Port),
          timestamp: info.user.timestamp,
          number: wanted,
          slice: 64'(slices)
      };
    end
    ring_data <= ring[address(slot, BeatWidth'(step-1'b1))];
    ring_out  <= ring_data;
    out_head  <= {out_head[0], step == '0};
    out_last  <= {out_last[0], step_last};
  end

  always_ff @(posedge clk) begin
    looked <= wanted_valid && !wanted_ready;
    has_room <= 32'(level) <= Depth - 2 * (Beats + 1);
    out_valid <= {out_valid[0], reading};
    if (begins) begin
      reading <= 1'b1;
      step <= '0;
    end else if (reading) begin
      reading <= !step_last;
      step <= step + 1'b1;
    end
    requested <= requested + 32'(request_valid);
    slices <= slices + 32'(begins);
    dropped <= dropped + 32'(request_valid && !queue_ready) + 32'(too_old);

    if (rst) begin
      looked <= 1'b0;
      has_room <= 1'b1;
      out_valid <= '0;
      reading <= 1'b0;
      step <= '0;
      requested <= '0;
      slices <= '0;
      dropped <= '0;
    end
  end

  weir_fifo #(
      .Width(513),
      .Depth(Depth),
      .RamStyle("block")
  ) store (
      .clk,
      .rst,
      .s_data ({out_last[1], out_head[1] ? head : ring_out}),
      .s_valid(out_valid[1]),
      .s_ready(store_ready),
      .m_data ({m_tlast, m_tdata}),
      .m_valid(m_tvalid),
      .m_ready(m_tready),
      .level
  );

`ifndef SYNTHESIS
  a_room_was_there :
  assert property (@(posedge clk) disable iff (rst) out_valid[1] |-> store_ready);
  a_output_stable :
  assert property (@(posedge clk) disable iff (rst) m_tvalid && !m_tready |=> m_tvalid && $stable({m_tdata, m_tlast}));
  a_requests_conserved :
  assert property (@(posedge clk) disable iff (rst) requested == slices + dropped + 32'(queue_level));
`endif

endmodule

`default_nettype wire
