#!/usr/bin/env python3
"""Holds the parser of the card (hw/rtl/weir_parser.sv) against the software's, word by word.

    rtl-tests/parser/run.py                     made-up hostile frames, demo captures, the corpus if it is there
    rtl-tests/parser/run.py --frames 100000     fewer of the former
    rtl-tests/parser/run.py FILE...             only the Ethernet frames of these captures
    WEIR_SEED=7 rtl-tests/parser/run.py         the seed is printed by each run; with it a run repeats itself

Frames come in back to back, one beat in every clock; a smaller part also with empty clocks in between.
"""

import argparse
import os
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))
import runner  # noqa: E402

BUILD = runner.BUILD / "weir_parser_bench"
CORPUS = Path(os.environ.get("WEIR_CORPUS") or runner.ROOT / ".." / "shared" / "corpus")
ENDINGS = (".pcap", ".pcapng", ".pcap.gz", ".pcapng.gz")
FRAMES = 1_000_000


def build():
    """The program that drives the hardware and the one that makes frames with their words; both paths."""
    runner.verilator_environment()
    BUILD.mkdir(parents=True, exist_ok=True)
    flags = ["--assert", "-O3", "--x-assign", "unique", "--x-initial", "unique", "--quiet", "-Wno-fatal"]
    flags += ["-MAKEFLAGS", "OPT_FAST=-O2\\ -march=native OPT_GLOBAL=-O2"]
    files = [*runner.sources("weir_parser"), HERE / "parser.cpp"]
    command = [*runner.PROGRAM, *flags, "--Mdir", BUILD, "--top-module", "weir_parser"]
    with (BUILD / "build.log").open("w") as log:
        subprocess.run([*command, *files, "-o", "parser"], check=True, stdout=log)
    return BUILD / "parser", runner.host_programs("-p", "weir-capture", "--example", "meta") / "examples" / "meta"


def compare(programs, what, gaps=0):
    """Run one comparison; what the program printed, or None after a difference (printed as well)."""
    parser, meta = programs
    with subprocess.Popen([meta, *map(str, what)], stdout=subprocess.PIPE) as frames:
        seed = f"+verilator+seed+{runner.SEED or 1}"
        arguments = [parser, str(gaps), "+verilator+rand+reset+2", seed]
        result = subprocess.run(arguments, stdin=frames.stdout, stdout=subprocess.PIPE, text=True)
    if result.returncode:
        print(result.stdout)
        return None
    return result.stdout.strip()


def captures(folder):
    return sorted(path for path in folder.glob("*") if path.name.endswith(ENDINGS))


def runs(count):
    """(name, arguments of meta, one clock in so many empty)"""
    seed = runner.SEED
    yield "hostile frames", ["--hostile", count, "--seed", seed], 0
    yield "hostile frames with gaps", ["--hostile", count // 10, "--seed", seed + 1], 3
    yield "demo captures", captures(runner.ROOT / "docs" / "demo"), 0
    if CORPUS.is_dir():
        yield "corpus", captures(CORPUS), 0
    else:
        print(f"{CORPUS} is not there: its captures are left out")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("files", nargs="*", metavar="FILE")
    parser.add_argument("--frames", type=int, default=FRAMES, help="made-up frames (default: %(default)s)")
    args = parser.parse_args()
    programs = build()
    print(f"WEIR_SEED={runner.SEED}")
    chosen = [("captures", args.files, 0)] if args.files else runs(args.frames)
    for name, what, gaps in chosen:
        result = compare(programs, what, gaps)
        if result is None:
            sys.exit(f"{name}: the parsers differ")
        print(f"{name}: {result}", flush=True)


if __name__ == "__main__":
    main()
