#!/usr/bin/env python3
"""Change the hardware's source in small ways and see whether the tests notice.

    rtl-tests/mutate.py                           12 mutants of all modules; exit 1 when too few are killed: see WANTED
    rtl-tests/mutate.py --count 200 --seed 7      another sample; the same seed makes the same mutants of the same source
    rtl-tests/mutate.py --module weir_fifo        of these modules alone (may be repeated)
    rtl-tests/mutate.py --list                    modules, number of possible mutants by class, commands that may kill
    rtl-tests/mutate.py --only 3f9c21             that mutant again, by the name that a run printed

A mutant is one edit found on the syntax tree (assertions, declarations, parameters and comments are left alone): an
operator, a negation, a constant, a condition, a bit select, the select of a forwarding multiplexer, a case label, a
statement that is gone. It is built and run in a copy of the tree under build/mutants; the checkout is only read.
The commands that may kill a mutant are the benches of runner.py that compile the changed file, and EXTRA: a module's
own first, then those that compile fewest files beside it. The first that fails kills the mutant. Before a command is
used it must pass without a mutant; one that does not is left out, and the run fails. Outcomes:

    killed      a test failed, or ran into its time limit
    stillborn   Verilator refuses the source, or makes the same program of it as of the original
    argued      survived, but rtl-tests/mutants_equivalent.toml says why nobody could tell
    survived    nobody noticed; shown with its difference
"""

import argparse
import dataclasses
import difflib
import hashlib
import itertools
import math
import os
import queue
import random
import re
import shutil
import signal
import subprocess
import sys
import threading
import time
import tomllib
from collections import Counter, defaultdict
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pyslang
import runner
from pyslang import parsing, syntax

ROOT = runner.ROOT
RTL = ROOT / "hw" / "rtl"
BUILD = ROOT / "build" / "mutants"
FORMAL = ROOT / "rtl-tests" / "formal"
EQUIVALENT = ROOT / "rtl-tests" / "mutants_equivalent.toml"
# Share of mutants that tests must kill. Fewer in a sample below LARGE fail the run only when chance does not explain it:
# so many survivors would come in less than one of 20 samples if the share were kept. Survivors are printed either way.
WANTED = 0.95
LARGE = 100
CHANCE = 0.05
BASELINE_SECONDS = 1800
# For the build of a mutant, on a machine that has other things to do.
BUILD_SECONDS = 300
SEED = 1


@dataclasses.dataclass
class Command:
    """A test that may kill mutants of the files that `top` needs."""

    top: str
    words: list
    # Of a run without a mutant; None until then.
    seconds: float | None = None
    passes: bool = True
    lock: threading.Lock = dataclasses.field(default_factory=threading.Lock)

    def __str__(self):
        return " ".join(self.words)

    def try_original(self, tree, mutant):
        """Run once on the original source, which stands in `tree` meanwhile; True when it passes."""
        with self.lock:
            if self.seconds is None:
                tree.write(mutant.path, mutant.path.read_text())
                tree.run(self.words, BASELINE_SECONDS)  # builds
                start = time.monotonic()
                code, output = tree.run(self.words, BASELINE_SECONDS)
                self.seconds = time.monotonic() - start
                self.passes = code == 0
                print(
                    f"without a mutant: {self}: {'passes' if self.passes else 'FAILS'}, {self.seconds:.0f} s",
                    flush=True,
                )
                if not self.passes:
                    print(output[-3000:])
                tree.write(mutant.path, mutant.source())
        return self.passes


