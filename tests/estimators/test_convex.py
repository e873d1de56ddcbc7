"""TrCMC, ExactCMC and DTrCMC: certified against a convex solver, and honest about it."""

import functools
import re
import warnings

import cvxpy as cp
import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal
from scipy.stats import norm
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from tests.twin import random_bounds

from declip import DTrCMC, ExactCMC, FroCMC, Intervals, TrCMC, trace_path
from declip.objective import certificate, largest_alpha
from declip.solvers import minimum_trace_norm

pytestmark = [
    pytest.mark.filterwarnings("ignore:.*without any observed cell"),
    pytest.mark.filterwarnings("ignore:.*fewer exact cells"),
    pytest.mark.filterwarnings("ignore:.*without any exact cell"),
]

each_solver = pytest.mark.parametrize("solver", ["proximal", "factored"])
each_convex = pytest.mark.parametrize(
    "estimator",
    [TrCMC(0.5), TrCMC(0.5, solver="factored"), ExactCMC(), DTrCMC(0.2, 0.1, max_iter=150)],
    ids=["TrCMC", "TrCMC factored", "ExactCMC", "DTrCMC"],
)
each_mode = pytest.mark.parametrize("clipped", ["hinge", "value", "missing"])

CEILING = 2.0


def low_rank(shape=(20, 12), rank=2, noise=0.0, seed=0):
    rng = np.random.default_rng(seed)
    P, Q = (0.7 + rng.standard_normal((n, rank)) for n in shape)
    return P @ Q.T + noise * rng.standard_normal(shape)


TRUTH = low_rank(noise=0.05)
SEEN = np.random.default_rng(1).random(TRUTH.shape) < 0.9
X = np.where(SEEN, np.minimum(TRUTH, CEILING), np.nan)
CELLS = Intervals.from_table(X, ceiling=CEILING)


