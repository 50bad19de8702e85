"""weir_measure: frames in, records out: a short connection, counters of the ports, a blocked output, a full queue."""

import cocotb
import frames
import stream
import weir_records as records
from cocotb.triggers import FallingEdge
from frames import ACK, FIN, PSH, SYN
from structs import pack
from weir_records import BlockEnd, CloseCause, Flag, Kind, RttHow, SetupBit, SetupEnd, Untracked, What

CONFIG = stream.config()
PORTS, META_DEPTH = CONFIG["Ports"], CONFIG["MetaDepth"]
VISIT, PORT, END = 1, 2, 3
SECOND, MS, US = 10**9, 10**6, 10**3
FOREVER = (1 << 64) - 1
EPOCH, LANE = 0x1234, 6
START = 1_700_000_000 * SECOND + 950 * MS
TIMEOUTS = {"handshake": 90 * SECOND, "idle": 900 * SECOND, "linger": 4 * SECOND, "other": 60 * SECOND}
CLIENT, SERVER = bytes([10, 0, 0, 1]), bytes([10, 0, 0, 2])
CLIENT_MAC, SERVER_MAC = b"\x02\0\0\0\0\x0c", b"\x02\0\0\0\0\x0a"


class Measure:
    """Drives the pipeline: frames as (port, time, bytes, length on the wire), visits as (time, index)."""

    def __init__(self, dut, sent, visits=(), digests=0, gap=None, stall=None, vlan_in_key=1):
        self.dut, self.gap, self.stall = dut, gap or (lambda: False), stall or (lambda: False)
        # A digest_mode_e: none, all.
        self.digests = digests
        self.vlan_in_key = vlan_in_key
        # In the order in which words leave the merge; a frame with an earlier time is clamped.
        self.order = sorted(range(len(sent)), key=lambda i: (sent[i][1], sent[i][0]))
        self.sent = sent
        self.queues = [
            [(time, wire, beat) for at, time, data, wire in sent if at == port for beat in frames.beats(data)]
            for port in range(PORTS)
        ]
        self.visits = [(VISIT, index, time) for time, index in visits]
        # Frames of a port that may be sent and not looked up yet: so many take no queue beyond its depth.
        self.most_under_way = META_DEPTH
        self.looked_up, self.under_way = 0, [0] * PORTS
        self.records = []
        self.clocks = 0

    async def reset(self):
        dut = self.dut
        for pin in ("s_tvalid", "s_tlast", "s_tdata", "s_tkeep", "s_tuser", "s_visit_valid", "m_ready"):
            getattr(dut, pin).value = 0
        dut.shed_enable.value = dut.table_flip.value = 0
        dut.s_horizon.value, dut.s_visit_horizon.value = 0, 0
        dut.s_latest.value = (1 << 64 * PORTS) - 1
        dut.seed.value = stream.seeded().getrandbits(399)
        dut.epoch.value, dut.record_lane.value, dut.vlan_in_key.value = EPOCH, LANE, self.vlan_in_key
        dut.timeouts.value = pack("timeouts_t", TIMEOUTS)
        dut.digest_mode.value = self.digests  # DIGEST_OFF, DIGEST_ALL
        dut.digest_entries.value = 0
        dut.trigger_packets.value = 0
        dut.trigger_ns.value = 0
        await stream.start(dut)
        while not dut.ready.value:
            await FallingEdge(dut.clk)

    async def run(self, patience=20_000, clocks=None):
        """Until all is in and out, or for some clocks; the records as dictionaries."""
        await self.reset()
        dut, rest = self.dut, [iter(queue) for queue in self.queues]
        offered, visit, is_ready, first = [False] * PORTS, 0, False, [True] * PORTS
        quiet = 0
        ended = False
        left = sum(map(len, self.queues))
        while quiet < 200 or not ended:
            await FallingEdge(dut.clk)
            if self.clocks == clocks:
                return self.records
            self.clocks += 1
            quiet += 1
            assert self.clocks < patience, "stuck"
            # What the edge to come will do with what is on the pins is known now.
            if dut.looked_up.value and int(dut.looked_up_kind.value) == 0:
                if self.looked_up < len(self.order):
                    self.under_way[self.sent[self.order[self.looked_up]][0]] -= 1
                self.looked_up += 1
                quiet = 0
            offered = [False] * PORTS
            data = keep = last = user = 0
            for port in range(PORTS):
                if self.gap() or (first[port] and self.under_way[port] >= self.most_under_way):
                    continue
                item = next(rest[port], None)
                if item is None:
                    continue
                time, wire, (word, valid_bytes, is_last) = item
                offered[port] = True
                left -= 1
                quiet = 0
                data |= word << 512 * port
                keep |= valid_bytes << 64 * port
                last |= is_last << port
                if first[port]:
                    self.under_way[port] += 1
                    user |= pack("frame_user_t", {"timestamp": time, "wire_length": wire}) << 84 * port
                first[port] = is_last
            dut.s_tvalid.value = sum(on << port for port, on in enumerate(offered))
            dut.s_tdata.value, dut.s_tkeep.value, dut.s_tlast.value, dut.s_tuser.value = data, keep, last, user
            self.horizons()
            if visit < len(self.visits):
                kind, index, time = self.visits[visit]
                dut.s_visit_kind.value, dut.s_visit_index.value, dut.s_visit_time.value = kind, index, time
            dut.s_visit_valid.value = int(visit < len(self.visits))
            waiting = [time for kind, _, time in self.visits[visit:] if kind == VISIT]
            dut.s_visit_horizon.value = waiting[0] if waiting else FOREVER
            is_ready = not self.stall()
            dut.m_ready.value = int(is_ready)
            await cocotb.triggers.ReadOnly()
            if visit < len(self.visits) and dut.s_visit_ready.value:
                visit += 1
                quiet = 0
            if dut.m_valid.value:
                quiet = 0
                if is_ready:
                    self.records.append(records.parse(int(dut.m_record.value).to_bytes(64, "little")))
            if quiet >= 150 and not ended and left == 0:
                ended = True
                now = max([time for _, time, _, _ in self.sent] + [time for _, _, time in self.visits])
                self.visits += [(END, index, now) for index in range(int(dut.used.value))] + [(PORT, 0, now)]
                quiet = 0
        await FallingEdge(dut.clk)
        for number, record in enumerate(self.records):
            assert record["sequence"] == number
            assert record["version_lane"] == records.VERSION << 4 | LANE
        return self.records

    def horizons(self):
        """What a port may still send is not before its first frame that is not looked up yet."""
        remaining = self.order[self.looked_up :]
        value = 0
        for port in range(PORTS):
            times = (self.sent[i][1] for i in remaining if self.sent[i][0] == port)
            value |= next(times, FOREVER) << 64 * port
        self.dut.s_horizon.value = value


