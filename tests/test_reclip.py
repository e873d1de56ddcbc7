"""The reclip test: limits moved into exact cells, and what it says of estimators."""

import matplotlib as mpl
import numpy as np
import pandas as pd
import polars as pl
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from tests.helpers import low_rank

from declip import BayesCMC, FroCMC, Intervals, reclip_test
from declip.reclip import LEFT, RESTORED, reclip

mpl.use("Agg")


def rank_two(n=80, p=6, noise=0.0):
    return low_rank(0, (n, p), noise=noise)


def fro(k=2):
    return FroCMC(k, alpha=1e-3, random_state=0)


# Moving the limits.


def test_the_asked_share_of_each_column_is_hidden():
    cells = reclip(Intervals.from_table(rank_two(101)), 0.2, floors=False, ceilings=True)
    assert_array_equal(np.bincount(cells.cols), np.full(6, 21))  # 20 and the one at the limit


def test_hidden_cells_are_shown_as_clipped_at_the_moved_limit():
    X = rank_two()
    cells = reclip(Intervals.from_table(X), 0.2, floors=False, ceilings=True)
    side = cells.intervals.by_row
    assert cells.intervals.n_censored == len(cells)
    assert_array_equal(X[cells.rows, cells.cols], cells.value)
    assert (side.lower <= X[side.censored_rows(), side.censored_idx]).all()
    assert np.isposinf(side.upper).all()


def test_cells_that_were_clipped_cannot_be_told_from_the_others():
    X = rank_two()
    ceiling = np.quantile(X, 0.8, axis=0)
    cells = reclip(
        Intervals.from_table(np.minimum(X, ceiling), ceiling=ceiling),
        *(0.2,),
        floors=False,
        ceilings=True,
    )
    side = cells.intervals.by_row
    for j in range(X.shape[1]):
        assert len(np.unique(side.lower[side.censored_idx == j])) == 1
    assert_array_equal(cells.censored, X[cells.rows, cells.cols] >= ceiling[cells.cols])
    assert_allclose(cells.real_limit, ceiling[cells.cols])


def test_floors_mirror_ceilings():
    X = rank_two()
    up = reclip(Intervals.from_table(X), 0.2, floors=False, ceilings=True)
    down = reclip(Intervals.from_table(-X), 0.2, floors=True, ceilings=False)
    assert_array_equal(up.rows, down.rows)
    assert_array_equal(up.limit, -down.limit)
    assert_array_equal(up.value, -down.value)


def test_a_side_moves_only_in_columns_that_are_clipped_at_it():
    X = rank_two()
    table = X.copy()
    table[:, 0] = np.minimum(X[:, 0], 0.5)
    ceiling = np.array([0.5, *[np.inf] * 5])
    cells = reclip(Intervals.from_table(table, ceiling), 0.2, floors=False, ceilings=True)
    assert set(cells.cols) == {0}


@pytest.mark.parametrize(
    "column", [np.zeros(80), np.tile([0.0, 1.0], 40), np.r_[np.arange(4.0), np.full(76, np.nan)]]
)
def test_a_column_with_too_little_left_stays_as_it_is(column):
    X = np.column_stack([rank_two(), column])
    cells = reclip(Intervals.from_table(X), 0.2, floors=False, ceilings=True)
    assert 6 not in cells.cols


# The test.


def test_where_both_ends_leave_too_little_they_are_moved_in_turn():
    answers = np.random.default_rng(0).integers(1, 6, (200, 4)).astype(float)
    cells = Intervals.from_table(answers, floor=1, ceiling=5)
    for seed in (0, 1):
        moved = reclip(cells, 0.2, floors=True, ceilings=True, seed=seed)
        for j in range(4):
            hidden = moved.value[(moved.cols == j) & ~moved.censored]
            assert set(hidden) == ({4.0} if (j + seed) % 2 == 0 else {2.0})


def test_a_noiseless_table_is_restored_and_missing_is_no_match_for_limits():
    found = reclip_test(rank_two(), estimator=fro(), quantiles=[0.8])
    assert found.gain > 0.85
    assert set(found.treatments) == {RESTORED, LEFT, "taken as missing", "taken as exact"}


