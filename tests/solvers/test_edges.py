"""Edges between levels: their prior, their pins, and a sampler that leaves the prior alone."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from tests.solvers.gibbs_levels import TOLD, edge_sets, p_values_of_staying, ranks, uniformity

from declip import Intervals
from declip.solvers.gibbs import Model
from declip.solvers.gibbs.edges import EdgeSets, GapPool

PINS = [(1, 2), (2, 4), (1, 4), (3, 4)]
MODELS = [
    Model(1, "column", levels="shared"),
    Model(1, "row+column", levels="column"),
    Model(1, "column", levels="pooled"),
    Model(1, "global", df=4.0, levels="pooled"),
]
each_model = pytest.mark.parametrize("model", MODELS, ids=str)


@pytest.mark.parametrize("pins", PINS)
def test_the_prior_of_edges_is_that_of_the_logs_of_gaps_times_the_jacobian(pins):
    sets, rng, step = edge_sets(1, "shared", pins), np.random.default_rng(0), 1e-6
    basis = np.linalg.svd(np.ones((1, 3)))[2][1:].T  # of logs of gaps whose mean is 0
    free = np.flatnonzero(sets.is_free[0])

    def edges(v):
        return sets.from_log_gaps((basis @ v)[None])[0, free]

    def log_density(v):
        slopes = [(edges(v + step * e) - edges(v - step * e)) / (2 * step) for e in np.eye(2)]
        return -0.5 * v @ v - np.log(abs(np.linalg.det(np.array(slopes))))

    v, other = rng.standard_normal((2, 2))
    pool = GapPool.start(sets)
    cuts = [sets.from_log_gaps((basis @ at)[None]) for at in (v, other)]
    found = sets.log_prior(cuts[0], pool) - sets.log_prior(cuts[1], pool)
    # central differences of step 1e-6
    assert_allclose(found[0], log_density(v) - log_density(other), rtol=1e-6)


@pytest.mark.parametrize("pins", PINS)
def test_pinned_edges_stay_and_gaps_come_back(pins):
    sets = edge_sets(3, "column", pins)
    y = np.random.default_rng(1).standard_normal((3, 3))
    y -= y.mean(axis=1, keepdims=True)
    cuts = sets.from_log_gaps(y)
    assert_allclose(cuts[:, pins], sets.nominal[:, pins])
    assert_allclose(sets.log_gaps(cuts), y, atol=1e-12)


def test_pins_lie_near_the_quartiles_of_the_answers():
    answers = np.repeat([1.0, 2, 3, 4, 5, 6], [1, 2, 40, 20, 35, 2])[:, None]
    cells = Intervals.from_levels(answers)
    # below the edges 1, 3, 43, 63 and 98 per cent
    assert EdgeSets.of(cells, "shared").pins.tolist() == [[3, 4]]


def test_two_and_three_levels_have_no_free_edge():
    assert EdgeSets.of(Intervals.from_levels([[1.0, 2.0], [3.0, 2.0]]), "shared") is None


@pytest.mark.slow
@each_model
def test_sweeps_leave_the_prior_as_it_is(model):
    # Seven quantities: the smallest of seven uniform p-values is below 0.0015 once in a hundred.
    assert p_values_of_staying(model).min() > 0.0015


@pytest.mark.slow
def test_sweeps_without_the_jacobian_do_not_leave_the_prior_as_it_is(monkeypatch):
    right = EdgeSets.log_prior

    def log_prior(sets, cuts, pool):
        return right(sets, cuts, pool) + np.log(sets._gaps(cuts)).sum(axis=1)

    monkeypatch.setattr(EdgeSets, "log_prior", log_prior)
    assert p_values_of_staying(MODELS[0], n_cases=400).min() < 0.0015


@pytest.mark.slow
@pytest.mark.parametrize("model", [MODELS[0], MODELS[2]], ids=str)
def test_ranks_of_edges_among_their_samples_are_uniform(model):
    # Simulation-based calibration: 60 tables, ranks in 5 bins. The mean of all cells goes too
    # slowly for chains of this length; that sweeps leave its law as it is, is tested above.
    p, counts = uniformity(list(ranks(model, 60)))
    assert np.delete(p, TOLD.index("mean of cells")).min() > 0.0015, (p, counts)