def segment(from_client, seq, ack, flags, payload=0, options=b"", window=1000, port=40000, ip_id=1):
    ends = (CLIENT, SERVER) if from_client else (SERVER, CLIENT)
    ports = (port, 443) if from_client else (443, port)
    macs = (CLIENT_MAC, SERVER_MAC) if from_client else (SERVER_MAC, CLIENT_MAC)
    packet = frames.tcp(*ports, seq, ack, flags, window, options, bytes(payload))
    return frames.ethernet(frames.ipv4(packet, *ends, ip_id=ip_id), source=macs[0], destination=macs[1])


def connection():
    """[(port, time, frame, wire)]: handshake, a request of 100 bytes, an answer of 2,000, both FINs; over a second."""
    options = frames.option_mss(1400) + frames.option_scale(7)
    c, s = 1000, 5000
    steps = [
        (1, 0, c, 0, SYN, 0, options),
        (0, 20 * MS, s, c + 1, SYN | ACK, 0, frames.option_mss(1300) + frames.option_scale(2)),
        (1, 21 * MS, c + 1, s + 1, ACK, 0, b""),
        (1, 22 * MS, c + 1, s + 1, ACK | PSH, 100, b""),
        (0, 45 * MS, s + 1, c + 101, ACK, 1000, b""),
        (0, 46 * MS, s + 1001, c + 101, ACK | PSH, 1000, b""),
        (1, 60 * MS, c + 101, s + 2001, ACK, 0, b""),
        (1, 70 * MS, c + 101, s + 2001, ACK | FIN, 0, b""),
        (0, 90 * MS, s + 2001, c + 102, ACK | FIN, 0, b""),
        (1, 91 * MS, c + 102, s + 2002, ACK, 0, b""),
    ]
    sent, ids = [], [0, 0]
    for client, time, seq, ack, flags, payload, given in steps:
        ids[client] += 1
        frame = segment(client, seq, ack, flags, payload, given, window=500 if client else 3000, ip_id=ids[client])
        sent.append((0 if client else 1, START + time, frame, 0))
    return sent


