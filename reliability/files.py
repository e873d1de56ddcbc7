"""Damaged files of tables: read as an independent reader reads them, or refused in one line."""

import io
import re
import sys
import tempfile
import zipfile
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import polars as pl
from scipy import io as scipy_io
from scipy import sparse
from tests.io.test_mutations import mutate

from declip import Intervals, read_table, write_table
from declip.io import TableFileError
from reliability import oracle
from reliability.children import limit_memory, supervised

WIDE = 'sample,iron,zinc,lead\ns1,<0.05,12,3\ns2,0.3,>40,0.1-0.5\ns3,NA,1e-3,7\n"s,4",1,2,-\n'
COMMA = "Probe;Eisen;Zink\nö1;<0,05;12\nö2;0,3;>40,5\nö3;;0,1-0,5\nö4;2,5;1,25\n"
LONG = "row;column;value\na;x;1,5\na;y;<2\nb;x;3,25\nb;y;>0,5\nc;x;4\n"
BARE = "1.5,2,3\n4,5.25,6\n7,8,>9.5\n2,3,4\n"


@dataclass(frozen=True)
class Text:
    """A text file and what is true of it."""

    content: str
    separator: str = ","
    decimal: str = "."
    encoding: str | None = None
    newline: str = "\n"

    def raw(self):
        return self.content.replace("\n", self.newline).encode(self.encoding or "utf-8")


TEXTS = {
    "wide.csv": Text(WIDE),
    "crlf.csv": Text(WIDE, newline="\r\n"),
    "accents.csv": Text(WIDE.replace("iron", "fér")),
    "comma.csv": Text(COMMA, ";", ","),
    "windows.csv": Text(COMMA, ";", ",", "cp1252"),
    "utf16.csv": Text(COMMA, ";", ",", "utf-16"),
    "long.csv": Text(LONG, ";", ","),
    "tabs.tsv": Text(WIDE.replace(",", "\t").replace('"s\t4"', "s4"), "\t"),
    "bare.csv": Text(BARE),
}
CELLS = Intervals.from_table(np.array([[1.5, 5.0, 2.0], [2.25, np.nan, 0.5]]), ceiling=5)


def _excel(folder):
    return write_table(CELLS, folder / "seed.xlsx").read_bytes()


def _npz(folder):
    return write_table(CELLS, folder / "seed.npz").read_bytes()


def _sparse_npz(folder):
    file = io.BytesIO()
    sparse.save_npz(file, sparse.random_array((6, 5), density=0.4, format="csr", rng=0))
    return file.getvalue()


def _parquet(folder):
    file = io.BytesIO()
    pl.DataFrame({"id": ["a", "b"], "x": ["<1", "2"], "y": [1.5, None]}).write_parquet(file)
    return file.getvalue()


def _market(table, symmetry="general"):
    def made(folder):
        file = io.BytesIO()
        scipy_io.mmwrite(file, table, symmetry=symmetry)
        return file.getvalue()

    return made


_SQUARE = np.array([[1.5, 2.0, -3.0], [2.0, 4.0, 0.25], [-3.0, 0.25, 6.0]])
BINARY = {
    "book.xlsx": _excel,
    "book inside.xlsx": _excel,
    "arrays.npz": _npz,
    "arrays inside.npz": _npz,
    "sparse inside.npz": _sparse_npz,
    "table.parquet": _parquet,
    "sparse.mtx": _market(sparse.coo_array(_SQUARE)),
    "dense.mtx": _market(_SQUARE[:2]),
    "symmetric.mtx": _market(_SQUARE, "symmetric"),
}
NAMES = [*TEXTS, *BINARY]


