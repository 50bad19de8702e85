"""The committed lab capture against what the lab's applications and wire logged themselves."""

import json
import os
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[4]
DEMO = ROOT / "docs" / "demo"
WEIR = os.environ.get("WEIR_BIN", str(ROOT / "bin" / "weir"))
# Both ways between the tap and the server, from demo-scenario.toml.
SERVER_LEG = 2 * 0.007
# Payload of a full segment.
FULL = 1448


def truth(name):
    return [json.loads(line) for line in (DEMO / name).read_text().splitlines()]


@pytest.fixture(scope="module")
def answer():
    run = subprocess.run(
        [WEIR, "analyze", DEMO / "demo.pcap", "-f", "json"], capture_output=True, check=True, timeout=60
    )
    return json.loads(run.stdout)


@pytest.fixture(scope="module")
def pairs(answer):
    """(application's transaction, Weir's) for all transactions of connections that the application had."""
    ports = {int(c["id"]): c["client"]["port"] for c in answer["connections"]}
    found = {}
    for t in answer["transactions"]:
        if t["kind"] != "SETUP":
            found.setdefault(ports[int(t["connectionId"])], []).append(t)
    application = truth("demo-app.jsonl")
    port_of = {a["connection"]: a["client_port"] for a in application if a["type"] == "connection"}
    wanted = {}
    for a in application:
        if a["type"] == "transaction":
            wanted.setdefault(port_of[a["connection"]], []).append(a)
    assert {p: len(t) for p, t in found.items()} == {p: len(t) for p, t in wanted.items()}
    return [pair for port in wanted for pair in zip(wanted[port], found[port], strict=True)]


def test_every_connection_is_found(answer):
    ports = sorted(a["client_port"] for a in truth("demo-app.jsonl") if a["type"] == "connection")
    assert sorted(c["client"]["port"] for c in answer["connections"]) == ports


def test_the_tour_has_the_shares_of_time(answer):
    shares = answer["summary"]["delays"]
    network = sum(shares[f"{part}Seconds"] for part in ("latency", "bandwidth", "congestion", "protocol"))
    parts = [shares["serverProcessingSeconds"], shares["clientProcessingSeconds"], network]
    server, client, rest = (f"{100 * part / shares['totalSeconds']:.1f} %" for part in parts)
    tour = " ".join((ROOT / "docs" / "src" / "tour.md").read_text().split())
    assert f"{server} the server's, {client} the client's, {rest} the network's" in tour


def test_sizes_are_exact(pairs):
    assert len(pairs) >= 30
    for application, weir in pairs:
        sizes = (application["request_bytes"], application["response_bytes"])
        assert sizes == (int(weir["requestBytes"]), int(weir["responseBytes"])), (application, weir)


def test_server_times_are_within_a_millisecond(pairs):
    clean = [pair for pair in pairs if pair[1]["losses"] == 0]
    assert len(clean) >= 15
    for application, weir in clean:
        server = (application["server_response_start_ns"] - application["server_request_last_ns"]) / 1e9
        assert weir["serverSeconds"] == pytest.approx(server + SERVER_LEG, abs=0.001), (application, weir)


def test_losses_are_found_on_their_side_of_the_tap(answer):
    """Data segments that the wire dropped, by side of the tap, against lostUpstream and lostDownstream."""
    wanted = {"lostUpstream": 0, "lostDownstream": 0}
    # The end of a block, lost before the tap: nothing behind it shows the gap, only IP ids may.
    ends = {"lostUpstream": 0, "lostDownstream": 0}
    for deed in truth("demo-wire.jsonl"):
        if not deed["cause"].endswith("loss") or deed["len"] == 0:
            continue
        sender_side = 1 if deed["direction"] == "c2s" else 2
        side = "lostUpstream" if deed["leg"] == sender_side else "lostDownstream"
        is_end = side == "lostUpstream" and deed["len"] < FULL
        (ends if is_end else wanted)[side] += 1
    found = {
        side: sum(int(c[d][side]) for c in answer["connections"] for d in ("clientToServer", "serverToClient"))
        for side in wanted
    }
    unknown = sum(int(c[d]["lostUnknown"]) for c in answer["connections"] for d in ("clientToServer", "serverToClient"))
    unknown += sum(
        int(c[d]["unknownRetransmissions"]) for c in answer["connections"] for d in ("clientToServer", "serverToClient")
    )
    for side, number in wanted.items():
        assert number - unknown <= found[side] <= number + ends[side], (wanted, ends, found, unknown)
