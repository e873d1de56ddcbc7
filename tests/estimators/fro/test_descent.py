"""The objective of FroCMC on its way down, and when a fit has settled."""

import re
import warnings

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.stats import norm
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from tests.estimators.fro.tables import (
    HIGH,
    MODES,
    ROUNDING,
    SEEN,
    X,
    at_limits,
    each_bias,
    each_estimator,
    each_mode,
    fro,
    sweeps,
)

from declip import FroCMC, Intervals
from declip.datasets import fetch_filmtrust, fetch_movielens_100k
from declip.kernels import current_isa

pytestmark = pytest.mark.filterwarnings("ignore:.*fewer exact cells than the rank")


def highest_rise(history, n_cells, clipped):
    """Return the largest rise of an objective, relative to it (for Tobit: or to the cells)."""
    size = np.abs(history[:-1])
    # A log-likelihood may pass through zero, where it is known only to eps times its terms.
    unit = np.maximum(size, n_cells) if clipped == "tobit" else size
    return (np.diff(history) / unit).max(initial=-np.inf)


def random_problem(rng):
    """Draw a small table with limits of all kinds, and a model for it."""
    shape = tuple(rng.integers(2, 16, 2))
    rank = int(rng.integers(1, min(shape) + 1))
    size = 10.0 ** rng.uniform(-3, 3)
    truth = size * (rng.standard_normal((shape[0], 2)) @ rng.standard_normal((2, shape[1])))
    truth += size * rng.standard_normal() + 0.1 * size * rng.standard_normal(shape)
    kept = np.zeros(shape, bool)
    kept[0, :], kept[:, 0] = True, True  # exact, so that not everything is clipped
    high, low = (np.where(kept | (rng.random(shape) < 0.6), inf, 0.0) for inf in (np.inf, -np.inf))
    high += truth - size * rng.exponential(1, shape)
    low += np.where(np.isfinite(high), -np.inf, truth + size * rng.exponential(1, shape))
    table = np.clip(truth, low, high)
    table[~kept & (rng.random(shape) < 0.2)] = np.nan
    return table, FroCMC(
        rank,
        ceiling=high,
        floor=low,
        alpha=size * 10.0 ** rng.uniform(-4, 1),
        bias=bool(rng.integers(2)),
        init=str(rng.choice(["random", "svd"])),
        random_state=int(rng.integers(1000)),
        **sweeps(40),
        scale="none",
    )


@each_mode
@pytest.mark.filterwarnings("ignore")
def test_the_objective_never_rises_on_random_problems(clipped):
    rng = np.random.default_rng(MODES.index(clipped))
    for _ in range(30):
        table, model = random_problem(rng)
        model.set_params(clipped=clipped).fit(table)
        assert len(model.history_) == model.n_iter_ + 1
        assert np.isfinite(model.history_).all()
        assert highest_rise(model.history_, table.size, clipped) <= 1e-10, model


def fetched(fetch):
    try:
        return fetch()
    except OSError as error:
        pytest.skip(f"no data set at hand: {error}")


@each_mode
@pytest.mark.parametrize("fetch", [fetch_movielens_100k, fetch_filmtrust])
@pytest.mark.filterwarnings("ignore")
def test_the_objective_never_rises_on_ratings(fetch, clipped):
    ratings = fetched(fetch)
    model = FroCMC(
        5, ceiling=ratings.ceiling, clipped=clipped, alpha=3.0, random_state=0, scale="none"
    )
    model.set_params(n_jobs=2, **sweeps(60)).fit(ratings.to_sparse())
    assert model.n_iter_ == 60
    assert highest_rise(model.history_, len(ratings.values), clipped) <= 1e-10


@each_estimator
@each_mode
def test_the_history_ends_at_the_objective(estimator, clipped):
    model = clone(estimator).set_params(ceiling=HIGH, clipped=clipped).fit(X)
    assert model.objective_ == model.history_[-1] < model.history_[0]


@pytest.mark.parametrize("clipped", ["hinge", "value", "missing"])
@each_bias
def test_the_objective_is_the_one_that_is_documented(clipped, bias):
    model = fro(clipped=clipped, bias=bias, alpha=0.3).fit(X)
    x = model.reconstruct()
    lower, upper = Intervals.from_table(X, HIGH).treat(clipped).to_bounds()
    factors = [model.row_factors_, model.components_, model.row_offset_, model.column_offset_]
    expected = 0.5 * np.nansum((x - np.clip(x, lower, upper)) ** 2)
    expected += 0.5 * 0.3 * sum((F**2).sum() for F in factors)
    assert_allclose(model.objective_, expected, rtol=ROUNDING)