def of(found, kind, continuation=False):
    return [r for r in found if r["kind"] == kind and bool(r["flags"] & Flag.CONTINUATION) == continuation]


def some(record, **fields):
    bad = {name: (record[name], value) for name, value in fields.items() if record[name] != value}
    assert not bad, f"(found, expected) {bad} in {record}"


@cocotb.test()
async def short_connection(dut):
    sent = connection()
    found = await Measure(dut, sent, visits=[(START + 400 * MS, 0)], digests=1).run()
    flow = EPOCH << 48 | 1 << 24

    (opened,), (opened_more,) = of(found, Kind.OPEN), of(found, Kind.OPEN, True)
    mapped = bytes(10) + b"\xff\xff"
    some(opened, time=START, flow=flow, arg=records.ClientHow.SYN, flags=Flag.MORE, client_addr=mapped + CLIENT)
    some(opened, server_addr=mapped + SERVER, client_port=40000, server_port=443, protocol=6, vlans=0)
    some(opened_more, client_mac=CLIENT_MAC, server_mac=SERVER_MAC, first_ttl=64, first_port=0, first_tcp_flags=SYN)
    some(opened_more, first_seq=1000, first_length=0, first_wire=len(sent[0][2]), first_sent_by_server=0)

    (setup,), (setup_more,) = of(found, Kind.SETUP), of(found, Kind.SETUP, True)
    some(setup, arg=SetupEnd.DONE, first_syn=START, last_syn=START, syn_ack=START + 20 * MS, end=START + 21 * MS)
    some(setup, syn_count=1, syn_ack_count=1, bits=SetupBit.SYN | SetupBit.SYN_ACK | SetupBit.ACK, end_window=500)
    some(setup_more, client_isn=1000, server_isn=5000, client_mss=1400, server_mss=1300)
    some(setup_more, client_scale=7, server_scale=2, client_window=500, server_window=3000)

    samples = [(r["arg"], bool(r["flags"] & Flag.SERVER_TO_CLIENT), r["rtt"]) for r in of(found, Kind.RTT)]
    assert samples[:2] == [(RttHow.HANDSHAKE, False, 20 * MS), (RttHow.HANDSHAKE, True, 1 * MS)]
    assert samples[2:] == [(RttHow.DATA, False, 23 * MS), (RttHow.DATA, True, 15 * MS)]

    request, answer = of(found, Kind.BLOCK)
    some(request, arg=BlockEnd.PUSH, flags=0, bytes=100, packets=1, seq=1001, max_segment=100, ttl=64)
    some(request, first=START + 22 * MS, last=START + 22 * MS)
    some(answer, arg=BlockEnd.PUSH, flags=Flag.SERVER_TO_CLIENT, bytes=2000, packets=2, seq=5001, max_segment=1000)
    some(answer, first=START + 45 * MS, last=START + 46 * MS, ack=1101)

    fins = of(found, Kind.EVENT)
    assert [bool(r["flags"] & Flag.SERVER_TO_CLIENT) for r in fins] == [False, True]
    assert all(r["what"] & What.FIN for r in fins)

    (closed,), (closed_more,) = of(found, Kind.CLOSE), of(found, Kind.CLOSE, True)
    some(closed, arg=CloseCause.FIN, flow=flow, last=START + 91 * MS, client_packets=6, server_packets=4)
    some(closed, client_payload=100, server_payload=2000, client_next=1102, server_next=7002)
    some(closed_more, bits=0xF3, client_dup_acks=0, client_copies=0)

    # The second passes between two packets: its PORT come before what the later packet makes.
    assert sum(r["packets"] for r in of(found, Kind.INTERVAL) if r["arg"] == 2) == 10
    digests = of(found, Kind.PACKET)
    assert [r["tcp_flags"] for r in digests] == [data[47] for _, _, data, _ in sent]
    ports = of(found, Kind.PORT)
    before = [i for i, (_, time, _, _) in enumerate(sent) if time < START + 50 * MS]
    assert [r["time"] for r in ports[:PORTS]] == [START + 50 * MS] * 2 and len(ports) == 2 * PORTS
    for record, members in zip(ports, [before, before, range(len(sent)), range(len(sent))], strict=True):
        mine = [sent[i] for i in members if sent[i][0] == record["arg"]]
        some(record, frames=len(mine), tracked=len(mine), bytes=sum(len(data) for _, _, data, _ in mine), flow=0)
        some(record, clamped=0, cut=0, dropped=0, options_skipped=0)
    kinds = [r["kind"] for r in found]
    assert kinds[:2] == [Kind.OPEN] * 2 and kinds[-2:] == [Kind.PORT] * 2


