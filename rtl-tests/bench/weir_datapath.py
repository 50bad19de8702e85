"""weir_datapath: two ports, frames from wire to wire, records of them in record frames, slices of what is wanted."""

import cocotb
import frames
import stream
import weir_records as records
from cocotb.triggers import FallingEdge
from frames import ACK, PSH, SYN
from structs import pack
from weir_records import Kind

SECOND = 10**9
START = 1_700_000_000
DIGEST_ALL, DIGEST_FILTER = 1, 2
TIMEOUTS = {"handshake": 90 * SECOND, "idle": 900 * SECOND, "linger": 4 * SECOND, "other": 60 * SECOND}
CLIENT, SERVER = bytes([10, 0, 0, 1]), bytes([10, 0, 0, 2])
RECORD_MAC, CARD_MAC = 0x02000000FE01, 0x02000000FE02


class Card:
    def __init__(self, dut):
        self.dut = dut
        self.waiting = [[], []]  # beats to receive
        self.sent = [[], []]  # what left each port: (data, keep, last, error)
        self.arrivals, self.departures = [[], []], [[], []]  # clocks of first beats
        self.frames = []  # record frames as bytes
        self.slices = [[], []]
        self.partial, self.parts = [], [[], []]
        self.clock = 0
        self.first = [True, True]
        self.leaving = [True, True]
        self.take = True
        self.beating = True

    async def start(self):
        dut = self.dut
        for pin in [
            "rst_measure",
            "clock_rate",
            "clock_set_valid",
            "clock_step_valid",
            "clock_step_ns",
            "clock_slew_valid",
            "clock_slew_ns",
            "pps",
            "port_offset",
            "heartbeat",
            "shed_enable",
            "digest_entries",
            "trigger_packets",
            "trigger_ns",
            "flush",
            "table_flip",
            "statistics_enable",
            "burst_bytes",
            "services",
            "sketch_seed",
            "rx_tdata",
            "rx_tkeep",
            "rx_tlast",
            "rx_terror",
            "rx_tvalid",
        ]:
            getattr(dut, pin).value = 0
        dut.inline_enable.value = 1
        dut.seed.value = stream.seeded().getrandbits(399)
        dut.vlan_in_key.value, dut.epoch.value, dut.lane.value = 1, 7, 2
        dut.timeouts.value = pack("timeouts_t", TIMEOUTS)
        dut.digest_mode.value, dut.slices_enable.value = DIGEST_ALL, 1
        dut.destination_mac.value, dut.source_mac.value = RECORD_MAC, CARD_MAC
        dut.tx_tready.value, dut.m_tready.value, dut.slice_tready.value = 3, 1, 3
        dut.clock_set_seconds.value, dut.clock_set_ns.value = START, 5
        await stream.start(dut)
        await FallingEdge(dut.clk)
        dut.clock_set_valid.value = 1
        await FallingEdge(dut.clk)
        dut.clock_set_valid.value = 0
        while not dut.ready.value or dut.clock_set_busy.value:
            await FallingEdge(dut.clk)
        await self.run(200)

    async def run(self, clocks):
        dut = self.dut
        for _ in range(clocks):
            data = keep = last = error = valid = 0
            for port in (0, 1):
                if self.waiting[port]:
                    beat = self.waiting[port].pop(0)
                    if self.first[port]:
                        self.arrivals[port].append(self.clock)
                    self.first[port] = beat[2]
                    data |= beat[0] << 512 * port
                    keep |= beat[1] << 64 * port
                    last |= beat[2] << port
                    error |= beat[3] << port
                    valid |= 1 << port
            dut.rx_tdata.value, dut.rx_tkeep.value, dut.rx_tlast.value, dut.rx_tvalid.value = data, keep, last, valid
            dut.rx_terror.value = error
            self.beat()
            dut.m_tready.value = self.take
            await FallingEdge(dut.clk)
            self.clock += 1
            self.collect()

    def beat(self):
        self.dut.heartbeat.value = self.beating and self.clock % 50 == 0

    def collect(self):
        dut = self.dut
        valid = int(dut.tx_tvalid.value)
        for port in (0, 1):
            if valid >> port & 1:
                beat = (
                    int(dut.tx_tdata.value) >> 512 * port & (1 << 512) - 1,
                    int(dut.tx_tkeep.value) >> 64 * port & (1 << 64) - 1,
                    bool(int(dut.tx_tlast.value) >> port & 1),
                    bool(int(dut.tx_terror.value) >> port & 1),
                )
                if self.leaving[port]:
                    self.departures[port].append(self.clock)
                self.leaving[port] = beat[2]
                self.sent[port].append((beat[0] & mask(beat[1]), *beat[1:]))
            if int(dut.slice_tvalid.value) >> port & 1:
                self.parts[port].append(int(dut.slice_tdata.value) >> 512 * port & (1 << 512) - 1)
                if int(dut.slice_tlast.value) >> port & 1:
                    self.slices[port].append(self.parts[port])
                    self.parts[port] = []
        if dut.m_tvalid.value and dut.m_tready.value:
            self.partial.append(int(dut.m_tdata.value).to_bytes(64, "little"))
            if dut.m_tlast.value:
                self.frames.append(b"".join(self.partial))
                self.partial = []

    def receive(self, port, frame):
        self.waiting[port] += beats(frame)

    async def flush(self):
        self.dut.flush.value = 1
        await self.run(1)
        self.dut.flush.value = 0
        await self.run(300)

    def records(self, lane=2):
        """Of a lane; its frames are numbered without a gap, and so are the records in them."""
        frames_ = [(records.parse_frame_header(frame[:64]), frame) for frame in self.frames]
        mine = [(header, frame) for header, frame in frames_ if header["lane"] == lane]
        return [records.parse(frame[i : i + 64]) for _, frame in mine for i in range(64, len(frame), 64)]


