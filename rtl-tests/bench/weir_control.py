"""weir_control: the registers as the host sees them, and a program on the CPU that uses them."""

import cocotb
import programs
import stream
import weir_registers as table
from cocotb.triggers import ClockCycles, FallingEdge
from registers import Registers

KEPT = 0xF000  # memory that a reset leaves
INPUTS = [
    "ready",
    "clock_set_busy",
    "clock_slew_busy",
    "pps_valid",
    "pps_tai_ns",
    "pps_fraction",
    "tai_ns",
    "measured",
    "takeovers",
    "faults",
    "frames_in",
    "frames_out",
    "frames_dropped",
    "frames_cut",
    "contexts_used",
    "contexts_in_use",
    "left_out",
    "no_index_count",
    "no_room_count",
    "wanted",
    "dropped",
    "slices",
    "slices_dropped",
    "records_in",
    "records_out",
    "record_frames",
    "words_lost",
    "results_lost",
    "statistics_records",
    "record_valid",
    "record_ready",
    "slice_valid",
    "slice_ready",
    "table_bad",
]
# Written and read back as they are: nothing else happens.
QUIET = [
    name
    for name, access in table.ACCESS.items()
    if access == "rw" and name not in ("clock.set_ns", "clock.step_ns", "clock.slew_ns", "timer.control")
    if not name.startswith(("system.", "watchdog.", "fault.status"))
]


async def start(dut):
    for name in INPUTS:
        getattr(dut, name).value = 0
    await stream.start(dut)
    host = Registers(dut)
    await ClockCycles(dut.clk, 5)
    return host


