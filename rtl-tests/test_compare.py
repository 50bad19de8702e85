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


def test_corpus():
    if not CORPUS.is_dir():
        pytest.skip(f"{CORPUS} is not there")
    equal(*(CORPUS / name for name in SOME))
