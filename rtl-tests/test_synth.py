"""The level counter of hw/synth against netlists of known depth, and the report's check against changed numbers."""

import json
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "hw" / "synth"))

import synth  # noqa: E402
from fields import Names, group  # noqa: E402
from netlist import Netlist  # noqa: E402

# Netlists put together from primitives: what the counter must say of each is exact.
PRIMITIVES = """
module chain(input clk, input d, output q);  // three LUTs, one of them through MUXF7: 3 levels
  wire s, a, b, m, c;
  FDRE start(.C(clk), .CE(1'b1), .R(1'b0), .D(d), .Q(s));
  LUT1 #(.INIT(2'b01)) l0(.I0(s), .O(a));
  LUT1 #(.INIT(2'b01)) l1(.I0(a), .O(b));
  MUXF7 mux(.I0(b), .I1(1'b0), .S(s), .O(m));
  LUT1 #(.INIT(2'b01)) l2(.I0(m), .O(c));
  FDRE finish(.C(clk), .CE(1'b1), .R(1'b0), .D(c), .Q(q));
endmodule
module carry(input clk, input d, output q);  // LUT, chain of 6 of 8 bits, LUT: 3 levels, 6 carry bits
  wire s, a, c;
  wire [3:0] low, lowsum, high, highsum;
  FDRE start(.C(clk), .CE(1'b1), .R(1'b0), .D(d), .Q(s));
  LUT1 #(.INIT(2'b01)) l0(.I0(s), .O(a));
  CARRY4 c0(.CI(1'b0), .CYINIT(1'b0), .DI(4'b0), .S({3'b0, a}), .O(lowsum), .CO(low));
  CARRY4 c1(.CI(low[3]), .CYINIT(1'b0), .DI(4'b0), .S(4'b0), .O(highsum), .CO(high));
  LUT1 #(.INIT(2'b01)) l1(.I0(highsum[1]), .O(c));
  FDRE finish(.C(clk), .CE(1'b1), .R(1'b0), .D(c), .Q(q));
endmodule
module above(input clk, input d, output q);  // the operand of bit 3 does not reach bit 1's sum: 0 levels to q
  wire s;
  wire [3:0] o, co;
  FDRE start(.C(clk), .CE(1'b1), .R(1'b0), .D(d), .Q(s));
  CARRY4 c0(.CI(1'b0), .CYINIT(1'b0), .DI(4'b0), .S({s, 3'b0}), .O(o), .CO(co));
  FDRE finish(.C(clk), .CE(1'b1), .R(1'b0), .D(o[1]), .Q(q));
endmodule
module enable(input clk, input d, output q);  // two levels to the clock enable
  wire s, a, b;
  FDRE start(.C(clk), .CE(1'b1), .R(1'b0), .D(d), .Q(s));
  LUT1 #(.INIT(2'b01)) l0(.I0(s), .O(a));
  LUT1 #(.INIT(2'b01)) l1(.I0(a), .O(b));
  FDRE finish(.C(clk), .CE(b), .R(1'b0), .D(d), .Q(q));
endmodule
module loop(input clk, input d, output q);
  wire a, b;
  LUT2 #(.INIT(4'h8)) l0(.I0(d), .I1(b), .O(a));
  LUT1 #(.INIT(2'b01)) l1(.I0(a), .O(b));
  FDRE finish(.C(clk), .CE(1'b1), .R(1'b0), .D(b), .Q(q));
endmodule
module latch(input g, input d, output q);
  LDCE hold(.G(g), .GE(1'b1), .CLR(1'b0), .D(d), .Q(q));
endmodule
module recur(input clk, input d, output q, output r);  // q: two levels to itself; r: fed by q, no loop
  wire a, b, c;
  LUT2 #(.INIT(4'h6)) l0(.I0(q), .I1(d), .O(a));
  LUT1 #(.INIT(2'b01)) l1(.I0(a), .O(b));
  FDRE self(.C(clk), .CE(1'b1), .R(1'b0), .D(b), .Q(q));
  LUT1 #(.INIT(2'b01)) l2(.I0(b), .O(c));
  FDRE other(.C(clk), .CE(1'b1), .R(1'b0), .D(c), .Q(r));
endmodule
module table_read(input clk, input [4:0] a, input d, output q);  // a LUT RAM that is read is a level; LUT, RAM: 2
  wire [4:0] s;
  wire x, o;
  FDRE r0(.C(clk), .CE(1'b1), .R(1'b0), .D(a[0]), .Q(s[0]));
  LUT1 #(.INIT(2'b01)) l0(.I0(s[0]), .O(x));
  RAM32X1D m(.WCLK(clk), .WE(1'b1), .D(d), .A0(1'b0), .A1(1'b0), .A2(1'b0), .A3(1'b0), .A4(1'b0),
    .DPRA0(x), .DPRA1(1'b0), .DPRA2(1'b0), .DPRA3(1'b0), .DPRA4(1'b0), .DPO(o));
  FDRE finish(.C(clk), .CE(1'b1), .R(1'b0), .D(o), .Q(q));
endmodule
"""

