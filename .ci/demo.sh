#!/usr/bin/env bash
# demo.sh WEIR [CAPTURE]: a daemon replays the capture through DPDK; its records come back over gRPC and are
# analysed. With NIC=sim the simulated card measures, and the daemon takes its record frames through DPDK: from a veth
# pair as root, else from a file. On a terminal the daemon then goes on serving until Ctrl-C. WEIR_PORT sets its port;
# LINK=file keeps NIC=sim from making a veth pair.
set -euo pipefail
cd "$(dirname "$0")/.."

weir=$1
capture=${2:-docs/demo/demo.pcap}
port=${WEIR_PORT:-50051}
url=http://127.0.0.1:$port
[ -r "$capture" ] || { echo "make run: cannot read $capture" >&2; exit 1; }
case ${NIC:-} in
    '' | sim) ;;
    *) echo "make run: NIC=${NIC} is not known; NIC=sim is the simulated card" >&2; exit 1 ;;
esac

data=$(mktemp -d)
daemon=
pair=
stop() {
    if [ -n "$daemon" ]; then
        kill "$daemon" 2>/dev/null || true
        wait "$daemon" 2>/dev/null || true
    fi
    if [ -n "$pair" ]; then
        ip link del "${pair}c" 2>/dev/null || true
    fi
    rm -rf "$data"
}
trap stop EXIT
trap 'exit 130' INT TERM

say() { printf '\n==> %s\n' "$*"; }

serve() {
    say "daemon: $weir serve $* --listen 127.0.0.1:$port"
    "$weir" serve "$@" --listen "127.0.0.1:$port" --data "$data" >"$data/daemon.log" 2>&1 &
    daemon=$!
    for _ in $(seq 100); do
        "$weir" query status --server "$url" >/dev/null 2>&1 && break
        kill -0 "$daemon" 2>/dev/null || break
        sleep 0.1
    done
    kill -0 "$daemon" 2>/dev/null || { cat "$data/daemon.log" >&2; daemon=; exit 1; }
}

# The epoch is that of a daemon with an empty log.
card() {
    say "card: $weir nic-sim --wire0 $capture --records $1"
    "$weir" nic-sim --wire0 "$capture" --records "$1" --epoch 1 2>"$data/card.log" || { cat "$data/card.log" >&2; exit 1; }
    cat "$data/card.log"
}

# The card is ahead of the daemon by what is on the link.
wait_for_records() {
    local sent
    sent=$(sed -nE 's/.* ([0-9]+) records in .*/\1/p' "$data/card.log")
    for _ in $(seq 100); do
        "$weir" query status --server "$url" -f json | grep -q "\"records\":\"$sent\"" && return
        sleep 0.1
    done
    echo "make run: the daemon did not get the $sent records of the card" >&2
    "$weir" query status --server "$url" >&2
    exit 1
}

if [ "${NIC:-}" != sim ]; then
    serve --port "pcap:$capture"
elif [ "${LINK:-}" != file ] && ip link add "wrec$$c" mtu 9000 type veth peer name "wrec$$h" mtu 9000 2>/dev/null; then
    pair=wrec$$
    ip link set "${pair}c" up
    ip link set "${pair}h" up
    serve --card "eth:${pair}h"
    card "eth:${pair}c"
    wait_for_records
else
    card "$data/link.pcap"
    serve --card "pcap:$data/link.pcap"
fi

say "answer: $weir analyze $url"
"$weir" analyze "$url" ${FORMAT:+-f "$FORMAT"}

cat <<EOT

Ask the daemon:          $weir query findings
                         $weir query --filter 'server_to_client.retransmitted_packets > 0'
Analyse your capture:    $weir analyze FILE, or make run PCAP=FILE
EOT
[ "$port" = 50051 ] || echo "The daemon is at --server $url"
if [ -t 0 ] && [ -t 1 ]; then
    echo "Serving gRPC on 127.0.0.1:$port until Ctrl-C."
    trap 'exit 0' INT
    wait "$daemon" || true
fi
