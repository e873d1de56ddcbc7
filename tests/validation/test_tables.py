"""Tables of every kind become the same observed cells, or a message that names the cell."""

import datetime as dt
from decimal import Decimal

import numpy as np
import pandas as pd
import polars as pl
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from numpy.testing import assert_array_equal

from declip.validation import check_bounds, table_to_triplets

NAN, INF = np.nan, np.inf
TABLE = np.array([[1.0, NAN, 0.0], [NAN, -2.0, 3.5]])
FORMATS = ["csr", "csc", "coo", "lil", "dok", "bsr", "dia"]


def assert_same_cells(cells, other):
    for field in ("rows", "cols", "values"):
        assert_array_equal(getattr(cells, field), getattr(other, field))
    assert cells.shape == other.shape


def as_coo(X, dtype=float):
    rows, cols = np.nonzero(~np.isnan(X))
    return sp.coo_array((X[rows, cols].astype(dtype), (rows, cols)), shape=X.shape)


small_tables = arrays(
    float,
    st.tuples(st.integers(1, 6), st.integers(1, 6)),
    elements=st.floats(-9, 9) | st.just(NAN),
).filter(lambda X: not np.isnan(X).all())


def test_nan_is_missing_and_cells_are_in_row_major_order():
    cells = table_to_triplets(TABLE)
    assert_array_equal(cells.rows, [0, 0, 1, 1])
    assert_array_equal(cells.cols, [0, 2, 1, 2])
    assert_array_equal(cells.values, [1.0, 0.0, -2.0, 3.5])
    assert cells.rows.dtype == cells.cols.dtype == np.int32
    assert cells.row_labels is cells.col_labels is cells.order is None


@given(small_tables)
def test_sparse_equals_dense(X):
    dense = table_to_triplets(X)
    for form in ("coo", "csr", "csc"):
        assert_same_cells(table_to_triplets(as_coo(X).asformat(form)), dense)


@given(small_tables)
def test_frames_equal_arrays(X):
    frame = pd.DataFrame(X)
    assert_same_cells(table_to_triplets(frame), table_to_triplets(X))
    frame.columns = [f"c{j}" for j in range(X.shape[1])]
    assert_same_cells(table_to_triplets(pl.from_pandas(frame)), table_to_triplets(X))


@pytest.mark.parametrize("container", [sp.csr_array, sp.csr_matrix])
@pytest.mark.parametrize("form", FORMATS)
def test_every_sparse_format_holds_the_same_cells(form, container):
    X = np.array([[1.0, 0.0], [0.0, 2.0]])
    cells = table_to_triplets(container(X).asformat(form))
    stored = cells.values != 0  # blocks and diagonals also store zeros
    assert_array_equal(cells.values[stored], [1.0, 2.0])
    assert_array_equal(cells.rows[stored], [0, 1])
    assert_array_equal(cells.cols[stored], [0, 1])


def test_a_stored_zero_is_a_value_and_a_stored_nan_is_missing():
    X = sp.coo_array(([0.0, NAN, 3.0], ([1, 0, 0], [0, 0, 1])), shape=(2, 2))
    cells = table_to_triplets(X)
    assert_array_equal(cells.rows, [0, 1])
    assert_array_equal(cells.values, [3.0, 0.0])


def test_zeros_on_a_stored_diagonal_are_values():
    cells = table_to_triplets(sp.dia_array(([[0.0, 1.0, 2.0]], [0]), shape=(3, 3)))
    assert_array_equal(cells.values, [0.0, 1.0, 2.0])
    assert_array_equal(cells.cols, [0, 1, 2])


@pytest.mark.parametrize("dtype", ["f8", "f4", "i4"])
@pytest.mark.parametrize("form", ["coo", "csr"])
def test_duplicated_sparse_entries_are_refused_and_left_as_they_are(form, dtype):
    data = np.array([1, 2, 3], dtype)
    if form == "coo":
        X = sp.coo_array((data, ([0, 1, 0], [1, 0, 1])), shape=(2, 2))
    else:
        X = sp.csr_array((data, [1, 1, 0], [0, 2, 3]), shape=(2, 2))
    with pytest.raises(ValueError, match="row 0, column 1 is given twice, as stored entries 0 and"):
        table_to_triplets(X)
    assert_array_equal(X.data, [1, 2, 3])


