"""Limits proposed from the ends of columns: found where there are some, and only there."""

import os

import numpy as np
import pandas as pd
import polars as pl
import pytest
from numpy.testing import assert_array_equal
from scipy import sparse
from sklearn.datasets import load_breast_cancer, load_digits, load_wine

from declip import FroCMC, Intervals, detect_limits
from declip.datasets import fetch_filmtrust, fetch_movielens_100k
from declip.detect.ends import look_at_end

needs_ratings = pytest.mark.skipif(
    "DECLIP_DATA" not in os.environ, reason="needs the folder DECLIP_DATA"
)


def normal(seed=0, shape=(300, 20)):
    """Columns on scales of their own."""
    rng = np.random.default_rng(seed)
    return rng.normal(size=shape) * rng.uniform(0.1, 100, shape[1]) + rng.normal(0, 50, shape[1])


def n_proposed(limit, n_cols):
    if limit is None:
        return 0
    return n_cols if np.ndim(limit) == 0 else int(np.isfinite(limit).sum())


# Limits that are there.


def test_one_ceiling_of_all_columns_is_a_number():
    X = np.random.default_rng(0).normal(size=(200, 10))
    found = detect_limits(np.minimum(X, 0.8))
    assert found.ceiling == 0.8
    assert found.floor is None


def test_one_floor_of_all_columns_is_a_number():
    X = np.random.default_rng(0).normal(size=(200, 10))
    found = detect_limits(np.maximum(X, -0.8))
    assert found.floor == -0.8
    assert found.ceiling is None


@pytest.mark.parametrize("share", [0.6, 0.8, 0.9])
def test_limits_of_each_column_are_found_on_both_sides(share):
    X = normal()
    high, low = np.quantile(X, share, axis=0), np.quantile(X, 1 - share, axis=0)
    found = detect_limits(np.clip(X, low, high))
    assert_array_equal(found.ceiling, high)
    assert_array_equal(found.floor, low)


def test_columns_without_a_limit_have_none_beside_those_that_have_one():
    X = normal()
    high = np.quantile(X, 0.8, axis=0)
    high[::2] = np.inf
    assert_array_equal(detect_limits(np.minimum(X, high)).ceiling, high)


def test_a_limit_shared_by_columns_is_seen_in_columns_with_few_values_at_it():
    X = np.random.default_rng(0).normal(size=(60, 40))
    X[:, 20:] = 100 * X[:, 20:]  # these have no limit
    X[:, :20] = np.minimum(X[:, :20], 1.5)  # about four values a column
    found = detect_limits(X)
    assert_array_equal(found.ceiling[:20][(X[:, :20] == 1.5).any(axis=0)], 1.5)
    assert np.isposinf(found.ceiling[20:]).all()
    assert "shared" in found.at_ceiling.reason


def test_a_blurred_plateau_is_found_with_a_tolerance_alone():
    rng = np.random.default_rng(0)
    X = np.minimum(rng.normal(10, 2, (400, 3)), 12) + rng.uniform(-0.05, 0.05, (400, 3))
    assert detect_limits(X).ceiling is None
    found = detect_limits(X, tol=0.05)
    assert found.ceiling == pytest.approx(12, abs=0.01)
    cells = Intervals.from_table(X, ceiling=found.ceiling, tol=found.tol)
    assert cells.n_censored == pytest.approx((X > 11.95).sum(), abs=20)


@needs_ratings
@pytest.mark.parametrize(("fetch", "top"), [(fetch_filmtrust, 8), (fetch_movielens_100k, 5)])
def test_the_scale_of_ratings_is_found(fetch, top):
    found = detect_limits(fetch().to_sparse())
    assert (found.ceiling, found.floor) == (top, 1)


@pytest.mark.parametrize("ceiling", [6, 10, 14])
def test_the_ceiling_of_clipped_digits_is_found(ceiling):
    assert detect_limits(np.minimum(load_digits().data, ceiling)).ceiling == ceiling


def test_the_ceilings_of_digits_clipped_by_column_are_found():
    X = load_digits().data
    high = np.quantile(X, 0.8, axis=0, method="lower")
    limited = (high > 2) & (high < X.max(axis=0))  # four different values or more are left
    found = detect_limits(np.minimum(X, high)).ceiling
    assert_array_equal(found[limited], high[limited])


