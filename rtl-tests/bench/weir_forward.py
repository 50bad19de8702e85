"""weir_forward: words on few contexts at every distance, with bubbles, against a model that knows each newest value."""

from collections import Counter

import cocotb
import stream
from cocotb.clock import Clock
from cocotb.triggers import FallingEdge

WIDTH = stream.config()["Width"]
DEPTH = stream.config()["Depth"]


async def run(dut, contexts):
    """`contexts`: the context of each clock's word, None for a bubble. How often each distance came."""
    random = stream.seeded()
    dut.same.value = 0
    dut.loaded.value = 0
    dut.after.value = 0
    Clock(dut.clk, stream.PERIOD_NS, unit="ns").start(start_high=False)
    newest, stored, came = {}, {}, {}
    distances = Counter()
    previous = None
    for clock, context in enumerate([*contexts, None]):
        await FallingEdge(dut.clk)
        # The word of the clock before is in the stage: what comes out must be its context's newest value.
        after = random.getrandbits(WIDTH)
        if previous is not None:
            current = int(dut.current.value)
            assert current == newest.get(previous, 0), f"clock {clock}, context {previous}"
            stored[previous] = newest.get(previous, 0)
            newest[previous] = after
        dut.after.value = after
        # This clock's word: what the memory holds is stale when a word of the context is on its way.
        same, loaded = 0, random.getrandbits(WIDTH)
        if context is not None:
            distance = clock - came.get(context, -DEPTH - 10)
            distances[min(distance, DEPTH + 3)] += 1
            if distance <= DEPTH:
                same, loaded = 1 << (distance - 1), random.choice([stored.get(context, 0), loaded])
            else:
                loaded = newest.get(context, 0)
            came[context] = clock
        dut.same.value, dut.loaded.value = same, loaded
        previous = context
    return distances


@cocotb.test()
async def every_distance(dut):
    """One context at each distance from 1 to Depth + 2, the clocks between filled with others or empty."""
    random = stream.seeded()
    contexts = []
    for distance in [*range(1, DEPTH + 3)] * 40:
        others = [random.choice([None, 1, 2, 3 + random.randrange(20)]) for _ in range(distance - 1)]
        contexts += [0, *others] * random.randrange(2, 6)
    distances = await run(dut, contexts)
    dut._log.info("words by distance: %s", dict(sorted(distances.items())))
    assert all(distances[d] >= 40 for d in range(1, DEPTH + 4))


@cocotb.test()
@cocotb.parametrize(contexts=[1, 2, 3, 7, 40], bubbles=[0.0, 0.1, 0.6])
async def random_words(dut, contexts, bubbles):
    random = stream.seeded()
    words = [None if random.random() < bubbles else random.randrange(contexts) for _ in range(4000)]
    await run(dut, words)
