"""weir_card: what host and firmware do by register, from power-on to records, around the datapath's traffic."""

import cocotb
import frames
import programs
import stream
import weir_records as records
import weir_registers as table
from cocotb.triggers import ClockCycles, FallingEdge
from cocotb.utils import get_sim_time
from frames import SYN
from registers import Registers
from weir_datapath import CARD_MAC, CLIENT, RECORD_MAC, SECOND, SERVER, START, Card, connection, expected, play
from weir_records import Kind

HEARTBEAT, HOLD, KHZ = (stream.config()[name] for name in ("Heartbeat", "Hold", "ClockKhz"))


class WholeCard(Card):
    async def start(self):
        """Power-on, then all that the host does until measuring is ready; the program on the CPU only beats."""
        dut = self.dut
        for pin in ("pps", "rx_tdata", "rx_tkeep", "rx_tlast", "rx_terror", "rx_tvalid"):
            getattr(dut, pin).value = 0
        dut.tx_tready.value, dut.m_tready.value, dut.slice_tready.value = 3, 1, 3
        await stream.start(dut)
        self.host = host = Registers(dut)
        await ClockCycles(dut.clk, 5)
        assert await host.read("info.magic") == table.RESETS["info.magic"]
        assert await host.read("info.heartbeat_clocks") == HEARTBEAT
        await programs.load(host, programs.build("soc"))
        rng = stream.seeded()
        for i in range(13):
            await host.write(f"measure.seed[{i}]", rng.getrandbits(32))
        await host.write("measure.control", vlan_in_key=1, epoch=7, lane=2)
        for name, mac in (("destination", RECORD_MAC), ("source", CARD_MAC)):
            await host.write(f"record.{name}_low", mac & 0xFFFFFFFF)
            await host.write(f"record.{name}_high", mac >> 32)
        await host.write("clock.set_seconds_low", START)
        await host.write("clock.set_ns", 5)
        await host.write("digest.control", mode=1, slices_enable=1)
        await host.write("inline.control", enable=1)
        await host.write("system.control", 0)
        while not await host.read("system.status", "ready") or await host.read("clock.status", "set_busy"):
            pass
        while not await host.read("host.state"):
            pass
        await FallingEdge(dut.clk)
        await self.run(200)

    def beat(self):
        """The firmware's, here."""

    async def ask(self, coroutine):
        """What the host does, while the wires go on."""
        task = cocotb.start_soon(coroutine)
        while not task.done():
            await self.run(1)
        return task.result()

    async def read(self, *what):
        return await self.ask(self.host.read(*what))

    async def write(self, *what, **fields):
        await self.ask(self.host.write(*what, **fields))

    async def flush(self):
        await self.write("record.request", flush=1)
        await self.run(300)


@cocotb.test(skip=not programs.COMPILER)
async def power_on_to_records(dut):
    """Registers alone bring the card up; frames pass, records and slices come, and the counters tell of them."""
    card = WholeCard(dut)
    await card.start()
    packets = connection()
    await play(card, packets)
    await card.flush()
    for port in (0, 1):
        assert card.sent[1 - port] == expected(packets, port)
        mine = sum(at == port for at, _ in packets)
        assert len(card.slices[port]) == mine
        assert await card.read(f"inline.port[{port}].frames_in") == mine
        assert await card.read(f"inline.port[{port}].frames_out") == mine
        assert await card.read(f"port[{port}].slices") == mine
        assert await card.read(f"inline.port[{port}].mode") == 1
    found = card.records()
    kinds = [r["kind"] for r in found]
    assert kinds[0] == Kind.OPEN and kinds.count(Kind.PACKET) == len(packets)
    assert all(START * SECOND < r["time"] < START * SECOND + 10**6 for r in found)
    assert [r["sequence"] for r in found] == list(range(len(found)))
    assert card.frames[0][:12] == RECORD_MAC.to_bytes(6, "big") + CARD_MAC.to_bytes(6, "big")
    assert await card.ask(card.host.read_pair("record.records_out")) == len(found)
    assert await card.ask(card.host.read_pair("record.frames")) == len(card.frames)
    assert await card.read("measure.in_use") == 1
    assert await card.read("digest.wanted") == len(packets)
    now = await card.ask(card.host.read_pair("clock.now"))
    assert START * SECOND < now < START * SECOND + 10**6
    assert await card.read("fault.status") == 0


