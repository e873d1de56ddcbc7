"""DTrCMC: both penalties, and the limits of all cells."""

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal
from tests.estimators.convex.tables import CEILING, SEEN, TRUTH, X, quiet

from declip import DTrCMC, TrCMC

pytestmark = [
    pytest.mark.filterwarnings("ignore:.*without any observed cell"),
    pytest.mark.filterwarnings("ignore:.*fewer exact cells"),
    pytest.mark.filterwarnings("ignore:.*without any exact cell"),
]

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
    model = quiet(DTrCMC(0.3, 0.2, max_iter=80, **limits, scale="none").fit, table)
    expected = dtr_value(model.reconstruct(), table, 0.3, 0.2, **limits)
    assert_allclose(model.objective_, expected, rtol=1e-10)
    assert (np.diff(model.history_) <= 0).all()
    assert model.objective_ < model.history_[0]


@each_limit
def test_dtr_starts_one_beyond_the_limit(limits):
    table = seen_under(**limits)
    model = quiet(DTrCMC(0.3, 0.2, max_iter=1, **limits, scale="none").fit, table)
    if len(limits) == 2:
        level = np.nanmean(table)
    elif "ceiling" in limits:
        level = np.asarray(limits["ceiling"]) + 1
        if level.shape == table.shape:  # beyond all ceilings of the column
            level = level.max(axis=0)
    else:
        level = limits["floor"] - 1
    start = np.broadcast_to(level, table.shape)
    assert_allclose(model.history_[0], dtr_value(start, table, 0.3, 0.2, **limits), rtol=1e-10)


@each_limit
def test_the_splitting_ends_no_higher_than_the_subgradient(limits):
    table = seen_under(**limits)
    split = DTrCMC(0.3, 0.2, **limits, scale="none").fit(table)
    descent = quiet(
        DTrCMC(0.3, 0.2, solver="subgradient", max_iter=500, **limits, scale="none").fit, table
    )
    assert split.converged_
    # A gap of 1e-3 F, and stationary points that lie close to each other.
    assert split.objective_ <= descent.objective_ * (1 + 1e-3)


def test_auto_is_the_subgradient_where_the_splitting_cannot_be():
    for given in ({"alpha": 0.0}, {"alpha": 0.2, "max_rank": 3}):
        one, other = (
            quiet(DTrCMC(**given, ceiling=CEILING, max_iter=20, solver=s, scale="none").fit, X)
            for s in ("auto", "subgradient")
        )
        assert_array_equal(one.history_, other.history_)
        assert np.isnan(one.gap_)


def test_nothing_is_restored_without_the_first_penalty():
    # Clip(X) in place of X leaves the second norm as it is and can only lower the loss.
    model = quiet(DTrCMC(0.0, 0.5, ceiling=CEILING, max_iter=400, scale="none").fit, X)
    estimate = model.reconstruct()
    values = [dtr_value(x, X, 0.0, 0.5, CEILING) for x in (estimate, np.minimum(estimate, CEILING))]
    assert values[1] <= values[0]


def test_dtr_without_the_second_penalty_reaches_the_optimum_of_trace():
    dtr = quiet(DTrCMC(0.5, 0.0, ceiling=CEILING, max_iter=1800, scale="none").fit, X)
    trace = TrCMC(0.5, ceiling=CEILING, tol=1e-6, max_iter=5000, scale="none").fit(X)
    assert_allclose(dtr.objective_, trace.objective_, rtol=1e-4)


def test_dtr_takes_limits_by_the_name_of_the_column():
    frame = pd.DataFrame(np.minimum(X, 1.5), columns=list("abcdefghijkl"))
    named = quiet(
        DTrCMC(max_iter=20, ceiling=dict.fromkeys("abcdefghijkl", 1.5), scale="none").fit, frame
    )
    plain = quiet(DTrCMC(max_iter=20, ceiling=1.5, scale="none").fit, frame)
    assert_allclose(named.history_, plain.history_, rtol=1e-12)


@pytest.mark.parametrize("side", ["ceiling", "floor"])
def test_dtr_needs_the_limits_of_all_cells(side):
    sign = 1 if side == "ceiling" else -1
    limit = sp.csr_array(np.where(SEEN, sign * 99.0, 0.0))
    with pytest.raises(ValueError, match=f"{side} must be known for every cell.*observed or not"):
        DTrCMC(**{side: limit}, scale="none").fit(sp.csr_array(np.where(SEEN, TRUTH, 0.0)))