def odd_frames():
    """[(frame, wire, reason or None if tracked)]"""
    good = segment(True, 1, 1, ACK, 10)
    return [
        (good, 0, None),
        (frames.ethernet(bytes(46), frames.ARP), 0, Untracked.NOT_IP),
        (
            frames.ethernet(frames.ipv4(bytes(40), CLIENT, SERVER, fragment=0x2000)),
            0,
            Untracked.FRAGMENT,
        ),
        (frames.ethernet(b"\x95" + bytes(45)), 0, Untracked.MALFORMED),
        (good[:40], len(good), Untracked.TRUNCATED),
        (good[:60], 900, None),
        (segment(True, 1, 1, ACK, 9200), 0, Untracked.OVERSIZE),
        (
            frames.ethernet(frames.ipv4(b"\x03\x01" + bytes(6) + good[14:50], SERVER, CLIENT, protocol=1)),
            0,
            None,
        ),
        (
            frames.ethernet(
                frames.ipv4(
                    b"\x03\x01" + bytes(6) + segment(True, 1, 1, ACK, port=7)[14:50], SERVER, CLIENT, protocol=1
                )
            ),
            0,
            Untracked.ICMP_NO_FLOW,
        ),
        (frames.ethernet(frames.ipv4(bytes(40), CLIENT, SERVER, protocol=17)), 0, None),
        (segment(True, 11, 1, ACK, 10, options=b"\x02\x00"), 0, None),
    ]


@cocotb.test()
async def counters_of_the_ports(dut):
    """Each reason, cut frames, clocks that run backwards."""
    random = stream.seeded()
    sent, reasons, tracked, clamped, time, now = [], [0] * 10, 0, 0, START, 0
    for repeat in range(12):
        for data, wire, reason in odd_frames():
            time += 5 * US
            behind = repeat > 2 and random.random() < 0.1
            own = time - 12 * US if behind else time
            sent.append((0, own, data, wire))
            clamped += own < now
            now = max(now, own)
            tracked += reason is None
            if reason is not None:
                reasons[reason] += 1
    measure = Measure(dut, sent, gap=stream.randomly(0.3))
    measure.order = [*range(len(sent))]
    found = await measure.run(patience=60_000)
    (port,), (port_more,) = of(found, Kind.PORT), of(found, Kind.PORT, True)
    some(port, arg=0, frames=len(sent), tracked=tracked, clamped=clamped, dropped=0, cut=24, options_skipped=12)
    some(port, bytes=sum(wire or len(data) for _, _, data, wire in sent))
    some(port_more, untracked=reasons)


