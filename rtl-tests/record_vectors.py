#!/usr/bin/env python3
"""Records with chosen and random field values, from the layouts in weir_records.

record_vectors.py            write vectors.txt and frame_vectors.txt in host/record/tests, which the Rust tests read
record_vectors.py --check    exit 1 if a committed file is stale
"""

import random
import sys
from pathlib import Path

import weir_records as records

VECTORS = Path(__file__).resolve().parent.parent / "host" / "record" / "tests" / "vectors.txt"
FRAME_VECTORS = VECTORS.with_name("frame_vectors.txt")
COMMITTED_SEED = 1
COMMITTED_RANDOM = 4  # for each layout, beside the chosen patterns


def fields_of(kind, continuation):
    """(name, bytes of an element, elements, is an integer) of the header and the content, in order of bytes."""
    return [(name, size, count, integer) for name, _, size, count, integer in records.HEADER] + [
        (name, size, count, integer) for name, _, size, count, integer in records.LAYOUTS[(kind, continuation)]
    ]


def fill(kind, continuation, byte):
    """One record as {field: value}; `byte` is called for every byte of content and of the free header fields."""
    values = {}
    for name, size, count, integer in fields_of(kind, continuation):
        elements = [bytes(byte() for _ in range(size)) for _ in range(count)]
        if integer:
            elements = [int.from_bytes(element, "little") for element in elements]
        values[name] = elements if count > 1 else elements[0]
    values["kind"] = int(kind)
    values["version_lane"] = records.VERSION << 4 | values["version_lane"] & 0xF
    mark = int(records.Flag.CONTINUATION)
    values["flags"] = values["flags"] | mark if continuation else values["flags"] & ~mark
    return values


def cases(seed, count):
    """(kind, continuation, {field: value}): zeros, ones, counting bytes and `count` random records per layout."""
    source = random.Random(seed)
    for kind, continuation in records.LAYOUTS:
        counting = iter(range(1, 256))
        patterns = [lambda: 0, lambda: 255, lambda counting=counting: next(counting)]
        for byte in patterns + [lambda: source.randrange(256)] * count:
            yield kind, continuation, fill(kind, continuation, byte)


def frame_headers(seed, count):
    """{field: value} of frame headers: the same patterns."""
    source = random.Random(seed)
    counting = iter(range(1, 256))
    for byte in [lambda: 0, lambda: 255, lambda: next(counting)] + [lambda: source.randrange(256)] * count:
        rows = [
            (name, integer, bytes(byte() for _ in range(size))) for name, _, size, _, integer in records.FRAME_HEADER
        ]
        yield {name: int.from_bytes(data, "little") if integer else data for name, integer, data in rows}


def rust_debug(name, fields, values):
    """The content as Rust's {:?} prints it."""

    def show(value):
        return f"[{', '.join(str(v) for v in value)}]" if isinstance(value, (bytes, list)) else str(value)

    return f"{name} {{ {', '.join(f'{n}: {show(values[n])}' for n, *_ in fields)} }}"


def vectors():
    """Text of the committed file: bytes, header fields and content of a record on each line."""
    lines = [
        "# Made by rtl-tests/record_vectors.py; columns: 64 bytes, flags, lane, arg, sequence, flow, time, content"
    ]
    for kind, continuation, values in cases(COMMITTED_SEED, COMMITTED_RANDOM):
        data = records.build(kind, continuation, **values)
        header = [values["flags"], values["version_lane"] & 0xF, values["arg"], values["sequence"], values["flow"]]
        debug = rust_debug(kind.name.title() + "More" * continuation, records.LAYOUTS[(kind, continuation)], values)
        columns = [data.hex(), *header, values["time"], debug]
        lines.append("\t".join(str(column) for column in columns))
    return "\n".join(lines) + "\n"


def frame_vectors():
    """Text of the committed file: bytes and content of a frame header on each line."""
    lines = ["# Made by rtl-tests/record_vectors.py; columns: 64 bytes, content"]
    for values in frame_headers(COMMITTED_SEED, COMMITTED_RANDOM):
        debug = rust_debug("FrameHeader", records.FRAME_HEADER, values)
        lines.append(f"{records.build_frame_header(**values).hex()}\t{debug}")
    return "\n".join(lines) + "\n"


def main():
    for path, text in [(VECTORS, vectors()), (FRAME_VECTORS, frame_vectors())]:
        if path.exists() and path.read_text() == text:
            continue
        if "--check" in sys.argv:
            sys.exit(f"stale: {path}; run make fmt")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


if __name__ == "__main__":
    main()
