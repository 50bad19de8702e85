"""weir_formatter: the records of random jobs, byte for byte and in order, against section 6 in Python."""

import cocotb
import stream
import weir_records as records
from cocotb.triggers import RisingEdge
from structs import pack, unpack, width
from weir_records import BlockEnd, Flag, IdStep, Kind, RttHow, SetupBit, SetupEnd, What

PACKAGE = "weir_tracker_pkg"
EPOCH, LANE = 0xBEEF, 5
# Slots of job_t.records.
SETUP_CLOSED, BLOCK, SETUP_VISIT, INTERVAL_CLOSED, CLOSE, OPEN, SETUP = 0, 2, 4, 6, 8, 10, 12
EVENT, EVENT_MORE, RTT, TURN, OWN, INTERVAL, PACKET, PACKET_MORE, PORT, SLOTS = 14, 15, 16, 17, 18, 19, 21, 22, 23, 25
NO_SCALE = 15
M32, M64 = (1 << 32) - 1, (1 << 64) - 1


class Model:
    """The records of one job."""

    def __init__(self, job):
        self.job = job
        self.word, self.meta, self.order = job["word"], job["word"]["meta"], job["order"]
        self.now, self.old, self.updated = self.meta["timestamp"], job["old"], job["updated"]
        self.s = self.order["sender"]

    def back(self, low, bits):
        """The full time of which these are the low bits, not later than now."""
        return (self.now - (self.now - low) % (1 << bits)) & M64

    @staticmethod
    def sides(context):
        """Sides of the order loop, client first."""
        order = context["order"]
        return order["side"] if order["client_is_low"] else order["side"][::-1]

    def record(self, kind, context, flags=0, arg=0, **fields):
        flow = EPOCH << 48 | context["order"]["generation"] << 24 | self.job["lookup"]["index"] if context else 0
        continuation = bool(flags & Flag.CONTINUATION)
        fields |= {"flags": int(flags), "arg": int(arg), "flow": flow, "time": self.now}
        return kind, continuation, fields | {"version_lane": records.VERSION << 4 | LANE}

    def all(self):
        mask = self.job["records"]
        return [self.slot(i) for i in range(SLOTS) if mask >> i & 1]

    def slot(self, i):
        order, job, s, old, updated = self.order, self.job, self.s, self.old, self.updated
        visit, reset = job["facts"]["visit"], job["block"]["reset"]
        before, after = order["flight_before"], order["flight_after"]
        if i == SETUP_CLOSED:
            return self.setup(order["close_setup"], 0, 0)
        if i == SETUP_CLOSED + 1:
            return self.setup_more(order["close_setup"])
        if i in (BLOCK, BLOCK + 1):
            return self.block(old, i - BLOCK, before[i - BLOCK], BlockEnd.IDLE if visit else BlockEnd.CLOSE, 0)
        if i == SETUP_VISIT:
            return self.setup(SetupEnd.TIMEOUT, 0, 0)
        if i == SETUP_VISIT + 1:
            return self.setup_more(SetupEnd.TIMEOUT)
        if i in (INTERVAL_CLOSED, INTERVAL_CLOSED + 1):
            return self.interval(i - INTERVAL_CLOSED, 3)
        if i in (INTERVAL, INTERVAL + 1):
            return self.interval(i - INTERVAL, 2 if visit else 1)
        if i == SETUP:
            end = 0 if order["setup_cause"] == SetupEnd.ONE_SIDED else self.now
            return self.setup(order["setup_cause"], end, self.meta["window"])
        if i == SETUP + 1:
            return self.setup_more(order["setup_cause"])
        if i == TURN and not reset:
            return self.block(updated, 1 - s, after[1 - s], BlockEnd.TURN, 0)
        if i in (TURN, OWN) and reset:
            return self.block(updated, i - TURN, after[i - TURN], BlockEnd.CLOSE, 0)
        if i == OWN:
            return self.own_block()
        simple = {
            CLOSE: self.close,
            CLOSE + 1: self.close_more,
            OPEN: self.open,
            OPEN + 1: self.open_more,
            EVENT: self.event,
            EVENT_MORE: self.event_more,
            RTT: self.rtt,
            PACKET: self.packet,
            PACKET_MORE: self.packet_more,
            PORT: self.port,
            PORT + 1: self.port_more,
        }
        return simple[i]()

    def direction(self, side, flags=0):
        return flags | (Flag.SERVER_TO_CLIENT if side else 0)

    def block(self, context, side, flight, cause, ttl):
        block, sides = context["block"][side], self.sides(context)
        was = self.old["block"][side]
        return self.record(
            Kind.BLOCK,
            context,
            self.direction(side, Flag.MERGED if was["merged"] and was["open"] else 0),
            cause,
            first=self.back(block["first"], 40),
            last=self.back(block["last"], 32),
            seq=block["seq"],
            bytes=(sides[side]["next"] - block["seq"]) & M32,
            ack=sides[side]["ack"],
            flight=flight,
            packets=block["packets"],
            max_segment=block["max"],
            window=context["window"][1 - side]["window"],
            ttl=ttl,
            known=sides[side]["has_ack"] | sides[1 - side]["has_ack"] << 1,
        )

    def own_block(self):
        s, order = self.s, self.order
        kind, continuation, fields = self.block(
            self.updated, s, order["flight_after"][s], self.job["block"]["own_cause"], self.meta["ttl"]
        )
        if order["opened"]:  # `old` is what another flow left
            fields["flags"] = int(self.direction(s))
        if order["syn_block"] or order["own_block"]:
            syn = order["syn_block"]
            fields |= {
                "flags": int(self.direction(s)),
                "first": self.now,
                "last": self.now,
                "seq": self.job["facts"]["seq_1"] if syn else order["new_start"],
                "packets": 1,
                "max_segment": self.job["facts"]["block_length"],
            }
        start = order["new_start"] if order["own_block"] else self.updated["block"][s]["seq"]
        counted = (self.sides(self.updated)[s]["next"] - start - order["fin_counted"]) & M32
        return kind, continuation, fields | {"bytes": self.meta["payload"] if order["syn_block"] else counted}

    def setup(self, cause, end, end_window):
        setup, options = self.old["order"]["setup"], self.old["options"]
        syns, syn_acks = setup["syns"], setup["syn_acks"]
        context = self.updated if cause == SetupEnd.RESET else self.old
        given = {
            SetupBit.SYN: syns,
            SetupBit.SYN_ACK: syn_acks,
            SetupBit.ACK: cause == SetupEnd.DONE,
            SetupBit.CLIENT_SACK: options[0]["sack_ok"],
            SetupBit.SERVER_SACK: options[1]["sack_ok"],
            SetupBit.CLIENT_TIMESTAMPS: options[0]["timestamps"],
            SetupBit.SERVER_TIMESTAMPS: options[1]["timestamps"],
            SetupBit.CLIENT_ECN: options[0]["ecn"],
            SetupBit.SERVER_ECN: options[1]["ecn"],
            SetupBit.CLIENT_OPTIONS_CUT: options[0]["cut"],
            SetupBit.SERVER_OPTIONS_CUT: options[1]["cut"],
            SetupBit.RST_BY_SERVER: self.sides(context)[1]["rst"],
        }
        return self.record(
            Kind.SETUP,
            self.old,
            Flag.MORE,
            cause,
            first_syn=self.back(setup["first_syn"], 40) if syns else 0,
            last_syn=self.back(setup["last_syn"], 40) if syns else 0,
            syn_ack=self.back(setup["syn_ack"], 40) if syn_acks else 0,
            end=end,
            syn_count=syns,
            syn_ack_count=syn_acks,
            bits=sum(int(bit) for bit, is_set in given.items() if is_set),
            syn_payload=setup["syn_payload"],
            end_window=end_window,
        )

    def setup_more(self, cause):
        setup, options, window = self.old["order"]["setup"], self.old["options"], self.old["window"]
        scales = [255 if side["scale"] == NO_SCALE else side["scale"] for side in options]
        known = setup["syns"] or setup["syn_acks"]
        return self.record(
            Kind.SETUP,
            self.old,
            Flag.CONTINUATION,
            cause,
            client_isn=(setup["client_start"] - 1) & M32 if known else 0,
            server_isn=(setup["server_start"] - 1) & M32 if setup["syn_acks"] else 0,
            client_mss=options[0]["mss"],
            server_mss=options[1]["mss"],
            client_window=window[0]["window"],
            server_window=window[1]["window"],
            client_scale=scales[0],
            server_scale=scales[1],
        )

    def interval(self, side, how):
        interval, word = self.old["interval"], self.word
        mine, counters = interval["side"][side], self.old["counters"][side]
        tens = (word["fine_number"] - interval["number"]) & 0xFFFF
        return self.record(
            Kind.INTERVAL,
            self.old,
            self.direction(side),
            how,
            start=(word["fine_start"] - tens * 10_000_000) & M64,
            packets=counters["packets"],
            payload=counters["payload"],
            fine=interval["fine"],
            ip_id=self.sides(self.old)[side]["ip_id"],
            **{name: mine[name] for name in ("flight_max", "window_min", "window_max")},
            **{name: mine[name] for name in ("rtt_min", "rtt_max", "rtt_count")},
        )

    def close(self):
        sides, counters = self.sides(self.old), self.old["counters"]
        return self.record(
            Kind.CLOSE,
            self.old,
            Flag.MORE | (Flag.MERGED if self.old["interval"]["folded"] else 0),
            self.order["close_cause"],
            last=self.back(self.job["lookup"]["last_seen"], 48),
            client_packets=counters[0]["packets"],
            server_packets=counters[1]["packets"],
            client_payload=counters[0]["payload"],
            server_payload=counters[1]["payload"],
            client_next=sides[0]["next"],
            server_next=sides[1]["next"],
        )

    def close_more(self):
        names = ("dup_acks", "zero_windows", "small_windows", "copies")
        fields = {
            f"{role}_{name}": self.old["counters"][i][name]
            for i, role in enumerate(("client", "server"))
            for name in names
        }
        sides = self.sides(self.old)
        bits = [sides[i][name] for name in ("fin", "rst", "fin_acked", "has_next") for i in range(2)]
        fields["bits"] = sum(bit << i for i, bit in enumerate(bits))
        return self.record(Kind.CLOSE, self.old, Flag.CONTINUATION, self.order["close_cause"], **fields)

    def ends(self):
        """(client, server) of the key."""
        key = self.meta["key"]
        return (key["low"], key["high"]) if self.updated["order"]["client_is_low"] else (key["high"], key["low"])

    def open_flags(self):
        ipv6 = self.meta["key"]["low"]["addr"] >> 32 != 0xFFFF
        return self.direction(self.s, Flag.IPV6 if ipv6 else 0)

    def open(self):
        client, server = self.ends()
        return self.record(
            Kind.OPEN,
            self.updated,
            self.open_flags() | Flag.MORE,
            self.job["facts"]["open_how"],
            client_addr=client["addr"].to_bytes(16, "big"),
            server_addr=server["addr"].to_bytes(16, "big"),
            client_port=client["port"],
            server_port=server["port"],
            protocol=self.meta["key"]["protocol"],
            vlans=self.meta["key"]["vlans"],
        )

    def open_more(self):
        meta = self.meta
        source, destination = (meta[f"{which}_mac"].to_bytes(6, "big") for which in ("source", "destination"))
        return self.record(
            Kind.OPEN,
            self.updated,
            self.open_flags() | Flag.CONTINUATION,
            self.job["facts"]["open_how"],
            client_mac=destination if self.s else source,
            server_mac=source if self.s else destination,
            first_ttl=meta["ttl"],
            first_port=meta["port"],
            first_tcp_flags=meta["flags"],
            first_seq=meta["seq"],
            first_ack=meta["ack"],
            first_length=meta["payload"],
            first_wire=meta["wire_length"],
            first_sent_by_server=self.s,
        )

    def event(self):
        job, meta, s, what = self.job, self.meta, self.s, self.job["what"]
        opened, icmp = self.order["opened"], job["facts"]["icmp"]
        sides, block = self.sides(self.old), self.old["block"][s]
        of_receiver = what & What.ACK_UNSEEN and not what & (What.GAP | What.BELOW | What.WILD)
        fields = {"since_data": M32}
        if not opened:
            fields["expected"] = sides[1 - s if of_receiver else s]["next"]
            fields["acked"] = sides[1 - s]["ack"]
        if not icmp:
            own = What.GAP | What.BELOW | What.WILD | What.IDS_SKIPPED
            stamp = "tsecr" if what & What.ACKS_REPEAT and not what & own else "tsval"
            fields |= {"ack": meta["ack"], "tsval": meta["options"][stamp]}
            fields |= {"window": meta["window"], "tcp_flags": meta["flags"]}
            if not opened and not block["idle"]:
                fields["since_data"] = ((self.now - block["last"]) & M32) >> 6
            if not opened and not self.order["pending"]:
                fields["dup_acks"] = self.old["window"][1 - s]["chain"]
            if not opened and meta["ip_id"] and sides[s]["ip_id"]:
                step = (meta["ip_id"] - sides[s]["ip_id"]) & 0xFFFF
                fields["id_step"] = IdStep.OVERTAKEN if step >= 0xFF00 else step if step <= 253 else IdStep.FAR
        flags = (Flag.MORE if job["records"] >> EVENT_MORE & 1 else 0) | (
            Flag.MERGED if job["interval"]["folded"] else 0
        )
        return self.record(
            Kind.EVENT,
            self.updated,
            self.direction(s, flags),
            what=what,
            seq=meta["seq"],
            length=meta["payload"],
            ip_id=meta["ip_id"],
            ttl=meta["ttl"],
            **fields,
        )

    def sack(self):
        blocks = enumerate(self.meta["options"]["sack"])
        return {f"{edge}{i}": block[edge] for i, block in blocks for edge in ("left", "right")}

    def event_more(self):
        options = self.meta["options"]
        return self.record(
            Kind.EVENT,
            self.updated,
            self.direction(self.s, Flag.CONTINUATION),
            **self.sack(),
            **{name: options[name] for name in ("sack_count", "scale", "mss", "sack_permitted")},
            timestamps=options["has_timestamps"],
        )

    def rtt(self):
        trip = self.job["round_trip"]
        return self.record(
            Kind.RTT,
            self.updated,
            self.direction(trip["side"]),
            trip["how"],
            rtt=trip["value"],
            seq_end=trip["seq_end"],
            ack=self.meta["ack"],
            flight=self.order["flight_after"][trip["side"] ^ (trip["how"] == RttHow.ECHO)],
            window=self.meta["window"],
            tcp_flags=self.meta["flags"],
        )

    def packet(self):
        meta, options = self.meta, self.meta["options"]
        bits = options["has_timestamps"] | bool(options["sack_count"]) << 1 | options["incomplete"] << 2
        return self.record(
            Kind.PACKET,
            self.updated,
            self.direction(self.s, Flag.MORE if options["sack_count"] else 0),
            **{name: meta[name] for name in ("number", "seq", "ack", "window", "ip_id", "ttl", "tos", "port")},
            length=meta["payload"],
            tsval=options["tsval"],
            tsecr=options["tsecr"],
            wire=min(meta["wire_length"], 0xFFFF),
            tcp_flags=meta["flags"],
            option_bits=bits,
        )

    def packet_more(self):
        flags = self.direction(self.s, Flag.CONTINUATION)
        count = self.meta["options"]["sack_count"]
        return self.record(Kind.PACKET, self.updated, flags, **self.sack(), sack_count=count)

    def port(self):
        port = {name: value for name, value in self.job["port"].items() if name != "untracked"}
        return self.record(Kind.PORT, None, Flag.MORE, self.meta["port"], **port)

    def port_more(self):
        untracked = self.job["port"]["untracked"]
        return self.record(Kind.PORT, None, Flag.CONTINUATION, self.meta["port"], untracked=untracked)


