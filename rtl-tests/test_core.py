"""hw/weir.core names every source once, packages after what they import."""

import re
from pathlib import Path

HW = Path(__file__).resolve().parent.parent / "hw"


def test_core_file_names_all_sources():
    listed = re.findall(r"^      - (rtl/\S+\.sv)$", (HW / "weir.core").read_text(), re.M)
    assert sorted(listed) == sorted(str(path.relative_to(HW)) for path in (HW / "rtl").glob("*.sv"))
    packages = [Path(name).stem for name in listed if name.endswith("_pkg.sv")]
    for place, package in enumerate(packages):
        used = set(re.findall(r"\bweir_\w*pkg\b", (HW / "rtl" / f"{package}.sv").read_text())) - {package}
        assert used <= set(packages[:place]), package
