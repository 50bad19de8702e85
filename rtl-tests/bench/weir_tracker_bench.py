"""weir_tracker: how words are spaced changes nothing. Words back to back, in every mix, make the same records, timeout
updates and counts of what was left out as the same words one at a time (weir_tracker_bench.sv)."""

import itertools

import cocotb
import stream
import weir_records as records
from cocotb.triggers import RisingEdge

SETTINGS = ("words", "checked", "cycle", "bubbles", "visits", "odd", "sheds")
WORDS = 100_000
FLOWS = 32
runs = itertools.count()


async def play(dut, **settings):
    """One run; settings left out are 0. Packets per clock."""
    random = stream.seeded()
    seed = random.getrandbits(64)
    dut.go.value = 0
    settings = {"checked": settings["words"], **settings}
    for name in SETTINGS:
        getattr(dut, name).value = settings.get(name, 0)
    dut.seed.value = seed
    dut.base.value = FLOWS * next(runs)
    await stream.start(dut)
    await RisingEdge(dut.clk)
    dut.go.value = 1
    await RisingEdge(dut.clk)
    dut.go.value = 0
    await RisingEdge(dut.done)
    await RisingEdge(dut.clk)
    await RisingEdge(dut.clk)
    count, words, checked = int(dut.records.value), settings["words"], settings["checked"]
    if dut.differs.value:
        one, other = (
            records.parse(int(pin.value).to_bytes(64, "little")) for pin in (dut.fast_record, dut.slow_record)
        )
        names = [f"{n}: {one.get(n)}, apart {other.get(n)}" for n in one if one.get(n) != other.get(n)]
        raise AssertionError(f"seed {seed:#x}, record {count} differs when words come close: {names}\n{one}\n{other}")
    number = int(dut.distances.value)
    distances = {d: number >> 32 * d & 0xFFFFFFFF for d in range(1, 16)}
    rate = words / (int(dut.clocks.value) + 1)
    dut._log.info(
        "%s: %.3f packets per clock, %d records, %d updates, %d left out, seed %#x",
        settings,
        rate,
        count,
        int(dut.updates.value),
        int(dut.left_out_count.value),
        seed,
    )
    assert count > checked / 3 and int(dut.updates.value) > checked / 2
    return rate, distances


@cocotb.test()
@cocotb.parametrize(cycle=[1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 0])
async def back_to_back(dut, cycle):
    """One word in every clock: one flow, A-B-A-B at each distance, any of all contexts."""
    rate, distances = await play(dut, words=WORDS, checked=8000 if cycle else 40_000, cycle=cycle, visits=5, odd=20)
    assert rate == 1
    if cycle:
        assert distances[cycle] > 0.9 * WORDS
    else:
        assert min(distances.values()) > 100, distances


@cocotb.test()
@cocotb.parametrize(bubbles=[5, 50, 80], cycle=[1, 2, 5, 0], odd=[5, 60])
async def with_bubbles(dut, bubbles, cycle, odd):
    _, distances = await play(dut, words=4000, cycle=cycle, bubbles=bubbles, visits=10, odd=odd, sheds=odd)
    if cycle == 1 and bubbles == 80:
        assert min(distances.values()) > 0, distances