# Commands beside the benches of runner.py.
COMPARE = "rtl-tests/compare.py"
EXTRA = [
    *(
        Command(f"weir_{name}_formal", ["rtl-tests/formal/formal.py", "--design", f"weir_{name}_formal"])
        for name in ("fifo", "skid", "framer", "mover", "bypass", "elastic")
    ),
    Command("weir_parser", ["rtl-tests/parser/run.py"]),
    Command("weir_lookup", ["rtl-tests/lookup/run.py", "--words", "50000", "distances"]),
    Command("weir_lookup", ["rtl-tests/lookup/run.py", "--words", "100000", "random", "tiny", "full"]),
    Command("weir_lookup", ["rtl-tests/lookup/run.py", "rates"]),
    Command("weir_measure", [COMPARE, "--hostile", "30000", "--seeds", "1-3"]),
    Command("weir_measure", [COMPARE, "--mix", "--packets", "5000", "--digests"]),
    Command(
        "weir_measure",
        [
            COMPARE,
            "--hostile",
            "30000",
            "--seeds",
            "4-5",
            "--contexts",
            "64",
            "--stall",
            "30",
            "--bubbles",
            "20",
            "--digests",
        ],
    ),
]

# Programs of the host that EXTRA runs and the firmware's image; no mutant changes them, so they are built once, in the
# checkout.
HOST = [["-p", "weir", "-p", "weir-bench"], ["-p", "weir-capture", "--example", "meta"]]
FIRMWARE = ["make", "-C", "firmware", "image"]

# What a copy of the tree holds; it links to the rest.
SOURCES = ["hw", "rtl-tests", "proto", "firmware"]

# Generated or without behaviour of their own.
LEFT_OUT = {"weir_records_pkg", "weir_registers_pkg", "weir_registers"}


@dataclasses.dataclass(frozen=True)
class Mutant:
    path: Path
    kind: str
    start: int
    end: int
    text: str

    @property
    def module(self):
        return self.path.stem

    def source(self):
        original = self.path.read_text()
        cut = original[self.start : self.end]
        # Lines keep their numbers: what is generated from both can be compared.
        return (
            original[: self.start] + self.text + "\n" * (cut.count("\n") - self.text.count("\n")) + original[self.end :]
        )

    def lines(self):
        """(line number, lines before, lines after), each stripped."""
        before, after = self.path.read_text().splitlines(), self.source().splitlines()
        changed = [i for i, (a, b) in enumerate(zip(before, after, strict=True)) if a != b]
        first, last = changed[0], changed[-1]
        text = [" ".join(" ".join(lines[first : last + 1]).split()) for lines in (before, after)]
        return first + 1, *text

    @property
    def name(self):
        return hashlib.sha256("\n".join([self.module, *self.lines()[1:]]).encode()).hexdigest()[:6]

    def difference(self):
        line, *_ = self.lines()
        where = f"{self.path.relative_to(ROOT)}:{line}"
        lines = difflib.unified_diff(
            self.path.read_text().splitlines(), self.source().splitlines(), where, self.kind, n=0, lineterm=""
        )
        return "\n".join(lines)


# --- finding mutants ---

BINARY = {
    "AddExpression": "-",
    "SubtractExpression": "+",
    "MultiplyExpression": "+",
    "BinaryAndExpression": "|",
    "BinaryOrExpression": "&",
    "BinaryXorExpression": "|",
    "LogicalAndExpression": "||",
    "LogicalOrExpression": "&&",
    "EqualityExpression": "!=",
    "InequalityExpression": "==",
    "LessThanExpression": "<=",
    "LessThanEqualExpression": "<",
    "GreaterThanExpression": ">=",
    "GreaterThanEqualExpression": ">",
    "LogicalShiftLeftExpression": ">>",
    "LogicalShiftRightExpression": "<<",
    "AddAssignmentExpression": "-=",
    "SubtractAssignmentExpression": "+=",
    "AndAssignmentExpression": "|=",
    "OrAssignmentExpression": "&=",
}
UNARY = {
    "UnaryLogicalNotExpression": "",
    "UnaryBitwiseNotExpression": "",
    "UnaryBitwiseAndExpression": "|",
    "UnaryBitwiseOrExpression": "&",
}
# Never entered: what is settled before the first clock, and what only tests see.
SKIPPED = {
    "ParameterDeclaration",
    "ParameterPortList",
    "AnsiPortList",
    "PackageImportDeclaration",
    "TypedefDeclaration",
    "ParameterValueAssignment",
    "VariableDimension",
    "ImplicitType",
    "NamedType",
    "LogicType",
    "ForVariableDeclaration",
    "ElabSystemTask",
    "AttributeInstance",
    "InitialBlock",
    "FinalBlock",
    "FunctionPrototype",
    "EventControlWithExpression",
    "ImmediateAssertStatement",
    "ImmediateAssumeStatement",
    "ImmediateCoverStatement",
    "ConcurrentAssertionMember",
    "AssertPropertyStatement",
    "CoverPropertyStatement",
    "PropertyDeclaration",
    "SequenceDeclaration",
}
# Conditions that pick the newest value of what is still on its way.
FORWARDING = re.compile(r"same|forward|bypass|use_last|pending|newer|hit|match|collision|(index|address)\w* ==", re.I)