def beats(frame):
    """(data, keep, last, error) of a frame; the long answer is one that the MAC found damaged."""
    return [(*beat, bool(beat[2]) and len(frame) > 1000) for beat in frames.beats(frame)]


def mask(keep):
    return sum(0xFF << 8 * i for i in range(64) if keep >> i & 1)


def connection():
    """(port, frame) of a handshake, a request and its answer."""
    c, s = (CLIENT, SERVER), (SERVER, CLIENT)

    def from_client(seq, ack, flags, payload=b""):
        return 0, frames.ethernet(frames.ipv4(frames.tcp(40000, 80, seq, ack, flags, payload=payload), *c))

    def from_server(seq, ack, flags, payload=b""):
        return 1, frames.ethernet(frames.ipv4(frames.tcp(80, 40000, seq, ack, flags, payload=payload), *s))

    return [
        from_client(100, 0, SYN),
        from_server(500, 101, SYN | ACK),
        from_client(101, 501, ACK),
        from_client(101, 501, ACK | PSH, b"q" * 100),
        from_server(501, 201, ACK | PSH, b"a" * 1000),
    ]


async def play(card, packets, pause=120):
    for port, frame in packets:
        card.receive(port, frame)
        await card.run(pause)
    await card.run(900)  # horizons pass, records leave


def expected(packets, port):
    return [beat for at, frame in packets if at == port for beat in beats(frame)]


