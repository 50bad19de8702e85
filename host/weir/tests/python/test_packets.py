"""The packet table of a connection: the six frames of the published pie, through the whole command."""

import json
import re
import subprocess

from test_pie import FRAMES, NEAR_CLIENT, WEIR, capture
from test_serve import DEMO


def packets(*arguments):
    return subprocess.run([WEIR, "packets", *arguments], capture_output=True, text=True, timeout=60)


def test_each_packet_with_its_place_and_its_block(tmp_path):
    run = packets(capture(tmp_path / "client.pcap", NEAR_CLIENT), "-f", "json")
    assert run.returncode == 0, run.stderr
    rows = json.loads(run.stdout)["packets"]
    assert [not row["fromServer"] for row in rows] == [from_client for from_client, *_ in FRAMES]
    assert [row["number"] for row in rows] == [str(number) for number in range(1, 7)]
    assert [(row["seq"] - 1000, row["length"]) for row in rows] == [(seq, length) for _, _, seq, _, length in FRAMES]
    assert [row["flags"] for row in rows] == ["S", "SA", "A", "PA", "A", "PA"]
    deltas = [later - earlier for earlier, later in zip(NEAR_CLIENT, NEAR_CLIENT[1:], strict=False)]
    assert [round(row["deltaSeconds"] * 1e6) for row in rows] == [0, *deltas]
    assert [row.get("blockBytes") for row in rows] == [None, None, None, 159, None, 168]
    assert {row["wireBytes"] for row in rows} == {54, 54 + 159, 54 + 168}


def test_a_connection_that_is_not_there_is_told(tmp_path):
    run = packets(capture(tmp_path / "client.pcap", NEAR_CLIENT), "--connection", "7")
    assert run.returncode == 1
    assert "no connection 7" in run.stderr


def test_a_connection_is_asked_for_by_an_end(tmp_path):
    demo = str(DEMO)
    which = packets(demo)
    assert (which.returncode, which.stdout) == (1, "")
    head, *listed = which.stderr.splitlines()
    assert head.endswith("demo.pcap: 13 connections are in it: which one? --connection END, or the ID")
    told = [re.fullmatch(r"  (\d+) +2026-11-21T05:45:3\S+Z  (\S+) -> (\S+)", line).groups() for line in listed]
    assert len(told) == 13
    for number, client, _ in told:
        by_end = packets(demo, "--connection", client)
        assert by_end.stdout.startswith(f"connection {number}: client {client}, server ")
        assert by_end.stdout == packets(demo, "--connection", number).stdout
    # The server's end is that of twelve.
    server = packets(demo, "--connection", "10.77.0.2:9000")
    assert "12 connections with the end 10.77.0.2:9000 are in it" in server.stderr
    assert "no connection with the end 10.77.0.9:1 is in it" in packets(demo, "--connection", "10.77.0.9:1").stderr
    wrong = packets(demo, "--connection", "10.77.0.2")
    assert (wrong.returncode, "an end such as 10.0.0.1:40000" in wrong.stderr) == (2, True)
