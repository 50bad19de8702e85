"""weir_facts: ends of the segment, SACK hash, how a packet opens a flow, against the specification in Python."""

import cocotb
import stream
from cocotb.triggers import Timer
from structs import pack, unpack

FIN, SYN, RST, PSH, ACK, URG, ECE, CWR = (1 << bit for bit in range(8))
PACKET, VISIT, PORT, END = range(4)
TCP, OTHER, ICMP, UNTRACKED = range(4)
HOW_SYN, HOW_SYN_ACK, HOW_PORT, HOW_FIRST = 1, 2, 3, 4
STATE_MID, STATE_SYN, STATE_SYN_ACK, STATE_OTHER = 0, 4, 5, 6
PACKAGE = "weir_tracker_pkg"
M32 = (1 << 32) - 1


def after(a, b):
    return 1 <= (a - b) & M32 < 1 << 31


def rotl(value, by):
    return (value << by | value >> (32 - by)) & M32


def expected(word, lookup, shed):
    meta, options = word["meta"], word["meta"]["options"]
    flags, payload, seq, ack = meta["flags"], meta["payload"], meta["seq"], meta["ack"]
    syn, fin, rst, is_ack = (bool(flags & bit) for bit in (SYN, FIN, RST, ACK))
    tracked = lookup["tracked"]
    packet = word["kind"] == PACKET and tracked
    tcp = packet and meta["class_"] == TCP
    end = (seq + payload + syn + fin) & M32
    occupies = payload != 0 or syn or fin

    sack, count = options["sack"], options["sack_count"]
    left, right = sack[0]["left"], sack[0]["right"]
    h = left ^ left >> 12 ^ left >> 24 ^ rotl(right, 5) ^ right >> 7 ^ right >> 19 ^ ack ^ ack >> 12
    inside = count >= 2 and not after(sack[1]["left"], left) and not after(right, sack[1]["right"])

    low, high = meta["key"]["low"]["port"], meta["key"]["high"]["port"]
    source, destination = (low, high) if meta["from_low"] else (high, low)
    if tcp and syn and not rst:
        how, state, client = (HOW_SYN_ACK, STATE_SYN_ACK, 0) if is_ack else (HOW_SYN, STATE_SYN, 1)
    else:
        state = STATE_MID if tcp else STATE_OTHER
        by_port = meta["key"]["protocol"] in (6, 17) and source != destination
        how, client = (HOW_PORT, source > destination) if by_port else (HOW_FIRST, 1)
    scale = options["scale"]
    return {
        "tcp": tcp,
        "other": packet and meta["class_"] == OTHER,
        "icmp": packet and meta["class_"] == ICMP,
        "visit": word["kind"] == VISIT and tracked and not lookup["expired"],
        "ended": word["kind"] == END and tracked,
        "fresh": tracked and lookup["fresh"],
        "expired": tracked and lookup["expired"],
        "is_syn": syn and not rst,
        "is_rst": rst,
        "is_ack": is_ack and not rst,
        "fin": fin,
        "push": bool(flags & PSH),
        "has_payload": payload != 0,
        "occupies": occupies,
        "has_id": meta["ip_id"] != 0 and not rst,
        "ecn": bool(flags & ECE) and bool(flags & CWR) != is_ack,
        "segment_end": end,
        "payload_end": (seq + payload) & M32,
        "idle_before": (meta["timestamp"] - 10**9) & M32,
        "next_value": end if occupies else seq,
        "seq_1": (seq + 1) & M32,
        "block_length": min(payload, 0x3FFF),
        "scale": 15 if scale == 255 else min(scale, 14),
        "sack_hash": ((h & 0xFFF) or 1) if count else 0,
        "dsack": not after(right, ack) or inside,
        "open_how": how,
        "open_state": state,
        "sender_is_client": client,
        "shed": shed,
    }


def random_word(random):
    base = random.getrandbits(32)

    def near():
        return (base + random.choice([0, 0, 1, -1, 1460, -1460, 1 << 30, 1 << 31, random.getrandbits(32)])) & M32

    sack = [{"left": near(), "right": near()} for _ in range(4)]
    port = random.getrandbits(16)
    meta = {
        "timestamp": random.getrandbits(64),
        "class_": random.randrange(4),
        "key": {
            "low": {"port": port},
            "high": {"port": random.choice([port, random.getrandbits(16), port + 1 & 0xFFFF])},
            "protocol": random.choice([6, 17, 1, 132]),
        },
        "from_low": random.getrandbits(1),
        "payload": random.choice([0, 1, 1460, 0x3FFF, 0x4000, random.getrandbits(20)]),
        "seq": near(),
        "ack": near(),
        "flags": random.getrandbits(8),
        "ip_id": random.choice([0, 1, random.getrandbits(16)]),
        "options": {
            "scale": random.choice([0, 7, 14, 15, 254, 255, random.getrandbits(8)]),
            "sack_count": random.randrange(5),
            "sack": sack,
        },
    }
    word = {"kind": random.choice([PACKET, PACKET, PACKET, VISIT, PORT, END]), "meta": meta}
    lookup = {"tracked": random.random() < 0.8, "fresh": random.getrandbits(1), "expired": random.getrandbits(1)}
    return word, lookup


@cocotb.test()
async def random_words(dut):
    random = stream.seeded()
    hashes = 0
    for _ in range(8000):
        word, lookup = random_word(random)
        shed = {name: random.getrandbits(1) for name in ("event_", "block", "interval", "rtt", "packet")}
        dut.word.value, dut.lookup.value = pack("word_t", word), pack("lookup_t", lookup)
        dut.shed.value = pack("shed_t", shed, PACKAGE)
        await Timer(1, "ns")
        facts = unpack("facts_t", int(dut.facts.value), PACKAGE)
        want = expected(word, lookup, shed)
        assert set(want) == set(facts), "fields that the specification here does not name"
        bad = {name: (facts[name], want[name]) for name in want if facts[name] != want[name]}
        assert not bad, f"(hardware, specification): {bad}\n{word} {lookup}"
        hashes += bool(want["sack_hash"])
    assert hashes > 4000


@cocotb.test()
async def a_hash_of_zero_is_one(dut):
    """0 stands for no SACK block."""
    for left in (0, 0x1001000, 0xFFF):
        for count in (0, 1):
            options = {"sack_count": count, "sack": [{"left": left, "right": 0}] + [{}] * 3}
            meta = {"class_": TCP, "options": options}
            dut.word.value = pack("word_t", {"kind": PACKET, "meta": meta})
            dut.lookup.value = pack("lookup_t", {"tracked": 1})
            dut.shed.value = 0
            await Timer(1, "ns")
            h = (left ^ left >> 12 ^ left >> 24) & 0xFFF
            assert unpack("facts_t", int(dut.facts.value), PACKAGE)["sack_hash"] == ((h or 1) if count else 0)
