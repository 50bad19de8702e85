"""weir_tracker: directed words and the records they make: handshake, data, FIN, RST, reuse, timeouts, what is left out."""

import cocotb
import stream
import weir_records as records
from cocotb.triggers import FallingEdge
from structs import pack
from weir_records import BlockEnd, ClientHow, CloseCause, Flag, Kind, RttHow, SetupEnd, What

PACKAGE = "weir_tracker_pkg"
FIN, SYN, RST, PSH, ACK = 1, 2, 4, 8, 16
PACKET, VISIT, PORT, END = range(4)
US, MS, SECOND = 10**3, 10**6, 10**9
FINE = 10 * MS
START = 1_700_000_000 * SECOND
KEY = {"low": {"addr": 0xFFFF0A000001, "port": 40000}, "high": {"addr": 0xFFFF0A000002, "port": 443}, "protocol": 6}
SHEDS = ("event_", "block", "interval", "rtt", "packet")


class Words:
    """Words on one context; the client is the low end."""

    def __init__(self, index=3):
        self.index, self.items, self.time, self.used = index, [], START, False
        self.ids = [100, 200]

    def word(self, kind, lookup, shed=(), **meta):
        fine = self.time // FINE
        word = {"kind": kind, "index": self.index, "fine_start": fine * FINE, "fine_number": fine & 0xFFFF}
        word |= {"fine_digit": fine % 10, "meta": {"timestamp": self.time, **meta}}
        lookup = {"index": self.index, "last_seen": self.time & (1 << 48) - 1, **lookup}
        shed = dict.fromkeys(shed, 1)
        self.items.append((pack("word_t", word), pack("lookup_t", lookup), pack("shed_t", shed, PACKAGE)))

    def packet(
        self, after, client, seq, ack, flags, payload=0, shed=(), expired=0, id_step=1, tsval=None, tsecr=None, **meta
    ):
        self.time += after
        self.ids[client] = self.ids[client] + id_step & 0xFFFF
        fresh = not self.used or expired
        self.used = True
        options = {"scale": 255, "has_timestamps": tsval is not None or tsecr is not None}
        options |= {
            "tsval": self.time & 0xFFFFFFFF if tsval is None else tsval,
            "tsecr": len(self.items) if tsecr is None else tsecr,
        }
        meta = {"class_": 0, "key": KEY, "from_low": client, "seq": seq, "ack": ack, "flags": flags, **meta}
        meta |= {"payload": payload, "window": 60000, "options": options, "ip_id": self.ids[client]}
        self.word(PACKET, {"tracked": 1, "fresh": fresh, "expired": expired}, shed, **meta)

    def visit(self, after, expired=0):
        self.time += after
        self.word(VISIT, {"tracked": 1, "expired": expired})

    def end(self):
        self.word(END, {"tracked": 1})

    def handshake(self):
        self.packet(1 * MS, 1, 100, 0, SYN)
        self.packet(5 * MS, 0, 900, 101, SYN | ACK)
        self.packet(1 * MS, 1, 101, 901, ACK)


async def run(dut, words, gap):
    """Records that the words make, `gap` empty clocks between two; and how many were left out by kind."""
    dut.s_valid.value = 0
    dut.digest.value = 0
    await stream.start(dut)
    found, left_out = [], dict.fromkeys(SHEDS, 0)
    items = [item for word in words.items for item in [word, *[None] * gap]] + [None] * 60
    for item in items:
        await FallingEdge(dut.clk)
        if dut.m_valid.value:
            found.append(records.parse(int(dut.m_record.value).to_bytes(64, "little")))
        left = int(dut.left_out.value)
        for name in SHEDS:
            left_out[name] += bool(left & pack("shed_t", {name: 1}, PACKAGE))
        dut.s_valid.value = int(item is not None)
        if item is not None:
            dut.s_word.value, dut.s_lookup.value, dut.shed.value = item
    return found, left_out


def told(found):
    """(kind, arg) of records that are no continuation, EVENT with its conditions that make it one."""
    beside = What.PUSH | What.IDLE_BEFORE | What.EXPECTED_UNKNOWN | What.ACKED_UNKNOWN | What.ACKS_MORE
    return [
        (Kind(r["kind"]), What(r["what"] & ~beside) if r["kind"] == Kind.EVENT else r["arg"])
        for r in found
        if not r["flags"] & Flag.CONTINUATION
    ]


GAPS = [0, 1, 20]


