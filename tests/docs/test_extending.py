"""The examples of the pages on extending declip."""

import numpy as np
import pytest
from capped import CappedTrCMC, prox, value
from huber import HuberCMC, huber
from numpy.testing import assert_allclose
from tests.helpers import low_rank

from declip import Intervals, TrCMC
from declip.lowrank import LowRank


def table(seed=0, noise=0.1):
    rng = np.random.default_rng(seed)
    truth = low_rank(rng, (30, 20))
    return truth, np.minimum(truth + noise * rng.normal(size=truth.shape), 1.5)


@pytest.mark.parametrize("cap", [0.5, 2.0, np.inf])
@pytest.mark.parametrize("s", [0.0, 0.4, 1.0, 1.9, 2.3, 2.7, 8.0])
def test_the_prox_of_the_capped_norm_beats_a_grid(s, cap):
    def cost(z):
        return 0.5 * (z - s) ** 2 + value(np.atleast_1d(z), 1.0, cap)

    found = float(prox(np.array([s]), 1.0, cap)[0])
    assert cost(found) <= min(cost(z) for z in np.linspace(0, 10, 2001)) + 1e-12


@pytest.mark.parametrize("model", [CappedTrCMC(1.0, 8.0, ceiling=1.5), HuberCMC(1.0, ceiling=1.5)])
def test_the_objective_never_rises(model):
    history = model.fit(table()[1]).history_
    assert np.all(np.diff(history) <= 1e-12 * history[0])


@pytest.mark.parametrize("model", [CappedTrCMC(tol=1e-12), HuberCMC(delta=np.inf, tol=1e-12)])
def test_without_cap_or_bound_it_is_the_trace_norm(model):
    _, seen = table()
    convex = TrCMC(alpha=2.0, ceiling=1.5, tol=1e-9, scale="none").fit(seen)
    found = model.set_params(alpha=2.0, ceiling=1.5, max_iter=20_000).fit(seen)
    assert_allclose(found.objective_, convex.objective_, rtol=1e-6)


def test_a_cap_leaves_large_singular_values_alone():
    truth, seen = table(noise=0.02)
    errors = [
        np.linalg.norm(CappedTrCMC(2.0, cap, ceiling=1.5).fit(seen).reconstruct() - truth)
        for cap in (4.0, np.inf)
    ]
    assert errors[0] < 0.5 * errors[1]


def test_a_bounded_loss_withstands_gross_errors():
    truth, seen = table(noise=0.02)
    rng = np.random.default_rng(1)
    wrong = rng.choice(seen.size, 15, replace=False)
    seen.flat[wrong] = rng.choice([-8.0, 1.4], 15)
    bounded = HuberCMC(0.2, 0.1, ceiling=1.5).fit(seen)
    squared = HuberCMC(0.2, np.inf, ceiling=1.5).fit(seen)
    found = [(m.reconstruct() - truth).flat[wrong] for m in (bounded, squared)]
    assert np.median(np.abs(found[0])) < 0.2 * np.median(np.abs(found[1]))


def test_the_gradient_of_the_bounded_loss_is_its_slope():
    cells = Intervals.from_table(table()[1], ceiling=1.5)
    rng = np.random.default_rng(0)
    A, B = rng.normal(size=(30, 2)), rng.normal(size=(20, 2))
    G = huber(cells, LowRank(A, B), 0.7)
    step = 1e-6 * rng.normal(size=A.shape)
    rise = (
        huber(cells, LowRank(A + step, B), 0.7).loss - huber(cells, LowRank(A - step, B), 0.7).loss
    )
    dense = (G.exact + G.censored).toarray()
    # The derivative of f(A B^T) with respect to A is G B; central differences err by step^2.
    assert_allclose(rise, 2 * np.sum((dense @ B) * step), rtol=1e-5)


@pytest.mark.parametrize("model", [CappedTrCMC(0.5, ceiling=1.5), HuberCMC(0.5, ceiling=1.5)])
def test_new_rows_and_single_cells_come_with_the_base_class(model):
    _, seen = table()
    restored = model.fit(seen).transform(seen[:4])
    assert restored.shape == (4, 20)
    assert np.all(restored[seen[:4] == 1.5] >= 1.5)
    assert_allclose(model.predict([0, 3], [1, 2]), model.reconstruct()[[0, 3], [1, 2]])
