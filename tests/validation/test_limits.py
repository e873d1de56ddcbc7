"""Ceilings and floors of every shape, the intervals they make, and what is refused."""

import numpy as np
import pandas as pd
import polars as pl
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from numpy.testing import assert_array_equal

from declip.validation import (
    apply_limits,
    check_some_exact,
    check_triplets,
    resolve_limit,
    table_to_triplets,
)

NAN, INF = np.nan, np.inf
X = np.array([[1.0, 2.0, 3.0], [4.0, NAN, 5.0]])
CELLS = table_to_triplets(X)
NAMED = table_to_triplets(pd.DataFrame(X, index=["s1", "s2"], columns=["CRP", "IL6", "TNF"]))
YEARS = table_to_triplets(pd.DataFrame(X, columns=[2019, 2020, 2021]))
LONG = check_triplets([1, 0, 0, 1], [0, 2, 0, 2], [4.0, 3.0, 1.0, 5.0])


def limit_of_cells(limit, cells=CELLS, side="ceiling"):
    return np.broadcast_to(resolve_limit(limit, cells, side).at(cells), cells.values.shape)


PER_COLUMN = [10.0, 20.0, 30.0]
PER_CELL = np.array([[11.0, 12.0, 13.0], [14.0, NAN, 16.0]])


@pytest.mark.parametrize(
    ("limit", "expected"),
    [
        (None, [INF] * 5),
        (7, [7.0] * 5),
        (np.float32(7), [7.0] * 5),
        (PER_COLUMN, [10.0, 20.0, 30.0, 10.0, 30.0]),
        ([PER_COLUMN], [10.0, 20.0, 30.0, 10.0, 30.0]),
        (pl.Series(PER_COLUMN), [10.0, 20.0, 30.0, 10.0, 30.0]),
        (pd.Series(PER_COLUMN), [10.0, 20.0, 30.0, 10.0, 30.0]),
        ([[10.0], [20.0]], [10.0, 10.0, 10.0, 20.0, 20.0]),
        (PER_CELL, [11.0, 12.0, 13.0, 14.0, 16.0]),
        (pd.DataFrame(PER_CELL), [11.0, 12.0, 13.0, 14.0, 16.0]),
        (sp.csc_array([[0.0, 12.0, 0.0], [14.0, 9.0, 0.0]]), [INF, 12.0, INF, 14.0, INF]),
        (sp.coo_array(([0.0], ([1], [0])), shape=(2, 3)), [INF, INF, INF, 0.0, INF]),
        (sp.csr_array((2, 3)), [INF] * 5),
        ({1: 8.0, np.int64(2): INF}, [INF, 8.0, INF, INF, INF]),
        ({}, [INF] * 5),
    ],
)
def test_limits_of_every_shape(limit, expected):
    assert_array_equal(limit_of_cells(limit), expected)


def test_a_cell_that_a_sparse_floor_does_not_store_has_no_floor():
    floor = sp.csr_array([[0.0, -1.0, 0.0], [0.0, 0.0, 0.0]])
    assert_array_equal(limit_of_cells(floor, side="floor"), [-INF, -1.0, -INF, -INF, -INF])


@pytest.mark.parametrize("limit", [{"IL6": 8.0}, pd.Series({"IL6": 8.0}), {1: 8.0}])
def test_limits_by_label_or_by_number(limit):
    assert_array_equal(limit_of_cells(limit, NAMED), [INF, 8.0, INF, INF, INF])


def test_whole_numbers_as_labels_come_before_column_numbers():
    assert_array_equal(limit_of_cells({2019: 8.0}, YEARS), [8.0, INF, INF, 8.0, INF])
    with pytest.raises(ValueError, match="names column 0, which the table does not have"):
        resolve_limit({0: 8.0}, YEARS, "ceiling")


