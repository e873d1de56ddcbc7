"""The objective in one place, its gradient, and the certificate of its optimum."""

import cvxpy as cp
import numpy as np
import pytest
from numpy.testing import assert_allclose
from tests.helpers import cell_losses, random_model
from tests.plain import certificate, gradient, minimise, objective, total_loss
from tests.twin import random_bounds

import declip.objective
from declip import Intervals
from declip.losses import Hinge, Tobit
from declip.lowrank import LowRank

SCALES = [pytest.param(0.0, id="hinge"), pytest.param(0.7, id="tobit")]
BIAS = [pytest.param(False, id="factors"), pytest.param(True, id="offsets")]


def random_problem(seed, shape=(8, 6), k=3, *, bias=False, size=1.0):
    rng = np.random.default_rng(seed)
    intervals = Intervals.from_bounds(*random_bounds(rng, shape))
    mean = 0.3 if bias else 0.0
    return intervals, random_model(rng, shape, k, bias=bias, mean=mean, size=size)


# The objective.


@pytest.mark.parametrize("bias", BIAS)
def test_hinge_objective_is_loss_plus_penalty(bias):
    intervals, model = random_problem(0, bias=bias)
    penalty = (model.A**2).sum() + (model.B**2).sum()
    expected = cell_losses(intervals, model.block(), 0.0).sum() + 0.5 * 1.7 * penalty
    assert_allclose(objective(intervals, model, 1.7), expected, rtol=1e-13)


@pytest.mark.parametrize("bias", BIAS)
def test_tobit_objective_is_a_penalised_negative_log_likelihood(bias):
    intervals, model = random_problem(1, bias=bias)
    scale = 0.7
    penalty = (model.A**2).sum() + (model.B**2).sum()
    densities = intervals.n_exact * np.log(np.sqrt(2 * np.pi) * scale)
    loss = cell_losses(intervals, model.block(), scale).sum()
    expected = (loss + 0.5 * 1.7 * penalty) / scale**2 + densities
    # The reference is a quadrature good to 1e-13 a cell, and the parts may cancel in part.
    assert_allclose(objective(intervals, model, 1.7, scale), expected, rtol=1e-11)


@pytest.mark.parametrize("clipped", ["value", "missing"])
def test_the_objective_of_treated_cells_is_that_of_their_values(clipped):
    intervals, model = random_problem(2)
    table = intervals.treat(clipped)
    values, _ = table.to_bounds()
    expected = 0.5 * np.nansum((model.block() - values) ** 2)
    assert_allclose(objective(table, model, 0.0), expected, rtol=1e-13)
    assert table.n_censored == 0


def test_the_objective_of_the_hinge_is_loss_plus_penalty():
    assert Hinge().objective(2.0, 6.0, n_exact=5) == 8.0


def test_the_objective_of_tobit_counts_exact_cells_by_their_density():
    value = Tobit(2.0).objective(2.0, 6.0, n_exact=5)
    assert_allclose(value, 8 / 4 + 5 * np.log(2 * np.sqrt(2 * np.pi)), rtol=1e-15)


# The gradient.


@pytest.mark.parametrize("scale", SCALES)
@pytest.mark.parametrize("bias", BIAS)
def test_gradient_is_the_finite_difference_of_the_loss_in_each_cell(bias, scale):
    intervals, model = random_problem(3, bias=bias)
    X, step = model.block(), 1e-5
    ahead, behind = (cell_losses(intervals, X + s, scale) for s in (step, -step))
    G = gradient(intervals, model, scale)
    dense = (G.exact + G.censored).toarray()[~np.isnan(intervals.to_bounds()[0])]
    # Third derivatives of at most 1 times step^2, and losses below 50 rounded over the step.
    assert_allclose(dense, (ahead - behind) / (2 * step), rtol=0, atol=1e-8)


def test_gradient_is_zero_where_nothing_was_observed():
    intervals, model = random_problem(4)
    G = gradient(intervals, model)
    missing = np.isnan(intervals.to_bounds()[0])
    assert not (G.exact + G.censored).toarray()[missing].any()


@pytest.mark.parametrize("scale", SCALES)
def test_gradient_carries_the_loss(scale):
    intervals, model = random_problem(5)
    expected = cell_losses(intervals, model.block(), scale).sum()
    assert_allclose(gradient(intervals, model, scale).loss, expected, rtol=1e-12)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("scale", SCALES)
