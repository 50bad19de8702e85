"""The unit file of docs/systemd, as systemd reads it."""

import shutil
import subprocess

import pytest
from test_serve import PATIENCE, ROOT, WEIR

UNIT = ROOT / "docs" / "systemd" / "weir.service"


def test_systemd_takes_the_unit(tmp_path):
    if not shutil.which("systemd-analyze"):
        pytest.skip("systemd-analyze is not here: apt-get install systemd")
    # It is refused when the program that it starts is not there.
    text = UNIT.read_text()
    assert text.count("/usr/local/bin/weir ") == 1
    # A signal ends it with status 0, which is no failure to systemd.
    assert "\nRestart=always\n" in text
    unit = tmp_path / UNIT.name
    unit.write_text(text.replace("/usr/local/bin/weir ", f"{WEIR} "))
    run = subprocess.run(["systemd-analyze", "verify", unit], capture_output=True, text=True, timeout=PATIENCE)
    # What it says of other units is not this one's.
    own = [line for line in (run.stdout + run.stderr).splitlines() if "weir" in line]
    assert run.returncode == 0 and not own, run.stdout + run.stderr
