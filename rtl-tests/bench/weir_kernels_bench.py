"""weir_kernels: the HLS kernels in a simulated system give what the exact reference has for the demo capture.

Vectors are those of hw/hls/vectors, which C simulation uses too. Each word is taken apart and goes in as the tracker
would have it, so that the packing of hw/rtl/weir_kernel_pkg.sv is held to hw/hls/include/weir_word.h.
"""

import struct
from pathlib import Path

import cocotb
import stream
import structs
from cocotb.triggers import RisingEdge

VECTORS = Path(__file__).resolve().parents[2] / "hw" / "hls" / "vectors" / "demo.pcap"
INTERVALS = 8
WALK = 4096
PACKET, END = 0, 3
KINDS = {11: "burst", 12: "histogram", 13: "top"}


def words():
    """(fields, number) of each word, by the table that the file carries."""
    data = VECTORS.with_suffix(".pcap.words").read_bytes()
    (count,), at = struct.unpack_from("<I", data), 4
    table = []
    for _ in range(count):
        low, width, size = struct.unpack_from("<HHB", data, at)
        table.append((data[at + 5 : at + 5 + size].decode(), low, width))
        at += 5 + size
    for place in range(at, len(data), 64):
        number = int.from_bytes(data[place : place + 64], "little")
        yield {name: number >> low & ((1 << width) - 1) for name, low, width in table}, number


def expected():
    """Settings, and for each interval its lines by what they are."""
    settings, intervals = {}, []
    for line in VECTORS.with_suffix(".pcap.expected").read_text().splitlines():
        what, *values = line.split()
        if what == "interval":
            intervals.append({"start": int(values[0]), "port": [], "histogram": [], "talker": []})
        elif not intervals:
            settings[what] = [int(value, 16 if what == "seed" else 10) for value in values]
        elif what == "samples":
            intervals[-1][what] = list(map(int, values))
        else:
            intervals[-1][what].append(values)
    return settings, intervals


def from_tracker(fields):
    """What the tracker would have of a word."""
    client_is_low = not fields["from_server"]
    addresses = [fields[f"{name}_high"] << 64 | fields[f"{name}_low"] for name in ("source", "destination")]
    ports = [0, fields["server_port"]] if client_is_low else [fields["server_port"], 0]
    low, high = ({"addr": address, "port": port} for address, port in zip(addresses, ports, strict=True))
    meta = {
        "timestamp": fields["timestamp"],
        "port": fields["port"],
        "class_": fields["class_"],
        "key": {"low": low, "high": high},
        "from_low": 1,
        "wire_length": fields["wire_length"],
        "flags": fields["flags"],
    }
    word = {
        "kind": fields["kind"],
        "fine_start": fields["fine_start"],
        "fine_digit": fields["fine_digit"],
        "meta": meta,
    }
    lookup = {name: fields[name] for name in ("tracked", "index")}
    facts = {name: fields[name] for name in ("rtt_valid", "rtt_of_server", "rtt")}
    facts |= {"client_is_low": int(client_is_low), "opened": fields["fresh"], "new_bytes": fields["new_data"]}
    return word, lookup, facts


async def clocks(dut, results, count, stall=None):
    for _ in range(count):
        ready = stall is None or not stall()
        dut.m_ready.value = int(ready)
        await RisingEdge(dut.clk)
        if dut.m_valid.value and ready:
            results.append((int(dut.m_data.value).to_bytes(64, "little"), bool(dut.m_last.value)))


async def play(dut, stall=None, most=None):
    """Some intervals of the capture; the results, and what they must be. Or `most` words, and then nothing."""
    settings, intervals = expected()
    dut.s_valid.value = 0
    dut.m_ready.value = 0
    dut.thresholds.value = sum(value << 32 * i for i, value in enumerate(settings["thresholds"]))
    dut.services.value = sum(value << 16 * i for i, value in enumerate(settings["services"]))
    dut.seed.value = sum(value << 64 * i for i, value in enumerate(settings["seed"]))
    await stream.start(dut)
    results = []
    await clocks(dut, results, WALK + 20, stall)
    start = None
    for place, (fields, number) in enumerate(words()):
        if place == most:
            return results, []
        interval = fields["fine_start"] - fields["fine_digit"] * 10_000_000
        if interval == intervals[INTERVALS]["start"]:
            break
        word, lookup, facts = from_tracker(fields)
        dut.s_word.value = structs.pack("word_t", word)
        dut.s_lookup.value = structs.pack("lookup_t", lookup)
        dut.s_facts.value = structs.pack("kernel_facts_t", facts, "weir_kernel_pkg")
        dut.s_valid.value = 1
        await clocks(dut, results, 1, stall)
        dut.s_valid.value = 0
        await clocks(dut, results, 1, stall)
        assert int(dut.packed_word.value) == number, f"{int(dut.packed_word.value):#x} is not {number:#x}"
        if interval != start:  # the walk of the interval before
            await clocks(dut, results, 2 * WALK if stall else WALK + 20, stall)
            start = interval
    dut.s_word.value = structs.pack("word_t", {"kind": END, "meta": {"timestamp": start}})
    dut.s_valid.value = 1
    await clocks(dut, results, 1, stall)
    dut.s_valid.value = 0
    await clocks(dut, results, 2 * WALK, stall)
    assert int(dut.dropped.value) == 0
    return results, intervals[:INTERVALS]


