#!/usr/bin/env python3
"""Weir beside tshark and tcptrace, segment by segment: which of them calls what a retransmission, reordered, spurious.

    compare_peers.py [--weir bin/weir] [CAPTURE or folder ...]        (default: WEIR_CORPUS)

For each capture and stream a line where the counts differ; then every pair of opinions about one segment, with how often it
occurs, in how many captures, and one packet to look at. docs/src/differences.md explains the pairs.
"""

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
from collections import Counter, defaultdict
from datetime import UTC, datetime
from pathlib import Path

ROOT = Path(__file__).resolve().parents[4]
CORPUS = Path(os.environ.get("WEIR_CORPUS", ROOT / ".." / "shared" / "corpus"))
# In the order of tshark's own precedence.
FLAGS = ("keep_alive", "spurious_retransmission", "fast_retransmission", "out_of_order", "retransmission")
PROBE = "zero_window_probe"
FIELDS = ["frame.number", "frame.time_epoch", "tcp.stream", "tcp.seq_raw", "tcp.len", "ip.src", "ipv6.src"]
FIELDS += ["ip.dst", "ipv6.dst", "tcp.srcport", "tcp.dstport"]
SECONDS = re.compile(r"(.*T\d\d:\d\d:\d\d)(?:\.(\d+))?Z")


def nanoseconds(text):
    whole, fraction = SECONDS.fullmatch(text).groups()
    second = datetime.fromisoformat(whole).replace(tzinfo=UTC).timestamp()
    return int(second) * 10**9 + int((fraction or "0").ljust(9, "0")[:9])


def tshark(path):
    """(time in us, source port, sequence number) -> (frame, stream, opinion or None), of TCP segments."""
    command = ["tshark", "-n", "-r", path, "-Y", "tcp && !icmp && !icmpv6", "-T", "fields", "-E", "occurrence=l"]
    names = FIELDS + [f"tcp.analysis.{flag}" for flag in (*FLAGS, PROBE)]
    for name in names:
        command += ["-e", name]
    run = subprocess.run(command, capture_output=True, text=True, timeout=300)
    segments = {}
    for line in run.stdout.splitlines():
        row = line.split("\t")
        if len(row) < len(names) or not row[3]:
            continue
        second, _, fraction = row[1].partition(".")
        time = int(second) * 10**6 + int(fraction.ljust(9, "0")[:6])
        said = [flag for flag, value in zip((*FLAGS, PROBE), row[len(FIELDS) :], strict=True) if value]
        segments[time, int(row[9]), int(row[3])] = (int(row[0]), int(row[2]), said[0] if said else None)
    return segments


