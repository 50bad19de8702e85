"""The questions of the book and their answers: every query of docs/src/questions.md over the two captures.

WRITE=1 writes the answers into the page anew.
"""

import os
import re
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[4]
PAGE = ROOT / "docs" / "src" / "questions.md"
TARGET = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "host" / "target")) / "debug"
WEIR = os.environ.get("WEIR_BIN", str(TARGET / "weir"))
WEIR_SQL = os.environ.get("WEIR_SQL", str(TARGET / "weir-sql"))
QUESTION = re.compile(r"^## (\d+)\. ([^\n]*)\n\n```sql\n(.*?)```\n\n```text\n(.*?)```\n", re.M | re.S)


def questions():
    """Number, title, query and answer of each."""
    return QUESTION.findall(PAGE.read_text())


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    """The store that the page's commands make."""
    folder = tmp_path_factory.mktemp("questions")

    def weir(*arguments):
        subprocess.run([WEIR, *arguments], check=True, capture_output=True)

    weir("scenario", "megalodon", "--scale", "0.05", "--seed", "7", "-o", folder)
    demo = ROOT / "docs" / "demo" / "demo.pcap"
    weir("store", "add", demo, "--store", folder / "store", "--tap", "demo")
    weir("store", "add", folder / "megalodon-web.pcap", "--store", folder / "store", "--tap", "web")
    return folder / "store"


def ask(store, sql):
    """What the prompt shows."""
    command = [WEIR, "query", "--store", str(store), sql]
    environment = {**os.environ, "WEIR_SQL": WEIR_SQL}
    result = subprocess.run(command, env=environment, capture_output=True, text=True)
    assert result.returncode == 0, f"{sql}\n{result.stderr}"
    return result.stdout


def test_answers(store):
    """Every answer of the page is what its query gives."""
    page = PAGE.read_text()
    assert [int(number) for number, *_ in questions()] == list(range(1, 21))
    answers = [ask(store, sql) for _, _, sql, _ in questions()]
    if os.environ.get("WRITE"):
        places = list(QUESTION.finditer(page))
        for place, given in reversed(list(zip(places, answers, strict=True))):
            page = page[: place.start(4)] + given + page[place.end(4) :]
        PAGE.write_text(page)
    for (number, title, _, expected), given in zip(questions(), answers, strict=True):
        assert given == expected, f"{number}. {title}: another answer; WRITE=1 writes the page anew"
