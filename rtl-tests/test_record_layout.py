"""The same field values give the same 64 bytes in Python, C and SystemVerilog.

Rust is held to the same vectors by host/record/tests/layout.rs. The C and SystemVerilog sides are small
programs made here from the field lists; what they test are the generated header and package. Both read
records as lines of hexadecimal fields and print bytes, so one build serves any number of records.
"""

import os
import random
import shutil
import subprocess
from pathlib import Path

import pytest
import record_vectors
import weir_records as records

ROOT = Path(__file__).resolve().parent.parent
BUILD = ROOT / "build" / "record-layout"
SEED = int(os.environ.get("WEIR_SEED") or random.randrange(2**32))
RANDOM_RECORDS = 200  # for each layout
RESERVED = {"end", "sequence", "time", "wire"}  # SystemVerilog's words: the package adds an underscore


def layouts():
    """(struct after its prefix, [(field, place in the struct, element bytes, elements)]) of each record; last the frame header."""
    for kind, continuation in records.LAYOUTS:
        fields = []
        for position, (name, size, count, _) in enumerate(record_vectors.fields_of(kind, continuation)):
            fields.append((name, "header." if position < len(records.HEADER) else "", size, count))
        yield kind.name.lower() + ("_more" if continuation else ""), fields
    yield "frame_header", [(name, "", size, count) for name, _, size, count, _ in records.FRAME_HEADER]


def line_of(index, fields, values):
    """`index` and the fields as the programs read them: little-endian integers in hexadecimal, array elements apart."""
    words = []
    for name, *_ in fields:
        elements = values[name] if isinstance(values[name], list) else [values[name]]
        words += [int.from_bytes(e, "little") if isinstance(e, bytes) else e for e in elements]
    return " ".join(f"{word:x}" for word in [index, *words])


def c_program():
    """Reads records, prints their bytes, and exits 1 if weir_le() does not give a field back."""
    out = [
        '#include "weir_records.h"',
        "#include <stdio.h>",
        "#include <stdlib.h>",
        "#include <string.h>",
        "static void field(uint8_t *at, unsigned element, unsigned size)",
        "{",
        "    for (unsigned done = 0; done < size; done += element) {",
        "        char word[65];",
        '        if (scanf("%64s", word) != 1) exit(2);',
        "        size_t digits = strlen(word);",
        "        for (unsigned i = 0; i < element; i++) {",
        "            unsigned value = 0;",
        "            for (unsigned nibble = 2; nibble-- > 0;) {",
        "                size_t back = 2 * i + nibble + 1;",
        "                char text[2] = {back <= digits ? word[digits - back] : '0', 0};",
        "                value = value << 4 | (unsigned)strtoul(text, NULL, 16);",
        "            }",
        "            at[done + i] = (uint8_t)value;",
        "        }",
        "        if (element <= 8 && weir_le(at + done, element) != strtoull(word, NULL, 16)) exit(1);",
        "    }",
        "}",
        "int main(void)",
        "{",
        "    unsigned index;",
        '    while (scanf("%x", &index) == 1) {',
        "        uint8_t bytes[WEIR_RECORD_BYTES];",
        "        switch (index) {",
    ]
    for index, (struct, fields) in enumerate(layouts()):
        out += [f"        case {index}: {{"]
        out += [f"            struct weir_{struct} r = {{0}};"]
        for name, part, size, _ in fields:
            out += [f"            field((uint8_t *)&r.{part}{name}, {size}, sizeof r.{part}{name});"]
        out += ["            memcpy(bytes, &r, sizeof bytes);", "            break;", "        }"]
    out += ["        default:", "            return 2;", "        }"]
    out += ['        for (unsigned i = 0; i < sizeof bytes; i++) printf("%02x", bytes[i]);', '        printf("\\n");']
    return "\n".join([*out, "    }", "    return 0;", "}", ""])


