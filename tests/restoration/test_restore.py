"""restore: what comes back, that it does no harm, and that nothing is invented."""

from importlib import import_module

import numpy as np
import pandas as pd
import polars as pl
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from tests.helpers import low_rank

import declip
from declip import Intervals, restore
from declip.restoration.bounds import Bounds
from declip.scales import VALUE_SCALES

FAST = {"method": "tobit", "n_components": 2, "alpha": 1.0}


def table(n=120):
    return low_rank(0, (n, 6), noise=0.3)


@pytest.fixture(scope="module")
def clipped():
    """Truth, table with ceilings and gaps, and its ceilings."""
    truth = table()
    ceiling = np.quantile(truth, 0.75, axis=0)
    X = np.minimum(truth, ceiling)
    X[np.random.default_rng(1).random(X.shape) < 0.1] = np.nan
    return truth, X, ceiling


@pytest.fixture(scope="module")
def restored(clipped):
    return restore(clipped[1], clipped[2], **FAST)


def test_exact_cells_are_untouched(clipped, restored):
    _, X, ceiling = clipped
    exact = X < ceiling
    for got in (restored.table, restored.lower, restored.upper):
        assert_array_equal(got[exact], X[exact])
    assert (restored.flags[exact] == "exact").all()


def test_clipped_cells_lie_beyond_their_limit_and_in_their_band(clipped, restored):
    _, X, ceiling = clipped
    at = X == ceiling
    assert (restored.table[at] > X[at]).all()
    assert (restored.lower[at] >= X[at]).all()
    assert (restored.lower[at] == X[at]).any()  # where much of the truth lies near the limit
    assert (restored.upper[at] >= restored.table[at]).all()
    assert (restored.flags[at] == "restored").all()


def test_missing_cells_are_filled_within_their_band(clipped, restored):
    gap = np.isnan(clipped[1])
    assert (restored.flags[gap] == "filled").all()
    assert (restored.lower[gap] < restored.table[gap]).all()
    assert (restored.table[gap] < restored.upper[gap]).all()


def test_restoring_gains_on_the_truth(clipped, restored):
    truth, X, ceiling = clipped
    at = X == ceiling
    left, ours = (np.sqrt(np.mean((x - truth)[at] ** 2)) for x in (X, restored.table))
    assert ours < 0.7 * left


def test_the_choice_is_among_the_methods_and_says_why(clipped):
    r = restore(clipped[1], clipped[2])
    assert r.chosen["why"]
    assert "where nothing was seen" in " ".join(str(r).split())
    assert r.chosen["method"] == r.candidates[0]["method"]
    assert [c["weight"] for c in r.candidates] == sorted(
        (c["weight"] for c in r.candidates), reverse=True
    )
    assert r.chosen["weights"] == {
        c["method"]: round(c["weight"], 3) for c in r.candidates if c["weight"]
    }
    assert sum(c["weight"] for c in r.candidates) == pytest.approx(1)


def test_same_seed_same_result(clipped, restored):
    again = restore(clipped[1], clipped[2], **FAST)
    assert_array_equal(again.table, restored.table)
    assert_array_equal(again.upper, restored.upper)


def test_floors_mirror_ceilings(clipped):
    _, X, ceiling = clipped
    up = restore(X, ceiling=ceiling, method="column")
    down = restore(-X, floor=-ceiling, method="column")
    assert_allclose(down.table, -up.table, rtol=1e-6, atol=1e-6)
    assert_allclose(down.lower, -up.upper, rtol=1e-6, atol=1e-6)


def test_units_do_not_matter(clipped, restored):
    _, X, ceiling = clipped
    units = np.array([1e-3, 1.0, 7.0, 1e4, 0.5, 30.0])
    scaled = restore(X * units, ceiling * units, **FAST)
    assert_allclose(scaled.table, restored.table * units, rtol=1e-3, atol=1e-6)


def test_logarithms_carry_the_limits_along(clipped, restored):
    _, X, ceiling = clipped
    r = restore(np.exp(X), np.exp(ceiling), log=True, **FAST)
    at = ~np.isnan(X)
    # the steps between values, next to nothing here, are looked for in the units of the data
    assert_allclose(np.log(r.table[at]), restored.table[at], rtol=5e-3, atol=5e-3)


# What comes back for each kind of input.


def test_a_pandas_frame_keeps_its_labels(clipped, restored):
    _, X, ceiling = clipped
    frame = pd.DataFrame(X, columns=list("abcdef"), index=[f"s{i}" for i in range(len(X))])
    r = restore(frame, ceiling, **FAST)
    for got in (r.table, r.flags, r.lower, r.upper):
        assert list(got.columns) == list(frame.columns)
        assert list(got.index) == list(frame.index)
    assert_allclose(r.table.to_numpy(), restored.table)
    assert_array_equal(r.flags.to_numpy(), restored.flags)


