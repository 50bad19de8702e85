"""Packed structures of the hardware's packages as dictionaries: pins of such types are plain numbers in a simulation."""

import math
import re
from functools import cache
from pathlib import Path

RTL = Path(__file__).resolve().parents[2] / "hw" / "rtl"


@cache
def package(name):
    """Structures of a package and of those it imports: {type: [(field, width or type, count), ...]}, highest first."""
    return _package(name)[1]


@cache
def _package(name):
    text = re.sub(r"//.*", "", (RTL / f"{name}.sv").read_text())
    constants, types = {}, {}
    for imported in re.findall(r"import (\w+)::\*;", text):
        for known, given in zip((constants, types), _package(imported), strict=True):
            known.update(given)
    for constant, value in re.findall(r"localparam int (\w+) = ([\w ']+);", text):
        constants[constant] = int(value.replace("_", "")) if value.replace("_", "").isdigit() else constants.get(value)
    arrays = {}
    for body in re.finditer(r"typedef\s+(enum|struct packed|logic|\w+_t(?=\s*\[))(.*?)\b(\w+)\s*;"
                            r"(?=\s*(?:typedef|endpackage|func|local))", text, re.S):  # fmt: skip
        kind, inside, alias = body.groups()
        width = r"\[([^\]:]+):0\]"
        sizes = [_size(high, constants) for high in re.findall(width, inside)] if "{" not in inside else []
        if kind == "struct packed":
            types[alias] = []
            for base, dimensions, field in re.findall(r"(\w+)\s*((?:\[[^\]]+\]\s*)*)\s(\w+);", inside):
                counts = [_size(high, constants) for high in re.findall(width, dimensions)]
                if base in arrays:
                    base, more = arrays[base]
                    counts += more
                elif base == "logic":
                    base = counts.pop() if counts else 1
                types[alias].append((field, base, math.prod(counts)))
        elif kind.endswith("_t"):
            arrays[alias] = (kind, sizes)
        else:
            found = re.search(width, inside)
            types[alias] = _size(found[1] if found else "", constants)
    return constants, types


def _size(high, constants):
    if not high:
        return 1
    found = re.fullmatch(r"\s*(\w+)\s*(?:-\s*(\d+))?\s*", high)
    top = int(found[1]) if found[1].isdigit() else constants[found[1]]
    return top - int(found[2] or 0) + 1


def width(name, kind="weir_pkg"):
    """Bits of a type."""
    types = package(kind)
    if isinstance(name, int):
        return name
    if isinstance(types[name], int):
        return types[name]
    return sum(width(base, kind) * count for _, base, count in types[name])


def unpack(name, value, kind="weir_pkg"):
    """A number as the structure's fields; structures inside are dictionaries, arrays lists from element 0 on."""
    types = package(kind)
    if isinstance(name, int) or isinstance(types[name], int):
        return value & ((1 << width(name, kind)) - 1)
    fields = {}
    for field, base, count in reversed(types[name]):
        bits = width(base, kind)
        elements = []
        for _ in range(count):
            elements.append(unpack(base, value, kind))
            value >>= bits
        fields[field] = elements if count > 1 else elements[0]
    return fields


def pack(name, fields, kind="weir_pkg"):
    """The number for fields; those left out are 0."""
    types = package(kind)
    if isinstance(name, int) or isinstance(types[name], int):
        return fields & ((1 << width(name, kind)) - 1)
    unknown = set(fields) - {field for field, _, _ in types[name]}
    if unknown:
        raise ValueError(f"{name} has no {', '.join(sorted(unknown))}")
    value = 0
    for field, base, count in types[name]:
        given = fields.get(field, 0)
        empty = {} if isinstance(types.get(base), list) else 0
        elements = given if isinstance(given, list) else [given or empty] + [empty] * (count - 1)
        for element in reversed(elements):
            value = value << width(base, kind) | pack(base, element or empty, kind)
    return value
