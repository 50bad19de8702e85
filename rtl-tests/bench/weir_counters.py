"""weir_counters: counts that stay at their largest value, and those that wrap, from states near it."""

import cocotb
import stream
from cocotb.triggers import Timer
from structs import pack, unpack, width
from weir_records import What

PACKAGE = "weir_tracker_pkg"
SIDE = "counters_side_t"
WRAP = {"packets": 32, "payload": 36}
STAY = {"dup_acks": 16, "zero_windows": 13, "small_windows": 15, "copies": 12}


def near(random, bits):
    return random.choice([(1 << bits) - 1, (1 << bits) - 2, (1 << bits) - 1 - random.randrange(9000), 0]) % (1 << bits)


@cocotb.test()
async def ends_of_the_counts(dut):
    random = stream.seeded()
    bits = width(SIDE, PACKAGE)
    stayed = dict.fromkeys(STAY, 0)
    for _ in range(4000):
        sides = [{name: near(random, size) for name, size in (WRAP | STAY).items()} for _ in range(2)]
        sender, payload = random.randrange(2), random.choice([0, 1, random.getrandbits(20)])
        tcp, opened = random.random() < 0.8, random.random() < 0.1
        met = {name: random.getrandbits(1) for name in STAY}
        dut.word.value = pack("word_t", {"meta": {"payload": payload}})
        dut.facts.value = pack("facts_t", {"tcp": tcp, "other": not tcp}, PACKAGE)
        dut.order.value = pack("order_out_t", {"sender": sender, "opened": opened}, PACKAGE)
        dut.window.value = pack(
            "window_out_t",
            {"repeated": met["dup_acks"], "zero": met["zero_windows"], "tiny": met["small_windows"]},
            PACKAGE,
        )
        dut.what.value = What.COPY if met["copies"] else 0
        dut.current.value = pack(SIDE, sides[1], PACKAGE) << bits | pack(SIDE, sides[0], PACKAGE)
        await Timer(1, "ns")
        if opened:
            sides = [dict.fromkeys(WRAP | STAY, 0) for _ in range(2)]
        mine = sides[sender]
        mine["packets"] = (mine["packets"] + 1) % (1 << 32)
        mine["payload"] = (mine["payload"] + payload) % (1 << 36)
        for name, size in STAY.items():
            if tcp and met[name]:
                stayed[name] += mine[name] == (1 << size) - 1
                mine[name] = min(mine[name] + 1, (1 << size) - 1)
        after = int(dut.next_state.value)
        assert [unpack(SIDE, after >> bits * i, PACKAGE) for i in range(2)] == sides
    assert min(stayed.values()) > 100
