"""The splitting: its cell steps, its certificates, and what it shares with other solvers."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from tests.helpers import low_rank, random_intervals
from tests.plain import certificate, douglas_rachford, largest_alpha, proximal
from tests.twin import cell_loss

from declip import Intervals
from declip.losses import Hinge, Tobit
from declip.lowrank import LowRank
from declip.solvers import (
    Limits,
    Start,
    TracePenalty,
    limit_model,
)
from declip.solvers.dense_cells import dense_cells, joint_prox, observed_cells
from declip.solvers.solution import Stopping
from declip.solvers.splitting import Splitting, followed
from declip.svd import _single_shrink, shrink, shrink_near

INF = np.inf
LIMITS = {
    "ceiling": Limits(np.full((1, 1), -INF), np.full((1, 1), 0.8)),
    "floor": Limits(np.full((1, 1), -0.5), np.full((1, 1), INF)),
    "both": Limits(np.full((1, 1), -0.5), np.full((1, 1), 0.8)),
    "per column": Limits(np.full((1, 1), -INF), np.linspace(0.3, 1, 11)[None]),
}
each_limits = pytest.mark.parametrize("limits", LIMITS.values(), ids=LIMITS)


def problem(seed, shape=(14, 11), share=0.1):
    intervals = random_intervals(seed, shape)
    return intervals, share * largest_alpha(intervals)


def clipped_table(seed, limits, shape=(14, 11)):
    rng = np.random.default_rng(seed)
    X = limits.clip(low_rank(rng, shape, 3, noise=0.1))
    X[rng.random(shape) < 0.15] = np.nan
    ends = (np.broadcast_to(F, shape) for F in (limits.ceiling, limits.floor))
    return Intervals.from_table(X, *ends)


def cold(intervals, alpha, **how):
    start = Start(LowRank.zero(intervals.shape, intervals.dtype))
    return douglas_rachford(intervals, start, TracePenalty(alpha), **how)


def double(intervals, limits, alpha=0.3, beta=0.2, **how):
    start = Start(limit_model(intervals, limits, 1.0))
    return douglas_rachford(intervals, start, TracePenalty(alpha, beta, limits), **how)


# Cell steps.


@pytest.mark.parametrize("loss", [Hinge(), Tobit(0.7)], ids=["hinge", "tobit"])
@pytest.mark.parametrize("rho", [0.01, 0.3, 5.0])
def test_the_proximal_step_of_a_cell_is_its_minimum(loss, rho):
    intervals, _ = problem(0, (8, 9))
    cells = dense_cells(intervals, np.float64, loss)
    V = np.random.default_rng(1).normal(scale=3, size=(8, 9))
    Z = cells.prox(V, rho)
    # f'(Z) + rho (Z - V) = 0: Newton stops when it moves by less than 1e-10 scales.
    assert_allclose(cells.gradient(Z), rho * (V - Z), rtol=0, atol=1e-9)


@pytest.mark.parametrize("loss", [Hinge(), Tobit(0.7)], ids=["hinge", "tobit"])
def test_loss_and_gradient_are_those_of_the_cells(loss):
    intervals, _ = problem(1)
    cells = dense_cells(intervals, np.float64, loss)
    X = np.random.default_rng(2).normal(size=(14, 11))
    lower, upper = intervals.to_bounds()
    seen = ~np.isnan(lower)
    value, slope, _ = cell_loss(X[seen], lower[seen], upper[seen], loss.scale)
    # the quadrature of the twin
    assert_allclose(cells.loss(X), value.sum(), rtol=1e-10)
    assert_allclose(cells.gradient(X)[seen], slope, rtol=0, atol=1e-9)
    assert not cells.gradient(X)[~seen].any()


@pytest.mark.parametrize("loss", [Hinge(), Tobit(0.7)], ids=["hinge", "tobit"])
def test_observed_cells_alone_are_judged_as_in_a_whole_table(loss):
    intervals, _ = problem(1)
    whole, seen = dense_cells(intervals, np.float64, loss), observed_cells(intervals, loss)
    model = limit_model(intervals, LIMITS["ceiling"], 1.0)
    X, x = model.block(), seen.of_model(model)
    assert_allclose(seen.of(X), x, rtol=1e-14)
    # The same terms, summed in another order.
    assert_allclose(seen.loss(x), whole.loss(X), rtol=1e-12)
    assert_allclose(seen.conjugate(x, 0.5), whole.conjugate(X, 0.5), rtol=1e-10)
    assert_allclose(
        seen.norm(seen.gradient(x)), whole.norm(whole.gradient(X)), rtol=1e-8
    )  # by the square


@pytest.mark.parametrize("share", [0.0, 0.3, 1.0])
def test_the_conjugate_is_the_supremum(share):
    intervals, _ = problem(2, (5, 6))
    cells = dense_cells(intervals, np.float64, Hinge())
    X = np.random.default_rng(3).normal(scale=2, size=(5, 6))
    Y = share * cells.gradient(X)
    # A smooth concave function of each cell, to the tolerance of the search.
    grid = np.linspace(-60, 60, 240_001)
    lower, upper = intervals.to_bounds()
    total = 0.0
    for y, low, high in zip(Y.flat, lower.flat, upper.flat, strict=True):
        if not np.isnan(low):
            total += np.max(grid * y - 0.5 * (grid - np.clip(grid, low, high)) ** 2)
    assert_allclose(cells.conjugate(X, share), total, atol=1e-6)


@each_limits
def test_the_joint_step_of_a_cell_is_its_minimum(limits):
    intervals = clipped_table(3, limits, (6, 11))
    cells, rho = dense_cells(intervals, np.float64, Hinge()), 0.4
    V, T = np.random.default_rng(4).normal(size=(2, 6, 11))

    def value(Z):
        f = 0.5 * cells.gradient(Z) ** 2
        return f + 0.5 * rho * ((Z - V) ** 2 + (limits.clip(Z) - T) ** 2)

    Z, image = joint_prox(cells, limits, V, T, rho, None)
    assert_array_equal(image, limits.clip(Z))
    grid = np.linspace(-4, 4, 2001)
    best = np.min([value(np.full(Z.shape, z)) for z in grid], axis=0)
    # No point of a grid is lower.
    assert (value(Z) <= best + 1e-12).all()


def test_a_cell_that_is_given_a_side_stays_there_while_it_has_a_minimum_there():
    limits = LIMITS["ceiling"]
    cells = dense_cells(Intervals.from_table(np.array([[0.0, np.nan]])), np.float64, Hinge())
    V, T = np.array([[0.0, 1.3]]), np.array([[0.0, -0.2]])
    free, held = (joint_prox(cells, limits, V, T, 1.0, s)[0] for s in (None, np.array([[0, 1]])))
    # Missing: within (1.3 - 0.2) / 2 = 0.55 with (.75^2 + .75^2) / 2, above 1.3 with 1^2 / 2.
    assert_allclose(free[0, 1], 1.3)
    within = joint_prox(cells, limits, V, T, 1.0, np.array([[0, 0]]))[0]
    assert_allclose(within[0, 1], 0.55)
    assert_allclose(held[0, 1], 1.3)


# Singular values near those of before.


def test_shrinking_near_a_basis_converges_to_shrinking():
    rng = np.random.default_rng(5)
    A = rng.normal(size=(200, 20)) @ rng.normal(size=(20, 180)) + rng.normal(size=(200, 180))
    exact, basis = shrink(A, 60.0), None
    for _ in range(30):
        found, basis = shrink_near(A, 60.0, basis)
    assert len(found.S) == len(exact.S)
    # The ratio of the first singular value left out to the last kept, to the power 60.
    assert_allclose(found.S, exact.S, rtol=1e-8)
    assert_allclose((found.U * found.S) @ found.V.T, (exact.U * exact.S) @ exact.V.T, atol=1e-5)


@pytest.mark.parametrize("shape", [(150, 200), (200, 150)])
def test_shrinking_most_triplets_in_single_precision(shape):
    rng = np.random.default_rng(16)
    A = 5 + rng.normal(size=shape)
    exact = shrink(A, 4.0)
    found, _ = shrink_near(A.astype(np.float32), 4.0, None)
    assert len(found.S) > shape[0] // 3  # too many for power steps
    assert found.U.dtype == np.float32
    X, Y = ((F.U * F.S) @ F.V.T for F in (exact, found))
    # A hundredth of the threshold is allowed for; the Gram matrix errs by 6e-8 * 25^2 / 4.
    assert np.linalg.norm(X - Y, 2) < 1e-3


def test_what_single_precision_cannot_hold_is_left_to_double():
    rng = np.random.default_rng(17)
    U, V = (np.linalg.qr(rng.normal(size=(150, 150)))[0] for _ in range(2))
    rest = np.linspace(3, 1, 148)
    far, near = ((U * np.r_[1e3, s, rest]) @ V.T for s in (9e2, 10))
    # The squares of 900 and of 1.5 are 4e5 apart, more than single precision holds to 1 %.
    assert _single_shrink(far.astype(np.float32), 1.5) is None
    found = _single_shrink(near.astype(np.float32), 1.5)
    # Each cell is rounded to 6e-8 of 10 at most, and the squares to 6e-8 of 100.
    assert_allclose(found.S, shrink(near, 1.5).S, rtol=1e-4, atol=1e-3)


@pytest.mark.parametrize("second", [False, True], ids=["one norm", "two norms"])
def test_a_large_table_is_worked_on_in_single_precision(second):
    limits = LIMITS["ceiling"]
    intervals = clipped_table(18, limits, (140, 150))
    penalty = TracePenalty(0.3, 0.2, limits) if second else TracePenalty(0.3)
    run = Splitting(intervals, penalty, Hinge())
    run.begin(Start(limit_model(intervals, limits, 1.0)))
    run.step()
    assert {F.dtype for F in (run.X, run.state.Z, *run.state.duals)} == {np.dtype(np.float32)}


# The optimum.


@pytest.mark.parametrize("seed", range(6))
def test_the_splitting_reaches_the_objective_of_the_proximal_solver(seed):
    intervals, alpha = problem(seed, share=[0.02, 0.1, 0.4][seed % 3])
    start = LowRank.zero(intervals.shape)
    how = {"tol": 1e-8, "max_iter": 50_000}
    one = proximal(intervals, start, alpha, first_alpha=largest_alpha(intervals), **how)
    other = cold(intervals, alpha, **how)
    assert one.converged
    assert other.converged
    assert_allclose(other.history[-1], one.history[-1], rtol=1e-8)  # the gap of each


@pytest.mark.parametrize("tobit", [False, True], ids=["hinge", "tobit"])
def test_the_gap_is_never_negative_and_bounds_the_distance_from_the_optimum(tobit):
    for seed in range(5):
        intervals, alpha = problem(seed)
        loss = Tobit(0.8) if tobit else Hinge()
        run = Splitting(intervals, TracePenalty(alpha), loss)
        run.begin(Start(LowRank.zero(intervals.shape), loss))
        proofs = []
        for _ in range(100):
            run.step()
            proofs.append(run._certificate(run._candidate()))
        best = min(proof.objective for proof in proofs)
        for proof in proofs:
            assert proof.gap >= 0
            # Sums of some hundred terms.
            assert proof.objective - proof.gap <= best * (1 + 1e-12)


def test_an_all_clipped_row_is_restored_beyond_its_limits():
    rng = np.random.default_rng(6)
    X = np.outer(rng.uniform(1, 2, 12), rng.uniform(1, 2, 10))
    X[3] = 2.0
    X = np.minimum(X, 2.0)
    intervals = Intervals.from_table(X, ceiling=2.0)
    found = cold(intervals, 0.05, tol=1e-6, max_iter=20_000)
    assert found.converged
    assert (found.model.block()[3] > 1.9).all()


def test_a_large_table_goes_from_single_to_double_precision():
    rng = np.random.default_rng(7)
    X = rng.normal(size=(160, 4)) @ rng.normal(size=(4, 140)) + 0.1 * rng.normal(size=(160, 140))
    X[rng.random(X.shape) < 0.3] = np.nan
    intervals = Intervals.from_table(np.minimum(X, 1.0), ceiling=1.0)
    found = cold(intervals, 2.0, tol=1e-7, max_iter=3000)
    proof = certificate(intervals, found.model, 2.0)
    assert found.converged
    # Both gaps bound the distance from the optimum, the solver's is the smaller one.
    assert found.proof.gap <= 1e-7 * found.history[-1]
    assert_allclose(found.history[-1], proof.objective, rtol=1e-12)
    assert proof.gap <= 1e-5 * proof.objective


def sparse_table(seed=19):
    """Return 5 % of the ratings of many users and items, which are swept over at each look."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(200, 3)) @ rng.normal(size=(3, 180)) + 0.1 * rng.normal(size=(200, 180))
    X[rng.random(X.shape) > 0.05] = np.nan
    return Intervals.from_table(np.minimum(X, 1.0), ceiling=1.0)