@cocotb.test()
@cocotb.parametrize(gap=GAPS)
async def connection(dut, gap):
    words = Words()
    words.handshake()
    words.packet(1 * MS, 1, 101, 901, ACK | PSH, 50)
    words.packet(2 * MS, 0, 901, 151, ACK, 1000)
    words.packet(0, 0, 1901, 151, ACK | PSH, 500)
    words.packet(1 * MS, 1, 151, 2401, ACK | FIN)
    words.packet(1 * MS, 0, 2401, 152, ACK | FIN)
    words.packet(1 * MS, 1, 152, 2402, ACK)
    words.end()
    found, _ = await run(dut, words, gap)
    assert told(found) == [
        (Kind.OPEN, ClientHow.SYN),
        (Kind.RTT, RttHow.HANDSHAKE),
        (Kind.SETUP, SetupEnd.DONE),
        (Kind.RTT, RttHow.HANDSHAKE),
        (Kind.BLOCK, BlockEnd.PUSH),
        (Kind.RTT, RttHow.DATA),
        (Kind.BLOCK, BlockEnd.PUSH),
        (Kind.EVENT, What.FIN),
        (Kind.RTT, RttHow.DATA),
        (Kind.EVENT, What.FIN),
        (Kind.INTERVAL, 3),
        (Kind.INTERVAL, 3),
        (Kind.CLOSE, CloseCause.FIN),
    ]
    close = next(r for r in found if r["kind"] == Kind.CLOSE)
    assert (close["client_packets"], close["server_packets"]) == (5, 4)
    assert (close["client_payload"], close["server_payload"]) == (50, 1500)


@cocotb.test()
@cocotb.parametrize(gap=GAPS)
async def a_fin_behind_its_ack(dut, gap):
    words = Words()
    words.handshake()
    words.packet(1 * MS, 1, 101, 901, ACK | FIN)
    words.packet(1 * MS, 1, 102, 902, ACK)
    words.packet(1 * US, 0, 901, 102, ACK | FIN)
    words.end()
    found, _ = await run(dut, words, gap)
    assert next(r for r in found if r["kind"] == Kind.CLOSE)["arg"] == CloseCause.FIN


@cocotb.test()
@cocotb.parametrize(gap=GAPS)
async def reset_in_the_handshake(dut, gap):
    words = Words()
    words.packet(1 * MS, 1, 100, 0, SYN)
    words.packet(1 * MS, 0, 0, 101, RST | ACK)
    words.visit(268 * MS)
    words.visit(4 * SECOND, expired=1)
    found, _ = await run(dut, words, gap)
    assert told(found) == [
        (Kind.OPEN, ClientHow.SYN),
        (Kind.SETUP, SetupEnd.RESET),
        (Kind.EVENT, What.RST),
        (Kind.INTERVAL, 2),
        (Kind.INTERVAL, 2),
        (Kind.CLOSE, CloseCause.RST),
    ]


@cocotb.test()
@cocotb.parametrize(gap=GAPS)
async def reset_of_open_blocks_and_reuse(dut, gap):
    """A RST ends the block of the server; a new SYN opens the next flow in the same context."""
    words = Words()
    words.handshake()
    words.packet(1 * US, 0, 901, 101, ACK, 1000)
    words.packet(1 * US, 1, 101, 1901, RST | ACK)
    words.packet(1 * US, 1, 70000, 0, SYN)
    words.visit(90 * SECOND, expired=1)
    found, _ = await run(dut, words, gap)
    assert told(found) == [
        (Kind.OPEN, ClientHow.SYN),
        (Kind.RTT, RttHow.HANDSHAKE),
        (Kind.SETUP, SetupEnd.DONE),
        (Kind.RTT, RttHow.HANDSHAKE),
        (Kind.EVENT, What.RST),
        (Kind.BLOCK, BlockEnd.CLOSE),
        (Kind.INTERVAL, 3),
        (Kind.INTERVAL, 3),
        (Kind.CLOSE, CloseCause.REUSE),
        (Kind.OPEN, ClientHow.SYN),
        (Kind.SETUP, SetupEnd.TIMEOUT),
        (Kind.INTERVAL, 3),
        (Kind.CLOSE, CloseCause.HANDSHAKE),
    ]
    generations = [r["flow"] >> 24 & 0xFFFFFF for r in found if r["kind"] == Kind.OPEN]
    assert generations[-1] == generations[0] + 1


