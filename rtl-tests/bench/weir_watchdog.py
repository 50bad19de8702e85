"""weir_watchdog against a count of clocks."""

import cocotb
import stream
from cocotb.triggers import FallingEdge, ReadOnly, RisingEdge

KEY = 0x4B49434B


@cocotb.test()
async def expires_when_it_should(dut):
    """Kicks, wrong kicks, pauses and timeouts at random: expiries in exactly the clocks that the contract says."""
    rng = stream.seeded()
    for pin in ("running", "enable", "timeout", "kick_valid", "kick_key"):
        getattr(dut, pin).value = 0
    await stream.start(dut)
    running = enable = watching = good_kick = expired = False
    timeout, left, expiries, bad_kicks, seen = 5, None, 0, 0, 0
    for clock in range(6000):
        await FallingEdge(dut.clk)
        if rng.random() < 0.02 or clock == 0:
            running, enable = rng.random() < 0.8, rng.random() < 0.9
        if rng.random() < 0.02 or clock == 0:
            timeout = rng.choice([0, 1, 2, 3, 10, 30])
        kick = rng.random() < rng.choice([0.02, 0.1])
        key = KEY if rng.random() < 0.7 else rng.choice([0, KEY ^ 1 << rng.randrange(32)])
        dut.running.value, dut.enable.value, dut.timeout.value = running, enable, timeout
        dut.kick_valid.value, dut.kick_key.value = kick, key
        # The edge to come, on what was before it.
        start = not watching or good_kick or expired
        due = not start and left is not None and left <= 1
        left = timeout if start else None if left is None else left - (not due)
        watching, good_kick, expired = running and enable, kick and key == KEY, due
        expiries += due
        bad_kicks += kick and key != KEY
        await RisingEdge(dut.clk)
        await ReadOnly()
        assert bool(dut.expired.value) == expired, f"clock {clock}"
        seen += expired
        assert (int(dut.expiries.value), int(dut.bad_kicks.value)) == (expiries, bad_kicks)
        if left is not None:
            assert int(dut.left.value) == left
    assert seen > 20 and bad_kicks > 20


@cocotb.test()
async def every_bit_of_the_key_counts(dut):
    """A key that is wrong in one bit is a wrong one."""
    for pin in ("running", "enable", "timeout", "kick_valid"):
        getattr(dut, pin).value = 0
    await stream.start(dut)
    dut.kick_valid.value = 1
    for bit in range(32):
        await FallingEdge(dut.clk)
        dut.kick_key.value = KEY ^ 1 << bit
    await FallingEdge(dut.clk)
    dut.kick_valid.value = 0
    await FallingEdge(dut.clk)
    assert int(dut.bad_kicks.value) >= 32


@cocotb.test()
async def distance(dut):
    """From the edge that takes a kick to the one that shows the expiry: timeout + 1 clocks."""
    for pin in ("running", "enable", "timeout", "kick_valid"):
        getattr(dut, pin).value = 0
    dut.kick_key.value = KEY
    await stream.start(dut)
    dut.running.value = dut.enable.value = 1
    for timeout in (1, 2, 7, 100):
        dut.timeout.value = timeout
        dut.kick_valid.value = 1
        await FallingEdge(dut.clk)
        await FallingEdge(dut.clk)
        dut.kick_valid.value = 0
        clocks = 0
        while not dut.expired.value:
            await FallingEdge(dut.clk)
            clocks += 1
        assert clocks == timeout + 1, f"{timeout}: {clocks}"
        await FallingEdge(dut.clk)
