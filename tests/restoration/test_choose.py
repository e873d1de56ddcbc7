"""How methods are weighed by the likelihood of cells."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from declip.restoration.choose import _mixture_weights


@pytest.mark.parametrize("worst", [np.nan, -np.inf])
def test_a_method_that_makes_cells_impossible_leaves_them_to_the_others(worst):
    likelihoods = np.log(np.full((2, 200), 0.5))
    likelihoods[1] = worst
    weights = _mixture_weights(likelihoods)
    assert weights[0] > 0.95
    assert_allclose(weights.sum(), 1)


def test_where_no_method_has_a_number_all_count_the_same():
    assert_allclose(_mixture_weights(np.full((3, 20), np.nan)), 1 / 3)
