"""weir_slice: a request gives the first bytes of its frame, or is counted; frames are never held up."""

from collections import deque

import cocotb
import packed
import stream
from cocotb.triggers import RisingEdge

CONFIG = stream.config()
PORT, BYTES, SLOTS, REQUESTS = CONFIG["Port"], CONFIG["Bytes"], CONFIG["Slots"], CONFIG["Requests"]
BEATS = BYTES // 64


class Tap:
    """Sends frames of random sizes and requests some of them, `delay` frames later; checks the slices."""

    def __init__(self, dut, size, wish, delay, gap=None, stall=None):
        self.dut, self.size, self.wish, self.delay, self.gap = dut, size, wish, delay, gap
        self.random = stream.seeded()
        self.sink = stream.Sink(dut, "m", ("tdata", "tlast"), stall)
        self.frames = {}  # number: (user, bytes)
        self.waiting = deque()
        self.asked = deque()
        self.number, self.rest = 0, b""
        self.clocks = self.got = self.late = self.beats = 0
        self.head, self.body = None, b""
        dut.s_tvalid.value = dut.request_valid.value = 0
        self.closed = False

    def offer(self):
        dut = self.dut
        if self.closed and not self.rest or self.gap is not None and self.gap():
            dut.s_tvalid.value = 0
            return
        if not self.rest:
            self.number += 1
            user = {"timestamp": self.random.getrandbits(64), "wire_length": self.random.choice([0, 9000])}
            self.rest = self.random.randbytes(self.size(self.random))
            self.frames[self.number] = (user, self.rest[:BYTES])
            self.frames.pop(self.number - 2 * SLOTS - 10_000, None)
            dut.s_tuser.value = packed.pack(packed.FRAME_USER, user)
            if self.wish(self.random):
                self.waiting.append((self.number + self.delay(self.random), self.number))
        here, self.rest = self.rest[:64], self.rest[64:]
        dut.s_tdata.value = int.from_bytes(here, "little")
        dut.s_tkeep.value = (1 << len(here)) - 1
        dut.s_tlast.value = int(not self.rest)
        dut.s_tvalid.value = 1
        self.beats += 1

    async def step(self):
        await RisingEdge(self.dut.clk)
        self.clocks += 1
        word = self.sink.step()
        if word:
            self.take(*word)
        due = bool(self.waiting) and self.waiting[0][0] <= self.number
        self.dut.request_valid.value = int(due)
        if due:
            number = self.waiting.popleft()[1]
            self.dut.request_number.value = number
            self.asked.append(number)
        self.offer()

    def take(self, data, last):
        if self.head is None:
            self.head = packed.unpack(packed.SLICE_HEAD, data)
            assert not last
            return
        self.body += data.to_bytes(64, "little")
        if not last:
            return
        head, body, self.head, self.body = self.head, self.body, None, b""
        while self.asked.popleft() != head["number"]:
            self.late += 1
        user, expected = self.frames[head["number"]]
        assert len(body) == -(-len(expected) // 64) * 64
        assert body[: head["bytes"]] == expected
        assert (head["port"], head["slice"], head["reserved"]) == (PORT, self.got, 0)
        assert {name: head[name] for name in user} == user
        self.got += 1

    async def drain(self):
        """Finish the frame, wait for the slices that are still to come, compare the counters."""
        self.closed = True
        self.waiting.clear()
        self.sink.stall = None
        for _ in range(2000 + 8 * REQUESTS):
            await self.step()
        self.late += len(self.asked)
        asked, slices, dropped = (int(getattr(self.dut, n).value) for n in ("requested", "slices", "dropped"))
        assert (slices, dropped) == (self.got, self.late)
        assert asked == slices + dropped


def any_size(random):
    return random.choice([60, 64, 65, 127, 128, 129, 255, 256, 257, 320, random.randint(60, 400)])


@cocotb.test()
async def all_slices_of_a_sparse_choice(dut):
    await stream.start(dut)
    tap = Tap(dut, any_size, lambda r: r.random() < 0.1, lambda r: 3)
    for _ in range(20_000):
        await tap.step()
    await tap.drain()
    assert tap.late == 0 and tap.got > 500


@cocotb.test()
async def a_request_may_come_before_the_bytes(dut):
    """Requested with the frame's first beat, whose others come slowly."""
    await stream.start(dut)
    tap = Tap(dut, any_size, lambda r: r.random() < 0.2, lambda r: 0, gap=stream.randomly(0.7))
    for _ in range(20_000):
        await tap.step()
    await tap.drain()
    assert tap.late == 0 and tap.got > 300


@cocotb.test()
async def maximum(dut):
    """One frame per clock, all wanted: slices at full speed, the rest counted, frames not held up."""
    await stream.start(dut)
    tap = Tap(dut, lambda r: 64, lambda r: True, lambda r: 5)
    for _ in range(100_000):
        await tap.step()
    assert tap.beats == 100_000
    # A slice of one beat takes two clocks, and the frames before it are too old when it falls behind.
    dut._log.info("%d slices of %d frames, %d dropped", tap.got, tap.number, int(dut.dropped.value))
    assert tap.got > 100_000 / (BEATS + 1) / 8
    await tap.drain()


@cocotb.test()
@cocotb.parametrize(stall=[0.3, 0.9])
async def stress(dut, stall):
    await stream.start(dut)
    tap = Tap(
        dut,
        any_size,
        lambda r: r.random() < 0.5,
        lambda r: r.choice([0, 1, 2, 5]) if r.random() < 0.999 else r.choice([SLOTS - 9, SLOTS, 2 * SLOTS]),
        gap=stream.randomly(0.2),
        stall=stream.in_runs(stall, 200),
    )
    tap.waiting = Ordered()
    for _ in range(30_000):
        await tap.step()
    await tap.drain()
    assert tap.got > 200 and tap.late > 200


class Ordered(deque):
    """Requests leave when their time has come, not before the one ahead of them."""

    def append(self, item):
        super().append((max(item[0], self[-1][0] if self else 0), item[1]))
