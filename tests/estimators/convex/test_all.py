"""What TrCMC, ExactCMC and DTrCMC have in common."""

import re
import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from tests.estimators.convex.tables import CEILING, SEEN, X, each_convex, each_mode, quiet

from declip import DTrCMC, ExactCMC, TrCMC

pytestmark = [
    pytest.mark.filterwarnings("ignore:.*without any observed cell"),
    pytest.mark.filterwarnings("ignore:.*fewer exact cells"),
    pytest.mark.filterwarnings("ignore:.*without any exact cell"),
]


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
    [TrCMC(0.5, tol=1e-9, max_iter=20_000, scale="none"), ExactCMC(tol=1e-7, max_iter=20_000)],
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
    "estimator",
    [
        TrCMC(0.5, scale="none"),
        TrCMC(0.5, solver="factored", scale="none"),
        TrCMC(0.5, clipped="tobit", scale="none"),
    ],
    ids=str,
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
    (
        TrCMC(0.05, max_iter=3, scale="none"),
        "TrCMC stopped after 3 iterations with a duality gap above tol",
    ),
    (
        TrCMC(0.05, max_iter=3, max_rank=2, scale="none"),
        "Raise max_iter, alpha or tol, or max_rank.",
    ),
    (TrCMC(0.05, max_iter=3, solver="factored", scale="none"), "TrCMC stopped after 3 iterations"),
    (ExactCMC(max_iter=3), "ExactCMC stopped after 3 iterations with the duality gap or the"),
    (DTrCMC(max_iter=3, scale="none"), "DTrCMC stopped after 3 steps with a gap above tol = 0.001"),
    (
        DTrCMC(max_iter=3, first_step=0.05, solver="subgradient", scale="none"),
        "DTrCMC stopped after 3 steps before the objective had settled",
    ),
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
