"""The trace-norm problem three ways: each step, the certified optimum, and what the caller sees."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from tests.helpers import cell_losses, low_rank, random_intervals
from tests.plain import (
    certificate,
    douglas_rachford,
    factored,
    gradient,
    largest_alpha,
    loss_at,
    minimise,
    proximal,
)
from tests.twin import cell_loss, random_bounds

from declip import Intervals, svd
from declip.lowrank import LowRank
from declip.solvers import Start, TracePenalty, start_scale

INF = np.inf
SCALES = [pytest.param(False, id="hinge"), pytest.param(True, id="tobit")]
each_solver = pytest.mark.parametrize("solver", ["proximal", "factored", "splitting"])


def solve(solver, intervals, alpha, start=None, **how):
    """Run a solver from zero, or from a start without continuation."""
    if solver == "factored":
        return factored(intervals, start or LowRank.zero(intervals.shape), alpha, **how)
    if solver == "splitting":
        begin = Start(
            start or LowRank.zero(intervals.shape), loss_at(how.pop("scale", 0.0)), bool(start)
        )
        return douglas_rachford(intervals, begin, TracePenalty(alpha), **how)
    first = alpha if start else largest_alpha(intervals, how.get("scale", 0.0))
    return proximal(
        intervals, start or LowRank.zero(intervals.shape), alpha, first_alpha=first, **how
    )


def low_rank_table(seed, shape=(16, 12), rank=3, noise=0.1):
    return low_rank(seed, shape, rank, noise=noise)


def problem(seed, shape=(14, 11), share=0.2):
    """Cells of all kinds, and a penalty that is a share of the largest useful one."""
    intervals = random_intervals(seed, shape)
    return intervals, share * largest_alpha(intervals)


def value_of(intervals, X, alpha, scale=0.0):
    """The objective of a dense matrix, from its definition."""
    value = cell_losses(intervals, X, scale).sum() + alpha * np.linalg.norm(X, "nuc")
    if scale == 0:
        return value
    return value / scale**2 + intervals.n_exact * np.log(np.sqrt(2 * np.pi) * scale)


def shrunk(X, threshold):
    U, S, Vt = np.linalg.svd(X, full_matrices=False)
    return (U * np.maximum(S - threshold, 0)) @ Vt


# One step.


@pytest.mark.parametrize("tobit", SCALES)
def test_the_first_step_is_a_proximal_gradient_step(tobit):
    intervals, alpha = problem(0)
    scale = 1.0 if tobit else 0.0
    rng = np.random.default_rng(0)
    start = LowRank(*(rng.standard_normal((n, 4)) for n in intervals.shape))
    G = gradient(intervals, start, scale)
    expected = shrunk(start.block() - (G.exact + G.censored).toarray(), alpha)
    found = solve("proximal", intervals, alpha, start, scale=scale, max_iter=1)
    assert found.history[1] < found.history[0]  # so that the step itself is returned
    # An SVD of a matrix of norm 20 by numpy on both sides.
    assert_allclose(found.model.block(), expected, rtol=0, atol=1e-12)


@pytest.mark.parametrize("share", [0.05, 0.3])
def test_a_proximal_step_finds_nothing_to_improve(share):
    intervals, alpha = problem(1, share=share)
    found = solve("proximal", intervals, alpha, tol=1e-10, max_iter=20000)
    X = found.model.block()
    G = gradient(intervals, found.model)
    step = shrunk(X - (G.exact + G.censored).toarray(), alpha) - X
    # A step lowers the objective by at least |step|^2 / 2, which the gap, 1e-10 F, bounds.
    assert found.converged
    assert np.linalg.norm(step) <= np.sqrt(2e-10 * found.history[-1])


# The optimum.


@pytest.mark.parametrize("share", [0.03, 0.2, 0.7])
def test_the_two_solvers_agree(share):
    for seed in range(3):
        intervals, alpha = problem(seed, share=share)
        one, other = (
            solve(s, intervals, alpha, tol=1e-6, max_iter=5000) for s in ("proximal", "factored")
        )
        assert one.converged
        assert other.converged
        # Each is above the minimum by at most its gap, 1e-6 of itself.
        assert_allclose(one.history[-1], other.history[-1], rtol=1e-6)


def test_the_two_solvers_agree_on_tobit():
    X = low_rank_table(0, (40, 30), noise=0.5)
    intervals = Intervals.from_table(np.minimum(X, 1.0), ceiling=1.0)
    how = {"scale": start_scale(intervals), "tol": 1e-6, "max_iter": 5000}
    one, other = (solve(s, intervals, 1.0, **how) for s in ("proximal", "factored"))
    # The scale is refitted by EM until it moves by 1e-3 or less, and the objective is flat there.
    assert_allclose(one.scale, other.scale, rtol=1e-3)
    assert_allclose(one.history[-1], other.history[-1], rtol=1e-4)


def soft_impute(X, alpha, iterations=3000):
    """Fill in, shrink, and again (Mazumder, Hastie and Tibshirani)."""
    Z = np.zeros(X.shape)
    for _ in range(iterations):
        Z = shrunk(np.where(np.isnan(X), Z, X), alpha)
    return Z


@each_solver
@pytest.mark.parametrize("missing", [0.0, 0.4])
def test_infinite_limits_give_soft_impute(solver, missing):
    X = low_rank_table(1)
    X[np.random.default_rng(0).random(X.shape) < missing] = np.nan
    intervals = Intervals.from_table(X, ceiling=INF, floor=-INF)
    found = solve(solver, intervals, 1.0, tol=1e-7, max_iter=5000)
    expected, seen = soft_impute(X, 1.0), ~np.isnan(X)
    assert found.converged
    assert_allclose(found.history[-1], value_of(intervals, expected, 1.0), rtol=1e-7)
    # On the observed cells |X - X*|^2 / 2 is at most the gap, 1e-7 of about 50.
    assert_allclose(found.model.block()[seen], expected[seen], rtol=0, atol=np.sqrt(1e-5))


@each_solver
@pytest.mark.parametrize("share", [1.0, 1 + 1e-9, 2.0])
@pytest.mark.parametrize("seed", range(5))
def test_from_the_largest_useful_alpha_on_the_solution_is_exactly_zero(seed, share, solver):
    intervals, alpha = problem(seed, share=share)
    found = solve(solver, intervals, alpha)
    assert not found.model.block().any()
    assert found.converged


@each_solver
@pytest.mark.parametrize("seed", range(5))
def test_just_below_the_largest_useful_alpha_the_solution_is_not_zero(seed, solver):
    # With |G|_op = s the step (s - alpha) u v^T lowers F by at least (s - alpha)^2 / 2. The gap
    # of 0 is of that order, 1e-6 s^2, far above tol F.
    intervals, alpha = problem(seed, share=1 - 1e-3)
    found = solve(solver, intervals, alpha, tol=1e-12, max_iter=2000)
    at_zero = value_of(intervals, np.zeros(intervals.shape), alpha)
    s = alpha / (1 - 1e-3)
    assert found.history[-1] <= at_zero - 0.5 * (1e-3 * s) ** 2 * (1 - 1e-6)


def test_the_largest_useful_alpha_is_the_norm_of_the_gradient_at_zero():
    for seed in range(5):
        intervals, _ = problem(seed)
        lower, upper = intervals.to_bounds()
        G = np.where(np.isnan(lower), 0.0, -np.clip(0.0, lower, upper))
        assert_allclose(largest_alpha(intervals), np.linalg.norm(G, 2), rtol=1e-12)


@each_solver
@pytest.mark.parametrize("tobit", SCALES)
def test_no_perturbation_of_the_solution_beats_its_certificate(tobit, solver):
    for seed in range(4):
        rng = np.random.default_rng(seed)
        intervals, alpha = problem(seed)
        scale = start_scale(intervals) if tobit else 0.0
        # Few iterations: the gap is far from 0, and the bound is put to the test.
        found = solve(solver, intervals, alpha, scale=scale, max_iter=15)
        proof = certificate(intervals, found.model, alpha, found.scale)
        X, bound = found.model.block(), proof.objective - proof.gap
        G = gradient(intervals, found.model, found.scale)
        downhill = -(G.exact + G.censored).toarray()
        values = [
            cell_losses(intervals, Z, found.scale).sum() + alpha * np.linalg.norm(Z, "nuc")
            for size in (1e-6, 1e-3, 0.1, 1.0)
            for Z in (
                *(X + size * rng.standard_normal(X.shape) for _ in range(10)),
                *(X + size * np.outer(*(rng.standard_normal(n) for n in X.shape)) for _ in "12"),
                X + size * downhill,
                shrunk(X + size * downhill, size * alpha),
                (1 - size) * X,
            )
        ]
        # The quadrature of the twin is good to 1e-13 a cell.
        assert min(values) >= bound - 1e-10 * abs(bound)


@each_solver
@pytest.mark.parametrize("tobit", SCALES)
def test_converged_means_a_gap_of_at_most_tol_times_the_penalised_loss(tobit, solver):
    for seed in range(6):
        intervals, alpha = problem(seed)
        scale = start_scale(intervals) if tobit else 0.0
        found = solve(solver, intervals, alpha, scale=scale, tol=1e-3, max_iter=2000)
        proof = certificate(intervals, found.model, alpha, found.scale)
        assert found.converged
        assert 0 <= proof.gap <= 1e-3 * proof.objective


@each_solver
def test_a_gap_above_tol_is_not_called_converged(solver):
    intervals, alpha = problem(3, share=0.01)
    found = solve(solver, intervals, alpha, tol=1e-9, max_iter=7)
    proof = certificate(intervals, found.model, alpha)
    assert not found.converged
    assert proof.gap > 1e-9 * proof.objective


def test_where_the_continuation_begins_does_not_change_the_optimum():
    intervals, alpha = problem(4, share=0.05)
    values = [
        proximal(
            *(intervals, LowRank.zero(intervals.shape), alpha),
            first_alpha=first * alpha,
            tol=1e-7,
            max_iter=5000,
        ).history[-1]
        for first in (0.1, 1.0, 3.0, 1000.0)
    ]
    assert_allclose(values, values[0], rtol=1e-7)  # the gap of each


@each_solver
def test_a_start_at_the_solution_is_certified_at_once(solver):
    intervals, alpha = problem(5)
    best = solve(solver, intervals, alpha, tol=1e-7, max_iter=5000)
    again = solve(solver, intervals, alpha, best.model, tol=1e-6, max_iter=5000)
    assert again.converged
    assert again.n_iter <= 10  # one stage of the factored form, two checks of the other


@each_solver
def test_the_mirrored_table_has_the_mirrored_solution(solver):
    X = low_rank_table(6)
    up = Intervals.from_table(np.minimum(X, 1.0), ceiling=1.0)
    down = Intervals.from_table(np.maximum(-X, -1.0), floor=-1.0)
    one, other = (solve(solver, t, 1.0, max_iter=40, tol=0.0) for t in (up, down))
    assert_allclose(one.history, other.history, rtol=1e-10)
    # The same arithmetic but for signs; what rounding differs grows little in 40 iterations.
    assert_allclose(one.model.block(), -other.model.block(), rtol=0, atol=1e-8)


@each_solver
def test_a_permuted_table_has_the_permuted_solution(solver):
    rng = np.random.default_rng(7)
    X = np.minimum(low_rank_table(7), 1.0)
    rows, cols = rng.permutation(16), rng.permutation(12)
    one, other = (
        solve(solver, Intervals.from_table(T, ceiling=1.0), 1.0, tol=1e-7, max_iter=5000)
        for T in (X, X[np.ix_(rows, cols)])
    )
    # |X - X*|^2 / 2 on exact cells is at most the gap, 1e-7 of 40, on either side.
    exact, moved = np.ix_(rows, cols), X[np.ix_(rows, cols)] < 1
    error = (one.model.block()[exact] - other.model.block())[moved]
    assert np.linalg.norm(error) <= 2 * np.sqrt(2 * 1e-7 * 40)


@each_solver
def test_the_transposed_table_has_the_transposed_solution(solver):
    intervals, alpha = problem(8, (14, 11))
    one, other = (
        solve(solver, t, alpha, tol=1e-7, max_iter=5000) for t in (intervals, intervals.T)
    )
    assert_allclose(one.history[-1], other.history[-1], rtol=1e-7)


@each_solver
def test_matrix_free_steps_reach_the_same_optimum(solver, monkeypatch):
    X = low_rank_table(9, (50, 40))
    X[np.random.default_rng(0).random(X.shape) < 0.3] = np.nan
    intervals = Intervals.from_table(np.minimum(X, 1.0), ceiling=1.0)
    dense = solve(solver, intervals, 3.0, tol=1e-6, max_iter=3000)
    monkeypatch.setattr(svd, "_DENSE_UP_TO", 0)
    free = solve(solver, intervals, 3.0, tol=1e-6, max_iter=3000)
    assert free.converged
    assert_allclose(free.history[-1], dense.history[-1], rtol=1e-6)  # the gap of each


@each_solver
@pytest.mark.parametrize("shape", [(1, 1), (1, 9), (9, 1), (2, 30)])
def test_a_narrow_table_is_solved(shape, solver):
    rng = np.random.default_rng(10)
    lower = 1 + rng.random(shape)
    intervals = Intervals.from_bounds(lower, lower + (rng.random(shape) < 0.3))
    found = solve(solver, intervals, 0.1, tol=1e-8, max_iter=2000)
    assert found.converged
    if 1 in shape:
        # One row: the trace norm is the Euclidean one. By the definition, no direct formula with
        # intervals, so the answer must withstand small steps towards and away from the origin.
        x = found.model.block()
        near = [value_of(intervals, t * x, 0.1) for t in (1 - 1e-3, 1.0, 1 + 1e-3)]
        assert near[1] <= min(near) * (1 + 1e-8)


@each_solver
def test_empty_rows_and_columns_are_zero(solver):
    lower, upper = random_bounds(np.random.default_rng(11), (14, 11))
    lower[4] = upper[4] = lower[:, 3] = upper[:, 3] = np.nan
    intervals = Intervals.from_bounds(lower, upper)
    X = solve(solver, intervals, 0.2 * largest_alpha(intervals)).model.block()
    # A gradient that is zero there has singular vectors that are, but for rounding.
    assert_allclose(X[[0, 4]], 0, atol=1e-12)  # row 0 is empty by construction
    assert_allclose(X[:, 3], 0, atol=1e-12)


@each_solver
def test_a_large_table_of_zeros_is_zero(solver):
    # Beyond 128 rows and columns singular values are found by iteration, also those of nothing.
    shape = (150, 140)
    X = np.zeros(shape)
    X[np.random.default_rng(0).random(shape) < 0.5] = np.nan
    found = solve(solver, Intervals.from_table(X), 1.0)
    assert not found.model.block().any()


# max_rank.


@pytest.mark.parametrize("solver", ["proximal", "factored"])
@pytest.mark.parametrize("max_rank", [1, 2, 5])
def test_max_rank_caps_the_rank(max_rank, solver):
    intervals, alpha = problem(12, share=0.01)
    found = solve(solver, intervals, alpha, max_rank=max_rank, max_iter=50)
    assert np.linalg.matrix_rank(found.model.block()) <= max_rank
    assert found.history[-1] < found.history[0]


@pytest.mark.parametrize("solver", ["proximal", "factored"])
def test_a_max_rank_above_the_solutions_changes_nothing(solver):
    intervals, alpha = problem(13)
    free = solve(solver, intervals, alpha, tol=1e-7, max_iter=5000)
    rank = np.linalg.matrix_rank(free.model.block(), tol=1e-6)
    capped = solve(solver, intervals, alpha, tol=1e-7, max_iter=5000, max_rank=int(rank) + 2)
    assert capped.converged
    assert_allclose(capped.history[-1], free.history[-1], rtol=1e-7)


# What is returned.


@each_solver
@pytest.mark.parametrize("tobit", SCALES)
def test_the_history_never_rises(tobit, solver):
    for seed in range(10):
        intervals, alpha = problem(seed, share=[0.003, 0.03, 0.3][seed % 3])
        scale = start_scale(intervals) if tobit else 0.0
        history = solve(solver, intervals, alpha, scale=scale, max_iter=60).history
        assert (np.diff(history) <= 0).all()


@each_solver
@pytest.mark.parametrize("tobit", SCALES)
def test_every_state_has_the_objective_that_it_reports(tobit, solver):
    for seed in range(4):
        intervals, alpha = problem(seed, share=[0.003, 0.03, 0.3, 0.1][seed])
        scale, states = start_scale(intervals) if tobit else 0.0, []
        final = solve(solver, intervals, alpha, scale=scale, max_iter=33, on_sweep=states.append)
        for state in (*states, final):
            expected = value_of(intervals, state.model.block(), alpha, state.scale)
            # The trace norm of factors that are rounded, and a sum of 100 cells.
            assert_allclose(state.history[-1], expected, rtol=1e-9)


@each_solver
@pytest.mark.parametrize("tobit", SCALES)
def test_the_history_starts_with_the_objective_of_the_start(tobit, solver):
    intervals, alpha = problem(14)
    scale = start_scale(intervals) if tobit else 0.0
    rng = np.random.default_rng(0)
    start = LowRank(*(rng.standard_normal((n, 4)) for n in intervals.shape))
    found = solve(solver, intervals, alpha, start, scale=scale, max_iter=2)
    expected = value_of(intervals, start.block(), alpha, scale)
    assert_allclose(found.history[0], expected, rtol=1e-10)


@each_solver
def test_on_sweep_sees_every_iteration(solver):
    intervals, alpha = problem(15, share=0.01)
    counts = []
    found = solve(
        *(solver, intervals, alpha),
        tol=0.0,
        max_iter=23,
        on_sweep=lambda s: counts.append(s.n_iter),
    )
    assert counts == list(range(1, 24))
    assert found.n_iter == 23


@each_solver
@pytest.mark.parametrize("after", [1, 3, 14])
def test_a_true_answer_of_on_sweep_stops(after, solver):
    intervals, alpha = problem(16, share=0.01)
    found = solve(
        solver, intervals, alpha, tol=0.0, max_iter=50, on_sweep=lambda s: s.n_iter == after
    )
    assert (found.stopped, found.converged, found.n_iter) == (True, False, after)


@each_solver
def test_the_start_is_left_as_it_was(solver):
    intervals, alpha = problem(17)
    rng = np.random.default_rng(0)
    start = LowRank(*(rng.standard_normal((n, 4)) for n in intervals.shape))
    A, B = start.A.copy(), start.B.copy()
    solve(solver, intervals, alpha, start, max_iter=5)
    assert_array_equal(start.A, A)
    assert_array_equal(start.B, B)


@pytest.mark.parametrize("solver", ["proximal", "factored"])
@pytest.mark.parametrize("tobit", SCALES)
def test_threads_do_not_change_the_solution(tobit, solver):
    X = low_rank_table(18, (200, 150))
    intervals = Intervals.from_table(np.minimum(X, 1.0), ceiling=1.0)
    scale = start_scale(intervals) if tobit else 0.0
    one, many = (solve(solver, intervals, 5.0, scale=scale, max_iter=6, threads=t) for t in (1, 3))
    assert_array_equal(one.history, many.history)
    assert_array_equal(one.model.A, many.model.A)


@each_solver
def test_single_precision_reaches_the_optimum_of_double(solver):
    intervals, alpha = problem(19)
    double = solve(solver, intervals, alpha, tol=1e-6, max_iter=3000)
    start = LowRank.zero(intervals.shape, np.float32)
    cells, how = intervals.astype(np.float32), {"tol": 1e-4, "max_iter": 3000}
    single = {
        "proximal": lambda: proximal(cells, start, alpha, first_alpha=2 * alpha, **how),
        "factored": lambda: factored(cells, start, alpha, **how),
        "splitting": lambda: douglas_rachford(cells, Start(start), TracePenalty(alpha), **how),
    }[solver]()
    assert single.model.A.dtype == np.float32
    assert single.converged
    # The gap of 1e-4; rounding of cells, 6e-8 each, is far below.
    assert_allclose(single.history[-1], double.history[-1], rtol=1e-4)


def test_single_precision_keeps_the_momentum_of_double():
    # A small penalty: many short steps, whose squares are far below those of the matrix.
    X = low_rank_table(21, (120, 90))
    X[np.random.default_rng(21).random(X.shape) < 0.2] = np.nan
    intervals = Intervals.from_table(np.minimum(X, 0.0), ceiling=0.0)
    how = {"first_alpha": largest_alpha(intervals), "max_iter": 100, "tol": 0.0}
    single, double = (
        proximal(intervals.astype(t), LowRank.zero(X.shape, t), 0.03, **how)
        for t in (np.float32, np.float64)
    )
    # Rounding of cells, 6e-8 each; momentum dropped at the wrong steps costs 2e-3 and more.
    assert_allclose(single.history, double.history, rtol=1e-4)


@pytest.mark.parametrize("share", [0.1, 0.5])
def test_sweeps_over_factors_of_full_rank_reach_the_certified_optimum(share):
    intervals, alpha = problem(20, (10, 8), share)
    rng = np.random.default_rng(0)
    start = LowRank(*(0.5 * rng.standard_normal((n, 8)) for n in intervals.shape))
    fit = minimise(intervals, start, alpha, max_iter=5000, tol=1e-13)
    found = solve("proximal", intervals, alpha, tol=1e-7, max_iter=5000)
    assert certificate(intervals, fit.model, alpha).gap <= 1e-6 * fit.history[-1]
    assert_allclose(fit.history[-1], found.history[-1], rtol=1e-6)


@each_solver
def test_the_tobit_scale_is_that_of_the_residuals_and_of_the_penalty(solver):
    intervals = Intervals.from_table(np.minimum(low_rank_table(21, (60, 40)), 1.0), ceiling=1.0)
    alpha = 2.0
    found = solve(solver, intervals, alpha, scale=start_scale(intervals), tol=1e-6, max_iter=3000)
    lower, upper = intervals.to_bounds()
    _, slope, curvature = cell_loss(found.model.block(), lower, upper, found.scale)
    # Squared residuals of exact cells, expected ones of clipped cells, and twice the penalty.
    squares = np.where(lower < upper, found.scale**2 * (1 - curvature), 0.0) + slope**2
    expected = (squares.sum() + 2 * alpha * found.model.trace_norm()) / len(intervals)
    # EM goes on from one check to the next until the scale moves by no more than 1e-3.
    assert_allclose(found.scale**2, expected, rtol=4e-3)


@each_solver
def test_tobit_finds_the_scale_of_the_noise_where_the_penalty_is_slight(solver):
    shape, k, sigma, alpha = (120, 90), 1, 0.5, 2.0
    X = low_rank_table(22, shape, k, noise=sigma)
    intervals = Intervals.from_table(np.minimum(X, 1.0), ceiling=1.0)
    found = solve(solver, intervals, alpha, scale=start_scale(intervals), max_iter=1000)
    # What is fitted of the noise counts less, and comes back as a penalty: between the noise left
    # by a fit of all its directions, and the noise and the penalty of both in full.
    penalty = 2 * alpha * found.model.trace_norm() / len(intervals)
    assert 0.5 * sigma <= found.scale <= np.sqrt(sigma**2 + penalty) * 1.05


@each_solver
def test_the_hinge_has_no_scale(solver):
    intervals, alpha = problem(22)
    assert solve(solver, intervals, alpha, max_iter=3).scale == 0.0
