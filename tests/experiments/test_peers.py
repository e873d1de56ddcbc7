"""The methods that `restore` is measured beside do what their papers say."""

import sys
from pathlib import Path

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).parents[2] / "experiments"))

from peers import LIKELIHOODS, SIMPLE, Censored, by_likelihood


@pytest.fixture(scope="module")
def table():
    rng = np.random.default_rng(0)
    truth = 10 + rng.normal(size=(200, 2)) @ rng.normal(size=(2, 4)) + rng.normal(size=(200, 4))
    floor = np.quantile(truth, 0.3, axis=0)
    below = truth <= floor
    upper = np.where(below, floor, truth)
    return truth, Censored(
        np.where(below, -np.inf, truth), upper, np.where(below, floor / 2, truth)
    )


@pytest.mark.parametrize("method", SIMPLE)
def test_exact_cells_stay_and_all_are_finite(method, table):
    _, censored = table
    found = SIMPLE[method](censored, np.random.default_rng(0))
    assert np.isfinite(found).all()
    assert (found == censored.lower)[censored.exact].all()


@pytest.mark.parametrize("method", ["ROS", "QRILC"])
def test_the_mean_of_a_normal_column_comes_back(method, table):
    truth, censored = table
    found = SIMPLE[method](censored, np.random.default_rng(0))
    # the standard error of a mean of 200 is .07 of a deviation
    assert np.abs((found.mean(axis=0) - truth.mean(axis=0)) / truth.std(axis=0)).max() < 0.14


@pytest.mark.parametrize("method", LIKELIHOODS)
def test_a_likelihood_gives_values_and_bands_below_the_floor(method, table):
    truth, censored = table
    found, low, high = by_likelihood(method, censored, 0.9)
    at = ~censored.exact
    assert ((low <= found) & (found <= high))[at].all()
    assert 0.85 < ((low <= truth) & (truth <= high))[at].mean() < 0.95


@pytest.mark.parametrize("method", LIKELIHOODS)
def test_a_likelihood_does_not_depend_on_the_units_of_columns(method, table):
    _, censored = table
    unit = np.array([1.0, 1e-3, 50.0, 1e4])
    other = Censored(*(unit * x + 7 for x in (censored.lower, censored.upper, censored.half)))
    for here, there in zip(
        by_likelihood(method, censored, 0.9), by_likelihood(method, other, 0.9), strict=True
    ):
        np.testing.assert_allclose(unit * here + 7, there, rtol=1e-6, atol=1e-6)
