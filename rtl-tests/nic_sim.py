#!/usr/bin/env python3
"""Build the simulated card, bin/weir-nic-sim: weir_card Verilated, with the program around it (rtl-tests/nic-sim).

    rtl-tests/nic_sim.py                    build/nic-sim/..., then bin/weir-nic-sim
    rtl-tests/nic_sim.py --contexts 4096    a smaller table: quicker to build and to start

`weir nic-sim` runs it (docs/src/nic-sim.md). It is built again only when a source changed.
"""

import argparse
import shutil
import subprocess
import sys

import runner

HERE = runner.ROOT / "rtl-tests" / "nic-sim"
BUILD = runner.BUILD.parent / "nic-sim"


def boot_rom():
    """The card's boot ROM as hexadecimal words: the program reads it when it starts."""
    if not shutil.which("riscv64-unknown-elf-gcc"):
        print("no RISC-V compiler: the simulated card has no boot ROM, its CPU stays in reset", file=sys.stderr)
        return None
    subprocess.run(["make", "-s", "-C", runner.ROOT / "firmware", "image"], stdout=subprocess.DEVNULL, check=True)
    BUILD.mkdir(parents=True, exist_ok=True)
    return shutil.copy(runner.ROOT / "build" / "firmware" / "boot.hex", BUILD / "boot.hex")


def build(contexts, rom):
    """The program; its sources are those of the card and all of HERE."""
    runner.verilator_environment()
    folder = BUILD / f"contexts{contexts}"
    folder.mkdir(parents=True, exist_ok=True)
    buckets = 1 << 15 if contexts > 4096 else 1 << 10
    flags = ["-O3", "--x-assign", "fast", "--x-initial", "fast", "--quiet", "-Wno-fatal", "-Wno-lint", "-Wno-style"]
    flags += ["--no-assert", f"-GContexts={contexts}", f"-GBuckets={buckets}"]
    flags += [f'-GRomFile="{rom}"'] if rom else []
    flags += [
        "-CFLAGS",
        f"-std=c++17 -I{runner.ROOT}/firmware/include",
        "-MAKEFLAGS",
        "OPT_FAST=-O2\\ -march=native OPT_GLOBAL=-O2",
    ]
    design = runner.sources("weir_nic_sim", [*runner.SOURCE_DIRS, HERE])
    sources = [*design, *runner.with_kernels(design), HERE / "clock.vlt", *HERE.glob("*.cpp")]
    command = [*runner.PROGRAM, *flags, "--Mdir", folder, "--prefix", "Vtop"]
    command += ["--top-module", "weir_nic_sim", *sources, "-o", "weir-nic-sim"]
    with (folder / "build.log").open("w") as log:
        if subprocess.run(command, stdout=log, stderr=log).returncode:
            sys.exit(f"the simulated card does not build:\n{(folder / 'build.log').read_text()[-4000:]}")
    return folder / "weir-nic-sim"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--contexts", type=int, default=1 << 14, metavar="N", help="flows that its table holds")
    args = parser.parse_args()
    program = build(args.contexts, boot_rom())
    target = runner.ROOT / "bin" / "weir-nic-sim"
    target.parent.mkdir(exist_ok=True)
    # Copied aside and renamed: one that runs keeps its file.
    fresh = target.with_suffix(".new")
    shutil.copy2(program, fresh)
    fresh.replace(target)


if __name__ == "__main__":
    main()
