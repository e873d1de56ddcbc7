"""Scores of held-out cells."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.stats import norm
from tests.model_selection.tables import Constant, clipped_cells, clipped_table, low_rank

from declip import Intervals
from declip.model_selection import SCORERS, HeldOutCells


def test_exact_cells_of_a_table_have_the_limits_of_the_estimator():
    X = clipped_table()
    ceiling = np.full(30, 4.0)
    ceiling[7] = np.inf
    cells = HeldOutCells.of(Intervals.from_table(X, ceiling=ceiling), ceiling, -9.0)
    assert_array_equal(cells.ceiling, ceiling[cells.cols])
    assert_array_equal(cells.floor, np.full(len(cells.rows), -9.0))


def test_exact_cells_take_over_the_one_limit_of_all_clipped_ones():
    cells = HeldOutCells.of(clipped_cells())
    assert_array_equal(cells.ceiling, np.full(len(cells.rows), 4.0))
    assert np.isneginf(cells.floor).all()


def test_exact_cells_take_over_the_limit_of_their_column_if_it_has_one():
    X = low_rank()
    ceiling = np.quantile(X, 0.8, axis=0)
    cells = HeldOutCells.of(Intervals.from_table(np.minimum(X, ceiling), ceiling=ceiling))
    assert_array_equal(cells.ceiling, ceiling[cells.cols])


def test_where_limits_vary_within_a_column_exact_cells_have_none_of_their_own():
    X = low_rank()
    ceiling = np.quantile(X, 0.8, axis=1, keepdims=True)
    intervals = Intervals.from_table(np.minimum(X, ceiling), ceiling=ceiling)
    cells = HeldOutCells.of(intervals)
    clipped = np.isposinf(cells.upper)
    assert_array_equal(cells.ceiling[clipped], ceiling[cells.rows[clipped], 0])
    assert (cells.ceiling >= cells.value).all()


def test_cells_are_found_at_their_places():
    cells = HeldOutCells.of(clipped_cells())
    chosen = np.array([17, 3, 90])
    found = cells.at(cells.rows[chosen], cells.cols[chosen])
    assert_array_equal(found.lower, cells.lower[chosen])
    assert_array_equal(found.ceiling, cells.ceiling[chosen])


def test_the_likelihood_is_that_of_a_mixture_of_normals():
    cells = some_cells()
    mean, sd = np.array([[0.5], [2.0]]), np.array([[1.0], [3.0]])
    normal = norm(mean, sd)
    density, above, below = normal.pdf(cells.value), normal.sf(5.0), normal.cdf(0.0)
    expected = np.log([*density.mean(axis=0)[:2], above.mean(), below.mean()])
    assert_allclose(cells.log_likelihood(mean, sd), expected, rtol=1e-12)


def test_errors_are_standardised_and_those_of_clipped_cells_the_least_possible():
    errors = some_cells().standardised_errors(np.full(4, 2.0), 0.5)
    assert_allclose(errors, [2, 2, 6, 4])


def test_cells_are_mapped_with_all_their_ends():
    cells = some_cells().mapped(lambda end, cols: 2 * end + cols)
    assert_array_equal(cells.lower, [2, 6, 10, -np.inf])
    assert_array_equal(cells.ceiling, [10.0] * 4)


# Scorers.


def some_cells():
    inf = np.inf
    return HeldOutCells(
        np.arange(4, dtype=np.int32),
        np.zeros(4, np.int32),
        np.array([1.0, 3, 5, -inf]),
        np.array([1.0, 3, inf, 0.0]),
        np.zeros(4),
        np.full(4, 5.0),
    )


@pytest.mark.parametrize(
    ("name", "level", "expected"),
    [
        ("neg_interval_rmse", 6.0, -np.sqrt((25 + 9 + 0 + 36) / 4)),
        ("neg_clipped_relative_rmse", 6.0, -np.sqrt((16 + 4 + 0 + 25) / 35)),
        ("at_ceiling_f1", 6.0, 2 / 5),
        ("at_ceiling_auc", 6.0, 0.5),
        ("at_ceiling_average_precision", 6.0, 0.25),
    ],
)
def test_scores_of_a_constant(name, level, expected):
    assert_allclose(SCORERS[name](Constant(level), some_cells()), expected)


def test_scores_at_the_ceiling_need_every_ceiling():
    cells = clipped_cells()
    known = HeldOutCells.of(cells)
    unknown = HeldOutCells(
        *(getattr(known, n) for n in ("rows", "cols", "lower", "upper", "floor")),
        np.where(np.isposinf(known.upper), known.lower, np.inf),
    )
    with pytest.raises(ValueError, match="set ceiling= of the estimator"):
        SCORERS["at_ceiling_auc"](Constant(), unknown)