@pytest.mark.parametrize("bias", BIAS)
def test_cells_of_the_whole_matrix_are_those_found_one_by_one(monkeypatch, bias, scale, dtype):
    intervals, model = random_problem(8, shape=(30, 20), k=4, bias=bias)
    intervals, model = intervals.astype(dtype), model.astype(dtype)
    found = {}
    for way, least in (("one by one", np.inf), ("whole", 0)):
        monkeypatch.setattr(declip.objective, "_MANY_FACTORS", least)
        G = gradient(intervals, model, scale)
        found[way] = G.exact.data, G.censored.data, G.loss, total_loss(intervals, model, scale)
    for one, other in zip(*found.values(), strict=True):
        # A sum of five products of size 1, and losses of size 10.
        assert_allclose(one, other, rtol=20 * np.finfo(dtype).eps, atol=50 * np.finfo(dtype).eps)


def test_a_table_with_few_observed_cells_is_never_made_as_a_whole(monkeypatch):
    rows = np.arange(40)
    intervals = Intervals.from_triplets(rows, rows % 30, np.ones(40), shape=(40, 30))
    model = random_model(0, (40, 30), 120)
    monkeypatch.setattr(LowRank, "block", lambda *_: pytest.fail("made as a whole"))
    expected = 0.5 * ((np.einsum("ik,ik->i", model.A, model.B[rows % 30]) - 1) ** 2).sum()
    assert_allclose(total_loss(intervals, model), expected, rtol=1e-12)


def test_gradient_as_an_operator_is_its_matrix():
    intervals, model = random_problem(6)
    G = gradient(intervals, model)
    dense, A = (G.exact + G.censored).toarray(), G.operator()
    assert_allclose(A @ np.eye(6), dense, rtol=1e-14, atol=1e-14)
    assert_allclose(A.T @ np.eye(8), dense.T, rtol=1e-14, atol=1e-14)
    assert_allclose(A @ np.ones(6), dense.sum(axis=1), rtol=1e-13, atol=1e-14)


# The certificate.


@pytest.mark.parametrize("scale", [0.0, 0.05, 0.7, 10.0])
@pytest.mark.parametrize("bias", BIAS)
def test_certified_objective_is_the_trace_norm_objective(bias, scale):
    intervals, model = random_problem(7, bias=bias)
    loss = cell_losses(intervals, model.block(), scale).sum()
    low_rank = np.linalg.norm(model.P @ model.Q.T, "nuc")
    offsets = (model.row_offset**2).sum() + (model.col_offset**2).sum()
    value = certificate(intervals, model, 1.3, scale).objective
    assert_allclose(value, loss + 1.3 * (low_rank + 0.5 * offsets), rtol=1e-11)