@cocotb.test()
@cocotb.parametrize(gap=GAPS)
@cocotb.parametrize(
    # Whether the ACK is timed: one of new data is, none that carries data or FIN, or acknowledges nothing new, or behind
    # which its sender had heard another.
    ack=[
        (951, 0, ACK, 7, True),
        (951, 0, ACK, 8, False),
        (951, 10, ACK, 7, False),
        (951, 0, ACK | FIN, 7, False),
        (901, 0, ACK, 7, False),
    ]
)
async def an_ack_is_timed_by_what_echoes_it(dut, gap, ack):
    acks, payload, flags, echoed, timed = ack
    words = Words()
    words.handshake()
    words.packet(1 * MS, 0, 901, 101, ACK, 50)
    words.packet(1 * MS, 1, 101, acks, flags, payload, tsval=7)
    words.packet(4 * MS, 0, 951, 101, ACK, 50, tsecr=6)
    words.packet(3 * MS, 0, 1001, 101, ACK, 50, tsecr=echoed)
    words.packet(1 * MS, 0, 1051, 101, ACK, 50, tsecr=7)
    found, _ = await run(dut, words, gap)
    echoes = [r for r in found if (r["kind"], r["arg"]) == (Kind.RTT, RttHow.ECHO)]
    assert [(r["rtt"], r["seq_end"], r["flight"]) for r in echoes] == [(7 * MS, 1051, 100)] * timed


@cocotb.test()
@cocotb.parametrize(gap=GAPS)
@cocotb.parametrize(
    # Which of three segments comes again, with an id so far from the newest, so long after the last; whether the first keeps its time.
    again=[
        (0, -2, 100_000, True),
        (0, -2, (1 << 20) - 2001, True),
        (0, -2, (1 << 20) - 2000, False),
        (1, -1, 10 * MS, True),
        (2, 0, 10 * MS, True),
        (0, 1, 1000, False),
        (1, 1, 1000, False),
        (1, -257, 1000, False),
    ]
)
async def what_was_overtaken_is_no_repeat(dut, gap, again):
    segment, id_step, after, kept = again
    words = Words()
    words.handshake()
    words.packet(1 * MS, 1, 101, 901, ACK, 50)
    words.packet(1000, 1, 151, 901, ACK, 50)
    words.packet(1000, 1, 201, 901, ACK, 50)
    words.packet(after, 1, 101 + 50 * segment, 901, ACK, 50, id_step=id_step)
    words.packet(20 * MS, 0, 901, 251, ACK)
    found, _ = await run(dut, words, gap)
    assert told(found).count((Kind.RTT, RttHow.DATA)) == kept


@cocotb.test()
@cocotb.parametrize(gap=GAPS)
async def records_left_out(dut, gap):
    """The state is that of all packets; what was left out shows as MERGED in what comes later."""
    words = Words()
    words.handshake()
    words.packet(1 * US, 1, 101, 901, ACK | PSH, 50, shed=["block"])
    words.packet(1 * US, 1, 251, 901, ACK | PSH, 50, shed=["event_"])
    words.packet(30 * MS, 0, 901, 301, ACK, 0, shed=["rtt"])
    words.packet(100 * MS, 0, 901, 301, ACK, 0, shed=["interval"])
    words.packet(1 * US, 1, 401, 901, ACK, 50)
    words.end()
    found, left_out = await run(dut, words, gap)
    assert left_out == {"event_": 1, "block": 1, "interval": 1, "rtt": 1, "packet": 0}
    blocks = [r for r in found if r["kind"] == Kind.BLOCK]
    assert [bool(r["flags"] & Flag.MERGED) for r in blocks] == [True, False]
    assert (blocks[0]["bytes"], blocks[0]["packets"]) == (200, 2)
    events = [r for r in found if r["kind"] == Kind.EVENT]
    assert len(events) == 1 and events[0]["what"] & What.GAP and events[0]["flags"] & Flag.MERGED
    close = next(r for r in found if r["kind"] == Kind.CLOSE)
    assert close["client_payload"] == 150 and not close["flags"] & Flag.MERGED