def test_a_sparse_table_is_swept_over_and_ends_at_the_optimum():
    intervals = sparse_table()
    alpha = 0.2 * largest_alpha(intervals)
    assert Splitting(intervals, TracePenalty(alpha), Hinge()).swept
    start, how = LowRank.zero(intervals.shape), {"tol": 1e-6, "max_iter": 20_000}
    one = proximal(intervals, start, alpha, first_alpha=largest_alpha(intervals), **how)
    other = cold(intervals, alpha, **how)
    assert one.converged
    assert other.converged
    assert_allclose(other.history[-1], one.history[-1], rtol=1e-6)  # the gap of each


@pytest.mark.parametrize("tobit", [False, True], ids=["hinge", "tobit"])
def test_the_gap_of_a_sparse_table_bounds_the_distance_from_the_optimum(tobit):
    intervals, loss = sparse_table(), Tobit(0.5) if tobit else Hinge()
    run, proofs = Splitting(intervals, TracePenalty(0.5), loss), []
    run.begin(Start(LowRank.zero(intervals.shape), loss))
    for _ in range(60):
        run.step()
        proofs.append(run._certificate(run._candidate()))
    assert min(proof.gap for proof in proofs) >= 0
    best = min(proof.objective for proof in proofs)
    # Sums of two thousand terms.
    assert max(proof.objective - proof.gap for proof in proofs) <= best * (1 + 1e-12)
    assert proofs[-1].gap < 0.05 * best


