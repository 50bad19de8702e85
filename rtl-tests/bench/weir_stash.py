"""weir_stash beside a model with buckets: a key is found from its insertion until it is killed or in a bucket."""

import cocotb
import stream
from cocotb.triggers import FallingEdge, Timer

CONFIG = stream.config()
ENTRIES = CONFIG["Entries"]


class Stash:
    """Drives all ports between two edges; the model is what lookups given in a clock have to see."""

    def __init__(self, dut, random):
        self.dut, self.random = dut, random
        self.here = {}  # fingerprint: index
        self.buckets = {}
        self.answers = []  # what the lookups under way must give
        self.clocks_since_pick = None
        self.hands = {}  # slot: (fingerprint, index), in the mover's hands
        self.next_index = 0
        self.rooms = [0, 0, 0]  # insertions decided, not given yet
        self.pending_insert = []
        self.highest = 0

    async def reset(self):
        for name in ("insert", "kill", "pick", "finish", "finish_keep", "finish_swap", "s_fingerprint"):
            getattr(self.dut, name).value = 0
        await stream.start(self.dut)
        for _ in range(3):
            await FallingEdge(self.dut.clk)

    def fingerprint(self):
        return self.random.getrandbits(CONFIG["FingerprintWidth"] - 1) * 2 + 1

    async def clock(self, insert=0.0, kill=0.0, pick=0.0, finish=0.0, swap=0.5, keep=0.1):
        random, dut = self.random, self.dut
        await FallingEdge(dut.clk)
        # Lookups answer after two clocks.
        if len(self.answers) == 2:
            expected = self.answers.pop(0)
            hit = int(dut.m_index.value) if dut.m_hit.value else None
            assert hit == expected, f"found {hit}, not {expected}"
        # The stash picked in the clock before.
        if dut.picked.value:
            slot = int(dut.picked_slot.value)
            entry = (int(dut.picked_fingerprint.value), int(dut.picked_index.value))
            assert slot not in self.hands
            assert entry[0] not in self.here or self.here[entry[0]] == entry[1]
            self.hands[slot] = entry
        for name in ("insert", "kill", "pick", "finish"):
            getattr(dut, name).value = 0
        here = dict(self.here)
        buckets = dict(self.buckets)
        killed = None
        if random.random() < kill and (self.here or self.buckets):
            fingerprint, killed = random.choice([*self.here.items(), *self.buckets.items()])
            dut.kill.value = 1
            dut.kill_index.value = killed
            here.pop(fingerprint, None)
            buckets.pop(fingerprint, None)
        if self.hands and random.random() < finish:
            slot = random.choice(list(self.hands))
            fingerprint, index = self.hands.pop(slot)
            dut.finish.value = 1
            dut.finish_slot.value = slot
            kept = random.random() < keep
            dut.finish_keep.value = int(kept)
            alive = self.here.get(fingerprint) == index
            # finish_live tells what was alive before this clock; look at it within the clock.
            swapped = bool(self.buckets) and random.random() < swap
            dut.finish_swap.value = int(swapped)
            if swapped:
                out, out_index = random.choice(list(self.buckets.items()))
                dut.finish_fingerprint.value = out
                dut.finish_index.value = out_index
                dut.finish_table.value = random.getrandbits(1)
            if not kept and alive:
                here.pop(fingerprint, None)
                if index != killed:
                    buckets[fingerprint] = index
                if swapped:
                    buckets.pop(out, None)
                    if out_index != killed:
                        here[out] = out_index
            await Timer(100, "ps")
            assert bool(dut.finish_live.value) == alive
        # Insertions are decided on room and given two clocks later.
        decided = bool(dut.room.value) and random.random() < insert
        self.pending_insert.append(self.fingerprint() if decided else None)
        if len(self.pending_insert) == 2:
            fingerprint = self.pending_insert.pop(0)
            if fingerprint is not None and fingerprint not in here and fingerprint not in buckets:
                dut.insert.value = 1
                dut.insert_fingerprint.value = fingerprint
                dut.insert_index.value = self.next_index
                here[fingerprint] = self.next_index
                self.next_index = (self.next_index + 1) % 2 ** CONFIG["IndexWidth"]
        # A key that is here, one that is elsewhere, or one that nobody has.
        wanted = random.choice([*list(self.here), *list(self.buckets)[:3], self.fingerprint() & ~1])
        dut.s_fingerprint.value = wanted
        self.answers.append(self.here.get(wanted))
        dut.pick.value = int(random.random() < pick)
        self.here, self.buckets = here, buckets
        if len(self.buckets) > 60:
            self.buckets.pop(next(iter(self.buckets)))
        self.highest = max(self.highest, int(dut.level.value))


@cocotb.test()
async def fills_to_its_room_only(dut):
    stash = Stash(dut, stream.seeded())
    await stash.reset()
    for _ in range(3 * ENTRIES):
        await stash.clock(insert=1.0)
    assert not dut.room.value
    assert ENTRIES - 4 < len(stash.here) <= ENTRIES
    assert int(dut.level.value) == len(stash.here)
    while stash.here:
        await stash.clock(pick=1.0, finish=1.0, swap=0.0, keep=0.0)
    for _ in range(4):
        await stash.clock()
    assert int(dut.level.value) == 0 and dut.room.value


@cocotb.test()
async def stress(dut):
    random = stream.seeded()
    stash = Stash(dut, random)
    await stash.reset()
    for _ in range(60):
        shares = {
            "insert": random.random(),
            "kill": random.random() / 2,
            "pick": random.random(),
            "finish": random.random(),
            "swap": random.random(),
            "keep": random.random() / 2,
        }
        for _ in range(200):
            await stash.clock(**shares)
    dut._log.info("highest level %d of %d", stash.highest, ENTRIES)
    assert stash.highest > ENTRIES // 2
