"""Factors along an order: their covariance, what they say of the next step, what is estimated."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from declip.ordering import Course


@pytest.mark.parametrize("smooth", [1, 2])
def test_the_walk_has_the_covariance_of_sums_of_steps(smooth):
    n = 12
    steps = np.tril(np.ones((n, n)), -1)  # position t is the sum of the steps before it
    root = steps
    if smooth == 2:  # t is the sum over u < t of the velocity after u, itself a sum of steps
        root = steps @ np.tril(np.ones((n, n)))
    assert_allclose(Course("rows", smooth)._walk(n), root @ root.T)


def test_seasons_return_and_have_no_mean():
    S = Course("rows", 0, (7.0,))._seasons(28)
    assert_allclose(np.diag(S), 1.0)
    assert_allclose(S[:, 0], S[:, 7])
    assert_allclose(S[:, :7].sum(axis=1), 0, atol=1e-12)
    assert np.linalg.matrix_rank(S, tol=1e-8) == 6


@pytest.mark.parametrize("smooth", [0, 1, 2])
def test_the_penalty_is_a_ridge_less_a_pull_both_positive(smooth):
    prior = Course("columns", smooth, (5.0,), drift=0.4, season=2.0).prior(20)
    N = prior.pulled(np.eye(20))
    assert_allclose(N, N.T)
    assert np.linalg.eigvalsh(N).min() > -1e-12
    assert_allclose(np.linalg.inv(np.eye(20) - N), np.eye(20) + prior.covariance, rtol=1e-9)


def test_the_next_steps_are_those_of_the_conditional_normal():
    rng = np.random.default_rng(0)
    prior, F = Course("columns", 1, (4.0,), 0.3, 1.0).prior(10), rng.normal(size=(7, 2))
    K = np.linalg.inv(np.eye(10) + prior.covariance)
    # E[new | old] = -K_nn^-1 K_no old, from the precision instead of the covariance
    expected = -np.linalg.solve(K[7:, 7:], K[7:, :7] @ F)
    assert_allclose(prior.following(F), expected)


def test_the_spread_of_a_step_is_that_of_the_conditional_normal():
    prior, seen = Course("columns", 1, (4.0,), 0.3, 1.0).prior(6), np.arange(6) < 4
    whole = np.eye(6) + prior.covariance
    # by regression: the variance left by the least-squares fit of a step by the others seen
    expected = []
    for t in range(6):
        others = np.flatnonzero(seen & (np.arange(6) != t))
        slope = np.linalg.solve(whole[np.ix_(others, others)], whole[others, t])
        expected.append(whole[t, t] - slope @ whole[others, t])
    assert_allclose(prior.spread(seen), expected)


def test_a_walk_goes_on_where_it_was_and_a_second_order_one_as_it_went():
    line = np.linspace(0, 5, 40)[:, None]
    flat, steep = (
        Course("rows", order, (), drift).prior(42).following(line)
        for order, drift in ((1, 10.0), (2, 1.0))
    )
    assert abs(flat[1, 0] - line[-1, 0]) < 0.2
    assert_allclose(steep[:, 0], 5 + 5 / 39 * np.array([1, 2]), atol=0.1)


def test_what_factors_follow_is_estimated():
    rng = np.random.default_rng(1)
    t = np.arange(70)
    noise = rng.normal(size=(70, 3))
    course = Course("rows", 1, (7.0,))
    assert course.estimated(noise).drift < 0.02
    assert course.estimated(noise).season <= 0.1
    walk = noise + np.cumsum(rng.normal(size=(70, 3)), axis=0)
    assert 0.2 < course.estimated(walk).drift < 3
    wave = noise + 3 * np.sin(2 * np.pi * t / 7)[:, None] * [1.0, -1.0, 0.5]
    assert course.estimated(wave).season >= 1
    assert course.estimated(wave).drift < 0.02
