"""weir_inline: user frames leave unchanged, after the same time for every size, whatever happens to measuring."""

from collections import deque

import cocotb
import stream
from cocotb.triggers import RisingEdge

CONFIG = stream.config()
HEARTBEAT, DEPTH, HOLD = CONFIG["Heartbeat"], CONFIG["Depth"], CONFIG["Hold"]
LATENCY = HOLD + 7
MIN_BYTES, MAX_BYTES = 60, 9216
MAX_BEATS = MAX_BYTES // 64


def frame(random, size, error=0):
    """Beats (data, keep, last, error) of a frame."""
    beats = []
    while size > 0:
        here = min(size, 64)
        size -= here
        beats.append((random.getrandbits(8 * here), (1 << here) - 1, int(size == 0), error if size == 0 else 0))
    return beats


class Wire:
    """Feeds beats or pauses (None), one a clock, and checks all that leaves."""

    def __init__(self, dut, beats, stall=None):
        self.dut, self.beats, self.stall = dut, iter(beats), stall
        self.clock, self.ready = 0, True
        self.inside = deque()  # frames that may still leave: (clock of the first beat, beats)
        self.entering, self.leaving = None, []
        self.left = self.skipped = self.gaps = 0
        self.latencies = set()
        self.first_at = None
        self.entered = []
        self.measure_in_reset = False
        self.tap, self.tap_frames = [], []
        self.modes = set()
        self.ended = False
        for pin in ("enable", "heartbeat", "rst_measure", "s_tvalid"):
            getattr(dut, pin).value = 0
        dut.m_tready.value = 1

    async def step(self):
        dut = self.dut
        await RisingEdge(dut.clk)
        self.clock += 1
        if dut.m_tvalid.value:
            if not self.leaving and self.first_at is None:
                self.first_at = self.clock
            if self.ready:
                self.leave()
        elif self.leaving:
            self.gaps += 1
        if self.measure_in_reset:  # and with it whoever takes the tap
            self.tap = []
        elif dut.tap_tvalid.value:
            self.tap.append((int(dut.tap_tdata.value), int(dut.tap_tkeep.value)))
            if dut.tap_tlast.value:
                self.tap_frames.append(self.tap)
                self.tap = []
        beat = next(self.beats, StopIteration)
        if beat is StopIteration:
            self.ended, beat = True, None
        if beat is None:
            dut.s_tvalid.value = 0
        else:
            dut.s_tvalid.value = 1
            dut.s_tdata.value, dut.s_tkeep.value, dut.s_tlast.value, dut.s_terror.value = beat
            if self.entering is None:
                self.entering = []
                self.inside.append((self.clock + 1, self.entering))  # the clock that sees it at s_
                self.entered.append(self.entering)
            self.entering.append(beat)
            if beat[2]:
                self.entering = None
        if self.stall is not None:
            self.ready = not self.stall()
            dut.m_tready.value = int(self.ready)

    def leave(self):
        dut = self.dut
        last = int(dut.m_tlast.value)
        error = int(dut.m_terror.value) if last else 0
        self.leaving.append((int(dut.m_tdata.value), int(dut.m_tkeep.value), last, error))
        if not last:
            return
        out, self.leaving = self.leaving, []
        self.modes.add(int(dut.measured.value))
        while True:
            assert self.inside, "a frame that did not come in"
            entered, beats = self.inside.popleft()
            if beats == out:
                break
            if len(beats) > MAX_BEATS and out == [*beats[: MAX_BEATS - 1], (*beats[MAX_BEATS - 1][:2], 1, 1)]:
                break
            self.skipped += 1
        self.latencies.add(self.first_at - entered)
        self.first_at = None
        self.left += 1

    def match_tap(self):
        """Each frame of the tap is a whole one that came in, in order; how many there were."""
        entered = iter(self.entered)
        for shown in self.tap_frames:
            assert any(shown == [beat[:2] for beat in beats] for beats in entered), "the tap shows what did not come"
        return len(self.tap_frames)

    async def run(self, clocks=None):
        """Until the beats are at their end and all has left, or for some clocks."""
        if clocks is not None:
            for _ in range(clocks):
                await self.step()
            return
        while not self.ended:
            await self.step()
        self.stall, self.ready = None, True
        self.dut.m_tready.value = 1
        for _ in range(2 * DEPTH + LATENCY + 4):
            await self.step()
        assert not self.leaving
        self.skipped += len(self.inside)
        self.inside.clear()
        counted = {name: int(getattr(self.dut, f"frames_{name}").value) for name in ("in", "out", "dropped")}
        assert counted["out"] == self.left
        assert counted["dropped"] == self.skipped
        assert counted["in"] == self.left + self.skipped