@cocotb.test(skip=not programs.COMPILER)
async def a_second_is_one_at_any_frequency(dut):
    """The time goes on by what a clock takes, and in a slew by 500 ppm more."""
    card = WholeCard(dut)
    await card.start()
    assert await card.read("info.clock_khz") == KHZ

    # Its accesses would hold up those of the host.
    await card.host.write("system.control", cpu_reset=1)

    async def passed(clocks):
        """Clocks between two reads, about so many, and ns by the card's clock."""
        begin, first = get_sim_time("ns"), await card.host.read_pair("clock.now")
        await stream.clocks(dut.clk, clocks)
        end, last = get_sim_time("ns"), await card.host.read_pair("clock.now")
        return (end - begin) / stream.PERIOD_NS, last - first

    clocks, ns = await passed(60_000)
    assert abs(ns - clocks * 1e6 / KHZ) < 8
    await card.host.write("clock.slew_ns", 10**6)
    clocks, ns = await passed(300_000)
    assert abs(ns - clocks * 1e6 / KHZ * (1 + 500e-6)) < 8


@cocotb.test(skip=not programs.COMPILER)
async def faults_leave_the_wires_alone(dut):
    """Records that cannot leave are told; the CPU in reset means bypass; measuring reset within a record frame ends it."""
    card = WholeCard(dut)
    await card.start()
    packets = connection() * 4
    await card.write("fault.stuck_clocks", 200)
    await card.write("fault.hold", stop_records=1)
    await play(card, packets)
    await card.flush()
    assert card.frames == []
    assert await card.read("fault.status") == 1 << table.FIELDS["fault.status"]["stuck_records"][0]
    # A frame begins to leave, then measuring is reset in its middle.
    await card.write("fault.hold", stop_records=0)
    card.take = False
    await card.run(20)
    await card.write("system.control", measure_reset=1)
    card.take = True
    await card.run(20)
    assert not card.partial
    await card.write("system.control", cpu_reset=1)
    assert await card.read("inline.port[0].mode") == 1
    await card.run(HEARTBEAT + 100)
    assert await card.read("inline.port[0].mode") == 0 and await card.read("inline.port[1].mode") == 0
    again = connection()
    await play(card, again)
    await card.write("system.control", 0)
    while await card.read("inline.port[0].mode") == 0:
        await card.run(100)
    await play(card, again)
    for port in (0, 1):
        assert card.sent[1 - port] == expected(packets + again + again, port)
        gaps = {out - at for at, out in zip(card.arrivals[port], card.departures[1 - port], strict=True)}
        assert gaps == {HOLD + 7}, f"latency of port {port}: {gaps}"
        assert await card.read(f"inline.port[{port}].takeovers") == 1


@cocotb.test(skip=not programs.COMPILER)
async def a_bit_flips_in_the_key_table(dut):
    """The index of the next key that is entered gets a bit wrong, and would be another flow's: told, and the key's packets open
    a flow of their own; the wires go on."""
    card = WholeCard(dut)
    await card.start()
    packets = connection()
    await play(card, packets)
    assert await card.read("fault.table_parity_count") == 0
    await card.write("fault.inject", table_flip=1)
    other = [(0, frames.ethernet(frames.ipv4(frames.tcp(40001, 80, 1, 0, SYN), CLIENT, SERVER)))]
    await play(card, other * 3)
    assert await card.read("fault.table_parity_count") > 0
    assert await card.read("fault.status") == 1 << table.FIELDS["fault.status"]["table_parity"][0]
    assert card.sent[1] == expected(packets + other * 3, 0)
    await card.flush()
    found = [r for r in card.records() if not r["flags"] & records.Flag.CONTINUATION]
    flows = [r["flow"] for r in found if r["kind"] == Kind.PACKET]
    first, second, third = (r["flow"] for r in found if r["kind"] == Kind.OPEN)
    assert flows == [first] * len(packets) + [second, third, third]
    # The wrong entry is gone: that of the third flow stands in its place.
    count = await card.read("fault.table_parity_count")
    await play(card, other)
    assert await card.read("fault.table_parity_count") == count