@pytest.mark.parametrize("make", [list, np.array, pd.Series])
def test_one_limit_for_each_triplet_follows_the_sort(make):
    limit = make([40.0, 30.0, 10.0, 50.0])
    assert_array_equal(limit_of_cells(limit, LONG), [10.0, 30.0, 40.0, 50.0])


def test_one_limit_for_each_triplet_that_came_sorted():
    cells = check_triplets([0, 1, 1], [0, 0, 1], [1.0, 2.0, 3.0])
    assert_array_equal(limit_of_cells([10.0, 20.0, 30.0], cells), [10.0, 20.0, 30.0])


def test_as_many_limits_as_triplets_and_columns_are_ambiguous():
    cells = check_triplets([0, 1], [0, 1], [1.0, 2.0])
    with pytest.raises(ValueError, match=r"ambiguous.*pass shape \(1, 2\)"):
        resolve_limit([5.0, 6.0], cells, "ceiling")
    assert_array_equal(limit_of_cells([[5.0, 6.0]], cells), [5.0, 6.0])


def test_a_square_table_reads_a_flat_limit_by_column():
    cells = table_to_triplets(np.ones((2, 2)))
    assert_array_equal(limit_of_cells([5.0, 6.0], cells), [5.0, 6.0, 5.0, 6.0])


@pytest.mark.parametrize(
    ("cells", "limit", "error", "message"),
    [
        (CELLS, NAN, ValueError, r"ceiling is NaN\. Use inf where"),
        (CELLS, [1.0, NAN, 1.0], ValueError, r"ceiling is NaN in column 1 \(counting from 0\)"),
        (NAMED, [1.0, NAN, 1.0], ValueError, "ceiling is NaN in column 'IL6'"),
        (NAMED, {"IL6": NAN}, ValueError, "ceiling is NaN in column 'IL6'"),
        (NAMED, [[1.0], [NAN]], ValueError, "ceiling is NaN in row 's2'"),
        (NAMED, np.full((2, 3), NAN), ValueError, "ceiling is NaN in row 's1', column 'CRP'"),
        (CELLS, sp.csr_array([[NAN, 0, 0], [0, 0, 0]]), ValueError, "NaN in row 0, column 0"),
        (CELLS, np.ma.masked_equal(PER_COLUMN, 20.0), ValueError, "ceiling is NaN in column 1"),
        (CELLS, -INF, ValueError, "ceiling is -inf, which leaves no room"),
        (CELLS, {2: -INF}, ValueError, "ceiling is -inf in column 2"),
        (CELLS, "5", TypeError, "ceiling must hold numbers; got '5'"),
        (CELLS, True, TypeError, "ceiling must hold numbers"),
        (CELLS, [5.0, None, 5.0], TypeError, "ceiling must hold numbers"),
        (CELLS, {0: "5"}, TypeError, "ceiling must hold numbers"),
        (CELLS, {0: [1.0, 2.0]}, ValueError, "one number for each column"),
        (CELLS, [1.0, 2.0], ValueError, r"shape \(2,\).*shape \(2, 3\).*use reshape\(-1, 1\)"),
        (
            CELLS,
            np.ones((3, 2)),
            ValueError,
            r"shape \(3, 2\).*\(2, 1\) per row, \(2, 3\) per cell",
        ),
        (CELLS, sp.eye_array(2), ValueError, r"shape \(2, 2\), which does not fit .*\(2, 3\)"),
        (LONG, np.ones(7), ValueError, r"\(4,\) per triplet"),
        (CELLS, {3: 1.0}, ValueError, "column 3, which .* have: its 3 columns .* 0 to 2"),
        (CELLS, {-1: 1.0}, ValueError, "names column -1"),
        (NAMED, {"IL-6": 1.0}, ValueError, "'IL-6', which .*Did you mean 'IL6'?"),
        (NAMED, {"xyz": 1.0}, ValueError, "Its columns are 'CRP', 'IL6', 'TNF'"),
        (NAMED, {"CRP": 1.0, 0: 2.0}, ValueError, "names a column twice"),
        (NAMED, pd.Series([1.0, 2.0], ["CRP", "CRP"]), ValueError, "names a column twice"),
        (CELLS, sp.coo_array(([1.0, 2.0], ([0, 0], [0, 0])), (2, 3)), ValueError, "given twice"),
    ],
)
def test_bad_limits_are_refused_by_name(cells, limit, error, message):
    with pytest.raises(error, match=message):
        resolve_limit(limit, cells, "ceiling")


