"""The JSON answer as a file or a stream: whole or not there."""

import json
import subprocess
from pathlib import Path

import pytest
from test_pie import NEAR_CLIENT, NEAR_SERVER, WEIR, capture

DEMO = Path(__file__).parents[4] / "docs/demo/demo.pcap"
SIDES = ["clientToServer", "serverToClient"]
LISTS = ["connections", "transactions", "findings"]


def analyze(*arguments, **options):
    return subprocess.run(
        [WEIR, "analyze", "-f", "json", *arguments],
        stdin=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        timeout=60,
        **options,
    )


def printed(*arguments):
    run = analyze(*arguments, stdout=subprocess.PIPE)
    assert run.returncode == 0, run.stderr
    return run.stdout


def test_a_file_has_what_is_printed(tmp_path):
    file = tmp_path / "answer.json"
    assert analyze(DEMO, "-o", file).returncode == 0
    assert file.read_bytes() == printed(DEMO)
    answer = json.loads(file.read_bytes())
    assert list(answer)[:3] == LISTS
    summary = answer["summary"]
    assert len(answer["connections"]) == int(summary["connections"])
    assert len(answer["transactions"]) == int(summary["transactions"])


def test_dialogues_are_sums_of_connections():
    answer = json.loads(printed(DEMO))
    dialogues = answer["summary"]["dialogues"]
    assert len(dialogues) == 2
    volume = [sum(int(d[side]["payloadBytes"]) for side in SIDES) for d in dialogues]
    assert volume == sorted(volume, reverse=True)
    for dialogue in dialogues:
        own = [c for c in answer["connections"] if c["server"] == dialogue["server"]]
        assert {c["client"]["address"] for c in own} == {dialogue["clientAddress"]}
        assert len(own) == int(dialogue["connections"])
        assert sum(c["setup"]["outcome"] == "REFUSED" for c in own) == int(dialogue["failed"])
        for side in SIDES:
            sides = [c[side] for c in own]
            for name in ("packets", "payloadBytes", "missedByCapture"):
                assert sum(int(one[name]) for one in sides) == int(dialogue[side][name])
            same = {
                "lostUpstream": "lostBeforeTap",
                "lostDownstream": "lostBehindTap",
                "lostUnknown": "lostUnknown",
                "dataPackets": "dataPackets",
                "retransmittedDataPackets": "retransmittedPackets",
            }
            for name, of_all in same.items():
                assert sum(int(one[name]) for one in sides) == int(dialogue[side][of_all])
            rtts = [one["rtt"]["minSeconds"] for one in sides if "minSeconds" in one["rtt"]]
            assert dialogue[side].get("rttMinSeconds") == pytest.approx(min(rtts) if rtts else None)
            for one, rate in ((c[side], c[side].get("payloadBitsPerSecond")) for c in own):
                assert rate is None or rate > 0 or one["payloadBytes"] == "0"
    # All data is in the first.
    of_all = answer["summary"]["retransmissionRate"]
    assert [dialogues[0][side]["retransmissionRate"] for side in SIDES] == [of_all[side] for side in SIDES]
    assert "retransmissionRate" not in dialogues[1]["clientToServer"]


def test_lists_of_a_capture_without_packets_are_empty(tmp_path):
    one = capture(tmp_path / "one.pcap", NEAR_CLIENT).read_bytes()
    (tmp_path / "empty.pcap").write_bytes(one[:24])
    answer = json.loads(printed(tmp_path / "empty.pcap"))
    assert [answer[name] for name in LISTS] == [[], [], []]


def test_two_captures_have_the_lists_of_the_one_nearest_to_the_client(tmp_path):
    client = capture(tmp_path / "client.pcap", NEAR_CLIENT)
    server = capture(tmp_path / "server.pcap", NEAR_SERVER)
    answer = json.loads(printed(server, client))
    alone = json.loads(printed(client))
    assert len(answer["taps"]) == 2
    assert [answer[name] for name in LISTS[:2]] == [alone[name] for name in LISTS[:2]]


def test_what_is_no_capture_leaves_no_half_of_an_answer(tmp_path):
    file = tmp_path / "answer.json"
    file.write_text("an older one")
    (tmp_path / "text.pcap").write_text("no capture" * 10)
    run = analyze(tmp_path / "text.pcap", "-o", file)
    assert run.returncode == 1
    assert b"text.pcap" in run.stderr
    assert file.read_text() == "an older one"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["answer.json", "text.pcap"]
    run = analyze(tmp_path / "text.pcap", stdout=subprocess.PIPE)
    assert (run.returncode, run.stdout) == (1, b"")


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no /dev/full here")
def test_a_full_disk_is_told():
    with Path("/dev/full").open("wb") as full:
        run = analyze(DEMO, stdout=full)
    assert run.returncode == 1
    assert b"standard output" in run.stderr
    assert b"No space left" in run.stderr