def quiet(fit, *args):
    """Fit without a word about steps that were too few."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return fit(*args)


# Against a convex solver.

PROBLEMS = range(50)
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
    model = TrCMC(alpha, solver=solver, tol=5e-7, max_iter=10_000).fit(intervals)
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


# TrCMC: certificates, the penalty, the rank.


@each_solver
@pytest.mark.parametrize("clipped", ["hinge", "tobit", "value", "missing"])
def test_the_gap_is_that_of_the_model_and_within_tol_of_the_penalised_loss(clipped, solver):
    model = TrCMC(0.5, ceiling=CEILING, clipped=clipped, solver=solver, tol=1e-5).fit(X)
    cells = CELLS.treat(clipped)
    proof = certificate(cells, model._model(), 0.5, model.scale_)
    assert model.converged_
    # In units of the objective, which for Tobit is a likelihood.
    assert_allclose(model.gap_ * (model.scale_**2 or 1), proof.gap, rtol=1e-6, atol=1e-12)
    assert proof.gap <= 1e-5 * proof.objective


def log_likelihood(model, table, ceiling):
    x, scale, seen = model.reconstruct(), model.scale_, ~np.isnan(table)
    exact = seen & (table < ceiling)
    at_ceiling = seen & (table == ceiling)
    inside = norm.logpdf(table[exact], x[exact], scale).sum()
    return inside + norm.logsf(ceiling, x[at_ceiling], scale).sum()


@each_solver
@pytest.mark.parametrize("max_iter", [4, 1000])
def test_the_tobit_objective_is_the_penalised_likelihood(solver, max_iter):
    model = TrCMC(0.5, ceiling=CEILING, clipped="tobit", solver=solver, max_iter=max_iter)
    quiet(model.fit, X)
    penalty = 0.5 * np.linalg.norm(model.reconstruct(), "nuc") / model.scale_**2
    expected = penalty - log_likelihood(model, X, CEILING)
    # The compiled normal tail and scipy's agree to some 1e-12; the factors are rounded.
    assert_allclose(model.objective_, expected, rtol=1e-9)


@each_solver
@pytest.mark.parametrize("alpha", [0.05, 0.5, 5.0])
def test_the_objective_is_the_loss_and_the_trace_norm(alpha, solver):
    model = TrCMC(alpha, ceiling=CEILING, solver=solver).fit(X)
    x = model.reconstruct()
    r = np.where(SEEN, x - X, 0.0)
    r = np.where(X == CEILING, np.minimum(r, 0.0), r)
    expected = 0.5 * (r**2).sum() + alpha * np.linalg.norm(x, "nuc")
    assert_allclose(model.objective_, expected, rtol=1e-10)


@each_solver
@pytest.mark.parametrize("share", [1.0, 1.5])
def test_from_the_largest_useful_alpha_on_nothing_is_left(solver, share):
    model = TrCMC(share * largest_alpha(CELLS), ceiling=CEILING, solver=solver).fit(X)
    assert model.rank_ == 0
    assert not model.reconstruct().any()


@each_solver
def test_just_below_the_largest_useful_alpha_something_is_left(solver):
    # At 0 the gap is of the order of 1e-6 of the objective there: tol must be below it.
    model = TrCMC((1 - 1e-3) * largest_alpha(CELLS), ceiling=CEILING, solver=solver, tol=1e-9)
    assert model.fit(X).rank_ == 1


@pytest.mark.parametrize("alpha", [0.3, 3.0])
def test_fro_with_a_large_rank_reaches_the_certified_optimum(alpha):
    fro = FroCMC(12, alpha=alpha, ceiling=CEILING, random_state=0, tol=1e-11, max_iter=5000).fit(X)
    trace = TrCMC(alpha, ceiling=CEILING, tol=1e-7, max_iter=5000).fit(X)
    assert trace.gap_ <= 1e-7 * trace.objective_
    assert fro.gap_ <= 1e-5 * fro.objective_
    # Both are above the same minimum by at most their gaps.
    assert_allclose(fro.objective_, trace.objective_, rtol=1e-5)


@each_solver
@pytest.mark.parametrize("max_rank", [1, 3])
def test_max_rank_caps_the_rank(solver, max_rank):
    model = TrCMC(0.01, ceiling=CEILING, solver=solver, max_rank=max_rank, max_iter=50)
    quiet(model.fit, X)
    assert model.rank_ <= max_rank
    assert np.linalg.matrix_rank(model.reconstruct()) <= max_rank


@each_convex
def test_the_singular_values_are_those_of_the_matrix(estimator):
    model = quiet(clone(estimator).set_params(ceiling=CEILING).fit, X)
    expected = np.linalg.svd(model.reconstruct(), compute_uv=False)
    S = model.singular_values_
    assert_allclose(S[: model.rank_], expected[: model.rank_], rtol=0, atol=1e-11 * expected[0])
    assert_allclose(expected[model.rank_ :], 0, atol=1e-11 * expected[0])


@each_convex
def test_the_attributes_have_the_shapes_that_are_documented(estimator):
    model = quiet(clone(estimator).set_params(ceiling=CEILING).fit, X)
    assert model.row_factors_.shape == (20, model.rank_)
    assert model.components_.shape == (model.rank_, 12)
    assert model.singular_values_.shape == (model.rank_,)


@each_convex
def test_the_factors_are_balanced(estimator):
    model = quiet(clone(estimator).set_params(ceiling=CEILING).fit, X)
    S = np.diag(model.singular_values_)
    # U sqrt(S) and V sqrt(S): squares of singular vectors that are orthogonal to rounding.
    assert_allclose(model.row_factors_.T @ model.row_factors_, S, rtol=0, atol=1e-11 * S[0, 0])
    assert_allclose(model.components_ @ model.components_.T, S, rtol=0, atol=1e-11 * S[0, 0])


def test_auto_is_the_proximal_solver_for_a_small_table():
    one, other = (TrCMC(0.5, ceiling=CEILING, solver=s).fit(X) for s in ("auto", "proximal"))
    assert_array_equal(one.history_, other.history_)


@each_solver
def test_a_warm_start_begins_where_the_last_fit_ended(solver):
    model = TrCMC(0.5, ceiling=CEILING, solver=solver, warm_start=True).fit(X)
    ended = model.objective_
    assert_allclose(model.fit(X).history_[0], ended, rtol=1e-10)  # factors, rounded
    assert model.n_iter_ <= 5


# The path.


def test_a_path_begins_at_zero_and_its_fit_and_rank_grow():
    path = trace_path(X, n_alphas=8, ratio=1e-2, ceiling=CEILING, tol=1e-6, max_iter=5000)
    alphas = [model.alpha for model in path]
    assert path[0].rank_ == 0
    assert_allclose(alphas[0], largest_alpha(CELLS), rtol=1e-12)
    assert_allclose(alphas[-1], 1e-2 * alphas[0], rtol=1e-12)
    # With a smaller penalty the best value is smaller, the trace norm larger and the loss smaller;
    # a gap of 1e-6 F and steps of a factor 2 in alpha leave no doubt of these.
    objectives = [model.objective_ for model in path]
    norms = [model.singular_values_.sum() for model in path]
    losses = [m.objective_ - m.alpha * n for m, n in zip(path, norms, strict=True)]
    assert objectives == sorted(objectives, reverse=True)
    assert norms == sorted(norms)
    assert losses == sorted(losses, reverse=True)
    assert path[-1].rank_ > path[1].rank_ >= 1


@pytest.mark.parametrize("solver", ["proximal", "factored"])
def test_the_warm_starts_of_a_path_end_where_cold_ones_do(solver):
    alphas = [0.3, 10.0, 3.0, 1.0]
    path = trace_path(X, alphas, ceiling=CEILING, solver=solver, tol=1e-6, max_iter=5000)
    assert [model.alpha for model in path] == sorted(alphas, reverse=True)
    for warm in path:
        cold = TrCMC(warm.alpha, ceiling=CEILING, solver=solver, tol=1e-6, max_iter=5000).fit(X)
        assert abs(warm.objective_ - cold.objective_) <= max(warm.gap_, cold.gap_)


def test_the_models_of_a_path_are_ready_for_use():
    frame = pd.DataFrame(X, columns=[f"item {j}" for j in range(12)])
    for model in trace_path(frame, [3.0, 1.0], ceiling=CEILING):
        restored = model.set_output(transform="pandas").transform(frame)
        assert list(restored.columns) == list(frame.columns)


def test_a_path_of_tobit_begins_with_zero():
    path = trace_path(X, n_alphas=3, ratio=0.1, ceiling=CEILING, clipped="tobit")
    assert path[0].rank_ == 0


# ExactCMC.


def test_exact_reports_residuals_and_gap_within_tol():
    model = ExactCMC(ceiling=CEILING, tol=1e-5).fit(X)
    assert model.converged_
    assert 0 <= model.primal_residual_ <= 1e-5
    assert model.dual_residual_ >= 0
    # objective_ is that of the matrix itself, which differs from a feasible one by the residual,
    # whose trace norm is at most sqrt(12) times its size.
    size = np.linalg.norm(X[SEEN])
    assert 0 <= model.gap_ <= 1e-5 * (model.objective_ + np.sqrt(12) * 1e-5 * size)


def test_exact_meets_the_observed_cells_and_keeps_clipped_ones_beyond():
    model = ExactCMC(ceiling=CEILING, tol=1e-6, max_iter=20_000).fit(X)
    x = model.reconstruct()
    off = np.where(X == CEILING, np.minimum(x - X, 0), x - X)[SEEN]
    assert np.linalg.norm(off) <= 1e-6 * np.linalg.norm(X[SEEN])


def test_exact_recovers_what_was_clipped_where_enough_cells_are_exact():
    rng = np.random.default_rng(2)
    truth = np.outer(*(1 + 0.2 * rng.standard_normal(n) for n in (30, 24)))
    ceiling = np.quantile(truth, 0.95)
    table = np.where(rng.random(truth.shape) < 0.8, np.minimum(truth, ceiling), np.nan)
    restored = ExactCMC(ceiling=ceiling, tol=1e-7, max_iter=20_000).fit_transform(table)
    # Recovery is exact but for the residual of 1e-7 times its condition, far below 1e3 here.
    assert_allclose(restored, truth, rtol=0, atol=1e-4)


def test_exact_with_new_rows_meets_their_cells():
    truth = low_rank((40, 12))
    model = ExactCMC(tol=1e-7, max_iter=20_000).fit(truth[:30])
    table = truth[30:].copy()
    table[:, ::3] = np.nan
    # The rows lie in the span of the fitted columns up to the residual of 1e-7, and the ridge of
    # 1e-9 weighs nothing against 8 cells for 2 factors.
    assert_allclose(model.transform(table), truth[30:], rtol=0, atol=1e-3)


@each_mode
def test_exact_holds_clipped_cells_as_asked(clipped):
    model = ExactCMC(ceiling=CEILING, clipped=clipped).fit(X)
    x, at_ceiling = model.reconstruct(), X == CEILING
    near = 1e-5 * np.linalg.norm(X[SEEN])  # the primal residual
    if clipped == "value":
        assert_allclose(x[at_ceiling], CEILING, rtol=0, atol=near)
    elif clipped == "hinge":
        assert (x[at_ceiling] >= CEILING - near).all()
    else:
        assert (x[at_ceiling] < CEILING - near).any()


def test_infeasible_bounds_never_reach_a_fit():
    lower = X.copy()
    lower[1, 2] = X[1, 2] + 1
    with pytest.raises(ValueError, match="row 1, column 2"):
        ExactCMC().fit(Intervals.from_bounds(lower, X))


# DTrCMC.

DTR_LIMITS = {
    "ceiling": {"ceiling": CEILING},
    "floor": {"floor": -0.5},
    "both": {"ceiling": CEILING, "floor": -0.5},
    "per column": {"ceiling": np.linspace(1, 2, 12)},
    "per row": {"ceiling": np.linspace(1, 2, 20)[:, np.newaxis]},
    "per cell": {"ceiling": np.random.default_rng(3).uniform(1, 2, TRUTH.shape)},
}
each_limit = pytest.mark.parametrize("limits", DTR_LIMITS.values(), ids=DTR_LIMITS)


def seen_under(ceiling=np.inf, floor=-np.inf):
    return np.where(SEEN, np.clip(TRUTH, floor, ceiling), np.nan)


def dtr_value(x, table, alpha, beta, ceiling=np.inf, floor=-np.inf):
    """The objective of a dense matrix, from its definition."""
    r = np.where(SEEN, x - table, 0.0)
    r = np.where(table == ceiling, np.minimum(r, 0), np.where(table == floor, np.maximum(r, 0), r))
    clip = np.clip(x, floor, ceiling)
    norms = np.linalg.norm(x, "nuc"), np.linalg.norm(clip, "nuc")
    return 0.5 * (r**2).sum() + alpha * norms[0] + beta * norms[1]


@each_limit
def test_dtr_reports_the_objective_of_what_it_returns(limits):
    table = seen_under(**limits)
    model = quiet(DTrCMC(0.3, 0.2, max_iter=80, **limits).fit, table)
    expected = dtr_value(model.reconstruct(), table, 0.3, 0.2, **limits)
    assert_allclose(model.objective_, expected, rtol=1e-10)
    assert (np.diff(model.history_) <= 0).all()
    assert model.objective_ < model.history_[0]


@each_limit
def test_dtr_starts_at_a_constant_one_beyond_the_limit(limits):
    table = seen_under(**limits)
    model = quiet(DTrCMC(0.3, 0.2, max_iter=1, **limits).fit, table)
    lower, upper = Intervals.from_table(table, **limits).to_bounds()
    if len(limits) == 2:
        level = np.nanmean(table)
    elif "ceiling" in limits:
        level = np.median(lower[np.isposinf(upper)]) + 1
    else:
        level = np.median(upper[np.isneginf(lower)]) - 1
    start = np.full(table.shape, level)
    assert_allclose(model.history_[0], dtr_value(start, table, 0.3, 0.2, **limits), rtol=1e-10)


def test_dtr_without_the_second_penalty_reaches_the_optimum_of_trace():
    dtr = quiet(DTrCMC(0.5, 0.0, ceiling=CEILING, max_iter=1800).fit, X)
    trace = TrCMC(0.5, ceiling=CEILING, tol=1e-6, max_iter=5000).fit(X)
    assert_allclose(dtr.objective_, trace.objective_, rtol=1e-4)


def test_dtr_takes_limits_by_the_name_of_the_column():
    frame = pd.DataFrame(np.minimum(X, 1.5), columns=list("abcdefghijkl"))
    named = quiet(DTrCMC(max_iter=20, ceiling=dict.fromkeys("abcdefghijkl", 1.5)).fit, frame)
    plain = quiet(DTrCMC(max_iter=20, ceiling=1.5).fit, frame)
    assert_allclose(named.history_, plain.history_, rtol=1e-12)


@pytest.mark.parametrize("side", ["ceiling", "floor"])
def test_dtr_needs_the_limits_of_all_cells(side):
    sign = 1 if side == "ceiling" else -1
    limit = sp.csr_array(np.where(SEEN, sign * 99.0, 0.0))
    with pytest.raises(ValueError, match=f"{side} must be known for every cell.*observed or not"):
        DTrCMC(**{side: limit}).fit(sp.csr_array(np.where(SEEN, TRUTH, 0.0)))


# All three.


@each_convex
@each_mode
def test_observed_cells_come_back_within_their_limits(estimator, clipped):
    model = clone(estimator).set_params(ceiling=CEILING, clipped=clipped)
    restored = quiet(model.fit_transform, X)
    assert_array_equal(restored[X < CEILING], X[X < CEILING])
    assert (restored[X == CEILING] >= CEILING).all()
    assert_array_equal(restored[~SEEN], model.reconstruct()[~SEEN])


@each_convex
@pytest.mark.parametrize("clipped", ["value", "missing"])
def test_clipped_cells_are_treated_before_the_fit(estimator, clipped):
    model = quiet(clone(estimator).set_params(ceiling=CEILING, clipped=clipped).fit, X)
    if isinstance(model, DTrCMC):
        return  # the limits count for the second penalty as well
    table = X if clipped == "value" else np.where(X == CEILING, np.nan, X)
    plain = quiet(clone(estimator).fit, table)
    # The same cells in the same order.
    assert_allclose(model.history_, plain.history_, rtol=1e-12)


@each_convex
def test_the_mirrored_table_has_the_mirrored_fit(estimator):
    up = quiet(clone(estimator).set_params(ceiling=CEILING).fit, X)
    down = quiet(clone(estimator).set_params(floor=-CEILING).fit, -X)
    # The same arithmetic but for signs, carried through some hundred iterations.
    assert_allclose(down.history_, up.history_, rtol=1e-8)
    assert_allclose(down.reconstruct(), -up.reconstruct(), rtol=0, atol=1e-6)


@each_convex
def test_a_sparse_table_has_the_fit_of_a_dense_one(estimator):
    rows, cols = np.nonzero(SEEN)
    table = sp.coo_array((X[SEEN], (rows, cols)), shape=X.shape)
    one = quiet(clone(estimator).set_params(ceiling=CEILING).fit, X)
    other = quiet(clone(estimator).set_params(ceiling=CEILING).fit, table.tocsr())
    assert_array_equal(one.history_, other.history_)


@pytest.mark.parametrize(
    "estimator",
    [TrCMC(0.5, tol=1e-9, max_iter=20_000), ExactCMC(tol=1e-7, max_iter=20_000)],
    ids=["TrCMC", "ExactCMC"],
)
def test_transform_of_the_fitted_table_is_near_fit_transform(estimator):
    # At the optimum every row solves its own problem. A gap of g lets TrCMC's matrix stray by
    # sqrt(2 g) = sqrt(2e-9 * 60) on exact cells, and the rest by a factor of some tens.
    model = clone(estimator).set_params(ceiling=CEILING)
    restored = model.fit_transform(X)
    assert_allclose(model.transform(X), restored, rtol=0, atol=2e-2)


@each_convex
@pytest.mark.parametrize("tables", [np.float32, np.float64])
def test_the_precision_of_the_table_is_kept(estimator, tables):
    model = clone(estimator).set_params(ceiling=CEILING)
    restored = quiet(model.fit_transform, X.astype(tables))
    assert restored.dtype == model.row_factors_.dtype == tables
    assert model.transform(X.astype(tables)).dtype == tables


@pytest.mark.parametrize(
    "estimator", [TrCMC(0.5), TrCMC(0.5, solver="factored"), TrCMC(0.5, clipped="tobit")], ids=str
)
def test_single_precision_has_the_objective_of_double(estimator):
    one, other = (
        clone(estimator).set_params(ceiling=CEILING, max_iter=3000).fit(X.astype(t))
        for t in (np.float64, np.float32)
    )
    assert other.converged_
    # The gaps of 1e-4 of the penalised loss, which for Tobit is a likelihood of some ten times.
    assert_allclose(other.objective_, one.objective_, rtol=2e-3 if one.scale_ else 1e-4)


MESSAGES = [
    (TrCMC(0.05, max_iter=3), "TrCMC stopped after 3 iterations with a duality gap above tol"),
    (TrCMC(0.05, max_iter=3, max_rank=2), "Raise max_iter, alpha or tol, or max_rank."),
    (TrCMC(0.05, max_iter=3, solver="factored"), "TrCMC stopped after 3 iterations"),
    (ExactCMC(max_iter=3), "ExactCMC stopped after 3 iterations with the duality gap or the"),
    (DTrCMC(max_iter=3), "DTrCMC stopped after 3 steps before it had settled"),
]


@pytest.mark.parametrize(("estimator", "message"), MESSAGES)
def test_too_few_iterations_are_told_with_the_remedy(estimator, message):
    with pytest.warns(ConvergenceWarning, match=re.escape(message)) as caught:
        clone(estimator).set_params(ceiling=CEILING).fit(X)
    assert "Raise max_iter" in str(caught[0].message)


@each_convex
def test_a_converged_fit_says_nothing(estimator):
    if isinstance(estimator, DTrCMC):
        estimator = clone(estimator).set_params(max_iter=1500)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model = clone(estimator).set_params(ceiling=CEILING).fit(X)
    assert model.converged_