# Through the whole flow: sizes whose best depth is known, and memories that must be inferred.
DESIGN = """
package p;
  typedef struct packed {logic [3:0] x; logic [35:0] y;} word_t;
endpackage
module whole import p::*; (
  input wire logic clk, input p::word_t i, input wire logic [11:0] a, output logic parity, output logic [63:0] sum,
  output logic [71:0] big, output logic [35:0] little, output logic behind
);
  word_t word;
  logic [63:0] left, right;
  (* ram_style = "ultra" *) logic [71:0] ultra [4096];
  (* ram_style = "block" *) logic [35:0] block [1024];
  logic [71:0] big_0;
  always_ff @(posedge clk) begin
    word <= i;
    parity <= ^word.y;  // 36 inputs: 2 levels
    left <= {left[62:0], a[0]}; right <= {right[62:0], a[1]};
    sum <= left + right;  // LUT and chain: 2 levels, 64 carry bits
    ultra[a] <= {32'd0, i}; big_0 <= ultra[a]; big <= big_0;
    block[a[9:0]] <= i[35:0]; little <= block[a[9:0]];
    behind <= ^little;
  end
endmodule
"""


@pytest.fixture(scope="session")
def primitives(tmp_path_factory):
    folder = tmp_path_factory.mktemp("primitives")
    (folder / "p.v").write_text(PRIMITIVES)
    commands = ["read_verilog -lib +/xilinx/cells_sim.v", f"read_verilog {folder}/p.v", "blackbox =A:whitebox"]
    synth.yosys([*commands, f"write_json {folder}/p.json"], folder / "log")
    modules = json.loads((folder / "p.json").read_text())["modules"]
    return {name: Netlist(module) for name, module in modules.items() if name in PRIMITIVES and module["cells"]}


def depth(netlist):
    (path,) = netlist.worst(1, ports=False)
    return path.levels, path.carry, path.start, path.end


def test_levels_of_known_chains(primitives):
    assert depth(primitives["chain"]) == (3, 0, "s", "q")
    assert depth(primitives["carry"]) == (3, 6, "s", "q")
    assert depth(primitives["enable"]) == (2, 0, "s", "q.CE")
    assert depth(primitives["table_read"])[:2] == (2, 0)


def test_a_carry_bit_reaches_only_what_is_above_it(primitives):
    assert [p.levels for p in primitives["above"].worst(9, ports=False)] == []
    assert primitives["carry"].resources()["CARRY8"] == 1


def test_loops_latches_recurrences(primitives):
    assert sorted(primitives["loop"].loops) == ["a", "b"]
    assert primitives["chain"].loops == []
    assert primitives["latch"].resources()["latches"] == 1
    assert primitives["recur"].recurrences() == {"q": (2, 0)}


@pytest.fixture(scope="session")
def whole(tmp_path_factory):
    folder = tmp_path_factory.mktemp("whole")
    (folder / "whole.sv").write_text(DESIGN)
    top = synth.Top("whole")
    commands = [c.replace(f"{synth.RTL}", str(folder)) for c in synth.script(top, folder, "xcup")]
    synth.yosys(commands, folder / "log")
    module = json.loads((folder / "netlist.json").read_text())["modules"]["whole"]
    return Netlist(module, Names(f"--top whole {folder}/whole.sv"))


def test_levels_of_a_synthesised_design(whole):
    paths = {group(p.end): p for p in whole.worst(50, ports=False)}
    assert (paths["parity"].levels, paths["parity"].carry) == (2, 0)
    assert paths["parity"].start.startswith("word.y[")
    assert paths["sum"].levels == 2
    assert paths["sum"].carry == 64
    assert whole.levels_behind_ram() == 2
    assert whole.loops == []


def test_memories_are_named_and_counted(whole):
    resources = whole.resources()
    assert (resources["URAM288"], resources["latches"], resources["DSP"]) == (1, 0, 0)
    assert resources["RAMB36"] + resources["RAMB18"] == 1
    assert whole.memories()["ultra"] == {"URAM288": 1}


def test_latch_in_the_source_is_found_as_latch_or_loop(tmp_path):
    (tmp_path / "bad.sv").write_text(
        "module bad(input wire logic g, d, output logic q); always_comb if (g) q = d; endmodule\n"
    )
    commands = [c.replace(f"{synth.RTL}", str(tmp_path)) for c in synth.script(synth.Top("bad"), tmp_path, "xcup")]
    synth.yosys(commands, tmp_path / "log")
    netlist = Netlist(json.loads((tmp_path / "netlist.json").read_text())["modules"]["bad"])
    assert netlist.resources()["latches"] or netlist.loops == ["q"]


