"""The card's lookup against a model, word by word: see lookup/run.py."""

import importlib.util
from pathlib import Path

import pytest
import runner

SPEC = importlib.util.spec_from_file_location("lookup_run", Path(__file__).parent / "lookup" / "run.py")
run = importlib.util.module_from_spec(SPEC)
SPEC.loader.exec_module(run)


@pytest.mark.parametrize("case", run.CASES, ids="-".join)
def test_lookup(case, record_property):
    passed, text = run.run(case, 300_000)
    print(text)
    assert passed, f"WEIR_SEED={runner.SEED}\n{text}"
    if "rates" in case:
        for line in text.splitlines():
            record_property("figure", f"key table: {line}")
