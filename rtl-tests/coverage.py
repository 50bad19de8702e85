#!/usr/bin/env python3
"""How much of the hardware the tests reach: lines and branches of every module, and what the flow engine can do.

    rtl-tests/coverage.py                 the whole pipeline plays captures, then every bench of runner.py runs
    rtl-tests/coverage.py --pipeline      only the pipeline (some minutes)
    rtl-tests/coverage.py --report        nothing runs: the report over what the last runs left behind
    rtl-tests/coverage.py --lines         also lists lines whose gap is explained

Captures: the demo, hostile ones (WEIR_SEED, --packets), with and without back-pressure, with records left out, and mixes
that bring each forwarding distance; their records must be those of the software. Points that nothing reached are listed
with their line; rtl-tests/coverage/gaps.toml says why some cannot be. Exit 1 below 95 % of all points or of those of a
module that are not explained, or when something that the engine can do was not seen.
"""

import argparse
import re
import subprocess
import sys
import tomllib
from collections import Counter, defaultdict
from pathlib import Path

import compare
import runner
import weir_records as records
from weir_records import Kind

HERE = Path(__file__).resolve().parent / "coverage"
BUILD = runner.BUILD / "coverage"
RTL = runner.ROOT / "hw" / "rtl"
CONTEXTS = 512
WANTED = 0.95
SLOTS = [
    *("SETUP of the closed", "SETUP of the closed, more", "BLOCK client", "BLOCK server", "SETUP visit"),
    *("SETUP visit, more", "INTERVAL closed client", "INTERVAL closed server", "CLOSE", "CLOSE, more", "OPEN"),
    *("OPEN, more", "SETUP", "SETUP, more", "EVENT", "EVENT, more", "RTT", "BLOCK turn", "BLOCK own"),
    *("INTERVAL client", "INTERVAL server", "PACKET", "PACKET, more", "PORT", "PORT, more"),
]
WATCHED = {
    "slot": SLOTS,
    "kind": ["packet", "visit", "port", "end"],
    "shed": ["PACKET", "RTT", "INTERVAL", "BLOCK", "EVENT"],
}
ARGS = {
    # A card knows no servers.
    Kind.OPEN: {how.value: how.name for how in records.ClientHow if how != records.ClientHow.SERVER},
    Kind.SETUP: records.SetupEnd,
    Kind.BLOCK: records.BlockEnd,
    Kind.RTT: records.RttHow,
    Kind.CLOSE: records.CloseCause,
    Kind.INTERVAL: {1: "PACKET", 2: "VISIT", 3: "CLOSE"},
}


def build():
    """The player with coverage, assertions and the counters of weir_tracker_watch."""
    runner.verilator_environment()
    folder = BUILD / "player"
    folder.mkdir(parents=True, exist_ok=True)
    flags = ["-O3", "--x-assign", "fast", "--x-initial", "fast", "--quiet", "-Wno-fatal", "-Wno-lint", "-Wno-style"]
    flags += ["--assert", "--coverage-line", "-CFLAGS", "-DWIRE_PORTS=2", "-GPorts=2", f"-GContexts={CONTEXTS}"]
    flags += ["-GBuckets=64", "-MAKEFLAGS", "OPT_FAST=-O1 OPT_GLOBAL=-O2"]
    sources = runner.sources("weir_compare", [*runner.SOURCE_DIRS, compare.HERE])
    sources += [*runner.with_kernels(sources), HERE / "weir_tracker_watch.sv", compare.HERE / "player.cpp"]
    command = [*runner.PROGRAM, *flags, "--Mdir", folder, "--prefix", "Vtop"]
    with (folder / "build.log").open("w") as log:
        command += ["--top-module", "weir_compare", *sources, "-o", "player"]
        if subprocess.run(command, stdout=log, stderr=log).returncode:
            sys.exit(f"the pipeline does not build:\n{(folder / 'build.log').read_text()[-4000:]}")
    return folder / "player"


