#!/usr/bin/env python3
"""Holds weir_lookup against a model that finishes one word before the next, with small and medium tables.

    rtl-tests/lookup/run.py                 all cases, a million random words for each table
    rtl-tests/lookup/run.py --words 100000  fewer
    rtl-tests/lookup/run.py rates           only cases of that name: random, distances, full, tiny, rates
    WEIR_SEED=7 rtl-tests/lookup/run.py     the seed is printed by each run; with it a run repeats itself

rates prints how fast keys can be inserted at several loads, and what the stash holds at one per 8 and per 4 clocks.
"""

import argparse
import os
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))
import runner  # noqa: E402

BUILD = runner.BUILD / "weir_lookup_bench"
WORDS = 1_000_000

# Name: contexts, buckets per table, ways, stash entries.
TABLES = {
    "small": (64, 16, 5, 32),
    "odd": (50, 8, 4, 16),
    "medium": (4096, 512, 5, 32),
    "tiny": (64, 2, 2, 8),
    "large": (1 << 18, 4096, 5, 32),
}
CASES = [
    ("distances", "medium"),
    ("random", "small"),
    ("random", "odd"),
    ("random", "medium"),
    ("tiny", "tiny"),
    ("full", "tiny"),
    ("full", "small"),
    ("rates", "large"),
]


def build(table):
    """The program with that table."""
    runner.verilator_environment()
    out = BUILD / table
    out.mkdir(parents=True, exist_ok=True)
    names = ("Contexts", "Buckets", "Ways", "StashEntries")
    parameters = [f"-G{name}={value}" for name, value in zip(names, TABLES[table], strict=True)]
    defines = [
        f"-D{name}={value}u"
        for name, value in zip(("CONTEXTS", "BUCKETS", "WAYS", "STASH"), TABLES[table], strict=True)
    ]
    flags = ["--assert", "-O3", "--x-assign", "unique", "--x-initial", "unique", "--quiet", "-Wno-fatal"]
    flags += ["-CFLAGS", " ".join(["-std=c++17", *defines])]
    flags += ["-MAKEFLAGS", "OPT_FAST=-O2\\ -march=native OPT_GLOBAL=-O2"]
    files = [*runner.sources("weir_lookup_bench", [*runner.SOURCE_DIRS, HERE]), HERE / "lookup.cpp"]
    command = [*runner.PROGRAM, *flags, *parameters, "--Mdir", out]
    with (out / "build.log").open("w") as log:
        subprocess.run(
            [*command, "--top-module", "weir_lookup_bench", *files, "-o", "lookup"], check=True, stdout=log, stderr=log
        )
    return out / "lookup"


def run(case, words):
    """(passed, what the program printed)"""
    test, table = case
    command = [build(table), test, str(runner.SEED), str(words)]
    result = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=os.environ)
    return result.returncode == 0, result.stdout.strip()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", choices=[[], *dict(CASES)])
    parser.add_argument("--words", type=int, default=WORDS, help="random words (default: %(default)s)")
    args = parser.parse_args()
    print(f"WEIR_SEED={runner.SEED}")
    failed = []
    for case in CASES:
        if args.names and case[0] not in args.names:
            continue
        passed, text = run(case, args.words)
        print(f"{'ok' if passed else 'FAILED':8}{case[1]}\n{text}", flush=True)
        failed += [] if passed else [case]
    if failed:
        sys.exit(f"failed: {failed}")


if __name__ == "__main__":
    main()
