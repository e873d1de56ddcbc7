"""The censored normal distribution of rows: against what is known of complete and simple tables."""

import numpy as np
from numpy.testing import assert_allclose, assert_array_equal
from scipy.stats import norm

from declip import Intervals
from declip.solvers.gibbs.covariance import sample_columns, sample_normal
from declip.solvers.gibbs.normal_rows import rows_under

RNG = np.random.default_rng(0)
S = np.array([[1.0, 0.8, 0.3], [0.8, 1.0, 0.1], [0.3, 0.1, 1.0]])
ROWS = RNG.multivariate_normal(np.zeros(3), S, size=600)


def given_the_rest(draws, rows, cols):
    """Means and standard deviations of cells by all draws."""
    found = (draws.conditional(d, rows, cols) for d in range(len(draws)))
    return map(np.array, zip(*found, strict=True))


def test_conditional_means_of_a_complete_table_are_those_of_regression():
    draws = sample_normal(Intervals.from_table(ROWS), n_samples=40, burn_in=20, n_kept=20, seed=0)
    others = np.column_stack([np.ones(600), ROWS[:, 1:]])
    fit = others @ np.linalg.lstsq(others, ROWS[:, 0], rcond=None)[0]
    # coefficients of 600 rows spread by about 1 / sqrt(600); cells lie up to three units out
    mean, sd = given_the_rest(draws, np.arange(600), np.zeros(600, int))
    assert_allclose(mean.mean(axis=0), fit, atol=3 / np.sqrt(600))
    residual = np.std(ROWS[:, 0] - fit)
    assert_allclose(sd.mean(), residual, rtol=0.05)


def test_the_correlation_is_found_from_clipped_columns():
    cut = np.minimum(ROWS, 0.5)
    cells = Intervals.from_table(cut, ceiling=0.5)
    draws = sample_normal(cells, n_samples=150, burn_in=50, n_kept=30, seed=0)
    expected = np.sqrt(1 / np.linalg.inv(S)[0, 0])
    _, sd = given_the_rest(draws, np.arange(600), np.zeros(600, int))
    assert_allclose(sd.mean(), expected, rtol=0.12)


def test_the_same_seed_gives_the_same_draws():
    cells = Intervals.from_table(np.where(RNG.random(ROWS.shape) < 0.2, np.nan, ROWS))
    one, two = (sample_normal(cells, n_samples=5, burn_in=2, n_kept=5, seed=3) for _ in range(2))
    np.testing.assert_array_equal(one.rows, two.rows)


def test_classes_that_limits_cut_keep_their_own_spread():
    # two clusters of the first column, one of them tight and cut by a floor in its middle
    rng = np.random.default_rng(1)
    tight = np.arange(200) < 80
    rows = np.column_stack(
        [
            np.where(tight, rng.normal(-1.3, 0.1, 200), rng.normal(0.8, 0.5, 200)),
            np.where(tight, rng.normal(1.2, 0.5, 200), rng.normal(-0.8, 0.5, 200)),
        ]
    )
    floor = np.array([-1.3, -np.inf])
    cells = Intervals.from_table(np.maximum(rows, floor), floor=floor)
    drawn = {"n_samples": 120, "burn_in": 60, "n_kept": 30, "seed": 0}
    cut, others = np.flatnonzero(rows[:, 0] <= -1.3), np.flatnonzero(~tight)
    at = np.zeros(len(cut), int)
    _, one = given_the_rest(sample_normal(cells, **drawn), cut, at)
    found = sample_normal(cells, n_classes=3, **drawn)
    centre, classes = given_the_rest(found, cut, at)
    assert np.median(classes) < 0.5 * np.median(one)
    assert abs(np.median(centre) + 1.3) < 0.3
    _, wide = given_the_rest(found, others, 0 * others)
    assert np.median(classes) < 0.6 * np.median(wide)


def test_rows_of_a_class_that_are_tied_do_not_take_its_variance_away():
    # half of a column is one value: a class of nothing else had a precision of 1e30, by which what
    # is said of its other cells was off by orders of magnitude
    rng = np.random.default_rng(2)
    rows = rng.normal(size=(150, 4))
    rows[:75, 1] = -1.4
    rows[:75, 2:] += 1.5
    cells = Intervals.from_table(np.minimum(rows, 0.5), ceiling=0.5)
    found = sample_normal(cells, n_classes=5, n_samples=80, burn_in=40, n_kept=20, seed=0)
    at = np.nonzero(rows >= 0.5)
    for draw in range(len(found)):
        centre, sd = found.conditional(draw, *at)
        assert np.abs(centre).max() < 10  # the values end at about 5
        assert sd.max() < 10
    assert np.diagonal(found.precision, axis1=2, axis2=3).max() < 1e6


def test_columns_alone_have_the_posterior_of_a_censored_normal():
    # on a grid; the prior is flat in the mean, of a variance v it is v^-1.5 exp(-0.15 / v)
    rng = np.random.default_rng(3)
    x, limit = rng.normal(0.3, 0.8, 40), 0.5
    cells = Intervals.from_table(np.minimum(x, limit)[:, None], ceiling=limit)
    start = np.zeros(1), np.ones(1)
    means, sds = sample_columns(cells, start, n_draws=2000, seed=0)
    m, s = np.meshgrid(np.linspace(-1, 2, 301), np.linspace(0.3, 2.5, 301))
    seen = x[x < limit]
    logs = norm.logpdf(seen[:, None, None], m, s).sum(axis=0)
    logs += np.sum(x >= limit) * norm.logsf(limit, m, s) - 2 * np.log(s) - 0.5 * 0.3 / s**2
    density = np.exp(logs - logs.max())
    density /= density.sum()
    for drawn, axis in ((means, m), (sds, s)):
        mean = np.sum(density * axis)
        sd = np.sqrt(np.sum(density * axis**2) - mean**2)
        # 2,000 draws of chains that forget in a few of the sweeps between them
        assert_allclose(drawn.mean(), mean, atol=4 * sd / np.sqrt(1000))
        assert_allclose(drawn.std(), sd, rtol=0.1)


def test_threads_draw_the_same_rows():
    cells = Intervals.from_table(np.minimum(np.tile(ROWS, (40, 1)), 0.5), ceiling=0.5)
    few = cells.take_rows(np.arange(60))
    asked = {"n_samples": 4, "burn_in": 2, "n_kept": 2, "seed": 0}
    draws = sample_normal(few, **asked)
    assert_array_equal(sample_normal(few, **asked, threads=2).rows, draws.rows)
    one, two = (rows_under(draws, cells, 0, independent=True, threads=t) for t in (1, 2))
    assert_array_equal(one.rows, two.rows)
    assert_array_equal(np.isfinite(one.rows), True)
