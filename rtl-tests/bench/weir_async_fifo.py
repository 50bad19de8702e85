"""weir_async_fifo: clocks of any ratio, bits that are seen a clock later (weir_sync), resets of either side in traffic."""

import itertools
from collections import deque

import cocotb
import stream
from cocotb.clock import Clock
from cocotb.triggers import FallingEdge, Timer

CONFIG = stream.config()
DEPTH = CONFIG["Depth"]
# The board's clocks: card, MAC, host; one that is far slower.
PERIODS = {"card": 3334, "mac": 3102, "host": 4000, "slow": 9998}
# Clocks of the slower side that a reset is to last.
RESET = 16


class Bench:
    def __init__(self, dut, periods, shares):
        self.dut, self.periods = dut, dict(zip("sm", periods, strict=True))
        self.sends, self.takes = (stream.randomly(share) for share in shares)
        self.numbers = itertools.count(1)
        # What the writing side accepted since its last reset; what the reading side may still see.
        self.accepted = self.expected = deque()
        self.received = 0
        self.sending = True

    async def start(self):
        dut, random = self.dut, stream.seeded()
        dut.s_rst.value = dut.m_rst.value = 1
        dut.s_valid.value = dut.m_ready.value = dut.s_data.value = 0
        dut.s_clk.value = dut.m_clk.value = 0
        await Timer(4, "ns")
        for side, period in self.periods.items():
            await Timer(random.randrange(1, period), "ps")
            Clock(getattr(dut, f"{side}_clk"), period, unit="ps").start(start_high=False)
        cocotb.start_soon(self.write())
        cocotb.start_soon(self.read())
        await self.slow_clocks(RESET)
        dut.s_rst.value = dut.m_rst.value = 0

    async def slow_clocks(self, count):
        await Timer(max(self.periods.values()) * count, "ps")

    async def write(self):
        dut, was_reset = self.dut, False
        while True:
            await FallingEdge(dut.s_clk)
            # Pins stand still from here to the rising edge.
            offers = self.sending and self.sends()
            number = next(self.numbers) & 0xFFFF if offers else 0
            dut.s_valid.value, dut.s_data.value = offers, number
            await Timer(100, "ps")
            if dut.s_reset.value and not was_reset:
                self.accepted = deque()
            was_reset = bool(dut.s_reset.value)
            if offers and dut.s_ready.value and not was_reset:
                self.accepted.append(number)

    async def read(self):
        dut = self.dut
        while True:
            await FallingEdge(dut.m_clk)
            takes = self.takes()
            dut.m_ready.value = takes
            await Timer(100, "ps")
            if dut.m_reset.value:
                self.expected = self.accepted
            elif takes and dut.m_valid.value:
                assert self.expected, f"{int(dut.m_data.value)} was never accepted"
                assert int(dut.m_data.value) == self.expected.popleft()
                self.received += 1


def pairs():
    return [*itertools.permutations(PERIODS, 2), ("card", "card")]


@cocotb.test()
@cocotb.parametrize(clocks=pairs(), shares=[(0.9, 0.9), (0.9, 0.3), (0.3, 0.9)])
async def words_come_in_order(dut, clocks, shares):
    bench = Bench(dut, [PERIODS[name] for name in clocks], shares)
    await bench.start()
    await bench.slow_clocks(400)
    bench.sending = False
    await bench.slow_clocks(20 + 10 * DEPTH)
    assert not bench.expected and bench.received > 80


@cocotb.test()
@cocotb.parametrize(clocks=pairs())
async def resets_of_either_side(dut, clocks):
    """At any moment; each empties both sides, and what comes after is whole."""
    bench, random = Bench(dut, [PERIODS[name] for name in clocks], (0.9, 0.6)), stream.seeded()
    await bench.start()
    for _ in range(30):
        before = bench.received
        await bench.slow_clocks(random.randrange(25, 60))
        assert bench.received > before
        await Timer(random.randrange(1, 20_000), "ps")
        for pin in random.choice([(dut.s_rst,), (dut.m_rst,), (dut.s_rst, dut.m_rst)]):
            await FallingEdge(dut.s_clk if pin is dut.s_rst else dut.m_clk)
            pin.value = 1
        await bench.slow_clocks(RESET)
        for pin, clock in ((dut.s_rst, dut.s_clk), (dut.m_rst, dut.m_clk)):
            await FallingEdge(clock)
            pin.value = 0
    bench.sending = False
    await bench.slow_clocks(20 + 10 * DEPTH)
    assert not bench.expected
