"""weir_stuck against a count of clocks."""

import cocotb
import stream
from cocotb.triggers import FallingEdge


@cocotb.test()
async def told_once(dut):
    """Waits of all lengths around the limit: told once, in the right clock, and again only after progress."""
    rng = stream.seeded()
    dut.valid.value = dut.ready.value = 0
    dut.limit.value = 5
    await stream.start(dut)
    await FallingEdge(dut.clk)
    told = 0
    for _ in range(300):
        limit = rng.choice([0, 1, 2, 9, 30])
        dut.limit.value, dut.valid.value, dut.ready.value = limit, 0, rng.randrange(2)
        await FallingEdge(dut.clk)
        await FallingEdge(dut.clk)
        wait = rng.randrange(1, 45)
        dut.valid.value, dut.ready.value = 1, 0
        seen = []
        for clock in range(wait):
            await FallingEdge(dut.clk)
            if dut.stuck.value:
                seen.append(clock)
        dut.valid.value, dut.ready.value = rng.choice([(0, 0), (1, 1), (0, 1)])
        await FallingEdge(dut.clk)
        if dut.stuck.value:
            seen.append(wait)
        due = max(limit, 1)
        assert seen == ([due] if wait >= due else []), f"limit {limit}, waited {wait}: {seen}"
        told += len(seen)
    assert told > 50
