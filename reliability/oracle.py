"""Readers of table files that share no code with declip, to say what an accepted file holds.

Slow and strict: only the standard library reads text, MatrixMarket and Excel, NumPy one array, and
pyarrow Parquet. What they refuse must not be read by declip either.
"""

import csv
import io
import math
import re
import zipfile
from xml.etree import ElementTree

import numpy as np

NUMBER = r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?"
LIMIT = re.compile(rf"(<=|>=|=<|=>|<|>|≤|≥|=)?\s*({NUMBER})")
RANGE = re.compile(rf"({NUMBER})\s*(?:-|\u2013|\u2014|\.\.|to)\s*({NUMBER})")
DASHES = {"-", "--", "---", "\u2013", "\u2014", ".", "..", "?", ""}
GONE = DASHES | {
    *("na", "n/a", "n.a.", "n.a", "#n/a", "#na", "<na>", "nan", "null", "none", "nil", "missing"),
    *("nr", "notreported", "notmeasured", "notavailable", "notsampled", "nottested"),
}
MARKED = re.compile(
    rf"(?P<before>[a-z/]{{2,}})?\s*(?P<open>\()?\s*(?P<sign><=|>=|=<|=>|<|>|≤|≥)?\s*(?P<number>{NUMBER})"
    r"\s*(?P<close>\))?(?P<after>\s+e|\s*[a-df-z/][a-z/+-]*)?",
    re.IGNORECASE,
)
AT_MOST = {"<", "<=", "=<", "≤", "nd", "n/d", "bdl", "u"}  # as marks beside a number
AT_LEAST = {">", ">=", "=>", "≥"}
AS_IT_STANDS = {"j", "e"}
BELOW = {"nd", "bdl", "<lod", "lod", "<loq"}


class Refused(Exception):
    """The file holds no table that could be read in one way only."""


def cell(text, decimal=".", floor=None):
    """Return lower and upper bound of a cell, None if it is missing."""
    plain = ("" if text is None else text).strip(" \t\r\n\u00a0").replace("\u2212", "-")
    word = re.sub(r"\s", "", plain.lower())
    if word in GONE:
        return None
    if word in BELOW and floor is not None:
        return -math.inf, floor
    if decimal == ",":
        if "." in plain and re.search(r"[0-9]\.[0-9]", plain):
            raise Refused(f"a point in {text!r}")
        plain = plain.replace(",", ".")
    bounds = _bounds(plain, text)
    if not all(abs(x) <= 1e150 or math.isinf(x) for x in bounds):
        raise Refused(f"too large: {text!r}")
    return bounds


def _bounds(plain, text):
    if match := LIMIT.fullmatch(plain):
        value = float(match[2])
        if math.isinf(value):
            raise Refused(f"infinite: {text!r}")
        sign = match[1] or "="
        low = -math.inf if sign in ("<", "<=", "=<", "≤") else value
        return low, math.inf if sign in (">", ">=", "=>", "≥") else value
    if match := RANGE.fullmatch(plain):
        low, high = float(match[1]), float(match[2])
        if low <= high and math.isfinite(high) and math.isfinite(low):
            return low, high
    if match := MARKED.fullmatch(plain):
        return _marked(match, text)
    raise Refused(f"not a cell: {text!r}")


def _marked(match, text):
    marks = {(match[n] or "").strip().lower() for n in ("before", "sign", "after")} - {""}
    found = [group for group in (AT_MOST, AT_LEAST, AS_IT_STANDS) if marks & group]
    known = marks <= AT_MOST | AT_LEAST | AS_IT_STANDS and bool(match["open"]) == bool(
        match["close"]
    )
    value = float(match["number"])
    if not known or len(found) != 1 or math.isinf(value):
        raise Refused(f"not a cell: {text!r}")
    low = -math.inf if found == [AT_MOST] else value
    return low, math.inf if found == [AT_LEAST] else value


def records(data, separator, encoding):
    """Return the fields of a text file, line by line."""
    for codec in (encoding,) if encoding else ("utf-8", "cp1252"):
        try:
            text = data.decode(codec).removeprefix("\ufeff")
            break
        except UnicodeError:
            continue
    else:
        raise Refused("not text")
    if any((ord(c) < 32 and c not in "\t\r\n") or c in "\x7f\ufeff\ufffd" for c in text):
        raise Refused("controls")
    if encoding is None and codec == "cp1252" and _mixed(data):
        raise Refused("UTF-8 with damaged bytes")
    text = text.replace("\r\n", "\n") if "\n" in text else text.replace("\r", "\n")
    if "\r" in text:
        raise Refused("a carriage return within a line")
    try:
        found = list(csv.reader(io.StringIO(text, newline=""), delimiter=separator, strict=True))
    except csv.Error as error:
        raise Refused(str(error)) from error
    found = [r for r in found if r]
    if not found or len({len(r) for r in found}) != 1:
        raise Refused("lines of different widths")
    return found


def _mixed(data):
    return not data.decode(errors="ignore").isascii()


