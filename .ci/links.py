#!/usr/bin/env python3
"""Check that links between Markdown files lead somewhere and that no page of the book is forgotten.

Addresses on the web are not followed: the check must not depend on the network.
"""

import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
BOOK = ROOT / "docs" / "src"
FENCE = re.compile(r"^(```|~~~).*?^\1", re.M | re.S)
CODE = re.compile(r"`[^`\n]*`")
LINK = re.compile(r"\]\(([^)\s]+)[^)]*\)")
INCLUDE = re.compile(r"\{\{#include ([^}:]+)[^}]*\}\}")


def prose(path):
    return CODE.sub("", FENCE.sub("", path.read_text(encoding="utf-8")))


def anchors(path):
    """Ids of the headings, as GitHub and mdBook form them."""
    found = set()
    for heading in re.findall(r"^#+ +(.*)$", FENCE.sub("", path.read_text(encoding="utf-8")), re.M):
        base = re.sub(r"[^\w\- ]", "", heading.strip().lower()).replace(" ", "-")
        name, n = base, 0
        while name in found:
            n += 1
            name = f"{base}-{n}"
        found.add(name)
    return found


def broken(path):
    """Links of one file that lead nowhere."""
    for target in LINK.findall(prose(path)):
        if re.match(r"[a-z]+:", target):
            continue
        name, _, anchor = target.partition("#")
        file = (path.parent / name).resolve() if name else path
        if not file.exists():
            yield f"{path.relative_to(ROOT)}: {target}: no such file"
        elif anchor and file.suffix == ".md" and anchor not in anchors(file):
            yield f"{path.relative_to(ROOT)}: {target}: no such heading"


def main():
    listing = subprocess.run(
        ["git", "ls-files", "-co", "--exclude-standard", "*.md"], cwd=ROOT, capture_output=True, text=True, check=True
    )
    pages = [ROOT / name for name in listing.stdout.split() if (ROOT / name).exists()]
    problems = [problem for page in pages for problem in broken(page)]
    listed = {(BOOK / target).resolve() for target in LINK.findall((BOOK / "SUMMARY.md").read_text())}
    included = {(page.parent / name.strip()).resolve() for page in pages for name in INCLUDE.findall(page.read_text())}
    for page in BOOK.rglob("*.md"):
        if page.name != "SUMMARY.md" and page.resolve() not in listed | included:
            problems.append(f"{page.relative_to(ROOT)}: not in SUMMARY.md")
    if problems:
        sys.exit("\n".join(problems))
    print(f"{len(pages)} pages, links lead somewhere")


if __name__ == "__main__":
    main()