def test_a_polars_frame_keeps_its_columns(clipped, restored):
    _, X, ceiling = clipped
    r = restore(pl.DataFrame(X, schema=list("abcdef")), ceiling, **FAST)
    assert isinstance(r.table, pl.DataFrame)
    assert r.flags.columns == list("abcdef")
    assert_allclose(r.table.to_numpy(), restored.table)


def test_a_sparse_table_keeps_its_pattern_and_is_never_dense():
    rng = np.random.default_rng(0)
    n = 300_000
    rows, cols = rng.integers(0, 200_000, 2000), rng.integers(0, 100_000, 2000)
    rows[:1000], cols[:1000] = np.arange(1000) % 50, np.arange(1000) // 50
    values = np.minimum(rng.normal(size=2000), 1.0)
    X = sparse.coo_array((values, (rows, cols)), shape=(n, n)).tocsr()
    X.data = np.minimum(X.data, 1.0)
    r = restore(X, ceiling=1.0, method="column")
    assert_array_equal(r.table.indptr, X.indptr)
    assert_array_equal(r.table.indices, X.indices)
    assert len(r.flags) == X.nnz
    assert_array_equal(r.flags == "exact", X.data < 1)
    assert_array_equal(r.table.data[X.data < 1], X.data[X.data < 1])


def test_intervals_carry_their_limits(clipped, restored):
    _, X, ceiling = clipped
    cells = Intervals.from_table(X, ceiling)
    assert_array_equal(restore(cells, **FAST).table, restored.table)
    with pytest.raises(TypeError, match="carries its own limits"):
        restore(cells, ceiling, **FAST)


def test_predict_is_in_the_units_of_the_table(clipped, restored):
    _, X, _ = clipped
    rows, cols = np.nonzero(np.isnan(X))
    assert_allclose(restored.predict(rows, cols), restored.table[rows, cols])


# Do no harm.


def test_nothing_is_restored_or_filled_beyond_what_the_truth_can_be(clipped, restored):
    _, X, ceiling = clipped
    high = ceiling + 0.2
    r = restore(X, ceiling, between=(None, high), **FAST)
    assert (r.table <= high + 1e-9).all()
    assert (r.upper <= high + 1e-9).all()
    at = X == ceiling
    assert (r.table[at] < np.minimum(restored.table, high)[at] + 1e-9).all()


def test_a_limit_that_the_truth_cannot_pass_is_the_truth(clipped):
    _, X, ceiling = clipped
    r = restore(X, ceiling, between=(None, ceiling), **FAST)
    assert_array_equal(r.table[X == ceiling], X[X == ceiling])


def test_bounds_inside_the_table_are_refused(clipped):
    with pytest.raises(ValueError, match="beyond the bounds of between="):
        restore(clipped[1], clipped[2], between=(None, -1.0), **FAST)


@pytest.fixture(scope="module")
def amounts():
    """Amounts that are never negative, and their floors."""
    truth = np.exp(low_rank(3, (150, 6), noise=0.3))
    return truth, np.quantile(truth, 0.3, axis=0)


@pytest.fixture(scope="module")
def amounts_restored(amounts):
    truth, floor = amounts
    X = np.maximum(truth, floor)
    X[::7, 2] = np.nan
    return restore(X, floor=floor, effort="quick")


def test_what_is_never_negative_is_not_restored_filled_or_drawn_below_zero(amounts_restored):
    r = amounts_restored
    assert (r.flags == "restored").any()
    assert (r.flags == "filled").any()
    for got in (r.table, r.lower, *r.sample(5)):
        assert got.min() >= 0
    assert any("never negative: nothing is restored below zero" in line for line in r.warnings)


def test_zero_as_the_end_of_amounts_is_worth_knowing(amounts, amounts_restored):
    truth, floor = amounts
    below = (truth < floor) & (amounts_restored.flags == "restored")
    free = restore(np.maximum(truth, floor), floor=floor, effort="quick", between=None)
    assert free.lower.min() < 0
    ours, without = (np.square(x.table - truth)[below].mean() for x in (amounts_restored, free))
    assert ours < 0.8 * without
    assert not any("never negative" in line for line in free.warnings)