def captures(bench, packets, seed):
    """(path, options of the player)"""
    yield runner.ROOT / "docs" / "demo" / "demo.pcap", []
    ways = [[], ["--digests"], ["--stall", 60, "--bubbles", 30, "--digests"], ["--stall", 92, "--shed", "--digests"]]
    for number, options in enumerate(ways):
        # Two interfaces in the second.
        path = BUILD / f"hostile-{number}.{'pcapng' if number == 1 else 'pcap'}"
        make = ["hostile", "-o", path, "--packets", packets, "--seed", seed + number]
        compare.run([bench, *make], stdout=subprocess.DEVNULL)
        yield path, options
    for mix in ["one", *(f"cycle:{n}" for n in range(2, 13)), "random:100"]:
        path = BUILD / f"mix-{mix.replace(':', '-')}.pcap"
        compare.run([bench, "mix", mix, "-o", path, "--packets", 400], stdout=subprocess.DEVNULL)
        yield path, []


def pipeline(packets, seed):
    """Play everything; lines of coverage and counts stay in the build folder."""
    weir, bench = compare.tools()
    player = build()
    for old in BUILD.glob("*.coverage"):
        old.unlink()
    seen = Counter()
    for path, options in captures(bench, packets, seed):
        play, got, want = (BUILD / f"{path.stem}.{end}" for end in ("play", "rtl", "sw"))
        contexts = ["--contexts", CONTEXTS]
        compare.run([bench, "play", path, "-o", play, *contexts])
        command = [player, play, got, "--seed", seed, *options]
        result = subprocess.run(list(map(str, command)), capture_output=True, text=True)
        if result.returncode:
            sys.exit(f"{path.name}: {(result.stdout + result.stderr)[-3000:]}")
        (BUILD / f"{path.stem}.rtl.coverage").rename(BUILD / f"{path.stem}.coverage")
        digests = ["--digests"] * ("--digests" in options)
        command = [weir, "records", "--profile", "nic", "-f", "binary", path, "-o", want, *contexts, *digests]
        subprocess.run(list(map(str, command)), stderr=subprocess.DEVNULL)
        count = compare.compare(got, want, play, compare.KEPT if "--shed" in options else None)
        print(f"equal    {path.name} {' '.join(map(str, options))}: {count} records", flush=True)
        seen += functional(got, result.stdout)
        for file in (play, got, want):
            file.unlink()
    (BUILD / "seen.txt").write_text("".join(f"{count} {name}\n" for name, count in sorted(seen.items())))


def possible():
    """Everything that has to be seen, with 0."""
    names = [f"what {bit.name}" for bit in records.What]
    for kind, args in ARGS.items():
        values = args.values() if isinstance(args, dict) else [arg.name for arg in args]
        names += [f"{kind.name} {value}" for value in values]
    names += [f"untracked {reason.name}" for reason in records.Untracked]
    names += [f"{what} {name}" for what, all_names in WATCHED.items() for name in all_names]
    return names


def functional(path, watched):
    """What a run showed: from its records, and from weir_tracker_watch."""
    seen = Counter()
    last_port = {}
    for data in compare.chunks(path, None):
        record = records.parse(data)
        kind, more = Kind(record["kind"]), record["flags"] & records.Flag.CONTINUATION
        if kind == Kind.PORT and more:
            last_port[record["arg"]] = record["untracked"]
        if more:
            continue
        if kind in ARGS:
            args = ARGS[kind]
            name = args[record["arg"]] if isinstance(args, dict) else args(record["arg"]).name
            seen[f"{kind.name} {name}"] += 1
        if kind == Kind.EVENT:
            seen.update(f"what {bit.name}" for bit in records.What if record["what"] & bit)
    for counts in last_port.values():
        for reason in records.Untracked:
            seen[f"untracked {reason.name}"] += counts[reason]
    for what, number, count in re.findall(r"^watch (\w+) (\d+) (\d+)$", watched, re.M):
        names = WATCHED.get(what)
        seen[f"{what} {names[int(number)] if names else number}"] += int(count)
    return seen


def benches(names):
    """Run the table of runner.py with coverage; names of benches that failed."""
    runner.os.environ["WEIR_COVERAGE"] = "1"
    failed = []
    for bench in runner.BENCHES:
        if names and bench.module not in names:
            continue
        (bench.build_dir / "coverage.dat").unlink(missing_ok=True)
        result = runner.run(bench)
        print(f"{'FAILED' if result.failures else 'ok':9}{bench.id}", flush=True)
        failed += result.failures
    return failed


def points(paths):
    """{(file, line, column, kind, comment): count}, over all instances and runs."""
    found = Counter()
    for path in paths:
        for line in path.read_text(errors="replace").splitlines():
            if not line.startswith("C '"):
                continue
            text, count = line[3:].rsplit("' ", 1)
            key = dict(part.split("\x02", 1) for part in text.split("\x01") if "\x02" in part)
            file = Path(key["f"])
            if file.parent != RTL or not key.get("page", "").startswith(("v_line", "v_branch")):
                continue
            found[file.name, int(key["l"]), int(key["n"]), key.get("o", "")] += int(count)
    return found


