"""The measuring pipeline of the card gives the records of the software engine, byte for byte (compare.py).

A small set with seeds that are printed; `make rtl-compare-long` runs the large one.
"""

import os
import re
from pathlib import Path

import compare
import pytest
import runner

CORPUS = Path(os.environ.get("WEIR_CORPUS") or runner.ROOT / ".." / "shared" / "corpus")
# Small captures of the corpus that between them have tags, IPv6, several interfaces, losses, damage.
SOME = [
    "http_over_vlan.pcap",
    "ipv6_google.pcap",
    "be_pcapng.pcapng",
    "fix_dupacks.pcap",
    "keepalive_zerowin_trace9.pcap",
    "opt_len0_malformed.pcap",
    "erspan.pcap",
    "6in4.pcap",
    "cut_short.pcap",
]


def equal(*arguments):
    """One build for all: two ports whether the capture needs them or not."""
    assert compare.main(["--ports", "2", *map(str, arguments)]) == 0


def test_hostile_traffic():
    equal("--hostile", 15_000, "--seeds", "4-6")


def test_hostile_traffic_with_digests_and_back_pressure():
    equal("--hostile", 5_000, "--seeds", "7", "--digests", "--stall", 60, "--bubbles", 20)


def test_records_left_out_spare_the_flows():
    equal("--hostile", 5_000, "--seeds", "8", "--digests", "--shed", "--stall", 95)


def test_a_packet_per_clock_whatever_the_mix(capsys, record_property):
    """All packets of one flow, 2 to 24 flows in turn, 1,000 at random; where most open a flow, records are the limit."""
    equal("--mix")
    rates = re.findall(r"mix-(\S+)\.pcap: .* ([\d.]+) packets per clock", capsys.readouterr().out)
    assert len(rates) == len(compare.MIXES)
    for mix, rate in rates:
        record_property("figure", f"{mix}: {rate} packets per clock")
        assert float(rate) >= 1 or mix in ("random-100000", "fresh"), f"{mix}: {rate}"


def test_demo_captures():
    equal(runner.ROOT / "docs" / "demo")


def test_statistics():
    """Bursts and histograms equal, the sketch within its bound; where the capture leaps in time, the kernels take theirs."""
    equal(
        runner.ROOT / "docs" / "demo" / "demo.pcap", "--hostile", 1_000, "--seeds", "9", "--statistics", "--stall", 20
    )


def statistics(estimates, total=1000, burst=7):
    """Records of 100 ms: a BURST, `estimates` by destination as TOP of packets, the totals."""
    kind = compare.records.Kind
    made = [compare.records.build(kind.BURST, peak=burst)]
    for number, estimate in enumerate(estimates):
        made += [compare.records.build(kind.TOP, address=bytes([number] * 16), packets=estimate)]
    return b"".join([*made, compare.records.build(kind.TOP, continuation=True, packets=total)])


@pytest.mark.parametrize(
    ("hardware", "wrong"),
    [
        (statistics([10, 20]), None),
        (statistics([20, 10]), "below the truth"),
        (statistics([10]), "instead of all 2"),
        (statistics([10, 20], total=999), "totals"),
        (statistics([10, 20], burst=8), "BURST 0 differs"),
        (statistics([10, 20])[64:], "BURST 0 differs"),
    ],
)
def test_statistics_that_differ_are_told(hardware, wrong):
    """Against two destinations with 10 and 20 packets, in this order."""
    software = statistics([10, 20])
    if wrong is None:
        assert "1 BURST" in compare.compare_statistics(hardware, software)
    else:
        with pytest.raises(compare.Difference, match=wrong):
            compare.compare_statistics(hardware, software)


def test_corpus():
    if not CORPUS.is_dir():
        pytest.skip(f"{CORPUS} is not there")
    equal(*(CORPUS / name for name in SOME))
