"""weir_wishbone_axil: each request becomes one access of AXI4-Lite, whatever the slave's pace and answer."""

import cocotb
import stream
from cocotb.triggers import FallingEdge

OKAY, SLVERR, DECERR = 0, 2, 3
ADDRESSES = 64
INPUTS = ("s_request", "s_write", "s_address", "s_wdata", "s_strobe")
SLAVE = ("m_awready", "m_wready", "m_bvalid", "m_bresp", "m_arready", "m_rvalid", "m_rresp", "m_rdata")


class Slave:
    """Memory that takes address and data in any order, after pauses, and refuses some addresses."""

    def __init__(self, dut, rng, rate):
        self.dut, self.rng, self.rate = dut, rng, rate
        self.memory = {}
        self.address = self.data = self.read = None
        self.accesses = 0

    def step(self):
        """Once per clock, before the edge: what is ready now goes over at it."""
        dut, free = self.dut, lambda: self.rng.random() >= self.rate
        dut.m_bvalid.value = dut.m_rvalid.value = 0
        if self.address is not None and self.data is not None and free():
            word, strobe = self.data
            keep = sum(0xFF << 8 * i for i in range(4) if not strobe >> i & 1)
            refused = answer(self.address)
            if refused == OKAY:
                self.memory[self.address] = self.memory.get(self.address, 0) & keep | word & ~keep & 0xFFFFFFFF
            dut.m_bvalid.value, dut.m_bresp.value = 1, refused
            self.address = self.data = None
            self.accesses += 1
        elif self.read is not None and free():
            dut.m_rvalid.value, dut.m_rresp.value = 1, answer(self.read)
            dut.m_rdata.value = self.memory.get(self.read, 0)
            self.read = None
            self.accesses += 1
        ready = {name: free() for name in ("aw", "w", "ar")}
        for name, value in ready.items():
            getattr(dut, f"m_{name}ready").value = int(value)
        if ready["aw"] and dut.m_awvalid.value:
            assert self.address is None
            self.address = int(dut.m_awaddr.value)
        if ready["w"] and dut.m_wvalid.value:
            assert self.data is None
            self.data = int(dut.m_wdata.value), int(dut.m_wstrb.value)
        if ready["ar"] and dut.m_arvalid.value:
            assert self.read is None
            self.read = int(dut.m_araddr.value)
        assert dut.m_bready.value and dut.m_rready.value


def answer(address):
    return {5: SLVERR, 9: DECERR}.get(address // 4 % 16, OKAY)


@cocotb.test()
@cocotb.parametrize(rate=[0, 0.3, 0.9])
async def accesses_at_random(dut, rate):
    """Data, errors and byte lanes as the slave has them; one answer each."""
    rng = stream.seeded()
    for name in (*INPUTS, *SLAVE):
        getattr(dut, name).value = 0
    await stream.start(dut)
    slave = Slave(dut, rng, rate)
    known, errors = {}, 0
    for access in range(200):
        address, write = 4 * rng.randrange(ADDRESSES), rng.randrange(2)
        data, strobe = rng.getrandbits(32), rng.randrange(16)
        await FallingEdge(dut.clk)
        slave.step()
        dut.s_request.value, dut.s_write.value, dut.s_address.value = 1, write, address
        dut.s_wdata.value, dut.s_strobe.value = data, strobe
        for _ in range(2000):
            await FallingEdge(dut.clk)
            dut.s_request.value = 0
            slave.step()
            if dut.s_done.value:
                break
        else:
            raise AssertionError("no answer")
        assert slave.accesses == access + 1
        assert bool(dut.s_error.value) == (answer(address) != OKAY)
        errors += answer(address) != OKAY
        if answer(address) != OKAY:
            continue
        if write:
            lanes = sum(0xFF << 8 * i for i in range(4) if strobe >> i & 1)
            known[address] = known.get(address, 0) & ~lanes | data & lanes
            assert slave.memory[address] == known[address]
        else:
            assert int(dut.s_data.value) == known.get(address, 0)
    assert errors > 5
    for _ in range(20):
        await FallingEdge(dut.clk)
        slave.step()
        assert not dut.s_done.value
