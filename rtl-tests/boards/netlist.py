"""The whole board top, elaborated with open tools and the vendor's cells as black boxes: names as the vendor's tool has
them, and what reaches each register from another clock."""

import importlib.util
import json
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
BOARDS = ROOT / "hw" / "boards"
FOLDERS = [
    ROOT / "hw" / "rtl",
    ROOT / "hw" / "hls",
    ROOT / "hw" / "hls" / "dpi",
    BOARDS / "common",
    BOARDS / "u250",
    BOARDS / "models",
]
KERNELS = ("weir_kernel_bursts", "weir_kernel_histograms", "weir_kernel_talkers")
VENDOR = ("clk_wiz_0", "cmac_usplus_0", "cmac_usplus_1", "qdma_0", "ecc_0", "IBUFDS_GTE4", *KERNELS)
# Small tables: names do not depend on them.
PARAMETERS = {"Contexts": 64, "Buckets": 16}

# The clock of a vendor's cell, and its pins of other domains; other inputs and outputs are of that clock.
CELL_CLOCK = {
    "cmac_usplus_0": "rx_clk",
    "cmac_usplus_1": "rx_clk",
    "qdma_0": "axi_aclk",
    "ecc_0": "ecc_clk",
    **dict.fromkeys(KERNELS, "ap_clk"),
}
# Their clocks, lanes and asynchronous resets; loopback stands still while frames pass.
ASYNCHRONOUS_PINS = {
    *("gt_ref_clk_p", "gt_ref_clk_n", "gt_txusrclk2", "rx_clk", "init_clk", "sys_reset", "gt_loopback_in"),
    *("gt_rxp_in", "gt_rxn_in", "gt_txp_out", "gt_txn_out"),
    *("sys_clk", "sys_clk_gt", "sys_rst_n", "axi_aclk", "pci_exp_rxp", "pci_exp_rxn", "pci_exp_txp", "pci_exp_txn"),
    *("ap_clk", "ecc_clk", "user_lnk_up", "axi_aresetn"),
}
# Logic with one input, which makes no glitches.
STRAIGHT = ("$buf", "$not", "$logic_not")

# Registers that may take what is of another clock: see hw/boards/common/crossings.tcl.
CROSSINGS = ("/crossing", "/async_data")


def elaborate(path):
    cpu = next(iter(importlib.util.find_spec("pythondata_cpu_vexriscv").submodule_search_locations))
    words = [f"{cpu}/verilog/VexRiscv.v", f"{BOARDS}/u250/weir_u250.sv", "-Y .sv --top weir_u250 --keep-hierarchy"]
    words += [f"-y {folder}" for folder in FOLDERS]
    words += [f"-G {name}={value}" for name, value in PARAMETERS.items()]
    words += ["-D VERILATOR"]  # the kernels' models, whose ports count here, are for it alone
    words += [f"--blackboxed-module {cell}" for cell in (*VENDOR, "VexRiscv")]
    script = f"""
from pyosys import libyosys as ys
design = ys.Design()
ys.run_pass({"read_slang " + " ".join(words)!r}, design)
ys.run_pass({f"write_json {path}"!r}, design)
"""
    run = subprocess.run([sys.executable, "-c", script], text=True, capture_output=True)
    assert run.returncode == 0, run.stdout[-3000:] + run.stderr[-3000:]
    return Netlist(json.loads(Path(path).read_text())["modules"])