def many_flows(random, count, ports=PORTS):
    """Frames of data on a few flows, one to three beats."""
    sent, time, next_seq = [], START, {}
    for number in range(count):
        time += random.choice([0, 7, 100, 40_000])
        port = random.randrange(20)
        length = random.choice([0, 6, 60, 100])
        seq = next_seq.get(port, random.getrandbits(32))
        next_seq[port] = seq + length
        frame = segment(True, seq, 1, ACK | (PSH if number % 3 else 0), length, port=1000 + port, ip_id=number & 0xFFFF)
        sent.append((number % ports, time, frame, 0))
    return sent


def totals(found):
    return sum(r["client_packets"] + r["server_packets"] for r in of(found, Kind.CLOSE))


@cocotb.test()
@cocotb.parametrize(shares=[(0.0, 0.0), (0.7, 0.5), (0.9, 0.9)])
async def back_pressure(dut, shares):
    """A record side that stalls loses nothing while the queues of the ports take what comes."""
    random = stream.seeded()
    gap = stream.in_runs(shares[0], 60) if shares[0] else None
    stall = stream.in_runs(shares[1], 40) if shares[1] else None
    sent = many_flows(random, 300)
    found = await Measure(dut, sent, gap=gap, stall=stall).run(patience=100_000)
    ports = of(found, Kind.PORT)[-PORTS:]
    assert sum(r["tracked"] for r in ports) == totals(found) == len(sent)
    assert not any(r["dropped"] for r in ports)


@cocotb.test()
async def a_blocked_output_drops_and_counts(dut):
    """With no record taken for long, frames are lost to the engine, counted, and all that was counted is told."""
    random = stream.seeded()
    sent = many_flows(random, 1500, ports=1)
    clock = [0]

    def stall():
        clock[0] += 1
        return clock[0] < 5000

    measure = Measure(dut, sent, stall=stall)
    measure.most_under_way = len(sent)
    measure.horizons = lambda: setattr(dut.s_horizon, "value", (1 << 64 * PORTS) - 1)
    found = await measure.run(patience=60_000)
    (port,) = [r for r in of(found, Kind.PORT)[-PORTS:] if r["arg"] == 0]
    dut._log.info("%d of %d frames dropped", port["dropped"], len(sent))
    assert port["dropped"] > 300
    assert port["frames"] + port["dropped"] == len(sent)
    assert port["tracked"] == totals(found) == port["frames"]


@cocotb.test()
async def leaves_out_by_level(dut):
    """A blocked output: each word adds a job to the queue, and each kind is left out from its own eighth of it on."""
    kinds = ["packet", "rtt", "interval", "block", "event"]
    words, held = 230, 2  # jobs that the formatter has taken when the output is blocked
    # Within one second, so that no PORT comes between. Data that opens or closes the window, and its ACK in turn; later
    # data alone.
    start, step, sent, seq = START + 51 * MS, 4 * MS, [], 1
    for number in range(words):
        is_data = number % 2 == 0 or number > 97
        if is_data:
            data_sent = seq // 100
            frame = segment(True, seq, 1, ACK | PSH, 100, window=1000 * (data_sent % 2), ip_id=number + 1)
            seq += 100
        else:
            frame = segment(False, 1, seq, ACK, window=60_000, ip_id=number + 1)
        sent.append((0, start + number * step, frame, 0))
    clock, first, word = [0], {}, [0]

    class Levels(Measure):
        async def reset(self):
            await super().reset()
            dut.shed_enable.value = 1

    def gap():
        clock[0] += 1
        return clock[0] % 49 != 0  # asked by each port

    def stall():
        word[0] += bool(dut.looked_up.value and int(dut.looked_up_kind.value) == 0)
        for bit, kind in enumerate(kinds):
            if int(dut.left_out.value) >> bit & 1:
                first.setdefault(kind, word[0])
        return word[0] < words

    await Levels(dut, sent, digests=1, gap=gap, stall=stall).run(patience=30_000)
    eighth = 256 // 8
    # An INTERVAL ends only with the next 10 ms; the ACK whose RTT is left out makes no job.
    assert 0 <= first.pop("interval") - (held + 4 * eighth + 1) <= 2
    assert first == {
        "packet": held + 2 * eighth,
        "rtt": held + 3 * eighth,
        "block": held + 5 * eighth + 1,
        "event": held + 6 * eighth + 1,
    }


