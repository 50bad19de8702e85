"""weir_ports: counters of the ports and what counts as changed, against a model of sections 1 and 6."""

import cocotb
import stream
from cocotb.triggers import FallingEdge, ReadOnly
from structs import pack, unpack

PORTS = stream.config()["Ports"]
PACKET, VISIT, PORT, END = range(4)
UNTRACKED = 3
REASONS = 10
PACKAGE = "weir_tracker_pkg"


def empty():
    names = ("frames", "bytes", "tracked", "clamped", "cut", "dropped", "options_skipped")
    return dict.fromkeys(names, 0) | {"untracked": [0] * REASONS}


class Model:
    def __init__(self):
        self.counters = [empty() for _ in range(PORTS)]
        self.reported = [empty() for _ in range(PORTS)]

    def report(self, port, dropped):
        return {**self.counters[port], "untracked": [*self.counters[port]["untracked"]], "dropped": dropped[port]}

    def word(self, word, lookup, dropped):
        meta = word["meta"]
        port = meta["port"]
        if word["kind"] == PORT:
            self.reported[port] = self.report(port, dropped)
        if word["kind"] != PACKET:
            return
        c = self.counters[port]
        c["frames"] += 1
        c["bytes"] += meta["wire_length"]
        c["clamped"] += word["clamped"]
        c["cut"] += meta["cut"]
        c["options_skipped"] += meta["class_"] != UNTRACKED and meta["options"]["incomplete"]
        if lookup["tracked"]:
            c["tracked"] += 1
        else:
            c["untracked"][lookup["reason"]] += 1


def random_word(random):
    kind = random.choices([PACKET, VISIT, PORT, END], [80, 8, 10, 2])[0]
    meta = {
        "port": random.randrange(PORTS),
        "class_": random.randrange(4),
        "wire_length": random.choice([0, 60, 1518, (1 << 20) - 1]),
        "cut": random.getrandbits(1),
        "options": {"incomplete": random.getrandbits(1)},
        "payload": random.getrandbits(20),
    }
    word = {"kind": kind, "clamped": random.getrandbits(1), "meta": meta, "index": random.getrandbits(18)}
    return word, {"tracked": random.getrandbits(1), "reason": random.randrange(REASONS)}


@cocotb.test()
@cocotb.parametrize(gaps=[0.0, 0.5])
async def counters(dut, gaps):
    """Random words: `report` before each, `changed` only when something differs from the last WORD_PORT."""
    random = stream.seeded()
    dut.valid.value = 0
    dut.dropped.value = 0
    await stream.start(dut)
    model, dropped = Model(), [0] * PORTS
    seen = {True: 0, False: 0}
    for _ in range(8000):
        await FallingEdge(dut.clk)
        if random.random() < 0.02:
            dropped[random.randrange(PORTS)] += random.choice([1, 1000])
        word, lookup = random_word(random)
        is_port_again = random.random() < 0.3
        if is_port_again:
            word["kind"] = PORT
        valid = random.random() >= gaps
        dut.dropped.value = sum(count << 32 * port for port, count in enumerate(dropped))
        dut.word.value, dut.lookup.value = pack("word_t", word), pack("lookup_t", lookup)
        dut.valid.value = int(valid)
        await ReadOnly()
        port = word["meta"]["port"]
        report = model.report(port, dropped)
        assert unpack("port_counters_t", int(dut.report.value), PACKAGE) == report
        changed = report != model.reported[port]
        assert bool(dut.changed.value) == changed
        seen[changed] += valid and word["kind"] == PORT
        if valid:
            model.word(word, lookup, dropped)
    assert min(seen.values()) > 100, seen
    for counted in model.counters:
        assert counted["frames"] == counted["tracked"] + sum(counted["untracked"])


@cocotb.test()
async def reset_begins_anew(dut):
    random = stream.seeded()
    dut.valid.value = 0
    dut.dropped.value = 0
    await stream.start(dut)
    for _ in range(50):
        await FallingEdge(dut.clk)
        word, lookup = random_word(random)
        dut.word.value, dut.lookup.value, dut.valid.value = pack("word_t", word), pack("lookup_t", lookup), 1
    await FallingEdge(dut.clk)
    dut.valid.value = 0
    dut.rst.value = 1
    await FallingEdge(dut.clk)
    dut.rst.value = 0
    for port in range(PORTS):
        await FallingEdge(dut.clk)
        dut.word.value = pack("word_t", {"kind": PORT, "meta": {"port": port}})
        await ReadOnly()
        assert int(dut.report.value) == 0 and not dut.changed.value
