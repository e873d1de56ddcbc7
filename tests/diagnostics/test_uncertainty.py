import itertools

import numpy as np
import pytest
from scipy.stats import spearmanr
from tests.helpers import low_rank

from declip import FroCMC, Intervals, diagnose
from declip.diagnostics.residuals import check_residuals
from declip.diagnostics.uncertainty import measure_uncertainty
from declip.losses import Tobit
from declip.lowrank import LowRank
from declip.solvers import Limits

pytestmark = pytest.mark.filterwarnings("ignore::UserWarning")


def noisy(seed, *, clip=0.3, sigma=0.3, observed=0.7, skewed=False, uneven=False):
    rng = np.random.default_rng(seed)
    M = low_rank(rng, (60, 80), 3)
    if skewed:  # factors that are positive and of unequal size, as in the paper's task
        M = rng.gamma(0.7, size=(60, 3)) @ rng.gamma(0.7, size=(3, 80))
        M *= np.sqrt(3) / M.std()
    if uneven:
        observed = rng.uniform(0.1, 1, (60, 1)) * rng.uniform(0.3, 1, 80)
    Y = M + sigma * rng.standard_normal(M.shape)
    C = np.quantile(Y, 1 - clip)
    X = np.minimum(Y, C)
    X[rng.random(X.shape) > observed] = np.nan
    return M, X, C


def fitted(X, C, **params):
    params = {"alpha": 0.09, "random_state": 0, "tol": 1e-7} | params
    return FroCMC(3, ceiling=C, **params, scale="none").fit(X)


@pytest.mark.parametrize("bias", [False, True])
def test_sd_is_that_of_the_formula(bias):
    rng = np.random.default_rng(0)
    mask = rng.random((9, 8)) < 0.7
    model = LowRank(rng.standard_normal((9, 3)), rng.standard_normal((8, 3)), 0.5, bias)
    ridge = np.array([0.3, 0.3, 0.8])
    table = Intervals.from_table(np.where(mask, 1.0, np.nan))
    found = measure_uncertainty(table, model, ridge, Tobit(2.0))
    rows, cols = np.indices(mask.shape)
    P, Q = model.A.copy(), model.B.copy()
    if bias:
        P[:, -1] = Q[:, -1] = 1
    expected = np.empty(mask.shape)
    for i, j in np.ndindex(mask.shape):
        H_i = (Q[mask[i]].T @ Q[mask[i]]) + np.diag(ridge)
        H_j = (P[mask[:, j]].T @ P[mask[:, j]]) + np.diag(ridge)
        expected[i, j] = Q[j] @ np.linalg.solve(H_i, Q[j]) + P[i] @ np.linalg.solve(H_j, P[i])
    order = rng.permutation(mask.size)
    sd = found.sd(rows.ravel()[order], cols.ravel()[order])
    np.testing.assert_allclose(sd, 2 * np.sqrt(expected.ravel()[order]), rtol=1e-10)


def test_noise_is_found_from_the_residuals():
    _, X, C = noisy(0)
    assert diagnose(fitted(X, C), X).fit.uncertainty.sigma == pytest.approx(0.3, rel=0.05)


def test_sd_covers_the_error_at_light_clipping():
    M, X, C = noisy(0, clip=0.1)
    model = fitted(X, C)
    fit = diagnose(model, X).fit
    error = np.abs(model.reconstruct() - M)[fit.rows, fit.cols]
    assert 0.9 < np.mean(error < 1.96 * fit.sd) < 0.99


def test_a_row_that_is_not_determined_is_very_uncertain_without_a_penalty():
    _, X, C = noisy(0)
    X[5] = np.where(np.isnan(X[5]), np.nan, C)
    fit = diagnose(fitted(X, C, alpha=0.0), X).fit
    assert np.median(fit.sd[fit.rows == 5]) > 1e3 * np.median(fit.sd[fit.rows != 5])


def sd_correlation(clip, skewed, uneven):
    M, X, C = noisy(200, clip=clip, skewed=skewed, uneven=uneven)
    model = fitted(X, C)
    rows, cols = np.nonzero(np.isnan(X) | (X == C))
    error = np.abs(model.reconstruct() - M)[rows, cols]
    return spearmanr(error, diagnose(model, X).sd(rows, cols)).statistic


def test_sd_ranks_the_errors():
    # An sd that is right ranks |N(0, sd)| with a correlation of .35 (even Gaussian tables, whose
    # cells are all about as uncertain) to .65 (skewed ones): no more can be had.
    settings = itertools.product((0.1, 0.3, 0.5), (False, True), (False, True))
    found = [sd_correlation(*setting) for setting in settings]
    assert np.mean(found) >= 0.4
    assert min(found) >= 0.25


def test_clipped_cells_predicted_short_of_their_limit_are_counted():
    X = np.array([[1.0, 5.0], [5.0, 5.0]])
    intervals = Intervals.from_table(X, ceiling=5)
    model = LowRank(np.array([[1.0], [1.0]]), np.array([[4.0], [6.0]]))
    found = check_residuals(intervals, model, np.array([6.0, 5, 6]), 0.4, None)
    np.testing.assert_allclose(found.short, [0, 1, 0])
    assert found.share_beyond == pytest.approx(2 / 3)
    assert found.share_short == pytest.approx(1 / 3)


def near_ratio(noise_near):
    """Return the ratio for a known matrix with noise of another size within 1 of the ceiling."""
    rng = np.random.default_rng(0)
    M = rng.uniform(-4, 2, (300, 40))
    ceiling = np.array([[1.5]])
    Y = M + np.where(np.abs(M - 1.5) < 1, noise_near, 0.5) * rng.standard_normal(M.shape)
    intervals = Intervals.from_table(np.minimum(Y, 1.5), ceiling=1.5)
    model = LowRank(M, np.eye(40))
    limits, restored = Limits(np.array([[-np.inf]]), ceiling), np.zeros(intervals.n_censored)
    return check_residuals(intervals, model, restored, 0.5, limits).near_ratio


def test_even_noise_gives_a_ratio_of_one_although_it_is_cut_off_at_the_limit():
    assert near_ratio(0.5) == pytest.approx(1, abs=0.05)


def test_larger_noise_near_the_limit_shows():
    assert near_ratio(1.5) > 1.5
