#!/usr/bin/env python3
"""Pack a raw program into a firmware image: image.py PROGRAM.bin IMAGE.wfw VERSION

With --hex PROGRAM.bin PROGRAM.hex it writes the words of a program for $readmemh instead.
"""

import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "rtl-tests"))

import weir_protocol  # noqa: E402


def main():
    if sys.argv[1] == "--hex":
        body = Path(sys.argv[2]).read_bytes()
        body += bytes(-len(body) % 4)
        words = [int.from_bytes(body[i : i + 4], "little") for i in range(0, len(body), 4)]
        Path(sys.argv[3]).write_text("".join(f"{word:08x}\n" for word in words))
        return
    body = Path(sys.argv[1]).read_bytes()
    image = weir_protocol.image(body, int(sys.argv[3], 0))
    if len(image) > weir_protocol.IMAGE_MAX_BYTES:
        raise SystemExit(f"the image has {len(image)} bytes, a slot {weir_protocol.IMAGE_MAX_BYTES}")
    Path(sys.argv[2]).write_bytes(image)


if __name__ == "__main__":
    main()
