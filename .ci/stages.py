#!/usr/bin/env python3
"""Run the stages of `make test`: each a make target, all of them even when one fails.

Of the stages in one tuple two run at a time, in this order: alone, none of them keeps two cores busy, and all of
them pass on a machine that is.

Prints one line per stage and, for a stage that failed, what it printed. build/stages.tsv holds a line per
stage: name, seconds, busy cores, passed, failed, skipped. Each full output is in build/log/.
"""

import os
import re
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor, as_completed
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
STAGES = [
    "setup",
    "generated",
    "format",
    "lint",
    "proto-lint",
    "rtl-lint",
    "clippy",
    "rtl-test",
    ("rtl-formal", "rtl-compare"),
    # Mutants are built from what rtl-test left in the compiler's cache.
    ("rust-tests", "rtl-mutate", "layout-tests", "firmware-test", "hls-test"),
    "synth",
    ("client-tests", "page-tests"),
    "end-to-end",
    "nic-sim-test",
    "docs",
]
AT_A_TIME = 2
SHOWN_LINES = 400  # of a failed stage

PYTEST = re.compile(r"^=*\s*((?:\d+ \w+,? ?)+) in [\d.]+s", re.M)
CTEST = re.compile(r"^\d+% tests passed, (\d+) tests? failed out of (\d+)$", re.M)
CTEST_SKIPPED = re.compile(r"^\s+\d+ - \S+ \(Skipped\)$", re.M)
VITEST = re.compile(r"^ +Tests  ((?:\d+ \w+(?: \| )?)+) \(\d+\)$", re.M)
CMOCKA = re.compile(r"^\[  (PASSED|FAILED)  \] (\d+) test\(s\)", re.M)
CARGO_PROGRAM = re.compile(r"^ +(?:Running|Doc-tests) .*\n", re.M)
CARGO_RESULT = re.compile(r"^test result: \w+\. (\d+) passed; (\d+) failed; (\d+) ignored", re.M)
# With --show-output, what a test printed stands under "---- name stdout ----". A Rust test cannot skip: one
# that lacks what it needs prints "skipped: why" and returns.
CARGO_PRINTED = re.compile(r"^---- [^\n]* stdout ----\n(.*?)(?=^---- |^successes:|\Z)", re.M | re.S)
SKIPPED = re.compile(r"^skipped: ", re.M)


def count_cargo(output):
    """Sum over the test programs of a `cargo test -- --show-output`; one with its own main counts as one test."""
    passed = failed = skipped = 0
    for program in CARGO_PROGRAM.split(output)[1:]:
        result = CARGO_RESULT.search(program)
        if not result:
            fails = "error: test failed" in program
            skips = not fails and bool(SKIPPED.search(program))
            passed, failed, skipped = passed + (not fails and not skips), failed + fails, skipped + skips
            continue
        successes = program.partition("\nfailures:\n")[0]
        skips = sum(bool(SKIPPED.search(text)) for text in CARGO_PRINTED.findall(successes))
        passed, failed, skipped = (
            passed + int(result[1]) - skips,
            failed + int(result[2]),
            skipped + int(result[3]) + skips,
        )
    return passed, failed, skipped


def count(output):
    """(passed, failed, skipped) from what cargo test, pytest and ctest print; zeros when neither ran."""
    passed, failed, skipped = count_cargo(output)
    for word, number in CMOCKA.findall(output):
        passed, failed = passed + int(number) * (word == "PASSED"), failed + int(number) * (word == "FAILED")
    for match in VITEST.finditer(output):
        for number, word in re.findall(r"(\d+) (\w+)", match[1]):
            passed += int(number) * (word == "passed")
            failed += int(number) * (word == "failed")
            skipped += int(number) * (word in ("skipped", "todo"))
    for match in PYTEST.finditer(output):
        for number, word in re.findall(r"(\d+) (\w+)", match[1]):
            passed += int(number) * (word in ("passed", "xfailed"))
            failed += int(number) * (word in ("failed", "xpassed", "error", "errors"))
            skipped += int(number) * (word == "skipped")
    for match in CTEST.finditer(output):
        skips = len(CTEST_SKIPPED.findall(output, match.end()))
        passed += int(match[2]) - int(match[1]) - skips
        failed, skipped = failed + int(match[1]), skipped + skips
    return passed, failed, skipped


def run(stage, log):
    """Run one stage; (ok, seconds, busy cores, passed, failed, skipped)."""
    start = time.monotonic()
    with log.open("w", encoding="utf-8") as file:
        process = subprocess.Popen(
            ["make", stage, "WEIR_BUILT=1"], cwd=ROOT, stdin=subprocess.DEVNULL, stdout=file, stderr=file
        )
        _, status, used = os.wait4(process.pid, 0)
        code = process.returncode = os.waitstatus_to_exitcode(status)
    seconds = time.monotonic() - start
    cores = (used.ru_utime + used.ru_stime) / seconds  # of what it waited for, too
    passed, failed, skipped = count(log.read_text(encoding="utf-8", errors="replace"))
    if passed + failed + skipped == 0:  # a check without tests of its own counts as one
        passed = int(code == 0)
    if code != 0:  # also when it ended before its tests could report
        failed = max(failed, 1)
    return code == 0, seconds, cores, passed, failed, skipped


def log_of(stage):
    return ROOT / "build" / "log" / f"{stage}.log"


def tell(table, stage, ok, seconds, cores, passed, failed, skipped):
    """Print how a stage ended, and what it printed if it failed; write its line of the table."""
    with table.open("a") as file:
        print(stage, f"{seconds:.1f}", f"{cores:.2f}", passed, failed, skipped, sep="\t", file=file)
    skips = f", {skipped} skipped" if skipped else ""
    print(f"{'ok' if ok else 'FAILED':8}{seconds:7.1f} s   {passed} passed, {failed} failed{skips}", flush=True)
    if not ok:
        log = log_of(stage)
        lines = log.read_text(encoding="utf-8", errors="replace").splitlines()
        if len(lines) > SHOWN_LINES:
            print(f"... {log.relative_to(ROOT)} has {len(lines) - SHOWN_LINES} more lines before these")
        print("\n".join(lines[-SHOWN_LINES:]), flush=True)


def main():
    (ROOT / "build" / "log").mkdir(parents=True, exist_ok=True)
    table = ROOT / "build" / "stages.tsv"
    table.write_text("")
    failures = []
    for group in STAGES:
        group = (group,) if isinstance(group, str) else group
        if len(group) > 1:
            print(f"{', '.join(group)}: {AT_A_TIME} at a time", flush=True)
        else:
            print(f"{group[0]:14}", end="", flush=True)
        with ThreadPoolExecutor(AT_A_TIME) as pool:
            running = {pool.submit(run, stage, log_of(stage)): stage for stage in group}
            for ended in as_completed(running):
                stage, result = running[ended], ended.result()
                if len(group) > 1:
                    print(f"{stage:14}", end="")
                tell(table, stage, *result)
                if not result[0]:
                    failures.append(stage)
        if failures == ["setup"]:
            break  # nothing after it can run
    if failures:
        sys.exit(f"failed: {', '.join(failures)} (output in build/log/)")


if __name__ == "__main__":
    main()