def test_sweeps_shorten_the_way_to_the_optimum_of_a_sparse_table():
    intervals = sparse_table(20)
    swept, plain = (Splitting(intervals, TracePenalty(0.05), Hinge()) for _ in range(2))
    plain.swept, plain.judged = False, plain.cells
    start, stopping = Start(LowRank.zero(intervals.shape)), Stopping(40, 0.0)
    values = [followed(run, start, stopping).history[-1] for run in (swept, plain)]
    assert values[0] < values[1]


def test_the_last_iteration_of_a_sparse_table_is_looked_at():
    intervals = sparse_table()
    found = cold(intervals, 0.5, tol=0.0, max_iter=7)
    assert found.n_iter == 7
    assert found.history[7] < found.history[6] == found.history[0]


@pytest.mark.parametrize(
    ("size", "dtype"), [(1.0, np.float32), (1e30, np.float64), (1e-30, np.float64)]
)
def test_a_large_table_begins_in_single_precision_if_its_squares_fit(size, dtype):
    X = size * np.random.default_rng(8).normal(size=(140, 150))
    run = Splitting(Intervals.from_table(X), TracePenalty(size), Hinge())
    run.begin(Start(LowRank.zero(X.shape)))
    assert run.state.Z.dtype == dtype


# Two norms.