def sizes_mixed(random, count, gap=0.2, error=0.02):
    """Beats of frames of all kinds of sizes, short ones more often, with pauses within and between them."""
    for _ in range(count):
        size = random.choice([60, 64, 65, 128, 1514, MAX_BYTES, random.randint(MIN_BYTES, MAX_BYTES)])
        for beat in frame(random, size, int(random.random() < error)):
            while random.random() < gap:
                yield None
            yield beat


@cocotb.test()
async def every_size(dut):
    """60 to 9,216 bytes at one beat per clock, in both modes: the same latency, no change."""
    await stream.start(dut)
    random = stream.seeded()
    sizes = list(range(MIN_BYTES, MAX_BYTES + 1, 1 if HOLD == 0 else 16))
    random.shuffle(sizes)
    beats = [0]

    def feed():
        for size in sizes:
            for beat in frame(random, size):
                beats[0] += 1
                yield beat

    wire = Wire(dut, feed())
    dut.enable.value = 1
    while not wire.ended:
        await wire.step()
        # Heartbeats for a while, then none for a while: modes change under way.
        dut.heartbeat.value = int(wire.clock % 4000 < 2000 and wire.clock % 100 == 0)
    dut.heartbeat.value = 0
    await wire.run()
    assert wire.latencies == {LATENCY}
    assert wire.left == len(sizes) and wire.gaps == 0
    assert wire.modes == {0, 1}
    assert int(dut.faults.value) == 0
    assert wire.match_tap() == len(sizes)
    dut._log.info(
        "%d beats, %d sizes, latency %s clocks, %d takeovers", beats[0], len(sizes), LATENCY, dut.takeovers.value
    )
    assert beats[0] >= 40_000


@cocotb.test()
async def bypass_until_the_first_heartbeat(dut):
    await stream.start(dut)
    wire = Wire(dut, sizes_mixed(stream.seeded(), 10**6))
    await wire.run(600)
    dut.heartbeat.value = 1
    await wire.run(200)
    assert wire.modes == {0}, "not enabled"
    dut.heartbeat.value = 0
    await wire.run(2 * HEARTBEAT)
    dut.enable.value = 1
    await wire.run(600)
    assert wire.modes == {0}, "no heartbeat"
    dut.heartbeat.value = 1
    await wire.run(1)
    dut.heartbeat.value = 0
    await wire.run(HEARTBEAT - 50)
    assert dut.measured.value


@cocotb.test()
async def measuring_begins_on_a_silent_wire(dut):
    await stream.start(dut)
    wire = Wire(dut, ())
    dut.enable.value = dut.heartbeat.value = 1
    await wire.run(4)
    assert dut.measured.value, "no frame has to pass first"