@pytest.mark.parametrize("scale", [0.0, 0.05, 0.7, 10.0])
@pytest.mark.parametrize("bias", BIAS)
def test_the_gap_bounds_the_distance_to_any_other_objective(bias, scale):
    for seed in range(18):  # each size with each alpha, twice
        intervals, model = random_problem(seed, bias=bias, size=[0.1, 1.0, 3.0][seed % 3])
        alpha = [0.01, 1.0, 30.0][seed // 3 % 3]
        here = certificate(intervals, model, alpha, scale)
        best = minimise(intervals, model, alpha, max_iter=30).model  # the hinge's: some good point
        best = best.shifted((model.mean - best.mean, 0.0))  # the certificate is for this mean
        other = certificate(intervals, best, alpha, scale).objective
        assert here.gap >= 0
        assert here.objective - here.gap <= other * (1 + 1e-12)


@pytest.mark.parametrize("bias", BIAS)
@pytest.mark.parametrize("alpha", [0.3, 2.0])
def test_the_gap_vanishes_at_a_fit_of_full_rank(alpha, bias):
    intervals, start = random_problem(8, k=6, bias=bias, size=0.3)
    fit = minimise(intervals, start, alpha, max_iter=5000, tol=1e-14)
    found = certificate(intervals, fit.model, alpha)
    assert found.gap <= 1e-6 * found.objective
    assert found.norm_ratio <= 1 + 1e-3  # the gap is quadratic in what the gradient is off


@pytest.mark.parametrize("bias", BIAS)
def test_the_tobit_gap_vanishes_at_a_fit_of_full_rank(bias):
    intervals, start = random_problem(9, k=6, bias=bias, size=0.3)
    fit = minimise(intervals, start, 2.0, scale=1.0, max_iter=5000, tol=1e-14)
    found = certificate(intervals, fit.model, 2.0, fit.scale)
    # The dual point is a mean of the gradient and of 0: its gap is linear in |G|_op / alpha - 1.
    assert found.gap <= 1e-3 * found.objective


def test_a_given_trace_norm_is_used():
    intervals, model = random_problem(10)
    trace_norm = float(model.balanced()[1].sum())
    assert certificate(intervals, model, 1.0, trace_norm=trace_norm) == certificate(
        intervals, model, 1.0
    )


def test_without_a_penalty_only_a_perfect_fit_is_certified():
    P, Q = np.ones((3, 1)), np.arange(1.0, 5.0)[:, None]
    intervals = Intervals.from_table(P @ Q.T)
    perfect = certificate(intervals, LowRank(P, Q), 0.0)
    assert (perfect.gap, perfect.norm_ratio) == (0.0, 0.0)
    assert certificate(intervals, LowRank(2 * P, Q), 0.0).norm_ratio == np.inf


# Against a convex solver.


def solve_convex(intervals, alpha, *, bias=False):
    """The trace-norm problem by cvxpy, the mean free if there are offsets: value and matrix."""
    lower, upper = intervals.to_bounds()
    n, m = intervals.shape
    L = cp.Variable((n, m))
    X, penalty = L, cp.normNuc(L)
    if bias:
        b, c, mean = cp.Variable((n, 1)), cp.Variable((1, m)), cp.Variable()
        X = X + mean + b @ np.ones((1, m)) + np.ones((n, 1)) @ c
        penalty += 0.5 * (cp.sum_squares(b) + cp.sum_squares(c))
    exact = lower == upper
    has_lower, has_upper = np.isfinite(lower) & ~exact, np.isfinite(upper) & ~exact
    target, low, high = (
        np.where(s, b, 0.0) for s, b in ((exact, lower), (has_lower, lower), (has_upper, upper))
    )
    loss = cp.sum_squares(cp.multiply(exact, X - target))
    loss += cp.sum_squares(cp.multiply(has_lower, cp.pos(low - X)))
    loss += cp.sum_squares(cp.multiply(has_upper, cp.pos(X - high)))
    problem = cp.Problem(cp.Minimize(0.5 * loss + alpha * penalty))
    problem.solve(solver=cp.CLARABEL)
    return problem.value, X.value


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("bias", BIAS)
def test_a_fit_of_full_rank_solves_the_convex_problem(bias, seed):
    intervals, start = random_problem(20 + seed, k=6, bias=bias, size=0.3)
    fit = minimise(intervals, start, 1.0, max_iter=5000, tol=1e-14)
    value, _ = solve_convex(intervals, 1.0, bias=bias)
    found = certificate(intervals, fit.model, 1.0)
    # Both stop at some 1e-8 of the value.
    assert_allclose(found.objective, value, rtol=1e-5)
    assert_allclose(objective(intervals, fit.model, 1.0), value, rtol=1e-5)


def test_the_matrix_of_the_convex_problem_is_found_where_it_is_unique():
    rng = np.random.default_rng(30)
    table = rng.standard_normal((8, 6))
    intervals = Intervals.from_table(np.minimum(table, 1.0), ceiling=1.0)
    start = random_model(rng, (8, 6), 6, size=0.3)
    fit = minimise(intervals, start, 0.5, max_iter=5000, tol=1e-15)
    X = solve_convex(intervals, 0.5)[1]
    # Strongly convex in the cells that count, so X is off by the root of twice the gap, 1e-4.
    below = X < 1.0
    assert_allclose(fit.model.block()[below], X[below], rtol=0, atol=1e-4)


@pytest.mark.parametrize("scale", SCALES)
@pytest.mark.parametrize("factor", [1.0001, 3.0])
def test_a_penalty_above_the_norm_of_the_gradient_at_zero_gives_zero(factor, scale):
    intervals, start = random_problem(40, k=3)
    zero = LowRank(np.zeros((8, 3)), np.zeros((6, 3)))
    G = gradient(intervals, zero, scale)
    alpha = factor * np.linalg.norm((G.exact + G.censored).toarray(), 2)
    at_zero = certificate(intervals, zero, alpha, scale)
    assert at_zero.norm_ratio <= 1
    # F(0) and its dual cancel to rounding.
    assert at_zero.gap <= 1e-12 * at_zero.objective
    if scale == 0:
        fit = minimise(intervals, start, alpha, max_iter=20_000, tol=1e-15)
        # F grows by (factor - 1) alpha |X|_tr at least, and the fit stops 1e-8 above F(0).
        assert np.abs(fit.model.block()).max() <= 1e-8 * at_zero.objective / (1e-4 * alpha)
