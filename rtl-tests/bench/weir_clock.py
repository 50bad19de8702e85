"""weir_clock against exact integers: rate, set, step, slew, PPS."""

import cocotb
import stream
from cocotb.triggers import FallingEdge, RisingEdge, Timer

INCREMENT = stream.config().get("Increment", 14_316_557_653)
SLEW, SLEW_REST = 7_158_279, 1 << 23
SECOND = 10**9
MAX_STEP = 999_999_000
PINS = ("rate", "set_valid", "set_seconds", "set_ns", "step_valid", "step_ns", "slew_valid", "slew_ns", "pps")


class Model:
    """Time in units of 2^-32 ns, as an integer, and the clocks that the contract says."""

    def __init__(self):
        self.line = [0, 0, 0]  # the time, its two last stages behind it
        self.add = self.slew_left = self.slew = self.step_ns = 0
        self.base = INCREMENT
        self.set_left, self.set_time = None, 0

    @property
    def time(self):
        return self.line[-1]

    def step(self, pins):
        """One clock edge with these inputs."""
        whole = -SLEW_REST <= self.slew_left < SLEW_REST
        slew = self.slew_left if whole else SLEW if self.slew_left > 0 else -SLEW
        busy = self.set_left is not None
        time = self.set_time << 32 if busy and self.set_left == 0 else self.line[0] + self.add
        self.add = self.base + self.slew + (self.step_ns << 32)
        self.base = INCREMENT + pins["rate"]
        self.step_ns = pins["step_ns"] if pins["step_valid"] and not busy else 0
        self.slew_left += (pins["slew_ns"] << 32 if pins["slew_valid"] else 0) - slew
        self.slew = slew
        if busy:
            self.slew_left = self.slew = 0
            self.set_left = self.set_left - 1 if self.set_left else None
        elif pins["set_valid"]:
            self.set_left, self.set_time = 30, pins["set_seconds"] * SECOND + pins["set_ns"]
        self.line = [time, *self.line[:-1]]


class Bench:
    def __init__(self, dut):
        self.dut, self.model = dut, Model()
        self.pins = dict.fromkeys(PINS, 0)

    def put(self, **pins):
        self.pins.update(pins)
        for name, value in pins.items():
            getattr(self.dut, name).value = value

    async def clock(self):
        await RisingEdge(self.dut.clk)
        self.model.step(self.pins)
        await FallingEdge(self.dut.clk)
        self.check()

    def check(self):
        """Outputs in the middle of a clock are those of the edge before."""
        dut, ns = self.dut, self.model.time >> 32
        got = (int(dut.tai_ns.value), int(dut.seconds.value), int(dut.ns.value), int(dut.fraction.value))
        wanted = (ns % 2**64, ns // SECOND % 2**48, ns % SECOND, self.model.time & 0xFFFFFFFF)
        assert got == wanted, f"{got}, expected {wanted}"

    async def run(self, clocks, **pulse):
        """These pins for one clock, then as many clocks in all."""
        for i in range(clocks):
            if i == 0:
                self.put(**pulse)
            elif i == 1:
                self.put(**{name: 0 for name in pulse if name.endswith("_valid")})
            await self.clock()


async def begin(dut):
    bench = Bench(dut)
    for name in PINS:
        getattr(dut, name).value = 0
    await stream.start(dut)
    await FallingEdge(dut.clk)
    return bench


@cocotb.test()
async def grows_exactly(dut):
    bench = await begin(dut)
    for rate in (0, 14_317, -14_317, 2**31 - 1, -(2**31)):
        await bench.run(500, rate=rate)


@cocotb.test()
async def set_holds_all_at_once(dut):
    bench = await begin(dut)
    for seconds, ns in ((0, 0), (1_700_000_000, 999_999_999), (2**34 - 1, 5), (1, SECOND - 3)):
        await bench.run(60, set_valid=1, set_seconds=seconds, set_ns=ns)


@cocotb.test()
async def steps_over_seconds_both_ways(dut):
    bench = await begin(dut)
    await bench.run(40, set_valid=1, set_seconds=100, set_ns=10)
    for step in (-11, 5, MAX_STEP, MAX_STEP, -MAX_STEP, -MAX_STEP, -200, 500_000_000, 499_999_900, -MAX_STEP):
        await bench.run(6, step_valid=1, step_ns=step)


@cocotb.test()
async def a_slew_adds_exactly_its_amount(dut):
    bench = await begin(dut)
    await bench.run(40, set_valid=1, set_seconds=5, set_ns=0)
    for slew in (1, -1, 3, -2):
        await bench.run(2500, slew_valid=1, slew_ns=slew)
        assert not dut.slew_busy.value and bench.model.slew_left == 0
    await bench.run(10, slew_valid=1, slew_ns=40)
    assert dut.slew_busy.value
    await bench.run(10, slew_valid=1, slew_ns=-40)
    # A set drops what is left of it.
    await bench.run(10, slew_valid=1, slew_ns=40)
    await bench.run(50, set_valid=1, set_seconds=7, set_ns=1)
    assert not dut.slew_busy.value


@cocotb.test()
async def random_control(dut):
    bench = await begin(dut)
    random = stream.seeded()
    await bench.run(40, set_valid=1, set_seconds=random.getrandbits(31), set_ns=random.randrange(SECOND))
    for _ in range(300):
        # A second's end is near, now and then.
        kind = random.randrange(6)
        if kind == 0:
            near = random.choice([0, 1, 20, SECOND - 30, SECOND - 1, random.randrange(SECOND)])
            await bench.run(random.randrange(33, 60), set_valid=1, set_seconds=random.getrandbits(31) + 9, set_ns=near)
        elif kind == 1:
            step = random.choice([-1, 1, -4, random.randrange(-MAX_STEP, MAX_STEP), MAX_STEP, -MAX_STEP])
            await bench.run(random.randrange(2, 9), step_valid=1, step_ns=step)
        elif kind == 2:
            await bench.run(random.randrange(2, 40), slew_valid=1, slew_ns=random.randrange(-3, 4))
        else:
            await bench.run(random.randrange(1, 30), rate=random.randrange(-(2**31), 2**31))


@cocotb.test()
async def pps_captures_the_time(dut):
    bench = await begin(dut)
    random = stream.seeded()
    await bench.run(40, set_valid=1, set_seconds=77, set_ns=5)
    for _ in range(20):
        # Not synchronous: anywhere in the clock.
        await Timer(random.randrange(100, 1700), "ps")
        bench.put(pps=1)
        times, captured = [], []
        for i in range(12):
            await bench.clock()
            times.append((int(dut.tai_ns.value), int(dut.fraction.value)))
            if dut.pps_valid.value:
                captured.append((int(dut.pps_tai_ns.value), int(dut.pps_fraction.value)))
            if i == 5:
                bench.put(pps=0)
        # times[0] is behind the first edge that sees it.
        assert captured == [times[1]]


@cocotb.test()
async def pps_high_in_reset_is_no_edge(dut):
    for name in PINS:
        getattr(dut, name).value = 0
    dut.pps.value = 1
    await stream.start(dut)
    for _ in range(10):
        await RisingEdge(dut.clk)
        assert not dut.pps_valid.value
