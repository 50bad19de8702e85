"""What the generators here and of the registers (hw/registers) share: where files are, lines of comments, enumerations and
bits in Rust, writing and checking."""

import sys
import textwrap
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
LINE = 120  # widest line of generated sources


def comment(text, indent, mark):
    """Comment lines no wider than LINE."""
    prefix = " " * indent + mark
    return textwrap.wrap(text, LINE, initial_indent=prefix, subsequent_indent=prefix)


def camel(name):
    return "".join(part.title() for part in name.split("_"))


def rust_enum(name, doc, rows, kind, number=str):
    """Lines of an enumeration; rows of (name, number, doc)."""
    out = [f"/// {doc}", "#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]", f"#[repr({kind})]"]
    out += [f"pub enum {name} {{"]
    for value, code, what in rows:
        out += [f"    /// {what}", f"    {camel(value)} = {number(code)},"]
    out += ["}", "", f"impl {name} {{"]
    out += ["    /// All values in numeric order.", "    pub const ALL: &'static [Self] = &["]
    out += [f"        Self::{camel(value)}," for value, _, _ in rows]
    out += ["    ];", "", "    /// The value with this number, if there is one."]
    out += [f"    pub const fn from_{kind}(number: {kind}) -> Option<Self> {{", "        match number {"]
    out += [f"            {number(code)} => Some(Self::{camel(value)})," for value, code, _ in rows]
    out += ["            _ => None,", "        }", "    }", ""]
    out += ["    /// The name used in the specification.", "    pub const fn name(self) -> &'static str {"]
    out += ["        match self {"]
    out += [f'            Self::{camel(value)} => "{value}",' for value, _, _ in rows]
    return [*out, "        }", "    }", "}", ""]


def rust_bits(module, doc, rows, kind):
    """Lines of a module of named bits; rows of (name, place, doc)."""
    out = [f"/// {doc}", f"pub mod {module} {{"]
    for bit, place, what in rows:
        out += [f"    /// {what}", f"    pub const {bit}: {kind} = 1 << {place};"]
    out += ["    /// Bits and their names, lowest first.", f"    pub const NAMES: &[({kind}, &str)] = &["]
    out += [f'        ({bit}, "{bit}"),' for bit, _, _ in rows]
    return [*out, "    ];", "}", ""]


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