def excel_records(path, name=None):
    """Return the cells of the first sheet as text."""
    try:
        book = zipfile.ZipFile(path)
        parts = {n: book.read(n) for n in book.namelist()}
        rels = ElementTree.fromstring(parts["xl/_rels/workbook.xml.rels"])
        targets = {r.get("Id"): r.get("Target") for r in rels}
        sheets = [
            e for e in ElementTree.fromstring(parts["xl/workbook.xml"]).iter() if _tag(e) == "sheet"
        ]
        chosen = next(e for e in sheets if name is None or e.get("name") == name)
        key = next(v for k, v in chosen.attrib.items() if k.endswith("}id"))
        strings = _shared(parts.get("xl/sharedStrings.xml"))
        sheet = ElementTree.fromstring(parts["xl/" + targets[key].removeprefix("/xl/")])
        cells = {}
        for element in sheet.iter():
            if _tag(element) == "c":
                place = re.fullmatch(r"([A-Z]{1,3})([0-9]+)", element.get("r", ""))
                if place is None:
                    raise Refused("a cell without a place")
                where = int(place[2]) - 1, _column(place[1])
                if where in cells:
                    raise Refused("a cell twice")
                cells[where] = _excel_cell(element, strings)
    except Refused:
        raise
    except Exception as error:
        raise Refused(repr(error)) from error
    cells = {where: text for where, text in cells.items() if text not in (None, "")}
    if not cells or max(r for r, _ in cells) > 10_000:
        raise Refused("nothing, or far away")
    n, m = (max(w[k] for w in cells) + 1 for k in (0, 1))
    rows = [[cells.get((i, j)) for j in range(m)] for i in range(n)]
    return [["" if c is None else c for c in r] for r in rows if any(c is not None for c in r)]


def _tag(element):
    return element.tag.rpartition("}")[2]


def _column(letters):
    n = 0
    for c in letters:
        n = 26 * n + ord(c) - 64
    return n - 1


def _shared(xml):
    if xml is None:
        return []
    items = [e for e in ElementTree.fromstring(xml) if _tag(e) == "si"]
    return ["".join(t.text or "" for t in e.iter() if _tag(t) == "t") for e in items]


def _excel_cell(element, strings):
    kind = element.get("t", "n")
    if kind not in ("b", "d", "e", "inlineStr", "n", "s", "str"):
        raise Refused(f"a cell of kind {kind!r}")
    if kind == "inlineStr":
        return "".join(t.text or "" for t in element.iter() if _tag(t) == "t")
    value = next((e.text for e in element if _tag(e) == "v"), None)
    if value is None:
        return None
    if kind == "s":
        return strings[int(value)]
    if kind == "e":
        if value.strip() != "#N/A":
            raise Refused("an error in a cell")
        return None
    return str(float(value)) if kind == "n" else value


def market(data):
    """Return a dictionary of the entries of a MatrixMarket file, and its shape."""
    lines = data.replace(b"\r\n", b"\n").split(b"\n")
    head = lines[0].split()
    if len(head) != 5 or [word.lower() for word in head[:2]] != [b"%%matrixmarket", b"matrix"]:
        raise Refused("the head")
    form, field, symmetry = (w.decode(errors="replace").lower() for w in head[2:])
    if field not in ("real", "integer", "double", "unsigned-integer") or form not in (
        "coordinate",
        "array",
    ):
        raise Refused(field)
    sign = {"general": 0, "symmetric": 1, "skew-symmetric": -1}.get(symmetry)
    if sign is None:
        raise Refused(symmetry)
    k = 1
    while k < len(lines) and (lines[k].startswith(b"%") or not lines[k]):
        k += 1
    rest = [line.split() for line in lines[k:] if line.strip(b" \t")]
    try:
        sizes = [int(x) for x in rest[0]]
        entries = [[float(x) for x in line] for line in rest[1:]]
    except (ValueError, IndexError) as error:
        raise Refused(str(error)) from error
    n, m = sizes[:2]
    cells = {}

    def put(i, j, x):
        if (i, j) in cells or not (0 <= i < n and 0 <= j < m):
            raise Refused("twice, or outside")
        cells[i, j] = x

    if form == "coordinate":
        if len(sizes) != 3 or len(entries) != sizes[2] or any(len(e) != 3 for e in entries):
            raise Refused("entries")
        for i, j, x in entries:
            put(int(i) - 1, int(j) - 1, x)
            if sign and i != j:
                put(int(j) - 1, int(i) - 1, sign * x)
    else:
        where = [(i, j) for j in range(m) for i in range(j + (sign < 0) if sign else 0, n)]
        if len(sizes) != 2 or len(where) != len(entries) or any(len(e) != 1 for e in entries):
            raise Refused("entries")
        if sign < 0:
            for i in range(n):
                put(i, i, 0.0)
        for (i, j), (x,) in zip(where, entries, strict=True):
            put(i, j, x)
            if sign and i != j:
                put(j, i, sign * x)
    if not all(abs(x) <= 1e150 for x in cells.values()):
        raise Refused("not finite")
    return {where: (x, x) for where, x in cells.items()}, (n, m)


def npz(path):
    """Return the arrays of an npz file, read by NumPy one at a time."""
    try:
        with zipfile.ZipFile(path) as file:
            return {
                name.removesuffix(".npy"): np.lib.format.read_array(
                    io.BytesIO(file.read(name)), allow_pickle=False
                )
                for name in file.namelist()
            }
    except Exception as error:
        raise Refused(repr(error)) from error


def parquet(path):
    """Return header and rows of a Parquet file, read by pyarrow."""
    from pyarrow import parquet as pq

    try:
        table = pq.read_table(path)
        return table.column_names, [list(r.values()) for r in table.to_pylist()]
    except Exception as error:
        raise Refused(repr(error)) from error
