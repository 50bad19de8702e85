"""The card's registers by name, over an AXI4-Lite port s_ of the design."""

import contextlib

import stream
import weir_registers as table
from cocotb.clock import Clock
from cocotb.triggers import FallingEdge
from cocotbext.axi import AxiLiteBus, AxiLiteMaster, AxiResp


class Registers:
    """The model of the bus looks at every edge of its clock, which in a long run takes more time than the design: where
    the bench has a pin `bus_clk` for it, the model sees the clocks of accesses alone."""

    def __init__(self, dut, prefix="s"):
        self.clk, self.bus_clk, self.accesses = dut.clk, getattr(dut, "bus_clk", None), 0
        clk = dut.clk if self.bus_clk is None else self.bus_clk
        self.master = AxiLiteMaster(AxiLiteBus.from_prefix(dut, prefix), clk, dut.rst)
        self.master.write_if.log.setLevel("WARNING")
        self.master.read_if.log.setLevel("WARNING")

    @contextlib.asynccontextmanager
    async def access(self):
        self.accesses += 1
        if self.accesses == 1 and self.bus_clk is not None:
            await FallingEdge(self.clk)
            self.clock = Clock(self.bus_clk, stream.PERIOD_NS, unit="ns")
            self.clock.start(start_high=False)
        try:
            yield
        finally:
            self.accesses -= 1
            if self.accesses == 0 and self.bus_clk is not None:
                self.clock.stop()

    async def read_at(self, address):
        """(value, whether the address has a register)"""
        async with self.access():
            answer = await self.master.read(address, 4)
        return int.from_bytes(answer.data, "little"), answer.resp == AxiResp.OKAY

    async def write_at(self, address, value):
        async with self.access():
            answer = await self.master.write(address, (value & 0xFFFFFFFF).to_bytes(4, "little"))
        return answer.resp == AxiResp.OKAY

    async def read(self, name, field=None):
        value, found = await self.read_at(table.REGISTERS[name])
        assert found, name
        if field is None:
            return value
        low, width = table.FIELDS[name][field]
        return value >> low & (1 << width) - 1

    async def read_pair(self, name):
        low = await self.read(f"{name}_low")
        return await self.read(f"{name}_high") << 32 | low

    async def write(self, name, value=None, **fields):
        """A value, or fields of it (the others 0)."""
        if value is None:
            places = table.FIELDS[name]
            value = sum(v << places[f][0] for f, v in fields.items())
        assert await self.write_at(table.REGISTERS[name], value), name
