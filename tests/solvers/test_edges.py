"""Edges between levels: their prior, their pins, and a sampler that leaves the prior alone."""

from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import stats
from tests.solvers.gibbs_prior import chain_at, draw_state

from declip import Intervals
from declip.levels import Levels, Scale
from declip.solvers.gibbs import Model
from declip.solvers.gibbs.chain import Chain, Table
from declip.solvers.gibbs.edges import EdgeDraw, EdgeSets, GapPool, LevelCells
from declip.solvers.gibbs.units import Units

EDGES = np.array([-1.0, -0.2, 0.5, 1.5])
PINS = [(1, 2), (2, 4), (1, 4), (3, 4)]
MODELS = [
    Model(1, "column", levels="shared"),
    Model(1, "row+column", levels="column"),
    Model(1, "column", levels="pooled"),
    Model(1, "global", df=4.0, levels="pooled"),
]
each_model = pytest.mark.parametrize("model", MODELS, ids=str)


def edge_sets(n_cols, kind, pins=(2, 4)):
    levels = Levels((Scale(np.arange(1.0, 6), EDGES),), np.zeros(n_cols, np.int32))
    n_sets = 1 if kind == "shared" else n_cols
    set_of = np.zeros(n_cols, np.int32) if kind == "shared" else np.arange(n_cols, dtype=np.int32)
    of_scale = np.zeros(n_sets, np.int32)
    return EdgeSets(levels, set_of, of_scale, np.array([pins], np.int32), kind == "pooled")


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


def draw_levels(model, shape, seen, rng):
    """Draw a table in levels from the prior, and a chain that stands at what it was drawn from."""
    sets = edge_sets(shape[1], model.levels)
    n_sets, pool = len(sets.scale_of), GapPool.start(sets)
    if sets.pooled:
        variance, mean = 0.1 / rng.gamma(2), rng.standard_normal(3)
        pool = GapPool((mean - mean.mean())[None], np.array([variance]))
    y = rng.standard_normal((n_sets, 3)) * np.sqrt(pool.variance)
    cuts = sets.from_log_gaps(pool.mean + y - y.mean(axis=1, keepdims=True))
    drawn = draw_state(model, shape, rng)
    own = cuts[sets.set_of]  # (n_cols, n_cuts)
    level = (drawn[-1][:, :, None] > own[None]).sum(axis=2) - 1
    cells = Intervals.from_levels(
        np.where(seen, level + 1.0, np.nan), EDGES, levels=[1, 2, 3, 4, 5]
    )
    units = Units(np.zeros(shape[1]), np.ones(shape[1]))
    table = Table(cells, levels=LevelCells.of(cells, sets, units))
    chain = chain_at(table, model, drawn, rng)
    chain.edges = replace(EdgeDraw.start(sets), cuts=cuts, pool=pool)
    return table, chain


def told_by(chain):
    """Return edges, what they have in common, and cells and noise, of which edges depend on."""
    cuts, x = chain.edges.cuts[0], chain.factors.block()
    scale, pool = chain.scales.cols[1] ** -0.5, chain.edges.pool
    found = [cuts[1], cuts[3], x[0, 0], x.mean(), np.log(scale)]
    return found + [pool.mean[0, 0], pool.variance[0]] * (chain.model.levels == "pooled")


def moved(model, n_cases, n_sweeps, seed):
    rng, states = np.random.default_rng(seed), []
    for _ in range(n_cases):
        seen = rng.random((8, 4)) < 0.9
        table, chain = draw_levels(model, seen.shape, seen, rng)
        for _ in range(n_sweeps):
            chain.sweep(table, threads=1)
        states.append(told_by(chain))
    return np.array(states)


def p_values_of_staying(model, n_cases=250, n_sweeps=12):
    """As in `test_gibbs`: sweeps that leave the posterior alone leave the law of parameters."""
    still, after = moved(model, 1000, 0, seed=1), moved(model, n_cases, n_sweeps, seed=2)
    return np.array([stats.ks_2samp(*pair).pvalue for pair in zip(still.T, after.T, strict=True)])


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
    # Simulation-based calibration: 60 tables, ranks 0 to 24 among thinned samples, in 5 bins.
    # Which tables are left out depends on these alone, and leaves ranks uniform.
    rng, ranks = np.random.default_rng(3), []
    while len(ranks) < 60:
        table, drawn = draw_levels(model, (25, 4), rng.random((25, 4)) < 0.9, rng)
        if len(np.unique(table.cells.by_row.lower)) < 5:
            continue
        truth = told_by(drawn)
        chain, trace = Chain.start(table, model, np.random.SeedSequence(len(ranks))), []
        for sweep in range(500 + 24 * 30):
            chain.sweep(table, threads=1)
            if sweep >= 500 and sweep % 30 == 0:
                trace.append(told_by(chain))
        ranks.append((np.array(trace) < truth).sum(axis=0))
    counts = np.array([np.bincount(r // 5, minlength=5) for r in np.transpose(ranks)])
    p = stats.chisquare(counts, axis=1).pvalue
    assert p.min() > 0.0015, (p, counts)