@cocotb.test()
async def takeover_when_the_heartbeat_stops_within_a_frame(dut):
    await stream.start(dut)
    random = stream.seeded()
    for _ in range(20):
        await stream.start(dut)
        wire = Wire(dut, (beat for _ in range(40) for beat in frame(random, MAX_BYTES)))
        dut.enable.value = 1
        for _ in range(random.randint(300, 600)):
            await wire.step()
            dut.heartbeat.value = int(wire.clock % 50 == 0)
        assert dut.measured.value
        dut.heartbeat.value = 0
        waited = 0
        while dut.measured.value:
            await wire.step()
            waited += 1
        assert HEARTBEAT - 52 <= waited <= HEARTBEAT + 2 + MAX_BEATS + 2
        await wire.run()
        assert int(dut.takeovers.value) == 1 and int(dut.faults.value) == 0
        assert wire.latencies == {LATENCY} and wire.skipped == 0


@cocotb.test()
async def reset_of_measuring_changes_nothing(dut):
    """Resets of any length at any moment: frames leave whole; the tap shows frames that begin after the reset."""
    await stream.start(dut)
    random = stream.seeded()
    wire = Wire(dut, sizes_mixed(random, 1500))
    dut.enable.value = 1
    reset = stream.in_runs(0.1, 20)
    while not wire.ended:
        await wire.step()
        wire.measure_in_reset = reset()
        dut.rst_measure.value = int(wire.measure_in_reset)
        dut.heartbeat.value = int(wire.clock % 40 == 0)
    dut.rst_measure.value, wire.measure_in_reset = 0, False
    await wire.run()
    assert wire.latencies == {LATENCY}
    assert wire.skipped == 0 and wire.left == 1500
    assert wire.modes == {0, 1} and int(dut.faults.value) > 20
    assert 100 < wire.match_tap() < wire.left


@cocotb.test()
async def a_pause_drops_whole_frames(dut):
    await stream.start(dut)
    random = stream.seeded()
    paused = stream.in_runs(0.4, 3 * DEPTH)
    wire = Wire(dut, sizes_mixed(random, 2500, gap=0.4), stall=paused)
    await wire.run()
    assert wire.skipped > 100 and wire.left > 100
    dut._log.info("%d frames left, %d dropped", wire.left, wire.skipped)
    # Drained: the latency is again what it is.
    wire.latencies.clear()
    wire.beats, wire.ended = iter(frame(random, 777)), False
    await wire.run(100 + LATENCY)
    assert wire.latencies == {LATENCY}


@cocotb.test()
@cocotb.parametrize(share=[0.05, 0.3])
async def stress(dut, share):
    await stream.start(dut)
    wire = Wire(dut, sizes_mixed(stream.seeded(), 1000, gap=0.45), stall=stream.randomly(share))
    dut.enable.value = 1
    while not wire.ended:
        await wire.step()
        dut.heartbeat.value = int(wire.clock % 700 < 200)
    await wire.run()
    assert wire.modes == {0, 1}


@cocotb.test()
async def a_frame_beyond_the_limit_is_cut_and_marked(dut):
    await stream.start(dut)
    random = stream.seeded()
    sizes = [MAX_BYTES, MAX_BYTES + 1, 100, 3 * MAX_BYTES, 60, MAX_BYTES + 64, MAX_BYTES]
    wire = Wire(dut, (beat for size in sizes for beat in frame(random, size)))
    await wire.run()
    assert wire.left == len(sizes)
    assert int(dut.frames_cut.value) == 3


@cocotb.test(skip=HOLD == 0)
async def held_frames_leave_without_a_pause(dut):
    """Beats as a 100G MAC gives them to a bus of 153.6 Gb/s."""
    await stream.start(dut)
    random = stream.seeded()

    def feed():
        credit = 0.0
        for _ in range(300):
            size = random.choice([60, 1514, MAX_BYTES, random.randint(MIN_BYTES, MAX_BYTES)])
            for beat in frame(random, size):
                while credit < 64:
                    credit += 100e9 / 8 / 300e6
                    if credit < 64:
                        yield None
                credit -= 64
                yield beat
            credit -= 24  # preamble, check sequence, gap

    wire = Wire(dut, feed())
    await wire.run()
    assert wire.gaps == 0 and wire.latencies == {LATENCY} and wire.left == 300
