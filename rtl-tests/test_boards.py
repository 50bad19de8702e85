"""The board's constraints and build script against the whole board top, elaborated with open tools: each pattern matches,
each port has its place, and nothing passes between clocks but through the crossings that the constraints name."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "rtl-tests" / "boards"))

import netlist  # noqa: E402

CONSTRAINTS = [f"hw/boards/{name}.tcl" for name in ("common/match", "u250/pins", "u250/timing", "common/crossings")]
# The IP of PCIe and MACs places these.
PLACED_BY_IP = re.compile(r"pcie_[rt]x[pn]|qsfp_[rt]x[pn]")


@pytest.fixture(scope="session")
def board(tmp_path_factory):
    return netlist.elaborate(tmp_path_factory.mktemp("boards") / "weir_u250.json")


@pytest.fixture
def vivado(board, tmp_path):
    """Run scripts against the netlist, without the cells that match `without`."""

    def run(*scripts, without=None, environment=None):
        for name in ("cells", "ports"):
            names = getattr(board, name)
            if without:  # the card's own 200,000 cells are no matter then
                names = [one for one in names if not one.startswith("card/") and not re.fullmatch(without, one)]
            (tmp_path / name).write_text("\n".join(names))
        names = {"WEIR_CELLS": tmp_path / "cells", "WEIR_PORTS": tmp_path / "ports"}
        return subprocess.run(
            ["tclsh", "rtl-tests/boards/vivado.tcl", *scripts],
            cwd=ROOT,
            env={**os.environ, **names, **(environment or {})},
            text=True,
            capture_output=True,
        )

    return run


@pytest.fixture
def hls(tmp_path):
    """Run the script that makes a kernel's IP."""

    def run(*arguments):
        script = ROOT / "hw" / "hls" / "run_hls.tcl"
        command = ["tclsh", ROOT / "rtl-tests" / "boards" / "vitis_hls.tcl", script, *arguments]
        return subprocess.run(command, cwd=tmp_path, text=True, capture_output=True)

    return run


def words(line):
    """A Tcl list without nested lists."""
    return [quoted or plain for quoted, plain in re.findall(r"\{([^{}]*)\}|(\S+)", line)]


def said(run, command):
    assert run.returncode == 0, run.stderr
    return [words(line)[1:] for line in run.stdout.splitlines() if line.startswith(command + " ")]


def test_each_pattern_matches_and_would_be_missed(vivado):
    patterns = [(kind, pattern) for kind, pattern, _ in said(vivado(*CONSTRAINTS), "matched")]
    assert len(patterns) > 30
    for _, pattern in dict.fromkeys(patterns):
        run = vivado(*CONSTRAINTS, without=pattern)
        missed = re.match(r"no \w+ match (\S+): hw/boards/\S+ is out of step", run.stderr)
        assert run.returncode and missed, (pattern, run.stderr)
        # That one, or an earlier one for some of the same.
        assert missed[1].split("\\")[0] == pattern.split("\\")[0], (pattern, missed[1])


def test_each_port_has_one_place(board, vivado):
    run = vivado(*CONSTRAINTS)
    assert run.returncode == 0, run.stderr
    places = re.findall(r"^set_property -dict \{PACKAGE_PIN (\w+)[^}]*\} (?:\\?\{)?([^\s}]+)", run.stdout, re.M)
    pins, ports = [pin for pin, _ in places], [port.strip("{\\") for _, port in places]
    assert len(set(pins)) == len(pins) and len(set(ports)) == len(ports)
    assert sorted(ports) == sorted(port for port in board.ports if not PLACED_BY_IP.match(port))


def test_every_synchroniser_is_constrained(board, vivado):
    matched = {pattern: int(count) for _, pattern, count in said(vivado(*CONSTRAINTS), "matched")}
    crossings = [cell for cell in board.cells if re.search(r"/crossing_reg(\[\d+\])?$", cell)]
    assert len(crossings) > 400
    assert matched[".*/crossing_reg.*"] == len(crossings)


def test_nothing_else_passes_between_clocks(board):
    mixed = board.mixed()
    assert [name for name in mixed if not name.endswith(netlist.CROSSINGS)] == []
    assert board.glitching() == []
    # The search sees what it is to see: every FIFO's pointers and words come from another clock.
    fifos = {name.removesuffix("/async_data") for name, *_ in board.registers if name.endswith("/async_data")}
    assert len(fifos) == 11
    for fifo in fifos:
        for register in ("async_data", "read_sync/crossing", "write_sync/crossing", "m_reset_sync/crossing"):
            assert mixed.get(f"{fifo}/{register}") == 1, f"{fifo}/{register}"


def test_build_script_runs_to_its_end(board, vivado, tmp_path):
    """Against a tool that does nothing: files are there, the cells made are those of the design, constraints match."""
    build = "hw/boards/u250/build.tcl"
    rom = ROOT / "build" / "firmware" / "boot.hex"
    assert rom.exists(), "make firmware"
    assert "VEXRISCV" in vivado(build).stderr
    cpu = tmp_path / "VexRiscv.v"
    cpu.write_text("")
    assert "KERNELS" in vivado(build, environment={"VEXRISCV": str(cpu)}).stderr
    for kernel in ("bursts", "histograms", "talkers"):
        made = tmp_path / kernel / "solution" / "impl" / "ip"
        made.mkdir(parents=True)
        (made / "component.xml").write_text("")
    run = vivado(build, environment={"VEXRISCV": str(cpu), "KERNELS": str(tmp_path)})
    made = {line[line.index("-module_name") + 1] for line in said(run, "create_ip")}
    assert made == {kind for kind, _ in board.vendor_cells} - {"IBUFDS_GTE4", "VexRiscv"}
    read = [word for line in said(run, "read_verilog") for word in line if word != "-sv"]
    expected = [cpu, *(ROOT / "hw" / "rtl").glob("*.sv"), *(ROOT / "hw/boards/common").glob("*.sv")]
    expected += [ROOT / "hw" / "hls" / "weir_kernels.sv", *(ROOT / "hw/boards/u250").glob("*.sv")]
    assert sorted(" ".join(read).split()) == sorted(map(str, expected))
    assert said(run, "write_bitstream")


def test_kernels_are_made_for_the_part_of_the_board(hls):
    board = (ROOT / "hw" / "boards" / "u250" / "build.tcl").read_text()
    (part,) = re.findall(r"^create_project .*-part (\S+)$", board, re.M)
    assert f"-tclargs $kernel {part})" in (ROOT / "docs" / "src" / "bring-up.md").read_text()
    for kernel in ("bursts", "histograms", "talkers"):
        run = hls("-f", "run_hls.tcl", "-tclargs", kernel, part)
        assert said(run, "set_top") == [[f"weir_kernel_{kernel}"]]
        assert said(run, "set_part") == [[part]]
        # What this names is all that a reset of the IP sets back.
        source = (ROOT / "hw" / "hls" / f"weir_kernel_{kernel}.cpp").read_text()
        assert source.count("static weir::Control control;\n#pragma HLS RESET variable = control\n") == 1
        assert said(run, "config_rtl") == [["-reset", "control", "-reset_level", "low"]]
    for arguments in (["bursts"], ["nothing", part], [part, "bursts"]):
        run = hls("-f", "run_hls.tcl", "-tclargs", *arguments)
        assert run.returncode == 2 and "the part of the board" in run.stderr