class Finder:
    def __init__(self, path):
        self.path = path
        self.source = path.read_text()
        options = parsing.PreprocessorOptions()
        options.predefines = ["SYNTHESIS"]
        self.tree = syntax.SyntaxTree.fromFile(str(path), pyslang.SourceManager(), pyslang.Bag([options]))
        self.found = {}
        self.visit(self.tree.root, False)

    def text(self, node):
        return self.source[node.sourceRange.start.offset : node.sourceRange.end.offset]

    def add(self, kind, node, replacement):
        start, end = node.sourceRange.start.offset, node.sourceRange.end.offset
        self._add(kind, start, end, replacement)

    def add_token(self, kind, token, replacement):
        start = token.location.offset
        if self.source.startswith(token.rawText, start):  # not out of a macro
            self._add(kind, start, start + len(token.rawText), replacement)

    def _add(self, kind, start, end, replacement):
        if self.source[start:end] != replacement:
            self.found.setdefault((start, end, replacement), Mutant(self.path, kind, start, end, replacement))

    def visit(self, node, select):
        if node is None or isinstance(node, parsing.Token):
            return
        kind = node.kind.name
        if kind in SKIPPED:
            return
        children = list(node)
        if kind == "DataDeclaration" and not self._in_function(node):
            return
        if kind in BINARY and kind.endswith("AssignmentExpression"):
            self.add_token("operator", children[1], BINARY[kind])
        elif kind in BINARY:
            equality = kind in ("EqualityExpression", "InequalityExpression")
            forwards = equality and FORWARDING.search(self._target(node) + self.text(node))
            self.add_token("forward" if forwards else "operator", children[1], BINARY[kind])
        elif kind in UNARY:
            self.add_token("operator", children[0], UNARY[kind])
        elif kind in ("ConditionalStatement", "ConditionalExpression"):
            predicate = next(
                c for c in children if not isinstance(c, parsing.Token) and c.kind.name == "ConditionalPredicate"
            )
            self._condition(predicate)
        elif kind == "IntegerLiteralExpression":
            value = int(self.text(node).replace("_", ""))
            for changed in {value + 1, max(0, value - 1)}:
                self.add("select" if select else "constant", node, str(changed))
        elif kind == "IntegerVectorExpression":
            self._vector(node)
        elif kind == "UnbasedUnsizedLiteralExpression":
            self.add("constant", node, {"'0": "'1", "'1": "'0"}.get(self.text(node), self.text(node)))
        elif kind == "ExpressionStatement" and "AssignmentExpression" in children[0].kind.name:
            self.add("statement", node, ";")
        elif kind == "CaseStatement":
            self._labels(node)
        elif kind == "SimpleRangeSelect":
            self._range(children)
        elif kind in ("AscendingRangeSelect", "DescendingRangeSelect"):
            self.add("select", children[0], f"{self.text(children[0])} + 1")
        self._children(node, kind, children, select)

    def _children(self, node, kind, children, select):
        nodes = [c for c in children if c is not None and not isinstance(c, parsing.Token)]
        if kind in ("LoopGenerate", "ForLoopStatement", "CastExpression"):  # headers and widths stay
            nodes = nodes[-1:]
        elif kind in ("IfGenerate", "CaseGenerate"):
            nodes = [
                n for n in nodes if n.kind.name in ("GenerateBlock", "ElseClause", "StandardCaseItem", "IfGenerate")
            ]
        elif kind == "MultipleConcatenationExpression":
            nodes = nodes[1:]
        elif kind == "InvocationExpression" and nodes[0].kind.name == "SystemName":
            if self.text(nodes[0]) not in ("$signed", "$unsigned", "$countones", "$onehot"):
                return
        elif kind in ("SimpleRangeSelect", "AscendingRangeSelect", "DescendingRangeSelect"):
            nodes = nodes[:1] if kind != "SimpleRangeSelect" else []
        for child in nodes:
            self.visit(child, select or kind == "ElementSelect")

    @staticmethod
    def _in_function(node):
        while node is not None:
            if node.kind.name in ("FunctionDeclaration", "SequentialBlockStatement"):
                return True
            node = node.parent
        return False

    def _target(self, node):
        """What the assignment around a node gives a value to."""
        while node is not None:
            if node.kind.name == "Declarator" or node.kind.name.endswith("AssignmentExpression"):
                first = next(iter(node))
                return first.rawText if isinstance(first, parsing.Token) else self.text(first)
            node = node.parent
        return ""

    def _condition(self, predicate):
        text = self.text(predicate)
        kind = "forward" if FORWARDING.search(text) else "condition"
        for replacement in (f"!({text})", "1'b1", "1'b0"):
            self.add(kind, predicate, replacement)

    def _vector(self, node):
        match = re.fullmatch(r"(\d+)\s*'(s?)([bdh])([0-9a-fA-F_]+)", self.text(node))
        if not match:
            return
        width, base = int(match[1]), {"b": 2, "d": 10, "h": 16}[match[3]]
        value = int(match[4].replace("_", ""), base)
        for changed in {(value + 1) % (1 << width), (value - 1) % (1 << width)}:
            digits = f"{changed:b}" if base == 2 else f"{changed}" if base == 10 else f"{changed:x}"
            self.add("constant", node, f"{width}'{match[2]}{match[3]}{digits}")

    def _range(self, children):
        try:
            high, low = (int(self.text(c)) for c in (children[0], children[2]))
        except ValueError:
            return
        start, end = children[0].sourceRange.start.offset, children[2].sourceRange.end.offset
        for step in (1, -1):
            if low + step >= 0:
                self._add("select", start, end, f"{high + step}:{low + step}")
        if high > low:
            self._add("select", start, end, f"{high - 1}:{low}")

    def _labels(self, node):
        items = [c for group in node for c in self._flat(group) if c.kind.name == "StandardCaseItem"]
        labels = []
        for item in items:
            expressions = next(c for c in item if c is not None and not isinstance(c, parsing.Token))
            end = next(c for c in item if isinstance(c, parsing.Token) and c.rawText == ":").location.offset
            labels.append((expressions.sourceRange.start.offset, end))
        for (start, end), (next_start, next_end) in itertools.pairwise(labels):
            first, second = self.source[start:end], self.source[next_start:next_end]
            self._add("case", start, next_end, second + self.source[end:next_start] + first)
        for item in items:
            self.add("case", item, "")

    @staticmethod
    def _flat(node):
        if node is None or isinstance(node, parsing.Token):
            return []
        return [node] if node.kind.name == "StandardCaseItem" else [c for c in node if hasattr(c, "sourceRange")]


