#!/usr/bin/env python3
"""Hold the measuring pipeline of the card against the software engine: the same records, byte for byte.

    rtl-tests/compare.py FILE... | FOLDER...      captures (pcap, pcapng, also gzip)
    rtl-tests/compare.py --hostile 1000000        captures made for it; --seeds 1-10 for several
    rtl-tests/compare.py --mix                    traffic mixes back to back: equal, and 1.00 packets per clock
    ... --stall 40 --bubbles 10                   clocks in a hundred without a record taken, without a beat sent
    ... --digests                                 with PACKET records
    ... --statistics                              with BURST, HISTOGRAM (equal) and TOP records (within the sketch's bound)
    ... --contexts 64                             a tiny table (a build of its own): who is not tracked is equal, too
    ... --shed                                    leave records out under --stall: OPEN, SETUP, CLOSE, PORT are equal

`weir-bench play` turns a capture into frames and scan visits, the Verilated pipeline plays them, and `weir records
--profile nic` says what must come out. The first difference is explained; the files stay in build/rtl/compare.
"""

import argparse
import itertools
import math
import os
import struct
import subprocess
import sys
import time
from pathlib import Path

import runner
import weir_records as records

HERE = Path(__file__).resolve().parent / "compare"
BUILD = runner.BUILD / "compare"
ENDINGS = (".pcap", ".pcapng", ".pcap.gz", ".pcapng.gz")
SIZE = records.RECORD_BYTES
# Kinds that are never left out (section 8 of the specification).
KEPT = {records.Kind.OPEN, records.Kind.SETUP, records.Kind.CLOSE, records.Kind.PORT}
BEFORE = 12  # records of the flow that are shown before a difference
MIXES = ["one", *(f"cycle:{n}" for n in range(2, 25)), "random:1000", "random:100000", "fresh"]


class Difference(Exception):
    """The records differ; the text explains where."""


def tools():
    """The software side: (weir, weir-bench)."""
    target = runner.host_programs("-p", "weir", "-p", "weir-bench")
    return Path(os.environ.get("WEIR_BIN") or target / "weir"), target / "weir-bench"


def build(ports, contexts, assertions):
    """The program that plays; built again only when a source changed."""
    runner.verilator_environment()
    name = f"ports{ports}-contexts{contexts}" + ("-assert" if assertions else "")
    folder = BUILD / name
    folder.mkdir(parents=True, exist_ok=True)
    buckets = 1 << 15 if contexts > 4096 else 1 << 10
    flags = ["-O3", "--x-assign", "fast", "--x-initial", "fast", "--quiet", "-Wno-fatal", "-Wno-lint", "-Wno-style"]
    flags += ["--assert" if assertions else "--no-assert", "-CFLAGS", f"-DWIRE_PORTS={ports}"]
    flags += [f"-GPorts={ports}", f"-GContexts={contexts}", f"-GBuckets={buckets}"]
    flags += ["-MAKEFLAGS", "OPT_FAST=-O2\\ -march=native OPT_GLOBAL=-O2"]
    design = runner.sources("weir_compare", [*runner.SOURCE_DIRS, HERE])
    sources = [*design, *runner.with_kernels(design), HERE / "player.cpp"]
    command = [*runner.PROGRAM, *flags, "--Mdir", folder, "--prefix", "Vtop"]
    command += ["--top-module", "weir_compare", *sources, "-o", "player"]
    with (folder / "build.log").open("w") as log:
        if subprocess.run(command, stdout=log, stderr=log).returncode:
            sys.exit(f"the pipeline does not build:\n{(folder / 'build.log').read_text()[-4000:]}")
    return folder / "player"


def run(command, **more):
    """Run a command that must succeed; what it printed to standard error."""
    result = subprocess.run(list(map(str, command)), stderr=subprocess.PIPE, text=True, **more)
    if result.returncode:
        raise Difference(f"{Path(command[0]).name} failed: {result.stderr.strip()[-2000:]}")
    return result.stderr.strip()


