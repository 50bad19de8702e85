"""What the book shows of commands (blocks that begin with `$ weir`) is what they print."""

import os
import re
import shlex
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[4]
WEIR = os.environ.get("WEIR_BIN", str(ROOT / "bin" / "weir"))
BLOCKS = [
    pytest.param(*block, id=f"{page.stem}:{block[0]}")
    for page in sorted((ROOT / "docs" / "src").glob("*.md"))
    for block in re.findall(r"^```console\n\$ weir (.*?)\n(.*?)^```$", page.read_text(), re.MULTILINE | re.DOTALL)
]
LEFT_OUT = "…"


def parts(text):
    """Runs of lines without those left out; blanks at the ends of lines are of the columns."""
    run = []
    for line in [*(line.strip() for line in text.splitlines()), LEFT_OUT]:
        if line != LEFT_OUT:
            run.append(line)
        elif run:
            yield run
            run = []


@pytest.mark.parametrize(("arguments", "shown"), BLOCKS)
def test_shown(arguments, shown):
    run = subprocess.run([WEIR, *shlex.split(arguments)], cwd=ROOT, capture_output=True, text=True, timeout=60)
    assert run.returncode == 0, run.stderr
    printed = [line.strip() for line in run.stdout.splitlines()]
    place = 0
    for part in parts(shown):
        found = [i for i in range(place, len(printed)) if printed[i : i + len(part)] == part]
        assert found, "not printed, or not in this order:\n" + "\n".join(part)
        place = found[0] + len(part)


def test_there_are_blocks():
    assert len(BLOCKS) >= 2
