"""Tables that grow: cells of both, each where its labels say."""

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_array_equal

from declip import Intervals
from declip.joining import Growth


def long(lines):
    return Intervals.from_long(pd.DataFrame(lines, columns=["row", "column", "value"]), ceiling=5)


def joined(old, new, replace_known=False, **how):
    labels = old.row_labels, old.col_labels
    return Growth.of(old.shape, labels, new, **how).joined(old, replace_known)


def by_name(intervals):
    """Return the bounds of every cell by the names of its row and column."""
    rows, cols, lower, upper = intervals.triplets()
    names = zip(intervals.row_labels[rows], intervals.col_labels[cols], strict=True)
    return dict(zip(names, zip(lower.tolist(), upper.tolist(), strict=True), strict=True))


@pytest.mark.parametrize("seed", range(5))
def test_a_table_that_grew_has_the_cells_of_both(seed):
    rng = np.random.default_rng(seed)
    every = [
        (f"r{i:02d}", f"c{j}", float(rng.integers(1, 6)))
        for i in range(30)
        for j in range(8)
        if rng.random() < 0.5
    ]
    rng.shuffle(every)
    third = len(every) // 3
    found = joined(long(every[:third]), long(every[third:]))
    assert by_name(found) == by_name(long(every))
    found._check_loaded()
    found.by_row._check_loaded()
    for row in range(found.shape[0]):  # sorted within each row
        ptr, idx = found.by_row.exact_ptr, found.by_row.exact_idx
        assert np.all(np.diff(idx[ptr[row] : ptr[row + 1]]) > 0)


def test_known_rows_and_columns_stay_where_they_are():
    old, new = long([("b", "x", 1), ("c", "y", 2)]), long([("a", "y", 3), ("c", "w", 4)])
    found = joined(old, new)
    assert list(found.row_labels) == ["b", "c", "a"]
    assert list(found.col_labels) == ["x", "y", "w"]


def test_without_labels_rows_and_columns_are_counted():
    old = Intervals.from_triplets([0, 1], [0, 1], [1.0, 2.0])
    found = joined(old, Intervals.from_triplets([2, 0], [1, 2], [3.0, 4.0]))
    lower, _ = found.to_bounds()
    nan = np.nan
    assert_array_equal(lower, [[1, nan, 4], [nan, 2, nan], [nan, 3, nan]])
    assert found.row_labels is None
    assert found.col_labels is None


def test_appended_rows_stand_below():
    old, new = (Intervals.from_table(np.array([[x, 5.0]]), ceiling=5) for x in (1.0, 2.0))
    found = joined(old, new, append=True)
    assert_array_equal(found.to_bounds()[0], [[1, 5], [2, 5]])
    assert found.n_censored == 2


@pytest.mark.parametrize(("before", "after"), [(3.0, 5.0), (5.0, 3.0), (3.0, 4.0)])
def test_a_known_cell_is_refused_or_replaced(before, after):
    old, new = long([("a", "x", before), ("b", "x", 1)]), long([("a", "x", after)])
    with pytest.raises(ValueError, match="Cell row 'a', column 'x' is known already"):
        joined(old, new)
    found = joined(old, new, replace_known=True)
    upper = np.inf if after == 5 else after
    assert by_name(found) == {("a", "x"): (after, upper), ("b", "x"): (1.0, 1.0)}


def test_labels_of_another_kind_are_refused():
    old, new = long([("a", "x", 1), ("b", "x", 1)]), Intervals.from_table(np.array([[1.0]]))
    with pytest.raises(ValueError, match="rows of the fitted table are named as 'a'"):
        joined(old, new)


def test_a_row_that_is_there_is_not_appended():
    with pytest.raises(ValueError, match="Row 'a' is in the fitted table already"):
        joined(long([("a", "x", 1)]), long([("a", "x", 2)]), append=True)
