"""Triplets, cells to look up and choices of rows: checked, or refused with where and why."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_array_equal

from declip import Intervals
from declip.validation import (
    check_cells,
    check_logarithms,
    check_selection,
    check_triplets,
    label_positions,
)


@st.composite
def triplets(draw):
    n_rows, n_cols = draw(st.integers(1, 8)), draw(st.integers(1, 8))
    cells = draw(
        st.lists(st.integers(0, n_rows * n_cols - 1), min_size=1, unique=True, max_size=30)
    )
    rows, cols = np.divmod(np.array(cells), n_cols)
    values = draw(st.lists(st.floats(-9, 9), min_size=len(cells), max_size=len(cells)))
    return rows, cols, np.array(values), (n_rows, n_cols)


@given(triplets())
def test_cells_come_out_sorted_with_their_own_values(given_cells):
    rows, cols, values, shape = given_cells
    cells = check_triplets(rows, cols, values, shape)
    order = np.lexsort((cols, rows))
    assert_array_equal(cells.rows, rows[order])
    assert_array_equal(cells.cols, cols[order])
    assert_array_equal(cells.values, values[order])


@given(triplets())
def test_order_sorts_whatever_was_given_with_the_triplets(given_cells):
    rows, cols, values, shape = given_cells
    cells = check_triplets(rows, cols, values, shape)
    assert_array_equal(values[cells.order], cells.values)


@given(triplets(), st.randoms(use_true_random=False))
def test_a_repeated_cell_is_found_wherever_it_stands(given_cells, random):
    rows, cols, values, shape = given_cells
    again = random.randrange(rows.size)
    order = np.array(random.sample(range(rows.size + 1), rows.size + 1))
    rows, cols, values = (np.append(x, x[again])[order] for x in (rows, cols, values))
    with pytest.raises(ValueError, match=r"given twice.*in all: 1\. .*never summed"):
        check_triplets(rows, cols, values, shape)


def test_indices_are_int32_and_the_shape_is_the_smallest_that_fits():
    cells = check_triplets([2, 0], [1, 4], [1, 2])
    assert cells.rows.dtype == cells.cols.dtype == np.int32
    assert cells.shape == (3, 5)


def test_sorted_arrays_are_not_copied():
    rows, cols = np.arange(3, dtype=np.int32), np.zeros(3, dtype=np.int32)
    values = np.ones(3)
    cells = check_triplets(rows, cols, values)
    assert cells.rows is rows
    assert cells.cols is cols
    assert np.shares_memory(cells.values, values)


@pytest.mark.parametrize(
    ("given_type", "kept"),
    [("f4", "f4"), ("f8", "f8"), ("f2", "f8"), ("i8", "f8"), ("u1", "f8"), ("?", "f8")],
)
def test_float32_is_kept_and_other_numbers_become_float64(given_type, kept):
    cells = check_triplets([1, 0], [0, 0], np.ones(2, given_type))
    assert cells.values.dtype == np.dtype(kept)


def test_pandas_columns_are_accepted():
    long = pd.DataFrame({"user": [1, 0], "item": [0, 2], "stars": [5.0, 3.0]})
    cells = check_triplets(long["user"], long["item"], long["stars"])
    assert_array_equal(cells.values, [3.0, 5.0])


@pytest.mark.parametrize(
    ("rows", "cols", "values", "shape", "error", "message"),
    [
        ([0, 1], [0], [1.0, 2.0], None, ValueError, "equal lengths; got 2, 1 and 2"),
        ([], [], [], None, ValueError, "no triplets"),
        ([[0]], [0], [1.0], None, ValueError, r"rows must be 1-D; got shape \(1, 1\)"),
        ([0], [0], [[1.0]], None, ValueError, r"values must be 1-D; got shape \(1, 1\)"),
        ([0.0], [0], [1.0], None, TypeError, r"rows must hold integers, not float64.*astype\(int"),
        ([0], ["a"], [1.0], None, TypeError, "cols must hold integers.*number the labels first"),
        ([0], [True], [1.0], None, TypeError, "cols must hold integers, not bool"),
        ([0], [0], ["5"], None, TypeError, "values must hold real numbers, not <U1"),
        ([0], [0], [1j], None, TypeError, "values must hold real numbers, not complex128"),
        ([0], [0], np.ones(1, "M8[D]"), None, TypeError, "values must hold real numbers, not date"),
        ([0, -2], [0, 0], [1, 2], None, ValueError, r"rows\[1\] is -2, .* from 0 to 0"),
        ([0, 1], [0, 7], [1, 2], (2, 5), ValueError, r"cols\[1\] is 7.*0 to 4, for shape \(2, 5\)"),
        ([2**31], [0], [1.0], None, ValueError, r"rows\[0\] is 2147483648.*0 to 2147483646"),
        ([0], [0], [1.0], (2**31, 5), ValueError, "between 1 and 2147483647"),
        ([0], [0], [1.0], (0, 5), ValueError, "between 1 and 2147483647"),
        ([0], [0], [1.0], (2.0, 5), TypeError, "shape must be two integers"),
        ([0], [0], [1.0], 5, TypeError, "shape must be two integers"),
        ([0], [3], [np.nan], None, ValueError, "1 triplet has NaN .*row 0, column 3.*leave these"),
        ([1, 0], [3, 0], [np.inf, 1], None, ValueError, "1 cell has an infinite.*row 1, column 3"),
        ([0], [3], [-2e150], None, ValueError, r"-2e\+150 at row 0, column 3.*Rescale"),
    ],
)
def test_bad_triplets_are_refused_by_name(rows, cols, values, shape, error, message):
    with pytest.raises(error, match=message):
        check_triplets(rows, cols, values, shape)


def test_float32_values_have_a_smaller_range_and_another_way_out():
    with pytest.raises(ValueError, match=r"float32 data must lie within.*or pass float64"):
        check_triplets([0], [0], np.array([2e15], np.float32))


def test_the_first_repeated_cell_is_named_with_both_positions():
    rows, cols = [4, 0, 4, 0, 4], [1, 2, 1, 2, 1]
    message = "Cell row 4, column 1 is given twice, as triplets 0 and 2 .*in all: 3"
    with pytest.raises(ValueError, match=message):
        check_triplets(rows, cols, np.ones(5))


def test_masked_values_are_refused():
    values = np.ma.masked_array([1.0, 2.0], mask=[False, True])
    with pytest.raises(ValueError, match="leave out the triplets that are missing"):
        check_triplets([0, 1], [0, 0], values)


def test_cells_to_look_up_are_positions_of_pairs():
    rows, cols = check_cells([0, 4], [2, 0], (5, 3))
    assert rows.dtype == cols.dtype == np.int32
    assert_array_equal(rows, [0, 4])
    assert_array_equal(cols, [2, 0])
    assert [part.size for part in check_cells([], [], (5, 3))] == [0, 0]


@pytest.mark.parametrize(("rows", "cols"), [([5], [0]), ([0], [3]), ([-1], [0])])
def test_cells_outside_of_the_table_are_refused(rows, cols):
    with pytest.raises(ValueError, match=r"must lie from 0 to \d, for shape \(5, 3\)"):
        check_cells(rows, cols, (5, 3))


def test_cells_to_look_up_come_in_pairs():
    with pytest.raises(ValueError, match=r"equal lengths.*got 2 and 1\. For a block"):
        check_cells([0, 1], [0], (5, 3))


@pytest.mark.parametrize(
    ("which", "expected"),
    [
        (None, [0, 1, 2, 3]),
        (slice(1, 3), [1, 2]),
        ([3, 0], [3, 0]),
        ([-4, -1], [0, 3]),
        (2, [2]),
        ([], []),
        (np.array([True, False, False, True]), [0, 3]),
    ],
)
def test_a_choice_of_rows_becomes_positions(which, expected):
    assert_array_equal(check_selection(which, 4, "rows"), expected)


@pytest.mark.parametrize("which", [[4], [-5], [0, 9]])
def test_a_choice_outside_of_the_table_is_refused(which):
    with pytest.raises(IndexError, match=rf"rows holds {which[-1]}, but there are 4 rows"):
        check_selection(which, 4, "rows")


@pytest.mark.parametrize("mask", [[True, False], [[True, False, True, True]]])
def test_a_mask_of_another_shape_is_refused(mask):
    with pytest.raises(IndexError, match=r"cols is a mask of shape .*, but there are 4 cols"):
        check_selection(np.array(mask), 4, "cols")


def test_the_first_cell_without_a_logarithm_is_named():
    table = Intervals.from_table(pd.DataFrame(np.ones((2, 3)), columns=["a", "b", "c"]))
    where, fine = (np.array([0, 1, 1]), np.array([0, 1, 2])), np.array([1e-9, 2.0, 3.0])
    check_logarithms(table, *where, fine, fine)
    wrong = np.array([1.0, 0.0, -3.0])
    with pytest.raises(ValueError, match=r"^2 cells have no logarithm, first .*'b'.* with 0\."):
        check_logarithms(table, *where, wrong, wrong)


def test_the_first_cell_clipped_at_zero_is_named_before_its_logarithm_is_taken():
    table = Intervals.from_table(np.ones((2, 3)))
    where = np.array([0, 1, 1]), np.array([0, 1, 2])
    lower, upper = np.array([1.0, 0.0, -np.inf]), np.array([1.0, np.inf, 2.0])
    with pytest.raises(ValueError, match=r"^1 cell has a ceiling .* row 1, column 1 .* with 0:"):
        check_logarithms(table, *where, lower, upper)


def test_a_label_that_two_rows_have_is_not_looked_up():
    labels = np.array(["a", "b", "a"], object)
    with pytest.raises(ValueError, match="2 rows of the table of the fit are named 'a': give"):
        label_positions(["b", "a"], labels, "row")


def test_a_label_of_one_row_is_looked_up_beside_others_that_are_not():
    assert label_positions(["b"], np.array(["a", "b", "a"], object), "row").tolist() == [1]
