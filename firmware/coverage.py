#!/usr/bin/env python3
"""Line coverage of the firmware's modules by gcov: coverage.py FOLDER LEAST

FOLDER holds the object files with the counts of the tests that ran. Prints a line per module and fails when all
together are below LEAST percent.
"""

import json
import subprocess
import sys
from pathlib import Path


def main():
    folder, least = Path(sys.argv[1]), float(sys.argv[2])
    objects = sorted(folder.glob("*.gcda"))
    if not objects:
        raise SystemExit(f"no counts in {folder}: run the tests first")
    output = subprocess.run(
        ["gcov", "--json-format", "--stdout", *(str(path) for path in objects)],
        check=True,
        capture_output=True,
        text=True,
    ).stdout
    lines = {}
    for report in output.splitlines():
        for file in json.loads(report)["files"]:
            if file["file"].startswith("/"):
                continue
            counts = lines.setdefault(file["file"], {})
            for line in file["lines"]:
                number = line["line_number"]
                counts[number] = counts.get(number, 0) + line["count"]
    total = reached = 0
    for name, counts in sorted(lines.items()):
        missed = [number for number, count in sorted(counts.items()) if not count]
        total += len(counts)
        reached += len(counts) - len(missed)
        share = 100 * (len(counts) - len(missed)) / len(counts)
        print(f"{name:26} {share:6.1f} %  of {len(counts):4}", f" not: {missed}" if missed else "")
    share = 100 * reached / total
    print(f"{'all':26} {share:6.1f} %  of {total:4}, at least {least:.0f} % wanted")
    if share < least:
        raise SystemExit("line coverage is too low")


if __name__ == "__main__":
    main()
