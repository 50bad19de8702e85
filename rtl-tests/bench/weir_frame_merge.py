"""weir_frame_merge: frames leave whole and in order, both streams get their turns, one alone has no gaps."""

import cocotb
import stream
from cocotb.triggers import FallingEdge, Timer

WIDTH = stream.config()["Width"]
NUMBER = WIDTH - 1  # bits of a beat's number; the highest bit is its stream


class Driver:
    """Frames of both streams; within a frame a beat is offered in every clock."""

    def __init__(self, dut, lengths, gap=None, stall=None):
        self.dut, self.gap, self.stall = dut, gap, stall
        self.waiting = [list(of_stream) for of_stream in lengths]  # beats of each frame
        self.left = [0, 0]  # of the frame that is offered
        self.number = [0, 0]
        self.taken = []  # (stream, number, last)
        self.clocks = 0

    async def clock(self):
        dut = self.dut
        for s in (0, 1):
            if not self.left[s] and self.waiting[s] and not (self.gap and self.gap()):
                self.left[s] = self.waiting[s].pop(0)
        data = sum((s << NUMBER | self.number[s]) << WIDTH * s for s in (0, 1))
        dut.s_tdata.value = data
        dut.s_tlast.value = sum((self.left[s] == 1) << s for s in (0, 1))
        dut.s_tvalid.value = sum((self.left[s] > 0) << s for s in (0, 1))
        dut.m_tready.value = int(not (self.stall and self.stall()))
        await Timer(1, "ns")
        ready = int(dut.s_tready.value)
        if dut.m_tvalid.value and dut.m_tready.value:
            beat = int(dut.m_tdata.value)
            self.taken.append((beat >> NUMBER, beat & (1 << NUMBER) - 1, int(dut.m_tlast.value)))
        assert ready != 3, "both streams were told to go on"
        for s in (0, 1):
            if ready >> s & 1 and self.left[s]:
                self.left[s] -= 1
                self.number[s] += 1
        await FallingEdge(dut.clk)
        self.clocks += 1

    async def run(self):
        while any(self.waiting) or any(self.left):
            await self.clock()
            assert self.clocks < 100_000


async def start(dut, lengths, **more):
    dut.s_tvalid.value = dut.m_tready.value = 0
    await stream.start(dut)
    await FallingEdge(dut.clk)
    return Driver(dut, lengths, **more)


def frames(taken):
    """(stream, beats) of each frame; fails where one is not whole or a beat is out of place."""
    found, number = [], [0, 0]
    begun = None
    for s, n, last in taken:
        assert n == number[s], f"beat {n} of stream {s} instead of {number[s]}"
        number[s] += 1
        if begun is None:
            begun = [s, 0]
        assert begun[0] == s, "a frame within a frame"
        begun[1] += 1
        if last:
            found.append(tuple(begun))
            begun = None
    assert begun is None
    return found


@cocotb.test()
async def both_have_their_turns(dut):
    driver = await start(dut, ([3] * 50, [1] * 50))
    await driver.run()
    found = frames(driver.taken)
    assert found == [(0, 3), (1, 1)] * 50
    assert driver.clocks <= 200 + 1


@cocotb.test()
async def one_alone_has_no_gaps(dut):
    for s in (0, 1):
        lengths = ([], [])
        lengths[s].extend([5] * 40)
        driver = await start(dut, lengths)
        await driver.run()
        assert frames(driver.taken) == [(s, 5)] * 40
        assert driver.clocks <= 200 + 1


@cocotb.test()
@cocotb.parametrize(shares=[(0.5, 0.5), (0.9, 0.1), (0.1, 0.8)])
async def stress(dut, shares):
    rng = stream.seeded()
    lengths = [[rng.randint(1, 6) for _ in range(400)] for _ in (0, 1)]
    driver = await start(dut, lengths, gap=stream.randomly(shares[0]), stall=stream.randomly(shares[1]))
    await driver.run()
    found = frames(driver.taken)
    for s in (0, 1):
        assert [beats for of, beats in found if of == s] == lengths[s]