def random_job(random, mask):
    """Any bits, but for fields that have few values."""
    job = unpack("job_t", random.getrandbits(width("job_t", PACKAGE)), PACKAGE)
    job["records"] = mask
    order = job["order"]
    order["close_setup"], order["setup_cause"] = (random.choice([*SetupEnd]) for _ in range(2))
    order["close_cause"] = random.choice([*records.CloseCause])
    job["round_trip"]["how"] = random.choice([*RttHow])
    job["facts"]["open_how"] = random.choice([*records.ClientHow])
    job["block"]["own_cause"] = random.choice([*BlockEnd])
    if random.random() < 0.5:
        job["word"]["meta"]["key"]["low"]["addr"] = 0xFFFF << 32 | random.getrandbits(32)
    for context in (job["old"], job["updated"]):
        setup = context["order"]["setup"]
        setup["syns"], setup["syn_acks"] = (random.choice([0, 1, 63]) for _ in range(2))
        for side in context["options"]:
            side["scale"] = random.choice([0, 7, 14, NO_SCALE])
    if random.random() < 0.4:
        job["what"] &= ~int(What.GAP | What.BELOW | What.WILD)
    if random.random() < 0.3:
        job["word"]["meta"]["options"]["sack_count"] = 0
    if random.random() < 0.5:
        job["word"]["meta"]["wire_length"] &= 0xFFF
    if random.random() < 0.5:
        # The ends of what `id_step` tells.
        step = random.choice([0, 1, 253, 254, 255, 256, -1, -256, -257])
        newest = job["word"]["meta"]["ip_id"] - step & 0xFFFF
        for side in job["old"]["order"]["side"]:
            side["ip_id"] = newest
    return job


