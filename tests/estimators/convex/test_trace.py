"""TrCMC: certificates, the penalty, the rank, the path."""

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.stats import norm
from sklearn.base import clone
from tests.estimators.convex.tables import CEILING, CELLS, SEEN, X, each_convex, each_solver, quiet
from tests.plain import certificate, largest_alpha

from declip import FroCMC, TrCMC, trace_path

pytestmark = [
    pytest.mark.filterwarnings("ignore:.*without any observed cell"),
    pytest.mark.filterwarnings("ignore:.*fewer exact cells"),
    pytest.mark.filterwarnings("ignore:.*without any exact cell"),
]


@each_solver
@pytest.mark.parametrize("clipped", ["hinge", "tobit", "value", "missing"])
def test_the_gap_is_that_of_the_model_and_within_tol_of_the_penalised_loss(clipped, solver):
    model = TrCMC(0.5, ceiling=CEILING, clipped=clipped, solver=solver, tol=1e-5, scale="none").fit(
        X
    )
    cells = CELLS.treat(clipped)
    proof = certificate(cells, model._model(), 0.5, model.scale_)
    assert model.converged_
    # In units of the objective, which for Tobit is a likelihood.
    gap = model.gap_ * (model.scale_**2 or 1)
    if solver == "splitting":  # the smaller gap of two dual points
        assert gap <= proof.gap * (1 + 1e-6) + 1e-12
    else:
        assert_allclose(gap, proof.gap, rtol=1e-6, atol=1e-12)
    assert gap <= 1e-5 * proof.objective


def log_likelihood(model, table, ceiling):
    x, scale, seen = model.reconstruct(), model.scale_, ~np.isnan(table)
    exact = seen & (table < ceiling)
    at_ceiling = seen & (table == ceiling)
    inside = norm.logpdf(table[exact], x[exact], scale).sum()
    return inside + norm.logsf(ceiling, x[at_ceiling], scale).sum()


@each_solver
@pytest.mark.parametrize("max_iter", [4, 1000])
def test_the_tobit_objective_is_the_penalised_likelihood(solver, max_iter):
    model = TrCMC(
        0.5, ceiling=CEILING, clipped="tobit", solver=solver, max_iter=max_iter, scale="none"
    )
    quiet(model.fit, X)
    penalty = 0.5 * np.linalg.norm(model.reconstruct(), "nuc") / model.scale_**2
    expected = penalty - log_likelihood(model, X, CEILING)
    # The compiled normal tail and scipy's agree to some 1e-12; the factors are rounded.
    assert_allclose(model.objective_, expected, rtol=1e-9)


@each_solver
@pytest.mark.parametrize("alpha", [0.05, 0.5, 5.0])
def test_the_objective_is_the_loss_and_the_trace_norm(alpha, solver):
    model = TrCMC(alpha, ceiling=CEILING, solver=solver, scale="none").fit(X)
    x = model.reconstruct()
    r = np.where(SEEN, x - X, 0.0)
    r = np.where(X == CEILING, np.minimum(r, 0.0), r)
    expected = 0.5 * (r**2).sum() + alpha * np.linalg.norm(x, "nuc")
    assert_allclose(model.objective_, expected, rtol=1e-10)


@each_solver
@pytest.mark.parametrize("share", [1.0, 1.5])
def test_from_the_largest_useful_alpha_on_nothing_is_left(solver, share):
    model = TrCMC(share * largest_alpha(CELLS), ceiling=CEILING, solver=solver, scale="none").fit(X)
    assert model.rank_ == 0
    assert not model.reconstruct().any()


@each_solver
def test_just_below_the_largest_useful_alpha_something_is_left(solver):
    # At 0 the gap is of the order of 1e-6 of the objective there: tol must be below it.
    model = TrCMC(
        (1 - 1e-3) * largest_alpha(CELLS), ceiling=CEILING, solver=solver, tol=1e-9, scale="none"
    )
    assert model.fit(X).rank_ == 1


@pytest.mark.parametrize("alpha", [0.3, 3.0])
def test_fro_with_a_large_rank_reaches_the_certified_optimum(alpha):
    fro = FroCMC(
        12, alpha=alpha, ceiling=CEILING, random_state=0, tol=1e-11, max_iter=5000, scale="none"
    ).fit(X)
    trace = TrCMC(alpha, ceiling=CEILING, tol=1e-7, max_iter=5000, scale="none").fit(X)
    assert trace.gap_ <= 1e-7 * trace.objective_
    assert fro.gap_ <= 1e-5 * fro.objective_
    # Both are above the same minimum by at most their gaps.
    assert_allclose(fro.objective_, trace.objective_, rtol=1e-5)


@pytest.mark.parametrize("solver", ["proximal", "factored"])
@pytest.mark.parametrize("max_rank", [1, 3])
def test_max_rank_caps_the_rank(solver, max_rank):
    model = TrCMC(
        0.01, ceiling=CEILING, solver=solver, max_rank=max_rank, max_iter=50, scale="none"
    )
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


@pytest.mark.parametrize(("max_rank", "solver"), [(None, "splitting"), (3, "proximal")])
def test_auto_is_the_splitting_for_a_small_table_unless_the_rank_is_given(max_rank, solver):
    one, other = (
        quiet(TrCMC(0.5, ceiling=CEILING, solver=s, max_rank=max_rank, scale="none").fit, X)
        for s in ("auto", solver)
    )
    assert_array_equal(one.history_, other.history_)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"alpha": 0.0}, "needs an alpha above 0"),
        ({"alpha": 0.5, "max_rank": 3}, "takes no max_rank"),
    ],
)
def test_what_the_splitting_cannot_do_is_refused(given, message):
    with pytest.raises(ValueError, match=message):
        TrCMC(**given, ceiling=CEILING, solver="splitting", scale="none").fit(X)


@each_solver
def test_a_warm_start_begins_where_the_last_fit_ended(solver):
    model = TrCMC(0.5, ceiling=CEILING, solver=solver, warm_start=True, scale="none").fit(X)
    ended = model.objective_
    assert_allclose(model.fit(X).history_[0], ended, rtol=1e-10)  # factors, rounded
    assert model.n_iter_ <= 5


# The path.


def test_a_path_begins_at_zero_and_its_fit_and_rank_grow():
    path = trace_path(
        X, n_alphas=8, ratio=1e-2, ceiling=CEILING, tol=1e-6, max_iter=5000, scale="none"
    )
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


@each_solver
def test_the_warm_starts_of_a_path_end_where_cold_ones_do(solver):
    alphas = [0.3, 10.0, 3.0, 1.0]
    path = trace_path(
        X, alphas, ceiling=CEILING, solver=solver, tol=1e-6, max_iter=5000, scale="none"
    )
    assert [model.alpha for model in path] == sorted(alphas, reverse=True)
    for warm in path:
        cold = TrCMC(
            warm.alpha, ceiling=CEILING, solver=solver, tol=1e-6, max_iter=5000, scale="none"
        ).fit(X)
        assert abs(warm.objective_ - cold.objective_) <= max(warm.gap_, cold.gap_)


def test_the_models_of_a_path_are_ready_for_use():
    frame = pd.DataFrame(X, columns=[f"item {j}" for j in range(12)])
    for model in trace_path(frame, [3.0, 1.0], ceiling=CEILING, scale="none"):
        restored = model.set_output(transform="pandas").transform(frame)
        assert list(restored.columns) == list(frame.columns)


def test_a_path_of_tobit_begins_with_zero():
    path = trace_path(X, n_alphas=3, ratio=0.1, ceiling=CEILING, clipped="tobit", scale="none")
    assert path[0].rank_ == 0
