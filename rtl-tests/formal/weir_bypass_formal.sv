// Proves weir_bypass: what leaves is the direct stream two clocks later whatever the measured one does, the mode changes
// between frames but for faults, measured mode does not outlive the heartbeat, and after a fault it waits for the next one.

`default_nettype none

module weir_bypass_formal (
    input var logic clk,
    input var logic rst,
    input var logic enable,
    input var logic heartbeat,
    input var logic [1:0] data,
    input var logic [1:0] keep,
    input var logic last,
    input var logic error,
    input var logic valid,
    // The measured stage fails: its control signals are anything.
    input var logic broken,
    input var logic [1:0] broken_keep,
    input var logic broken_last,
    input var logic broken_error,
    input var logic broken_valid
);

  localparam int Heartbeat = 3;

  logic [1:0][1:0] data_q;
  logic [1:0][1:0] keep_q;
  logic [1:0] last_q;
  logic [1:0] error_q;
  logic [1:0] valid_q;
  logic [2:0] quiet;
  logic started = 1'b0;
  logic in_frame;
  logic was_measured;
  logic was_open;
  logic [1:0] was_faults;
  // A fault came, and no heartbeat since. One in the clock of the fault is before it.
  logic disarmed;

  logic [511:0] m_tdata;
  logic [63:0] m_tkeep;
  logic m_tlast;
  logic m_terror;
  logic m_tvalid;
  logic measured;
  // verilator lint_off UNUSEDSIGNAL
  logic [31:0] takeovers;
  logic [31:0] faults;
  // verilator lint_on UNUSEDSIGNAL

  logic agrees;
  logic measured_valid;
  assign measured_valid = broken ? broken_valid : valid;
  assign agrees = !broken || (broken_valid == valid &&
      (!valid || {broken_last, broken_error, broken_keep} == {last, error, keep}));

  weir_bypass #(
      .Heartbeat(Heartbeat)
  ) dut (
      .clk,
      .rst,
      .enable,
      .heartbeat,
      .direct_tdata(512'(data)),
      .direct_tkeep(64'(keep)),
      .direct_tlast(last),
      .direct_terror(error),
      .direct_tvalid(valid),
      // What agrees is believed; what does not carries wrong data.
      .measured_tdata(512'(data ^ {2{!agrees}})),
      .measured_tkeep(64'(broken ? broken_keep : keep)),
      .measured_tlast(broken ? broken_last : last),
      .measured_terror(broken ? broken_error : error),
      .measured_tvalid(measured_valid),
      .m_tdata,
      .m_tkeep,
      .m_tlast,
      .m_terror,
      .m_tvalid,
      .measured,
      .takeovers,
      .faults
  );

  always_ff @(posedge clk) begin
    started <= 1'b1;
    data_q <= {data_q[0], data};
    keep_q <= {keep_q[0], keep};
    last_q <= {last_q[0], last};
    error_q <= {error_q[0], error};
    valid_q <= {valid_q[0], valid};
    quiet <= heartbeat ? '0 : quiet == '1 ? quiet : quiet + 1'b1;
    in_frame <= m_tvalid ? !m_tlast : in_frame;
    was_measured <= measured;
    was_open <= m_tvalid ? !m_tlast : in_frame;
    was_faults <= faults[1:0];
    disarmed <= !heartbeat && (disarmed || faults[1:0] != was_faults);
    if (rst) begin
      valid_q <= '0;
      quiet <= '1;
      in_frame <= 1'b0;
      was_measured <= 1'b0;
      was_open <= 1'b0;
      was_faults <= '0;
      disarmed <= 1'b0;
    end
  end

  always_comb begin
    assume (rst == !started);
    if (started) begin
      assert (m_tvalid == valid_q[1]);
      if (m_tvalid) begin
        assert (m_tdata == 512'(data_q[1]));
        assert (m_tkeep == 64'(keep_q[1]));
        assert (m_tlast == last_q[1]);
        assert (m_terror == error_q[1]);
      end
      // Within a frame: the same mode as for the beat before, but for a fault.
      assert (!was_open || measured == was_measured || faults[1:0] != was_faults);
      assert (!was_open || !measured || was_measured);
      // At most Heartbeat + 2 clocks after the last heartbeat the mode falls, unless a frame is open.
      assert (!measured || was_open || 32'(quiet) <= Heartbeat + 3);
      assert (!measured || !disarmed);
      cover (measured && m_tvalid);
      cover (was_measured && !measured && faults == 0);
      cover (faults == 2);
    end
  end

endmodule

`default_nettype wire