@cocotb.test()
async def wire_and_records(dut):
    card = Card(dut)
    await card.start()
    packets = connection()
    await play(card, packets)
    await card.flush()
    for port in (0, 1):
        assert card.sent[1 - port] == expected(packets, port)
        gaps = {out - at for at, out in zip(card.arrivals[port], card.departures[1 - port], strict=True)}
        assert len(gaps) == 1, f"latency of port {port}: {gaps}"
    found = card.records()
    kinds = [r["kind"] for r in found if not r["flags"] & records.Flag.CONTINUATION]
    assert kinds[0] == Kind.OPEN and Kind.SETUP in kinds and Kind.BLOCK in kinds, kinds
    assert kinds.count(Kind.PACKET) == len(packets)
    times = [r["time"] for r in found if r["kind"] == Kind.PACKET]
    assert times == sorted(times) and START * SECOND < times[0] < START * SECOND + 10**5
    # What was sent 120 clocks apart is 400 ns apart, but for the alignment of beats.
    assert all(abs(b - a - 400) < 60 for a, b in zip(times, times[1:], strict=False)), times
    assert [r["sequence"] for r in found] == list(range(len(found)))
    assert int(dut.contexts_in_use.value) == 1 and int(dut.measured.value) == 3
    # A slice of each packet: number and the frame's first bytes.
    for port in (0, 1):
        mine = [frame for at, frame in packets if at == port]
        assert len(card.slices[port]) == len(mine)
        for slice_, frame in zip(card.slices[port], mine, strict=True):
            body = b"".join(beat.to_bytes(64, "little") for beat in slice_[1:])
            assert body[: min(len(frame), 128)] == frame[:128]


@cocotb.test()
async def an_event_is_of_one_flow(dut):
    """Packets after a gap are wanted, and none of the flow that has the context next, whether its SYN ends the old one or comes
    when that has timed out."""
    card = Card(dut)
    await card.start()
    dut.rst_measure.value = 1
    await card.run(3)
    short = 1 << 21
    dut.timeouts.value = pack("timeouts_t", dict.fromkeys(TIMEOUTS, short))
    dut.digest_mode.value, dut.trigger_packets.value, dut.trigger_ns.value = DIGEST_FILTER, 1000, 60 * SECOND
    dut.rst_measure.value = 0
    await card.run(200)

    def client(seq, flags, payload=b""):
        tcp = frames.tcp(40000, 80, seq, 501, flags, payload=payload)
        return 0, frames.ethernet(frames.ipv4(tcp, CLIENT, SERVER))

    setup = connection()[:3]
    gap, data = client(2101, ACK, b"lost before"), client(2112, ACK, b"more")
    again = [client(900_000, SYN), *[client(900_001 + i, ACK, b"x") for i in range(3)]]
    await play(card, [*setup, gap, data, *again])
    # The SYN is looked up before the tracker knows that it ends the flow.
    await card.flush()
    wanted = [r for r in card.records() if r["kind"] == Kind.PACKET]
    assert [r["seq"] for r in wanted] == [2112, 900_000]

    await play(card, [client(910_000, ACK, b"another gap"), client(910_011, ACK, b"more")])
    dut.clock_step_ns.value, dut.clock_step_valid.value = 2 * short, 1
    await card.run(1)
    dut.clock_step_valid.value = 0
    await card.run(50)
    await play(card, [client(910_015, ACK, b"a new flow"), client(910_025, ACK, b"more of it")])
    await card.flush()
    wanted = [r for r in card.records() if r["kind"] == Kind.PACKET]
    assert [r["seq"] for r in wanted] == [2112, 900_000, 910_011]
    assert int(dut.contexts_used.value) == 1


