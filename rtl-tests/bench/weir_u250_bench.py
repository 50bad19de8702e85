"""weir_u250 with models of MAC, DMA and clocks: lines at 100 Gb/s, the host's accesses, record frames in the host's memory."""

import struct
import zlib

import cocotb
import frames
import packed
import programs
import stream
import weir_records as records
import weir_registers as table
from cocotb.clock import Clock
from cocotb.triggers import ClockCycles, FallingEdge, RisingEdge, Timer
from cocotb.utils import get_sim_time
from registers import Registers
from weir_datapath import CARD_MAC, CLIENT, RECORD_MAC, SERVER, START, connection
from weir_records import Kind

CORE_PS, HOST_PS = 3334, 4000
# The two MACs run on clocks of their own, 322.3 MHz.
MAC_PS = (3102, 3104)
LINE_BYTES_PER_PS = 12.5e-3
# Preamble, check sequence, gap.
OVERHEAD = 24
# A codeword of the Reed-Solomon FEC: a receiver may give its bytes all at once.
CODEWORD = 660

BOARD = 0x4000
MAGIC, BOARD_ID, DMA_STATUS, DMA_FRAMES, DMA_DROPPED = (BOARD + 4 * i for i in range(5))
CONTROL = (BOARD + 0x20, BOARD + 0x24)
MAC_RESET, MODULE_RESET, LOW_POWER, LOOPBACK = 8, 4, 2, 1
ALIGNED, REMOTE_FAULT, IN_RESET, MODULE_PRESENT, MODULE_IRQ = (1 << i for i in range(5))
COUNTERS = ("status", "rx_frames", "rx_errors", "rx_dropped", "rx_cut", "rx_alignments", "tx_frames", "tx_underflows")
RECORDS, SLICES = 0, (1, 2)


def port_register(port, name):
    return BOARD + 0x80 + 0x40 * port + 4 * COUNTERS.index(name)


