"""Tr-CMC with the rank of an iteration held by the one before and by a gap."""

import numpy as np
import pytest
from experiments.paper import nnls
from numpy.testing import assert_allclose

from declip import Intervals, TrCMC
from declip.losses import Hinge
from declip.objective import largest_alpha


def table(rank, n=30):
    rng = np.random.default_rng(0)
    truth = rng.normal(size=(n, rank)) @ rng.normal(size=(rank, n))
    seen = rng.random((n, n)) < 0.8
    return Intervals.from_table(np.where(seen, truth.clip(max=1.0), np.nan), ceiling=1.0)


def iterates(cells, stops, alpha=0.1):
    return nnls.iterates(cells, alpha, largest_alpha(cells, Hinge()), stops)


@pytest.mark.parametrize(
    ("singular_values", "kept"),
    [
        ([100.0, 1.0, 1.0, 1.0, 1.0, 1.0], 5),  # the first five are always kept
        ([9.0] * 6 + [1.0] * 3, 6),
        ([9.0] * 6 + [2.0] * 3, 9),
        (np.geomspace(100.0, 1.0, 40), 40),  # falls, but means of ten lie less than 5 times apart
        ([9.0] * 7 + [1.0] * 3 + [0.01], 7),
        ([3.0], 1),
        ([], 0),
    ],
)
def test_what_comes_before_a_gap_is_kept(singular_values, kept):
    assert nnls.before_gap(np.array(singular_values), 5.0) == kept


@pytest.mark.parametrize("more", [1, 2, 4])
def test_an_iteration_keeps_but_a_few_triplets_more_than_the_last_one(monkeypatch, more):
    monkeypatch.setattr(nnls, "MORE", more)
    ranks = [model.rank for _, model in iterates(table(20), tuple(range(1, 15)))]
    assert ranks[0] == 1
    assert np.diff(ranks).max() == more


def test_from_iteration_15_on_the_rank_ends_at_a_gap(monkeypatch):
    stops = (14, 15)
    monkeypatch.setattr(nnls, "FIRST_GAP", 1.0)  # any two means are that far apart
    before, after = (model.rank for _, model in iterates(table(9), stops))
    assert before > after >= nnls.LEAST


def test_without_a_gap_it_ends_where_the_problem_does(monkeypatch):
    monkeypatch.setattr(nnls, "GAP", np.inf)
    monkeypatch.setattr(nnls, "FIRST_GAP", np.inf)
    cells = table(3)
    [(_, model)] = iterates(cells, (400,), alpha=2.0)
    best = TrCMC(2.0, scale="none", tol=1e-10, max_iter=5000, solver="proximal").fit(cells)
    assert_allclose(model.block(), best.row_factors_ @ best.components_, atol=1e-5)
