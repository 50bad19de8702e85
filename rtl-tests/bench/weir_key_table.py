"""weir_key_table: keys are found, and nothing for keys that ended; entries with a wrong bit are not found, and do not stay."""

from collections import deque

import cocotb
import stream
from cocotb.triggers import FallingEdge

CONFIG = stream.config()
CONTEXTS = CONFIG["Contexts"]
LATENCY = 5
PINS = (
    *("s_fingerprint", "insert", "insert_fingerprint", "insert_index", "kill", "kill_index"),
    *("s_delete_valid", "s_delete_index", "table_flip"),
)


class Table:
    """The caller of the table, as weir_lookup is: it knows the index of each key, and opens a key anew that it does not find."""

    def __init__(self, dut):
        self.dut, self.random = dut, stream.seeded()
        self.live, self.free = {}, deque(range(CONTEXTS))  # key: index
        # (key, index): killed, to be given for deletion; until that is done.
        self.ended, self.going = deque(), set()
        self.deleting = deque()
        self.keys = []
        self.lookups = deque()  # (key, index or None, what may still be seen)
        self.again, self.lost = deque(), []  # keys that were not found; (key, index) of their flows, until these end
        self.flips = self.bad = self.hits = self.missed = 0

    async def start(self):
        for pin in PINS:
            getattr(self.dut, pin).value = 0
        await stream.start(self.dut)
        while not self.dut.ready.value:
            await FallingEdge(self.dut.clk)
        self.lookups.clear()
        for _ in range(20):
            await self.clock()

    async def clock(self, look=None, insert=None, kill=None, flip=False):
        """One clock; the keys to look up, to open, to end."""
        dut = self.dut
        if kill is not None:
            self.ended.append(kill)
            self.going.add(kill)
        dut.s_fingerprint.value = look or 0
        self.lookups.append((look, self.live.get(look), {index for key, index in self.going if key == look}))
        dut.insert.value = int(insert is not None)
        if insert is not None:
            dut.insert_fingerprint.value, dut.insert_index.value = insert, self.free[0]
            self.live[insert] = self.free.popleft()
        dut.kill.value = int(kill is not None)
        if kill is not None:
            dut.kill_index.value = kill[1]
        dut.table_flip.value = int(flip)
        self.flips += flip
        offered = dut.s_delete_valid.value
        if offered and self.taken:
            self.deleting.append(self.ended.popleft())
        dut.s_delete_valid.value = int(bool(self.ended))
        if self.ended:
            dut.s_delete_index.value = self.ended[0][1]
        self.taken = bool(self.ended) and bool(dut.s_delete_ready.value)
        await FallingEdge(dut.clk)
        if dut.deleted.value:
            done = self.deleting.popleft()
            self.free.append(done[1])
            self.going.remove(done)
        self.bad += int(dut.table_bad.value)
        if len(self.lookups) >= LATENCY:
            self.answer(*self.lookups.popleft())

    def answer(self, key, index, going):
        if key is None:
            return
        if self.dut.m_hit.value:
            found = int(self.dut.m_index.value)
            assert found == index or index is None and found in going, f"{key:#x}: {found}, not {index}"
            self.hits += 1
        elif index is not None and self.live.get(key) == index:
            self.lost.append((key, self.live.pop(key)))
            self.again.append(key)
            self.missed += 1
            assert self.missed <= self.flips, f"{key:#x} is not found"

    def new_key(self):
        self.keys.append(self.random.getrandbits(80) | 1)
        return self.keys[-1]

    async def run(self, clocks, most, flips=0.0):
        """Random keys come and go, up to `most` at once; most words are of keys that are there."""
        rng = self.random
        for _ in range(clocks):
            look = insert = kill = None
            live = list(self.live)
            look = rng.choice(live) if live and rng.random() < 0.8 else rng.choice(self.keys or [1])
            if self.dut.room.value and self.free and len(live) < most and rng.random() < 0.15:
                insert = self.again.popleft() if self.again else self.new_key()
            elif live and rng.random() < 0.1 + (len(live) >= most):
                key = rng.choice(live)
                kill = key, self.live.pop(key)
            elif self.lost and rng.random() < 0.02:
                kill = self.lost.pop(0)
            await self.clock(look if look != insert else None, insert, kill, rng.random() < flips)

    async def end(self):
        """All keys end; then nothing is found for any there was."""
        for kill in [*self.lost, *self.live.items()]:
            self.live.pop(kill[0], None)
            await self.clock(kill=kill)
        while self.ended or self.deleting:
            await self.clock()
        self.bad = 0
        for key in self.keys:
            await self.clock(look=key)
        for _ in range(2 * LATENCY):
            await self.clock()
        assert self.bad == 0, "an entry with a wrong bit has stayed"
        assert len(self.free) == CONTEXTS
        assert self.dut.stash_level.value == 0


@cocotb.test()
@cocotb.parametrize(most=[30, 72])
async def keys_come_and_go(dut, most):
    table = Table(dut)
    await table.start()
    await table.run(20_000, most)
    assert table.hits > 10_000 and table.bad == table.missed == 0
    await table.end()


@cocotb.test()
@cocotb.parametrize(most=[30, 72])
async def wrong_bits(dut, most):
    """Indices with a wrong bit: no key is found with another's index, and none of these entries stays."""
    table = Table(dut)
    await table.start()
    await table.run(20_000, most, flips=0.05)
    assert table.bad >= table.missed > 100 and table.hits > 10_000
    await table.end()