@pytest.mark.parametrize("load", [load_wine, load_breast_cancer])
@pytest.mark.parametrize("share", [0.6, 0.8])
def test_most_ceilings_of_real_columns_are_found(load, share):
    X = load().data
    high = np.quantile(X, share, axis=0, method="lower")
    found = detect_limits(np.minimum(X, high)).ceiling
    assert (found == high).mean() > 0.9  # heaped values can hide one


@pytest.mark.parametrize("levels", [5, 7, 10])
def test_a_survey_scale_is_found_though_nothing_piles_up(levels):
    rng = np.random.default_rng(0)
    X = np.clip(np.rint(rng.normal(0.6 * levels, levels / 4, (300, 8))), 1, levels)
    found = detect_limits(X)
    assert (found.ceiling, found.floor) == (levels, 1)


def test_what_it_proposes_can_be_passed_on():
    rng = np.random.default_rng(0)
    X = rng.normal(3, 1, (80, 2)) @ rng.normal(1, 0.3, (2, 20))
    X = np.minimum(X, np.quantile(X, 0.7, axis=0))
    found = detect_limits(X)
    model = FroCMC(2, ceiling=found.ceiling, floor=found.floor, random_state=0).fit(X)
    assert Intervals.from_table(X, found.ceiling, found.floor).n_censored == 24 * 20
    assert np.isfinite(model.objective_)


# Limits that are not there.

UNLIMITED = {
    "normal": lambda rng, shape: rng.normal(size=shape),
    "normal, rounded": lambda rng, shape: rng.normal(size=shape).round(1),
    "normal, whole sd": lambda rng, shape: rng.normal(size=shape).round(),
    "exponential": lambda rng, shape: rng.exponential(size=shape),
    "exponential, rounded": lambda rng, shape: rng.exponential(size=shape).round(1),
    "lognormal": lambda rng, shape: rng.lognormal(size=shape),
    "lognormal, rounded": lambda rng, shape: rng.lognormal(size=shape).round(1),
    "uniform": lambda rng, shape: rng.random(shape),
    "percentages": lambda rng, shape: rng.integers(0, 101, shape),
    "counts": lambda rng, shape: rng.poisson(0.5, shape),
    "larger counts": lambda rng, shape: rng.poisson(8, shape),
    "waiting times": lambda rng, shape: rng.geometric(0.3, shape),
    "Zipf": lambda rng, shape: rng.zipf(2.5, shape),
    "overdispersed counts": lambda rng, shape: rng.negative_binomial(0.3, 0.1, shape),
    "zero-inflated": lambda rng, shape: np.where(
        rng.random(shape) < 0.4, 0, rng.lognormal(size=shape)
    ),
    "heaped": lambda rng, shape: rng.normal(50, 15, shape).round() // 5 * 5,
    "two clusters": lambda rng, shape: rng.normal(size=shape) + 8 * (rng.random(shape) < 0.3),
    "binary": lambda rng, shape: rng.integers(0, 2, shape),
    "three values": lambda rng, shape: rng.integers(0, 3, shape),
    "constant": lambda rng, shape: np.ones(shape),
}


@pytest.mark.parametrize("name", UNLIMITED)
@pytest.mark.parametrize("n_rows", [30, 300])
def test_false_alarms_in_at_most_one_of_a_hundred_columns(name, n_rows):
    alarms = 0
    for seed in range(5):
        X = UNLIMITED[name](np.random.default_rng(seed), (n_rows, 100)).astype(float)
        found = detect_limits(X)
        alarms += n_proposed(found.ceiling, 100) + n_proposed(found.floor, 100)
    assert alarms <= 5


def test_no_alarm_in_ten_thousand_normal_columns():
    for seed in range(50):
        found = detect_limits(normal(seed, (100, 200)))
        assert found.ceiling is None
        assert found.floor is None


@pytest.mark.parametrize("tol", [0.01, 0.1, 0.3])
def test_no_alarm_in_normal_columns_with_a_tolerance(tol):
    for seed in range(5):
        found = detect_limits(np.random.default_rng(seed).normal(size=(300, 100)), tol=tol)
        assert n_proposed(found.ceiling, 100) + n_proposed(found.floor, 100) <= 1


def test_columns_of_few_values_do_not_make_a_limit_of_where_they_happen_to_end():
    rng = np.random.default_rng(0)
    X = rng.poisson(3, (4, 2000)).astype(float)
    assert detect_limits(X).ceiling is None


