"""weir_soc_bus: two masters, three slaves at random pace; addresses where nothing is, refusals, turns, a master in reset."""

import cocotb
import stream
from cocotb.triggers import FallingEdge

ROM, RAM, REGISTERS = range(3)
BASE = (0x0000_0000, 0x4000_0000, 0xF000_0000)


def sizes():
    config = stream.config()
    return config["RomBytes"], config["RamBytes"], config["RegisterBytes"]


def content(slave, address):
    """What a slave holds that nobody wrote."""
    return (address * 0x9E3779B1 ^ slave * 0x85EBCA6B) & 0xFFFFFFFF


def refuses(address):
    return address % 13 == 5


class Bench:
    def __init__(self, dut, rng, rate):
        self.dut, self.rng, self.rate = dut, rng, rate
        self.pins = {name: [0, 0] for name in ("cyc", "stb", "we", "adr", "dat_w", "sel")}
        self.busy = None
        self.memory = {}
        self.asked = []

    def drive(self):
        widths = {"adr": 30, "dat_w": 32, "sel": 4}
        for name, (low, high) in self.pins.items():
            getattr(self.dut, f"s_{name}").value = high << widths.get(name, 1) | low

    def set(self, master, **values):
        for name, value in values.items():
            self.pins[name][master] = value

    async def clock(self):
        """One clock: the slaves answer what was asked before."""
        self.drive()
        await FallingEdge(self.dut.clk)
        dut = self.dut
        dut.m_done.value, dut.m_error.value, dut.m_data.value = 0, 0, self.rng.getrandbits(96)
        request = int(dut.m_request.value)
        if request:
            assert self.busy is None
            slave = (ROM, RAM, REGISTERS)[request.bit_length() - 1]
            self.busy = (
                slave,
                int(dut.m_address.value),
                int(dut.m_write.value),
                int(dut.m_wdata.value),
                int(dut.m_strobe.value),
            )
            self.asked.append(self.busy)
        if self.busy and self.rng.random() >= self.rate:
            slave, address, write, data, _ = self.busy
            refused = slave == REGISTERS and refuses(address)
            word = self.memory.get((slave, address), content(slave, address))
            if write and not refused:
                self.memory[slave, address] = data
            dut.m_done.value = 1 << slave
            dut.m_error.value = refused << slave
            dut.m_data.value = word << 32 * slave | self.rng.getrandbits(32) << 32 * ((slave + 1) % 3)
            self.busy = None

    def answered(self, master):
        return int(self.dut.s_ack.value) >> master & 1, int(self.dut.s_err.value) >> master & 1


async def power_on(dut, rate):
    bench = Bench(dut, stream.seeded(), rate)
    bench.drive()
    dut.m_done.value = dut.m_error.value = dut.m_data.value = 0
    await stream.start(dut)
    await bench.clock()
    return bench


def somewhere(rng):
    """(byte address, slave or None)."""
    if rng.random() < 0.2:
        near = [base + size for base, size in zip(BASE, sizes(), strict=True)] + [0x3FFF_FFFC, 0xEFFF_FFFC, 0x8000_0000]
        return rng.choice(near) & 0xFFFF_FFFC, None
    slave = rng.randrange(3)
    return BASE[slave] + rng.choice([0, sizes()[slave] - 4, 4 * rng.randrange(16)]), slave


@cocotb.test()
@cocotb.parametrize(rate=[0, 0.5, 0.9])
async def both_masters(dut, rate):
    """Every access reaches its slave as it was asked and is answered once; when both ask, they take turns."""
    bench = await power_on(dut, rate)
    rng = bench.rng
    open_, order, unknown, answers = [None, None], [], 0, [0, 0]
    waited = [0, 0]
    while min(answers) < 150:
        for master in (0, 1):
            if open_[master] is None and rng.random() < 0.8:
                address, slave = somewhere(rng)
                write = rng.randrange(2) if master else 0
                data, strobe = rng.getrandbits(32), rng.randrange(1, 16)
                open_[master] = address, slave, write, data, strobe
                bench.set(master, cyc=1, stb=1, we=write, adr=address >> 2, dat_w=data, sel=strobe)
        await bench.clock()
        unknown += int(dut.unknown.value)
        for master in (0, 1):
            ack, err = bench.answered(master)
            if not ack and not err:
                continue
            address, slave, write, data, strobe = open_[master]
            nowhere = slave is None or slave == ROM and write
            refused = slave == REGISTERS and refuses(address >> 2)
            assert (ack, err) == ((0, 1) if nowhere or refused else (1, 0)), hex(address)
            if nowhere:
                assert dut.unknown.value and int(dut.m_address.value) == address >> 2
                assert int(dut.s_dat_r.value) == 0
                unknown -= 1
            else:
                assert bench.asked[-1] == (slave, address >> 2, write, data, strobe)
                expected = 0 if refused else bench.memory.get((slave, address >> 2), content(slave, address >> 2))
                assert write or int(dut.s_dat_r.value) == expected
            # One that waited through a whole access of the other is next.
            assert waited[master] <= 1, order
            order.append(master)
            waited[master] = 0
            if open_[1 - master]:
                waited[1 - master] += 1
            answers[master] += 1
            open_[master] = None
            bench.set(master, cyc=0, stb=0)
    assert unknown == 0


@cocotb.test()
async def a_master_in_reset(dut):
    """It lets go in the midst of an access: the access ends, idle says when, and the next is right."""
    bench = await power_on(dut, 0.9)
    for i in range(50):
        address = BASE[RAM] + 4 * i
        bench.set(0, cyc=1, stb=1, we=0, adr=address >> 2, sel=15)
        for _ in range(bench.rng.randrange(1, 6)):
            await bench.clock()
            assert not bench.answered(0)[1]
        bench.set(0, cyc=0, stb=0)
        for _ in range(400):
            await bench.clock()
            if dut.idle.value:
                break
        assert dut.idle.value and bench.busy is None
        bench.set(0, cyc=1, stb=1, adr=(address + 0x100) >> 2)
        for _ in range(400):
            await bench.clock()
            if bench.answered(0)[0]:
                break
        assert int(dut.s_dat_r.value) == content(RAM, (address + 0x100) >> 2)
        bench.set(0, cyc=0, stb=0)
        await bench.clock()