def test_an_amount_is_a_column_without_a_negative_value_or_floor_at_zero_and_no_scale():
    rng = np.random.default_rng(0)
    columns = {
        "amount": (rng.exponential(size=60), 0.2),
        "sign": (rng.normal(size=60), -0.5),
        "floor at zero": (rng.normal(size=60), 0.0),
        "answers": (rng.integers(1, 6, size=60).astype(float), 1.0),
        "gain of negative floor": (rng.exponential(size=60), -0.1),
    }
    lower, upper = (np.column_stack([x for x, _ in columns.values()]) for _ in range(2))
    floor = np.array([limit for _, limit in columns.values()])
    below = lower <= floor
    below[0, 4] = True
    lower, upper = np.where(below, -np.inf, lower), np.where(below, floor, upper)
    cells = Intervals.from_bounds(lower, upper)
    found = Bounds.of_amounts(cells, cells)
    assert_array_equal(found.low, [0, -np.inf, -np.inf, -np.inf, -np.inf])
    assert np.isinf(found.high).all()
    for some, low in (([0, 1], -np.inf), ([0, 0], 0)):  # columns that share their units
        together = Intervals.from_bounds(lower[:, some], upper[:, some])
        assert_array_equal(Bounds.of_amounts(together, together, shared=True).low, [low])


def test_amounts_that_are_worked_on_by_rows_end_at_zero_too():
    rng = np.random.default_rng(1)
    truth = np.exp(rng.normal(2, 1.5, size=(12, 1))) * rng.gamma(4, size=(12, 60)) / 4
    stock = np.quantile(truth, 0.2, axis=1, keepdims=True)
    r = restore(np.maximum(truth, stock), floor=stock, method="column", scale="rows")
    assert r.transposed
    assert r.lower.min() >= 0
    # all cells are of one quantity: where some are negative, zero is no end of the others
    lowered = restore(np.maximum(truth, stock) - 5, floor=stock - 5, method="column", scale="rows")
    assert not any("never negative" in line for line in lowered.warnings)


def test_limits_are_kept_where_the_truth_lies_at_them():
    rng = np.random.default_rng(0)
    X = np.minimum(rng.uniform(size=(400, 4)), 0.5)
    X[:, 1:] = rng.choice([0.1, 0.2, 0.3, 0.5], size=(400, 3))  # nothing beyond 0.5 to be found
    r = restore(X, ceiling=0.5, method="column")
    left = X == 0.5
    assert np.abs(r.table - X)[left].mean() < 0.3


def test_without_evidence_the_limits_are_kept():
    X = np.array([[1.0, 2.0], [3.0, 5.0], [5.0, 4.0]])
    r = restore(X, ceiling=5)
    assert r.kept_limits
    assert_array_equal(r.table, X)
    assert any("was left at it" in w for w in r.warnings)


def test_nothing_is_invented_in_undetermined_rows_and_columns():
    X = np.column_stack([np.minimum(table(), 1.0), np.full(120, 1.0), np.full(120, np.nan)])
    X[0] = np.nan
    X[5, 6] = np.nan
    r = restore(X, ceiling=1.0, **FAST)
    assert (r.flags[0] == "undetermined").all()
    assert (r.flags[:, 6:] == "undetermined").all()
    assert_array_equal(r.table[1:5, 6], 1.0)  # a column of limits alone stays at them
    assert np.isnan(r.table[:, 7]).all()  # nothing is known of an empty column
    assert np.isnan(r.table[5, 6])
    assert np.isnan(r.table[0]).all()
    assert any("1 row (0)" in w for w in r.warnings)
    assert any("2 columns (6, 7)" in w for w in r.warnings)


def test_proposed_limits_are_mentioned_and_not_applied():
    X = np.minimum(table(300), 0.5)
    r = restore(X, method="hinge", n_components=2, alpha=1.0)
    assert any("0.5" in w and "look clipped" in w for w in r.warnings)
    assert_array_equal(r.table, X)
    assert not r.kept_limits


def test_a_table_without_limits_is_only_filled():
    X = table()
    X[::7, 2] = np.nan
    r = restore(X)
    assert r.reclip is None
    assert set(np.unique(r.flags)) == {"exact", "filled"}
    assert_allclose(r.table[::7, 2], table()[::7, 2], atol=2.0)


@pytest.mark.parametrize("shape", [(1, 8), (30, 1), (2, 2)])
def test_tables_of_every_shape_are_taken(shape):
    X = np.minimum(np.random.default_rng(0).normal(size=shape), 0.5)
    r = restore(X, ceiling=0.5)
    assert r.table.shape == shape
    assert (r.table >= X).all()


