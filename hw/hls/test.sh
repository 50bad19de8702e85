#!/usr/bin/env bash
# C simulation of the kernels: test.sh [CAPTURE...]
# Makes vectors with the software engine, builds the kernels under sanitizers, compares (ctest). WEIR_SEED: of the made
# traffic. Committed vectors that are not those of the demo capture any more: test.sh --write.
set -euo pipefail
cd "$(dirname "$0")/../.."

write=no
[ "${1:-}" != --write ] || { write=yes; shift; }
seed=${WEIR_SEED:-$RANDOM}
build=build/hls
echo "WEIR_SEED=$seed"

types=$(.venv/bin/python -c 'import importlib.util as u; print(*u.find_spec("hls4ml").submodule_search_locations)')
[ -n "${WEIR_BUILT:-}" ] ||
    cargo build -q --config net.retry=5 --manifest-path host/Cargo.toml --locked -p weir-sketch --example vectors
vectors=${CARGO_TARGET_DIR:-host/target}/debug/examples/vectors

rm -rf "$build/vectors"
mkdir -p "$build/vectors"/{demo,fresh,made,corpus}
"$vectors" -o "$build/vectors/demo" docs/demo/demo.pcap
[ $write = no ] || cp "$build/vectors/demo/"* hw/hls/vectors/
diff -rq "$build/vectors/demo" hw/hls/vectors || { echo "hw/hls/vectors is old: hw/hls/test.sh --write"; exit 1; }
"$vectors" -o "$build/vectors/fresh" docs/demo/demo-client.pcap docs/demo/demo-server.pcap "$@"
for n in 0 1; do
    for kind in zipf uniform; do
        "$vectors" -o "$build/vectors/made" --made "$kind" --packets 30000 --seed $((seed + n))
    done
done
if [ -d "$WEIR_CORPUS" ]; then
    find "$WEIR_CORPUS" -type f \( -name '*.pcap' -o -name '*.pcapng' -o -name '*.pcap.gz' -o -name '*.pcapng.gz' \) \
        -exec "$vectors" -o "$build/vectors/corpus" {} + 2>"$build/vectors/corpus.log"
else
    echo "no corpus at $WEIR_CORPUS"
fi

cmake -S hw/hls -B "$build/ctest" -DAP_TYPES="$types/templates/vivado/ap_types" -DVECTORS="$PWD/$build/vectors" \
    >"$build/cmake.log" || { cat "$build/cmake.log"; exit 1; }
cmake --build "$build/ctest" -j 2 >"$build/build.log" 2>&1 || { tail -n 60 "$build/build.log"; exit 1; }
ctest --test-dir "$build/ctest" --output-on-failure -j 2
grep -h '^equal.*made/' "$build/ctest/Testing/Temporary/LastTest.log"