@each_limits
def test_with_two_norms_the_gap_falls_to_zero(limits):
    found = double(clipped_table(8, limits), limits, tol=1e-7, max_iter=20_000)
    assert found.converged
    assert 0 <= found.proof.gap <= 1e-7 * found.proof.objective


@each_limits
def test_no_small_step_from_a_stationary_point_lowers_the_objective(limits):
    intervals = clipped_table(9, limits)
    found = double(intervals, limits, tol=1e-8, max_iter=20_000)
    X, cells = found.model.block(), dense_cells(intervals, np.float64, Hinge())

    def value(X):
        norms = np.linalg.norm(X, "nuc"), np.linalg.norm(limits.clip(X), "nuc")
        return cells.loss(X) + 0.3 * norms[0] + 0.2 * norms[1]

    rng = np.random.default_rng(10)
    for size in (1e-5, 1e-4, 1e-3):
        for _ in range(50):
            step = size * np.outer(*(rng.normal(size=n) for n in X.shape))
            # The gap is 1e-8 of the objective.
            assert min(value(X + step), value(X - step)) >= value(X) * (1 - 1e-7)


def test_a_second_norm_without_limits_is_one_norm_of_both_strengths():
    intervals = clipped_table(12, LIMITS["ceiling"])
    free = Limits(np.full((1, 1), -INF), np.full((1, 1), INF))
    one = cold(intervals, 0.5, tol=1e-8, max_iter=20_000)
    two = double(intervals, free, 0.3, 0.2, tol=1e-8, max_iter=20_000)
    assert_allclose(two.history[-1], one.history[-1], rtol=1e-7)