@cocotb.test()
@cocotb.parametrize(vlan_in_key=[0, 1])
async def tags_that_differ_by_direction(dut, vlan_in_key):
    """Each direction has its own VLAN id: one flow if the ids are left out of the key, else two."""
    tag = {port: frames.struct.pack(">HH", frames.VLAN, 10 + port) for port in range(2)}
    sent = [(port, time, data[:12] + tag[port] + data[12:], wire) for port, time, data, wire in connection()]
    found = await Measure(dut, sent, vlan_in_key=vlan_in_key).run()
    opened = of(found, Kind.OPEN)
    assert [r["vlans"] for r in opened] == ([10, 11] if vlan_in_key else [10])
    assert sorted(r["client_packets"] + r["server_packets"] for r in of(found, Kind.CLOSE)) == (
        [4, 6] if vlan_in_key else [10]
    )


@cocotb.test()
async def an_endless_frame(dut):
    """More bytes than any counter of a frame holds: the largest length, and the next frame as if nothing had been."""
    endless = segment(True, 1, 1, ACK, 100) + bytes((1 << 20) + 1000)
    sent = [(0, START, endless, 0), (0, START + MS, segment(True, 1, 1, ACK, 100), 0)]
    found = await Measure(dut, sent).run(patience=30_000)
    (port,), (port_more,) = of(found, Kind.PORT), of(found, Kind.PORT, True)
    some(port, frames=2, tracked=1, bytes=(1 << 20) - 1 + len(sent[1][2]))
    assert port_more["untracked"][Untracked.OVERSIZE] == 1


@cocotb.test()
async def begins_anew_after_reset(dut):
    first = await Measure(dut, connection()).run()
    again = await Measure(dut, connection()).run()
    assert [r["kind"] for r in first] == [r["kind"] for r in again]
    assert len(of(again, Kind.OPEN)) == 1


def dirt(random):
    """Data of more flows than there are contexts, mostly in order."""
    sent, time, next_seq = [], START - SECOND, {}
    for number in range(400):
        time += random.choice([0, 7, 40_000])
        port, flags = random.randrange(100), random.choice([ACK | PSH] * 8 + [SYN, ACK | FIN])
        seq, length = next_seq.get(port, random.getrandbits(32)), random.choice([60, 100, 1400])
        next_seq[port] = seq + length + random.choice([0, 0, 0, 1000]) & 0xFFFFFFFF
        sent.append((number % PORTS, time, segment(True, seq, 1, flags, length, port=1000 + port, ip_id=number), 0))
    return sent


@cocotb.test()
async def a_reset_in_traffic_leaves_nothing(dut):
    """Whatever queues, table and contexts hold when it comes, and at any beat of a frame: what is measured after it is what
    was measured before, but for the generations."""
    random = stream.seeded()

    class Shedding(Measure):
        flip = 0

        async def reset(self):
            await super().reset()
            dut.trigger_packets.value, dut.trigger_ns.value = 5, 10 * SECOND
            dut.shed_enable.value, dut.table_flip.value = 1, self.flip

    sent = connection() + [(port, time + 2 * SECOND, *rest) for port, time, *rest in many_flows(random, 120)]

    async def measured():
        found = await Shedding(dut, sent, visits=[(START + 400 * MS, 0)], digests=2).run(patience=60_000)
        return [{**record, "flow": record["flow"] & ~(0xFFFFFF << 24)} for record in found]

    first = await measured()
    for stalls in (0.0, 0.9, 1.0, 1.0, 1.0):
        before = Shedding(dut, dirt(random), digests=2, stall=stream.randomly(stalls))
        before.flip = random.getrandbits(1)
        before.most_under_way = 1000
        before.horizons = lambda: setattr(dut.s_horizon, "value", (1 << 64 * PORTS) - 1)
        await before.run(clocks=random.randrange(100, 1600))
        for now, then in zip(await measured(), first, strict=True):
            some(now, **then)
