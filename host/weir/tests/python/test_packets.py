"""The packet table of a connection: the six frames of the published pie, through the whole command."""

import json
import subprocess

from test_pie import FRAMES, NEAR_CLIENT, WEIR, capture


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
