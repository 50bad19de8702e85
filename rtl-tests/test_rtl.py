"""Every line of the runner's table, as pytest sees it: `pytest rtl-tests/test_rtl.py -k weir_fifo`."""

import re

import pytest
import runner

# What a bench logs as a figure.
FIGURE = re.compile(r"cocotb\.weir_\w+ +(.*(?:per clock|ateness|latency).*)")


@pytest.mark.parametrize("bench", runner.BENCHES, ids=lambda bench: bench.id)
def test_simulation(bench, record_property):
    print(f"WEIR_SEED={runner.SEED}")
    result = runner.run(bench)
    assert not result.failures, f"{result.failures}\nWEIR_SEED={runner.SEED}\n{result.log}"
    assert result.passed, f"{bench.id}: no test ran"
    for figure in FIGURE.findall(result.log):
        record_property("figure", f"{bench.id}: {figure}")
