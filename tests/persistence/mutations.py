"""Files of models, damaged in many ways."""

import io
import json
import re
import struct
import zipfile

import numpy as np

HEADER = "declip.json"


def members(raw):
    """Return the members of a zip, in order."""
    with zipfile.ZipFile(io.BytesIO(raw)) as file:
        return {name: file.read(name) for name in file.namelist()}


def zipped(parts, how=zipfile.ZIP_STORED):
    """Return a zip of (name, bytes) pairs."""
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", how) as file:
        for name, content in parts:
            file.writestr(zipfile.ZipInfo(name, (1980, 1, 1, 0, 0, 0)), content, how)
    return out.getvalue()


def _some_array(parts, rng):
    names = [name for name in parts if name != HEADER]
    return names[rng.integers(len(names))]


def flip_bits(raw, rng):
    out = bytearray(raw)
    for _ in range(rng.integers(1, 9)):
        out[rng.integers(len(out))] ^= 1 << rng.integers(8)
    return bytes(out)


def flip_bits_of_the_records(raw, rng):
    """Damage what the zip says of its members, not the members."""
    out = bytearray(raw)
    starts = [m.start() for m in re.finditer(b"PK(\x01\x02|\x03\x04|\x05\x06)", raw)]
    for _ in range(rng.integers(1, 4)):
        at = starts[rng.integers(len(starts))] + rng.integers(46)
        out[min(at, len(out) - 1)] ^= 1 << rng.integers(8)
    return bytes(out)


def cut_off(raw, rng):
    return raw[: rng.integers(len(raw))]


def cut_out(raw, rng):
    start = rng.integers(len(raw))
    return raw[:start] + raw[start + rng.integers(1, 200) :]


def insert(raw, rng):
    at = rng.integers(len(raw))
    return raw[:at] + rng.bytes(rng.integers(1, 200)) + raw[at:]


def blank(raw, rng):
    start, length = rng.integers(len(raw)), rng.integers(1, 500)
    return raw[:start] + bytes(len(raw[start : start + length])) + raw[start + length :]


def append(raw, rng):
    return raw + rng.bytes(rng.integers(1, 300))


def append_another(raw, rng):
    return raw + zipped([(HEADER, rng.bytes(20))])


def prepend(raw, rng):
    return rng.bytes(rng.integers(1, 300)) + raw


def swap_members(raw, rng):
    parts = members(raw)
    one, other = _some_array(parts, rng), _some_array(parts, rng)
    parts[one], parts[other] = parts[other], parts[one]
    return zipped(parts.items())


def drop_member(raw, rng):
    parts = members(raw)
    del parts[list(parts)[rng.integers(len(parts))]]
    return zipped(parts.items())


def add_member(raw, rng):
    return zipped([*members(raw).items(), ("more.npy", rng.bytes(100))])


def double_member(raw, rng):
    parts = members(raw)
    name = list(parts)[rng.integers(len(parts))]
    pairs = [*parts.items(), (name, parts[name][::-1])]
    import warnings

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # of zipfile: a duplicate name
        return zipped(pairs if rng.random() < 0.5 else pairs[::-1])


def compress(raw, rng):
    return zipped(members(raw).items(), zipfile.ZIP_DEFLATED)


def change_array(raw, rng):
    """Change a byte of an array, with the zip's own checksum made anew."""
    parts = members(raw)
    name = _some_array(parts, rng)
    changed = bytearray(parts[name])
    changed[rng.integers(len(changed))] ^= 1 << rng.integers(8)
    return zipped({**parts, name: bytes(changed)}.items())


def _renumbered(text, rng):
    numbers = list(re.finditer(r"(?<![\w.])-?\d+(\.\d+)?(e[-+]?\d+)?", text))
    found = numbers[rng.integers(len(numbers))]
    other = str(rng.choice([0, 1, -1, 2**31, 2**63, 10**30, 7, 0.5]))
    return text[: found.start()] + other + text[found.end() :]


def change_header(raw, rng):
    """Change a number of the header."""
    parts = members(raw)
    text = _renumbered(parts[HEADER].decode(), rng)
    return zipped({**parts, HEADER: text.encode()}.items())


def change_header_text(raw, rng):
    parts = members(raw)
    changed = bytearray(parts[HEADER])
    changed[rng.integers(len(changed))] = rng.integers(32, 127)
    return zipped({**parts, HEADER: bytes(changed)}.items())


def bomb(raw, rng):
    """Put a member of a quarter of a gigabyte of zeros, compressed, in place of an array."""
    parts = members(raw)
    name = _some_array(parts, rng)
    return zipped({**parts, name: _ZEROS}.items(), zipfile.ZIP_DEFLATED)


_ZEROS = bytes(2**22)


def claim(raw, rng):
    """Let the records of the zip claim sizes that the file does not have."""
    out = bytearray(raw)
    starts = [m.start() for m in re.finditer(b"PK\x01\x02", raw)]
    at = starts[rng.integers(len(starts))]
    size = int(rng.choice([2**32 - 1, 2**31, 2**30, len(raw) + 1]))
    struct.pack_into("<LL", out, at + 20, size, size)
    return bytes(out)


MUTATIONS = [
    *(flip_bits, flip_bits_of_the_records, cut_off, cut_out, insert, blank),
    *(append, append_another, prepend, swap_members, drop_member, add_member, double_member),
    *(compress, change_array, change_header, change_header_text, claim),
]


def forge(raw, rng):
    """Change a number of the header or of an array, with every checksum made anew."""
    from declip.persistence import checksum

    parts = members(raw)
    header = json.loads(parts[HEADER])["header"]
    if rng.random() < 0.5:
        text = json.dumps(header["content"])
        header["content"] = json.loads(_renumbered(text, rng))
    else:
        name = _some_array(parts, rng)
        changed = bytearray(parts[name])
        changed[rng.integers(128, len(changed)) if len(changed) > 128 else 0] = rng.integers(256)
        parts[name] = bytes(changed)
        header["arrays"][name.removesuffix(".npy")]["checksum"] = checksum(bytes(changed))
    canonical = json.dumps(header, sort_keys=True, separators=(",", ":")).encode()
    sealed = json.dumps({"checksum": checksum(canonical), "header": header})
    return zipped({**parts, HEADER: sealed.encode()}.items())


def mutated(raw, rng):
    """Return a damaged file and the name of the damage."""
    how = MUTATIONS[rng.integers(len(MUTATIONS))]
    return how(raw, rng), how.__name__


def seeds(count):
    """Return one generator for each mutation."""
    return [np.random.default_rng(i) for i in range(count)]