def weir(binary, path):
    """The same key -> what Weir says of the segment; and the answer."""
    run = subprocess.run([binary, "analyze", path, "--segments", "-f", "json"], capture_output=True, timeout=300)
    answer = json.loads(run.stdout) if run.stdout else {"connections": []}
    ports = {c["id"]: (c["client"]["port"], c["server"]["port"]) for c in answer["connections"]}
    said = {}
    for s in answer.get("segments", []):
        if s["class"] in ("MISSED", "LOST"):
            continue
        port = ports[s["connectionId"]][1 if s.get("fromServer") else 0]
        opinion = s["class"]
        if opinion == "RETRANSMISSION":
            spurious = s["place"] in ("NOWHERE", "ACK_BEFORE_TAP", "ACK_BEHIND_TAP", "CAPTURE")
            opinion = "SPURIOUS" if spurious else f"{s['cause']} {s['place']}"
        said[nanoseconds(s["time"]) // 1000, port, int(s["seq"])] = (opinion, " ".join(s.get("evidence", [])))
    return said, answer


def tcptrace(path):
    """Retransmitted and out-of-order packets over all connections."""
    if not shutil.which("tcptrace"):
        return None
    run = subprocess.run(["tcptrace", "-n", "-l", "-r", path], capture_output=True, text=True, timeout=300)
    total = Counter()
    for name, key in (("rexmt data pkts", "retransmitted"), ("outoforder pkts", "reordered")):
        for match in re.finditer(rf"{name}:\s+(\d+)\s+{name}:\s+(\d+)", run.stdout):
            total[key] += int(match[1]) + int(match[2])
    return total


def count(answer, *keys):
    directions = [c[d] for c in answer["connections"] for d in ("clientToServer", "serverToClient")]
    return sum(int(d.get(key, 0)) for d in directions for key in keys)


def compare(binary, path, pairs):
    theirs = tshark(path)
    ours, answer = weir(binary, path)
    streams = defaultdict(Counter)
    for key in theirs.keys() | ours.keys():
        frame, stream, said = theirs.get(key, (0, None, None))
        opinion, evidence = ours.get(key, ("-", ""))
        if said is None and opinion == "-":
            continue
        pair = (opinion, said or "-")
        streams[stream][pair] += 1
        entry = pairs.setdefault(pair, {"count": 0, "captures": set(), "example": None})
        entry["count"] += 1
        entry["captures"].add(path.name)
        example = (path.name, frame, evidence)
        entry["example"] = min(entry["example"] or example, example)
    peer = tcptrace(path)
    third = f"; tcptrace {peer['retransmitted']} + {peer['reordered']}" if peer is not None else ""
    said = Counter(flag for _, _, flag in theirs.values() if flag)
    again = sum(said[f] for f in ("retransmission", "fast_retransmission", "spurious_retransmission"))
    print(
        f"{path.name}: retransmitted + reordered: Weir {count(answer, 'retransmittedPackets')} + "
        f"{count(answer, 'outOfOrder')}, tshark {again} + {said['out_of_order']}{third}"
    )
    for stream, found in sorted(streams.items(), key=lambda item: (item[0] is None, item[0])):
        odd = {f"{a} / {b}": n for (a, b), n in sorted(found.items()) if not same(a, b)}
        if odd:
            print(f"  stream {stream}: {odd}")


def same(ours, theirs):
    """Whether two opinions mean the same."""
    meaning = {"keep_alive": "KEEP_ALIVE", "out_of_order": "REORDERED", "spurious_retransmission": "SPURIOUS"}
    if theirs in ("retransmission", "fast_retransmission"):
        return ours.split()[0] in ("FAST", "TIMEOUT", "TAIL_PROBE", "UNKNOWN")
    return ours == meaning.get(theirs, "WINDOW_PROBE" if theirs == PROBE else None)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--weir", default=str(ROOT / "bin" / "weir"))
    parser.add_argument("captures", nargs="*", type=Path, default=[CORPUS])
    arguments = parser.parse_args()
    if not shutil.which("tshark"):
        sys.exit("tshark is not installed: apt-get install tshark")
    paths = []
    for path in arguments.captures:
        paths += sorted(path.iterdir()) if path.is_dir() else [path]
    paths = [p for p in paths if p.suffix in (".pcap", ".pcapng", ".gz")]
    if not paths:
        print(f"skipped: no captures in {', '.join(map(str, arguments.captures))} (set WEIR_CORPUS)")
        return
    pairs = {}
    for path in paths:
        compare(arguments.weir, path, pairs)
    print(f"\n{'Weir':34} {'tshark':26} {'segments':>8} {'captures':>8}  one of them")
    for (ours, theirs), entry in sorted(pairs.items(), key=lambda item: -item[1]["count"]):
        name, frame, evidence = entry["example"]
        mark = " " if same(ours, theirs) else "*"
        print(
            f"{ours:34} {theirs:26} {entry['count']:8} {len(entry['captures']):8} {mark} {name} frame {frame} {evidence}"
        )
    agreed = sum(entry["count"] for pair, entry in pairs.items() if same(*pair))
    print(f"{agreed} of {sum(entry['count'] for entry in pairs.values())} segments: the same opinion")


if __name__ == "__main__":
    main()