class Line:
    """What is on the two wires of a port: frames to it at 100 Gb/s, those that come from it."""

    def __init__(self, board, port):
        self.board, self.port, self.period = board, port, MAC_PS[port]
        # Bytes that are given at once, after the last of them came; 1: as they come.
        self.block = 1
        self.queue, self.beats = [], []
        self.arrived = self.start = 0.0
        self.arrivals, self.departures = [], []
        self.sent, self.damaged = [], []
        self.partial = b""
        self.begun = None

    def send(self, frame, error=False):
        self.queue.append((frame, error))

    @property
    def idle(self):
        return not self.queue and not self.beats

    def step(self):
        """One clock: (data, keep, last, error) to the port, or None."""
        self.arrived += self.period * LINE_BYTES_PER_PS
        while self.queue and self.start <= self.arrived:
            frame, error = self.queue.pop(0)
            self.start = max(self.start, self.arrived - self.period * LINE_BYTES_PER_PS)
            for i in range(0, len(frame), 64):
                part = frame[i : i + 64]
                last = i + 64 >= len(frame)
                at = self.start + 8 + i + len(part) + (4 if last else 0)
                due = -(-at // self.block) * self.block
                self.beats.append((due, i == 0, part, last, error and last))
            self.start += len(frame) + OVERHEAD
        if not self.beats or self.beats[0][0] > self.arrived:
            return None
        _, first, part, last, error = self.beats.pop(0)
        if first:
            self.arrivals.append(get_sim_time("ps"))
        return int.from_bytes(part, "little"), (1 << len(part)) - 1, last, error

    def collect(self, data, keep, last, error):
        if not self.partial:
            self.departures.append(get_sim_time("ps"))
        self.partial += data.to_bytes(64, "little")[: keep.bit_count()]
        if last:
            (self.damaged if error else self.sent).append(self.partial)
            self.partial = b""


class Board:
    def __init__(self, dut):
        self.dut = dut
        self.lines = [Line(self, 0), Line(self, 1)]
        self.pins = [[0, 0] for _ in range(5)]
        self.packets, self.completions = [], []
        self.partial, self.crc, self.ecc = b"", None, None
        self.irqs = self.failed_irqs = 0

    async def start(self):
        dut = self.dut
        for pin in (
            "rx_tdata",
            "rx_tkeep",
            "rx_tlast",
            "rx_terror",
            "rx_tvalid",
            "line_remote_fault",
            "host_drops",
            "host_fails_irq",
        ):
            getattr(dut, pin).value = 0
        dut.line_up.value, dut.host_takes_data.value, dut.host_takes_completions.value = 3, 1, 1
        dut.qsfp_modprsl.value, dut.qsfp_intl.value = 0b10, 0b11  # a module in cage 0
        dut.rst.value = 1
        self.host = Registers(dut)
        for clock in (dut.clk, dut.core_clk, dut.mac_clk_0, dut.mac_clk_1):
            clock.value = 0
        await Timer(10, "ns")
        for clock, period in (
            (dut.clk, HOST_PS),
            (dut.core_clk, CORE_PS),
            (dut.mac_clk_0, MAC_PS[0]),
            (dut.mac_clk_1, MAC_PS[1]),
        ):
            Clock(clock, period, unit="ps").start(start_high=False)
        cocotb.start_soon(self.run_line(0, dut.mac_clk_0))
        cocotb.start_soon(self.run_line(1, dut.mac_clk_1))
        cocotb.start_soon(self.run_host())
        await ClockCycles(dut.clk, 30)
        dut.rst.value = 0
        await ClockCycles(dut.clk, 300)

    async def run_line(self, port, clock):
        dut, line = self.dut, self.lines[port]
        data, keep, last, error, valid = (
            dut.rx_tdata,
            dut.rx_tkeep,
            dut.rx_tlast,
            dut.rx_terror,
            dut.rx_tvalid,
        )
        was_valid = False
        while True:
            await FallingEdge(clock)
            if int(dut.tx_tvalid.value) >> port & 1:
                line.collect(
                    int(dut.tx_tdata.value) >> 512 * port & (1 << 512) - 1,
                    int(dut.tx_tkeep.value) >> 64 * port & (1 << 64) - 1,
                    int(dut.tx_tlast.value) >> port & 1,
                    int(dut.tx_terror.value) >> port & 1,
                )
            beat = line.step()
            if beat or was_valid:
                values = (*beat, 1) if beat else (0, 0, 0, 0, 0)
                for pin, value, kept, width in zip(
                    (data, keep, last, error, valid), values, self.pins, (512, 64, 1, 1, 1), strict=True
                ):
                    kept[port] = int(value)
                    pin.value = kept[1] << width | kept[0]
            was_valid = bool(beat)

    async def run_host(self):
        """Packets and completions as the DMA takes them."""
        dut = self.dut
        while True:
            await FallingEdge(dut.clk)
            if dut.c2h_taken.value:
                beat = int(dut.c2h_tdata.value).to_bytes(64, "little")
                about = int(dut.c2h_qid.value), int(dut.c2h_length.value)
                assert int(dut.c2h_tcrc.value) == zlib.crc32(beat)
                assert int(dut.c2h_ecc.value) == check_bits(*about)
                self.partial += beat
                if dut.c2h_tlast.value:
                    assert about[1] == len(self.partial)
                    self.packets.append((about[0], self.partial))
                    self.partial = b""
            if dut.cmpt_taken.value:
                entry = int(dut.cmpt_tdata.value)
                parity = [
                    (entry >> 32 * i & 0xFFFFFFFF).bit_count() + (int(dut.cmpt_dpar.value) >> i & 1) for i in range(16)
                ]
                assert all(bits % 2 for bits in parity)
                self.completions.append((int(dut.cmpt_packet.value), int(dut.cmpt_qid.value), entry))
            self.irqs += int(dut.irq.value)
            self.failed_irqs += int(dut.irq_failed.value)

    def of_queue(self, queue):
        return [data for at, data in self.packets if at == queue]

    def check_completions(self):
        """Each packet has one, with its number, queue and length."""
        assert self.completions == [
            ((i + 1) & 0xFFFF, queue, 1 << 3 | len(data) << 4) for i, (queue, data) in enumerate(self.packets)
        ]

    async def read(self, address):
        value, found = await self.host.read_at(address)
        assert found, hex(address)
        return value

    async def count(self, port, name):
        return await self.read(port_register(port, name))

    async def aligned(self):
        for port in (0, 1):
            while not await self.count(port, "status") & ALIGNED:
                pass
        await Timer(100, "ns")  # what comes with the link is not taken

    async def quiet(self):
        """Until what was sent has passed."""
        while not all(line.idle for line in self.lines):
            await Timer(100, "ns")
        await Timer(2, "us")


def check_bits(queue, length):
    """Of the model ecc_0, over what PG302 says goes in."""
    word = 1 << 32 | queue << 16 | length
    check = word.bit_count() % 2 << 6
    for i in range(57):
        if word >> i & 1:
            check ^= i + 1
    return check


def random_frame(rng, length):
    return rng.randbytes(length)


@cocotb.test()
async def lines_at_full_rate(dut):
    """Back to back at 100 Gb/s in both directions, all sizes, also as a receiver with FEC gives them: every frame leaves
    as it came, in order, without an underflow; frames take the same time whatever their size."""
    board = Board(dut)
    await board.start()
    await board.aligned()
    rng = stream.seeded()
    sent = [[], []]
    spread = []
    for block in (1, CODEWORD):
        for line in board.lines:
            line.block, line.arrivals, line.departures = block, [], []
        sizes = [60, 61, 64, 65, 128, 129, 1514, 9216, 60, 9216, 9153] + [
            rng.choice((60, 61, 300, 1514)) for _ in range(60)
        ]
        for port, line in enumerate(board.lines):
            for size in sizes + [rng.randint(60, 9216) for _ in range(4)]:
                frame = random_frame(rng, size)
                line.send(frame)
                sent[port].append(frame)
        await board.quiet()
        for port in (0, 1):
            assert board.lines[1 - port].sent == sent[port], f"port {port}, block {block}"
            assert not board.lines[port].damaged
            if block == 1:
                # Alone on the line, so that no frame waits for another.
                line = board.lines[port]
                line.arrivals, board.lines[1 - port].departures = [], []
                for size in (60, 64, 200, 1514, 4000, 9216):
                    frame = random_frame(rng, size)
                    line.send(frame)
                    sent[port].append(frame)
                    await board.quiet()
                times = zip(line.arrivals, board.lines[1 - port].departures, strict=True)
                spread += [out - at for at, out in times]
    for port in (0, 1):
        for name, value in (("rx_frames", len(sent[port])), ("tx_frames", len(sent[1 - port]))):
            assert await board.count(port, name) == value, name
        for name in ("rx_errors", "rx_dropped", "rx_cut", "tx_underflows"):
            assert await board.count(port, name) == 0, name
        assert await board.host.read(f"inline.port[{port}].frames_out") == len(sent[port])
    dut._log.info("latency of the wire path %.0f to %.0f ns", min(spread) / 1000, max(spread) / 1000)
    assert max(spread) - min(spread) <= 4 * CORE_PS, spread


@cocotb.test(skip=not programs.COMPILER)
async def power_on_to_records(dut):
    """What a host does over the BAR until records and slices are in its memory; the traffic passes all the while."""
    board = Board(dut)
    await board.start()
    host = board.host
    assert await board.read(MAGIC) == int.from_bytes(b"WBOA", "big") and await board.read(BOARD_ID) == 0x250
    assert await board.read(DMA_STATUS) == 1
    await board.aligned()
    assert int(dut.led.value) & 5 == 5
    assert await board.count(0, "status") == ALIGNED | MODULE_PRESENT
    assert await host.read("info.magic") == table.RESETS["info.magic"]
    await programs.load(host, programs.build("soc"))
    for name, mac in (("destination", RECORD_MAC), ("source", CARD_MAC)):
        await host.write(f"record.{name}_low", mac & 0xFFFFFFFF)
        await host.write(f"record.{name}_high", mac >> 32)
    await host.write("clock.set_seconds_low", START)
    await host.write("clock.set_ns", 5)
    await host.write("digest.control", mode=1, slices_enable=1)
    await host.write("inline.control", enable=1)
    await host.write("system.control", 0)
    while not await host.read("system.status", "ready") or not await host.read("host.state"):
        pass
    packets = connection()
    for port, frame in packets:
        board.lines[port].send(frame)
        await board.quiet()
    await Timer(5, "us")  # horizons pass
    await host.write("record.request", flush=1)
    await Timer(3, "us")
    for port in (0, 1):
        assert board.lines[1 - port].sent == [frame for at, frame in packets if at == port]
        assert len(board.of_queue(SLICES[port])) == len(board.lines[1 - port].sent)
        assert await host.read(f"inline.port[{port}].mode") == 1
    record_frames = board.of_queue(RECORDS)
    assert all(f[:12] == struct.pack(">Q", RECORD_MAC)[2:] + struct.pack(">Q", CARD_MAC)[2:] for f in record_frames)
    found = [records.parse(f[i : i + 64]) for f in record_frames for i in range(64, len(f), 64)]
    kinds = [record["kind"] for record in found]
    assert kinds[0] == Kind.OPEN and kinds.count(Kind.PACKET) == len(packets)
    assert [record["sequence"] for record in found] == list(range(len(found)))
    assert await host.read_pair("record.records_out") == len(found)
    board.check_completions()
    assert await board.read(DMA_FRAMES) == len(board.packets) and await board.read(DMA_DROPPED) == 0
    assert await host.read("fault.status") == 0


@cocotb.test()
async def links_come_and_go(dut):
    """A link that is lost within a frame: the frame ends there, marked, and the next one is whole. Frames for a port without
    a link are dropped whole and counted. Damaged frames leave marked."""
    board = Board(dut)
    await board.start()
    await board.aligned()
    rng = stream.seeded()
    first, second = board.lines
    cut = rng.randbytes(9216)
    first.send(cut)
    await Timer(400, "ns")
    dut.line_up.value = 0b10
    await Timer(300, "ns")
    assert int(dut.send_rfi.value) == 0b01
    await board.quiet()
    assert not await board.count(0, "status") & ALIGNED
    dut.line_up.value = 0b11
    await board.aligned()
    frame = rng.randbytes(500)
    first.send(frame)
    first.send(rng.randbytes(700), error=True)
    await board.quiet()
    assert second.sent == [frame]
    # What had come, and one byte that ends it.
    end, damaged = second.damaged
    assert 64 < len(end) < 9216 and len(end) % 64 == 1 and cut.startswith(end[:-1])
    assert len(damaged) == 700
    assert await board.count(0, "rx_alignments") == 2 and await board.count(0, "rx_errors") == 1

    # Nobody listens at port 1: its FIFO and the elastic buffer fill, the rest is dropped.
    dut.line_up.value = 0b01
    before = await board.host.read("inline.port[0].frames_in")
    await Timer(300, "ns")
    frames = [rng.randbytes(9216) for _ in range(12)]
    for frame in frames:
        first.send(frame)
    await board.quiet()
    dropped = await board.host.read("inline.port[0].frames_dropped")
    assert 0 < dropped < len(frames)
    dut.line_up.value = 0b11
    await board.aligned()
    await Timer(8, "us")
    passed = second.sent[1:]
    assert passed == [frame for frame in frames if frame in passed] and len(passed) == len(frames) - dropped
    assert await board.host.read("inline.port[0].frames_in") == before + len(frames)
    assert await board.count(1, "tx_underflows") == 0 and await board.count(0, "rx_dropped") == 0

    # A remote fault shows; a MAC that the host resets comes back; modules and loopback are the host's.
    dut.line_remote_fault.value = 0b10
    await Timer(200, "ns")
    assert await board.count(1, "status") == ALIGNED | REMOTE_FAULT
    dut.line_remote_fault.value = 0
    assert await board.host.write_at(CONTROL[1], MAC_RESET | MODULE_RESET | LOW_POWER | LOOPBACK)
    await Timer(300, "ns")
    assert await board.count(1, "status") == IN_RESET
    assert int(dut.qsfp_resetl.value) == 0b01 and int(dut.qsfp_lpmode.value) == 0b10
    assert await board.read(CONTROL[1]) == MAC_RESET | MODULE_RESET | LOW_POWER | LOOPBACK
    assert await board.host.write_at(CONTROL[1], 0)
    await board.aligned()
    frame = rng.randbytes(1514)
    second.send(frame)
    await board.quiet()
    assert first.sent == [frame]


async def measure_anew(host):
    """Reset measuring, with the CPU held, until it is ready."""
    await host.write("system.control", cpu_reset=1, measure_reset=1)
    await host.write("system.control", cpu_reset=1)
    while not await host.read("system.status", "ready"):
        pass


@cocotb.test()
async def measuring_is_reset_within_a_slice(dut):
    """The host takes nothing until all that holds packets is full, so that a reset of measuring finds a slice half gone: it
    ends, and record frames and slices of what comes after are whole."""
    board = Board(dut)
    await board.start()
    await board.aligned()
    host = board.host
    await host.write("digest.control", mode=1, slices_enable=1)
    await host.write("fault.hold", stop_records=1)
    await measure_anew(host)
    dut.host_takes_data.value = 0
    before = [datagram(bytes(range(100)))] * 100
    for frame in before:
        board.lines[0].send(frame)
    await board.quiet()
    await Timer(5, "us")  # horizons pass
    assert not board.packets
    await host.write("system.control", cpu_reset=1, measure_reset=1)
    await host.write("fault.hold", stop_records=0)
    await host.write("system.control", cpu_reset=1)
    while not await host.read("system.status", "ready"):
        pass
    await RisingEdge(dut.clk)  # in the host's clock, which run_host looks at in its middle
    dut.host_takes_data.value = 1
    await Timer(4, "us")
    old = [whole_slice(data) for data in board.of_queue(SLICES[0])]
    assert len(old) > 60 and [number for number, _ in old] == list(range(1, len(old) + 1))
    whole = before[0][:128]
    assert all(body == whole for _, body in old[:-1])
    # What is full holds its head, or a beat more; one of zeros ends it.
    assert old[-1][1] in (bytes(64), whole[:64] + bytes(64)), "no slice was half gone"

    board.packets.clear()
    packets = connection()
    for port, frame in packets:
        board.lines[port].send(frame)
        await board.quiet()
    await Timer(5, "us")
    await host.write("record.request", flush=1)
    await Timer(3, "us")
    for port in (0, 1):
        mine = [frame[:128] for at, frame in packets if at == port]
        assert [whole_slice(data) for data in board.of_queue(SLICES[port])] == list(enumerate(mine, 1))
    found = [records.parse(f[i : i + 64]) for f in board.of_queue(RECORDS) for i in range(64, len(f), 64)]
    assert [record["sequence"] for record in found] == list(range(len(found)))
    assert [record["kind"] for record in found].count(Kind.PACKET) == len(packets)


def datagram(payload):
    return frames.ethernet(
        frames.ipv4(struct.pack(">HHHH", 4000, 53, 8 + len(payload), 0) + payload, CLIENT, SERVER, 17)
    )


def whole_slice(data):
    """(number, the frame's first bytes) of a slice."""
    head = packed.unpack(packed.SLICE_HEAD, int.from_bytes(data[:64], "little"))
    return head["number"], data[64 : 64 + head["bytes"]]


@cocotb.test()
async def the_host_goes_away(dut):
    """Packets that the host does not take hold up records alone; a reset of PCIe within accesses and traffic leaves the
    wires alone and the registers there; interrupts are messages, one for each rise, asked for until one leaves."""
    board = Board(dut)
    await board.start()
    await board.aligned()
    host, rng = board.host, stream.seeded()
    await host.write("digest.control", mode=1, slices_enable=1)
    await measure_anew(host)
    dut.host_takes_data.value = 0
    taken_before, dropped_before = await board.read(DMA_FRAMES), await board.read(DMA_DROPPED)
    packets = connection() * 8
    for port, frame in packets:
        board.lines[port].send(frame)
    await board.quiet()
    await Timer(5, "us")
    await host.write("record.request", flush=1)
    await Timer(2, "us")
    assert not board.packets
    for port in (0, 1):
        assert board.lines[1 - port].sent == [frame for at, frame in packets if at == port]
    # The host has no descriptors for some: the DMA takes and drops them.
    await RisingEdge(dut.clk)  # in the host's clock, which run_host looks at in its middle
    dut.host_takes_data.value, dut.host_drops.value = 1, 1
    await Timer(3, "us")
    dut.host_drops.value = 0
    assert len(board.packets) == 1 + len(packets) and len(board.of_queue(RECORDS)) == 1
    board.check_completions()
    taken, dropped = await board.read(DMA_FRAMES), await board.read(DMA_DROPPED)
    assert taken - taken_before == dropped - dropped_before == len(board.packets)

    # An address where nothing is: an error, and an interrupt that the host asked for.
    await host.write("fault.host_irq_enable", 0xFFFF)
    for nowhere in (0x3FFC, BOARD + 0x0C * 4, BOARD + 0x100, 0x12345678):
        assert (await host.read_at(nowhere))[1] is False and await host.write_at(nowhere, 1) is False
    await Timer(500, "ns")
    assert board.irqs == 1
    await host.write("fault.status", await host.read("fault.status"))
    dut.host_fails_irq.value = 1
    await host.read_at(0x3FFC)
    await Timer(500, "ns")
    assert board.irqs == 1 and board.failed_irqs > 3
    dut.host_fails_irq.value = 0
    await Timer(500, "ns")
    assert board.irqs == 2

    # Resets at any moment of an access, under traffic.
    sent = [[], []]
    for line in board.lines:
        line.sent.clear()
    for delay in range(1, 200, 9):
        for port, line in enumerate(board.lines):
            sent[port].append(rng.randbytes(rng.randint(60, 3000)))
            line.send(sent[port][-1])
        cocotb.start_soon(host.master.read(table.REGISTERS["info.magic"], 4))
        cocotb.start_soon(host.master.write(table.REGISTERS["system.scratch"], bytes(4)))
        await Timer(delay, "ns")
        dut.rst.value = 1
        await Timer(200, "ns")
        dut.rst.value = 0
        await Timer(400, "ns")
        await host.write("system.scratch", delay + 1000)
        assert await host.read("system.scratch") == delay + 1000
        assert await board.read(MAGIC) == int.from_bytes(b"WBOA", "big")
    assert (await board.read(DMA_FRAMES), await board.read(DMA_DROPPED)) == (taken, dropped)
    await board.quiet()
    for port in (0, 1):
        assert board.lines[1 - port].sent == sent[port] and not board.lines[port].damaged