def mutants_of(path):
    """All mutants of one file, in the order of the source; one for each visible change."""
    seen, unique = set(), []
    for mutant in sorted(Finder(path).found.values(), key=lambda m: (m.start, m.end, m.text)):
        key = mutant.lines()[1:] if mutant.source() != path.read_text() else None
        if key and key not in seen:
            seen.add(key)
            unique.append(mutant)
    return unique


def sample(mutants, count, seed):
    """`count` of them: the classes take turns, and within a class the modules."""
    draw = random.Random(seed)
    classes = defaultdict(lambda: defaultdict(list))
    for mutant in mutants:
        classes[mutant.kind][mutant.module].append(mutant)
    lanes = []
    for kind in sorted(classes):
        files = [draw.sample(classes[kind][module], len(classes[kind][module])) for module in sorted(classes[kind])]
        draw.shuffle(files)
        lanes.append([m for turn in itertools.zip_longest(*files) for m in turn if m])
    turns = [m for turn in itertools.zip_longest(*lanes) for m in turn if m]
    return turns[:count]


# --- building and running ---


def commands():
    """Benches of the runner and EXTRA."""
    return [Command(b.module, ["rtl-tests/runner.py", b.id]) for b in runner.BENCHES] + EXTRA


def needed_by(top):
    folders = [*runner.SOURCE_DIRS, FORMAL] if top.endswith("_formal") else runner.SOURCE_DIRS
    return {path.stem for path in runner.sources(top, folders)}