def test_huge_sparse_tables_are_never_made_dense():
    X = sp.coo_array(([1.0], ([2**30], [2**30])), shape=(2**31 - 1, 2**31 - 1))
    assert table_to_triplets(X).rows == 2**30


def test_sparse_indices_of_64_bits_are_accepted():
    X = sp.csr_array(np.eye(3))
    X.indices, X.indptr = X.indices.astype(np.int64), X.indptr.astype(np.int64)
    assert table_to_triplets(X).cols.dtype == np.int32


@pytest.mark.parametrize(
    "make",
    [
        np.asarray,
        sp.coo_array,
        pd.DataFrame,
        lambda X: pd.DataFrame(X).astype("Float32"),
        lambda X: pl.DataFrame(X, schema=["a", "b"]),
        lambda X: np.ma.masked_array(X, mask=X == 1),
    ],
)
def test_float32_is_kept(make):
    X = np.array([[1, 2], [3, 4]], np.float32)
    assert table_to_triplets(make(X)).values.dtype == np.float32


@pytest.mark.parametrize("dtype", ["?", "u1", "i8", "f2", "longdouble", object])
def test_other_numbers_become_float64(dtype):
    assert table_to_triplets(np.ones((2, 2), dtype)).values.dtype == np.float64
    assert table_to_triplets(np.ones((2, 2), dtype).tolist()).values.dtype == np.float64


def test_mixed_float_types_of_a_frame_become_float64():
    frame = pd.DataFrame({"a": np.ones(2, np.float32), "b": np.ones(2)})
    assert table_to_triplets(frame).values.dtype == np.float64


@pytest.mark.parametrize("dtype", [float, np.float32, int, bool, object])
def test_masked_cells_are_missing(dtype):
    X = np.ma.masked_array(np.ones((2, 2), dtype), mask=[[True, False], [False, False]])
    cells = table_to_triplets(X)
    assert_array_equal(cells.rows, [0, 1, 1])
    assert_array_equal(cells.values, 1.0)


def test_what_lies_below_a_mask_is_ignored():
    X = np.ma.masked_array([[INF, 1.0], [2.0, 1e200]], mask=[[True, False], [False, True]])
    assert_array_equal(table_to_triplets(X).values, [1.0, 2.0])


def test_the_input_is_left_unchanged():
    X = np.ma.masked_array([[5.0, 1.0]], mask=[[True, False]])
    table_to_triplets(X)
    assert X.data[0, 0] == 5.0


def test_every_kind_of_missing_cell_of_pandas_is_missing():
    frame = pd.DataFrame(
        {
            "int": pd.array([1, None], dtype="Int64"),
            "float": pd.array([1.0, None], dtype="Float64"),
            "bool": pd.array([True, None], dtype="boolean"),
            "object": pd.Series([Decimal(1), pd.NA], dtype=object),
            "none": pd.Series([1, None], dtype=object),
            "nat": pd.Series([1, pd.NaT], dtype=object),
        }
    )
    cells = table_to_triplets(frame)
    assert_array_equal(cells.rows, 0)
    assert_array_equal(cells.values, np.ones(6))


def test_every_kind_of_missing_cell_of_polars_is_missing():
    frame = pl.DataFrame(
        {
            "int": [1, None],
            "float": [1.0, NAN],
            "bool": [True, None],
            "decimal": pl.Series([Decimal("1"), None]),
            "null": pl.Series([None, None], dtype=pl.Null),
        }
    )
    cells = table_to_triplets(frame)
    assert_array_equal(cells.rows, 0)
    assert_array_equal(cells.cols, range(4))


def test_a_sparse_pandas_column_means_what_pandas_means():
    frame = pd.DataFrame({"a": pd.arrays.SparseArray([0.0, 1.0]), "b": [2.0, 3.0]})
    assert_array_equal(table_to_triplets(frame).values, [0.0, 2.0, 1.0, 3.0])


def test_labels_of_pandas_are_kept():
    frame = pd.DataFrame([[1.0, 2.0]], index=["s1"], columns=["CRP", ("a", 1)])
    cells = table_to_triplets(frame)
    assert cells.row_labels.tolist() == ["s1"]
    assert cells.col_labels.tolist() == ["CRP", ("a", 1)]


