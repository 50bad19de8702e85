// Bypass of the inline path: chooses, for one direction, between the frames that came through the
// measured stage and the same frames that came past it on wires and registers alone.
//
// Promise      m_ is direct_, two clocks later, beat for beat, whatever measured_ does: both carry the
//              same beat in the same clock, and measured_ is taken only where it agrees with direct_
//              on valid, last, keep and error. So no frame is damaged, repeated, lost or reordered, neither
//              at a switch nor when the measured stage is reset or hangs within a frame.
// Mode         Bypass from reset. Measured mode begins between two frames when `enable` is high and
//              a heartbeat came within the last Heartbeat clocks. It ends between two frames when
//              there was none for Heartbeat clocks or enable fell: Heartbeat + 2 clocks at most, plus
//              the rest of the frame that is passing. It ends at once, in the clock of the first
//              beat concerned, when measured_ differs (a fault); the next heartbeat arms again.
// Throughput   One beat per clock, no back-pressure. Latency two clocks in either mode.
// Counters     Takeovers (measured to bypass, faults included), faults; they wrap.
// Hazards      direct_ and measured_ are to have the same latency from their common source. A stage
//              that changes data while all else agrees is believed.

`default_nettype none

module weir_bypass #(
    // Clocks without a heartbeat until bypass takes over; 3,000,000 is 10 ms at 300 MHz.
    parameter int Heartbeat = 3_000_000
) (
    input var logic clk,
    input var logic rst,

    input var logic enable,
    // High for a clock.
    input var logic heartbeat,

    input var logic [511:0] direct_tdata,
    input var logic [63:0] direct_tkeep,
    input var logic direct_tlast,
    input var logic direct_terror,
    input var logic direct_tvalid,

    input var logic [511:0] measured_tdata,
    input var logic [63:0] measured_tkeep,
    input var logic measured_tlast,
    input var logic measured_terror,
    input var logic measured_tvalid,

    output var logic [511:0] m_tdata,
    output var logic [63:0] m_tkeep,
    output var logic m_tlast,
    output var logic m_terror,
    output var logic m_tvalid,

    // Mode of the beat at m_.
    output var logic measured,
    output var logic [31:0] takeovers,
    output var logic [31:0] faults
);

  localparam int AgeWidth = $clog2(Heartbeat + 1);

  if (Heartbeat < 1) begin : gen_check_heartbeat
    $error("Heartbeat must be positive");
  end

  // A heartbeat came, and not too long ago.
  logic alive;
  logic [AgeWidth-1:0] age;

  // First clock: both beats side by side, and whether they agree.
  logic [511:0] direct_data;
  logic [511:0] measured_data;
  logic [63:0] keep;
  logic last;
  logic error;
  logic valid;
  logic agrees;

  // Mode for that beat; changes between frames, but for a fault.
  logic use_measured;
  logic in_frame;
  logic open_after;
  logic fault;
  logic wanted;

  assign fault = use_measured && !agrees;
  assign open_after = valid ? !last : in_frame;
  assign wanted = alive && enable && agrees;

  always_ff @(posedge clk) begin
    direct_data <= direct_tdata;
    measured_data <= measured_tdata;
    keep <= direct_tkeep;
    last <= direct_tlast;
    error <= direct_terror;

    m_tdata <= use_measured && agrees ? measured_data : direct_data;
    m_tkeep <= keep;
    m_tlast <= last;
    m_terror <= error;
  end

  always_ff @(posedge clk) begin
    valid <= direct_tvalid;
    agrees <= direct_tvalid == measured_tvalid && (!direct_tvalid ||
        {direct_tlast, direct_terror, direct_tkeep} == {measured_tlast, measured_terror, measured_tkeep});
    in_frame <= open_after;
    m_tvalid <= valid;
    measured <= use_measured && agrees;

    if (heartbeat) begin
      alive <= 1'b1;
      age   <= '0;
    end else if (age == AgeWidth'(Heartbeat - 1)) begin
      alive <= 1'b0;
    end else begin
      age <= age + 1'b1;
    end

    if (fault) begin
      use_measured <= 1'b0;
      alive <= 1'b0;
    end else if (!open_after) begin
      use_measured <= wanted;
    end
    faults <= faults + 32'(fault);
    takeovers <= takeovers + 32'(fault || (use_measured && !open_after && !wanted));

    if (rst) begin
      valid <= 1'b0;
      agrees <= 1'b0;
      in_frame <= 1'b0;
      m_tvalid <= 1'b0;
      measured <= 1'b0;
      alive <= 1'b0;
      age <= '0;
      use_measured <= 1'b0;
      faults <= '0;
      takeovers <= '0;
    end
  end

`ifndef SYNTHESIS
  a_mode_between_frames :
  assert property (@(posedge clk) disable iff (rst) open_after && !fault |=> $stable(use_measured));
  a_bypass_without_heartbeat :
  assert property (@(posedge clk) disable iff (rst) !alive && !open_after |=> !use_measured);
`endif

endmodule

`default_nettype wire
