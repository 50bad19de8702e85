"""weir_free_list: the index released longest ago once it has rested, else the lowest never used, else none."""

from collections import deque

import cocotb
import stream
from cocotb.triggers import FallingEdge

CONTEXTS = stream.config()["Contexts"]
REST = 1 << 29
# Clocks from `cleaned` until the index may be there.
FRESHLY_CLEANED = 8


class FreeList:
    """The list beside its model; looks and drives between two edges."""

    def __init__(self, dut):
        self.dut = dut
        self.released = deque()  # (index, time, clock in which it was cleaned or None)
        self.to_clean = deque()
        self.cleaning = deque()
        self.used = 0
        self.in_use = []
        self.time = 1 << 40
        self.next_time = self.time
        self.clocks = 0
        self.taken_rested = 0
        # So many stay in cleaning.
        self.held = 1

    async def reset(self):
        for name in ("take", "release_valid", "m_clean_ready", "cleaned"):
            getattr(self.dut, name).value = 0
        self.dut.s_time.value = self.time
        await stream.start(self.dut)
        await FallingEdge(self.dut.clk)

    async def clock(self, take=False, release=None, step=0, clean=True, cleaned=True):
        """One clock in which a word of the time given in the clock before may take; index taken, or None."""
        dut = self.dut
        await FallingEdge(dut.clk)
        self.clocks += 1
        self.time = self.next_time
        assert int(dut.used.value) == self.used
        allowed = set()
        head = self.released[0] if self.released else None
        rested = head is not None and self.time - head[1] >= REST
        if not rested or head[2] is None or self.clocks - head[2] < FRESHLY_CLEANED:
            allowed.add(self.used if self.used < CONTEXTS else None)
        if rested and head[2] is not None:
            allowed.add(head[0])
        offered = int(dut.m_index.value) if dut.m_valid.value else None
        assert offered in allowed, f"offers {offered}, not of {allowed}"
        taken = None
        dut.take.value = 0
        if take and offered is not None:
            dut.take.value = 1
            taken = offered
            if offered == self.used:
                self.used += 1
            else:
                self.released.popleft()
                self.taken_rested += 1
            self.in_use.append(taken)
        if dut.m_clean_valid.value and clean:
            assert self.to_clean, "nothing to clean"
            index = self.to_clean.popleft()
            assert int(dut.m_clean_index.value) == index
            self.cleaning.append(index)
        dut.m_clean_ready.value = int(clean)
        dut.cleaned.value = 0
        if cleaned and len(self.cleaning) > self.held:
            index = self.cleaning.popleft()
            dut.cleaned.value = 1
            at = next(i for i, entry in enumerate(self.released) if entry[0] == index)
            self.released[at] = (*self.released[at][:2], self.clocks)
        dut.release_valid.value = 0
        if release is not None and release != taken:
            self.in_use.remove(release)
            dut.release_valid.value = 1
            dut.release_index.value = release
            dut.release_time.value = self.time % 2**54
            self.released.append((release, self.time, None))
            self.to_clean.append(release)
        self.next_time = self.time + step
        dut.s_time.value = self.next_time % 2**54
        return taken


@cocotb.test()
async def lowest_first_then_none(dut):
    free = FreeList(dut)
    await free.reset()
    assert [await free.clock(take=True) for _ in range(CONTEXTS)] == list(range(CONTEXTS))
    assert await free.clock(take=True) is None


@cocotb.test()
async def one_per_clock(dut):
    """All taken, all released, and after the rest all taken again in the order of their release, one in each clock."""
    random = stream.seeded()
    free = FreeList(dut)
    await free.reset()
    for _ in range(CONTEXTS):
        await free.clock(take=True)
    for _ in range(3):
        order = random.sample(free.in_use, len(free.in_use))
        for index in order:
            await free.clock(release=index, step=random.randrange(4))
        while len(free.cleaning) > 1 or free.to_clean:
            await free.clock()
        await free.clock(step=REST)
        for _ in range(FRESHLY_CLEANED):
            await free.clock()
        # The last one waits to be cleaned, so it stays.
        expected = [entry[0] for entry in free.released][:-1]
        again = [await free.clock(take=True) for _ in expected]
        assert again == expected


@cocotb.test()
async def take_and_release_in_each_clock(dut):
    """Rested indices are taken while others are released, without a pause."""
    free = FreeList(dut)
    await free.reset()
    for _ in range(CONTEXTS):
        await free.clock(take=True)
    for index in list(free.in_use[: CONTEXTS // 2]):
        await free.clock(release=index)
    while len(free.cleaning) > 1 or free.to_clean:
        await free.clock()
    await free.clock(step=REST)
    for _ in range(FRESHLY_CLEANED):
        await free.clock()
    for _ in range(CONTEXTS // 2 - 1):
        assert await free.clock(take=True, release=free.in_use[0]) is not None


@cocotb.test()
async def the_nanosecond(dut):
    """An index rests exactly 536,870,912 ns."""
    free = FreeList(dut)
    free.held = 0
    await free.reset()
    for _ in range(CONTEXTS):
        await free.clock(take=True)
    await free.clock(release=3)
    await free.clock(release=5)
    for _ in range(40):
        await free.clock()
    await free.clock(step=REST - 1)
    assert await free.clock(take=True, step=1) is None
    assert await free.clock(take=True) == 3


@cocotb.test()
async def stress(dut):
    random = stream.seeded()
    free = FreeList(dut)
    await free.reset()
    for _ in range(60):
        take, release, clean = random.random(), random.random() ** 2, random.random()
        step = random.choice([0, 10, REST // 8, REST // 2])
        for _ in range(150):
            index = random.choice(free.in_use) if free.in_use and random.random() < release else None
            await free.clock(
                take=random.random() < take,
                release=index,
                step=random.randrange(step + 1),
                clean=random.random() < clean,
                cleaned=random.random() < clean,
            )
    dut._log.info("%d of %d indices used, %d taken again", free.used, CONTEXTS, free.taken_rested)
    assert free.taken_rested > 100
