"""weir_frame_end: frames leave whole and in order; one that a reset cuts ends with the last beat, as soon as there is room."""

import cocotb
import stream
from cocotb.triggers import FallingEdge, Timer

CONFIG = stream.config()
LAST_BEAT = CONFIG["LastBeat"]


class Driver:
    """Frames of numbered beats from a source that `cut` resets, as measuring is: what it offered is gone at once."""

    def __init__(self, dut, length, gap=None, hold=None, stall=None):
        self.dut, self.length, self.gap, self.hold, self.stall = dut, length, gap, hold, stall
        self.number, self.left, self.frame = 0, 0, []
        self.whole, self.begun = [], []  # beats of frames that ended; of those that a reset cut
        self.frames, self.taken = [], []
        self.clocks = self.cuts = 0
        self.cut = False

    async def clock(self, cut=False):
        dut = self.dut
        if self.cut and self.frame:
            self.begun.append((len(self.whole), self.frame))
            self.whole.append(None)
            self.frame, self.cuts = [], self.cuts + 1
        if self.cut:
            self.left = 0
        elif not self.left and not (self.gap and self.gap()):
            self.left = self.length()
        self.cut = cut
        dut.cut.value, dut.hold.value = int(cut), int(bool(self.hold and self.hold()))
        dut.s_tvalid.value, dut.s_tdata.value, dut.s_tlast.value = int(self.left > 0), self.number, int(self.left == 1)
        dut.m_tready.value = int(not (self.stall and self.stall()))
        await Timer(1, "ns")
        if self.left and dut.s_tready.value and not cut:
            self.frame.append(self.number)
            self.number, self.left = self.number + 1, self.left - 1
            if not self.left:
                self.whole.append(self.frame)
                self.frame = []
        if dut.m_tvalid.value and dut.m_tready.value:
            self.taken.append(int(dut.m_tdata.value))
            if dut.m_tlast.value:
                self.frames.append(self.taken)
                self.taken = []
        await FallingEdge(dut.clk)
        self.clocks += 1

    def check(self):
        assert not self.taken, "within a frame"
        for place, beats in self.begun:
            self.whole[place] = [*beats, LAST_BEAT]
        assert self.frames == self.whole

    async def drain(self):
        self.gap, self.hold, self.stall = lambda: True, None, None
        while self.left:
            await self.clock()
        for _ in range(5):
            await self.clock()
        self.check()


async def start(dut, length, **more):
    for pin in ("cut", "hold", "s_tdata", "s_tlast", "s_tvalid", "m_tready"):
        getattr(dut, pin).value = 0
    await stream.start(dut)
    await FallingEdge(dut.clk)
    return Driver(dut, length, **more)


@cocotb.test()
async def a_reset_at_each_beat(dut):
    """A frame of four beats, reset before, within and behind it, with the link standing still and not: what was begun ends."""
    for stalled in (False, True):
        for at in range(8):
            driver = await start(dut, lambda: 4, stall=lambda here=stalled: here)
            for _ in range(at):
                await driver.clock()
            for _ in range(3):
                await driver.clock(cut=True)
            driver.stall = None
            for _ in range(12):
                await driver.clock()
            assert stalled or (driver.cuts == 1) == (at % 4 != 0), at
            await driver.drain()


@cocotb.test()
async def held(dut):
    """Nothing leaves but the end of a frame that is cut."""
    driver = await start(dut, lambda: 5)
    for _ in range(2):
        await driver.clock()
    driver.hold = lambda: True
    for _ in range(10):
        await driver.clock()
    assert len(driver.taken) == 2 and not driver.frames
    await driver.clock(cut=True)
    for _ in range(4):
        await driver.clock()
    assert driver.frames == [[0, 1, LAST_BEAT]]
    await driver.drain()


@cocotb.test()
async def maximum(dut):
    """A beat per clock."""
    driver = await start(dut, lambda: 3)
    for _ in range(30_000):
        await driver.clock()
    assert driver.number == driver.clocks
    await driver.drain()


@cocotb.test()
@cocotb.parametrize(shares=[(0.5, 0.5), (0.1, 0.8), (0.6, 0.1)])
async def stress(dut, shares):
    rng = stream.seeded()
    driver = await start(
        dut,
        lambda: rng.randint(1, 6),
        gap=stream.randomly(shares[0]),
        hold=stream.in_runs(0.1, 20),
        stall=stream.randomly(shares[1]),
    )
    while driver.clocks < 20_000:
        if rng.random() < 0.02:
            for _ in range(rng.randint(1, 8)):
                await driver.clock(cut=True)
        await driver.clock()
    await driver.drain()
    assert driver.cuts > 50
