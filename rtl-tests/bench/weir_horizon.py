"""weir_horizon: the port's time less MaxNs, which stands while a word waits, and the time itself, which does not."""

import cocotb
import stream
from cocotb.triggers import FallingEdge, RisingEdge

MAX_NS = stream.config()["MaxNs"]


@cocotb.test()
async def follows_the_clock_but_not_past_a_word_that_waits(dut):
    random = stream.seeded()
    dut.waiting.value, dut.offset.value, dut.tai_ns.value = 0, 0, 1 << 60
    await stream.start(dut)
    await FallingEdge(dut.clk)
    assert dut.horizon.value == 0, "before the first clock nothing is known to be over"
    assert dut.latest.value == (1 << 64) - 1, "nor to be too late"
    time, waiting, stood = 1 << 60, False, 0
    for _ in range(30):
        offset = random.choice([0, -1, 1, 2**31 - 1, -(2**31)])
        dut.offset.value = offset
        # A setting: two clocks until all of it shows.
        for _ in range(2):
            await RisingEdge(dut.clk)
        await FallingEdge(dut.clk)
        before = int(dut.horizon.value)
        for _ in range(50):
            time += random.choice([3, 4, 2**33, -(2**34)])
            waiting = random.random() < 0.4
            dut.tai_ns.value, dut.waiting.value = time, waiting
            await FallingEdge(dut.clk)
            expected = before if waiting else time + offset - MAX_NS
            assert int(dut.horizon.value) == expected
            assert int(dut.latest.value) == time + offset
            before, stood = expected, stood + waiting
    assert stood > 100
    dut.rst.value = 1
    await FallingEdge(dut.clk)
    assert dut.horizon.value == 0
