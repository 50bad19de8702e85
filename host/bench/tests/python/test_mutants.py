"""Damaged captures: `weir analyze` neither panics nor hangs, and names file and place. `weir-bench mutate` does the work."""

import os
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[4]
CORPUS = Path(os.environ.get("WEIR_CORPUS", ROOT / ".." / "shared" / "corpus"))
WEIR = Path(os.environ.get("WEIR_BIN", ROOT / "bin" / "weir"))


@pytest.mark.parametrize(("captures", "count"), [(ROOT / "docs" / "demo", 500), (CORPUS, 2000)], ids=["demo", "corpus"])
def test_damaged_captures_are_survived(captures, count):
    if not captures.is_dir():
        pytest.skip(f"no captures in {captures} (set WEIR_CORPUS)")
    command = [WEIR.with_name("weir-bench"), "mutate", captures, "--count", str(count), "--seed", "7"]
    command += ["--command", f"{WEIR} analyze {{}} --format json"]
    run = subprocess.run(command, capture_output=True, text=True, timeout=300, cwd=ROOT)
    assert run.returncode == 0, run.stdout + run.stderr