def damaged_tables(count, resume=False):
    """Damage so many files, over all formats, and return what came of reading them."""
    each = -(-count // len(NAMES))
    totals = sum(
        (supervised("reliability.files", name, each, resume=resume) for name in NAMES), Counter()
    )
    return {
        "files": sum(totals.values()),
        "formats": len(NAMES),
        "refused in one line": totals["refused"],
        "read as by an independent reader": totals["same"],
        "silent differences": totals["different"],
        "other exceptions": totals["other"],
        "crashes": totals["crash"],
        "hangs": totals["hang"],
    }


def main(name, start, stop):
    """Read the damaged files of one format, and print what came of each."""
    limit_memory()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, f"table{Path(name).suffix}")
        raw = TEXTS[name].raw() if name in TEXTS else BINARY[name](Path(folder))
        path.write_bytes(raw)
        assert outcome(name, path) == "same", outcome(name, path)
        before = _found(read_table(path).intervals)
        for i in range(start, stop):
            path.write_bytes(damaged(name, raw, np.random.default_rng((NAMES.index(name), i))))
            print(i, outcome(name, path, before), flush=True)


def damaged(name, raw, rng):
    """Return the file with a few bytes changed, or those of one of the parts that it packs."""
    change = mutate if rng.random() < 0.5 else _touched
    if "inside" not in name:
        return change(raw, rng)
    with zipfile.ZipFile(io.BytesIO(raw)) as file:
        parts = {member: file.read(member) for member in file.namelist()}
    worth = [n for n in parts if not re.search(r"theme|docProps|styles", n)]
    chosen = worth[rng.integers(len(worth))]
    parts[chosen] = change(parts[chosen], rng)
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as file:
        for member, data in parts.items():
            file.writestr(member, data)
    return out.getvalue()


def _touched(raw, rng):
    """Return the file with one byte dropped, doubled, exchanged with the next or replaced.

    What is replaced becomes a byte of the same file: such damage is the likeliest to be read.
    """
    at = int(rng.integers(len(raw) - 1))
    one, two, other = raw[at : at + 1], raw[at + 1 : at + 2], int(rng.integers(len(raw)))
    between = [b"", one * 2, two + one, raw[other : other + 1]][rng.integers(4)]
    return raw[:at] + between + raw[at + 1 + (between == two + one) :]


def outcome(name, path, before=None):
    """Return what declip makes of a file: refused, same, other, or different and why.

    What the other reader refuses may be read as what the file held ``before`` it was damaged.
    """
    try:
        table = read_table(path)
    except TableFileError as error:
        clear = str(error).startswith(str(path)) and str(error).isprintable()
        return "refused" if clear and len(str(error)) < 600 else f"other {error!r}"
    except Exception as error:
        return f"other {error!r}"
    found = _found(table.intervals)
    try:
        expected = _EXPECTED[path.suffix](name, path, table)
    except oracle.Refused as reason:
        if found == before:
            return "same"
        return f"different: refused by the other reader: {reason}"
    if found == expected:
        return "same"
    wrong = {k: (found.get(k), expected.get(k)) for k in found | expected}
    wrong = {k: pair for k, pair in wrong.items() if pair[0] != pair[1]}
    return f"different: {str(wrong)[:300]!r}"


def _found(cells):
    """Return the cells by their labels, or by their numbers where there are none."""
    rows, cols, lower, upper = cells.triplets()
    names = [
        np.arange(n) if labels is None else labels
        for n, labels in zip(cells.shape, (cells.row_labels, cells.col_labels), strict=True)
    ]
    return {
        (i, str(names[0][i]), j, str(names[1][j])): (float(low), float(high))
        for i, j, low, high in zip(rows.tolist(), cols.tolist(), lower, upper, strict=True)
    }


def _of_text(name, path, table):
    given, data = TEXTS[name], path.read_bytes()
    encoding = _encoding(given, path)
    try:
        found = oracle.records(data, given.separator, encoding)
    except oracle.Refused:  # two lines that are left may agree in another separator
        found = oracle.records(data, table.format.separator, encoding)
    if given.separator.encode() not in data:
        found = oracle.records(data, table.format.separator, encoding)
    return _of_records(found, table, given.decimal)


