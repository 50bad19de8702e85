"""weir_fifo: order, fill level, full rate, stress."""

import cocotb
import stream
from cocotb.triggers import RisingEdge

CONFIG = stream.config()
WIDTH, DEPTH = CONFIG["Width"], CONFIG["Depth"]
CAPACITY = DEPTH + 2


def numbers(count, source):
    """Random words with their position in the low bits, so that an exchange cannot go unseen."""
    for i in range(count):
        yield source.getrandbits(WIDTH) & ~0x3F | i & 0x3F


async def transfer(dut, count, gap=None, stall=None):
    """Send and receive `count` words, check order and level in each clock; clocks that it took."""
    expected = []
    feed = ({"data": expected[-1]} for word in numbers(count, stream.seeded()) if expected.append(word) is None)
    source, sink = stream.Source(dut, "s", feed, gap), stream.Sink(dut, "m", stall=stall)
    clocks = received = 0
    while received < count:
        await RisingEdge(dut.clk)
        assert int(dut.level.value) == source.sent - received
        word = sink.step()
        source.step()
        if word:
            assert word[0] == expected[received], f"word {received}"
            received += 1
        clocks += 1
        assert clocks < 100 + 1000 * count
    for _ in range(8):
        await RisingEdge(dut.clk)
        assert not dut.m_valid.value and int(dut.level.value) == 0
    return clocks


@cocotb.test()
async def fills_and_empties(dut):
    await stream.start(dut)
    dut.m_ready.value = 0
    source = stream.Source(dut, "s", ({"data": word % 2**WIDTH} for word in range(10 * CAPACITY)))
    for _ in range(2 * CAPACITY + 8):
        await RisingEdge(dut.clk)
        source.step()
    assert source.sent == CAPACITY == int(dut.level.value)
    assert not dut.s_ready.value
    dut.s_valid.value = 0
    dut.m_ready.value = 1
    for expected in range(CAPACITY):
        await RisingEdge(dut.clk)
        assert dut.m_valid.value, "one word per clock"
        assert int(dut.m_data.value) == expected % 2**WIDTH
    await RisingEdge(dut.clk)
    assert not dut.m_valid.value


@cocotb.test()
async def latency_is_three_clocks(dut):
    await stream.start(dut)
    dut.m_ready.value = 0
    dut.s_valid.value = 1
    dut.s_data.value = 5
    await RisingEdge(dut.clk)
    dut.s_valid.value = 0
    seen = []
    for _ in range(4):
        await RisingEdge(dut.clk)
        seen.append(int(dut.m_valid.value))
    assert seen == [0, 0, 1, 1]


@cocotb.test()
async def reset_forgets(dut):
    await stream.start(dut)
    dut.m_ready.value = 0
    source = stream.Source(dut, "s", ({"data": 1} for _ in range(4)))
    for _ in range(6):
        await RisingEdge(dut.clk)
        source.step()
    dut.s_valid.value = 0
    dut.rst.value = 1
    await RisingEdge(dut.clk)
    dut.rst.value = 0
    await transfer(dut, 3 * CAPACITY)


@cocotb.test()
async def maximum(dut):
    await stream.start(dut)
    count = 100_000
    clocks = await transfer(dut, count)
    dut._log.info("%.4f words per clock", count / clocks)
    assert clocks <= count + 4


@cocotb.test()
@cocotb.parametrize(shares=[(0.5, 0.5), (0.1, 0.6), (0.6, 0.1), (0.03, 0.03)])
async def stress(dut, shares):
    await stream.start(dut)
    await transfer(dut, 5_000, stream.randomly(shares[0]), stream.in_runs(shares[1], 1 + DEPTH))
