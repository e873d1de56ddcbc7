"""How methods are weighed by the likelihood of cells."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from declip import Intervals
from declip.restoration.candidates import methods_to_weigh
from declip.restoration.choose import _mixture_weights
from declip.restoration.settings import Settings


@pytest.mark.parametrize("worst", [np.nan, -np.inf])
def test_a_method_that_makes_cells_impossible_leaves_them_to_the_others(worst):
    likelihoods = np.log(np.full((2, 200), 0.5))
    likelihoods[1] = worst
    weights = _mixture_weights(likelihoods)
    assert weights[0] > 0.95
    assert_allclose(weights.sum(), 1)


def test_where_no_method_has_a_number_all_count_the_same():
    assert_allclose(_mixture_weights(np.full((3, 20), np.nan)), 1 / 3)


@pytest.mark.parametrize(
    ("shape", "effort", "weighed"),
    [
        ((100, 4), 1.0, True),
        ((99, 4), 1.0, False),  # fewer than 20 rows for each of five classes
        ((100, 30), 1.0, True),
        ((100, 31), 1.0, False),
        ((25_000, 4), 1.0, True),
        ((25_001, 4), 1.0, False),  # more than 100,000 cells
        ((100, 4), "quick", False),
        ((100, 4), "thorough", True),
    ],
)
def test_classes_are_weighed_where_there_are_rows_to_tell_them(shape, effort, weighed):
    cells = Intervals.from_table(np.random.default_rng(0).normal(size=shape))
    assert ("classes" in methods_to_weigh(cells, Settings(effort=effort))) == weighed
