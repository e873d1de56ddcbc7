"""A penalty is an object: value, prox or ridge, subgradient and largest useful strength."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import optimize
from tests.helpers import random_model

from declip import Intervals
from declip.clipping import Limits
from declip.losses import Hinge
from declip.lowrank import LowRank
from declip.objective import gradient, largest_alpha
from declip.penalties import ClippedTraceNorm, FeaturePrior, Ridge, TraceNorm
from declip.solvers import Stopping, TableProblem, minimise
from declip.svd import SVD, product_svd

SHAPE = (7, 5)


def test_the_ridge_on_offsets_is_that_on_factors_unless_given():
    assert Ridge(2.0).on_offsets == 2.0
    assert Ridge(2.0, 0.0).on_offsets == 0.0


def test_the_ridge_is_half_its_strengths_times_the_squares():
    model = random_model(0, SHAPE, 2, bias=True, mean=0.3)
    factors = (model.P**2).sum() + (model.Q**2).sum()
    offsets = (model.row_offset**2).sum() + (model.col_offset**2).sum()
    assert_allclose(Ridge(2.0, 0.5).value(model), factors + 0.25 * offsets, rtol=1e-14)


def test_the_ridge_of_a_row_has_the_strength_of_offsets_last():
    assert_array_equal(Ridge(2.0, 0.5).vector(3, bias=True), [2, 2, 2, 0.5])
    assert_array_equal(Ridge(2.0, 0.5).vector(3, bias=False), [2, 2, 2])


def test_the_ridge_on_balanced_factors_is_the_trace_norm():
    balanced, S, _ = random_model(0, SHAPE, 2).balanced()
    assert_allclose(Ridge(2.0).value(balanced), TraceNorm(2.0).value(S), rtol=1e-13)


def test_the_prox_of_the_trace_norm_beats_every_point_of_a_grid():
    S, step, penalty = np.array([3.0, 1.0, 0.2]), 0.5, TraceNorm(0.8)
    found = penalty.prox(np.diag(S), step).S
    grid = np.linspace(0, 4, 401)
    for s, z in zip(S, np.pad(found, (0, len(S) - len(found))), strict=True):
        cost = 0.5 * (grid - s) ** 2 + step * penalty.alpha * grid
        assert 0.5 * (z - s) ** 2 + step * penalty.alpha * z <= cost.min() + 1e-12


def test_a_strength_above_the_largest_useful_one_leaves_nothing():
    cells = Intervals.from_table(np.random.default_rng(1).standard_normal((6, 5)))
    G = gradient(cells, LowRank.zero(cells.shape)).operator()
    most = largest_alpha(cells)
    assert len(TraceNorm(1.001 * most).prox(G).S) == 0
    assert len(TraceNorm(0.999 * most).prox(G).S) == 1


def test_new_directions_are_those_of_the_gradient_above_the_strength():
    U, V = (np.linalg.qr(np.random.default_rng(2).standard_normal((n, 3)))[0] for n in (6, 5))
    rows, columns = TraceNorm(1.0).missing(SVD(U, np.array([3.0, 1.5, 0.5]), V))
    # -(s - alpha) u v^T for s = 3 and 1.5
    assert_allclose(rows @ columns.T, -(U[:, :2] * [2.0, 0.5]) @ V[:, :2].T, atol=1e-14)


@pytest.mark.parametrize("seed", range(3))
def test_a_step_on_the_clipped_trace_norm_goes_down_its_gradient(seed):
    X = random_model(seed, SHAPE, 4)
    X = LowRank(X.A, X.B)
    limits = Limits(np.full((1, 1), -1.5), np.full((1, 1), 1.5))
    penalty, step = ClippedTraceNorm(0.7, limits), 0.4
    clip = product_svd(limits.clip(X.block()), np.eye(5))
    moved = penalty.descended(penalty.clipping(X), clip, step, ()).toarray()
    found = (X.block() - moved) / step
    h, numeric = 1e-6, np.empty(X.shape)
    for cell in np.ndindex(*X.shape):
        ends = []
        for sign in (1, -1):
            Y = X.block()
            Y[cell] += sign * h
            ends.append(penalty.value(np.linalg.svd(limits.clip(Y), compute_uv=False)))
        numeric[cell] = (ends[0] - ends[1]) / (2 * h)
    # Second derivatives of some tens times h, and values below 20 rounded over h.
    assert_allclose(found, numeric, rtol=0, atol=1e-6)


def feature_prior(seed=0, n=7, f=3):
    rng = np.random.default_rng(seed)
    return FeaturePrior(rng.standard_normal((n, f)), rng.uniform(0.5, 2, f))


def test_a_feature_prior_is_the_least_penalty_over_coefficients():
    model, prior = random_model(0, SHAPE, 2, bias=True, mean=0.3), feature_prior()
    X, ridge = prior.features, np.array([2.0, 2.0, 0.5])
    W = prior.coefficients(model.A)

    def of(W):
        away = ((model.A - X @ W) ** 2).sum(0) + (prior.ridge[:, None] * W**2).sum(0)
        return 0.5 * ridge @ (away + (model.B**2).sum(0))

    value = Ridge(2.0, 0.5, row_prior=prior).value(model)
    assert_allclose(value, of(W), rtol=1e-12)
    for step in np.random.default_rng(1).standard_normal((5, *W.shape)):
        assert of(W + 1e-3 * step) > value


def test_what_a_sweep_draws_to_lies_above_the_penalty_and_touches_it():
    prior, rng = feature_prior(), np.random.default_rng(2)
    penalty = Ridge(2.0, row_prior=prior)
    now, other = rng.standard_normal((2, 7, 2))
    Q = np.zeros((5, 2))

    def above(F):
        return ((F - penalty.pull(now).centre) ** 2).sum()

    def value(F):
        return penalty.value(LowRank(F, Q))

    gap = value(now) - above(now)
    assert value(other) <= above(other) + gap


@pytest.mark.parametrize("bias", [False, True])
def test_balanced_factors_under_priors_have_the_least_penalty(bias):
    model = random_model(3, SHAPE, 2, bias=bias, mean=0.3)
    penalty = Ridge(2.0, row_prior=feature_prior(4), col_prior=feature_prior(5, 5))
    balanced, _ = penalty.centred(penalty.balanced(model)[0])
    assert_allclose(balanced.block(), model.block(), rtol=1e-11)
    least = penalty.value(balanced)
    assert least <= penalty.value(model)
    for seed in range(5):
        M = np.eye(2) + 1e-3 * np.random.default_rng(seed).standard_normal((2, 2))
        other = balanced.mapped(M, np.linalg.inv(M).T)
        assert penalty.value(other) >= least
        assert penalty.value(other.shifted((1e-3, -1e-3))) >= least


def test_a_fit_with_a_prior_reaches_the_minimum_over_factors_and_coefficients():
    rng = np.random.default_rng(6)
    X = rng.standard_normal((7, 3))
    cells = Intervals.from_table(np.minimum(rng.standard_normal(SHAPE), 0.8), ceiling=0.8)
    penalty = Ridge(0.7, row_prior=FeaturePrior(X, np.ones(3)))
    problem = TableProblem(cells, random_model(7, SHAPE, 2), penalty)
    found = minimise(problem, Hinge(), Stopping(5000, 1e-12))
    assert np.all(np.diff(found.history) <= 1e-9)
    lower, upper = cells.to_bounds()

    def joint(z):
        P, Q, W = np.split(z, [14, 24])
        P, Q, W = P.reshape(7, 2), Q.reshape(5, 2), W.reshape(3, 2)
        x = P @ Q.T
        r = x - np.clip(x, lower, upper)
        away = P - X @ W
        value = 0.5 * (r**2).sum() + 0.35 * ((away**2).sum() + (W**2).sum() + (Q**2).sum())
        slopes = r @ Q + 0.7 * away, r.T @ P + 0.7 * Q, 0.7 * (W - X.T @ away)
        return value, np.concatenate([s.ravel() for s in slopes])

    prior = penalty.row_prior
    z = np.concatenate(
        [part.ravel() for part in (found.model.P, found.model.Q, prior.coefficients(found.model.P))]
    )
    value, slope = joint(z)
    assert_allclose(found.history[-1], value, rtol=1e-9)
    assert np.abs(slope).max() < 1e-4
    best = optimize.minimize(joint, z + 0.01 * rng.standard_normal(len(z)), jac=True)
    assert value <= best.fun + 1e-6
