#!/usr/bin/env python3
"""Runs the code of a notebook from top to bottom, in one namespace: notebook.py [--write] FILE.

Cells print, so that outputs are text without noise, and assert what must hold; a Jupyter kernel is not needed. Prints how their
outputs differ from the committed ones, which may be a matter of words; --write puts them into the file.
"""

import contextlib
import difflib
import io
import json
import sys
from pathlib import Path


def run(path, write=False):
    """Differences between committed and printed text, as lines."""
    notebook = json.loads(path.read_text())
    namespace = {"__name__": "__main__"}
    changes = []
    for number, cell in enumerate(notebook["cells"]):
        if cell["cell_type"] != "code":
            continue
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            exec(compile("".join(cell["source"]), f"{path.name}, cell {number}", "exec"), namespace)
        new = printed.getvalue().splitlines(keepends=True)
        old = [line for output in cell["outputs"] for line in output["text"]]
        changes += difflib.unified_diff(old, new, f"cell {number}, committed", f"cell {number}, now")
        cell["outputs"] = [{"name": "stdout", "output_type": "stream", "text": new}] if new else []
    if write:
        path.write_text(json.dumps(notebook, indent=1, ensure_ascii=False) + "\n")
    return changes


if __name__ == "__main__":
    sys.stdout.writelines(run(Path(sys.argv[-1]), "--write" in sys.argv[1:-1]))
