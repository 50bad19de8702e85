"""mutate.py: it changes what it should and nothing else, and tells killed from stillborn from survived."""

import mutate
import pytest

SOURCE = """
module m #(parameter int Width = 8) (input wire logic clk, input wire logic [7:0] a, output logic [7:0] q);
  localparam int Half = Width / 2;
  logic [7:0] held;  // a + b
  wire same = a == held;
  if (Width < 2) begin : gen_bad
    $error("Width must be at least 2");
  end
  always_comb begin
    q = held;
    case (a[1:0])
      2'd0: q = a + 1;
      2'd1: q = same ? held : a;
      default: q = ~a;
    endcase
    for (int i = 0; i < 8; i++) q[i] |= a[7-i] && !held[2];
  end
  always_ff @(posedge clk) begin
    if (a[6:3] != 0) held <= q;
  end
`ifndef SYNTHESIS
  always_ff @(posedge clk) assert (a != 8'd3);
`endif
endmodule
"""


@pytest.fixture
def path(tmp_path, monkeypatch):
    monkeypatch.setattr(mutate, "ROOT", tmp_path)
    monkeypatch.setattr(mutate, "RTL", tmp_path)
    file = tmp_path / "m.sv"
    file.write_text(SOURCE)
    return file


def changes(path):
    return {(m.kind, *m.lines()) for m in mutate.mutants_of(path)}


@pytest.mark.parametrize(
    ("kind", "line", "after"),
    [
        ("forward", 5, "wire same = a != held;"),
        ("operator", 12, "2'd0: q = a - 1;"),
        ("constant", 12, "2'd0: q = a + 2;"),
        ("constant", 12, "2'd3: q = a + 1;"),
        ("statement", 12, "2'd0: ;"),
        ("forward", 13, "2'd1: q = 1'b0 ? held : a;"),
        ("forward", 13, "2'd1: q = !(same) ? held : a;"),
        ("operator", 14, "default: q = a;"),
        ("operator", 16, "for (int i = 0; i < 8; i++) q[i] |= a[7-i] || !held[2];"),
        ("operator", 16, "for (int i = 0; i < 8; i++) q[i] &= a[7-i] && !held[2];"),
        ("operator", 16, "for (int i = 0; i < 8; i++) q[i] |= a[7-i] && held[2];"),
        ("select", 16, "for (int i = 0; i < 8; i++) q[i] |= a[7-i] && !held[3];"),
        ("select", 11, "case (a[2:1])"),
        ("condition", 19, "if (1'b1) held <= q;"),
        ("select", 19, "if (a[7:4] != 0) held <= q;"),
        ("statement", 19, "if (a[6:3] != 0) ;"),
    ],
)
def test_makes(path, kind, line, after):
    assert (kind, line, after) in {(k, n, b) for k, n, _, b in changes(path)}


def test_case_labels_change_places(path):
    kinds = {(k, b) for k, _, _, b in changes(path)}
    assert ("case", "2'd1: q = a + 1; 2'd0: q = same ? held : a;") in kinds


def test_leaves_alone_what_tests_cannot_see(path):
    lines = {line for _, line, _, _ in changes(path)}
    assert lines == {5, 10, 11, 12, 13, 14, 16, 19}


def test_lines_keep_their_numbers_and_names_tell_mutants_apart(path):
    found = mutate.mutants_of(path)
    assert all(m.source().count("\n") == SOURCE.count("\n") for m in found)
    assert len({m.name for m in found}) == len(found)


def test_a_seed_draws_the_same_sample_over_all_classes(path):
    found = mutate.mutants_of(path)
    kinds = {m.kind for m in found}
    drawn = mutate.sample(found, len(kinds), 3)
    assert {m.kind for m in drawn} == kinds
    assert drawn == mutate.sample(found, len(kinds), 3)
    assert drawn != mutate.sample(found, len(kinds), 4)


class FakeTree:
    """Refuses, lets pass or fails a source by what stands in it."""

    def __init__(self, path, refuse="", fail="", same=False):
        self.path, self.refuse, self.fail, self.same = path.parent, refuse, fail, same
        self.now = path.read_text()

    def write(self, _path, text):
        self.now = text

    def run(self, _words, _seconds):
        return (1, "") if self.fail and self.fail in self.now else (0, "")

    def verilate(self, _module, folder, _flags):
        if folder:
            (folder / "m.cpp").write_text("" if self.same else self.now)
        return (1, "%Error") if self.refuse and self.refuse in self.now else (0, "")


def judged(path, argued=None, **tree):
    mutant = next(m for m in mutate.mutants_of(path) if "held <= q" in m.source() and "a - 1" in m.source())
    fake = FakeTree(path, **tree)
    outcome = mutate.judge(fake, mutant, [mutate.Command("m", ["test"])], argued or {})
    assert fake.now == SOURCE, "the tree is as it was"
    return outcome.result, mutant


def test_outcomes(path):
    assert judged(path, refuse="a - 1")[0] == "stillborn"
    assert judged(path, fail="a - 1")[0] == "killed"
    assert judged(path, same=True)[0] == "stillborn"
    result, mutant = judged(path)
    assert result == "survived"
    assert judged(path, argued={("m", *mutant.lines()[1:]): "why"})[0] == "argued"


def test_a_command_that_fails_without_a_mutant_kills_none(path):
    mutant = mutate.mutants_of(path)[0]
    command = mutate.Command("m", ["test"])
    assert mutate.judge(FakeTree(path, fail="module m"), mutant, [command], {}).result == "survived"
    assert not command.passes


def test_survivors_fail_the_run(path):
    mutant = mutate.mutants_of(path)[0]
    killed, survived = mutate.Outcome(mutant, "killed"), mutate.Outcome(mutant, "survived")
    assert mutate.summary([killed] * 95 + [survived] * 5)
    assert not mutate.summary([killed] * 94 + [survived] * 6)


def test_a_small_sample_fails_when_chance_does_not_explain_it():
    assert mutate.enough(20, 0) and mutate.enough(17, 3) and not mutate.enough(16, 4)
    assert mutate.enough(190, 10) and not mutate.enough(189, 11)
