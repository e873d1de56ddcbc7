"""The least trace norm within hard intervals: bracketed from both sides, and met."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from tests.helpers import low_rank, random_intervals
from tests.plain import minimum_trace_norm
from tests.twin import random_bounds

from declip import Intervals, svd
from declip.lowrank import LowRank
from declip.solvers.exact import _Observed

INF = np.inf


def problem(seed):
    return random_intervals(seed, (12, 9))


def distance(intervals, X):
    """How far the cells of X are from their intervals, relative to the least values allowed."""
    lower, upper = intervals.to_bounds()
    seen = ~np.isnan(lower)
    x, low, high = X[seen], lower[seen], upper[seen]
    return np.linalg.norm(x - np.clip(x, low, high)) / np.linalg.norm(np.clip(0.0, low, high))


# The optimum.


@pytest.mark.parametrize("tol", [1e-3, 1e-5, 1e-7])
def test_observed_cells_are_met_within_tol(tol):
    for seed in range(5):
        intervals = problem(seed)
        found = minimum_trace_norm(intervals, tol=tol, max_iter=20000)
        assert found.converged
        assert distance(intervals, found.model.block()) <= tol


@pytest.mark.parametrize("tol", [1e-3, 1e-5, 1e-7])
def test_converged_means_a_gap_of_at_most_tol_times_the_trace_norm(tol):
    for seed in range(5):
        found = minimum_trace_norm(problem(seed), tol=tol, max_iter=20000)
        assert 0 <= found.proof.gap <= tol * found.proof.upper


def test_the_bounds_of_a_short_run_bracket_the_optimum():
    for seed in range(8):
        intervals = problem(seed)
        best = minimum_trace_norm(intervals, tol=1e-8, max_iter=20000).proof
        for steps in (1, 3, 12, 40):
            rough = minimum_trace_norm(intervals, max_iter=steps, tol=0.0).proof
            # The optimum lies between best.lower and best.upper; sums of 100 terms are rounded.
            assert rough.lower <= best.upper * (1 + 1e-12)
            assert rough.upper >= best.lower * (1 - 1e-12)


def test_the_upper_bound_is_the_trace_norm_of_a_feasible_matrix():
    for seed in range(5):
        intervals = problem(seed)
        found = minimum_trace_norm(intervals, max_iter=12, tol=0.0)
        lower, upper = intervals.to_bounds()
        X = found.model.block()
        feasible = np.where(np.isnan(lower), X, np.clip(X, lower, upper))
        assert_allclose(found.proof.upper, np.linalg.norm(feasible, "nuc"), rtol=1e-10)


def test_any_dual_point_gives_a_finite_bound_below_the_optimum():
    for seed in range(5):
        rng = np.random.default_rng(seed)
        intervals = problem(seed)
        optimum = minimum_trace_norm(intervals, tol=1e-7, max_iter=20000).proof.upper
        split = _Observed(intervals)
        X, x = LowRank.zero(intervals.shape), np.zeros(len(intervals))
        for size in (0.0, 0.01, 1.0, 100.0):
            # Wrong signs at ceilings and floors among them: these must be dropped.
            proof = split.bracket(X, x, size * rng.standard_normal(len(intervals)))
            assert np.isfinite(proof.lower)
            assert proof.lower <= optimum


def test_a_dual_point_of_the_wrong_sign_counts_for_nothing():
    intervals = Intervals.from_bounds(np.array([[1.0, -INF]]), np.array([[INF, -1.0]]))
    split = _Observed(intervals)
    X, x = LowRank.zero((1, 2)), np.zeros(2)
    wrong = np.where(np.isinf(split.upper), -0.5, 0.5)
    assert split.bracket(X, x, wrong).lower == 0
    assert split.bracket(X, x, -wrong).lower == 1.0  # 0.5 * 1 + 0.5 * 1


def test_the_dual_residual_is_the_excess_of_the_spectral_norm():
    intervals = Intervals.from_table(np.diag([1.0, 2.0]))
    split = _Observed(intervals)
    X, x = LowRank.zero((2, 2)), np.zeros(4)
    y = np.where(split.rows == split.cols, 3.0, 0.0)
    assert_allclose(split.bracket(X, x, y).dual_residual, 2.0, rtol=1e-14)
    assert split.bracket(X, x, y / 6).dual_residual == 0.0


def test_the_residuals_that_are_reported_are_those_of_the_matrix():
    for seed in range(5):
        intervals = problem(seed)
        found = minimum_trace_norm(intervals, max_iter=25, tol=0.0)
        expected = distance(intervals, found.model.block())
        assert_allclose(found.proof.primal_residual, expected, rtol=1e-10)


@pytest.mark.parametrize("seed", range(4))
def test_a_low_rank_matrix_is_recovered_from_enough_exact_cells(seed):
    rng = np.random.default_rng(seed)
    # Factors of about the same size, so that the clipped cells are not all in a few rows.
    M = np.outer(*(1 + 0.2 * rng.standard_normal(n) for n in (30, 24)))
    ceiling = np.quantile(M, 0.95)
    table = np.where(rng.random(M.shape) < 0.8, np.minimum(M, ceiling), np.nan)
    intervals = Intervals.from_table(table, ceiling=ceiling)
    found = minimum_trace_norm(intervals, tol=1e-8, max_iter=20000)
    # Recovery is exact; what is left is the residual of 1e-8 times the condition of the recovery,
    # which for rank one and four fifths of the cells is far below 1e4.
    assert_allclose(found.model.block(), M, rtol=0, atol=1e-4 * np.abs(M).max())


def test_no_feasible_perturbation_has_a_smaller_trace_norm():
    for seed in range(4):
        rng = np.random.default_rng(seed)
        intervals = problem(seed)
        found = minimum_trace_norm(intervals, max_iter=30, tol=0.0)
        lower, upper = intervals.to_bounds()
        seen = ~np.isnan(lower)
        X = found.model.block()
        for size in (1e-3, 0.1, 1.0):
            for Z in (
                *(X + size * rng.standard_normal(X.shape) for _ in range(10)),
                (1 - size) * X,
            ):
                feasible = np.where(seen, np.clip(Z, lower, upper), Z)
                assert np.linalg.norm(feasible, "nuc") >= found.proof.lower * (1 - 1e-12)


# Cases that one can solve by hand.


def test_a_table_of_exact_cells_is_returned():
    M = np.random.default_rng(0).standard_normal((9, 7))
    found = minimum_trace_norm(Intervals.from_table(M), tol=1e-7)
    assert found.converged
    # The primal residual is at most tol.
    assert np.linalg.norm(found.model.block() - M) <= 1e-7 * np.linalg.norm(M)


@pytest.mark.parametrize("shape", [(9, 1), (1, 9)])
def test_one_column_or_row_takes_the_values_nearest_to_zero(shape):
    lower = np.array([1.0, -3.0, 2.0, -INF, -1.0, -INF, 0.5, np.nan, 4.0]).reshape(shape)
    upper = np.array([1.0, -3.0, INF, -2.0, 1.0, 3.0, 0.75, np.nan, 4.0]).reshape(shape)
    found = minimum_trace_norm(Intervals.from_bounds(lower, upper), tol=1e-7, max_iter=20000)
    expected = np.nan_to_num(np.clip(0.0, lower, upper))
    assert found.converged
    # The norm is strictly convex across the ray of the solution: a gap of 1e-7 |x| lets x stray
    # by the root of it.
    assert_allclose(found.model.block(), expected, rtol=0, atol=5e-3)
    assert_allclose(found.proof.upper, np.linalg.norm(expected), rtol=1e-7)


def test_intervals_around_zero_give_zero():
    intervals = Intervals.from_bounds(-np.ones((4, 3)), np.ones((4, 3)))
    found = minimum_trace_norm(intervals)
    assert found.converged
    assert not found.model.block().any()
    assert found.proof.upper == found.proof.lower == 0


def test_a_large_table_of_intervals_around_zero_gives_zero():
    # Beyond 128 rows and columns singular values are found by iteration, also those of nothing.
    intervals = Intervals.from_bounds(-np.ones((150, 140)), np.ones((150, 140)))
    assert not minimum_trace_norm(intervals).model.block().any()


DEGENERATE = {
    "a row with a single cell": lambda X: X.__setitem__((3, slice(1, None)), np.nan),
    "an empty row and column": lambda X: (
        X.__setitem__(3, np.nan),
        X.__setitem__((slice(None), 2), np.nan),
    ),
    "a row all clipped": lambda X: X.__setitem__(3, X[~np.isnan(X)].max()),
    "a single cell": lambda X: X.__setitem__(np.arange(X.size).reshape(X.shape) != 5, np.nan),
    "nothing missing": lambda X: None,
}


@pytest.mark.parametrize("case", DEGENERATE)
def test_degenerate_tables_converge(case):
    X = np.minimum(low_rank(4, (12, 9), centre=1), 2.0)
    X[0, 0] = 2.0
    DEGENERATE[case](X)
    intervals = Intervals.from_table(X, ceiling=2.0)
    found = minimum_trace_norm(intervals, max_iter=5000)
    assert found.converged
    assert distance(intervals, found.model.block()) <= 1e-5


def test_empty_rows_and_columns_are_zero():
    X = low_rank(5, (12, 9), centre=1)
    X[3], X[:, 2] = np.nan, np.nan
    found = minimum_trace_norm(Intervals.from_table(X)).model.block()
    # A singular value decomposition leaves rows of zeros at rounding.
    assert_allclose(found[3], 0, atol=1e-12)
    assert_allclose(found[:, 2], 0, atol=1e-12)


# What must not change the answer.


def test_the_mirrored_table_has_the_mirrored_solution():
    lower, upper = random_bounds(np.random.default_rng(6), (12, 9))
    one = minimum_trace_norm(Intervals.from_bounds(lower, upper))
    other = minimum_trace_norm(Intervals.from_bounds(-upper, -lower))
    assert_allclose(other.history, one.history, rtol=1e-9)
    assert_allclose(other.model.block(), -one.model.block(), rtol=0, atol=1e-8)


def test_the_transposed_table_has_the_same_trace_norm():
    intervals = problem(7)
    one, other = (
        minimum_trace_norm(t, tol=1e-7, max_iter=20000).proof for t in (intervals, intervals.T)
    )
    assert_allclose(one.upper, other.upper, rtol=1e-7)  # the gap of each


@pytest.mark.parametrize("size", [2.0**-40, 2.0**40])
def test_the_solution_follows_the_size_of_the_table(size):
    lower, upper = random_bounds(np.random.default_rng(8), (12, 9))
    one = minimum_trace_norm(Intervals.from_bounds(lower, upper))
    other = minimum_trace_norm(Intervals.from_bounds(size * lower, size * upper))
    # Powers of two scale without rounding, but for the square roots of the factors.
    assert_allclose(other.history, size * one.history, rtol=1e-10)
    assert one.n_iter == other.n_iter


def test_matrix_free_steps_bracket_the_same_optimum(monkeypatch):
    M = low_rank(9, (40, 30), centre=1)
    M[np.random.default_rng(0).random(M.shape) < 0.3] = np.nan
    ceiling = np.nanquantile(M, 0.9)
    intervals = Intervals.from_table(np.minimum(M, ceiling), ceiling=ceiling)
    dense = minimum_trace_norm(intervals, tol=1e-3, max_iter=5000)
    monkeypatch.setattr(svd, "_DENSE_UP_TO", 0)
    free = minimum_trace_norm(intervals, tol=1e-3, max_iter=5000)
    assert free.converged
    assert free.proof.lower <= dense.proof.upper
    assert free.proof.upper >= dense.proof.lower
    assert_allclose(free.proof.upper, dense.proof.upper, rtol=1e-3)  # the larger gap


def test_a_table_beyond_single_precision_ends_where_matrix_free_steps_do():
    M = low_rank(9, (160, 140), centre=1)
    M[np.random.default_rng(0).random(M.shape) < 0.2] = np.nan
    ceiling = np.nanquantile(M, 0.9)
    intervals = Intervals.from_table(np.minimum(M, ceiling), ceiling=ceiling)
    found = minimum_trace_norm(intervals, tol=1e-7, max_iter=5000)
    other = minimum_trace_norm(intervals, tol=1e-5, max_iter=5000, max_rank=140)  # no cap
    assert found.converged
    assert other.converged
    assert_allclose(found.proof.upper, other.proof.upper, rtol=1.01e-5)  # the gap of each
    assert distance(intervals, found.model.block()) <= 1e-7


# What is returned.


def test_the_history_holds_the_trace_norms():
    states = []
    minimum_trace_norm(
        problem(10), max_iter=9, tol=0.0, on_sweep=lambda state: states.append(state)
    )
    for state in states:
        assert_allclose(state.history[-1], state.model.trace_norm(), rtol=1e-11)
    assert [state.n_iter for state in states] == list(range(1, 10))


@pytest.mark.parametrize("after", [1, 12])
def test_a_true_answer_of_on_sweep_stops(after):
    found = minimum_trace_norm(problem(11), tol=0.0, on_sweep=lambda s: s.n_iter == after)
    assert (found.stopped, found.converged, found.n_iter) == (True, False, after)


def test_too_few_steps_have_not_converged():
    found = minimum_trace_norm(problem(12), max_iter=9, tol=1e-8)
    assert (found.converged, found.stopped, found.n_iter) == (False, False, 9)


def test_max_rank_caps_the_rank():
    found = minimum_trace_norm(problem(13), max_rank=2, max_iter=50)
    assert np.linalg.matrix_rank(found.model.block()) <= 2


def test_a_second_run_is_identical():
    one, other = (minimum_trace_norm(problem(14)) for _ in range(2))
    assert_array_equal(one.history, other.history)
    assert_array_equal(one.model.A, other.model.A)


def test_single_precision_is_solved_in_double_and_returned_in_single():
    intervals = problem(15)
    double = minimum_trace_norm(intervals)
    single = minimum_trace_norm(intervals.astype(np.float32))
    assert single.model.A.dtype == np.float32
    assert single.converged
    # The bounds are rounded to 6e-8 and the gaps are 1e-5.
    assert_allclose(single.proof.upper, double.proof.upper, rtol=2e-5)


def test_infeasible_bounds_are_named_before_any_iteration():
    lower, upper = np.ones((3, 4)), np.full((3, 4), 2.0)
    lower[1, 2] = 5.0
    with pytest.raises(ValueError, match=r"(?s)row 1, column 2.*5\.0.*2\.0"):
        Intervals.from_bounds(lower, upper)