def test_a_floor_of_plus_infinity_is_refused():
    with pytest.raises(ValueError, match=r"floor is inf, which leaves no room .*Use -inf"):
        resolve_limit(INF, CELLS, "floor")


def test_no_limits_leave_every_cell_exact():
    lower, upper = apply_limits(CELLS)
    assert_array_equal(lower, CELLS.values)
    assert_array_equal(upper, CELLS.values)


def test_values_at_their_limits_become_half_lines():
    lower, upper = apply_limits(CELLS, ceiling=5, floor=1)
    assert_array_equal(lower, [-INF, 2.0, 3.0, 4.0, 5.0])
    assert_array_equal(upper, [1.0, 2.0, 3.0, 4.0, INF])


@given(
    arrays(float, (4, 3), elements=st.floats(-9, 9)),
    arrays(float, 3, elements=st.floats(-9, 9)),
)
def test_a_floor_is_the_mirror_image_of_a_ceiling(table, ceiling):
    cells = table_to_triplets(np.minimum(table, ceiling))
    mirrored = table_to_triplets(-np.minimum(table, ceiling))
    lower, upper = apply_limits(cells, ceiling=ceiling)
    low, high = apply_limits(mirrored, floor=-ceiling)
    assert_array_equal(lower, -high)
    assert_array_equal(upper, -low)


@given(arrays(float, (3, 4), elements=st.floats(-9, 9)), st.floats(0, 9))
def test_scalar_column_row_and_cell_limits_agree(table, ceiling):
    cells = table_to_triplets(np.minimum(table, ceiling))
    expected = apply_limits(cells, ceiling)
    for shape in [(4,), (1, 4), (3, 1), (3, 4)]:
        assert_array_equal(apply_limits(cells, np.full(shape, ceiling)), expected)


def test_values_within_the_tolerance_are_at_the_limit_itself():
    cells = table_to_triplets([[4.99, 5.01, 4.9, 0.01, -0.01]])
    lower, upper = apply_limits(cells, ceiling=5, floor=0, tol=0.02)
    assert_array_equal(lower, [5.0, 5.0, 4.9, -INF, -INF])
    assert_array_equal(upper, [INF, INF, 4.9, 0.0, 0.0])


@pytest.mark.parametrize(("value", "ceiling"), [(0.8, 0.7), (0.7, 0.8), (0.02, 0.12)])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_the_tolerance_holds_up_to_rounding(value, ceiling, dtype):
    cells = table_to_triplets(np.array([[value]], dtype))
    _, upper = apply_limits(cells, ceiling=ceiling, tol=0.1)
    assert upper[0] == INF


def test_float32_data_meet_a_float64_limit():
    cells = table_to_triplets(np.array([[0.1, 0.05]], np.float32))
    for ceiling in (0.1, [0.1, 0.1], np.full((1, 2), 0.1)):
        lower, upper = apply_limits(cells, ceiling=ceiling)
        assert_array_equal(upper, np.array([INF, 0.05], np.float32))
        assert lower.dtype == upper.dtype == np.float32


