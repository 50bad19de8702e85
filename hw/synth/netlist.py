"""Logic levels, loops and resources of a mapped netlist (yosys `write_json` of a flat design).

What counts as a level between two sequential elements (flip-flop, shift register LUT, RAM, port):

- a LUT: 1; a LUT RAM that is read: 1
- a carry chain, entered at any bit: 1 whatever its length; its length in bits is reported apart
- MUXF7/8/9: 0, they belong to the LUTs in front of them in the same half of a logic block
- an inverter or a clock buffer: 0, the pin behind it inverts
- a DSP without pipeline registers: 1
- the outputs of block RAM and UltraRAM start at 0 here; as they come late, paths from them are also reported apart

Clock pins begin and end nothing. Enable and reset pins end a path as data pins do.
"""

import re
from collections import Counter, defaultdict
from dataclasses import dataclass

FLIP_FLOPS = {"FDRE", "FDSE", "FDCE", "FDPE", "TRELLIS_FF"}
LATCHES = {"LDCE", "LDPE", "$_DLATCH_N_", "$_DLATCH_P_", "$dlatch", "$adlatch", "$dlatchsr", "$_SR_NN_", "$sr"}
FREE = {"MUXF5", "MUXF6", "MUXF7", "MUXF8", "MUXF9", "INV", "BUFG", "BUFGCE", "BUFGCTRL", "IBUF", "OBUF"}
ECP5_FREE = {"PFUMX", "L6MUX21"}
SHIFT_REGISTERS = {"SRL16E", "SRLC16E", "SRLC32E"}
LUT_RAM = re.compile(r"RAM(16|32|64|128|256|512)(X|M)")
BLOCK_RAM = re.compile(r"RAMB(18|36)E2|URAM288|DP16KD")
CLOCKS = re.compile(r"(CLK|CLK[AB]|CLK(ARD|BWR)CLK|WCLK|C|G)$")
LUT_COST = {"RAM32M": 4, "RAM32M16": 8, "RAM64M": 4, "RAM64M8": 8, "RAM32X1D": 2, "RAM64X1D": 2, "RAM128X1D": 4,
            "RAM256X1D": 8, "RAM32X1S": 1, "RAM64X1S": 1, "RAM128X1S": 2, "RAM256X1S": 4, "RAM512X1S": 8}  # fmt: skip


@dataclass
class Node:
    """What drives one bit through logic: the bits it reads, each with (levels, carry bits) of the way."""

    cell: str
    inputs: list


@dataclass
class End:
    """A bit that a sequential element or an output port reads."""

    bit: int
    name: str
    pin: str


@dataclass(frozen=True)
class Path:
    levels: int
    carry: int
    start: str
    end: str
    via: tuple = ()

    def __str__(self):
        carry = f" + {self.carry} carry bits" if self.carry else ""
        return f"{self.levels} levels{carry}: {self.start} -> {self.end}"