@pytest.mark.parametrize("second", [False, True], ids=["one norm", "two norms"])
def test_a_start_at_the_solution_stays_there(second):
    intervals, limits = clipped_table(13, LIMITS["ceiling"]), LIMITS["ceiling"]
    penalty = TracePenalty(0.3, 0.2, limits) if second else TracePenalty(0.3)
    start = Start(limit_model(intervals, limits, 1.0))
    best = douglas_rachford(intervals, start, penalty, tol=1e-8, max_iter=20_000)
    again = douglas_rachford(intervals, Start(best.model, near=True), penalty, tol=1e-6)
    assert again.n_iter <= 30
    assert_allclose(again.history[-1], best.history[-1], rtol=1e-6)


# Along the way.


class Kept:
    """A resume point that keeps one state, as a file would: by value."""

    def __init__(self, at, state=None):
        self.at, self.state, self.kept, self.n = at, state, None, 0

    def put(self, state):
        self.n += 1
        if self.n == self.at:
            self.kept = tuple(
                [F.copy() for F in x]
                if isinstance(x, list) and hasattr(x[0], "copy")
                else list(x)
                if isinstance(x, list)
                else x
                for x in state
            )

    def done(self): ...


@pytest.mark.parametrize("second", [False, True], ids=["one norm", "two norms"])
@pytest.mark.parametrize("at", [3, 37])
def test_a_fit_that_is_taken_up_again_ends_the_same(second, at):
    limits = LIMITS["both"]
    intervals = clipped_table(14, limits)
    penalty = TracePenalty(0.3, 0.2, limits) if second else TracePenalty(0.3)
    start, how = Start(limit_model(intervals, limits, 1.0)), {"tol": 0.0, "max_iter": 60}
    point = Kept(at)
    whole = douglas_rachford(intervals, start, penalty, resume_point=point, **how)
    rest = douglas_rachford(intervals, start, penalty, resume_point=Kept(0, point.kept), **how)
    assert_array_equal(rest.history, whole.history)
    assert_array_equal(rest.model.A, whole.model.A)


def test_single_precision_tables_are_solved():
    intervals, alpha = problem(15)
    found = cold(intervals.astype(np.float32), alpha, tol=1e-6, max_iter=5000)
    assert found.model.A.dtype == np.float32
    assert found.converged
    # Data rounded to 6e-8.
    assert_allclose(found.history[-1], cold(intervals, alpha, tol=1e-6).history[-1], rtol=2e-6)
