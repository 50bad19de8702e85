"""weir_skid: order, full rate, ready from a register."""

import cocotb
import stream
from cocotb.triggers import ReadOnly, RisingEdge

WIDTH = stream.config()["Width"]


async def transfer(dut, count, gap=None, stall=None):
    random = stream.seeded()
    expected = [random.getrandbits(WIDTH) for _ in range(count)]
    source, sink = stream.Source(dut, "s", ({"data": w} for w in expected), gap), stream.Sink(dut, "m", stall=stall)
    clocks = received = 0
    while received < count:
        await RisingEdge(dut.clk)
        word = sink.step()
        source.step()
        if word:
            assert word[0] == expected[received], f"word {received}"
            received += 1
        assert 0 <= source.sent - received <= 2
        clocks += 1
        assert clocks < 100 + 1000 * count
    return clocks


@cocotb.test()
async def ready_does_not_follow_in_the_same_clock(dut):
    await stream.start(dut)
    dut.s_data.value = 1
    dut.s_valid.value = 1
    dut.m_ready.value = 1
    for _ in range(3):
        await RisingEdge(dut.clk)
    dut.m_ready.value = 0
    await ReadOnly()
    assert dut.s_ready.value
    await RisingEdge(dut.clk)
    await ReadOnly()
    assert not dut.s_ready.value and dut.m_valid.value


@cocotb.test()
async def maximum(dut):
    await stream.start(dut)
    count = 100_000
    clocks = await transfer(dut, count)
    dut._log.info("%.4f words per clock", count / clocks)
    assert clocks <= count + 2


@cocotb.test()
@cocotb.parametrize(shares=[(0.5, 0.5), (0.1, 0.6), (0.6, 0.1)])
async def stress(dut, shares):
    await stream.start(dut)
    await transfer(dut, 10_000, stream.randomly(shares[0]), stream.randomly(shares[1]))