def killers(every):
    """{module: commands that compile it; its own benches, then those with fewest files}."""
    found = defaultdict(list)
    for command in every:
        needs = needed_by(command.top)
        for module in needs:
            found[module].append((command.top != module, len(needs), command))
    return {module: [c for *_, c in sorted(entries, key=lambda e: e[:2])] for module, entries in found.items()}


class OutOfTime(Exception):
    """The time for all mutants is over."""


class Tree:
    """A copy of what builds and tests the hardware; commands run in it, one mutant at a time.

    A command that runs while `is_late()` becomes true is broken off with OutOfTime.
    """

    def __init__(self, number, is_late):
        self.is_late = is_late
        self.path = BUILD / f"tree{number}"
        self.path.mkdir(parents=True, exist_ok=True)
        names = subprocess.run(
            ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard", *SOURCES],
            cwd=ROOT, capture_output=True, text=True, check=True,
        ).stdout.split("\0")  # fmt: skip
        wanted = {name for name in names if name and (ROOT / name).is_file()}
        for name in wanted:
            self._copy(ROOT / name, self.path / name)
        for folder in SOURCES:
            for path in (self.path / folder).rglob("*"):
                if (
                    path.is_file()
                    and str(path.relative_to(self.path)) not in wanted
                    and "__pycache__" not in path.parts
                ):
                    path.unlink()
        (self.path / "build").mkdir(exist_ok=True)
        for name in (".venv", "docs", "host", "Makefile", "bin", "build/firmware"):
            if (ROOT / name).exists() and not (self.path / name).is_symlink():
                (self.path / name).symlink_to(ROOT / name)
        self.environment = os.environ | {
            "PATH": f"{ROOT / '.venv' / 'bin'}:{os.environ['PATH']}",
            "WEIR_BUILT": "1",
            "CARGO_TARGET_DIR": os.environ.get("CARGO_TARGET_DIR", str(ROOT / "host" / "target")),
            "WEIR_SEED": os.environ.get("WEIR_SEED", "1"),
            "CCACHE_BASEDIR": str(self.path),
            "CCACHE_NOHASHDIR": "1",
            "OBJCACHE": "ccache" if shutil.which("ccache") else "",
        }

    @staticmethod
    def _copy(source, target):
        """Only what differs, so that builds keep what they have."""
        target.parent.mkdir(parents=True, exist_ok=True)
        if not target.exists() or target.read_bytes() != source.read_bytes():
            shutil.copy2(source, target)
            target.touch()

    def run(self, words, seconds):
        """(exit code or None after `seconds`, what it printed)."""
        end = time.monotonic() + seconds
        with subprocess.Popen(
            [str(word) for word in words], cwd=self.path, env=self.environment, text=True, errors="replace",
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, start_new_session=True,
        ) as process:  # fmt: skip
            while not (late := self.is_late()) and time.monotonic() < end:
                try:
                    output, _ = process.communicate(timeout=min(1, seconds))
                    return process.returncode, output
                except subprocess.TimeoutExpired:
                    pass
            os.killpg(process.pid, signal.SIGKILL)
            output, _ = process.communicate()
            if late:
                raise OutOfTime
            return None, output

    def write(self, path, text):
        (self.path / path.relative_to(ROOT)).write_text(text)

    def verilate(self, module, folder, flags):
        """Run Verilator on what compiles `module`; (exit code, output)."""
        top = smallest_user(module)
        files = [path.relative_to(ROOT) for path in runner.sources(top)]
        command = ["verilator", *flags, "-Wno-fatal", "-Wno-lint", "-Wno-style", "--top-module", top, *files]
        return self.run([*command, *(["--Mdir", folder] if folder else [])], 120)


