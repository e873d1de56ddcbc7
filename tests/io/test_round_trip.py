"""What is written is read back: values, intervals, labels and order."""

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from python_calamine import CalamineWorkbook
from scipy import sparse

from declip import Intervals, read_table, write_table
from declip.io import TableFile, TableFormat

KINDS = ["csv", "tsv", "parquet", "xlsx", "npz"]
TEXTS = st.text(
    st.characters(codec="utf-8", exclude_categories=["Cs", "Cc"], exclude_characters="\ufeff"),
    min_size=1,
    max_size=8,
)
NUMBERS = st.floats(-1e100, 1e100, allow_subnormal=False) | st.integers(-99, 99).map(float)
SETTINGS = settings(suppress_health_check=[HealthCheck.too_slow])


@st.composite
def tables(draw):
    n, m = draw(st.integers(1, 6)), draw(st.integers(1, 5))
    cells = draw(st.lists(NUMBERS | st.just(np.nan), min_size=n * m, max_size=n * m))
    values = np.array(cells).reshape(n, m)
    values[0, 0] = draw(NUMBERS)
    rows = draw(st.lists(TEXTS, min_size=n, max_size=n, unique=True))
    cols = draw(st.lists(TEXTS, min_size=m, max_size=m, unique_by=str.casefold))
    return values, np.array(rows, dtype=object), np.array(cols, dtype=object)


def some_table(seed=0, n=7, m=4):
    rng = np.random.default_rng(seed)
    values = rng.lognormal(0, 3, (n, m))
    values[rng.random((n, m)) < 0.2] = np.nan
    values[0] = 1.5
    return pd.DataFrame(
        values, index=[f"s{i}" for i in range(n)], columns=[f"analyte {j}" for j in range(m)]
    )


def as_written(kind, layout, row_labels, col_labels, **form):
    """Return a file as if it had been read, with labels and of a given form."""
    shape = (len(row_labels), len(col_labels))
    cells = Intervals.from_table(np.ones(shape))
    labelled = Intervals(shape, cells.by_row, row_labels, col_labels)
    return TableFile("x", labelled, TableFormat(kind, layout=layout, header=True, **form))


def assert_same(found, values, rows, cols):
    lower, upper = found.intervals.to_bounds()
    np.testing.assert_array_equal(lower, values)
    np.testing.assert_array_equal(upper, values)
    assert found.intervals.row_labels.tolist() == list(rows)
    assert found.intervals.col_labels.tolist() == list(cols)


@SETTINGS
@given(table=tables(), kind=st.sampled_from(KINDS), layout=st.sampled_from(["wide", "long"]))
def test_a_table_read_back_equals_the_table_in_memory(tmp_path_factory, table, kind, layout):
    values, rows, cols = table
    path = tmp_path_factory.mktemp("trip") / f"table.{kind}"
    header = "the row label"
    like = as_written("csv", layout, rows, cols, rows=header)
    if kind == "xlsx":
        values = np.array([float(f"{x:.16G}") for x in values.flat]).reshape(values.shape)
    write_table(values, path, like=like)
    options = {} if kind == "npz" else {"layout": layout, "rows": header}
    if layout == "long" and kind != "npz":
        options |= {"columns": "column", "values": "value"}
    assert_same(read_table(path, **options), values, rows, cols)


@SETTINGS
@given(
    table=tables(),
    separator=st.sampled_from([",", ";", "\t", "|"]),
    decimal=st.sampled_from([".", ","]),
    newline=st.sampled_from(["\n", "\r\n"]),
    encoding=st.sampled_from(["utf-8", "utf-8-sig", "utf-16"]),
)
def test_text_of_every_form_is_read_back_in_that_form(
    tmp_path_factory, table, separator, decimal, newline, encoding
):
    values, rows, cols = table
    path = tmp_path_factory.mktemp("trip") / "table.csv"
    form = {"separator": separator, "decimal": decimal, "newline": newline, "encoding": encoding}
    like = as_written("csv", "wide", rows, cols, rows="labels", **form)
    write_table(values, path, like=like)
    found = read_table(path, layout="wide", rows="labels", separator=separator, decimal=decimal)
    assert_same(found, values, rows, cols)
    assert (found.format.encoding, found.format.newline) == (encoding, newline)


@pytest.mark.parametrize("layout", ["wide", "long"])
@pytest.mark.parametrize("kind", [*KINDS, "txt"])
def test_the_form_is_found_without_being_told(tmp_path, kind, layout):
    frame = some_table()
    path = write_table(frame, tmp_path / f"t.{kind}", layout=layout)
    found = read_table(path)
    lower, _ = found.intervals.to_bounds()
    np.testing.assert_allclose(lower, frame.to_numpy(), rtol=1e-15 if kind == "xlsx" else 0)
    assert found.intervals.row_labels.tolist() == list(frame.index)
    assert found.intervals.col_labels.tolist() == list(frame.columns)
    if kind != "npz":
        assert found.format.layout == layout


@pytest.mark.parametrize("layout", ["wide", "long"])
@pytest.mark.parametrize("kind", ["csv", "parquet", "xlsx", "npz"])
def test_limits_and_ranges_are_read_back(tmp_path, kind, layout):
    inf, nan = np.inf, np.nan
    lower = np.array([[0.1, -inf, 3.5], [-4.0, 7.0, 200.0], [1.5, 2.5, nan]])
    upper = np.array([[0.5, 0.25, 3.5], [-2.0, 7.0, inf], [1.5, inf, nan]])
    cells = Intervals.from_bounds(
        *(pd.DataFrame(x, index=["a", "b", "c"], columns=["x", "y", "z"]) for x in (lower, upper))
    )
    path = write_table(cells, tmp_path / f"t.{kind}", layout=layout)
    found = read_table(path).intervals
    for mine, theirs in zip(cells.to_bounds(), found.to_bounds(), strict=True):
        np.testing.assert_array_equal(theirs, mine)
    assert found.row_labels.tolist() == ["a", "b", "c"]


