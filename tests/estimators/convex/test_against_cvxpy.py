"""TrCMC and ExactCMC reach the optimum of a convex solver."""

import functools

import cvxpy as cp
import numpy as np
import pytest
from tests.estimators.convex.tables import each_solver
from tests.plain import largest_alpha, minimum_trace_norm
from tests.twin import random_bounds

from declip import Intervals, TrCMC

pytestmark = [
    pytest.mark.filterwarnings("ignore:.*without any observed cell"),
    pytest.mark.filterwarnings("ignore:.*fewer exact cells"),
    pytest.mark.filterwarnings("ignore:.*without any exact cell"),
]

PROBLEMS = [*range(8), *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(8, 50))]
# Clarabel stops at a gap of 1e-8 relative and feasibility of 1e-8: its value is good to some times
# that.
CLARABEL = 1e-7


def solve_convex(intervals, alpha):
    """The trace-norm problem by cvxpy, with hard intervals if alpha is None: its least value."""
    lower, upper = (bound[~np.isnan(bound)] for bound in intervals.to_bounds())
    matrix = cp.Variable(intervals.shape)
    x, slack = matrix[~np.isnan(intervals.to_bounds()[0])], 0.0
    value = cp.normNuc(matrix)
    if alpha is not None:
        slack = cp.Variable(len(intervals))  # distance to the interval
        value = 0.5 * cp.sum_squares(slack) + alpha * value
    inside, low, high = x + slack, np.isfinite(lower), np.isfinite(upper)
    constraints = [inside[low] >= lower[low], inside[high] <= upper[high]]
    problem = cp.Problem(cp.Minimize(value), constraints)
    problem.solve(solver=cp.CLARABEL)
    assert problem.status == cp.OPTIMAL
    return problem.value


@functools.cache
def convex_problem(seed):
    """Cells of all kinds and a penalty, up to 20 x 20."""
    rng = np.random.default_rng(seed)
    shape = (20, 20) if seed % 25 == 0 else tuple(rng.integers(3, 16, 2))
    bounds = random_bounds(rng, shape, missing=rng.uniform(0.0, 0.6), spread=rng.choice([0.5, 3]))
    intervals = Intervals.from_bounds(*bounds)
    return intervals, rng.choice([0.05, 0.2, 0.6]) * largest_alpha(intervals)


@functools.cache
def least_penalised(seed):
    return solve_convex(*convex_problem(seed))


@each_solver
@pytest.mark.parametrize("seed", PROBLEMS)
def test_trace_fits_reach_the_optimum_of_a_convex_solver(seed, solver):
    intervals, alpha = convex_problem(seed)
    model = TrCMC(alpha, solver=solver, tol=5e-7, max_iter=10_000, scale="none").fit(intervals)
    best = least_penalised(seed)
    assert model.converged_
    assert model.objective_ <= best * (1 + 1e-6)
    assert model.objective_ >= best * (1 - CLARABEL)
    assert model.objective_ - model.gap_ <= best * (1 + CLARABEL)
    assert 0 <= model.gap_ <= 5e-7 * model.objective_


@pytest.mark.parametrize("seed", PROBLEMS)
def test_exact_fits_reach_the_optimum_of_a_convex_solver(seed):
    intervals, _ = convex_problem(seed)
    found = minimum_trace_norm(intervals, tol=5e-7, max_iter=20_000)
    best = solve_convex(intervals, None)
    assert found.converged
    assert best * (1 - CLARABEL) <= found.proof.upper <= best * (1 + 1e-6)
    assert best * (1 - 1e-6) <= found.proof.lower <= best * (1 + CLARABEL)
    # Before it is cut at 0, the gap: sums of some hundred terms.
    assert found.proof.upper - found.proof.lower >= -1e-12 * best
    assert found.proof.gap <= 5e-7 * found.proof.upper