class Netlist:
    """cells: names of registers and memories, `path/name_reg[bit]`. registers: (path/name, clock, inputs)."""

    def __init__(self, modules):
        self.modules = modules
        self.cells, self.registers, self.vendor_cells = [], [], []
        # What a net comes out of: a clock's register or a pin; else (kind, inputs) of logic.
        self.domains, self.drivers = {}, {}
        # Logic as (inputs, outputs), memories by name: the clock that writes them.
        self.logic, self.memories, self.reads = [], {}, []
        self.count = 0
        top = modules["weir_u250"]
        self.ports = [
            f"{name}[{i}]" if len(port["bits"]) > 1 else name
            for name, port in top["ports"].items()
            for i in range(len(port["bits"]))
        ]
        nets = {}
        for name, port in top["ports"].items():
            for bit in port["bits"]:
                nets[bit] = self.net()
                if port["direction"] == "input":
                    self.domains[nets[bit]] = f"port {name}"
        self.walk(top, "", nets)

    def net(self):
        self.count += 1
        return self.count

    def walk(self, module, path, nets):
        """`nets`: what is known of the module's bits from outside."""

        def of(bits):
            return [bit if isinstance(bit, str) else nets.setdefault(bit, 0) or self.new(nets, bit) for bit in bits]

        for name, cell in module["cells"].items():
            kind, pins = cell["type"], {pin: of(bits) for pin, bits in cell["connections"].items()}
            if kind in VENDOR or kind == "VexRiscv":
                self.vendor(kind, path + name, pins)
            elif kind in self.modules:
                child = self.modules[kind]
                inner = {}
                for port, info in child["ports"].items():
                    for bit, outside in zip(info["bits"], pins.get(port, []), strict=False):
                        if not isinstance(bit, str):
                            inner[bit] = outside
                self.walk(child, f"{path}{name}/", inner)
            elif kind == "$dff":
                self.register(path + name.removeprefix("$driver$"), pins)
            elif kind == "$memwr_v2":
                self.memories[path + cell["parameters"]["MEMID"].lstrip("\\")] = pins["CLK"][0]
                self.cells.append(f"{path}{cell['parameters']['MEMID'].lstrip(chr(92))}_reg")
            elif kind == "$memrd_v2":
                memory = path + cell["parameters"]["MEMID"].lstrip("\\")
                self.reads.append((memory, pins["DATA"]))
                self.logic.append((pins["ADDR"], pins["DATA"]))
            elif kind not in ("$meminit_v2",):
                outputs = [pin for pin in pins if cell["port_directions"][pin] == "output"]
                inputs = [bit for pin in pins if pin not in outputs for bit in pins[pin]]
                for pin in outputs:
                    self.logic.append((inputs, pins[pin]))
                    for i, bit in enumerate(pins[pin]):
                        self.drivers[bit] = (kind, inputs[i] if kind in STRAIGHT else None)

    def new(self, nets, bit):
        nets[bit] = self.net()
        return nets[bit]

    def register(self, name, pins):
        width = len(pins["Q"])
        self.cells += [f"{name}_reg[{i}]" if width > 1 else f"{name}_reg" for i in range(width)]
        self.registers.append((name, pins["CLK"][0], pins["D"]))
        for bit in pins["Q"]:
            self.domains[bit] = pins["CLK"][0]

    def vendor(self, kind, name, pins):
        self.vendor_cells.append((kind, name))
        ports = self.modules[kind]["ports"]
        clock = pins[CELL_CLOCK[kind]][0] if kind in CELL_CLOCK else None
        for pin, bits in pins.items():
            asynchronous = pin in ASYNCHRONOUS_PINS or clock is None
            if ports[pin]["direction"] == "output":
                for bit in bits:
                    self.domains[bit] = f"pin {name}/{pin}" if asynchronous else clock
            elif not asynchronous:
                self.registers.append((f"{name}/{pin}", clock, bits))
        if kind == "VexRiscv":  # of the card's clock, as all around it
            for pin, bits in pins.items():
                if ports[pin]["direction"] == "output":
                    for bit in bits:
                        self.domains[bit] = pins["clk"][0]

    def clock_of(self, net):
        """A clock through buffers: the net that it begins with."""
        while self.drivers.get(net, ("",))[0] == "$buf":
            net = self.drivers[net][1]
        return net

    def reached(self):
        """By domain, the nets that its registers, memories or pins reach through logic."""
        sources, users = {}, {}
        for net, domain in self.domains.items():
            sources.setdefault(domain if isinstance(domain, str) else self.clock_of(domain), []).append(net)
        for memory, outputs in self.reads:
            if memory in self.memories:  # else it is a table that nothing writes
                sources.setdefault(self.clock_of(self.memories[memory]), []).extend(outputs)
        for place, (inputs, _) in enumerate(self.logic):
            for net in inputs:
                users.setdefault(net, []).append(place)
        result = {}
        for domain, nets in sources.items():
            found, passed, todo = set(nets), set(), list(nets)
            while todo:
                for place in users.get(todo.pop(), ()):
                    if place not in passed:
                        passed.add(place)
                        fresh = [net for net in self.logic[place][1] if net not in found]
                        found.update(fresh)
                        todo += fresh
            result[domain] = found
        return result

    def mixed(self):
        """Registers, and inputs of vendor's cells, that take signals of another clock: {name: how many other domains}."""
        reached = self.reached()
        found = {}
        for name, clock, inputs in self.registers:
            bits = {bit for bit in inputs if not isinstance(bit, str)}
            others = sum(d != self.clock_of(clock) and not bits.isdisjoint(nets) for d, nets in reached.items())
            if others:
                found[name] = others
        return found

    def glitching(self):
        """Synchronisers whose input is not straight from registers, pins or ports."""
        found = []
        for name, _, inputs in self.registers:
            for net in inputs if name.endswith("/crossing") else ():
                while net not in self.domains and self.drivers.get(net, ("",))[0] in STRAIGHT:
                    net = self.drivers[net][1]
                if net not in self.domains:
                    found.append(name)
        return found