@pytest.mark.parametrize(
    ("cells", "ceiling", "floor", "message"),
    [
        (
            CELLS,
            3.5,
            None,
            r"2 of 5 values \(40.0%\) are above their ceiling, worst row 1, column 2 "
            r"\(counting from 0\) with 5.0 above 3.5\. Is the ceiling right\? .*raise it; tol=",
        ),
        (NAMED, {"CRP": 2.0}, None, "worst row 's2', column 'CRP' with 4.0 above 2.0"),
        (CELLS, None, 2.5, "2 of 5 values .* below their floor, worst row 0, column 0.*lower it"),
        (CELLS, [[3.0], [4.9]], None, "1 of 5 values .* with 5.0 above 4.9"),
    ],
)
def test_values_beyond_their_limits_give_one_error(cells, ceiling, floor, message):
    with pytest.raises(ValueError, match=message):
        apply_limits(cells, ceiling, floor)


@pytest.mark.parametrize(
    ("ceiling", "floor", "message"),
    [
        (1.0, 2.0, r"floor must lie below ceiling, but floor 2.0 >= ceiling 1.0\."),
        (5.0, 5.0, "floor 5.0 >= ceiling 5.0"),
        ([9.0, 1.0, 9.0], 2.0, "but in column 'IL6' floor 2.0 >= ceiling 1.0"),
        ({"IL6": 9.0}, {"IL6": 9.5}, "but in column 'IL6' floor 9.5 >= ceiling 9.0"),
        ([[9.0], [1.0]], [[1.0], [2.0]], "but in row 's2' floor 2.0 >= ceiling 1.0"),
        ([[9.0], [1.0]], [0.0, 0.0, 2.0], "in row 's2', column 'TNF' floor 2.0 >= ceiling 1.0"),
    ],
)
def test_a_floor_that_is_not_below_its_ceiling_is_refused(ceiling, floor, message):
    with pytest.raises(ValueError, match=message):
        apply_limits(NAMED, ceiling, floor)


@pytest.mark.parametrize("tol", [-1.0, NAN, INF, "1", None])
def test_a_bad_tolerance_is_refused(tol):
    with pytest.raises(ValueError, match="tol must be a finite number that is not negative; got"):
        apply_limits(CELLS, 9.0, tol=tol)


def test_a_value_at_both_limits_is_refused():
    with pytest.raises(ValueError, match=r"row 0, column 1 .* within tol=0.5 of both"):
        apply_limits(table_to_triplets([[0.0, 0.5]]), ceiling=1.0, floor=0.0, tol=0.5)


def test_some_cell_must_have_two_finite_ends():
    check_some_exact(np.array([1.0, -INF]), np.array([1.0, 0.0]))
    with pytest.raises(ValueError, match="All 2 observed cells are clipped"):
        check_some_exact(np.array([5.0, -INF]), np.array([INF, 0.0]))


def shuffled(labels):
    """A table of three rows with these labels, and a frame of limits for rows 0, 1, 2."""
    table = pd.DataFrame({"a": [1.0, 2.0, 3.0], "b": [4.0, 5.0, 6.0]}, index=labels)
    return table, pd.DataFrame({"a": [10.0, 20.0, 30.0], "b": INF})


def test_a_frame_of_limits_goes_by_row_where_the_rows_of_the_table_were_moved():
    table, ceiling = shuffled([2, 0, 1])
    found = limit_of_cells(ceiling, table_to_triplets(table))
    assert found[::2].tolist() == [30.0, 10.0, 20.0]


def test_a_frame_of_limits_without_labels_goes_by_position_beside_other_rows():
    table, ceiling = shuffled([7, 5, 6])
    found = limit_of_cells(ceiling, table_to_triplets(table))
    assert found[::2].tolist() == [10.0, 20.0, 30.0]


def test_a_series_for_more_rows_than_columns_goes_by_row():
    table = pd.DataFrame({"a": [1.0, 2.0, 3.0], "b": [4.0, 5.0, 6.0]})
    found = limit_of_cells(pd.Series([10.0, 20.0, 30.0]), table_to_triplets(table))
    assert found.tolist() == [10.0, 10.0, 20.0, 20.0, 30.0, 30.0]