async def until(host, what, name, clocks=20_000, field=None):
    """Read the register until `what` holds; the value then."""
    for _ in range(clocks // 50):
        value = await host.read(name, field)
        if what(value):
            return value
        await ClockCycles(host.master.read_if.clock, 30)
    raise AssertionError(f"{name} stayed at {value:#x}")


class Pulses:
    """How many clocks each of some outputs was high, and what a companion showed then."""

    def __init__(self, dut, **companions):
        self.seen = {name: [] for name in companions}
        self.dut, self.companions = dut, companions
        self.task = cocotb.start_soon(self.watch())

    async def watch(self):
        while True:
            await FallingEdge(self.dut.clk)
            for name, companion in self.companions.items():
                if getattr(self.dut, name).value:
                    self.seen[name].append(int(getattr(self.dut, companion).value) if companion else 1)


@cocotb.test()
async def what_is_there(dut):
    """Values after power-on, settings keep what is written, holes answer with an error and are counted."""
    rng = stream.seeded()
    host = await start(dut)
    for name, value in table.RESETS.items():
        got = await host.read(name)
        if name == "timer.control":
            got &= 1
        assert got == value, f"{name}: {got:#x}, not {value:#x}"
    assert await host.read("info.contexts") == 1 << 18
    assert await host.read("info.ram_bytes") == 128 << 10
    widths = {}
    for name in QUIET:
        await host.write(name, 0xFFFFFFFF)
        widths[name] = await host.read(name)
    written = {name: rng.getrandbits(32) & widths[name] for name in QUIET}
    assert all(widths.values())
    for name, value in written.items():
        await host.write(name, value)
    for name, value in written.items():
        assert await host.read(name) == value, name
    holes = [0x34, 0xFC, 0x124, 0x12FC, 0x2000, 0x3FFC]
    for address in holes:
        assert (await host.read_at(address))[1] is False
        assert await host.write_at(address, 1) is False
    assert await host.read("fault.bus_error_count") == 2 * len(holes)
    assert await host.read("debug.bus_address") == holes[-1]
    assert await host.read("fault.status", "bus_error") == 1
    await host.write("fault.status", bus_error=1)
    assert await host.read("fault.status") == 0


@cocotb.test()
async def states_and_counters(dut):
    """What the datapath says, where the register map has it; pairs of words belong together."""
    rng = stream.seeded()
    host = await start(dut)
    both = {
        "takeovers": "inline.port[{}].takeovers",
        "faults": "inline.port[{}].faults",
        "frames_in": "inline.port[{}].frames_in",
        "frames_out": "inline.port[{}].frames_out",
        "frames_dropped": "inline.port[{}].frames_dropped",
        "frames_cut": "inline.port[{}].frames_cut",
        "dropped": "port[{}].dropped",
        "slices": "port[{}].slices",
        "slices_dropped": "port[{}].slices_dropped",
    }
    one = {
        "wanted": "digest.wanted",
        "no_index_count": "measure.no_index",
        "no_room_count": "measure.no_room",
        "pps_fraction": "clock.pps_fraction",
    }
    values = {pin: rng.getrandbits(64) for pin in both} | {pin: rng.getrandbits(32) for pin in one}
    for pin, value in values.items():
        getattr(dut, pin).value = value
    for pin, name in both.items():
        for port in (0, 1):
            assert await host.read(name.format(port)) == values[pin] >> 32 * port & 0xFFFFFFFF, (pin, port)
    for pin, name in one.items():
        assert await host.read(name) == values[pin], pin
    dut.measured.value = 2
    assert await host.read("inline.port[0].mode") == 0 and await host.read("inline.port[1].mode") == 1
    pairs = {
        "tai_ns": "clock.now",
        "pps_tai_ns": "clock.pps_ns",
        "records_in": "record.records_in",
        "records_out": "record.records_out",
        "record_frames": "record.frames",
    }
    counting = True

    async def count():
        """Both halves change in each clock, so that only halves of one clock are equal."""
        n = 0
        while counting:
            await FallingEdge(dut.clk)
            n += 1
            for pin in pairs:
                getattr(dut, pin).value = n << 32 | n

    task = cocotb.start_soon(count())
    for name in [*pairs.values()] * 3:
        value = await host.read_pair(name)
        assert value and value >> 32 == value & 0xFFFFFFFF, f"{name}: {value:#x}"
    counting = False
    await task
    # left_out is counted while measuring runs.
    await host.write("system.control", cpu_reset=1)
    for bit, kind in enumerate(("packet", "rtt", "interval", "block", "event")):
        await FallingEdge(dut.clk)
        dut.left_out.value = 1 << bit
        for _ in range(bit + 1):
            await FallingEdge(dut.clk)
        dut.left_out.value = 0
        assert await host.read(f"measure.left_out_{kind}") == bit + 1
    await host.write("system.control", cpu_reset=1, measure_reset=1)
    await ClockCycles(dut.clk, 3)
    dut.left_out.value = 0x1F
    await ClockCycles(dut.clk, 3)
    dut.left_out.value = 0
    await host.write("system.control", cpu_reset=1)
    for kind in ("packet", "rtt", "interval", "block", "event"):
        assert await host.read(f"measure.left_out_{kind}") == 0


@cocotb.test()
async def requests(dut):
    """One clock per write, with the value written; what the clock cannot take is refused."""
    host = await start(dut)
    seen = Pulses(
        dut,
        heartbeat=None,
        flush=None,
        clock_set_valid="clock_set_ns",
        clock_step_valid="clock_step_ns",
        clock_slew_valid="clock_slew_ns",
        table_flip=None,
    )
    await host.write("inline.heartbeat", beat=1)
    await host.write("inline.heartbeat", beat=0)
    await host.write("record.request", flush=1)
    await host.write("fault.inject", table_flip=1)
    await host.write("clock.set_seconds_low", 0x89ABCDEF)
    await host.write("clock.set_seconds_high", 0x4567)
    await host.write("clock.set_ns", 999_999_999)
    assert dut.clock_set_seconds.value == 0x456789ABCDEF
    await host.write("clock.set_ns", 1_000_000_000)
    dut.clock_set_busy.value = 1
    await host.write("clock.set_ns", 5)
    await host.write("clock.step_ns", 6)
    await host.write("clock.slew_ns", 7)
    await ClockCycles(dut.clk, 10)
    dut.clock_set_busy.value = 0
    for ns in (999_999_000, 999_999_001, -999_999_000, -999_999_001, -1):
        await host.write("clock.step_ns", ns)
    await host.write("clock.slew_ns", -7)
    await ClockCycles(dut.clk, 10)
    assert seen.seen == {
        "heartbeat": [1],
        "flush": [1],
        "table_flip": [1],
        "clock_set_valid": [999_999_999],
        "clock_step_valid": [999_999_000, -999_999_000 & (1 << 31) - 1, (1 << 31) - 1],
        "clock_slew_valid": [0xFFFFFFF9],
    }
    assert await host.read("clock.status", "refused") == 6


@cocotb.test()
async def settings_wait_for_the_reset(dut):
    """Settings of measuring are taken when its reset ends; others hold at once."""
    rng = stream.seeded()
    host = await start(dut)
    seed = rng.getrandbits(399)
    for i in range(13):
        await host.write(f"measure.seed[{i}]", seed >> 32 * i & 0xFFFFFFFF)
    sketch = rng.getrandbits(192)
    for i in range(6):
        await host.write(f"statistics.seed[{i}]", sketch >> 32 * i & 0xFFFFFFFF)
    for i in range(7):
        await host.write(f"statistics.service[{i}]", 1000 + i)
    await host.write("statistics.burst_bytes[1]", 60000)
    await host.write("statistics.control", enable=1)
    await host.write("record.destination_low", 0x22334455)
    await host.write("record.destination_high", 0x0211)
    assert dut.rst_measure.value == 1
    await host.write("system.control", cpu_reset=1)
    await ClockCycles(dut.clk, 3)
    assert dut.rst_measure.value == 0
    first = int(dut.timeouts.value)
    second = 10**9
    assert first == sum(n * second << 47 * i for i, n in enumerate((60, 4, 900, 90)))
    assert dut.seed.value == seed and dut.destination_mac.value == 0x021122334455
    assert dut.statistics_enable.value == 1 and dut.sketch_seed.value == sketch
    assert int(dut.burst_bytes.value) == 60000 << 32
    assert int(dut.services.value) == sum(1000 + i << 16 * i for i in range(7))
    await host.write("statistics.control", enable=0)
    dut.words_lost.value = 3 << 64 | 2 << 32 | 1
    dut.results_lost.value = 6 << 64 | 5 << 32 | 4
    dut.statistics_records.value = 7
    for i in range(3):
        assert await host.read(f"statistics.words_lost[{i}]") == 1 + i
        assert await host.read(f"statistics.results_lost[{i}]") == 4 + i
    assert await host.read("statistics.records") == 7
    assert dut.statistics_enable.value == 1

    await host.write("measure.control", vlan_in_key=0, shed_enable=0, lane=5, epoch=77)
    await host.write("measure.seed[3]", 0)
    await host.write("measure.other_low", 1 << 30)
    await host.write("measure.other_high", 0)
    await host.write("port[1].time_offset", -3)
    await host.write("digest.control", mode=1, slices_enable=1)
    await ClockCycles(dut.clk, 3)
    assert dut.seed.value == seed and dut.timeouts.value == first
    assert (dut.vlan_in_key.value, dut.shed_enable.value, dut.lane.value, dut.epoch.value) == (1, 1, 0, 0)
    assert int(dut.port_offset.value) >> 32 == 0xFFFFFFFD
    assert (dut.digest_mode.value, dut.slices_enable.value) == (1, 1)
    await host.write("system.control", cpu_reset=1, measure_reset=1)
    await host.write("system.control", cpu_reset=1)
    await ClockCycles(dut.clk, 3)
    assert dut.seed.value == seed & ~(0xFFFFFFFF << 96)
    assert int(dut.timeouts.value) & (1 << 47) - 1 == 1 << 30
    assert (dut.vlan_in_key.value, dut.shed_enable.value, dut.lane.value, dut.epoch.value) == (0, 0, 5, 77)
    assert dut.statistics_enable.value == 0


@cocotb.test()
async def mailbox_and_interrupt(dut):
    """The host alone: words in order, loss at a full queue, the interrupt follows its cause."""
    rng = stream.seeded()
    host = await start(dut)
    words = [rng.getrandbits(32) for _ in range(70)]
    for word in words:
        await host.write("mailbox.to_host.push", word)
    await host.write("mailbox.host_irq_enable", to_host_valid=1)
    await ClockCycles(dut.clk, 3)
    assert dut.irq.value == 1
    assert await host.read("mailbox.to_host.status", "words") == 66
    assert await host.read("mailbox.to_host.status", "lost") == 4
    assert await host.read("mailbox.to_card.status") == 1 << 8
    assert [await host.read("mailbox.to_host.pop") for _ in range(66)] == words[:66]
    await ClockCycles(dut.clk, 3)
    assert dut.irq.value == 0
    assert await host.read("mailbox.to_host.pop") == 0
    await host.write("mailbox.to_card.push", 1)
    await host.write("mailbox.request", clear=1)
    assert await host.read("mailbox.to_card.status") == 1 << 8


@cocotb.test()
async def faults_are_seen(dut):
    """Wrong parity in the CPU's memory, streams that stand still, faults of the key table; interrupt and clear."""
    rng = stream.seeded()
    host = await start(dut)
    words = [rng.getrandbits(32) for _ in range(20)]
    await host.write("system.load_address", 0x1F000)
    for i, word in enumerate(words):
        if i == 7:
            await host.write("fault.inject", ram_flip=1)
        await host.write("system.load_write", word)
    assert await host.read("system.load_address") == 0x1F000 + 80
    await host.write("system.load_address", 0x1F000)
    got = [await host.read("system.load_read") for _ in range(20)]
    assert [i for i in range(20) if got[i] != words[i]] == [7] and got[7] ^ words[7] == 1
    assert await host.read("fault.ram_parity_count") == 1
    assert await host.read("fault.ram_parity_address") == 0x1F000 + 28
    assert await host.read("fault.status") == 2
    await host.write("fault.host_irq_enable", 1 << 1)
    await ClockCycles(dut.clk, 3)
    assert dut.irq.value == 1
    await host.write("fault.status", 0xFF & ~2)
    assert await host.read("fault.status") == 2
    await host.write("fault.status", 2)
    assert await host.read("fault.status") == 0 and dut.irq.value == 0

    await host.write("system.control", cpu_reset=1)
    await host.write("fault.stuck_clocks", 40)
    for pins, stuck in (((1, 0, 0), 1 << 2), ((0, 1, 0), 1 << 3), ((0, 2, 0), 1 << 4)):
        dut.record_valid.value, dut.slice_valid.value = pins[0], pins[1]
        await ClockCycles(dut.clk, 30)
        assert await host.read("fault.status") == 0
        await ClockCycles(dut.clk, 100)
        dut.record_valid.value = dut.slice_valid.value = 0
        assert await host.read("fault.status") == stuck
        await host.write("fault.status", stuck)
    assert await host.read("fault.stuck_count") == 3
    assert await host.read_pair("debug.record_stall") > 100
    # Whoever waits for measuring in reset is not stuck; afterwards a wait begins anew.
    dut.record_valid.value, dut.slice_valid.value = 1, 3
    await host.write("system.control", cpu_reset=1, measure_reset=1)
    await ClockCycles(dut.clk, 100)
    await host.write("system.control", cpu_reset=1)
    assert await host.read("fault.status") == 0
    await ClockCycles(dut.clk, 100)
    dut.record_valid.value = dut.slice_valid.value = 0
    assert await host.read("fault.status") == 7 << 2
    await host.write("fault.status", 7 << 2)
    await FallingEdge(dut.clk)
    dut.table_bad.value = 1
    await FallingEdge(dut.clk)
    await FallingEdge(dut.clk)
    dut.table_bad.value = 0
    assert await host.read("fault.table_parity_count") == 2
    assert await host.read("fault.status", "table_parity") == 1
    await host.write("fault.hold", stop_records=1)
    await ClockCycles(dut.clk, 3)
    assert dut.stop_records.value == 1


@cocotb.test()
async def a_fault_while_another_is_cleared(dut):
    """In each clock of a write that clears another fault: the one that comes then is there afterwards."""
    host = await start(dut)
    lasts = []
    for clock in range(16):
        write = cocotb.start_soon(host.write("fault.status", ram_parity=1))
        await ClockCycles(dut.clk, clock)
        lasts.append(not write.done())
        await FallingEdge(dut.clk)
        dut.table_bad.value = 1
        await FallingEdge(dut.clk)
        dut.table_bad.value = 0
        await write
        await ClockCycles(dut.clk, 3)
        assert await host.read("fault.status") == 1 << table.FIELDS["fault.status"]["table_parity"][0], clock
        await host.write("fault.status", table_parity=1)
        assert await host.read("fault.status") == 0
    assert lasts[0] and not lasts[-1], "the write is over before the last"


@cocotb.test(skip=not programs.COMPILER)
async def program_runs(dut):
    """A program loaded by the host: registers, bytes, timer interrupts, mailbox interrupts, an address that is not there."""
    host = await start(dut)
    beats = Pulses(dut, heartbeat=None)
    await programs.load(host, programs.build("soc"))
    await programs.load(host, bytes(4), KEPT)
    assert await host.read("system.boot") == 0 and await host.read("system.status", "cpu_in_reset") == 1
    await host.write("system.control", measure_reset=1)
    assert await until(host, bool, "host.boot_stage") == table.RESETS["info.magic"]
    reason = table.VALUES["system.boot.reason.HOST"]
    assert await until(host, bool, "host.slot") == 1 << 16 | reason
    assert await until(host, bool, "host.fault_count") == 1
    assert await until(host, bool, "host.firmware_version") == 0x44332211
    await until(host, lambda ticks: ticks >= 3, "host.state")
    assert len(beats.seen["heartbeat"]) > 3

    for word in (0x12345678, 0xFFFF0000, 1):
        await host.write("mailbox.to_card.push", word)
        await until(host, bool, "mailbox.to_host.status", field="valid")
        assert await host.read("mailbox.to_host.pop") == ~word & 0xFFFFFFFF
    assert await host.read("fault.status") == 0
    await host.write("mailbox.to_card.push", 0xFA)
    await until(host, lambda words: words == 3, "mailbox.to_host.status", field="words")
    assert await host.read("mailbox.to_host.pop") == ~0xFA & 0xFFFFFFFF
    assert await host.read("mailbox.to_host.pop") == 0  # what was read where nothing is
    assert await host.read("mailbox.to_host.pop") == 1 << 6  # the interrupt of the fault
    assert await host.read("fault.bus_error_count") == 2
    assert await host.read("debug.bus_address") == 0x80000000
    ticks = await host.read("host.state")
    await until(host, lambda now: now > ticks, "host.state")


async def read_by_card(host, name):
    """As the program reads the register."""
    await host.write("mailbox.to_card.push", 0xAD0000 | table.REGISTERS[name])
    await until(host, lambda words: words == 2, "mailbox.to_host.status", field="words")
    await host.read("mailbox.to_host.pop")
    return await host.read("mailbox.to_host.pop")


@cocotb.test(skip=not programs.COMPILER)
async def pairs_wait_for_their_reader(dut):
    """Host and card each get the high word of the low one that they read, whatever the other reads and however it changes."""
    rng = stream.seeded()
    host = await start(dut)
    await programs.load(host, programs.build("soc"))
    await host.write("system.control", measure_reset=1)
    await until(host, lambda ticks: ticks >= 1, "host.state")
    await host.write("timer.control", 0)  # whose interrupt reads a pair, too

    def by_host(name):
        return host.read(name)

    def by_card(name):
        return read_by_card(host, name)

    pins = ("tai_ns", "pps_tai_ns", "records_in", "records_out", "record_frames")

    def change():
        value = rng.getrandbits(64) | 1 << 32
        for pin in pins:
            getattr(dut, pin).value = value
        return value >> 32

    wide = ["clock.now", "clock.pps_ns", "record.records_in", "record.records_out", "record.frames"]
    for pair in [*wide, "timer.now", "debug.record_stall"]:
        for mine, other in ((by_host, by_card), (by_card, by_host)):
            held = change()
            await other("clock.now_low")
            high = change() if pair in wide else 0
            await mine(f"{pair}_low")
            change()
            assert await mine(f"{pair}_high") == high, f"{pair} {mine.__name__}"
            # What a reader holds is at every high word.
            assert await other(f"{pair}_high") == await other("clock.now_high") == held, f"{pair} {mine.__name__}"


@cocotb.test(skip=not programs.COMPILER)
async def watchdog_resets_the_program(dut):
    """The program hangs: its watchdog resets it and nothing else, its kept memory is as it was, the cause is told."""
    host = await start(dut)
    await programs.load(host, programs.build("soc"))
    await programs.load(host, bytes(4), KEPT)
    await host.write("watchdog.timeout", 4000)
    await host.write("watchdog.control", enable=1, lock=1)  # the lock waits for the CPU to run
    assert await host.read("watchdog.control") == 1
    await host.write("watchdog.kick", 5)
    assert await host.read("watchdog.status", "bad_kicks") == 1
    await host.write("system.control", measure_reset=1)
    await until(host, lambda count: count == 1, "host.fault_count")
    await host.write("watchdog.control", enable=1, lock=1)
    await host.write("watchdog.control", enable=0)
    await host.write("watchdog.timeout", 1)
    assert await host.read("watchdog.control") == 3 and await host.read("watchdog.timeout") == 4000
    await host.write("measure.control", lane=3)
    await ClockCycles(dut.clk, 10_000)
    assert await host.read("watchdog.status", "expired") == 0

    await host.write("mailbox.to_card.push", 0xDEAD)
    await until(host, bool, "watchdog.status", field="expired")
    await until(host, lambda count: count == 2, "host.fault_count")
    assert await host.read("host.slot") == 2 << 16 | table.VALUES["system.boot.reason.WATCHDOG"]
    assert await host.read("fault.status") == 1 << 5
    assert await host.read("measure.control", "lane") == 3
    assert await host.read("watchdog.control") == 1

    await host.write("system.request", cpu_restart=1)
    await until(host, lambda count: count == 3, "host.fault_count")
    assert await host.read("host.slot") == 3 << 16 | table.VALUES["system.boot.reason.RESTART"]
    await host.write("system.control", measure_reset=1, cpu_reset=1)
    await ClockCycles(dut.clk, 50)
    silence = Pulses(dut, heartbeat=None)
    await ClockCycles(dut.clk, 1000)
    assert silence.seen["heartbeat"] == [] and await host.read("system.status", "cpu_in_reset") == 1