def test_the_levels_of_pandas_labels_are_kept_as_tuples():
    index = pd.MultiIndex.from_tuples([("a", 1), ("b", 2)])
    frame = pd.DataFrame(np.eye(2), index=index, columns=index)
    cells = table_to_triplets(frame)
    assert cells.row_labels.tolist() == cells.col_labels.tolist() == [("a", 1), ("b", 2)]


def test_default_labels_of_pandas_are_no_labels():
    cells = table_to_triplets(pd.DataFrame(np.eye(2)))
    assert cells.row_labels is cells.col_labels is None


def test_polars_has_column_labels_alone():
    cells = table_to_triplets(pl.DataFrame({"a": [1.0], "b": [2.0]}))
    assert cells.row_labels is None
    assert cells.col_labels.tolist() == ["a", "b"]


def test_a_table_without_observed_cells_can_be_allowed():
    cells = table_to_triplets(np.full((2, 3), NAN), allow_empty=True)
    assert cells.values.size == 0
    assert cells.shape == (2, 3)


BAD_TABLES = {
    "all nan": (np.full((2, 3), NAN), ValueError, r"no observed cell: the \(2, 3\) table"),
    "nothing stored": (sp.csr_array((2, 3)), ValueError, "no observed cell"),
    "no rows": (np.empty((0, 3)), ValueError, r"0 sample\(s\)"),
    "no columns": (np.empty((3, 0)), ValueError, r"0 feature\(s\) \(shape=\(3, 0\)\)"),
    "frame without columns": (pd.DataFrame(index=[1, 2]), ValueError, r"0 feature\(s\)"),
    "1-D": (np.ones(3), ValueError, "Expected 2D array, got 1D array"),
    "Series": (pd.Series([1.0]), ValueError, "Expected 2D array, got 1D array"),
    "3-D": (np.ones((2, 2, 2)), ValueError, "dim 3"),
    "sparse 3-D": (sp.coo_array(np.ones((2, 2, 2))), ValueError, "2D sparse table, got 3"),
    "scalar": (3.0, ValueError, "scalar array"),
    "ragged": ([[1.0, 2.0], [3.0]], ValueError, "inhomogeneous"),
    "complex": (np.array([[1j]]), ValueError, "Complex data not supported"),
    "complex sparse": (sp.csr_array([[1j]]), ValueError, "Complex data not supported"),
    "complex frame": (pd.DataFrame({"z": [1j]}), ValueError, "Complex data not supported.*'z'"),
    "inf": ([[1.0, INF]], ValueError, "1 cell has an infinite value .inf.*row 0, column 1"),
    "sparse inf": (sp.csr_array([[1.0, -INF]]), ValueError, "infinite.*row 0, column 1"),
    "labelled inf": (
        pd.DataFrame({"CRP": [1.0, INF, INF]}, index=["a", "b", "c"]),
        ValueError,
        r"2 cells have an infinite .* row 'b', column 'CRP'; row 'c', column 'CRP'\. Write NaN",
    ),
    "large": ([[1.0, -1e200]], ValueError, r"-1e\+200 at row 0, column 1 \(counting from 0\)"),
    "dates": (np.ones((2, 2), "M8[D]"), TypeError, "X holds dates.*1970-01-02"),
    "durations": (np.ones((2, 2), "m8[s]"), TypeError, "X holds dates or durations.*1 seconds"),
    "masked dates": (np.ma.masked_array(np.ones((1, 1), "M8[ns]")), TypeError, "X holds dates"),
    "date column": (
        pd.DataFrame({"x": [1.0], "day": pd.to_datetime(["2024-05-01"])}),
        TypeError,
        "column 'day' holds dates.*2024-05-01.*drop",
    ),
    "polars dates": (pl.DataFrame({"day": [dt.date(2024, 5, 1)]}), TypeError, "column 'day'.*2024"),
    "durations as objects": (np.array([[np.timedelta64(1, "D")]], object), TypeError, "duration"),
    "date objects": (np.array([[dt.date(2024, 5, 1)]]), TypeError, "column 0 holds datetime.date"),
    "objects": (
        np.array([[1.0, {"foo": "bar"}]], object),
        TypeError,
        "column 1 holds .*'foo'.* at row 0: .*argument must be .* string.* number",
    ),
    "text column": (
        pd.DataFrame({"x": [1.0, 2.0], "city": [None, "Rome"]}),
        ValueError,
        "column 'city' holds text, could not convert string to float: 'Rome' at row 1.*drop it",
    ),
    "polars text": (pl.DataFrame({"city": [None, "Rome"]}), ValueError, "column 'city'.*'Rome'"),
    "categories": (
        pd.DataFrame({"size": pd.Categorical(["S", "M"])}, index=["a", "b"]),
        ValueError,
        "column 'size' holds text.*'S' at row 'a'",
    ),
    "text array": (np.array([["a", "b"]]), ValueError, "column 0 holds text.*'a'"),
    "bytes": (np.array([[b"a"]]), ValueError, "column 0 holds text.*b'a'"),
    "numbers as text": (
        np.array([["1.5"]]),
        ValueError,
        r"'1.5' at row 0\. Convert the column to numbers, for instance",
    ),
    "below detection": ([[1.0, 2.0], [3.0, "<0.05"]], ValueError, "column 1.*'<0.05' at.*floor="),
    "above range": ([["7"], ["> 100"]], ValueError, "column 0.*'> 100' at row 1.*ceiling="),
    "repeated names": (
        pd.DataFrame([[1.0, 2.0]], columns=["a", "a"]),
        ValueError,
        "Two columns are named 'a': rename one of them",
    ),
    "lazy": (pl.LazyFrame({"a": [1.0]}), TypeError, r"X is a lazy frame: call its collect\(\)"),
}


