"""Builds the messages of weir.v1 from proto/ into the package: they have one definition."""

from pathlib import Path

from setuptools import setup
from setuptools.command.build_py import build_py

PROTO = Path(__file__).resolve().parents[2] / "proto"


class BuildWithMessages(build_py):
    """Also generates weir/v1: modules and their types."""

    def run(self):
        super().run()
        from grpc_tools import protoc

        files = sorted((PROTO / "weir" / "v1").glob("*.proto"))
        if not files:
            raise SystemExit(f"{PROTO}: no messages there; install from a clone of Weir: pip install ./host/python")
        well_known = Path(protoc.__file__).parent / "_proto"
        includes = [f"-I{PROTO}", f"-I{well_known}"]
        # An editable install has its modules among the sources.
        out = Path(__file__).resolve().parent if self.editable_mode else Path(self.build_lib)
        outputs = [f"--python_out={out}", f"--pyi_out={out}"]
        if protoc.main(["protoc", *includes, *outputs, *map(str, files)]) != 0:
            raise SystemExit("the messages could not be generated")


setup(cmdclass={"build_py": BuildWithMessages})