def test_a_pile_of_zeros_is_told_but_proposed_on_demand_alone():
    X = UNLIMITED["zero-inflated"](np.random.default_rng(0), (300, 5))
    found = detect_limits(X)
    assert found.floor is None
    assert_array_equal(found.at_floor.reason, ["natural zero"] * 5)
    assert "5 columns pile up where they begin" in str(found)
    assert detect_limits(X, zero=True).floor == 0


# What must not matter.


def test_the_floors_of_a_table_are_the_ceilings_of_its_negative():
    X = normal()
    X = np.clip(X, np.quantile(X, 0.2, axis=0), np.quantile(X, 0.9, axis=0))
    found, negated = detect_limits(X), detect_limits(-X)
    assert_array_equal(found.ceiling, -negated.floor)
    assert_array_equal(found.floor, -negated.ceiling)


def test_the_unit_does_not_matter():
    X = np.minimum(normal(), 10)
    assert_array_equal(detect_limits(1024 * X).ceiling, 1024 * detect_limits(X).ceiling)


def test_every_kind_of_table_gives_the_same():
    X = normal()
    X = np.minimum(X, np.quantile(X, 0.8, axis=0))
    X[np.random.default_rng(1).random(X.shape) < 0.2] = np.nan
    rows, cols = np.nonzero(~np.isnan(X))
    tables = [
        pd.DataFrame(X),
        pl.DataFrame(X).fill_nan(None),
        sparse.csr_array((X[rows, cols], (rows, cols)), shape=X.shape),
        Intervals.from_table(X),
    ]
    for table in tables:
        assert_array_equal(detect_limits(table).ceiling, detect_limits(X).ceiling)


def test_empty_columns_and_single_rows_show_nothing():
    X = np.full((50, 3), np.nan)
    X[:, 0] = np.minimum(np.random.default_rng(0).normal(size=50), 0.5)
    assert_array_equal(np.isnan(detect_limits(X).at_ceiling.end), [False, True, True])
    one = detect_limits(np.array([[1.0, 2.0, 3.0]]))
    assert one.ceiling is None
    assert one.floor is None


def test_the_input_is_left_as_it_was():
    X = np.minimum(normal(), 10)
    before = X.copy()
    detect_limits(X)
    assert_array_equal(X, before)


# The evidence.


def test_the_evidence_counts_the_values_at_the_end():
    X = normal()
    X = np.minimum(X, np.quantile(X, 0.8, axis=0))
    at = detect_limits(X).at_ceiling
    assert_array_equal(at.count, (X == X.max(axis=0)).sum(axis=0))
    assert_array_equal(at.observed, np.full(20, 300))
    assert (at.expected < 5).all()
    assert (at.p_value < 1e-6).all()


@pytest.mark.parametrize(("backend", "kind"), [("pandas", pd.DataFrame), ("polars", pl.DataFrame)])
def test_the_evidence_is_a_frame_of_two_rows_for_each_column(backend, kind):
    frame = pd.DataFrame(np.minimum(normal(), 5)).rename(columns=lambda j: f"c{j}")
    found = detect_limits(frame).to_frame(backend)
    assert isinstance(found, kind)
    assert found.shape == (40, 9)
    assert list(found["column"])[:2] == ["c0", "c1"]


def test_what_is_printed_names_columns_and_counts():
    X = normal(shape=(200, 3))
    X[:, 1] = np.minimum(X[:, 1], np.quantile(X[:, 1], 0.75, method="lower"))
    text = str(detect_limits(pd.DataFrame(X, columns=["a", "b", "c"])))
    assert "ceiling: found in 1 of 3 columns" in text
    assert "column 'b'" in text
    assert "51 of 200 values lie" in text
    assert "Nothing was applied" in text


def test_a_geometric_decline_from_the_end_is_no_pile():
    # Counts 512, 256, ... from the end on: the end has the most, and no more than expected.
    values = np.repeat(-np.arange(9.0), 2 ** np.arange(9, 0, -1))
    end = look_at_end(values)
    assert end.expected > 0.95 * 512
    assert end.p_piled > 0.3


@pytest.mark.parametrize("wrong", [{"tol": -1.0}, {"level": 0.0}, {"level": 1.0}])
def test_settings_out_of_range_are_refused(wrong):
    with pytest.raises(ValueError, match=next(iter(wrong))):
        detect_limits(normal(), **wrong)