def line(**changes):
    result = dict.fromkeys(synth.COLUMNS, 100) | {"levels": 5, "port levels": 4, "RAM levels": 1, "loop levels": 3}
    result |= {"id": "m", "parameters": "default", "latches": 0, "combinational loops": [], "memories": {}}
    path = {"levels": 5, "carry": 0, "start": "a", "end": "b"}
    return result | {"paths": [path], "port paths": [path], "loops": [["a", 3, 0]]} | changes


def test_check_accepts_what_was_committed():
    committed = synth.report(["m"], [line()], [], [])
    assert synth.regressions([line()], [], committed) == []
    assert synth.regressions([line(LUT=110, FF=90)], [], committed) == []
    assert synth.unacceptable(line()) == []


def test_what_a_run_leaves_out_stays_in_the_report():
    memory = {"queue": {"RAMB36E2": 1}, "contexts": {"URAM288": 4}}
    both = [line(id="a", memories=memory, loops=[["x", 2, 7]]), line(id="weir_fifo/small", LUT=7)]
    routed = {"id": "a", "parameters": "default", "MHz": 200.0, "LUT": 1, "FF": 1, "DP16KD": 0, "critical": ""}
    ids = ["a", "weir_fifo/small"]
    committed = synth.report(ids, both, [line(memories=memory)], [routed])
    assert synth.report(ids, [], [], [], committed) == committed
    renewed = synth.report([*ids, "new"], [both[1] | {"LUT": 8}, line(id="new")], [], [], committed)
    rows = synth.table(renewed, "| module | parameters | LUT")
    assert {name: row["LUT"] for name, row in rows.items()} == {"a": "100", "weir_fifo/small": "8", "new": "100"}
    assert synth.report(["a"], [], [], [], renewed) == synth.report(["a"], both[:1], [line(memories=memory)], [routed])


@pytest.mark.parametrize(
    "changes",
    [{"LUT": 140}, {"FF": 140}, {"levels": 6}, {"RAMB36": 111}, {"parameters": "W=2"}, {"id": "new"}],
    ids=lambda c: "-".join(c),
)
def test_check_finds_regressions(changes):
    assert synth.regressions([line(**changes)], [], synth.report(["m"], [line()], [], []))


@pytest.mark.parametrize(
    "changes",
    [{"latches": 1}, {"combinational loops": ["x"]}, {"levels": 9}, {"RAM levels": 6}, {"loops": [["a", 9, 0]]}],
    ids=lambda c: "-".join(c),
)
def test_check_refuses_whatever_was_committed(changes):
    assert synth.unacceptable(line(**changes))


def test_what_is_no_longer_synthesised_is_told():
    committed = synth.report(["m"], [line()], [], [])
    assert synth.regressions([], [], committed, {"m"}) == []
    assert synth.regressions([], [], committed, {"n"})


def test_changed_sources_are_synthesised(tmp_path, monkeypatch):
    """All whose files, parameters or place in the record differ, and of the others no more than the sample."""
    monkeypatch.setattr(synth, "ROOT", tmp_path)
    monkeypatch.setattr(synth, "SOURCES", tmp_path / "sources.json")
    (tmp_path / "hw").mkdir()
    tops = [synth.Top("weir_fifo", str(n)) for n in range(9)]
    for n, _ in enumerate(tops):
        (tmp_path / "hw" / f"{n}.sv").write_text("module m; endmodule")
    results = [{"id": top.id, "files": [f"{tmp_path}/hw/{n}.sv", "/elsewhere.v"]} for n, top in enumerate(tops)]
    synth.SOURCES.write_text(json.dumps(synth.sources_of(tops, results)))
    assert len(synth.changed(tops, "1")) == synth.SAMPLE
    (tmp_path / "hw" / "4.sv").write_text("module m; wire w; endmodule")
    tops[6].parameters = {"Width": 3}
    tops.append(synth.Top("weir_skid"))
    found = synth.changed(tops, "1")
    assert {tops[4].id, tops[6].id, tops[9].id} <= {top.id for top in found}
    assert len(found) == 3 + synth.SAMPLE


def test_fmax_that_falls_is_a_regression():
    routed = {"id": "m", "parameters": "default", "MHz": 200.0, "LUT": 1, "FF": 1, "DP16KD": 0, "critical": ""}
    committed = synth.report(["m"], [line()], [], [routed])
    assert synth.regressions([line()], [routed], committed) == []
    assert synth.regressions([line()], [routed | {"MHz": 170.0}], committed)


def test_flows_that_do_not_fit_are_told():
    memory = {"memories": {"contexts": {"URAM288": synth.PART["URAM288"]}, "queue": {"RAMB36E2": 1, "RAMB18E2": 3}}}
    assert "| **all** | **1280** | **3** |" in synth.budget([memory])[0]
    assert synth.budget([memory])[1] == []
    assert synth.budget([memory, memory])[1]