def smallest_user(module):
    """The module itself; for a package the module that needs the fewest files with it."""
    if not module.endswith("_pkg"):
        return module
    users = [p.stem for p in sorted(RTL.glob("*.sv")) if not p.stem.endswith("_pkg") and module in needed_by(p.stem)]
    return min(users, key=lambda user: len(needed_by(user)))


@dataclasses.dataclass
class Outcome:
    mutant: Mutant
    result: str
    by: str = ""
    seconds: float = 0.0


def judge(tree, mutant, commands, arguments_of):
    """Try one mutant in `tree`, and leave the tree as it was."""
    start = time.monotonic()

    def outcome(result, by=""):
        return Outcome(mutant, result, by, time.monotonic() - start)

    original = mutant.path.read_text()
    tree.write(mutant.path, mutant.source())
    try:
        code, output = tree.verilate(mutant.module, None, ["--lint-only"])
        if code != 0 or "%Warning-LATCH" in output:
            return outcome("stillborn", "refused")
        for command in commands:
            if not command.try_original(tree, mutant):
                continue
            code, _ = tree.run(command.words, BUILD_SECONDS + 6 * command.seconds)
            if code != 0:
                return outcome("killed", f"{command}{' (time limit)' if code is None else ''}")
        if (mutant.module, *mutant.lines()[1:]) in arguments_of:
            return outcome("argued", arguments_of[(mutant.module, *mutant.lines()[1:])])
        changed = generated(tree, mutant.module)
        tree.write(mutant.path, original)
        if changed == generated(tree, mutant.module):
            return outcome("stillborn", "the same program")
        return outcome("survived")
    finally:
        tree.write(mutant.path, original)


def generated(tree, module):
    """What Verilator makes of the tree's source, without its notes on the run."""
    folder = tree.path / "build" / "generated"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    tree.verilate(module, folder, ["--cc", "-O3"])
    return {path.name: path.read_bytes() for path in folder.iterdir() if path.suffix in (".cpp", ".h")}


def arguments():
    """{(module, line before, line after): why nobody can tell}."""
    entries = tomllib.loads(EQUIVALENT.read_text()).get("mutant", []) if EQUIVALENT.exists() else []
    return {(e["module"], e["before"], e["after"]): e["why"] for e in entries}


def run(chosen, jobs, minutes):
    """(outcomes of the mutants, commands that fail without one); after so many minutes only the first is waited for."""
    subprocess.run(FIRMWARE, cwd=ROOT, stdout=subprocess.DEVNULL, check=True)
    done = []
    end = time.monotonic() + 60 * minutes

    def is_late():
        return bool(done) and time.monotonic() > end

    trees = [Tree(number, is_late) for number in range(jobs)]
    every = [c for c in commands() if any(m.module in needed_by(c.top) for m in chosen)]
    for programs in HOST if any(c in EXTRA for c in every) else []:
        runner.host_programs(*programs)
    able = killers(every)
    argued = arguments()
    waiting, lock = queue.SimpleQueue(), threading.Lock()
    for mutant in chosen:
        waiting.put(mutant)

    def lane(tree):
        while not is_late():
            try:
                mutant = waiting.get_nowait()
                outcome = judge(tree, mutant, able.get(mutant.module, []), argued)
            except (queue.Empty, OutOfTime):
                return
            with lock:
                done.append(outcome)
                line, before, after = mutant.lines()
                print(
                    f"{len(done):4}/{len(chosen)} {outcome.result:9} {mutant.name} {mutant.module}:{line} {mutant.kind}"
                    f" {outcome.seconds:.0f} s {outcome.by}",
                    flush=True,
                )

    with ThreadPoolExecutor(jobs) as pool:
        list(pool.map(lane, trees))
    if left := len(chosen) - len(done):
        print(f"{left} mutants were not judged within {minutes:g} minutes")
    return done, [command for command in every if not command.passes]


