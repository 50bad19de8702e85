"""Every proof of formal/formal.py and every mutant that must break one, as pytest sees them."""

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parent / "formal"))
import formal  # noqa: E402

CASES = [(proof, mutant) for proof in formal.PROOFS for mutant in [None, *proof.mutants]]


def name(case):
    proof, mutant = case
    return f"{proof.harness}-mutant{proof.mutants.index(mutant) + 1}" if mutant else proof.harness


@pytest.mark.parametrize("case", CASES, ids=name)
def test_formal(case):
    problem = formal.check(*case)
    assert problem is None, problem