class Netlist:
    """One flat module of a yosys JSON netlist; `rename(name, bit, width)` may turn bit numbers into field names.

    Cells of the modules `parts` bound paths as ports do. Without `paths` only cells are counted: a netlist that is not
    mapped to the end has too many ways through its words.
    """

    def __init__(self, module, rename=None, parts=(), paths=True):
        self.parts = parts
        self.cells = module["cells"]
        self.ports = module["ports"]
        if not paths:
            return
        self.rename = rename or (lambda name, bit, width: f"{name}[{bit}]" if width > 1 else name)
        self.names = {}  # bit -> (public name, index, width)
        self._name_bits(module["netnames"])
        self.nodes = {}  # driven through logic: bit -> Node
        self.starts = {}  # driven by a sequential element or input: bit -> label
        self.ends = []
        self.carry_of = set()  # outputs of carry cells
        self.from_ram = set()  # outputs of block RAM and UltraRAM
        self.inverse = {}  # bit -> the bit that an inverter makes of it
        for cell in self.cells.values():
            pins = cell["connections"]
            if cell["type"] in ("INV", "LUT1"):
                source = pins["I" if "I" in pins else "I0"][0]
                self.inverse.setdefault(source, pins["O"][0])
        for port, info in self.ports.items():
            for index, bit in enumerate(info["bits"]):
                label = self.rename(port, index, len(info["bits"]))
                if info["direction"] == "input":
                    self.starts[bit] = f"in:{label}"
                elif isinstance(bit, int):
                    self.ends.append(End(bit, f"out:{label}", ""))
        for name, cell in self.cells.items():
            self._cell(name, cell)
        self.order, self.loops = self._sort()
        self.at, self.before = self._arrive(self.starts)

    def _name_bits(self, netnames):
        def rank(item):
            name, info = item
            return (info["hide_name"], name.count("."), len(info["bits"]) > 1 and name.endswith("_d"), len(name), name)

        for name, info in sorted(netnames.items(), key=rank):
            if info["hide_name"]:
                break
            for index, bit in enumerate(info["bits"]):
                self.names.setdefault(bit, (name, index, len(info["bits"])))

    def _label(self, bit, cell):
        if bit in self.names:
            return self.rename(*self.names[bit])
        if self.inverse.get(bit) in self.names:
            return "~" + self.rename(*self.names[self.inverse[bit]])
        return self._source(cell)

    def _register(self, name, cell):
        """A register's name; what it stores when mapping made it or took its name away."""
        out, data = cell["connections"]["Q"][0], cell["connections"].get("D", ["0"])[0]
        if out in self.names or self.inverse.get(out) in self.names or "@" in self._source(name):
            return self._label(out, name)
        return f"delayed {self._label(data, name)}" if data in self.names else name

    def _source(self, cell):
        """Where in the design a nameless cell comes from."""
        places = self.cells[cell]["attributes"].get("src", "").split("|")
        own = [p for p in places if p and "/share/" not in p]
        return f"{cell.split('$')[-1]}@{own[0]}" if own else cell

    def _group(self, bit, cell):
        """The register that a flip-flop belongs to."""
        name = self.names.get(bit) or self.names.get(self.inverse.get(bit))
        return name[0] if name else self._source(cell).partition("@")[2] or cell

    def _cell(self, name, cell):
        kind = cell["type"]
        pins = cell["connections"]
        outputs = {p for p, d in cell.get("port_directions", {}).items() if d != "input"}
        if kind == "CARRY4" or kind == "CCU2C":
            self._carry(name, kind, pins)
        elif kind in FLIP_FLOPS or BLOCK_RAM.match(kind) or kind in LATCHES or self._registered_dsp(kind, cell):
            state = pins["Q"][0] if kind in FLIP_FLOPS else None
            label = self._register(name, cell) if state is not None else f"{name.split('$')[-1]}({kind})"
            for pin in outputs:
                for bit in pins[pin]:
                    self.starts[bit] = label if state is not None else f"{label}.{pin}"
                    if BLOCK_RAM.match(kind):
                        self.from_ram.add(bit)
            self._endpoints(label, pins, outputs)
        elif kind in self.parts:
            for pin, bits in pins.items():
                if pin in outputs:
                    self.starts |= {bit: f"{name}.{pin}[{i}]" for i, bit in enumerate(bits)}
                else:
                    self.ends += [End(b, f"{name}.{pin}[{i}]", "") for i, b in enumerate(bits) if isinstance(b, int)]
        elif kind in SHIFT_REGISTERS:
            label = f"{self._register(name, cell)}({kind})"
            address = [b for p in pins if re.fullmatch(r"A\d?", p) for b in pins[p] if isinstance(b, int)]
            if address:
                self._logic(name, {"Q"}, pins, address, 1)
            for pin in outputs:
                for bit in pins[pin]:
                    if bit not in self.nodes:
                        self.starts[bit] = label
            self._endpoints(label, pins, outputs, skip=r"A\d?")
        elif LUT_RAM.match(kind) or kind == "TRELLIS_DPR16X4":
            label = f"{name.split('$')[-1]}({kind})"
            self._lut_ram(name, kind, pins, outputs, label)
            self._endpoints(label, pins, outputs, skip=self._read_address(kind))
        elif outputs:
            weight = 0 if kind in FREE or kind in ECP5_FREE else 1
            inputs = [b for p in pins if p not in outputs for b in pins[p]]
            self._logic(name, outputs, pins, inputs, weight)

    @staticmethod
    def _registered_dsp(kind, cell):
        if not kind.startswith("DSP48"):
            return False
        return any(int(str(cell["parameters"].get(p, "0")), 2) for p in ("PREG", "MREG", "AREG"))

    def _logic(self, name, outputs, pins, inputs, weight):
        for pin in outputs:
            for bit in pins[pin]:
                if isinstance(bit, int):
                    self.nodes[bit] = Node(name, [(b, weight, 0) for b in inputs if isinstance(b, int)])

    def _carry(self, name, kind, pins):
        """Each output of a carry cell depends on the bits at and below it."""
        if kind == "CCU2C":
            lanes = [[pins[f"{p}{i}"][0] for p in "ABCD"] for i in range(2)]
            results = [[pins["S0"][0]], [pins["S1"][0], pins["COUT"][0]]]
            into = pins["CIN"]
        else:
            lanes = [[pins["S"][i], pins["DI"][i]] for i in range(4)]
            results = [[pins["O"][i], pins["CO"][i]] for i in range(4)]
            into = pins["CI"] + pins.get("CYINIT", [])
        for i, outs in enumerate(results):
            inputs = [(b, 1, i - j + 1) for j in range(i + 1) for b in lanes[j] if isinstance(b, int)]
            inputs += [(b, None, i + 1) for b in into if isinstance(b, int)]
            for out in outs:
                if isinstance(out, int):
                    self.nodes[out] = Node(name, inputs)
                    self.carry_of.add(out)

    @staticmethod
    def _read_address(kind):
        if kind == "TRELLIS_DPR16X4":
            return "RAD"
        return r"ADDR[A-H]|DPRA\d*|A" if not kind.endswith("S") else r"A\d*"

    def _lut_ram(self, name, kind, pins, outputs, label):
        for pin in outputs:
            lane = re.fullmatch(r"DO([A-H])(_?\d*)", pin)
            if lane:
                address = f"ADDR{lane[1]}"
            elif kind == "TRELLIS_DPR16X4":
                address = "RAD"
            else:
                address = r"DPRA\d*" if pin == "DPO" else r"A\d*"
            inputs = [b for p in pins if re.fullmatch(address, p) for b in pins[p] if isinstance(b, int)]
            for bit in pins[pin]:
                if not isinstance(bit, int):
                    continue
                if inputs:
                    self.nodes[bit] = Node(name, [(b, 1, 0) for b in inputs])
                else:
                    self.starts[bit] = label

    def _endpoints(self, label, pins, outputs, skip=None):
        for pin, bits in pins.items():
            if pin in outputs or CLOCKS.fullmatch(pin) or (skip and re.fullmatch(skip, pin)):
                continue
            self.ends += [End(b, label, pin) for b in bits if isinstance(b, int)]

    def _sort(self):
        """Bits in an order that has each node after its inputs, and the bits that lie on loops."""
        order, state, loops = [], {}, set()
        for root in self.nodes:
            if root in state:
                continue
            stack = [(root, iter(self.nodes[root].inputs))]
            state[root] = 1
            while stack:
                bit, inputs = stack[-1]
                for source, _, _ in inputs:
                    if source not in self.nodes:
                        continue
                    if state.get(source) == 1:
                        trail = [b for b, _ in stack]
                        loops.update(trail[trail.index(source) :])
                    elif source not in state:
                        state[source] = 1
                        stack.append((source, iter(self.nodes[source].inputs)))
                        break
                else:
                    state[bit] = 2
                    order.append(bit)
                    stack.pop()
        return order, sorted(self._label(b, self.nodes[b].cell) for b in loops)

    def _step(self, source, at, weight, carry):
        """(levels, carry bits) after going from `source`, which has `at`, into a node."""
        if weight is None:  # carry in: the same chain goes on, or logic enters it at its first bit
            weight = 0 if source in self.carry_of else 1
        return at[0] + weight, at[1] + carry

    def _arrive(self, starts):
        """({bit: deepest (levels, carry bits) from any of `starts`}, {bit: the bit before it on that way})."""
        at, before = dict.fromkeys(starts, (0, 0)), {}
        for bit in self.order:
            best, previous = (-1, 0), None
            for source, weight, carry in self.nodes[bit].inputs:
                if source in at:
                    step = self._step(source, at[source], weight, carry)
                    if step > best:
                        best, previous = step, source
            if previous is not None:
                at[bit], before[bit] = best, previous
        return at, before

    def levels_behind_ram(self):
        at, _ = self._arrive(self.from_ram)
        return max((at[end.bit][0] for end in self.ends if end.bit in at), default=0)

    def path(self, end):
        levels, carry = self.at[end.bit]
        bit, via = end.bit, []
        while bit in self.before:
            if bit in self.names:
                via.append(self._label(bit, self.nodes[bit].cell))
            bit = self.before[bit]
        pin = f".{end.pin}" if end.pin and end.pin != "D" else ""
        return Path(levels, carry, self.starts[bit], end.name + pin, tuple(dict.fromkeys(reversed(via))))

    def worst(self, count=1, ports=True):
        """The deepest path to each of the `count` deepest registers or ports."""
        paths, seen = [], set()
        ends = [e for e in self.ends if e.bit in self.at and (ports or not e.name.startswith("out:"))]
        for end in sorted(ends, key=lambda e: (self.at[e.bit], e.name, e.pin), reverse=True):
            group = re.sub(r"\[[^]]*\]", "", end.name)
            if group in seen:
                continue
            path = self.path(end)
            if not ports and path.start.startswith("in:"):
                continue
            seen.add(group)
            paths.append(path)
            if len(paths) == count:
                break
        return paths

    def recurrences(self):
        """{register: (levels, carry bits)} from a register's output back to its own input in one clock."""
        registers, data = defaultdict(list), defaultdict(list)
        for name, cell in self.cells.items():
            if cell["type"] in FLIP_FLOPS:
                out = cell["connections"]["Q"][0]
                group = self._group(out, name)
                registers[group].append(out)
                data[group] += [b for p in ("D", "DI", "CE", "M") for b in cell["connections"].get(p, [])]
        readers = defaultdict(list)
        for bit, node in self.nodes.items():
            for source, weight, carry in node.inputs:
                readers[source].append((bit, weight, carry))
        rank = {bit: i for i, bit in enumerate(self.order)}
        found = {}
        for group, outs in registers.items():
            cone, todo = set(), list(outs)
            while todo:
                for bit, _, _ in readers.get(todo.pop(), ()):
                    if bit not in cone:
                        cone.add(bit)
                        todo.append(bit)
            targets = [b for b in data[group] if b in cone or b in set(outs)]
            if not targets:
                continue
            at = dict.fromkeys(outs, (0, 0))
            for bit in sorted(cone, key=rank.__getitem__):
                at[bit] = max(
                    self._step(s, at[s], weight, carry) for s, weight, carry in self.nodes[bit].inputs if s in at
                )
            best = max(at[b] for b in targets)
            if best[0]:
                found[group] = best
        return found

    def resources(self):
        kinds = Counter(cell["type"] for cell in self.cells.values())
        luts = sum(n for kind, n in kinds.items() if re.fullmatch(r"LUT\d", kind))
        luts += sum(LUT_COST.get(kind, 1) * n for kind, n in kinds.items() if LUT_RAM.match(kind))
        luts += sum(n for kind, n in kinds.items() if kind in SHIFT_REGISTERS)
        return {
            "LUT": luts,
            "LUTRAM": sum(LUT_COST.get(kind, 1) * n for kind, n in kinds.items() if LUT_RAM.match(kind)),
            "SRL": sum(n for kind, n in kinds.items() if kind in SHIFT_REGISTERS),
            "FF": sum(n for kind, n in kinds.items() if kind in FLIP_FLOPS),
            "CARRY8": self._carry8(),
            "RAMB36": kinds["RAMB36E2"],
            "RAMB18": kinds["RAMB18E2"],
            "URAM288": kinds["URAM288"],
            "DSP": sum(n for kind, n in kinds.items() if kind.startswith("DSP48")),
            "latches": sum(n for kind, n in kinds.items() if kind in LATCHES),
        }

    def _carry8(self):
        """Mapping makes four-bit carry cells; a pair that is chained is one CARRY8."""
        into = {c["connections"]["CI"][0]: n for n, c in self.cells.items() if c["type"] == "CARRY4"}
        heads = {n: c for n, c in self.cells.items() if c["type"] == "CARRY4"}
        following = {n: into.get(c["connections"]["CO"][3]) for n, c in heads.items()}
        roots = set(heads) - {n for n in following.values() if n}
        total = 0
        for root in roots:
            length, cell = 0, root
            while cell:
                length, cell = length + 1, following[cell]
            total += (length + 1) // 2
        return total

    def memories(self):
        """{memory: Counter of RAM cells}; a memory's cells are named after it."""
        found = defaultdict(Counter)
        for name, cell in self.cells.items():
            if BLOCK_RAM.match(cell["type"]) or LUT_RAM.match(cell["type"]):
                found[re.sub(r"(\.\d+)+$", "", name.split("$")[-1])][cell["type"]] += 1
        return dict(found)
