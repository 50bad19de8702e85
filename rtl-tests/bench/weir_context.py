"""weir_context: reads give what earlier clocks wrote, Latency clocks later; zero before the first write."""

from collections import deque

import cocotb
import stream
from cocotb.clock import Clock
from cocotb.triggers import FallingEdge

CONFIG = stream.config()
WIDTH, CONTEXTS, LATENCY = CONFIG["Width"], CONFIG["Contexts"], CONFIG["Latency"]


class Memory:
    """Drives the memory and knows what it must give."""

    def __init__(self, dut, entries):
        self.dut, self.entries = dut, entries
        self.expected = deque([None] * LATENCY)
        dut.write.value = 0
        dut.read_index.value = 0
        Clock(dut.clk, stream.PERIOD_NS, unit="ns").start(start_high=False)

    async def clock(self, read, write=None, data=0):
        await FallingEdge(self.dut.clk)
        value = self.expected.popleft()
        if value is not None:
            assert int(self.dut.read_data.value) == value
        self.dut.read_index.value, self.dut.write.value = read, int(write is not None)
        self.dut.write_index.value, self.dut.write_data.value = write or 0, data
        self.expected.append(self.entries[read])  # as before this clock's write
        if write is not None:
            self.entries[write] = data


@cocotb.test()
async def zero_at_first(dut):
    memory = Memory(dut, [0] * CONTEXTS)
    for index in [*range(CONTEXTS)] + [0] * LATENCY:
        await memory.clock(index)


@cocotb.test()
@cocotb.parametrize(writes=[0.1, 0.5, 1.0], among=[2, CONTEXTS])
async def random_access(dut, writes, among):
    random = stream.seeded()
    memory = Memory(dut, [None] * CONTEXTS)
    for index in range(CONTEXTS):
        await memory.clock(0, index, random.getrandbits(WIDTH))
    for _ in range(6000):
        read = random.randrange(among)
        write = random.choice([read, random.randrange(among)])
        await memory.clock(read, write if random.random() < writes else None, random.getrandbits(WIDTH))
    await memory.clock(0)
