#!/usr/bin/env bash
# demo.sh WEIR [CAPTURE]: a daemon replays the capture through DPDK; its records come back over gRPC and are
# analysed. On a terminal the daemon then goes on serving until Ctrl-C. WEIR_PORT sets its port.
set -euo pipefail
cd "$(dirname "$0")/.."

weir=$1
capture=${2:-docs/demo/demo.pcap}
port=${WEIR_PORT:-50051}
url=http://127.0.0.1:$port
[ -r "$capture" ] || { echo "make run: cannot read $capture" >&2; exit 1; }

data=$(mktemp -d)
daemon=
stop() {
    if [ -n "$daemon" ]; then
        kill "$daemon" 2>/dev/null || true
        wait "$daemon" 2>/dev/null || true
    fi
    rm -rf "$data"
}
trap stop EXIT
trap 'exit 130' INT TERM

say() { printf '\n==> %s\n' "$*"; }

say "daemon: $weir serve --port pcap:$capture --listen 127.0.0.1:$port"
"$weir" serve --port "pcap:$capture" --listen "127.0.0.1:$port" --data "$data" >"$data/daemon.log" 2>&1 &
daemon=$!
for _ in $(seq 100); do
    "$weir" query status --server "$url" >/dev/null 2>&1 && break
    kill -0 "$daemon" 2>/dev/null || break
    sleep 0.1
done
kill -0 "$daemon" 2>/dev/null || { cat "$data/daemon.log" >&2; daemon=; exit 1; }

say "answer: $weir analyze $url"
"$weir" analyze "$url"

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
