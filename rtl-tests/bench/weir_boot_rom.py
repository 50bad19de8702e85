"""weir_boot_rom: the words of the file, then jumps to itself, two clocks after each request."""

from pathlib import Path

import cocotb
import stream
from cocotb.triggers import FallingEdge

JUMP_TO_ITSELF = 0x0000006F


@cocotb.test()
async def words_come_two_clocks_after_they_are_asked_for(dut):
    rng = stream.seeded()
    config = stream.config()
    words = [JUMP_TO_ITSELF] * config["Words"]
    file = config.get("File", '""').strip('"')
    if file:
        own = [int(line, 16) for line in Path(file).read_text().split()]
        words[: len(own)] = own
    dut.s_request.value, dut.s_address.value = 0, 0
    await stream.start(dut)
    asked = [None, None]
    seen = set()
    for _ in range(20 * len(words)):
        await FallingEdge(dut.clk)
        address = asked.pop(0)
        assert bool(dut.s_done.value) == (address is not None)
        if address is not None:
            assert int(dut.s_data.value) == words[address]
            seen.add(address)
        address = rng.randrange(len(words))
        asks = rng.random() < 0.6
        dut.s_request.value, dut.s_address.value = int(asks), address
        asked.append(address if asks else None)
    assert seen == set(range(len(words)))