@cocotb.test()
@cocotb.parametrize(gap=[0, 1], client=[1, 0])
async def ids_that_were_skipped(dut, gap, client):
    """In sequence, with data or FIN, 2^20 ns after the data before: two to seventeen ids tell that packets are missing."""
    words = Words()
    words.ids = [65_519, 65_518]
    words.handshake()
    assert words.ids == [65_520, 65_520]
    seq, ack = (101, 901) if client else (901, 101)
    expected = []

    def packet(after, step, flags, payload, sign, off=0):
        nonlocal seq
        words.packet(after, client, seq + off, ack, flags, payload, id_step=step)
        seq += payload + off
        if sign:
            expected.append(step)

    pause = 1 << 20
    packet(1 * US, 2, ACK, 10, True)  # no data before
    packet(1 * MS, 2, ACK, 10, False)  # too soon
    packet(pause - 1, 2, ACK, 10, False)
    packet(pause, 2, ACK, 10, True)
    packet(pause, 17, ACK | PSH, 10, True)  # to 9
    packet(pause, 18, ACK, 10, False)
    packet(pause, 1, ACK, 10, False)
    packet(pause, 4, ACK, 0, False)
    packet(pause, -3, ACK, 0, False)  # overtaken
    packet(pause, 1, ACK, 0, False)  # overtaken, too
    packet(pause, 3, ACK, 10, False)
    packet(pause, 0x10000 - 33, ACK, 10, False)  # to 0
    packet(pause, 5, ACK, 10, False)
    packet(pause, 512 + 3, ACK, 10, False)
    packet(pause, 16, ACK, 10, True)
    packet(pause, 3, ACK, 10, False, off=1)  # a gap
    packet(pause, 3, ACK, 0, False)  # a pure ACK
    packet(1 * US, 3, ACK, 10, True)
    ids = [words.ids[1], words.ids[0]]
    # Idle: the time since is a little more than 2^32 ns, of which less than the pause is kept.
    words.visit(1500 * MS)
    packet((1 << 32) - 1500 * MS + 1 * US, 2, ACK, 10, True)
    idle = words.ids[client]
    packet(2 * MS, 3, ACK | FIN, 0, True)
    words.end()
    found, _ = await run(dut, words, gap)
    events = [r for r in found if r["kind"] == Kind.EVENT]
    assert [r["id_step"] for r in events if r["what"] & What.IDS_SKIPPED] == expected
    assert [r["id_step"] for r in events if not r["what"] & What.IDS_SKIPPED] == [3]  # of the gap
    assert [r["ip_id"] for r in found if r["kind"] == Kind.INTERVAL] == [*ids, idle, words.ids[client]]


@cocotb.test()
@cocotb.parametrize(gap=GAPS)
async def what_answers_a_repeat(dut, gap):
    """The first ACK that goes on after something came again echoes a TSval; the words' TSecr is their number."""
    words = Words()
    words.packet(1 * MS, 1, 100, 0, SYN)
    words.packet(1000 * MS, 1, 100, 0, SYN)
    words.packet(5 * MS, 0, 900, 101, SYN | ACK)  # 2
    words.packet(1000 * MS, 0, 900, 101, SYN | ACK)
    words.packet(1 * MS, 1, 101, 901, ACK)  # 4
    words.packet(1 * MS, 1, 101, 901, ACK, 10)
    words.packet(1 * MS, 1, 101, 901, ACK, 10)
    words.packet(1 * MS, 0, 901, 101, ACK)
    words.packet(1 * MS, 0, 901, 111, ACK)  # 8
    words.packet(1 * MS, 1, 111, 901, ACK, 10)
    words.packet(1 * MS, 0, 901, 121, ACK)
    words.packet(1 * MS, 1, 111, 901, ACK, 10)
    words.packet(1 * MS, 1, 111, 901, ACK, 10, id_step=0)  # a copy
    words.packet(1 * MS, 1, 121, 901, ACK | FIN)
    words.packet(1 * MS, 0, 901, 122, ACK, 10)  # 14
    words.packet(1 * MS, 1, 121, 901, ACK | FIN)
    words.packet(1 * MS, 1, 122, 911, ACK)
    words.end()
    found, _ = await run(dut, words, gap)
    events = [r for r in found if r["kind"] == Kind.EVENT and not r["flags"] & Flag.CONTINUATION]
    assert [r["tsval"] for r in events if r["what"] & What.ACKS_REPEAT] == [2, 4, 8, 14]


@cocotb.test()
@cocotb.parametrize(gap=[0, 1])
async def counts_that_saturate(dut, gap):
    """Duplicate ACKs in a row stop at 63, round trips of an interval at 255; the totals go on."""
    words = Words()
    words.handshake()
    words.packet(1 * US, 0, 901, 101, ACK, 1000)
    for _ in range(71):
        words.packet(1 * US, 1, 101, 901, ACK)
    words.packet(1 * US, 0, 5000, 101, ACK, 10)
    words.packet(1 * US, 1, 101, 5010, ACK)
    for number in range(300):
        words.packet(1 * US, 0, 5010 + number, 101, ACK, 1)
        words.packet(7 * US, 1, 101, 5011 + number, ACK)
    words.end()
    found, _ = await run(dut, words, gap)
    (gap_event,) = [r for r in found if r["kind"] == Kind.EVENT and r["what"] & What.GAP]
    assert gap_event["dup_acks"] == 63
    server = next(r for r in found if r["kind"] == Kind.INTERVAL and r["flags"] & Flag.SERVER_TO_CLIENT)
    assert server["rtt_count"] == 255
    assert (server["rtt_min"], server["rtt_max"]) == (6, 976)
    (more,) = [r for r in found if r["kind"] == Kind.CLOSE and r["flags"] & Flag.CONTINUATION]
    assert more["client_dup_acks"] == 71
