"""What the generators here and of the registers (hw/registers) share: where files are, lines of comments, writing and checking."""

import sys
import textwrap
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
LINE = 120  # widest line of generated sources


def comment(text, indent, mark):
    """Comment lines no wider than LINE."""
    prefix = " " * indent + mark
    return textwrap.wrap(text, LINE, initial_indent=prefix, subsequent_indent=prefix)


def refresh(files):
    """Write the files (name from ROOT: text) that are not as they should be; with --check exit 1 naming them."""
    stale = []
    for name, text in files.items():
        path = ROOT / name
        if path.exists() and path.read_text() == text:
            continue
        if "--check" in sys.argv:
            stale.append(name)
        else:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
            print(f"wrote {name}")
    if stale:
        raise SystemExit(f"stale: {', '.join(stale)}; run make fmt")
