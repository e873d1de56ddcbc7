"""Alternating minimisation: it never rises, it ends at a minimum, and it says so honestly."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from tests.helpers import low_rank, random_model
from tests.plain import gradient, minimise, objective, solve_rows
from tests.twin import Row, minimiser, random_bounds

from declip import Intervals
from declip.lowrank import LowRank
from declip.solvers import start_model, start_scale
from declip.solvers.als import is_at_rest

INF = np.inf
SCALES = [pytest.param(0.0, id="hinge"), pytest.param(1.0, id="tobit")]
BIAS = [pytest.param(False, id="factors"), pytest.param(True, id="offsets")]


def low_rank_table(seed, shape=(40, 25), rank=3, noise=0.1):
    return low_rank(seed, shape, rank, noise=noise)


def problem(seed, *, bias=False, k=3, shape=(12, 9)):
    rng = np.random.default_rng(seed)
    intervals = Intervals.from_bounds(*random_bounds(rng, shape))
    return intervals, random_model(rng, shape, k, bias=bias, size=0.5)


# The objective never rises.


def assert_never_rises(history):
    # A value is summed from some hundred cells: 1e-10 of it leaves room for rounding alone.
    rise = np.diff(history)
    assert (rise <= 1e-10 * np.abs(history[:-1])).all(), history


@pytest.mark.parametrize("clipped", ["hinge", "tobit", "value", "missing"])
@pytest.mark.parametrize("bias", BIAS)
def test_the_objective_never_rises(bias, clipped):
    for seed in range(63):  # 504 problems in all
        rng = np.random.default_rng([seed, bias])
        shape = tuple(rng.integers(3, 25, 2))
        missing, spread = rng.uniform(0, 0.8), rng.choice([0.1, 2, 50])
        size = rng.choice([0.1, 1, 10])
        bounds = random_bounds(rng, shape, missing=missing, spread=spread)
        intervals = Intervals.from_bounds(*bounds).treat(clipped)
        start = random_model(rng, shape, rng.integers(1, 1 + min(8, *shape)), bias=bias, size=size)
        scale = rng.choice([0.01, 1.0, 100.0]) if clipped == "tobit" else 0.0
        alpha = 10 ** rng.uniform(-3, 2)
        assert_never_rises(minimise(intervals, start, alpha, scale=scale, max_iter=12).history)


@pytest.mark.parametrize("alpha", [0.0, 1e-12, 1e-6])
@pytest.mark.parametrize("scale", SCALES)
def test_the_objective_never_rises_towards_a_perfect_fit(scale, alpha):
    for seed in range(5):
        X = low_rank_table(seed, noise=0.0)
        intervals = Intervals.from_table(np.minimum(X, 2.0), ceiling=2.0)
        start = random_model(seed, X.shape, 3, size=3.0)
        solution = minimise(intervals, start, alpha, scale=scale, max_iter=100, tol=0.0)
        # A perfect fit of 1000 cells, each below 20 and rounded to some eps, has a loss of 1e-26.
        rounding = 1e-24
        assert (np.diff(solution.history) <= 1e-10 * np.abs(solution.history[:-1]) + rounding).all()


def test_the_objective_of_single_precision_rises_by_no_more_than_its_rounding():
    for seed in range(10):
        intervals, start = problem(seed)
        history = minimise(intervals.astype(np.float32), start.astype(np.float32), 0.5).history
        assert (np.diff(history) <= 100 * np.finfo(np.float32).eps * history[:-1]).all()


@pytest.mark.parametrize("unit", [1e-10, 1e-6, 1.0, 1e6, 1e12])
def test_half_precision_ends_at_the_objective_of_full_precision(unit):
    X = unit * low_rank_table(3)
    intervals = Intervals.from_table(X.clip(max=unit).astype(np.float32), ceiling=unit)
    rng = np.random.default_rng(0)
    start = random_model(rng, X.shape, 3, size=np.sqrt(unit)).astype(np.float32)
    ends = [
        minimise(intervals, start, 0.1 * unit, half=half, tol=1e-8).history[-1]
        for half in (False, True)
    ]
    assert_allclose(*ends, rtol=1e-4)


def test_ceilings_that_defeat_the_active_set_step_do_not_raise_the_objective():
    # The cells (v=0.1, lower=10), (v=-1, lower=-50) of one row, in a table of one row.
    intervals = Intervals.from_bounds(np.array([[10.0, -50.0]]), np.full((1, 2), INF))
    start = LowRank(np.zeros((1, 1)), np.array([[0.1], [-1.0]]))
    assert_never_rises(minimise(intervals, start, 1e-9, max_iter=20).history)


# What is returned.


@pytest.mark.parametrize("scale", SCALES)
@pytest.mark.parametrize("bias", BIAS)
def test_history_starts_with_the_objective_of_the_start(bias, scale):
    intervals, start = problem(0, bias=bias)
    history = minimise(intervals, start, 0.7, scale=scale, max_iter=3).history
    assert_allclose(history[0], objective(intervals, start, 0.7, scale), rtol=1e-14)


@pytest.mark.parametrize("max_iter", [1, 2, 40])
@pytest.mark.parametrize("scale", SCALES)
@pytest.mark.parametrize("bias", BIAS)
def test_history_ends_with_the_objective_of_the_model(bias, scale, max_iter):
    for seed in range(5):
        intervals, start = problem(seed, bias=bias)
        fit = minimise(intervals, start, 0.7, scale=scale, max_iter=max_iter)
        expected = objective(intervals, fit.model, 0.7, fit.scale)
        assert_allclose(fit.history[-1], expected, rtol=1e-11)


def test_history_ends_with_the_objective_of_a_nearly_perfect_fit():
    X = low_rank_table(0, noise=0.0)
    intervals = Intervals.from_table(X)
    start = random_model(0, X.shape, 3, size=30.0)
    fit = minimise(intervals, start, 1e-8, max_iter=200, tol=1e-12)
    # From 1e6 down to 1e-6: what is kept must not carry the rounding of the start.
    assert_allclose(fit.history[-1], objective(intervals, fit.model, 1e-8), rtol=1e-10)


@pytest.mark.parametrize("bias", BIAS)
def test_the_start_is_left_as_it_was(bias):
    intervals, start = problem(1, bias=bias)
    A, B = start.A.copy(), start.B.copy()
    minimise(intervals, start, 0.7, max_iter=3)
    assert_array_equal(start.A, A)
    assert_array_equal(start.B, B)


def test_one_sweep_has_not_converged():
    intervals, start = problem(2)
    fit = minimise(intervals, start, 0.7, max_iter=1)
    assert (fit.converged, fit.n_iter) == (False, 1)


def test_no_sweep_leaves_columns_alone_and_has_not_converged():
    intervals, start = problem(2)
    fit = minimise(intervals, start, 0.7, max_iter=0)
    assert (fit.converged, fit.n_iter) == (False, 0)
    assert_array_equal(fit.model.B, start.B)


def test_a_settled_fit_has_converged():
    intervals, start = problem(3)
    fit = minimise(intervals, start, 0.7, max_iter=2000, tol=1e-6)
    assert fit.converged
    falls = -np.diff(fit.history[:-1])[-2:] / fit.history[-2]  # the last one includes the polish
    assert (falls <= 1e-6).all()


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("scale", SCALES)
def test_a_fit_at_rest_has_no_more_than_that_to_fall(scale, seed):
    rng = np.random.default_rng(seed)
    X = low_rank_table(seed, (200, 150), noise=0.5)
    X[rng.random(X.shape) > 0.2] = np.nan
    intervals = Intervals.from_table(np.minimum(X, 1.0), ceiling=1.0)
    start, how = random_model(seed, X.shape, 3, size=0.5), {"scale": scale, "polish": False}
    fit = minimise(intervals, start, 3.0, tol=0.0, rest=5e-4, **how)
    end = minimise(intervals, start, 3.0, tol=1e-12, max_iter=1000, **how)
    unit = len(intervals) if scale else end.history[-1]
    assert fit.converged
    assert fit.history[-1] - end.history[-1] <= 5e-4 * unit


@pytest.mark.parametrize(
    ("falls", "settled"),
    [
        ([100, 10, 4, 3], False),  # 9 to come, at that rate
        ([100, 10, 4, 1], True),
        ([100, 10, 6, 1], False),  # the sweep before fell by more
        ([4, 4, 4, 4], False),
        ([100, 4, 1], False),  # too few to tell
        ([100, 4, 1, 0], False),
    ],
)
def test_two_small_falls_in_a_row_rest_if_they_shrink(falls, settled):
    history = [1000.0, *(1000.0 - np.cumsum(falls))]
    assert is_at_rest(history, 5) == settled


def test_a_true_answer_of_on_sweep_stops_the_fit():
    intervals, start = problem(4)
    fit = minimise(
        intervals, start, 0.7, max_iter=100, tol=0.0, on_sweep=lambda state: state.n_iter == 3
    )
    assert (fit.stopped, fit.converged, fit.n_iter) == (True, False, 3)


def test_on_sweep_sees_every_sweep():
    intervals, start = problem(4)
    seen = []
    fit = minimise(intervals, start, 0.7, max_iter=5, tol=0.0, on_sweep=lambda s: seen.append(s))
    assert [state.n_iter for state in seen] == [1, 2, 3, 4, 5]
    assert_array_equal(seen[-1].history[:-1], fit.history[:-1])
    assert not fit.stopped


def test_the_state_seen_by_on_sweep_has_the_objective_it_reports():
    intervals, start = problem(5)
    states = []
    minimise(intervals, start, 0.7, scale=1.0, max_iter=4, on_sweep=lambda s: states.append(s))
    for state in states:
        expected = objective(intervals, state.model, 0.7, state.scale)
        assert_allclose(state.history[-1], expected, rtol=1e-10)


@pytest.mark.parametrize("scale", SCALES)
def test_threads_do_not_change_the_fit(scale):
    X = low_rank_table(6, (300, 200))
    intervals = Intervals.from_table(np.minimum(X, 1.0), ceiling=1.0)
    start = random_model(0, X.shape, 3, size=0.5)
    one, many = (
        minimise(intervals, start, 0.5, scale=scale, max_iter=4, threads=t) for t in (1, 3)
    )
    assert_array_equal(one.history, many.history)
    assert_array_equal(one.model.A, many.model.A)


def test_the_last_fall_is_relative():
    intervals, start = problem(7)
    fit = minimise(intervals, start, 0.7, max_iter=4, tol=0.0)
    assert fit.last_fall == (fit.history[-2] - fit.history[-1]) / fit.history[-1]


# The fit is a minimum.


def plain_als(X, P, Q, alpha, sweeps):
    """Ridge ALS on the cells that are not NaN, row by row."""
    seen = ~np.isnan(X)
    for _ in range(sweeps):
        for own, other, Y, mask in ((Q, P, X.T, seen.T), (P, Q, X, seen)):
            for i, (y, m) in enumerate(zip(Y, mask, strict=True)):
                F = other[m]
                own[i] = np.linalg.solve(F.T @ F + alpha * np.eye(F.shape[1]), F.T @ y[m])
    return P, Q


def test_infinite_ceilings_give_plain_ridge_als():
    X = low_rank_table(8, (12, 9), noise=0.5)
    X[np.random.default_rng(0).random(X.shape) < 0.3] = np.nan
    intervals = Intervals.from_table(X, ceiling=INF, floor=-INF)
    start = random_model(1, X.shape, 9, size=0.5)
    fit = minimise(intervals, start, 1.0, max_iter=3000, tol=1e-14)
    P, Q = plain_als(X, start.A.copy(), start.B.copy(), 1.0, 3000)
    # With as many factors as columns every minimum is global.
    expected = 0.5 * np.nansum((X - P @ Q.T) ** 2) + 0.5 * ((P**2).sum() + (Q**2).sum())
    assert_allclose(fit.history[-1], expected, rtol=1e-8)


def test_a_sweep_of_plain_als_finds_nothing_to_improve():
    X = low_rank_table(9, noise=0.5)
    intervals = Intervals.from_table(X, ceiling=INF)
    start = random_model(1, X.shape, 3, size=0.5)
    fit = minimise(intervals, start, 1.0, max_iter=3000, tol=1e-14)
    P, Q = plain_als(X, fit.model.A.copy(), fit.model.B.copy(), 1.0, 1)
    after = 0.5 * ((X - P @ Q.T) ** 2).sum() + 0.5 * ((P**2).sum() + (Q**2).sum())
    assert_allclose(after, fit.history[-1], rtol=1e-10)


@pytest.mark.parametrize("scale", SCALES)
@pytest.mark.parametrize("bias", BIAS)
def test_a_converged_fit_is_stationary(bias, scale):
    intervals, start = problem(10, bias=bias)
    alpha = 0.7
    fit = minimise(intervals, start, alpha, scale=scale, max_iter=5000, tol=1e-15)
    parts = gradient(intervals, fit.model, fit.scale)
    G = (parts.exact + parts.censored).toarray()
    for model, g in ((fit.model, G), (fit.model.T, G.T)):
        slope = g @ model.design()[0] + alpha * model.A
        # The value settles to some 1e-13 of about 100, so the slope to its root.
        assert np.abs(slope).max() <= 1e-5


def test_the_mirrored_table_has_the_mirrored_fit():
    X = low_rank_table(11)
    up = Intervals.from_table(np.minimum(X, 1.0), ceiling=1.0)
    down = Intervals.from_table(np.maximum(-X, -1.0), floor=-1.0)
    start = random_model(0, X.shape, 3, size=0.5)
    mirrored = LowRank(start.A, -start.B)
    one, other = (
        minimise(t, s, 0.5, max_iter=10, tol=0.0) for t, s in ((up, start), (down, mirrored))
    )
    assert_allclose(other.history, one.history, rtol=1e-12)
    assert_allclose(other.model.block(), -one.model.block(), rtol=0, atol=1e-9)


def test_a_permuted_table_has_the_permuted_fit():
    rng = np.random.default_rng(12)
    X = low_rank_table(12)
    rows, cols = rng.permutation(40), rng.permutation(25)
    start = random_model(rng, X.shape, 3, size=0.5)
    X = np.minimum(X, 1.0)
    one = minimise(Intervals.from_table(X, ceiling=1.0), start, 0.5, max_iter=10, tol=0.0)
    moved = LowRank(start.A[rows], start.B[cols])
    table = Intervals.from_table(X[np.ix_(rows, cols)], ceiling=1.0)
    other = minimise(table, moved, 0.5, max_iter=10, tol=0.0)
    assert_allclose(other.model.block(), one.model.block()[np.ix_(rows, cols)], rtol=0, atol=1e-9)


def test_clipped_cells_are_restored_beyond_their_ceiling():
    X = low_rank_table(13, (60, 50), rank=2, noise=0.0)
    ceiling = np.quantile(X, 0.8)
    intervals = Intervals.from_table(np.minimum(X, ceiling), ceiling=ceiling)
    start = start_model(intervals, 2, False, "svd", np.random.default_rng(0))
    fit = minimise(intervals, start, 1e-6, max_iter=2000, tol=1e-13)
    # Exact recovery but for the penalty, alpha over the curvature of a factor: 1e-6 over some tens.
    assert_allclose(fit.model.block(), X, rtol=0, atol=1e-3)


@pytest.mark.parametrize("case", ["empty row and column", "all clipped row", "one cell"])
@pytest.mark.parametrize("scale", SCALES)
@pytest.mark.parametrize("bias", BIAS)
def test_awkward_tables_have_a_finite_fit(bias, scale, case):
    X = np.minimum(low_rank_table(14, (8, 7)), 1.0)
    if case == "empty row and column":
        X[3], X[:, 2] = np.nan, np.nan
    elif case == "all clipped row":
        X[3] = 1.0
    else:
        X[:] = np.nan
        X[3, 2] = 0.5
    intervals = Intervals.from_table(X, ceiling=1.0)
    start = start_model(intervals, 3, bias, "random", np.random.default_rng(0))
    fit = minimise(intervals, start, 0.1, scale=scale, max_iter=30)
    assert np.isfinite(fit.model.block()).all()
    assert_never_rises(fit.history)


# Tobit.


@pytest.mark.parametrize("seed", range(3))
def test_tobit_recovers_the_scale_of_the_noise(seed):
    shape, k, sigma = (150, 100), 2, 0.5
    X = low_rank_table(seed, shape, k, noise=sigma)
    intervals = Intervals.from_table(np.minimum(X, 1.0), ceiling=1.0)
    start = start_model(intervals, k, False, "svd", np.random.default_rng(0))
    fit = minimise(intervals, start, 1e-3, scale=start_scale(intervals), max_iter=500, tol=1e-9)
    # The fit takes up k (n + m) of the cells' degrees of freedom; the rest has a sampling error of
    # 1 / sqrt(2 n) for n exact cells, of which three are allowed.
    used = k * sum(shape) / intervals.n_exact
    assert_allclose(fit.scale, sigma, rtol=0.5 * used + 3 / np.sqrt(2 * intervals.n_exact))


def test_tobit_without_clipped_cells_has_the_scale_of_the_residuals():
    X = low_rank_table(15, noise=0.5)
    intervals = Intervals.from_table(X)
    start = start_model(intervals, 3, False, "svd", np.random.default_rng(0))
    fit = minimise(intervals, start, 0.2, scale=1.0, max_iter=500, tol=1e-10)
    squares = ((X - fit.model.block()) ** 2).sum() + 0.2 * fit.model.squared_norm()
    # The polish of the rows after the last estimate moves the model by no more than tol.
    assert_allclose(fit.scale, np.sqrt(squares / X.size), rtol=1e-6)


def test_the_hinge_has_no_scale():
    intervals, start = problem(16)
    assert minimise(intervals, start, 0.7, max_iter=2).scale == 0.0


# Rows alone.


@pytest.mark.parametrize("scale", SCALES)
@pytest.mark.parametrize("bias", BIAS)
def test_solve_rows_does_not_depend_on_the_start(bias, scale):
    intervals, model = problem(17, bias=bias)
    rng = np.random.default_rng(0)
    solved = []
    for size in (0.0, 1.0, 100.0):
        A = size * rng.standard_normal(model.A.shape)
        start = LowRank(A, model.B, model.mean, bias)
        solved.append(solve_rows(intervals.by_row, start, 0.5, scale).A)
    # Tobit stops when the value (some tens) no longer falls: the root of its rounding.
    for other in solved[1:]:
        assert_allclose(other, solved[0], rtol=0, atol=1e-10 if scale == 0 else 1e-6)


@pytest.mark.parametrize("scale", SCALES)
@pytest.mark.parametrize("bias", BIAS)
def test_solve_rows_finds_the_minimum_of_each_row(bias, scale):
    intervals, model = problem(18, bias=bias)
    design, offset = model.design()
    ridge = np.full(model.A.shape[1], 0.5)
    solved = solve_rows(intervals.by_row, model, 0.5, scale)
    for lower, upper, p in zip(*intervals.to_bounds(), solved.A, strict=True):
        best = minimiser(Row(lower, upper, design, offset, ridge, scale), len(p))
        assert_allclose(p, best, rtol=0, atol=1e-10 if scale == 0 else 1e-6)


def test_solve_rows_leaves_the_columns_alone():
    intervals, model = problem(19)
    assert solve_rows(intervals.by_row, model, 0.5).B is model.B


def test_the_rows_of_a_fit_solve_their_own_problem():
    intervals, start = problem(20)
    fit = minimise(intervals, start, 0.7, max_iter=3)  # far from settled, yet polished
    again = solve_rows(intervals.by_row, fit.model, 0.7)
    assert_allclose(again.A, fit.model.A, rtol=0, atol=1e-10)