async def run(dut, masks, gap=None, stall=None):
    """Jobs of these masks; clocks that it took and records."""
    random = stream.seeded()
    expected = []

    def jobs():
        for mask in masks:
            job = random_job(random, mask)
            for kind, continuation, fields in Model(job).all():
                fields["sequence"] = len(expected)
                expected.append((kind, records.build(kind, continuation, **fields)))
            yield {"job": pack("job_t", job, PACKAGE)}

    dut.epoch.value, dut.lane.value = EPOCH, LANE
    source, sink = stream.Source(dut, "s", jobs(), gap), stream.Sink(dut, "m", ("record",), stall)
    await stream.start(dut)
    clocks = quiet = 0
    while quiet < 60:
        await RisingEdge(dut.clk)
        clocks += 1
        record = sink.step()
        went = source.step()
        if record or went or not source.done:
            quiet = 0
        elif sink.is_ready:  # a stall may be of any length
            quiet += 1
        if record is None:
            continue
        kind, want = expected[sink.received - 1]
        got = record[0].to_bytes(64, "little")
        if got != want:
            one, other = records.parse(got), records.parse(want)
            names = [f"{n}: {one.get(n)}, expected {value}" for n, value in other.items() if one.get(n) != value]
            raise AssertionError(f"record {sink.received - 1}, {Kind(kind).name}: {names}")
    assert sink.received == len(expected)
    return clocks - 60, len(expected)


