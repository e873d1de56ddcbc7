"""What FroCMC restores, and what it leaves alone."""

import warnings

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.stats import norm
from sklearn.base import clone
from tests.estimators.fro.tables import (
    HIGH,
    LIMITS,
    SEEN,
    TRUTH,
    X,
    at_limits,
    each_bias,
    each_estimator,
    each_limit,
    each_mode,
    fro,
    seen_part,
)

from declip import FroCMC, Intervals
from declip.datasets import make_clipped_low_rank

pytestmark = pytest.mark.filterwarnings("ignore:.*fewer exact cells than the rank")


@each_estimator
@each_mode
@each_limit
def test_exact_cells_come_back_untouched(estimator, clipped, limits):
    table = seen_part(**limits)
    model = clone(estimator).set_params(clipped=clipped, **limits)
    exact = at_limits(table, **limits)[2]
    assert exact.sum() > 150
    assert_array_equal(model.fit_transform(table)[exact], table[exact])
    assert_array_equal(model.transform(table)[exact], table[exact])


@each_estimator
@each_mode
@each_limit
def test_clipped_cells_never_come_back_inside_their_limit(estimator, clipped, limits):
    table = seen_part(**limits)
    model = clone(estimator).set_params(clipped=clipped, **limits)
    above, below, _ = at_limits(table, **limits)
    assert (above | below).any()
    for restored in (model.fit_transform(table), model.transform(table)):
        assert (restored[above] >= table[above]).all()
        assert (restored[below] <= table[below]).all()


@each_estimator
@each_mode
@each_limit
def test_missing_cells_are_filled_by_the_low_rank_estimate(estimator, clipped, limits):
    model = clone(estimator).set_params(clipped=clipped, **limits)
    restored = model.fit_transform(seen_part(**limits))
    assert_array_equal(restored[~SEEN], model.reconstruct()[~SEEN])
    assert np.isfinite(restored).all()


@each_bias
def test_hinge_moves_a_clipped_cell_to_the_nearest_value_that_is_possible(bias):
    model = fro(bias=bias)
    restored, clipped = model.fit_transform(X), at_limits(X, HIGH)[0]
    assert_array_equal(restored[clipped], np.maximum(model.reconstruct(), HIGH)[clipped])


@each_bias
@pytest.mark.parametrize("limits", [LIMITS["ceiling"], LIMITS["floor"]], ids=["ceiling", "floor"])
def test_tobit_restores_the_mean_of_the_censored_normal(limits, bias):
    table = seen_part(**limits)
    model = FroCMC(2, clipped="tobit", bias=bias, random_state=0, **limits, scale="none")
    restored, x = model.fit_transform(table), model.reconstruct()
    above, below, _ = at_limits(table, **limits)
    clipped, sign = above | below, 1.0 if "ceiling" in limits else -1.0
    # E[v | v > C] = x + s phi(a) / Phi(-a) with a = (C - x) / s, mirrored for a floor.
    a = sign * (table[clipped] - x[clipped]) / model.scale_
    mean = x[clipped] + sign * model.scale_ * np.exp(norm.logpdf(a) - norm.logsf(a))
    # The compiled normal tail and scipy's agree to some 1e-12; entries are up to 10.
    assert_allclose(restored[clipped], mean, atol=1e-9)
    assert (sign * (restored - table)[clipped] > 0).all()


def test_a_restored_table_is_closer_to_the_truth_than_the_clipped_one():
    restored = fro(alpha=1e-3).fit_transform(X)
    clipped = at_limits(X, HIGH)[0]
    # The truth has rank 2 and no noise, and the penalty is slight: what is left of the error is far
    # less than a tenth of what clipping took away.
    error = np.abs(restored - TRUTH)[clipped].max()
    assert error < 0.1 * np.abs(X - TRUTH)[clipped].max()


def test_the_synthetic_task_is_solved():
    data = make_clipped_low_rank(ceiling=7, random_state=0)
    model = FroCMC(30, ceiling=7, alpha=0.01, random_state=0, scale="none")
    restored = model.fit_transform(data.table)
    # The bound that the project promises for a ceiling of 7, on all cells.
    assert np.linalg.norm(restored - data.truth) <= 5e-4 * np.linalg.norm(data.truth)


@each_estimator
@each_mode
def test_a_cell_known_to_lie_in_a_range_comes_back_within_it(estimator, clipped):
    rng = np.random.default_rng(0)
    width = np.where(rng.random(TRUTH.shape) < 0.3, 0.5, 0.0)
    below = np.where(SEEN, TRUTH - width * rng.random(TRUTH.shape), np.nan)
    above = below + width
    intervals = Intervals.from_bounds(below, above)
    restored = clone(estimator).set_params(clipped=clipped).fit_transform(intervals)
    assert (restored[SEEN] >= below[SEEN]).all()
    assert (restored[SEEN] <= above[SEEN]).all()


@each_estimator
@each_mode
def test_an_all_clipped_row_and_an_empty_one_are_restored(estimator, clipped):
    table = X.copy()
    table[3], table[5] = HIGH, np.nan
    model = clone(estimator).set_params(ceiling=HIGH, clipped=clipped)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        restored = model.fit_transform(table)
    assert (restored[3] >= HIGH).all()
    assert np.isfinite(restored[5]).all()


@each_estimator
def test_an_empty_column_is_filled(estimator):
    table = X.copy()
    table[:, 4] = np.nan
    with pytest.warns(UserWarning, match=r"1 column \(4\) without any observed cell"):
        restored = clone(estimator).set_params(ceiling=HIGH).fit_transform(table)
    assert np.isfinite(restored).all()