@pytest.mark.parametrize("decimal", [".", ","])
def test_limits_are_written_with_the_decimal_sign_of_the_file(tmp_path, decimal):
    path = tmp_path / "a.csv"
    path.write_text("sample;iron.2;zinc\ns.1;<0,5;1,25\ns.2;2,5;0,1-0,5\n".replace(",", decimal))
    table = read_table(path)
    write_table(table.intervals, tmp_path / "b.csv", like=table)
    text = (tmp_path / "b.csv").read_text()
    assert text == path.read_text()


def test_a_matrix_market_file_keeps_stored_and_absent_cells(tmp_path):
    table = sparse.random_array((30, 20), density=0.2, rng=np.random.default_rng(0))
    found = read_table(write_table(table, tmp_path / "t.mtx")).intervals
    assert len(found) == table.nnz
    rows, cols, lower, _ = found.triplets()
    np.testing.assert_array_equal(table.toarray()[rows, cols], lower)


def test_a_dense_matrix_market_file_is_read_back(tmp_path):
    values = np.random.default_rng(1).standard_normal((4, 3))
    found = read_table(write_table(values, tmp_path / "t.mtx")).intervals
    np.testing.assert_array_equal(found.to_bounds()[0], values)


def test_scipy_files_of_sparse_tables_are_read(tmp_path):
    table = sparse.csr_array(([1.0, 0.0, 3.0], ([0, 1, 1], [2, 0, 1])), shape=(2, 3))
    sparse.save_npz(tmp_path / "t.npz", table)
    found = read_table(tmp_path / "t.npz", ceiling=3).intervals
    assert (found.shape, found.n_exact, found.n_censored) == ((2, 3), 2, 1)


def test_tables_without_labels_are_read_back_without_labels(tmp_path):
    values = np.array([[1.0, 2.0], [3.0, np.nan]])
    for kind in ("csv", "npz"):
        found = read_table(write_table(values, tmp_path / f"t.{kind}")).intervals
        assert found.row_labels is None
        assert found.col_labels is None
        np.testing.assert_array_equal(found.to_bounds()[0], values)


def test_columns_left_aside_come_back_in_their_place(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text("date,sample,iron,site,zinc\n2020-01-02,s1,1.5,A,<2.5\n2020-02-03,s2,,B,4.5\n")
    table = read_table(path, rows="sample", ignore=["date", "site"])
    filled = np.array([[1.5, 2.0], [9.0, 4.5]])
    write_table(filled, tmp_path / "b.csv", like=table)
    assert (tmp_path / "b.csv").read_text() == (
        "date,sample,iron,site,zinc\n2020-01-02,s1,1.5,A,2.000\n2020-02-03,s2,9.000,B,4.5\n"
    )


def test_long_files_carry_flags_and_bands(tmp_path):
    frame = some_table(1, 3, 2)
    flags = np.where(np.isnan(frame), "missing", "exact")
    band = np.nan_to_num(frame.to_numpy())
    path = tmp_path / "t.csv"
    write_table(frame, path, layout="long", flags=flags, lower=band - 1, upper=band + 1)
    back = pl.read_csv(path)
    assert back.columns == ["row", "column", "value", "flag", "band_lower", "band_upper"]
    assert back["flag"].to_list() == flags.ravel().tolist()
    np.testing.assert_array_equal(back["band_upper"], (band + 1).ravel())
    np.testing.assert_array_equal(read_table(path).intervals.to_bounds()[0], frame.to_numpy())


def test_an_excel_file_carries_flags_and_bands_as_sheets(tmp_path):
    frame = some_table(2, 3, 2)
    flags = np.full(frame.shape, "exact")
    path = write_table(frame, tmp_path / "t.xlsx", flags=flags, lower=frame - 1, upper=frame + 1)
    lower = read_table(path, sheet="lower").intervals.to_bounds()[0]
    np.testing.assert_allclose(lower, frame.to_numpy() - 1, rtol=1e-15)
    sheet = CalamineWorkbook.from_path(str(path)).get_sheet_by_name("flags").to_python()
    assert [line[1:] for line in sheet] == [frame.columns.tolist(), *[["exact"] * 2] * 3]


def test_text_that_looks_like_a_formula_stays_text_in_excel(tmp_path):
    frame = pd.DataFrame([[1.5]], index=["=1+1"], columns=["http://example.org"])
    found = read_table(write_table(frame, tmp_path / "t.xlsx"))
    assert found.intervals.row_labels.tolist() == ["=1+1"]
    assert found.intervals.col_labels.tolist() == ["http://example.org"]


def test_polars_frames_and_float32_are_kept(tmp_path):
    frame = pl.DataFrame(
        {"a": [1.5, None], "b": [2.5, 3.5]}, schema={"a": pl.Float32, "b": pl.Float32}
    )
    found = read_table(write_table(frame, tmp_path / "t.parquet")).intervals
    assert found.dtype == np.float32
    np.testing.assert_array_equal(found.to_bounds()[0], [[1.5, 2.5], [np.nan, 3.5]])


def test_a_long_file_without_header_comes_back_without_one(tmp_path):
    (tmp_path / "a.data").write_text("7\t1\t3\n7\t2\t4\n8\t1\t5\n8\t2\t1\n")
    table = read_table(tmp_path / "a.data", layout="long", header=False)
    write_table(table.intervals, tmp_path / "b.data", like=table)
    assert (tmp_path / "b.data").read_text() == "7\t1\t3\n7\t2\t4\n8\t1\t5\n8\t2\t1\n"
