"""weir_mailbox against two lists."""

import cocotb
import stream
from cocotb.triggers import FallingEdge

CAPACITY = stream.config()["Depth"] + 2


@cocotb.test()
async def both_ways(dut):
    """Pushes and pops at random, from empty to full and over: words in order, loss counted, levels right."""
    rng = stream.seeded()
    dut.clear.value = dut.push.value = dut.pop.value = dut.push_data.value = 0
    await stream.start(dut)
    await FallingEdge(dut.clk)
    queues, lost, fullest, clears = [[], []], [0, 0], [0, 0], 0
    rates = (0.5, 0.5)
    for clock in range(8000):
        if clock % 400 == 0:
            rates = rng.choice([(0.9, 0.1), (0.1, 0.9), (0.5, 0.5), (1, 1), (1, 0)])
        clear = rng.random() < 0.002
        data = [rng.getrandbits(32) for _ in range(2)]
        push = [rng.random() < rates[0] for _ in range(2)]
        pop = [rng.random() < rates[1] for _ in range(2)]
        dut.clear.value, dut.push_data.value = clear, data[0] | data[1] << 32
        dut.push.value, dut.pop.value = push[0] | push[1] << 1, pop[0] | pop[1] << 1
        for way in (0, 1):
            ready, valid = int(dut.ready.value) >> way & 1, int(dut.valid.value) >> way & 1
            got = int(dut.pop_data.value) >> 32 * way & 0xFFFFFFFF
            assert int(dut.words.value) >> 8 * way & 0xFF == len(queues[way])
            assert int(dut.lost.value) >> 16 * way & 0xFFFF == lost[way] & 0xFFFF
            fullest[way] = max(fullest[way], len(queues[way]))
            assert got == (queues[way][0] if valid else 0), f"way {way}, clock {clock}"
            assert ready or len(queues[way]) >= CAPACITY - 3
            lost[way] += push[way] and not ready
            if pop[way] and valid:
                queues[way].pop(0)
            if push[way] and ready:
                queues[way].append(data[way])
            if clear:
                queues[way] = []
        clears += clear
        await FallingEdge(dut.clk)
    assert fullest == [CAPACITY] * 2 and min(lost) > 20 and clears