@pytest.mark.parametrize(("X", "error", "message"), BAD_TABLES.values(), ids=BAD_TABLES)
def test_bad_tables_are_refused_by_name(X, error, message):
    with pytest.raises(error, match=message):
        table_to_triplets(X)


def test_the_estimator_is_named_in_the_messages_of_scikit_learn():
    with pytest.raises(ValueError, match=r"minimum of 1 is required by FroCMC"):
        table_to_triplets(np.empty((0, 3)), estimator="FroCMC")


def test_bounds_keep_cells_that_are_bounded_at_all():
    lower = [[1.0, NAN, -INF], [2.0, -INF, 0.5]]
    upper = [[1.0, NAN, INF], [INF, 3.0, 0.7]]
    bounds = check_bounds(lower, upper)
    assert_array_equal(bounds.rows, [0, 1, 1, 1])
    assert_array_equal(bounds.cols, [0, 0, 1, 2])
    assert_array_equal(bounds.lower, [1.0, 2.0, -INF, 0.5])
    assert_array_equal(bounds.upper, [1.0, INF, 3.0, 0.7])
    assert bounds.shape == (2, 3)


def test_bounds_keep_float32_and_labels():
    lower = pd.DataFrame(np.ones((1, 2), np.float32), columns=["a", "b"])
    bounds = check_bounds(lower, lower + 1)
    assert bounds.lower.dtype == bounds.upper.dtype == np.float32
    assert bounds.col_labels.tolist() == ["a", "b"]


@pytest.mark.parametrize(
    ("lower", "upper", "message"),
    [
        ([[1.0]], [[1.0, 2.0]], r"same shape; got \(1, 1\) and \(1, 2\)"),
        ([[1.0, NAN]], [[1.0, 2.0]], "Only one of lower and upper is NaN at row 0, column 1"),
        ([[1.0, INF]], [[1.0, INF]], "lower must be below .inf.*row 0, column 1"),
        ([[1.0, -INF]], [[1.0, -INF]], "upper above -inf.*row 0, column 1"),
        (
            [[2.0, 9.0, 0.0]],
            [[1.0, 5.0, 0.0]],
            r"2 cells do, worst row 0, column 1 .* with 9.0 > 5.0",
        ),
        ([[NAN]], [[NAN]], "missing throughout"),
        ([[-INF]], [[INF]], "missing throughout"),
        ([[1.0, -INF]], [[1.0, 1e200]], r"1e\+200 at row 0, column 1"),
    ],
)
def test_bad_bounds_are_refused_by_name(lower, upper, message):
    with pytest.raises(ValueError, match=message):
        check_bounds(lower, upper)


def test_bounds_with_other_labels_are_refused():
    lower = pd.DataFrame([[1.0, 2.0]], columns=["a", "b"])
    with pytest.raises(ValueError, match="same column labels in the same order"):
        check_bounds(lower, lower[["b", "a"]])


def test_sparse_bounds_are_refused():
    with pytest.raises(TypeError, match="Sparse data was passed"):
        check_bounds(sp.csr_array(np.eye(2)), sp.csr_array(np.eye(2)))
