"""Random files of every form are given back: same lines, same order, nothing invented."""

import csv
import os
from dataclasses import dataclass

import numpy as np
import polars as pl
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from declip import read_table, write_table
from declip.io.parsing import parse_cells

NUMBERS = ["234", "0.50", "12", "7.25", "1e-3", "100.0", "3", "0.125"]
LIMITS = ["0.5", "3", "10"]
# How a cell below its limit may look: value, mark; {} is the limit.
BELOW = {
    "sign": ("<{}", None),
    "marked": ("{} U", None),
    "word": ("ND", None),
    "empty": ("", None),
    "yes": ("{}", "TRUE"),
    "letter": ("{}", "U"),
    "condition": ("", "Not Detected"),
}
FINE = {"yes": "FALSE", "letter": "J", "condition": ""}
LONG = os.environ.get("HYPOTHESIS_PROFILE") == "long"
SETTINGS = settings(
    max_examples=int(os.environ.get("DECLIP_RANDOM_FILES", "1000" if LONG else "15")),
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("files")


@dataclass
class Case:
    text: str
    options: dict
    n_lines: int


@st.composite
def files(draw, layout):
    style = draw(st.sampled_from(sorted(BELOW)))
    separator, decimal = draw(st.sampled_from([(",", "."), (";", "."), (";", ","), ("\t", ".")]))
    n, m = draw(st.integers(2, 5)), draw(st.integers(2, 4))
    kinds = draw(
        st.lists(st.sampled_from("eeebbm"), min_size=n * m, max_size=n * m).filter(
            lambda kinds: "e" in kinds
        )
    )
    value = st.tuples(st.sampled_from(NUMBERS), st.sampled_from(LIMITS))
    cells = draw(st.lists(value, min_size=n * m, max_size=n * m))
    two = draw(st.booleans())
    table = [_cell(kind, *cell, style) for kind, cell in zip(kinds, cells, strict=True)]
    make = _long if layout == "long" else _wide
    names, lines, options = make(draw, table, n, m, style, two)
    quoted = draw(st.booleans())
    rows = [names, *lines]
    if decimal == ",":
        rows = [names, *([x.replace(".", ",") for x in line] for line in lines)]
    text = "".join(_line(row, separator, quoted) for row in rows)
    options |= {"separator": separator, "decimal": decimal}
    if draw(st.booleans()) and len(names) > 2:
        text = "A title of words\n" + text
    return Case(text, options, len(lines))


def _cell(kind, number, limit, style):
    """Return value, mark and limit of a cell that is exact, below its limit, or missing."""
    if kind == "m":
        return "n/r" if style == "empty" else "", FINE.get(style, ""), limit
    if kind == "e":
        return number, FINE.get(style, ""), limit if float(number) > float(limit) else ""
    value, mark = BELOW[style]
    return value.format(limit), mark or "", limit


def _needs_limits(style):
    return style in ("word", "empty", "condition")


def _long(draw, table, n, m, style, two):
    keys = ["store", "sku"] if two else ["sample"]
    names = [*keys, "remark", "analyte", "result"]
    marked = style in FINE
    names += ["qualifier"] * marked + ["mdl"] * _needs_limits(style) + ["unit"]
    order = draw(st.permutations(range(n * m)))
    kept = order[: draw(st.integers(max(1, n * m - 3), n * m))]
    if not any(_is_exact(table[k], style) for k in kept):
        kept = order
    lines = []
    for k in kept:
        i, j = divmod(k, m)
        value, mark, limit = table[k]
        key = [f"s{i % 2}", f"k{i // 2}"] if two else [f"s{i}"]
        beside = [mark] * marked + [limit] * _needs_limits(style) + ["mg/L"]
        lines.append([*key, "a, b" if k % 3 == 0 else "", f"x{j}", value, *beside])
    options = {"rows": keys, "columns": "analyte", "values": "result", "missing": ["n/r"]}
    options |= {"qualifier": "qualifier"} if marked else {}
    options |= {"limit": "mdl"} if _needs_limits(style) else {}
    return names, lines, options


def _is_exact(cell, style):
    return cell[0] in NUMBERS and cell[1] in ("", "FALSE", "J")


def _wide(draw, table, n, m, style, two):
    keys = ["site", "sample"] if two else ["sample"]
    marked, limited = style in FINE, _needs_limits(style)
    names, columns = [*keys, "remark"], []
    for j in range(m):
        names += [f"x{j}"] + [f"x{j}_qualifier"] * marked + [f"x{j}_mdl"] * limited
    for i in range(n):
        line = [f"p{i % 2}", f"s{i}"] if two else [f"s{i}"]
        line.append("see note, below" if i % 2 else "")
        for value, mark, limit in table[i * m : (i + 1) * m]:
            line += [value] + [mark] * marked + [limit] * limited
        columns.append(line)
    values = [f"x{j}" for j in range(m)]
    options = {"rows": keys, "values": values, "layout": "wide", "missing": ["n/r"]}
    return names, columns, options


def _line(fields, separator, quoted):
    quote = [quoted or any(s in field for s in (separator, '"')) for field in fields]
    done = [f'"{field}"' if q else field for field, q in zip(fields, quote, strict=True)]
    return separator.join(done) + "\n"


def restored(cells, seed):
    """Return a table as if some of the censored cells had been restored, the rest left."""
    lower, upper = cells.to_bounds()
    rng = np.random.default_rng(seed)
    face = np.where(np.isinf(lower), upper, lower)
    moved = np.isinf(lower) & (rng.random(lower.shape) < 0.5)
    table = np.where(moved, face * rng.uniform(0.1, 0.9, lower.shape), face)
    table[np.isnan(table)] = 99.0  # a guess for what nobody measured
    return table, moved


def fields_of(text, separator):
    return list(csv.reader(text.splitlines(), delimiter=separator))


@SETTINGS
@given(case=files("wide"), seed=st.integers(0, 99))
def test_a_wide_file_comes_back_with_all_that_was_not_restored(folder, case, seed):
    path, out = folder / "t.csv", folder / "o.csv"
    path.write_text(case.text)
    table = read_table(path, **case.options)
    values, moved = restored(table.intervals, seed)
    write_table(values, out, like=table, fill=False, overwrite=True)
    before, after = (p.read_text().split("\n") for p in (path, out))
    assert len(before) == len(after)
    changed = {int(i) for i in np.flatnonzero(moved.any(axis=1))}
    first = len(before) - 1 - case.n_lines
    assert all(
        a == b
        for k, (a, b) in enumerate(zip(before, after, strict=True))
        if k - first not in changed
    )
    lower, upper = table.intervals.to_bounds()
    again = read_table(out, **case.options).intervals.to_bounds()
    kept = ~moved
    if not ((lower < upper) & kept).any():  # with no mark left, a gap beside a limit lies below it
        kept &= ~np.isnan(lower)
    for mine, theirs in zip((lower, upper), again, strict=True):
        np.testing.assert_array_equal(mine[kept], theirs[kept])
    assert (again[0][moved] == again[1][moved]).all()
    assert (again[1][moved] <= upper[moved]).all()


@SETTINGS
@given(case=files("long"), seed=st.integers(0, 99))
def test_a_long_file_comes_back_with_its_lines_and_new_columns(folder, case, seed):
    path, out = folder / "t.csv", folder / "o.csv"
    path.write_text(case.text)
    table = read_table(path, **case.options)
    values, moved = restored(table.intervals, seed)
    flags = np.where(moved, "restored", "exact")
    write_table(values, out, like=table, flags=flags, fill=False, overwrite=True)
    before, after = (p.read_text().split("\n") for p in (path, out))
    assert len(before) == len(after)
    assert all(new.startswith(old) for old, new in zip(before, after, strict=True))
    separator, decimal = case.options["separator"], case.options["decimal"]
    head, *lines = fields_of(out.read_text(), separator)[-case.n_lines - 1 :]
    assert head[-2:] == ["restored", "flag"]
    text = pl.Series([line[-2].replace(decimal, ".") or None for line in lines], dtype=pl.String)
    found = parse_cells(text)
    assert not found.bad.size
    flags = np.array([line[-1] for line in lines])
    assert ((flags == "missing") == np.isnan(found.lower)).all()
    kept = flags == "exact"
    expected = {
        (a, b) for a, b in zip(*(x[~moved] for x in table.intervals.to_bounds()), strict=True)
    }
    assert {(a, b) for a, b in zip(found.lower[kept], found.upper[kept], strict=True)} <= expected
    assert (found.lower[flags == "restored"] == found.upper[flags == "restored"]).all()
    assert (flags == "restored").sum() == moved.sum()
    assert (
        np.isneginf(found.lower).sum() == np.isneginf(table.intervals.to_bounds()[0][~moved]).sum()
    )