def explained():
    """Gaps that are argued: {(file, text of the line): why}, {name of a functional point: why}."""
    gaps = tomllib.loads((HERE / "gaps.toml").read_text())
    lines = {(f"{gap['module']}.sv", gap["line"]): gap["why"] for gap in gaps.get("line", [])}
    return lines, {gap["name"]: gap["why"] for gap in gaps.get("seen", [])}


def report(everything, all_lines):
    """Print both tables; True when they are good enough."""
    argued_lines, argued_names = explained()
    paths = [*BUILD.glob("*.coverage")]
    paths += [b.build_dir / "coverage.dat" for b in runner.BENCHES if (b.build_dir / "coverage.dat").exists()]
    found = points(paths)
    modules = defaultdict(list)
    for (file, line, _, comment), count in sorted(found.items()):
        text = (RTL / file).read_text().splitlines()[line - 1].strip()
        modules[file].append((line, text, comment, count, argued_lines.get((file, text))))
    good, used = True, set()
    print(f"\n{'module':28}{'points':>7}{'reached':>9}{'argued':>8}{'percent':>9}")
    hit_all = total_all = 0
    for file, rows in sorted(modules.items()):
        hit = sum(count > 0 for *_, count, _ in rows)
        argued = sum(count == 0 and why is not None for *_, count, why in rows)
        share = hit / len(rows)
        hit_all, total_all = hit_all + hit, total_all + len(rows)
        low = (hit + argued) / len(rows) < WANTED
        good &= not (low and everything)
        print(f"{file[:-3]:28}{len(rows):7}{hit:9}{argued:8}{100 * share:8.1f}%{'  LOW' if low else ''}")
        for line, text, comment, count, why in rows:
            if count == 0 and (why is None or all_lines):
                print(f"    {file}:{line} ({comment}) {text}{f'  -- {why}' if why else ''}")
            if count == 0 and why:
                used.add((file, text))
    print(f"{'all':28}{total_all:7}{hit_all:9}{'':8}{100 * hit_all / max(total_all, 1):8.1f}%")
    good &= not everything or hit_all / max(total_all, 1) >= WANTED
    for file, text in argued_lines.keys() - used if everything else ():
        print(f"argued in gaps.toml, but not a gap (any more): {file}: {text}")
        good = False
    if (BUILD / "seen.txt").exists():
        lines = (BUILD / "seen.txt").read_text().splitlines()
        seen = {name: int(count) for count, name in (line.split(" ", 1) for line in lines)}
        depth = max(int(name.split()[1]) for name in seen if name.startswith("distance"))
        names = [*possible(), *(f"distance {d}" for d in range(depth + 1))]
        print("\nseen in the pipeline (distance 0: the context came from memory)")
        for name in names:
            missing = not seen.get(name) and name not in argued_names
            good &= not missing
            why = argued_names.get(name) if not seen.get(name) else None
            print(f"{seen.get(name, 0):>10} {name}{'  MISSING' if missing else ''}{f'  -- {why}' if why else ''}")
        most = max(int(name.split()[1]) for name, count in seen.items() if name.startswith("records ") and count)
        print(f"most records of one word: {most}")
    return good


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pipeline", action="store_true", help="only the pipeline")
    parser.add_argument("--benches", nargs="*", metavar="MODULE", help="only benches (of these modules)")
    parser.add_argument("--report", action="store_true", help="only the report")
    parser.add_argument("--packets", type=int, default=20_000, help="of each hostile capture (default: %(default)s)")
    parser.add_argument("--lines", action="store_true", help="also lines whose gap is argued")
    args = parser.parse_args()
    print(f"WEIR_SEED={runner.SEED}")
    BUILD.mkdir(parents=True, exist_ok=True)
    failed = []
    everything = args.report or not (args.pipeline or args.benches is not None)
    if not args.report and args.benches is None:
        pipeline(args.packets, runner.SEED)
    if not args.report and not args.pipeline:
        failed = benches(args.benches)
    good = report(everything, args.lines)
    sys.exit("\n".join(failed) or (0 if good else "coverage is too low, or something was not seen"))


if __name__ == "__main__":
    main()
