"""The questions of the book: every query of docs/src/questions.md runs, over rows made up."""

import json
import os
import re
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[4]
PAGE = ROOT / "docs" / "src" / "questions.md"
TARGET = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "host" / "target")) / "debug"
WEIR_SQL = os.environ.get("WEIR_SQL", str(TARGET / "weir-sql"))
ROWS = str(TARGET / "examples" / "rows")
QUESTION = re.compile(r"^## (\d+)\. ([^\n]*)\n\n```sql\n(.*?)```\n", re.M | re.S)
CONNECTIONS = 500


def questions():
    """Number, title and query of each, about both taps of the store of made-up rows."""
    found = QUESTION.findall(PAGE.read_text())
    return [
        (int(number), title, re.sub(r"tap = '\w+'", "tap IN ('east', 'west')", sql)) for number, title, sql in found
    ]


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    """500 connections of ten transactions."""
    folder = tmp_path_factory.mktemp("questions")
    subprocess.run([ROWS, folder, str(CONNECTIONS)], check=True, stdout=subprocess.DEVNULL)
    return folder


def ask(store, sql):
    """The rows of an answer."""
    command = [WEIR_SQL, "query", "--store", str(store), "--format", "json", sql]
    result = subprocess.run(command, capture_output=True, text=True)
    assert result.returncode == 0, f"{sql}\n{result.stderr}"
    return [json.loads(line) for line in result.stdout.splitlines()]


def test_every_query_runs(store):
    """All twenty; what the made-up rows decide is right."""
    answers = {number: ask(store, sql) for number, _, sql in questions()}
    assert list(answers) == list(range(1, 21))
    assert sum(row["connections"] for row in answers[2]) == CONNECTIONS
    assert answers[1], "some were refused"
    assert all(row["setup_outcome"] == "REFUSED" for row in answers[1])
    slowest = [row["end_seconds"] for row in answers[5]]
    assert len(slowest) == 5
    assert slowest == sorted(slowest, reverse=True)
    assert sum(row["transactions"] for row in answers[17]) == CONNECTIONS * 10
    # A connection lasts 30 s and begins each 21.6 s: two at a time.
    assert answers[16] == [{"most": 2}]
    assert answers[12][0]["subnet"] == "10.0.0.0/8"
    assert answers[12][0]["connections"] == CONNECTIONS
