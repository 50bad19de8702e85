"""Values of packed structs, fields as (name, bits) from the highest to the lowest, as the packages declare them."""

FRAME_USER = [("wire_length", 20), ("timestamp", 64)]
END = [("addr", 128), ("port", 16)]
END_FILTER = [("value", END), ("mask", END)]
DIGEST_ENTRY = [
    ("enable", 1),
    ("a", END_FILTER),
    ("b", END_FILTER),
    ("protocol", 8),
    ("protocol_mask", 8),
    ("vlans", 24),
    ("vlans_mask", 24),
]
SLICE_HEAD = [
    ("reserved", 264),
    ("bytes", 16),
    ("wire_length", 32),
    ("port", 8),
    ("timestamp", 64),
    ("number", 64),
    ("slice", 64),
]


def width(kind):
    return kind if isinstance(kind, int) else sum(width(inner) for _, inner in kind)


def pack(kind, values):
    """The number that stands for {field: value}; fields not given are 0."""
    result = 0
    for name, inner in kind:
        value = values.get(name, 0)
        result = result << width(inner) | (value if isinstance(inner, int) else pack(inner, value or {}))
    return result


def unpack(kind, number):
    values = {}
    for name, inner in reversed(kind):
        part = number & ((1 << width(inner)) - 1)
        number >>= width(inner)
        values[name] = part if isinstance(inner, int) else unpack(inner, part)
    return values
