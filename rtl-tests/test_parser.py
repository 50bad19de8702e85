"""The card's parser and the software's make the same words of the same frames: see parser/run.py."""

import importlib.util
from pathlib import Path

import pytest
import runner

SPEC = importlib.util.spec_from_file_location("parser_run", Path(__file__).parent / "parser" / "run.py")
run = importlib.util.module_from_spec(SPEC)
SPEC.loader.exec_module(run)


@pytest.fixture(scope="module")
def programs():
    return run.build()


@pytest.mark.parametrize("case", run.runs(100_000), ids=lambda case: case[0].replace(" ", "-"))
def test_words_are_equal(programs, case):
    name, what, gaps = case
    print(f"WEIR_SEED={runner.SEED}")
    result = run.compare(programs, what, gaps)
    assert result is not None, f"{name}, WEIR_SEED={runner.SEED}"
    print(result)