def systemverilog_program():
    """Reads records, packs them into the package's structs and prints the 512 bits."""
    out = [
        "module record_layout_top;",
        "  import weir_records_pkg::*;",
        "  int fd, index, got;",
        "  logic [511:0] bits;",
        "  initial begin",
        '    fd = $fopen("records.txt", "r");',
        '    while ($fscanf(fd, "%h", index) == 1) begin',
        "      case (index)",
    ]
    for index, (struct, fields) in enumerate(layouts()):
        out += [
            f"        {index}: begin",
            f"          {'' if struct == 'frame_header' else 'record_'}{struct}_t r;",
            "          r = '0;",
        ]
        for name, part, size, count in fields:
            place = f"r.{part}{name}" + ("_" if name in RESERVED else "")
            for element in range(count):
                part = f"{place}[{element * size * 8}+:{size * 8}]"
                out += [
                    "          begin",
                    f"            logic [{size * 8 - 1}:0] word;",
                    '            got = $fscanf(fd, "%h", word);',
                    '            if (got != 1) $fatal(1, "fields missing");',
                    f"            {part} = word;",
                    "          end",
                ]
        out += ["          bits = r;", "        end"]
    out += [
        '        default: $fatal(1, "no such layout");',
        "      endcase",
        '      $display("%128h", bits);',
        "    end",
    ]
    return "\n".join([*out, "    $finish;", "  end", "endmodule", ""])


@pytest.fixture(scope="module")
def build_dir():
    shutil.rmtree(BUILD, ignore_errors=True)
    BUILD.mkdir(parents=True)
    return BUILD


@pytest.fixture(scope="module")
def random_records(build_dir):
    """(line for the programs, bytes that Python builds) of every record."""
    print(f"WEIR_SEED={SEED}")
    order, fields = list(records.LAYOUTS), [fields for _, fields in layouts()]
    rows = []
    for kind, continuation, values in record_vectors.cases(SEED, RANDOM_RECORDS):
        index = order.index((kind, continuation))
        rows.append((line_of(index, fields[index], values), records.build(kind, continuation, **values)))
    for values in record_vectors.frame_headers(SEED, RANDOM_RECORDS):
        rows.append((line_of(len(order), fields[-1], values), records.build_frame_header(**values)))
    (build_dir / "records.txt").write_text("\n".join(line for line, _ in rows) + "\n")
    return rows


def compare(rows, printed):
    assert len(printed) == len(rows)
    for (line, expected), got in zip(rows, printed, strict=True):
        assert got == expected, f"WEIR_SEED={SEED}, fields {line}"


def test_python_reads_what_it_builds():
    for kind, continuation, values in record_vectors.cases(SEED, RANDOM_RECORDS):
        assert records.parse(records.build(kind, continuation, **values)) == values, f"WEIR_SEED={SEED}"
    for values in record_vectors.frame_headers(SEED, RANDOM_RECORDS):
        assert records.parse_frame_header(records.build_frame_header(**values)) == values, f"WEIR_SEED={SEED}"


def test_python_names_what_is_wrong():
    with pytest.raises(ValueError, match="64 bytes, got 63"):
        records.parse(bytes(63))
    with pytest.raises(ValueError, match="no record kind 0"):
        records.parse(bytes(64))
    with pytest.raises(ValueError, match="OPEN has no field"):
        records.build(records.Kind.OPEN, colour=1)
    with pytest.raises(ValueError, match="FRAME has no field"):
        records.build_frame_header(colour=1)


def test_c_agrees(build_dir, random_records):
    source, program = build_dir / "layout.c", build_dir / "layout"
    source.write_text(c_program())
    flags = ["-std=c11", "-O1", "-Wall", "-Wextra", "-Wconversion", "-Werror", f"-I{ROOT}/firmware/include"]
    subprocess.run(["gcc", *flags, "-o", program, source], check=True)
    with (build_dir / "records.txt").open() as lines:
        result = subprocess.run([program], stdin=lines, capture_output=True, text=True, check=True)
    compare(random_records, [bytes.fromhex(row) for row in result.stdout.split()])


def test_systemverilog_agrees(build_dir, random_records):
    (build_dir / "record_layout_top.sv").write_text(systemverilog_program())
    package = ROOT / "hw" / "rtl" / "weir_records_pkg.sv"
    command = [ROOT / ".ci" / "verilator.sh", "--binary", "--quiet", "--timescale", "1ns/1ps", "-O1"]
    command += ["-MAKEFLAGS", "OPT_FAST=-O0 OPT_SLOW=-O0 OPT_GLOBAL=-O0", "--Mdir", "obj"]
    subprocess.run([*command, package, "record_layout_top.sv"], cwd=build_dir, check=True)
    result = subprocess.run(["obj/Vweir_records_pkg"], cwd=build_dir, capture_output=True, text=True, check=True)
    rows = [line for line in result.stdout.splitlines() if len(line) == 2 * records.RECORD_BYTES]
    compare(random_records, [bytes.fromhex(row)[::-1] for row in rows])