@each_bias
def test_the_tobit_objective_is_a_penalised_likelihood(bias):
    model = fro(clipped="tobit", bias=bias, alpha=0.3).fit(X)
    x, s = model.reconstruct(), model.scale_
    above, _, exact = at_limits(X, HIGH)
    factors = [model.row_factors_, model.components_, model.row_offset_, model.column_offset_]
    expected = -norm.logpdf(X[exact], x[exact], s).sum() - norm.logsf(HIGH, x[above], s).sum()
    expected += 0.5 * 0.3 / s**2 * sum((F**2).sum() for F in factors)
    # The terms are of the size of the cells, and scipy's tail is good to some 1e-12.
    assert_allclose(model.objective_, expected, atol=1e-9 * X.size)


@each_mode
def test_converged_means_three_small_falls_in_a_row(clipped):
    model = fro(clipped=clipped, tol=1e-5).fit(X)
    falls = -np.diff(model.history_)
    unit = SEEN.sum() if clipped == "tobit" else model.objective_
    small = falls <= 1e-5 * unit * (1 + 1e-6)
    assert model.converged_
    # The last fall is left out: rows are solved to the end after it, which may lower it further.
    assert small[-3:-1].all()
    # And it stopped at the first three.
    assert not (small[:-5] & small[1:-4] & small[2:-3]).any()


@each_mode
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_more_sweeps_gain_little_after_convergence(clipped):
    model = fro(clipped=clipped, warm_start=True).fit(X)
    settled = model.objective_
    model.set_params(**sweeps(50)).fit(X)
    # Falls shrink from sweep to sweep, so 50 more gain at most 50 times the last one, tol.
    unit = SEEN.sum() if clipped == "tobit" else settled
    assert 0 <= settled - model.objective_ <= 50 * 1e-6 * unit


@each_mode
def test_too_few_sweeps_are_told_with_the_remedy(clipped):
    message = r"FroCMC .* 2 sweeps.*Raise max_iter or alpha, or accept a larger tol"
    with pytest.warns(ConvergenceWarning, match=message):
        model = fro(clipped=clipped, max_iter=2).fit(X)
    assert not model.converged_
    assert model.n_iter_ == 2


@each_mode
def test_the_last_fall_is_told_in_the_unit_of_tol(clipped):
    with pytest.warns(ConvergenceWarning) as caught:
        model = fro(clipped=clipped, max_iter=4).fit(X)
    (told,) = re.findall(r"\d\.\de[-+]\d+", str(caught[0].message))
    fall = model.history_[-2] - model.history_[-1]
    unit = SEEN.sum() if clipped == "tobit" else model.objective_
    # Printed with two digits.
    assert_allclose(float(told), fall / unit, rtol=0.06)


@pytest.mark.parametrize("clipped", ["hinge", "value"])
@pytest.mark.parametrize(
    ("table", "params"),
    [
        (np.full((6, 5), 2.0), {"bias": True}),
        (np.zeros((6, 5)), {"bias": True}),
        (np.outer(np.arange(1.0, 7), np.arange(1.0, 6)), {"alpha": 0.0}),
    ],
    ids=["constant", "zero", "exact"],
)
def test_a_perfect_fit_settles(table, params, clipped):
    # The objective goes to zero, and there no fall is small relative to it.
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model = FroCMC(1, clipped=clipped, random_state=0, **params, scale="none").fit(table)
    assert model.converged_
    assert_allclose(model.reconstruct(), table, atol=1e-5 * max(table.max(), 1))


@each_mode
def test_a_fit_that_settles_says_nothing(clipped):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model = fro(clipped=clipped).fit(X)
    assert model.converged_
    assert model.n_iter_ < model.max_iter


@pytest.mark.parametrize(
    ("n_rows", "dtype", "rank", "half"),
    [
        (70_000, np.float32, 32, True),  # 9 MB of factors
        (70_000, np.float64, 32, False),
        (70_000, np.float32, 31, False),  # by Cholesky
        (30_000, np.float32, 32, False),
    ],
)
def test_half_precision_is_the_default_where_it_is_faster(n_rows, dtype, rank, half):
    rng = np.random.default_rng(0)
    rows = np.repeat(np.arange(n_rows), 3)
    cols = (rows + np.tile([0, 7, 19], n_rows)) % 50
    values = rng.normal(size=len(rows)).astype(dtype)
    cells = Intervals.from_triplets(rows, cols, values, (n_rows, 50))

    def factors(**settings):
        model = FroCMC(rank, alpha=1.0, max_iter=2, random_state=0, scale="none", **settings)
        return model.fit(cells).row_factors_

    assert_array_equal(factors(), factors(half_precision=half))
    differs = np.any(factors(half_precision=True) != factors(half_precision=False))
    assert differs == (dtype == np.float32 and current_isa() == "avx2")