@pytest.mark.parametrize("scale", [1e-30, 1e30])
def test_extreme_scales_are_taken(clipped, scale):
    _, X, ceiling = clipped
    r = restore(X * scale, ceiling * scale, method="column")
    assert np.isfinite(r.table).all()


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"method": "magic"}, "method must be one of"),
        ({"scale": "cells"}, "scale must be one of"),
        ({"coverage": 1.5}, "coverage must lie between 0 and 1"),
        ({"effort": "lazy"}, "effort must be one of"),
        ({"effort": 0}, "effort must be a word or a positive number"),
        ({"time_limit": -1}, "time_limit must be a number of seconds"),
        ({"random_state": -1}, "random_state must be a whole number from 0 on"),
        ({"random_state": np.random.default_rng(0)}, "random_state must be a whole number"),
        ({"alpha": "a"}, "alpha must be a number from 0 on"),
        ({"fill": "some"}, "fill must be one of"),
        ({"rounding": "yes"}, "rounding must be one of"),
        ({"n_components": 99}, "n_components must be"),
        ({"log": "a"}, "log must be True, False or the columns"),
        ({"log": ["nowhere"]}, "log names column 'nowhere'"),
    ],
)
def test_wrong_arguments_are_named(clipped, wrong, message):
    with pytest.raises((ValueError, TypeError), match=message):
        restore(clipped[1], clipped[2], **wrong)


def test_the_function_is_found_beside_its_package():
    package = import_module("declip.restoration")
    assert declip.restore is package.restore


def test_cells_known_to_lie_in_a_range_are_put_inside_it(clipped):
    truth = clipped[0]
    lower, upper = np.where(truth > 0.5, 0.5, truth), np.where(truth > 0.5, 1.5, truth)
    upper = np.where(truth > 1.5, 9.0, upper)
    r = restore(Intervals.from_bounds(lower, upper), **FAST)
    censored = lower < upper
    assert ((r.table > lower) & (r.table < upper))[censored].all()
    assert (r.flags[censored] == "restored").all()


def test_a_table_of_limits_alone_is_refused():
    with pytest.raises(ValueError, match="All 20 observed cells are clipped"):
        restore(np.ones((5, 4)), ceiling=1)


def test_a_method_that_cannot_be_tuned_is_used_as_asked():
    r = restore(np.array([[1.0, 2.0], [3.0, 2.0]]), ceiling=3.0, method="tobit")
    assert r.chosen["method"] == "tobit"
    assert r.chosen["why"] == "It was asked for."


def test_a_callable_is_told_of_the_progress():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((40, 4))
    told = []
    restore(np.minimum(X, 1.0), ceiling=1.0, method="column", progress=lambda *at: told.append(at))
    assert told[-1][0] == "the final fit"
    shares = [share for _, share in told]
    assert shares == sorted(shares)
    assert 0 <= shares[0] <= shares[-1] <= 1


def test_bounds_that_are_no_pair_are_refused():
    with pytest.raises(ValueError, match=r"between must be a pair.*got 3"):
        declip.restore(np.eye(3), ceiling=1, between=3, progress=False)


def test_two_columns_of_one_name_are_refused_by_name():
    table = pd.DataFrame(np.eye(3), columns=["a", "b", "a"])
    with pytest.raises(ValueError, match="Two columns are named 'a'"):
        declip.restore(table, ceiling=1, progress=False)


@pytest.mark.parametrize("method", ["hinge", "tobit+bias", "trace"])
def test_a_table_of_ranges_alone_is_restored_within_them(method):
    rng = np.random.default_rng(0)
    lower = rng.normal(size=(8, 4))
    upper = lower + rng.exponential(size=lower.shape)
    table = declip.Intervals.from_bounds(lower, upper)
    found = declip.restore(table, method=method, n_components=1, alpha=1.0, progress=False)
    assert ((lower <= found.table) & (found.table <= upper)).all()


def test_what_floats_cannot_hold_stays_at_its_limit():
    low = np.zeros((8, 3))
    high = low + 1.0
    low[0], high[0] = -1e150, -1e150
    found = declip.restore(
        declip.Intervals.from_bounds(low, high),
        method="hinge",
        n_components=1,
        alpha=1.0,
        progress=False,
    )
    for numbers in (found.table, found.lower, found.upper):
        assert np.isfinite(numbers).all()


@pytest.mark.parametrize("scale", ["sqrt", "log1p"])
def test_a_scale_by_name_is_the_table_on_that_scale_and_back(scale):
    truth = declip.from_scale(4 + table(), scale)
    ceiling = np.quantile(truth, 0.75, axis=0)
    sold = np.minimum(truth, ceiling)
    found = restore(sold, ceiling, scale=scale, **FAST)
    on_scale = VALUE_SCALES[scale].forward
    other = restore(on_scale(sold), on_scale(ceiling), scale="columns", **FAST)
    assert found.counts["restored"] > 0
    assert_allclose(found.table, declip.from_scale(other.table, scale), rtol=1e-6)
    assert_allclose(found.upper, declip.from_scale(other.upper, scale), rtol=1e-6)
    assert found.settings["scale"] == scale
    again = restore(sold, ceiling, **found.settings)
    assert_array_equal(again.table, found.table)
