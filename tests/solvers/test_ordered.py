"""The smooth part of ordered factors is drawn from its posterior, computed another way."""

from functools import partial

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.integrate import quad
from scipy.stats import gamma, multivariate_normal

from declip import ordering
from declip.ordering import Course
from declip.solvers.gibbs.ordered import PRECISION_RATE, PRECISION_SHAPE, draw_ordered

COURSE = Course("rows", 1, (3.5,))
N_STEPS, DRAWS = 8, 1500


def joint(f, whole, shape, rate, log_precision):
    """Return the density of a factor and the log of its precision."""
    precision = np.exp(log_precision)
    chance = gamma.pdf(precision, shape, scale=1 / rate) * precision
    return chance * multivariate_normal.pdf(f, cov=whole / precision)


def weights(f, fixed):
    """Return how likely each strength is for one factor, the precision integrated numerically."""
    shape, rate = PRECISION_SHAPE, PRECISION_RATE
    found = []
    for tried in COURSE.candidates(N_STEPS):
        whole = np.eye(N_STEPS) + tried.covariance(N_STEPS)
        density = partial(joint, f, whole, shape, rate)
        found.append(multivariate_normal.pdf(f, cov=whole) if fixed else quad(density, -9, 9)[0])
    return np.array(found) / np.sum(found)


@pytest.fixture(autouse=True)
def _few_strengths(monkeypatch):
    monkeypatch.setattr(ordering, "_STRENGTHS", (0.0, 1.0, 10.0))


@pytest.mark.parametrize("fixed", [True, False])
def test_the_smooth_part_has_the_mean_of_its_posterior(fixed):
    rng = np.random.default_rng(0)
    F = np.cumsum(rng.normal(size=(N_STEPS, 2)), axis=0) * [0.6, 0.2]
    draws = []
    for _ in range(DRAWS):
        prior, other = draw_ordered(COURSE, F, fixed, rng)
        draws.append(prior.information / np.diag(prior.precision))
        assert np.all(np.diag(other.precision) < np.diag(prior.precision))
    for a in range(2):
        chance = weights(F[:, a], fixed)
        expected = sum(
            p * np.linalg.solve(np.eye(N_STEPS) + S, S @ F[:, a])
            for p, S in zip(
                chance, (c.covariance(N_STEPS) for c in COURSE.candidates(N_STEPS)), strict=True
            )
        )
        error = np.std(draws, axis=0)[:, a] / np.sqrt(DRAWS)
        assert np.all(np.abs(np.mean(draws, axis=0)[:, a] - expected) < 4.5 * error)


def test_the_smooth_part_has_the_spread_of_its_posterior():
    """With one strength alone: covariance N about N F."""
    rng = np.random.default_rng(1)
    still = Course("rows", 0)  # a level and nothing else
    F = rng.normal(size=(6, 1))
    S = np.array([draw_ordered(still, F, True, rng)[0].information[:, 0] for _ in range(DRAWS)])
    N = np.linalg.solve(np.eye(6) + np.ones((6, 6)), np.ones((6, 6)))
    assert_allclose(np.cov(S.T), N, atol=6 * N.max() / np.sqrt(DRAWS))
