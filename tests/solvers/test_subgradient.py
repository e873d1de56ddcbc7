"""Proximal subgradient descent on two trace norms: each step against a plain NumPy twin."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from tests.helpers import low_rank
from tests.plain import largest_alpha, proximal, subgradient_descent
from tests.twin import cell_loss, random_bounds

from declip import Intervals, clipping, svd
from declip.lowrank import LowRank
from declip.solvers import Limits, limit_model

INF = np.inf
SHAPE = (14, 10)
_rng = np.random.default_rng(0)
LIMITS = {
    "ceiling": (np.array([[-INF]]), np.array([[1.0]])),
    "floor": (np.array([[-0.5]]), np.array([[INF]])),
    "both": (np.array([[-0.5]]), np.array([[0.8]])),
    "per column": (np.array([[-INF]]), _rng.uniform(0, 1.5, (1, 10))),
    "per row": (_rng.uniform(-2, -0.5, (14, 1)), _rng.uniform(0, 1.5, (14, 1))),
    "per cell": (np.array([[-INF]]), _rng.uniform(0, 1.5, SHAPE)),
    "mixed": (_rng.uniform(-2, -0.5, (14, 1)), _rng.uniform(0, 1.5, SHAPE)),
}
each_limit = pytest.mark.parametrize(
    "limits", [Limits(*pair) for pair in LIMITS.values()], ids=LIMITS
)


def random_start(seed, k=4, shape=SHAPE):
    rng = np.random.default_rng(seed)
    return LowRank(*(rng.standard_normal((n, k)) / np.sqrt(np.sqrt(k)) for n in shape))


def table(seed, limits, shape=SHAPE, missing=0.3):
    """A noisy table of rank 2 under some limits, as intervals."""
    rng = np.random.default_rng(seed)
    X = np.clip(low_rank(rng, shape, noise=0.1), limits.floor, limits.ceiling)
    X[rng.random(shape) < missing] = np.nan
    floor, ceiling = (np.broadcast_to(F, shape) for F in (limits.floor, limits.ceiling))
    return Intervals.from_table(X, ceiling=ceiling, floor=floor)


# The twin.


def losses(intervals, X):
    lower, upper = intervals.to_bounds()
    seen = ~np.isnan(lower)
    return cell_loss(X[seen], lower[seen], upper[seen])[0].sum()


def value_of(intervals, X, limits, alpha, beta):
    clip = np.clip(X, limits.floor, limits.ceiling)
    norms = np.linalg.norm(X, "nuc"), np.linalg.norm(clip, "nuc")
    return losses(intervals, X) + alpha * norms[0] + beta * norms[1]


def slope_of_clipped(X, limits):
    """W * U V^T: a subgradient of |Clip(X)|_tr."""
    U, _, Vt = np.linalg.svd(np.clip(X, limits.floor, limits.ceiling), full_matrices=False)
    return np.where((X > limits.floor) & (X < limits.ceiling), U @ Vt, 0.0)


def twin_step(intervals, X, limits, alpha, beta, eta):
    lower, upper = intervals.to_bounds()
    G = np.nan_to_num(X - np.clip(X, lower, upper))
    U, S, Vt = np.linalg.svd(
        X - eta * (G + beta * slope_of_clipped(X, limits)), full_matrices=False
    )
    return (U * np.maximum(S - eta * alpha, 0)) @ Vt


# Limits.


@each_limit
def test_clip_is_the_projection_onto_the_limits(limits):
    X = 2 * np.random.default_rng(1).standard_normal(SHAPE)
    clip = limits.clip(X)
    floor, ceiling = (np.broadcast_to(F, SHAPE) for F in (limits.floor, limits.ceiling))
    assert (clip >= floor).all()
    assert (clip <= ceiling).all()
    # Of the three points that can be nearest, the one that is.
    for other in (floor, ceiling, X):
        allowed = (other >= floor) & (other <= ceiling) & np.isfinite(other)
        assert (np.abs(clip - X)[allowed] <= np.abs(other - X)[allowed]).all()


@each_limit
def test_the_side_is_zero_strictly_between_the_limits(limits):
    X = 2 * np.random.default_rng(1).standard_normal(SHAPE)
    assert_array_equal(limits.side(X), np.sign(X - limits.clip(X)))
    for end, side in ((limits.ceiling, 1), (limits.floor, -1)):
        at = np.broadcast_to(end, SHAPE)
        assert_array_equal(limits.side(at)[np.isfinite(at)], side)


@each_limit
def test_the_limits_of_some_rows_are_theirs(limits):
    X, some = 2 * np.random.default_rng(1).standard_normal(SHAPE), slice(4, 9)
    assert_array_equal(limits.rows(some).clip(X[some]), limits.clip(X)[some])


# The subgradient.


@each_limit
@pytest.mark.parametrize("seed", range(3))
def test_the_subgradient_is_the_finite_difference_away_from_kinks(limits, seed):
    rng = np.random.default_rng(seed)
    X, D, step = rng.standard_normal(SHAPE), rng.standard_normal(SHAPE), 1e-6
    floor, ceiling = (np.broadcast_to(F, SHAPE) for F in (limits.floor, limits.ceiling))
    distance = np.minimum(np.abs(X - floor), np.abs(X - ceiling))
    D[distance < 10 * step * np.abs(D).max()] = 0.0  # these cells would cross a kink
    ahead, behind = (np.linalg.norm(limits.clip(X + s * D), "nuc") for s in (step, -step))
    expected = (slope_of_clipped(X, limits) * D).sum()
    # The least singular value, above 0.01, bounds the curvature by |D|^2 / 0.01 = 1e4; the central
    # difference errs by its change, about 1e6 step^2 = 1e-6, and by eps 40 / step = 1e-8.
    assert np.linalg.svd(limits.clip(X), compute_uv=False)[-1] > 0.01
    assert_allclose((ahead - behind) / (2 * step), expected, rtol=0, atol=1e-5)


@each_limit
@pytest.mark.parametrize(("alpha", "beta"), [(0.3, 0.0), (0.0, 0.3), (0.2, 0.5)])
def test_the_first_step_is_that_of_the_twin(limits, alpha, beta):
    intervals, start = table(2, limits), random_start(2)
    found = subgradient_descent(intervals, start, limits, alpha, beta, first_step=0.05, max_iter=1)
    expected = twin_step(intervals, start.block(), limits, alpha, beta, 0.05)
    assert found.history[1] < found.history[0]  # so that the step itself is returned
    # An SVD by numpy on both sides; Clip(X) has a condition below 1e4, and so do its vectors.
    assert_allclose(found.model.block(), expected, rtol=0, atol=1e-11)


def test_the_steps_shrink_by_a_hundredth():
    limits = Limits(*LIMITS["ceiling"])
    intervals, start = table(3, limits), random_start(3)
    found = subgradient_descent(intervals, start, limits, 0.2, 0.1, first_step=0.05, max_iter=4)
    X = start.block()
    for t in range(4):
        X = twin_step(intervals, X, limits, 0.2, 0.1, 0.05 * 0.99**t)
    assert (np.diff(found.history) < 0).all()
    assert_allclose(found.model.block(), X, rtol=0, atol=1e-10)


def test_cells_at_or_beyond_their_limit_are_held_by_no_second_penalty():
    limits = Limits(*LIMITS["ceiling"])
    intervals = table(4, limits)
    start = limit_model(intervals, limits, 1.0)  # every cell beyond the ceiling
    one, other = (
        subgradient_descent(intervals, start, limits, 0.2, beta, max_iter=1).model.block()
        for beta in (0.0, 0.7)
    )
    assert_array_equal(one, other)


def test_a_direction_without_weight_does_not_enter_the_step():
    # X = 1 everywhere, all within the limit and fitted: Clip(X) = X has rank one, and so must its
    # smallest subgradient; U V^T of the null space would raise the rank of X to the full one.
    limits = Limits(*LIMITS["floor"])
    intervals = Intervals.from_table(np.ones(SHAPE))
    start = LowRank(np.ones((SHAPE[0], 1)), np.ones((SHAPE[1], 1)))
    found = subgradient_descent(intervals, start, limits, 0.1, 1.0, first_step=0.1, max_iter=1)
    assert found.history[1] < found.history[0]
    singular_values = np.linalg.svd(found.model.block(), compute_uv=False)
    assert_allclose(singular_values[1:], 0, atol=1e-12 * singular_values[0])


# The objective.


@each_limit
def test_the_history_starts_with_the_objective_of_the_start(limits):
    intervals, start = table(5, limits), random_start(5)
    found = subgradient_descent(intervals, start, limits, 0.2, 0.3, max_iter=1)
    expected = value_of(intervals, start.block(), limits, 0.2, 0.3)
    assert_allclose(found.history[0], expected, rtol=1e-12)


@each_limit
def test_the_returned_iterate_is_the_best_and_has_the_objective_reported(limits):
    intervals, start = table(6, limits), random_start(6)
    states = []
    # RoundingGrid of 1.5 overshoot now and then.
    found = subgradient_descent(
        *(intervals, start, limits, 0.2, 0.8),
        first_step=1.5,
        max_iter=60,
        on_sweep=lambda state: states.append(state),
    )
    for state in (*states, found):
        expected = value_of(intervals, state.model.block(), limits, 0.2, 0.8)
        assert_allclose(state.history[-1], expected, rtol=1e-10)
    assert (np.diff(found.history) <= 0).all()


def test_a_step_that_raises_the_objective_is_not_returned():
    limits = Limits(*LIMITS["ceiling"])
    intervals, start = table(7, limits), random_start(7)
    found = subgradient_descent(intervals, start, limits, 0.2, 0.2, first_step=50.0, max_iter=3)
    assert_array_equal(found.history, found.history[0])
    assert_array_equal(found.model.block(), start.block())


@pytest.mark.parametrize("seed", range(5))
def test_without_the_second_penalty_the_optimum_of_the_trace_norm_is_reached(seed):
    intervals = Intervals.from_bounds(*random_bounds(np.random.default_rng(seed), (12, 9)))
    alpha = 0.2 * largest_alpha(intervals)
    zero = LowRank.zero(intervals.shape)
    best = proximal(intervals, zero, alpha, first_alpha=alpha, tol=1e-7, max_iter=5000)
    limits = Limits(np.array([[-INF]]), np.array([[INF]]))
    found = subgradient_descent(intervals, zero, limits, alpha, 0.0, max_iter=1000)
    # With a step of at most 1 these are proximal gradient steps, a hundred steps of 1 in all; the
    # project's bound.
    assert_allclose(found.history[-1], best.history[-1], rtol=1e-4)


def test_the_second_penalty_lowers_the_trace_norm_of_what_is_clipped():
    limits = Limits(*LIMITS["ceiling"])
    intervals = table(8, limits)
    start = limit_model(intervals, limits, 1.0)
    norms = [
        np.linalg.norm(
            limits.clip(subgradient_descent(intervals, start, limits, 0.2, beta).model.block()),
            "nuc",
        )
        for beta in (0.0, 0.5, 5.0)
    ]
    assert norms == sorted(norms, reverse=True)


# Strips, listed cells, and the matrix-free path.


@each_limit
@pytest.mark.parametrize("cells", [1, 25, 70])
def test_strips_do_not_change_the_result(limits, cells, monkeypatch):
    intervals, start = table(9, limits), random_start(9)
    how = {"first_step": 0.05, "max_iter": 5}
    whole = subgradient_descent(intervals, start, limits, 0.2, 0.3, **how)
    monkeypatch.setattr(clipping, "_STRIP", cells)  # 1, 2 or 7 rows a strip
    cut = subgradient_descent(intervals, start, limits, 0.2, 0.3, **how)
    # The same products, perhaps by another BLAS kernel: rounding, carried through five steps.
    assert_allclose(cut.model.block(), whole.model.block(), rtol=0, atol=1e-11)
    assert_allclose(cut.history, whole.history, rtol=1e-12)


@each_limit
@pytest.mark.parametrize("share", [0.0, 0.3, 1.0], ids=["strips", "some mixed", "listed"])
@pytest.mark.parametrize("cells", [25, 1000])
def test_the_matrix_free_path_agrees_with_the_dense_one(limits, cells, share, monkeypatch):
    intervals, start = table(10, limits), random_start(10)
    # Clip(X) has full rank, 10, and so many triplets are asked for: the span of the power steps is
    # then the whole space, and the result that of the SVD to rounding, times a condition of 1e4.
    how = {"first_step": 0.05, "max_iter": 5, "max_rank": 10}
    dense = subgradient_descent(intervals, start, limits, 0.2, 0.3, **how)
    monkeypatch.setattr(clipping, "_STRIP", cells)
    monkeypatch.setattr(clipping, "_SPARSE_UP_TO", share)
    monkeypatch.setattr(clipping, "_LISTED_UP_TO", 1.0)
    monkeypatch.setattr(svd, "_DENSE_UP_TO", 0)
    free = subgradient_descent(intervals, start, limits, 0.2, 0.3, **how)
    assert_allclose(free.model.block(), dense.model.block(), rtol=0, atol=1e-9)
    assert_allclose(free.history, dense.history, rtol=1e-10)


@each_limit
@pytest.mark.parametrize("level", [-2.0, 0.0, 2.0])
@pytest.mark.parametrize("share", [0.0, 0.3, 1.0], ids=["strips", "some mixed", "listed"])
def test_all_forms_of_the_clipped_matrix_are_the_matrix(limits, level, share, monkeypatch):
    X = random_start(20)
    shift = LowRank(np.full((SHAPE[0], 1), level), np.ones((SHAPE[1], 1)))
    X = LowRank(np.hstack([X.A, shift.A]), np.hstack([X.B, shift.B]))
    monkeypatch.setattr(clipping, "_SPARSE_UP_TO", share)
    monkeypatch.setattr(clipping, "_LISTED_UP_TO", 1.0)
    monkeypatch.setattr(svd, "_DENSE_UP_TO", 0)
    found = clipping.clipping(X, limits)
    dense = np.clip(X.block(), limits.floor, limits.ceiling)
    assert_allclose(found.clipped() @ np.eye(SHAPE[1]), dense, rtol=0, atol=1e-14)
    U, S, Vt = np.linalg.svd(dense, full_matrices=False)
    extra = sparse.csr_array(np.eye(*SHAPE))
    moved = found.moved(svd.SVD(U, S, Vt.T), 0.3, (extra,)) @ np.eye(SHAPE[1])
    expected = X.block() - 0.3 * slope_of_clipped(X.block(), limits) + np.eye(*SHAPE)
    assert_allclose(moved, expected, rtol=0, atol=1e-13)


def test_cells_are_listed_only_if_few_differ_from_their_column(monkeypatch):
    monkeypatch.setattr(svd, "_DENSE_UP_TO", 0)
    limits = Limits(np.array([[-INF]]), np.array([[1.0]]))
    beyond = LowRank(np.full((300, 1), 2.0), np.ones((20, 1)))
    listed = clipping.clipping(beyond, limits)
    assert len(listed.rows) == 0
    assert (listed.sides == 1).all()
    beyond.A[7] = 0.5  # one row of twenty cells within
    assert len(clipping.clipping(beyond, limits).rows) == 20
    beyond.B[:3] = 0.1  # three columns within, all of their cells
    found = clipping.clipping(beyond, limits)
    assert (found.sides[:3] == 0).all()
    assert len(found.rows) == 17
    beyond.A[::2] = 0.5  # half of the others within: mixed columns, of which no cell is listed
    found = clipping.clipping(beyond, limits)
    assert (found.sides[3:] == clipping._MIXED).all()
    assert len(found.rows) == 0
    beyond.B[:] = 1.0
    assert isinstance(clipping.clipping(beyond, limits), clipping._InStrips)


def test_a_scan_that_finds_many_more_cells_than_the_sample_promised_is_given_up(monkeypatch):
    monkeypatch.setattr(svd, "_DENSE_UP_TO", 0)
    limits = Limits(np.array([[-INF]]), np.array([[1.0]]))
    X = LowRank(np.full((20_000, 1), 2.0), np.ones((4, 1)))
    sampled = np.unique(np.linspace(0, 19_999, 256).astype(int))
    X.A[np.setdiff1d(np.arange(20_000), sampled)[:10_000]] = 0.5
    assert isinstance(clipping.clipping(X, limits), clipping._InStrips)


def test_the_matrix_free_path_with_few_triplets_is_near_the_dense_one(monkeypatch):
    limits = Limits(np.array([[-INF]]), np.array([[2.0]]))
    intervals = table(11, limits, (60, 50))
    start = limit_model(intervals, limits, 1.0)
    dense = subgradient_descent(intervals, start, limits, 1.0, 0.3, max_iter=100)
    monkeypatch.setattr(svd, "_DENSE_UP_TO", 0)
    free = subgradient_descent(intervals, start, limits, 1.0, 0.3, max_iter=100, max_rank=25)
    X = free.model.block()
    true = value_of(intervals, X, limits, 1.0, 0.3)
    # What max_rank leaves out of the penalty is a few hundredths of it, and only ever too little.
    assert free.history[-1] <= true * (1 + 1e-9)
    assert_allclose(true, dense.history[-1], rtol=0.02)


def test_max_rank_caps_the_rank(monkeypatch):
    limits = Limits(*LIMITS["ceiling"])
    for cells in (svd._DENSE_UP_TO, 0):
        monkeypatch.setattr(svd, "_DENSE_UP_TO", cells)
        found = subgradient_descent(
            table(12, limits), random_start(12), limits, 0.01, 0.3, max_rank=3, max_iter=20
        )
        assert found.model.rank <= 3


# What the caller sees.


@pytest.mark.parametrize("after", [1, 7])
def test_a_true_answer_of_on_sweep_stops(after):
    limits = Limits(*LIMITS["both"])
    found = subgradient_descent(
        *(table(13, limits), random_start(13), limits, 0.2, 0.2),
        on_sweep=lambda state: state.n_iter == after,
    )
    assert (found.stopped, found.n_iter) == (True, after)


def test_on_sweep_sees_every_step():
    limits, counts = Limits(*LIMITS["both"]), []
    subgradient_descent(
        *(table(14, limits), random_start(14), limits, 0.2, 0.2),
        max_iter=12,
        on_sweep=lambda state: counts.append(state.n_iter),
    )
    assert counts == list(range(1, 13))


def test_steps_that_have_become_negligible_are_not_made():
    limits = Limits(*LIMITS["both"])
    found = subgradient_descent(
        *(table(15, limits, (4, 3)), random_start(15, 2, (4, 3)), limits, 0.2, 0.2), max_iter=5000
    )
    # 0.99^t > 1e-8 up to t = log(1e-8) / log(0.99) = 1832.8
    assert found.n_iter == 1833


def test_steps_that_are_too_short_do_not_count_as_convergence():
    limits = Limits(*LIMITS["both"])
    found = subgradient_descent(
        *(table(16, limits), random_start(16), limits, 0.2, 0.2),
        first_step=1e-3,
        max_iter=5000,
        tol=1e-6,
    )
    assert found.history[-10] - found.history[-1] <= 1e-6 * found.history[-1]
    assert not found.converged  # down to a hundredth of the first, steps still lowered it


def test_too_few_steps_have_not_settled():
    limits = Limits(*LIMITS["both"])
    found = subgradient_descent(
        table(16, limits), random_start(16), limits, 0.2, 0.2, first_step=0.05, max_iter=5
    )
    assert not found.converged


def test_single_precision_follows_double():
    limits = Limits(*LIMITS["ceiling"])
    intervals, start = table(17, limits), random_start(17)
    how = {"first_step": 0.05, "max_iter": 10}
    double = subgradient_descent(intervals, start, limits, 0.2, 0.3, **how)
    single = subgradient_descent(
        *(intervals.astype(np.float32), start.astype(np.float32)),
        *(Limits(*(F.astype(np.float32) for F in LIMITS["ceiling"])), 0.2, 0.3),
        **how,
    )
    assert single.model.A.dtype == np.float32
    # Rounding of 6e-8 a step and vectors of Clip(X) with a condition of some hundred.
    assert_allclose(single.history, double.history, rtol=1e-4)


# Where it begins.


@pytest.mark.parametrize(
    ("ceiling", "floor", "level"),
    [
        (2.0, None, 3.0),
        (-2.0, None, -1.0),
        (None, 2.0, 1.0),
        (2.0, 0.0, 1.1),  # both: the mean of the table
        (None, None, 1.1),
    ],
)
def test_the_start_is_constant_beyond_the_limit(ceiling, floor, level):
    X = np.array([[0.0, 2.0, 1.5], [np.nan, 1.0, 1.0]])
    if ceiling == -2:
        X = -2 - X
    if floor == 2:
        X = 2 + X
    limits = Limits(
        *(
            np.full((1, 1), e if given is None else given)
            for e, given in ((-INF, floor), (INF, ceiling))
        )
    )
    start = limit_model(Intervals.from_table(X, ceiling=ceiling, floor=floor), limits, 1.0)
    # The root of the level, squared.
    assert_allclose(start.block(), level, rtol=1e-15)


@pytest.mark.parametrize("side", ["ceiling", "floor"])
@pytest.mark.parametrize("axis", ["columns", "rows", "cells"])
def test_the_start_lies_beyond_limits_that_differ(side, axis):
    sign = 1 if side == "ceiling" else -1
    ends = np.random.default_rng(0).uniform(
        1, 9, {"columns": (1, 5), "rows": (4, 1)}.get(axis, (4, 5))
    )
    given = np.broadcast_to(sign * ends, (4, 5))
    X = sign * np.minimum(sign * np.full((4, 5), 3.0 * sign), ends)
    free = np.full((1, 1), -sign * INF)
    limits = Limits(*((free, sign * ends) if sign > 0 else (sign * ends, free)))
    start = limit_model(Intervals.from_table(X, **{side: given}), limits, 1.0).block()
    assert (sign * (start - given) >= 1 - 1e-12).all()
    if axis != "cells":
        assert_allclose(start, given + sign, rtol=1e-14)


def test_a_column_without_a_ceiling_starts_at_the_highest_of_the_others():
    limits = Limits(np.full((1, 1), -INF), np.array([[2.0, INF, 4.0]]))
    X = np.array([[2.0, 9.0, 1.0], [1.0, 8.0, 4.0]])
    intervals = Intervals.from_table(X, ceiling=np.array([2.0, INF, 4.0]))
    assert_allclose(limit_model(intervals, limits, 1.0).block(), [[3.0, 5, 5]] * 2, rtol=1e-14)
