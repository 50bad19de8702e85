"""weir_axil_arbiter: two masters and a memory (cocotbext-axi), pauses at every side."""

import cocotb
import stream
from cocotb.triggers import FallingEdge, with_timeout
from cocotbext.axi import AxiLiteBus, AxiLiteMaster, AxiLiteRam, AxiResp

SIZE = 1 << 12
PARTS = ("aw_channel", "w_channel", "b_channel", "ar_channel", "r_channel")


def pauses(rng, rate):
    while True:
        yield rng.random() < rate


class Bench:
    def __init__(self, dut):
        self.dut = dut
        self.masters = [AxiLiteMaster(AxiLiteBus.from_prefix(dut, f"s{i}"), dut.clk, dut.rst) for i in (0, 1)]
        self.memory = AxiLiteRam(AxiLiteBus.from_prefix(dut, "m"), dut.clk, dut.rst, size=SIZE)
        for part in (*self.masters, self.memory):
            part.write_if.log.setLevel("WARNING")
            part.read_if.log.setLevel("WARNING")

    def pause(self, rng, rate):
        for part in (*self.masters, self.memory):
            for side in (part.write_if, part.read_if):
                for name in PARTS:
                    if hasattr(side, name):
                        getattr(side, name).set_pause_generator(pauses(rng, rate))


@cocotb.test()
@cocotb.parametrize(rate=[0, 0.3, 0.8])
async def both_masters(dut, rate):
    """Each writes and reads its half of the memory at random; every answer is right, and the turns count each access."""
    rng = stream.seeded()
    bench = Bench(dut)
    await stream.start(dut)
    bench.pause(rng, rate)
    done, turns = [0, 0], [0, 0]

    async def use(which):
        own = stream.seeded()
        known = {}
        for _ in range(150):
            address = (SIZE // 2) * which + 4 * own.randrange(16)
            data = own.getrandbits(32)
            if own.random() < 0.5:
                assert (await bench.masters[which].write(address, data.to_bytes(4, "little"))).resp == AxiResp.OKAY
                known[address] = data
            else:
                answer = await bench.masters[which].read(address, 4)
                assert int.from_bytes(answer.data, "little") == known.get(address, 0)
            done[which] += 1

    async def watch():
        while True:
            await FallingEdge(dut.clk)
            if dut.done.value:
                turns[int(dut.turn.value)] += 1
                assert not dut.failed.value

    watching = cocotb.start_soon(watch())
    tasks = [cocotb.start_soon(use(which)) for which in (0, 1)]
    for task in tasks:
        await with_timeout(task, 500, "us")
    await FallingEdge(dut.clk)
    await FallingEdge(dut.clk)
    watching.cancel()
    assert turns == done == [150, 150]


@cocotb.test()
async def fair(dut):
    """Two masters that never rest have as many accesses each."""
    bench = Bench(dut)
    await stream.start(dut)
    order = []

    async def hammer(which):
        for _ in range(100):
            await bench.masters[which].read(SIZE // 2 * which, 4)
            order.append(which)

    tasks = [cocotb.start_soon(hammer(which)) for which in (0, 1)]
    for task in tasks:
        await task
    assert abs(order[:100].count(0) - 50) <= 2


@cocotb.test()
async def errors_pass(dut):
    """A response other than OKAY reaches its master and is told, with its address."""
    masters = [AxiLiteMaster(AxiLiteBus.from_prefix(dut, f"s{i}"), dut.clk, dut.rst) for i in (0, 1)]
    for pin in ("awready", "wready", "arready", "bvalid", "rvalid", "rdata"):
        getattr(dut, f"m_{pin}").value = 0
    dut.m_bresp.value = dut.m_rresp.value = 2
    await stream.start(dut)
    told = []

    async def slave():
        dut.m_awready.value = dut.m_wready.value = dut.m_arready.value = 1
        while True:
            await FallingEdge(dut.clk)
            dut.m_bvalid.value = dut.m_awvalid.value
            dut.m_rvalid.value = dut.m_arvalid.value
            if dut.failed.value:
                told.append((int(dut.turn.value), int(dut.failed_address.value)))

    cocotb.start_soon(slave())
    assert (await masters[1].read(0x124, 4)).resp == AxiResp.SLVERR
    assert (await masters[0].write(0x3F8, bytes(4))).resp == AxiResp.SLVERR
    await FallingEdge(dut.clk)
    assert told == [(1, 0x124), (0, 0x3F8)]


@cocotb.test()
@cocotb.parametrize(asks=[("reads", "reads"), ("writes", "writes"), ("reads", "writes"), ("writes", "reads")])
async def turns_of_two_that_always_ask(dut, asks):
    """Both offer their next access in every clock: no access follows one of the same master."""
    for pin in ("bvalid", "rvalid", "bresp", "rresp", "rdata"):
        getattr(dut, f"m_{pin}").value = 0
    dut.m_awready.value = dut.m_wready.value = dut.m_arready.value = 1
    for which in (0, 1):
        for pin in ("araddr", "awaddr", "wdata", "wstrb"):
            getattr(dut, f"s{which}_{pin}").value = which
        getattr(dut, f"s{which}_arvalid").value = int(asks[which] == "reads")
        getattr(dut, f"s{which}_awvalid").value = getattr(dut, f"s{which}_wvalid").value = int(asks[which] == "writes")
        getattr(dut, f"s{which}_bready").value = getattr(dut, f"s{which}_rready").value = 1
    await stream.start(dut)
    turns = []
    for _ in range(300):
        await FallingEdge(dut.clk)
        # The slave answers in the clock after the request.
        dut.m_bvalid.value, dut.m_rvalid.value = dut.m_awvalid.value, dut.m_arvalid.value
        if dut.done.value:
            turns.append(int(dut.turn.value))
    assert len(turns) > 40
    assert all(one != other for one, other in zip(turns, turns[1:], strict=False)), turns
