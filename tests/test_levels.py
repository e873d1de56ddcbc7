"""Tables of ordered levels, read as intervals."""

import numpy as np
import pandas as pd
import polars as pl
import pytest
from numpy.testing import assert_array_equal
from scipy import sparse

from declip import Intervals

X = np.array([[1, 3, np.nan], [2, 5, 5], [4, 4, 1]])
ORDER = ["low", "middle", "high"]
WORDS = ["low", "high", None, "middle"]
inf, nan = np.inf, np.nan


def test_levels_lie_between_their_edges_and_the_outer_ones_are_open():
    lower, upper = Intervals.from_levels(X).to_bounds()
    assert_array_equal(lower, [[-inf, 2.5, nan], [1.5, 4.5, 4.5], [3.5, 3.5, -inf]])
    assert_array_equal(upper, [[1.5, 3.5, nan], [2.5, inf, inf], [4.5, 4.5, 1.5]])


def test_known_edges_are_taken_as_given():
    lower, upper = Intervals.from_levels([[0.0], [1.0]], [65.0]).to_bounds()
    assert_array_equal(np.hstack([lower, upper]), [[-inf, 65], [65, inf]])


def test_a_scale_may_have_levels_that_nobody_chose():
    cells = Intervals.from_levels([[1.0, 5.0]], levels=[1, 2, 3, 4, 5])
    assert cells.to_bounds()[1].tolist() == [[1.5, inf]]


@pytest.mark.parametrize(
    "frame",
    [
        pd.DataFrame({"a": pd.Categorical(WORDS, ORDER, ordered=True), "b": [1.0, 2, 3, 4]}),
        pl.DataFrame({"a": pl.Series(WORDS, dtype=pl.Enum(ORDER)), "b": [1.0, 2, 3, 4]}),
    ],
    ids=["pandas", "polars"],
)
def test_ordered_categories_are_levels_and_numbers_beside_them_values(frame):
    cells = Intervals.from_levels(frame, ceiling={"b": 4})
    lower, upper = cells.to_bounds()
    assert_array_equal(lower, [[-inf, 1], [2.5, 2], [nan, 3], [1.5, 4]])
    assert_array_equal(upper, [[1.5, 1], [inf, 2], [nan, 3], [2.5, inf]])
    assert cells.levels.of_column.tolist() == [0, -1]
    assert list(cells.levels.scales[0].names) == ORDER
    assert list(cells.col_labels) == ["a", "b"]


def test_columns_may_be_named_by_numbers_and_rows_by_labels():
    frame = pd.DataFrame({7: pd.Categorical(WORDS, ORDER, ordered=True), 3: [1.0, 2, 3, 4]})
    cells = Intervals.from_levels(frame.set_axis(list("wxyz")))
    assert_array_equal(cells.to_bounds()[0][:, 0], [-inf, 2.5, nan, 1.5])
    assert list(cells.row_labels) == list("wxyz")
    assert list(cells.col_labels) == [7, 3]
    assert frame[7].dtype == "category"  # as it was


def test_texts_and_unordered_categories_take_the_order_that_is_given():
    texts = pd.DataFrame({"a": WORDS, "b": [1.0, 2, 3, 4]})
    expected = Intervals.from_levels(texts, levels={"a": ORDER}).to_bounds()
    unordered = Intervals.from_levels(texts.astype({"a": "category"}), levels={"a": ORDER})
    assert_array_equal(expected, unordered.to_bounds())
    rows = Intervals.from_levels([["low", "high"], [None, "middle"]], levels=ORDER)
    assert_array_equal(rows.to_bounds()[0], [[-inf, 2.5], [nan, 1.5]])


def test_dense_sparse_and_long_tables_give_the_same_cells():
    dense = Intervals.from_levels(X)
    rows, cols = np.nonzero(~np.isnan(X))
    stored = sparse.coo_array((X[rows, cols], (rows, cols)), shape=X.shape)
    long = pd.DataFrame({"row": rows, "column": cols, "value": X[rows, cols]})
    for other in (Intervals.from_levels(stored), Intervals.from_levels(Intervals.from_long(long))):
        assert other.has_cells_of(dense)


def test_single_precision_keeps_its_levels():
    cells = Intervals.from_levels(np.array([[1000.1, 1000.2, 1000.4]], np.float32))
    assert cells.dtype == np.float32
    cols, lower, upper = (cells.triplets()[k] for k in (1, 2, 3))
    assert cells.levels.cut_numbers(cols, lower).tolist() == [0, 1, 2]
    assert cells.levels.cut_numbers(cols, upper).tolist() == [1, 2, 3]


def test_rows_that_are_taken_keep_their_levels():
    cells = Intervals.from_levels(X)
    assert cells.take_rows([1]).levels is cells.levels


def test_columns_with_the_same_levels_share_a_scale():
    cells = Intervals.from_levels(X, levels={0: [1, 2, 4], 1: [3, 4, 5], 2: [1, 2, 4, 5]})
    assert cells.levels.of_column.tolist() == [0, 1, 2]
    cells = Intervals.from_levels(X[:, :2], levels={0: range(1, 6), 1: [1, 2, 3, 4, 5]})
    assert cells.levels.of_column.tolist() == [0, 0]


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"X": X, "levels": [1, 2, 3]}, "5 at row 1, column 1 .* none of the levels 1, 2, 3"),
        ({"X": np.arange(99.0)[:, None]}, "99 different values"),
        ({"X": X, "edges": [1, 2]}, "column 0 has 5 levels, and so 4 edges"),
        ({"X": X, "edges": [1, 3, 2, 4]}, "must be finite and rise"),
        ({"X": X, "levels": {"q": [1, 2]}}, "names column 'q'"),
        ({"X": X, "levels": [2, 1]}, "must rise"),
        ({"X": [["a"]], "levels": ["a", "b", "a"]}, "listed twice"),
        ({"X": np.ones((2, 2))}, "fewer than two levels"),
        ({"X": pd.DataFrame({"a": ["lo", "hu"]}), "levels": {"a": ["lo", "hi"]}}, "'hu' at row 1"),
        ({"X": pd.DataFrame({"a": pd.Categorical(["x", "y"])})}, "without an order"),
        ({"X": X, "levels": {0: range(1, 6)}, "edges": {1: [1]}}, "which is not recorded"),
    ],
)
def test_what_levels_cannot_mean_is_refused(given, message):
    with pytest.raises(ValueError, match=message):
        Intervals.from_levels(**given)
