"""weir_meta_fifo: order, and every word is delivered or counted as dropped."""

import cocotb
import stream
from cocotb.triggers import RisingEdge
from structs import pack, unpack

DEPTH = stream.config()["Depth"]
HELD = DEPTH + 2


async def fill(dut, count, gap=None, stall=None):
    """Send `count` words; numbers of those that came out."""
    words = ({"meta": pack("meta_t", {"number": i, "timestamp": 3 * i, "seq": i & 0xFFFF})} for i in range(count))
    source, sink = stream.Source(dut, "s", words, gap), stream.Sink(dut, "m", ("meta",), stall)
    got, quiet = [], 0
    while quiet < 10:
        await RisingEdge(dut.clk)
        word = sink.step()
        source.step()
        if word:
            meta = unpack("meta_t", word[0])
            assert (meta["timestamp"], meta["seq"]) == (3 * meta["number"], meta["number"] & 0xFFFF)
            got.append(meta["number"])
        quiet = quiet + 1 if source.done and int(dut.level.value) == 0 else 0
    return got


@cocotb.test()
async def drops_what_finds_no_room(dut):
    await stream.start(dut)
    stalled = [True]
    sending = cocotb.start_soon(fill(dut, 3 * HELD, stall=lambda: stalled[0]))
    for _ in range(4 * HELD):
        await RisingEdge(dut.clk)
    # Words go on into the two registers while the memory fills.
    assert int(dut.dropped.value) == 3 * HELD - HELD
    assert int(dut.level.value) == int(dut.highest.value) == HELD
    stalled[0] = False
    got = await sending
    assert got == list(range(HELD))
    assert int(dut.dropped.value) == 2 * HELD and int(dut.level.value) == 0


@cocotb.test()
async def full_rate_drops_nothing(dut):
    await stream.start(dut)
    assert await fill(dut, 5000) == list(range(5000))
    assert int(dut.dropped.value) == 0


@cocotb.test()
@cocotb.parametrize(shares=[(0.5, 0.5), (0.0, 0.3), (0.3, 0.0), (0.0, 0.8)])
async def every_word_is_delivered_or_counted(dut, shares):
    await stream.start(dut)
    count = 3000
    got = await fill(dut, count, stream.randomly(shares[0]), stream.in_runs(shares[1], 2 * DEPTH))
    assert got == sorted(set(got)), "order"
    assert len(got) + int(dut.dropped.value) == count
