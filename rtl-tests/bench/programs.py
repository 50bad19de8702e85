"""Programs for the card's CPU: rtl-tests/firmware, compiled and loaded as the host does it."""

import shutil
import subprocess
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
PROGRAMS = ROOT / "rtl-tests" / "firmware"
COMPILER = shutil.which("riscv64-unknown-elf-gcc")


def build(name, folder=None):
    """The bytes of rtl-tests/firmware/<name>.c for the execution area."""
    folder = folder or Path.cwd()
    elf, image = folder / f"{name}.elf", folder / f"{name}.bin"
    flags = [
        "-std=c11",
        "-O2",
        "-Wall",
        "-Wextra",
        "-Werror",
        "-march=rv32im_zicsr",
        "-mabi=ilp32",
        "-ffreestanding",
        "-nostdlib",
    ]
    sources = [PROGRAMS / "start.S", PROGRAMS / f"{name}.c"]
    include = ROOT / "firmware" / "include"
    subprocess.run([COMPILER, *flags, "-I", include, "-T", PROGRAMS / "link.ld", *sources, "-o", elf], check=True)
    subprocess.run([COMPILER.replace("gcc", "objcopy"), "-O", "binary", elf, image], check=True)
    return image.read_bytes()


async def load(host, image, place=0):
    await host.write("system.load_address", place)
    for i in range(0, len(image), 4):
        await host.write("system.load_write", int.from_bytes(image[i : i + 4].ljust(4, b"\0"), "little"))