@cocotb.test()
async def each_record_alone(dut):
    await run(dut, [1 << slot for slot in range(SLOTS) for _ in range(30)])


@cocotb.test()
async def all_records_at_once(dut):
    """One record per clock: a job's last beside the first of the next."""
    clocks, count = await run(dut, [(1 << SLOTS) - 1] * 60)
    dut._log.info("%d records in %d clocks", count, clocks)
    assert clocks < count + 8


@cocotb.test()
async def jobs_of_one_record_follow_each_other(dut):
    clocks, count = await run(dut, [1 << EVENT] * 300)
    dut._log.info("%d records in %d clocks", count, clocks)
    assert clocks < count + 8


@cocotb.test()
@cocotb.parametrize(shares=[(0.0, 0.0), (0.5, 0.0), (0.0, 0.5), (0.3, 0.8)])
async def any_mask(dut, shares):
    """Random subsets, also of 14 records, under gaps and back-pressure."""
    random = stream.seeded()
    masks = [sum(1 << slot for slot in random.sample(range(SLOTS), random.choice([1, 2, 14]))) for _ in range(150)]
    masks += [random.getrandbits(SLOTS) or 1 for _ in range(50)]
    await run(dut, masks, stream.randomly(shares[0]), stream.in_runs(shares[1], 5) if shares[1] else None)