def enough(killed, survived):
    """Do so many killed and so many that survived agree with WANTED?"""
    judged = killed + survived
    if judged == 0 or killed >= WANTED * judged:
        return True
    lost = 1 - WANTED
    fewer = sum(math.comb(judged, k) * lost**k * WANTED ** (judged - k) for k in range(survived))
    return judged < LARGE and 1 - fewer >= CHANCE


def summary(outcomes):
    """Print what came out; True when enough were killed."""
    counts = Counter(o.result for o in outcomes)
    by_kind = defaultdict(Counter)
    for o in outcomes:
        by_kind[o.mutant.kind][o.result] += 1
    for kind, results in sorted(by_kind.items()):
        print(f"{kind:10} " + ", ".join(f"{n} {result}" for result, n in sorted(results.items())))
    for o in outcomes:
        if o.result == "survived":
            print(f"\nsurvived: {o.mutant.name}\n{o.mutant.difference()}")
    judged = counts["killed"] + counts["survived"]
    share = counts["killed"] / judged if judged else 1.0
    print(
        f"\n{len(outcomes)} mutants: {counts['killed']} killed, {counts['survived']} survived, {counts['argued']} argued, "
        f"{counts['stillborn']} stillborn; {share:.1%} of {judged} killed"
    )
    return enough(counts["killed"], counts["survived"])


def modules():
    return [p for p in sorted(RTL.glob("*.sv")) if p.stem not in LEFT_OUT]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=12, help="mutants (default: %(default)s)")
    parser.add_argument("--seed", type=int, default=SEED, help="of the sample (default: %(default)s)")
    parser.add_argument("--module", action="append", help="this module alone")
    parser.add_argument("--kind", action="append", help="this class alone")
    parser.add_argument("--only", action="append", metavar="NAME", help="the mutant of this name")
    parser.add_argument("--jobs", type=int, default=min(2, os.cpu_count() or 1), help="at once (default: %(default)s)")
    parser.add_argument(
        "--minutes", type=float, default=math.inf, help="judge as many as end in it, one at least (default: no limit)"
    )
    parser.add_argument("--list", action="store_true", help="print what there is and stop")
    args = parser.parse_args()
    runner.verilator_environment()

    paths = [p for p in modules() if not args.module or p.stem in args.module]
    found = {path.stem: mutants_of(path) for path in paths}
    able = killers(commands())
    untested = [name for name, mutants in found.items() if mutants and name not in able]
    if args.list:
        for name, mutants in found.items():
            kinds = ", ".join(f"{n} {kind}" for kind, n in sorted(Counter(m.kind for m in mutants).items()))
            print(
                f"{name}: {len(mutants)} ({kinds or 'none'})\n    {'; '.join(map(str, able.get(name, []))) or 'NO TEST'}"
            )
        return 0
    for name in untested:
        print(f"{name}: no command compiles it; its {len(found[name])} mutants are left out")
    possible = [m for name, mutants in found.items() if name in able for m in mutants]
    stale = [e for e in arguments() if e[0] in found and not any((m.module, *m.lines()[1:]) == e for m in found[e[0]])]
    for module, before, _ in stale:
        print(f"{EQUIVALENT.name}: no such mutant of {module} any more: {before}")
    possible = [m for m in possible if not args.kind or m.kind in args.kind]
    chosen = [m for m in possible if m.name in args.only] if args.only else sample(possible, args.count, args.seed)
    print(f"seed {args.seed}: {len(chosen)} of {len(possible)} mutants", flush=True)
    outcomes, broken = run(chosen, min(args.jobs, len(chosen) or 1), args.minutes)
    good = summary(outcomes)
    for command in broken:
        print(f"fails without a mutant, so it killed none: {command}")
    return 0 if good and not (stale or untested or broken) else 1


if __name__ == "__main__":
    sys.exit(main())