def _encoding(given, path):
    """Return the encoding of a text; what has lost its mark is no longer UTF-16."""
    if given.encoding == "utf-16" and path.read_bytes()[:2] in (b"\xff\xfe", b"\xfe\xff"):
        return "utf-16"
    return None


def _of_records(found, table, decimal="."):
    form = table.format
    names = [str(j) for j in range(len(found[0]))]
    if form.header:
        names, found = found[0], found[1:]
    kept = [j for j, name in enumerate(names) if name or any(r[j] for r in found)]
    names, found = [names[j] for j in kept], [[r[j] for j in kept] for r in found]
    if len(set(names)) < len(names):
        raise oracle.Refused("two columns of one name")
    if form.layout == "long":
        return _long(names, found, form, decimal)
    return _wide(names, found, form, decimal, table.plan.roles.aside)


def _wide(names, found, form, decimal, aside):
    label = None if form.rows is None else names.index(form.rows)
    columns = [j for j in range(len(names)) if j != label and names[j] not in aside]
    cells = {}
    for i, record in enumerate(found):
        for k, j in enumerate(columns):
            bounds = oracle.cell(record[j], decimal)
            if bounds is not None:
                row = str(i) if label is None else record[label]
                cells[i, row, k, names[j] if form.header else str(k)] = bounds
    return cells


def _long(names, found, form, decimal):
    where = [names.index(n) for n in (form.rows, form.columns, form.values)]
    rows, cols, cells = {}, {}, {}
    for record in found:
        row, col, text = (record[j] for j in where)
        i, j = rows.setdefault(row, len(rows)), cols.setdefault(col, len(cols))
        bounds = oracle.cell(text, decimal)
        if bounds is not None:
            if (i, row, j, col) in cells:
                raise oracle.Refused("a cell twice")
            cells[i, row, j, col] = bounds
    return cells


def _of_excel(name, path, table):
    return _of_records(oracle.excel_records(path), table)


def _of_market(name, path, table):
    cells, shape = oracle.market(path.read_bytes())
    if tuple(shape) != table.intervals.shape:
        raise oracle.Refused("another shape")
    return {(i, str(i), j, str(j)): bounds for (i, j), bounds in cells.items()}


def _of_npz(name, path, table):
    arrays = oracle.npz(path)
    if "indptr" in arrays:
        full = _csr(arrays)
    elif {"lower", "upper"} <= arrays.keys() and "table" not in arrays:
        low, high = np.asarray(arrays["lower"], float), np.asarray(arrays["upper"], float)
        full = {w: (low[w], high[w]) for w in np.ndindex(low.shape)}
        full = {w: b for w, b in full.items() if not (np.isnan(b[0]) or b == (-np.inf, np.inf))}
    else:
        two = [a for n, a in sorted(arrays.items()) if n == "table" or a.ndim == 2]
        if len(two) != 1:
            raise oracle.Refused("no table")
        full = {w: (two[0][w],) * 2 for w in np.ndindex(two[0].shape) if not np.isnan(two[0][w])}
    return {(i, str(i), j, str(j)): tuple(map(float, b)) for (i, j), b in full.items()}


def _csr(arrays):
    ptr, idx, data = (arrays[n].tolist() for n in ("indptr", "indices", "data"))
    cells = {}
    for i in range(len(ptr) - 1):
        for k in range(ptr[i], ptr[i + 1]):
            if (i, idx[k]) in cells:
                raise oracle.Refused("a cell twice")
            cells[i, idx[k]] = (data[k], data[k])
    return cells


def _of_parquet(name, path, table):
    names, found = oracle.parquet(path)
    text = [["" if x is None else str(x) for x in record] for record in found]
    return _of_records([names, *text], table)


_EXPECTED = {
    ".csv": _of_text,
    ".tsv": _of_text,
    ".xlsx": _of_excel,
    ".mtx": _of_market,
    ".npz": _of_npz,
    ".parquet": _of_parquet,
}

if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))
