"""weir_firmware_ram against a dictionary."""

import cocotb
import stream
from cocotb.triggers import FallingEdge

WORDS = stream.config()["Words"]


async def start(dut):
    for pin in (
        "s_request",
        "s_write",
        "s_address",
        "s_wdata",
        "s_strobe",
        "b_address",
        "b_write",
        "b_wdata",
        "b_read",
    ):
        getattr(dut, pin).value = 0
    dut.flip.value = 0
    await stream.start(dut)
    await FallingEdge(dut.clk)


@cocotb.test()
async def both_ports(dut):
    """An access per clock at both ports, bytes and words: what was written is read, two clocks later, without a fault."""
    rng = stream.seeded()
    await start(dut)
    memory = [0] * WORDS
    expected = [[], []]
    for clock in range(5000):
        request, write, strobe = rng.random() < 0.8, rng.random() < 0.5, rng.randrange(16)
        a, b, data, word = rng.randrange(WORDS), rng.randrange(WORDS), rng.getrandbits(32), rng.getrandbits(32)
        b_write = rng.random() < 0.4
        if a == b:
            b = (b + 1) % WORDS
        dut.s_request.value, dut.s_write.value, dut.s_strobe.value = request, write, strobe
        dut.s_address.value, dut.s_wdata.value = a, data
        dut.b_address.value, dut.b_write.value, dut.b_wdata.value, dut.b_read.value = b, b_write, word, not b_write
        expected[0].append(memory[a] if request and not write else None if request else -1)
        expected[1].append(None if b_write else memory[b])
        if request and write:
            mask = sum(0xFF << 8 * i for i in range(4) if strobe >> i & 1)
            memory[a] = memory[a] & ~mask | data & mask
        if b_write:
            memory[b] = word
        await FallingEdge(dut.clk)
        assert not dut.bad.value
        if clock >= 1:
            for port, pin in enumerate((dut.s_data, dut.b_data)):
                value = expected[port][clock - 1]
                assert value in (None, -1) or pin.value == value, f"port {port}, clock {clock}: {pin.value} {value:#x}"
            assert bool(dut.s_done.value) == (expected[0][clock - 1] != -1)


@cocotb.test()
async def a_flipped_bit(dut):
    """The word that the window writes after a flip is bad at either port until it is written anew."""
    await start(dut)
    dut.flip.value = 1
    await FallingEdge(dut.clk)
    dut.flip.value = 0
    await FallingEdge(dut.clk)
    dut.b_write.value = 1
    for address in (3, 4):
        dut.b_address.value, dut.b_wdata.value = address, 0x12345670
        await FallingEdge(dut.clk)
    dut.b_write.value = 0

    async def cpu(address, write=0):
        dut.s_request.value, dut.s_write.value, dut.s_address.value, dut.s_strobe.value = 1, write, address, 15
        await FallingEdge(dut.clk)
        dut.s_request.value = 0
        bad = []
        for _ in range(5):
            await FallingEdge(dut.clk)
            if dut.bad.value:
                bad.append(int(dut.bad_address.value))
        return bad

    assert await cpu(4) == []
    assert await cpu(3) == [3] and dut.s_data.value == 0x12345671
    for address, faults in ((4, []), (3, [3])):
        dut.b_address.value = address
        for _ in range(4):
            await FallingEdge(dut.clk)
        dut.b_read.value = 1
        await FallingEdge(dut.clk)
        dut.b_read.value = 0
        bad = []
        for _ in range(4):
            await FallingEdge(dut.clk)
            if dut.bad.value:
                bad.append(int(dut.bad_address.value))
        assert bad == faults
    assert await cpu(3, write=1) == []
    assert await cpu(3) == []
