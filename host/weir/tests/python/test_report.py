"""`weir report` and `weir compare` as commands: several taps, a baseline, ranges of time, charts as files."""

import json
import os
import subprocess
from html.parser import HTMLParser
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[4]
WEIR = os.environ.get("WEIR_BIN", str(ROOT / "bin" / "weir"))
# Small: a few seconds in all.
SCALE = "0.02"


def weir(*args):
    run = subprocess.run([WEIR, *map(str, args)], capture_output=True, text=True, timeout=120)
    assert run.returncode == 0, run.stderr
    return run.stdout


class Page(HTMLParser):
    """Ids, links and text of a page."""

    def __init__(self, path):
        super().__init__()
        self.ids, self.links, self.text = set(), set(), ""
        self.feed(path.read_text())
        assert self.links <= self.ids, self.links - self.ids

    def handle_starttag(self, _tag, attrs):
        for name, value in attrs:
            if name == "id":
                self.ids.add(value)
            if name == "href":
                self.links.add(value.removeprefix("#"))

    def handle_data(self, data):
        self.text += data


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("report")
    for name, seed in [("megalodon", 4101), ("healthy", 4102)]:
        weir("scenario", name, "--scale", SCALE if name == "megalodon" else "0.3", "--seed", seed, "-o", folder)
    return folder


def test_a_report_of_two_taps_says_where_they_stand(folder):
    taps = [folder / "megalodon-content.pcap", folder / "megalodon-web.pcap"]
    weir("report", *taps, "-o", folder / "two.html")
    page = Page(folder / "two.html")
    assert {"taps", "fig-dialogues", "fig-waterfall-1", "observations", "recommendations"} <= page.ids
    for tap in taps:
        assert tap.name in page.text
    weir("report", taps[1], "-o", folder / "one.html")
    assert "taps" not in Page(folder / "one.html").ids


def test_ranges_of_one_capture_are_compared(folder):
    capture = folder / "megalodon-web.pcap"
    told = json.loads(weir("compare", capture, "--ranges", "4-80", "300-400", "-f", "json"))["comparison"]
    assert told["first"].endswith("4 to 80 s") and told["second"].endswith("300 to 400 s")
    assert told["tests"] > 10
    # The last test has eight times the users of the first, and a back end that is at its ceiling.
    load = [d for d in told["differences"] if d["measure"] == "NEW_CONNECTIONS" and d["of"] == "port 5433"]
    assert load[0]["second"]["value"] > 1.5 * load[0]["first"]["value"]
    weir("compare", capture, "--ranges", "4-80", "300-400", "-f", "html", "-o", folder / "ranges.html")
    assert "4 to 80 s" in Page(folder / "ranges.html").text


def test_the_same_is_no_difference(folder):
    capture = next(folder.glob("healthy-*.pcap"))
    told = json.loads(weir("compare", capture, capture, "-f", "json"))["comparison"]
    assert not any(d.get("significant") for d in told["differences"])
    assert not told.get("onlyFirst") and not told.get("onlySecond")


def test_a_baseline_and_charts_as_files(folder):
    bad, good = folder / "megalodon-web.pcap", next(folder.glob("healthy-*.pcap"))
    out = folder / "bad report.md"
    weir("report", bad, "--baseline", good, "-o", out)
    text = out.read_text()
    charts = sorted((folder / "bad report-charts").glob("*.svg"))
    assert len(charts) > 8
    for chart in charts:
        assert f"](<bad report-charts/{chart.name}>)" in text
    assert '<a id="comparison"></a>' in text and "Only in the second" in text
    # Without a place for files there are captions.
    assert "](<" not in weir("report", bad, "--format", "markdown")