def test_noise_alone_shows_hardly_any_gain_for_the_hinge():
    X = np.random.default_rng(0).normal(size=(200, 6))
    found = reclip_test(X, estimator=FroCMC(1, alpha=30.0, random_state=0), quantiles=[0.8])
    assert found.gain < 0.05


def test_figures_are_those_of_the_cells():
    found = reclip_test(rank_two(noise=0.3), estimator=fro(), quantiles=[0.8])
    cells = found.as_dict("cells")
    spread = found.spread[cells["column"]]
    error = (cells[RESTORED] - cells["truth"]) / spread
    lines = found.as_dict("quantiles")
    assert_allclose(lines["error"][0], np.sqrt(np.mean(error**2)))
    assert_allclose(lines["bias"][0], error.mean())
    assert_allclose(found.gain, 1 - lines["error"][0] / lines["error"][1])


def test_estimates_never_pass_the_real_limit():
    X = rank_two(noise=0.3)
    ceiling = np.quantile(X, 0.8, axis=0)
    found = reclip_test(np.minimum(X, ceiling), ceiling, estimator=fro(), quantiles=[0.7])
    cells = found.as_dict("cells")
    assert (cells[RESTORED] <= ceiling[cells["column"]] + 1e-12).all()


def test_both_ends_are_tested_at_once():
    X = rank_two(noise=0.3)
    found = reclip_test(np.clip(X, -1, 1), 1, -1, estimator=fro(), quantiles=[0.8])
    above = found.trials[0].cells.above
    assert above.any()
    assert (~above).any()


def test_all_input_kinds_agree():
    X = rank_two(noise=0.3)
    names = list("abcdef")
    kinds = [X, pd.DataFrame(X, columns=names), pl.DataFrame(X, schema=names), sparse.csr_array(X)]
    gains = [reclip_test(kind, estimator=fro(), quantiles=[0.8]).gain for kind in kinds]
    assert_allclose(gains, gains[0])


@pytest.mark.parametrize("kind", [pd.DataFrame, pl.DataFrame])
def test_frames_come_back_as_frames_of_their_kind(kind):
    table = kind({f"c{j}": column for j, column in enumerate(rank_two().T)})
    found = reclip_test(table, estimator=fro(), quantiles=[0.8])
    for of in ("quantiles", "columns", "cells"):
        assert isinstance(found.to_frame(of), kind)
    assert next(iter(found.to_frame("columns")["column"])) == "c0"


def test_the_print_says_that_beyond_the_limit_is_extrapolation():
    text = str(reclip_test(rank_two(), estimator=fro(), quantiles=[0.8]))
    assert "extrapolation" in text
    assert "left at the limit" in text


def test_a_table_too_small_to_hide_anything_says_so():
    found = reclip_test(rank_two(4, 3), estimator=fro(1), quantiles=[0.8])
    assert np.isnan(found.gain)
    assert "enough exact cells" in str(found)
    with pytest.raises(ValueError, match="nothing to draw"):
        found.plot()


@pytest.mark.parametrize("quantiles", [[], [0.0], [1.0], [0.5, 2.0]])
def test_quantiles_must_lie_inside(quantiles):
    with pytest.raises(ValueError, match="quantiles must lie between 0 and 1"):
        reclip_test(rank_two(), quantiles=quantiles)


def test_logarithms_are_taken_and_undone():
    X = np.exp(rank_two())
    found = reclip_test(X, estimator=fro(), quantiles=[0.8], log=True)
    assert found.gain > 0.8


def test_logarithm_of_a_negative_number_names_the_cell():
    X = np.exp(rank_two())
    X[3, 2] = -1
    with pytest.raises(ValueError, match="no logarithm, first row 3, column 2"):
        reclip_test(X, estimator=fro(), log=True)


def test_plot_draws_every_treatment():
    found = reclip_test(rank_two(noise=0.3), estimator=fro())
    labels = [text.get_text() for text in found.plot().get_legend().get_texts()]
    assert any("taken as missing" in label for label in labels)


def test_the_bayesian_estimator_is_judged_by_its_expected_values():
    X = rank_two(noise=0.3)
    model = BayesCMC(2, n_samples=40, burn_in=40, chains=1, random_state=0)
    found = reclip_test(X, estimator=model, quantiles=[0.8])
    assert found.gain > 0.4
    cells = found.as_dict("cells")
    assert (cells[RESTORED] >= cells["limit"]).all()
