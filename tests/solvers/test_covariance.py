"""The censored normal distribution of rows: against what is known of complete and simple tables."""

import numpy as np
from numpy.testing import assert_allclose

from declip import Intervals
from declip.solvers.gibbs.covariance import sample_normal

RNG = np.random.default_rng(0)
S = np.array([[1.0, 0.8, 0.3], [0.8, 1.0, 0.1], [0.3, 0.1, 1.0]])
ROWS = RNG.multivariate_normal(np.zeros(3), S, size=600)


def test_conditional_means_of_a_complete_table_are_those_of_regression():
    draws = sample_normal(Intervals.from_table(ROWS), n_samples=40, burn_in=20, n_kept=20, seed=0)
    others = np.column_stack([np.ones(600), ROWS[:, 1:]])
    fit = others @ np.linalg.lstsq(others, ROWS[:, 0], rcond=None)[0]
    # coefficients of 600 rows spread by about 1 / sqrt(600); cells lie up to three units out
    assert_allclose(draws.mean[:, :, 0].mean(axis=0), fit, atol=3 / np.sqrt(600))
    residual = np.std(ROWS[:, 0] - fit)
    assert_allclose(draws.sd[:, 0].mean(), residual, rtol=0.05)


def test_the_correlation_is_found_from_clipped_columns():
    cut = np.minimum(ROWS, 0.5)
    cells = Intervals.from_table(cut, ceiling=0.5)
    draws = sample_normal(cells, n_samples=150, burn_in=50, n_kept=30, seed=0)
    expected = np.sqrt(1 / np.linalg.inv(S)[0, 0])
    assert_allclose(draws.sd[:, 0].mean(), expected, rtol=0.12)


def test_the_same_seed_gives_the_same_draws():
    cells = Intervals.from_table(np.where(RNG.random(ROWS.shape) < 0.2, np.nan, ROWS))
    one, two = (sample_normal(cells, n_samples=5, burn_in=2, n_kept=5, seed=3) for _ in range(2))
    np.testing.assert_array_equal(one.mean, two.mean)
