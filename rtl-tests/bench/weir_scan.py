"""weir_scan: every visit once and in order, how late at worst, after stalls and jumps of the clock."""

import cocotb
import stream
from cocotb.triggers import FallingEdge

CONTEXTS = stream.config()["Contexts"]
PERIOD = 1 << 18
VISIT_NS = 1024
CLOCK_NS = 10 / 3


class Scan:
    """Drives the clock of the card and takes visits; looks between two edges."""

    def __init__(self, dut, now, used):
        self.dut, self.now, self.used = dut, now, used
        self.horizon = 0
        self.visits = []
        # Clocks since s_now reached the time of the visit that was offered latest.
        self.worst = 0
        self.clocks = 0
        self.reached = {}
        self.due = None

    async def reset(self):
        self.dut.s_now.value = int(self.now)
        self.dut.used.value = self.used
        self.dut.m_ready.value = 0
        await stream.start(self.dut)

    async def clock(self, step, ready=True):
        await FallingEdge(self.dut.clk)
        self.clocks += 1
        dut = self.dut
        horizon = int(dut.m_horizon.value)
        if dut.m_valid.value:
            assert horizon == int(dut.m_time.value)
        if dut.m_valid.value and ready:
            visit = int(dut.m_time.value)
            assert visit % VISIT_NS == 0 and visit <= self.now
            assert int(dut.m_index.value) == visit // VISIT_NS % PERIOD < min(self.used, CONTEXTS)
            self.visits.append(visit // VISIT_NS)
            if visit // VISIT_NS in self.reached:
                self.worst = max(self.worst, self.clocks - self.reached.pop(visit // VISIT_NS))
        assert horizon >= self.horizon or self.horizon > self.now + PERIOD * VISIT_NS, "a visit before the horizon"
        self.horizon = horizon
        before = int(self.now) // VISIT_NS
        self.now += step
        for visit in range(max(before + 1, int(self.now) // VISIT_NS - 4), int(self.now) // VISIT_NS + 1):
            self.reached[visit] = self.clocks
        dut.m_ready.value = int(ready)
        dut.s_now.value = int(self.now)

    def expected(self, first, last):
        """Visits of a time in [first, last] that have to be made."""
        return [
            period * PERIOD + index
            for period in range(first // PERIOD, last // PERIOD + 1)
            for index in range(min(self.used, CONTEXTS))
            if first <= period * PERIOD + index <= last
        ]


async def begin(dut, now, used):
    scan = Scan(dut, now, used)
    await scan.reset()
    for _ in range(8):
        await scan.clock(0)
    while dut.m_valid.value or scan.horizon <= scan.now:
        await scan.clock(0)
    scan.visits.clear()
    return scan, int(scan.now) // VISIT_NS + 1


@cocotb.test()
async def nothing_used_holds_nobody_up(dut):
    scan = Scan(dut, (7 * PERIOD + 5) * VISIT_NS, 0)
    await scan.reset()
    for _ in range(12):
        await scan.clock(CLOCK_NS)
    assert not scan.visits
    for _ in range(4000):
        await scan.clock(CLOCK_NS)
        assert scan.horizon + 3 * CLOCK_NS > scan.now
    assert not scan.visits


@cocotb.test()
async def in_time_when_nothing_holds_it_up(dut):
    used = min(CONTEXTS, 40)
    scan, first = await begin(dut, 3 * PERIOD * VISIT_NS - 5000, used)
    for _ in range(used * 307 + 3000):
        await scan.clock(CLOCK_NS)
    for _ in range(4):
        await scan.clock(0)
    assert scan.visits == scan.expected(first, int(scan.now) // VISIT_NS)
    dut._log.info("worst lateness, never held up: %d clocks", scan.worst)
    assert scan.worst <= 3


@cocotb.test()
async def catches_up(dut):
    """Held up at random for long; every visit comes all the same, and the scan is in time soon after."""
    random = stream.seeded()
    used = min(CONTEXTS, 40)
    scan, first = await begin(dut, 3 * PERIOD * VISIT_NS - 1, used)
    worst = (0, 0)
    for _ in range(12):
        held = random.choice([1, 10, 306, 307, 1000, 3000])
        for _ in range(held):
            await scan.clock(CLOCK_NS, ready=False)
        after = 0
        while int(dut.m_valid.value) or scan.horizon + 3 * CLOCK_NS <= scan.now:
            await scan.clock(CLOCK_NS)
            after += 1
            assert after <= held / 306 + 4, f"held {held}, late for {after} clocks"
        worst = max(worst, (after, held))
        for _ in range(random.randrange(50)):
            await scan.clock(CLOCK_NS)
    for _ in range(10):
        await scan.clock(0)
    assert scan.visits == scan.expected(first, int(scan.now) // VISIT_NS)
    dut._log.info("in time again %d clocks after being held up for %d", *worst)


@cocotb.test()
async def whole_periods(dut):
    """The clock runs a thousand times too fast and the sink stalls: still each visit once."""
    random = stream.seeded()
    used = min(CONTEXTS, 25)
    scan, first = await begin(dut, 9 * PERIOD * VISIT_NS + 77, used)
    stall = stream.randomly(0.4)
    for _ in range(30000):
        inside = int(scan.now) // VISIT_NS % PERIOD < used + 4
        await scan.clock(random.randrange(2000 if inside else 3_000_000), ready=not stall())
    for _ in range(used + 10):
        await scan.clock(0)
    assert scan.visits == scan.expected(first, int(scan.now) // VISIT_NS)
    assert len(scan.visits) > 10 * used
    dut._log.info("%d visits over %.1f periods", len(scan.visits), (int(scan.now) // VISIT_NS - first) / PERIOD)


@cocotb.test()
async def jumps_of_the_clock(dut):
    used = min(CONTEXTS, 25)
    scan, _ = await begin(dut, 9 * PERIOD * VISIT_NS, used)
    # An hour forwards: each index once, the newest visits that are due.
    scan.now += 3600e9
    for _ in range(used + 20):
        await scan.clock(0)
    last = int(scan.now) // VISIT_NS
    # (One or two come before the jump is seen.)
    assert [visit for visit in scan.visits if visit > last - PERIOD] == scan.expected(last - PERIOD + 1, last)
    assert len(scan.visits) <= used + 2
    # A little backwards: nothing is visited twice.
    scan.visits.clear()
    scan.now -= 50 * VISIT_NS
    for _ in range(40):
        await scan.clock(2 * VISIT_NS)
    assert scan.visits == scan.expected(last + 1, int(scan.now) // VISIT_NS)
    # Far backwards: from there on.
    scan.now -= 100 * PERIOD * VISIT_NS
    first = int(scan.now) // VISIT_NS
    scan.visits.clear()
    scan.horizon = 0
    for _ in range(8):
        await scan.clock(0)
        scan.horizon = 0
    while int(scan.now) // VISIT_NS < first + PERIOD + used:
        await scan.clock(VISIT_NS if int(scan.now) // VISIT_NS % PERIOD < used + 4 else 500_000)
    for _ in range(8):
        await scan.clock(0)
    assert scan.visits == scan.expected(first, int(scan.now) // VISIT_NS)


@cocotb.test()
async def every_index_after_a_leap(dut):
    """Of the clock, as after reset: a whole period of visits wherever in it the clock stands, the oldest first."""
    used = min(CONTEXTS, 25)
    for index in (0, 5, used - 2, used - 1, used, PERIOD - 1):
        scan = Scan(dut, (9 * PERIOD + index) * VISIT_NS + 77, used)
        await scan.reset()
        for ahead in (0, 3 * PERIOD + 1, 2 * PERIOD - 1):
            scan.now += ahead * VISIT_NS
            for _ in range(used + 20):
                await scan.clock(0)
            last = int(scan.now) // VISIT_NS
            newest = [visit for visit in scan.visits if visit > last - PERIOD]
            assert newest == scan.expected(last - PERIOD + 1, last), f"index {index}, {ahead} visits ahead"
            assert sorted(visit % PERIOD for visit in newest) == list(range(used))