def show(number, data):
    fields = records.parse(data)
    kind = records.Kind(fields["kind"]).name
    more = " more" if fields["flags"] & records.Flag.CONTINUATION else ""
    side = "s>c" if fields["flags"] & records.Flag.SERVER_TO_CLIENT else "c>s"
    parts = [f"{number:>9} {fields['time']} {fields['flow']:#014x} {side} {kind}{more} arg {fields['arg']}"]
    for name, value in fields.items():
        if name in {h[0] for h in records.HEADER}:
            continue
        if name == "what":
            value = str(records.What(value))
        parts.append(f"{name}={value.hex() if isinstance(value, bytes) else value}")
    return " ".join(parts)


def packet_of(play, flow, time_):
    """The frames of the play list that a record of this flow and time can come from."""
    places = []
    with play.open("rb") as file:
        file.read(SIZE)
        while item := file.read(SIZE):
            what, port, flags, reason, index, _, now = struct.unpack_from("<BBBBIQQ", item)
            captured, number, _, place = struct.unpack_from("<IQQQ", item, 28)
            if what == 0:
                file.seek((captured + 63) // 64 * 64, 1)
                if now == time_ and (index == flow & 0xFFFFFF or flow == 0):
                    places.append(f"frame {place} of the file (port {port}, number {number})")
            elif what == 1 and now == time_:
                places.append(f"visit to context {index}")
            elif now > time_:
                break
    return places


def chunks(path, kept):
    """Records one after the other: all as they are, or those of the kinds in `kept` without what leaving out others
    changes, the sequence number and the mark MERGED."""
    with path.open("rb") as file:
        while block := file.read(SIZE * 4096):
            for i in range(0, len(block), SIZE):
                record = block[i : i + SIZE]
                if not kept:
                    yield record
                elif record[0] in kept:
                    yield record[:1] + bytes([record[1] & ~records.Flag.MERGED]) + record[2:4] + bytes(4) + record[8:]


def same_files(a, b):
    with a.open("rb") as left, b.open("rb") as right:
        while True:
            x, y = left.read(1 << 22), right.read(1 << 22)
            if x != y:
                return False
            if not x:
                return True


def compare(hardware, software, play, kept=None):
    """Number of records; raises Difference at the first one that is not equal."""
    if not kept and same_files(hardware, software):
        return software.stat().st_size // SIZE
    count, history = 0, {}
    ours, theirs = chunks(hardware, kept), chunks(software, kept)
    while True:
        got, want = next(ours, None), next(theirs, None)
        if got is None and want is None:
            return count
        if got != want:
            break
        flow = got[8:16]
        history.setdefault(flow, []).append((count, got))
        if len(history[flow]) > 2 * BEFORE:
            del history[flow][:BEFORE]
        count += 1
    text = [f"record {count} differs"]
    some = want or got
    fields = records.parse(some)
    text += ["caused by " + (", ".join(packet_of(play, fields["flow"], fields["time"])) or "no frame of that flow")]
    for record in dict.fromkeys(r for r in (got, want) if r):
        last = history.get(record[8:16], [])[-BEFORE:]
        text += [f"flow {records.parse(record)['flow']:#x} until then:"] + ["  " + show(n, r) for n, r in last]
    text += ["hardware: " + (show(count, got) if got else "no more records")]
    text += ["software: " + (show(count, want) if want else "no more records")]
    if got and want:
        a, b = records.parse(got), records.parse(want)
        names = [f"{n}: {a[n]} is not {b[n]}" for n in a if n in b and a[n] != b[n]]
        text += ["differs in " + ", ".join(names)]
    after = [next(theirs, None) for _ in range(3)]
    text += ["software goes on:"] + ["  " + show(count + 1 + i, r) for i, r in enumerate(after) if r]
    raise Difference("\n".join(text))


# Of statistics, and their settings.
LANE = 8
STATISTICS = {"--burst-bytes": "3000,2000", "--services": "80,443,53,22,8080,8000,5001"}
EPSILON, DELTA = math.e / 4096, math.exp(-4)
TOPS = 16  # destinations that are named for each weight
DUE_PACKETS = 32  # a destination with so many packets has its chance to enter the table


def by_kind(data):
    """{kind: records without their sequence number}."""
    kinds = {records.Kind.BURST: [], records.Kind.HISTOGRAM: [], records.Kind.TOP: []}
    for i in range(0, len(data), SIZE):
        record = data[i : i + SIZE]
        kinds[records.Kind(record[0])].append(record[:4] + bytes(4) + record[8:])
    return kinds


def tops(found):
    """{(time, weight): {address: figures}} and {time: totals} of TOP records."""
    named, totals = {}, {}
    for fields in map(records.parse, found):
        figures = [fields[name] for name in ("packets", "bytes", "syns")]
        if fields["flags"] & records.Flag.CONTINUATION:
            totals[fields["time"]] = (figures, fields["lost"])
        else:
            named.setdefault((fields["time"], fields["arg"]), {})[fields["address"]] = figures
    return named, totals


def compare_tops(hardware, software):
    """The card's estimates against the truth: docs/src/hls.md, talkers."""
    got, got_totals = tops(hardware)
    want, totals = tops(software)
    if got_totals != totals:
        raise Difference("the totals of TOP differ")
    compared = over = 0
    for place, true in want.items():
        time_, weight = place
        where = f"TOP of weight {weight} at {time_}"
        named, slack = got.get(place, {}), EPSILON * totals[time_][0][weight]
        if len(true) < TOPS and named.keys() != true.keys():
            raise Difference(f"{where}: {len(named)} destinations instead of all {len(true)}")
        if len(named) > TOPS or len(named) < len(true):
            raise Difference(f"{where}: {len(named)} destinations")
        least = min(figures[weight] for figures in true.values())
        for address, figures in true.items():
            due = figures[weight] > least + 2 * slack and figures[0] >= DUE_PACKETS
            if due and address not in named:
                raise Difference(f"{where}: {address.hex()} with {figures} is not named")
            for w, estimate in enumerate(named.get(address, [])):
                if estimate < figures[w]:
                    raise Difference(f"{where}: {address.hex()} has {estimate}, below the truth {figures[w]}")
                over += estimate > figures[w] + EPSILON * totals[time_][0][w]
                compared += 1
    if over > 3 + 2 * DELTA * compared:
        raise Difference(f"{over} of {compared} estimates of TOP are over their bound")
    return compared, over


def compare_statistics(hardware, software):
    """BURST and HISTOGRAM equal, TOP within bounds; what was compared."""
    got, want = by_kind(hardware), by_kind(software)
    for kind in (records.Kind.BURST, records.Kind.HISTOGRAM):
        for number, (a, b) in enumerate(itertools.zip_longest(got[kind], want[kind])):
            if a != b:
                text = [f"{kind.name} {number} differs"]
                text += [
                    f"{who}: {show(number, r) if r else 'no more'}" for who, r in (("hardware", a), ("software", b))
                ]
                raise Difference("\n".join(text))
    compared, over = compare_tops(got[records.Kind.TOP], want[records.Kind.TOP])
    sizes = [len(want[kind]) for kind in (records.Kind.BURST, records.Kind.HISTOGRAM)]
    return f"{sizes[0]} BURST, {sizes[1]} HISTOGRAM, {compared} estimates of TOP ({over} over the bound)"


def split_lanes(path, lane):
    """Take the records of a lane out of a file; their bytes."""
    data = path.read_bytes()
    parts = [data[i : i + SIZE] for i in range(0, len(data), SIZE)]
    path.write_bytes(b"".join(part for part in parts if part[2] & 0xF != lane))
    return b"".join(part for part in parts if part[2] & 0xF == lane)


class Comparison:
    """What is the same for all captures of one call."""

    def __init__(self, args):
        self.args = args
        self.weir, self.bench = tools()
        self.players = {}
        self.records = self.frames = 0

    def player(self, ports):
        ports = self.args.ports or ports
        if ports not in self.players:
            self.players[ports] = build(ports, self.args.contexts, self.args.assertions)
        return self.players[ports]

    def capture(self, path, keep=False):
        """Compare one capture; a line about it."""
        args = self.args
        folder = BUILD / "run"
        folder.mkdir(parents=True, exist_ok=True)
        stem = folder / path.name
        play, got, want, made = (stem.with_name(f"{stem.name}.{end}") for end in ("play", "rtl", "sw", "statistics"))
        contexts = ["--contexts", args.contexts]
        said = run([self.bench, "play", path, "-o", play, *contexts, *(["--all-visits"] if args.all_visits else [])])
        ports = 2 if " 2 ports" in said else 1
        options = ["--stall", args.stall, "--bubbles", args.bubbles, "--seed", args.seed]
        options += ["--digests"] * args.digests + ["--shed"] * args.shed
        command = [self.weir, "records", "--profile", "nic", "-f", "binary", path, "-o", want, *contexts]
        command += ["--digests"] * args.digests
        if args.statistics:
            settings = list(itertools.chain(*STATISTICS.items()))
            command += ["--statistics", *settings]
            options += ["--statistics", made, *settings]
        subprocess.run(list(map(str, command)), stderr=subprocess.DEVNULL)
        said = run([self.player(ports), play, got, *options])
        if args.statistics:
            said += ", " + compare_statistics(made.read_bytes(), split_lanes(want, LANE))
            made.unlink()
        count = compare(got, want, play, KEPT if args.shed else None)
        self.records += count
        self.frames += int(said.split()[0])
        if not keep:
            for file in (play, got, want):
                file.unlink()
        return said


def captures(paths):
    for path in map(Path, paths):
        if path.is_dir():
            yield from sorted(p for p in path.rglob("*") if p.name.endswith(ENDINGS) and p.is_file())
        elif path.exists():
            yield path
        else:
            sys.exit(f"no file {path}")


def made(bench, args):
    """Captures that are made for the comparison."""
    folder = BUILD / "made"
    folder.mkdir(parents=True, exist_ok=True)
    if args.hostile:
        first, _, last = args.seeds.partition("-")
        for seed in range(int(first), int(last or first) + 1):
            # Every third has two interfaces.
            path = folder / f"hostile-{args.hostile}-{seed}.{'pcapng' if seed % 3 == 0 else 'pcap'}"
            run([bench, "hostile", "-o", path, "--packets", args.hostile, "--seed", seed], stdout=subprocess.DEVNULL)
            yield path
            path.unlink()
    for mix in MIXES if args.mix else []:
        path = folder / f"mix-{mix.replace(':', '-')}.pcap"
        run([bench, "mix", mix, "-o", path, "--packets", args.packets], stdout=subprocess.DEVNULL)
        yield path
        path.unlink()


def parse(argv=None):
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("paths", nargs="*", metavar="FILE")
    parser.add_argument("--hostile", type=int, default=0, metavar="N", help="captures of N frames made for it")
    parser.add_argument("--seeds", default=str(runner.SEED), metavar="A-B", help="their seeds (default: WEIR_SEED)")
    parser.add_argument("--mix", action="store_true", help="traffic mixes at full rate")
    parser.add_argument("--packets", type=int, default=20_000, help="of each mix (default: %(default)s)")
    parser.add_argument("--stall", type=int, default=0, metavar="PERCENT")
    parser.add_argument("--bubbles", type=int, default=0, metavar="PERCENT")
    parser.add_argument("--seed", type=int, default=runner.SEED, help="of stalls, bubbles and the key hash")
    parser.add_argument("--digests", action="store_true")
    parser.add_argument("--shed", action="store_true")
    parser.add_argument("--statistics", action="store_true")
    parser.add_argument("--contexts", type=int, default=1 << 18)
    parser.add_argument("--ports", type=int, choices=(1, 2), help="(default: as many as the capture uses)")
    parser.add_argument("--all-visits", action="store_true", help="leave no scan visit out: short captures only")
    parser.add_argument("--assertions", action="store_true", help="with the assertions of the modules: slower")
    parser.add_argument("--keep", action="store_true", help="keep play lists and records also where they are equal")
    return parser.parse_args(argv)


def main(argv=None):
    args = parse(argv)
    comparison = Comparison(args)
    print(f"WEIR_SEED={runner.SEED}")
    bad, total, start = [], 0, time.monotonic()
    for path in itertools.chain(captures(args.paths), made(comparison.bench, args)):
        total += 1
        try:
            print(f"equal    {path.name}: {comparison.capture(path, args.keep)}", flush=True)
        except Difference as difference:
            bad.append(path.name)
            print(f"DIFFERS  {path}\n{difference}", flush=True)
            if path.parent == BUILD / "made":  # for another look
                path.with_name(f"differs-{path.name}").write_bytes(path.read_bytes())
    seconds = time.monotonic() - start
    rate = comparison.frames / seconds
    print(
        f"{total - len(bad)} of {total} captures equal: {comparison.frames} packets, {comparison.records} records, {rate:.0f} packets/s"
    )
    return 1 if bad or not total else 0


if __name__ == "__main__":
    sys.exit(main())