@cocotb.test()
async def statistics_leave_beside_the_records(dut):
    """On a lane of their own, when 100 ms are over; the records of flows are not touched."""
    card = Card(dut)
    await card.start()
    dut.rst_measure.value = 1
    await card.run(3)
    dut.statistics_enable.value = 1
    dut.burst_bytes.value = 1000 << 32 | 50
    dut.services.value = 80
    dut.sketch_seed.value = stream.seeded().getrandbits(192)
    dut.rst_measure.value = 0
    await card.run(4200)  # memories are clear
    packets = connection()
    await play(card, packets)
    dut.clock_step_ns.value, dut.clock_step_valid.value = 10**8, 1
    await card.run(1)
    dut.clock_step_valid.value = 0
    await card.run(50)
    await play(card, packets[-1:])  # a word of later time
    await card.run(5000)
    await card.flush()
    found = card.records()
    assert [r["sequence"] for r in found] == list(range(len(found)))
    assert [r["kind"] for r in found].count(Kind.PACKET) == len(packets) + 1
    beside = card.records(lane=10)
    assert [r["sequence"] for r in beside] == list(range(len(beside))) and int(dut.statistics_records.value) == len(
        beside
    )
    assert {r["version_lane"] for r in beside} == {records.VERSION << 4 | 10}
    assert {(r["flow"], r["time"]) for r in beside} == {(0, START * SECOND)}
    sizes = [[len(frame) for at, frame in packets if at == port] for port in (0, 1)]
    bursts = [r for r in beside if r["kind"] == Kind.BURST]
    assert [(r["arg"], r["frames"], r["bytes"]) for r in bursts] == [(p, len(s), sum(s)) for p, s in enumerate(sizes)]
    assert [(r["bursts"], r["edges"], r["threshold"]) for r in bursts] == [(1, 1, 50), (1, 1, 1000)]
    histograms = [r for r in beside if r["kind"] == Kind.HISTOGRAM]
    assert histograms[-1]["samples"] == [2, 1, 1], "SYN and request, SYN-ACK; the response"
    assert {r["port"] for r in histograms[:-1]} == {80}
    tops = [r for r in beside if r["kind"] == Kind.TOP]
    assert (tops[-1]["packets"], tops[-1]["bytes"], tops[-1]["syns"]) == (5, sum(map(sum, sizes)), 1)
    assert int(dut.words_lost.value) == 0 and int(dut.results_lost.value) == 0


@cocotb.test()
async def user_frames_do_not_notice(dut):
    """Records that cannot leave, a reset of measuring within a frame, a heart that stops: the wires go on."""
    card = Card(dut)
    await card.start()
    packets = connection() * 8
    card.take = False
    for port, frame in packets[:20]:
        card.receive(port, frame)
    await card.run(10)
    dut.rst_measure.value = 1
    await card.run(3)
    dut.rst_measure.value = 0
    card.beating = False
    for port, frame in packets[20:]:
        card.receive(port, frame)
        await card.run(40)
    await card.run(600)
    for port in (0, 1):
        assert card.sent[1 - port] == expected(packets, port)
        gaps = {out - at for at, out in zip(card.arrivals[port], card.departures[1 - port], strict=True)}
        assert len(gaps) == 1, f"latency of port {port}: {gaps}"
        assert (int(dut.frames_dropped.value) >> 32 * port & 0xFFFFFFFF) == 0
    assert int(dut.measured.value) == 0, "bypass has not taken over"
    # And measuring comes back with the heart.
    card.take = card.beating = True
    while not dut.ready.value:
        await card.run(50)
    before = len(card.records())
    await play(card, connection())
    await card.flush()
    kinds = [r["kind"] for r in card.records()[before:]]
    assert Kind.OPEN in kinds and int(dut.measured.value) == 3


@cocotb.test()
@cocotb.parametrize(busy=[(0,), (0, 1)], back=[5_000, 500_000, 3600 * SECOND])
async def a_clock_that_goes_back_loses_no_frame(dut, busy, back):
    """Words wait for the other port's horizon when the clock goes back; all of them, and all later ones, are told."""
    card = Card(dut)
    await card.start()
    connection_ = [packet for packet in connection() if packet[0] in busy]
    count = 0

    async def send(frames_):
        nonlocal count
        for _ in range(frames_):
            for port, frame in connection_[: len(busy) + 1]:
                card.receive(port, frame)
                count += 1
            await card.run(15)

    await send(12)
    if back < SECOND:
        dut.clock_step_valid.value, dut.clock_step_ns.value = 1, -back
        await card.run(1)
        dut.clock_step_valid.value = 0
    else:
        dut.clock_set_seconds.value, dut.clock_set_valid.value = START - back // SECOND, 1
        await card.run(1)
        dut.clock_set_valid.value = 0
    # More than what waits before the merge has room for.
    await send(700)
    await card.run(3000)
    await card.flush()
    assert dut.dropped.value == 0
    packets = [r for r in card.records() if r["kind"] == Kind.PACKET]
    assert len(packets) == count
    times = [r["time"] for r in packets]
    # The engine's time stands until the clock is there again.
    assert times == sorted(times) and times[-1] < START * SECOND + 10**6
