"""weir_timer: due from the clock on that compare names."""

import cocotb
import stream
from cocotb.triggers import FallingEdge


@cocotb.test()
async def due(dut):
    """compare at random around now, in both words; the interrupt follows where enabled."""
    rng = stream.seeded()
    dut.compare.value, dut.enable.value = (1 << 64) - 1, 0
    await stream.start(dut)
    await FallingEdge(dut.clk)
    assert dut.now.value == 0
    compares, enables, dues, seen = [(1 << 64) - 1] * 4, [0] * 4, [], set()
    for clock in range(4000):
        now = int(dut.now.value)
        assert now == clock
        if clock > 4:
            expected = now - 2 >= compares[-2]
            assert bool(dut.due.value) == expected, f"clock {clock}"
            assert bool(dut.irq.value) == (dues[-1] and bool(enables[-1]))
            seen.add((expected, compares[-2] >> 32 == 0))
        dues.append(bool(dut.due.value))
        compare, enable = compares[-1], enables[-1]
        if rng.random() < 0.05:
            compare = rng.choice([max(0, now + rng.randrange(-5, 30)), 0, 1 << 32, (1 << 32) + now, now << 32])
        if rng.random() < 0.05:
            enable = rng.randrange(2)
        compares.append(compare)
        enables.append(enable)
        dut.compare.value, dut.enable.value = compare, enable
        await FallingEdge(dut.clk)
    assert seen == {(True, True), (False, True), (False, False)}
