"""ExactCMC: the least trace norm that meets the cells."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from tests.estimators.convex.tables import CEILING, SEEN, X, each_mode, low_rank

from declip import ExactCMC, Intervals

pytestmark = [
    pytest.mark.filterwarnings("ignore:.*without any observed cell"),
    pytest.mark.filterwarnings("ignore:.*fewer exact cells"),
    pytest.mark.filterwarnings("ignore:.*without any exact cell"),
]


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
