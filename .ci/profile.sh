#!/usr/bin/env bash
# Count which branches `weir analyze` takes, on captures unlike those of `make bench`, and keep the counts where
# `make build` looks for them. Names of functions differ from one compiler to the next, so the file names its own.
set -euo pipefail
cd "$(dirname "$0")/.."

version=$(rustc -V | cut -d ' ' -f 2)
llvm=$(rustc -vV | sed -n 's/^LLVM version: \([0-9]*\).*/\1/p')
profdata=$(command -v "llvm-profdata-$llvm") || {
    echo "profile: rustc $version needs llvm-profdata-$llvm (Debian: llvm-$llvm)" >&2
    exit 1
}
host=$(rustc -vV | sed -n 's/^host: //p')
work=build/profile kept=host/weir/profile/rustc-$version.profdata
rm -rf "$work" && mkdir -p "$work/captures" "${kept%/*}"

echo "profile: building a weir that counts"
RUSTFLAGS="-Cprofile-generate=$PWD/$work/raw" cargo build --manifest-path host/Cargo.toml --locked \
    --release --target "$host" -p weir # as make build does: names of functions depend on it
weir=$work/weir
cp "${CARGO_TARGET_DIR:-host/target}/$host/release/weir" "$weir"

echo "profile: making captures"
for kind in connections minimum bulk; do
    cargo run --manifest-path host/Cargo.toml --locked -q -p weir-bench -- \
        gen "$kind" --scale 0.05 --seed 2 -o "$work/captures/$kind.pcap"
done
"$weir" scenario megalodon --scale 0.1 -o "$work/captures" >/dev/null
rm -rf "$work/raw" # of the scenario

echo "profile: counting"
for capture in "$work"/captures/*.pcap docs/demo/demo.pcap; do
    "$weir" analyze "$capture" >/dev/null
    "$weir" analyze -f json "$capture" >/dev/null # what is never counted is compiled to be small, not fast
done
"$profdata" merge --sparse -o "$kept" "$work"/raw/*.profraw
ls -l "$kept"
