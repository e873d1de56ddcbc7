"""BayesCMC of tables in levels: edges, probabilities, new rows, and columns of numbers beside."""

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.stats import norm

import declip
from declip import BayesCMC, Intervals

EDGES = np.array([-1.8, -1.4, 0.3, 1.0])


def simulated(n=200, m=20, seen=0.7, seed=0, edges=EDGES):
    """Return answers from 1 on, which of them are seen, and the probabilities behind them."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(n, 2)) @ rng.normal(size=(2, m)) + 0.5 * rng.normal(size=m)
    levels = np.digitize(x + 0.8 * rng.normal(size=(n, m)), edges) + 1.0
    cuts = np.concatenate([[-np.inf], edges, [np.inf]])
    return levels, rng.random((n, m)) < seen, np.diff(norm.cdf((cuts - x[..., None]) / 0.8))


def fitted(kind, table, **more):
    settings = {"n_samples": 80, "burn_in": 60, "random_state": 0, **more}
    return BayesCMC(2, levels=kind, **settings).fit(table)


@pytest.fixture(scope="module")
def answers():
    levels, seen, chances = simulated()
    return levels, seen, chances, np.where(seen, levels, np.nan)


@pytest.fixture(scope="module")
def shared(answers):
    return fitted("shared", answers[3])


def log_score(model, levels, seen):
    rows, cols = np.nonzero(~seen)
    found = model.predict_levels(rows, cols)
    return -np.log(found[np.arange(len(rows)), levels[rows, cols].astype(int) - 1]).mean()


def relative(edges):
    return (edges - edges[0]) / (edges[-1] - edges[0])


def test_edges_are_recovered_up_to_where_they_lie_and_how_wide_they_are(shared):
    drawn = np.array([relative(s.cuts[0, 1:-1]) for s in shared.posterior_.samples])
    # four deviations of the posterior, which is narrow
    away = abs(relative(EDGES) - drawn.mean(axis=0))[1:-1]
    assert np.all(away < 4 * drawn.std(axis=0)[1:-1])
    assert drawn.std(axis=0).max() < 0.02
    assert_allclose(
        shared.edges_[3], np.mean([s.cuts[0] for s in shared.posterior_.samples], 0)[1:-1]
    )


def test_sampled_edges_score_better_than_those_halfway_between_numbers(shared, answers):
    levels, seen, _, table = answers
    known = fitted("known", table)
    assert log_score(shared, levels, seen) < 0.95 * log_score(known, levels, seen)


def test_probabilities_are_those_of_the_samples(shared):
    rows, cols = np.array([0, 5]), np.array([3, 1])
    total = np.zeros((2, 5))
    for sample in shared.posterior_.samples:
        x, scale = sample.at(rows.astype(np.int32), cols.astype(np.int32))
        unit, shift = shared.posterior_.units.scale[cols], shared.posterior_.units.shift[cols]
        z = (sample.cuts[0] - (x * unit + shift)[:, None]) / (scale * unit)[:, None]
        total += np.diff(norm.cdf(z))
    found = shared.predict_levels(rows, cols)
    assert_allclose(found, total / len(shared.posterior_.samples), atol=1e-12)
    assert_allclose(found.sum(axis=1), 1)


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["shared", "pooled"])
def test_probabilities_are_calibrated(kind):
    errors = []
    for seed in range(4):
        levels, seen, _ = simulated(n=300, m=30, seed=seed)
        model = fitted(kind, np.where(seen, levels, np.nan), n_samples=200, burn_in=150)
        rows, cols = np.nonzero(~seen)
        found = model.predict_levels(rows, cols)
        came = levels[rows, cols][:, None] == np.arange(1, 6)
        part = np.minimum((10 * found).astype(int), 9)
        gap = np.bincount(part.ravel(), (came - found).ravel(), 10)
        errors.append(abs(gap).sum() / found.size)
    assert np.mean(errors) <= 0.02


def test_edges_that_differ_by_column_are_found_by_column():
    rng = np.random.default_rng(3)
    value = rng.normal(size=(250, 1)) + 0.6 * rng.normal(size=(250, 6))
    cuts = [[-1.0, -0.8, 0, 1]] * 3 + [[-1, 0, 0.8, 1.0]] * 3
    table = np.column_stack([np.digitize(value[:, j], cuts[j]) + 1.0 for j in range(6)])
    narrow = [np.diff(edges).argmin() for edges in fitted("column", table).edges_]
    assert narrow == [0, 0, 0, 2, 2, 2]
    assert len({tuple(edges) for edges in fitted("shared", table, n_samples=9).edges_}) == 1


def test_known_edges_are_intervals_and_nothing_else(answers):
    table = answers[3]
    named = fitted("known", table)
    plain = fitted(None, Intervals.from_levels(table))
    assert_array_equal(named.predict([0, 1], [2, 3]), plain.predict([0, 1], [2, 3]))
    assert_array_equal(named.predict_levels([0], [2]), plain.predict_levels([0], [2]))


def test_columns_of_numbers_go_beside_columns_in_levels():
    rng = np.random.default_rng(1)
    trait = rng.normal(size=(150, 1))
    values = 50 + 10 * (trait + 0.3 * rng.normal(size=(150, 3)))
    words = np.array(["no", "rather no", "rather yes", "yes"])
    told = np.digitize(trait + 0.5 * rng.normal(size=(150, 4)), [-1, 0.2, 0.6])
    frame = pd.DataFrame(values, columns=["x", "y", "z"])
    for j in range(4):
        frame[f"q{j}"] = pd.Categorical(words[told[:, j]], words, ordered=True)
    hidden = frame.copy()
    hidden.loc[:20, ["x", "q0"]] = None
    model = fitted("shared", hidden)
    restored = model.transform(hidden)
    assert np.corrcoef(restored[:21, 0], values[:21, 0])[0, 1] > 0.6
    chances = model.predict_levels(np.arange(21), ["q0"] * 21)
    assert np.corrcoef(chances @ np.arange(4), told[:21, 0])[0, 1] > 0.6
    assert model.edges_[0] is None
    with pytest.raises(ValueError, match="column 'x' holds numbers, not levels"):
        model.predict_levels([0], ["x"])
    with pytest.raises(ValueError, match="'maybe' at row 0"):
        model.transform(hidden.astype({"q1": object}).head(1).assign(q1="maybe"))


def test_new_rows_are_told_in_the_levels_of_the_fit(shared, answers):
    _, seen, _, table = answers
    again = shared.fold_in(table[:40])
    rows, cols = np.nonzero(~seen[:40])
    # the same rows, drawn anew: two Monte Carlo estimates of the same probabilities
    gap = again.predict_levels(rows, cols) - shared.predict_levels(rows, cols)
    assert abs(gap).mean() < 0.02
    alone = shared.transform(table[:1])
    assert_allclose(alone, shared.transform(table[:40])[:1])
    with pytest.raises(ValueError, match="6 at row 0, column 0"):
        shared.transform(np.full((1, 20), 6.0))


def test_restored_cells_rise_with_their_levels(shared, answers):
    table = answers[3]
    restored = shared.transform(table)
    means = [restored[(table == level)].mean() for level in range(1, 6)]
    assert np.all(np.diff(means) > 0)
    low, high = shared.predict_interval(*np.nonzero(table == 3), coverage=0.9)
    edges = shared.edges_[0]
    # a band within its level, up to what is not known of its edges
    assert low.min() > edges[1] - 0.2
    assert high.max() < edges[2] + 0.2
    drawn = shared.sample(2, random_state=0)
    assert np.all(drawn[:, table == 1].max() < edges[0] + 0.2)


def test_two_levels_are_one_bit_completion():
    levels, seen, chances = simulated(n=300, m=30, edges=[0.2])
    model = fitted(True, np.where(seen, levels, np.nan), noise="column", burn_in=100)
    rows, cols = np.nonzero(~seen)
    found = model.predict_levels(rows, cols)[:, 1]
    assert np.all(model.posterior_.samples[-1].cols == 1)
    truth, share = chances[rows, cols, 1], np.nanmean(np.where(seen, levels, np.nan) - 1, axis=0)
    # the share of each column says half as much
    assert np.mean((found - truth) ** 2) < 0.25 * np.mean((share[cols] - truth) ** 2)
    assert model.run_.edges is None


def test_the_same_seed_threads_and_file_give_the_same_model(shared, answers, tmp_path):
    again = fitted("shared", answers[3], n_jobs=2)
    loaded = declip.load(shared.save(tmp_path / "model.npz"))
    for other in (again, loaded):
        assert_array_equal(other.predict_levels([3], [4]), shared.predict_levels([3], [4]))
    assert_array_equal(loaded.transform(answers[3][:3]), shared.transform(answers[3][:3]))


def test_a_warm_start_goes_on_with_the_edges():
    levels, seen, _ = simulated(n=60, m=8)
    table = np.where(seen, levels, np.nan)
    twice = fitted("pooled", table, n_samples=10, burn_in=10, warm_start=True).fit(table)
    once = fitted("pooled", table, n_samples=20, burn_in=10)
    assert_array_equal(twice.run_.chains[0].edges.cuts, once.run_.chains[0].edges.cuts)


def test_what_levels_do_not_go_with_is_refused(answers):
    with pytest.raises(ValueError, match="this Intervals has none"):
        BayesCMC(levels=True).fit(Intervals.from_table(answers[3]))
    with pytest.raises(ValueError, match='missing="random" only'):
        BayesCMC(levels=True, missing="low").fit(answers[3])
    with pytest.raises(ValueError, match="not recorded in levels"):
        BayesCMC(n_samples=4, burn_in=2).fit(answers[3][:, :4]).predict_levels([0], [0])