def check(results, intervals):
    wanted = {name: [] for name in KINDS.values()}
    for interval in intervals:
        for port, *figures in interval["port"]:
            wanted["burst"].append((interval["start"], int(port), *map(int, figures)))
        for metric, service, *counts in interval["histogram"]:
            for bucket, count in (map(int, pair.split(":")) for pair in counts):
                wanted["histogram"].append((interval["start"], int(metric), int(service), bucket, count))
        wanted["histogram"].append((interval["start"], *interval["samples"]))
        for weight in range(3):
            for address, *sent in interval["talker"]:
                if int(sent[weight]):
                    wanted["top"].append((interval["start"], weight, address, *map(int, sent)))
        totals = [sum(int(talker[1 + w]) for talker in interval["talker"]) for w in range(3)]
        wanted["top"].append((interval["start"], *totals))
    got = {name: [] for name in KINDS.values()}
    for data, last in results:
        kind, flags, _, arg = data[:4]
        (time,) = struct.unpack_from("<Q", data, 16)
        name = KINDS[kind]
        if name == "burst":
            total, frames, peak, peak_bin, edges, bursts, longest, above, _, lost = struct.unpack_from(
                "<QIIHHIIIII", data, 24
            )
            got[name].append((time, arg, total, frames, peak, peak_bin, edges, bursts, longest, above))
            assert lost == 0 and last == (arg == 1)
            continue
        assert last == bool(flags & 1)
        if name == "histogram" and not last:
            *counts, _, first = struct.unpack_from("<8IHH", data, 24)
            got[name] += [(time, arg >> 4, arg & 15, first + i, count) for i, count in enumerate(counts) if count]
        elif name == "histogram":
            *samples, lost = struct.unpack_from("<4I", data, 24)
            got[name].append((time, *samples))
            assert lost == 0
        elif not last:
            got[name].append((time, arg, data[24:40].hex(), *struct.unpack_from("<3I", data, 40)))
        else:
            got[name].append((time, *struct.unpack_from("<3Q", data, 24)))
            assert struct.unpack_from("<I", data, 48) == (0,)
    for name in KINDS.values():
        assert sorted(got[name]) == sorted(wanted[name]), name


@cocotb.test()
async def results_are_those_of_the_exact_reference(dut):
    check(*await play(dut))


@cocotb.test()
async def results_may_wait(dut):
    check(*await play(dut, stream.randomly(0.5)))


@cocotb.test()
async def nothing_of_before_a_reset(dut):
    """A reset within an interval, and within a walk: the first results after it have nothing of what was counted before."""
    for most in (100, 300):
        await play(dut, most=most)
        check(*await play(dut))


@cocotb.test()
async def words_without_room_are_counted(dut):
    """Right after reset the memories are cleared: what does not fit in the queues is dropped and counted."""
    dut.s_valid.value = 0
    dut.m_ready.value = 1
    await stream.start(dut)
    dut.s_word.value = structs.pack("word_t", {"kind": PACKET})
    dut.s_lookup.value = 0
    dut.s_facts.value = 0
    dut.s_valid.value = 1
    count = 100
    await clocks(dut, [], count)
    dut.s_valid.value = 0
    await clocks(dut, [], WALK)
    dropped = int(dut.dropped.value)
    by_kernel = [dropped >> 32 * k & 0xFFFFFFFF for k in range(3)]
    assert by_kernel[0] == 0 and all(count - 24 <= number < count - 16 for number in by_kernel[1:]), by_kernel
