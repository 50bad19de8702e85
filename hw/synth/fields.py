"""Names for the bits of registers: `word_q[431]` becomes `word_q.meta.ttl[3]`, read from the source's types."""

import re

from pyslang import driver


class Names:
    """rename(name, bit, width) for netlist.Netlist, of the design that slang makes of its `arguments`."""

    def __init__(self, arguments):
        self.types = {}
        # Types live as long as the compilation that made them.
        self.slang = driver.Driver()
        self.slang.addStandardArgs()
        self.compilation = None
        steps = (
            lambda: self.slang.parseCommandLine("slang -DSYNTHESIS " + arguments),
            self.slang.processOptions,
            self.slang.parseAllSources,
        )
        if all(step() for step in steps):
            self.compilation = self.slang.createCompilation()
        for top in self.compilation.getRoot().topInstances if self.compilation else ():
            self._collect(top.body, "")
        manager = self.slang.sourceManager
        names = (manager.getRawFileName(buffer) for buffer in manager.getAllBuffers())
        self.files = sorted(name for name in names if not name.startswith("<"))

    def _collect(self, scope, prefix):
        for member in scope:
            kind = member.kind.name
            if kind == "Instance":
                self._collect(member.body, f"{prefix}{member.name}.")
            elif kind == "GenerateBlock":
                self._collect(member, f"{prefix}{member.name or member.externalName}.")
            elif kind == "GenerateBlockArray":
                for index, entry in enumerate(member.entries):
                    self._collect(entry, f"{prefix}{member.name}[{index}].")
            elif kind in ("Variable", "Net"):
                self.types[f"{prefix}{member.name}"] = member.type.canonicalType

    def __call__(self, name, bit, width):
        kind, stem = self.types.get(name), name
        while kind is None and stem.endswith("]"):  # an element of an unpacked array
            stem = stem[: stem.rindex("[")]
            kind = self.types.get(stem)
            while kind is not None and kind.kind.name == "FixedSizeUnpackedArrayType":
                kind = kind.elementType.canonicalType
        if kind is None or kind.bitWidth != width:
            return f"{name}[{bit}]" if width > 1 else name
        return name + _leaf(kind, bit)


def _leaf(kind, bit):
    """`.field[bit]` of a packed type."""
    kind = kind.canonicalType
    name = kind.kind.name
    if name == "PackedStructType":
        for field in kind:
            if field.kind.name == "Field" and field.bitOffset <= bit < field.bitOffset + field.type.bitWidth:
                return f".{field.name}{_leaf(field.type, bit - field.bitOffset)}"
    if name == "PackedArrayType":
        element = kind.elementType
        low = min(kind.range.left, kind.range.right)
        return f"[{bit // element.bitWidth + low}]{_leaf(element, bit % element.bitWidth)}"
    return f"[{bit}]" if kind.bitWidth > 1 else ""


def group(label):
    """The register or field that a bit's name belongs to: the same for all its bits and elements."""
    return re.sub(r"\[\d+\]", "", label)
