"""weir_block: where an open block ends by its limit, which no stream of packets reaches in a test's time."""

import cocotb
import stream
from cocotb.triggers import Timer
from structs import pack, unpack, width
from weir_records import BlockEnd

PACKAGE = "weir_tracker_pkg"
M32, M40 = (1 << 32) - 1, (1 << 40) - 1
SIDE = "block_side_t"
MOST_PACKETS, MOST_BYTES, TIME_LIMIT = 65_535, 1 << 31, 1 << 38


async def step(dut, random, before, new_bytes, **flags):
    """(out, the sender's block afterwards) of a segment: of one packet more, 100 bytes more, and a nanosecond more."""
    sender = random.randrange(2)
    now = random.getrandbits(40)
    start = random.getrandbits(32)
    packets, size, age = before
    block = {
        "open": 1,
        "packets": packets,
        "seq": start,
        "first": (now - 1 - age) & M40,
        "last": (now - 5) & M32,
        "max": 100,
    }
    order = {
        "sender": sender,
        "new_bytes": new_bytes,
        "closes": new_bytes,
        "new_start": (start + size) & M32,
        "sender_next": (start + size + 100 * new_bytes) & M32,
    }
    facts = {"tcp": 1, "has_payload": 1, "occupies": 1, "block_length": 100, **flags}
    dut.word.value = pack("word_t", {"meta": {"timestamp": now, "payload": 100}})
    dut.facts.value = pack("facts_t", facts, PACKAGE)
    dut.order.value = pack("order_out_t", order, PACKAGE)
    dut.window.value = dut.what.value = 0
    bits = width(SIDE, PACKAGE)
    dut.current.value = pack(SIDE, block, PACKAGE) << bits * sender
    await Timer(1, "ns")
    after = unpack(SIDE, int(dut.next_state.value) >> bits * sender, PACKAGE)
    return unpack("block_out_t", int(dut.out.value), PACKAGE), after


# (packets, bytes, age) of a block before its last segment but one that leaves it open, and which of them counts.
LAST_OPEN = {
    "packets": (MOST_PACKETS - 2, 5000, 10**6),
    "bytes": (77, MOST_BYTES - 101, 10**6),
    "age": (77, 5000, TIME_LIMIT - 2),
}


@cocotb.test()
@cocotb.parametrize(of=list(LAST_OPEN))
async def limit(dut, of):
    """One less leaves the block open, one more ends it: by the limit, or by PSH or FIN, which come first."""
    random = stream.seeded()
    for _ in range(50):
        before = LAST_OPEN[of]
        out, after = await step(dut, random, before, 1)
        assert not out["own"] and after["open"]
        assert after["packets"] == before[0] + 1
        at_limit = [value + (of == name) for name, value in zip(LAST_OPEN, before, strict=True)]
        for flags, cause in (
            ({}, BlockEnd.LIMIT),
            ({"push": 1}, BlockEnd.PUSH),
            ({"push": 1, "fin": 1}, BlockEnd.FIN),
            ({"push": 1, "shed": {"block": 1}}, BlockEnd.PUSH),
        ):
            out, after = await step(dut, random, at_limit, 1, **flags)
            assert out["own"] and out["own_cause"] == cause and not after["open"], flags
            assert after["packets"] == at_limit[0] + 1
            assert not out["merged"]


@cocotb.test()
async def limit_without_new_bytes(dut):
    """What brings nothing new ends the block by its age and its bytes, too, and is none of its packets."""
    random = stream.seeded()
    for before, ends in (
        ((MOST_PACKETS - 1, 5000, 10**6), False),
        ((MOST_PACKETS, 5000, 10**6), True),
        ((77, MOST_BYTES - 1, 10**6), False),
        ((77, MOST_BYTES, 10**6), True),
        ((77, 5000, TIME_LIMIT - 2), False),
        ((77, 5000, TIME_LIMIT - 1), True),
    ):
        out, after = await step(dut, random, before, 0)
        assert out["own"] == ends and after["open"] != ends, before
        assert not ends or out["own_cause"] == BlockEnd.LIMIT
        assert after["packets"] == before[0]
