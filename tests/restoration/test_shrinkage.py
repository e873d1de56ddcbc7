"""What hidden cells say of the shrinkage: recovered where it is known."""

import numpy as np
from numpy.testing import assert_allclose

from declip.restoration.predictive import CensoredMixture
from declip.restoration.shrinkage import HiddenCells, TailShrinkage

N_COLS = 3


def hidden(log_c, n=3000, seed=0, censored_beyond=np.inf):
    """Cells of three columns that are drawn in by c beyond a ceiling of 0.5."""
    rng = np.random.default_rng(seed)
    cols = rng.integers(N_COLS, size=n)
    y = rng.normal(size=4 * n)
    y = y[y > 0.5][:n]
    cols = cols[: len(y)]
    value = 0.5 + (y - 0.5) / np.exp(log_c)
    centre, spread = np.zeros((1, len(y))), np.ones((1, len(y)))
    lower, upper = np.full(len(y), 0.5), np.full(len(y), np.inf)
    reach = np.full((2, len(y)), -np.inf)
    mixture = CensoredMixture.of(lower, upper, reach, centre, spread)
    censored = value > censored_beyond
    value = np.minimum(value, censored_beyond)
    return HiddenCells(N_COLS + cols, mixture, value, censored)


def test_the_shrinkage_of_simulated_cells_is_recovered():
    for log_c in (-0.3, 0.0, 0.5):
        found = TailShrinkage.of([hidden(log_c)], N_COLS)
        # 1,000 cells a column: the standard error of log c is about 1 / sqrt(1000)
        assert_allclose(found.mean[N_COLS:], log_c, atol=0.1)
        assert (found.sd[N_COLS:] < 0.1).all()


def test_cells_known_by_a_bound_count_as_such():
    found = TailShrinkage.of([hidden(0.4, censored_beyond=0.9)], N_COLS)
    assert_allclose(found.mean[N_COLS:], 0.4, atol=0.12)


def test_without_evidence_the_shrinkage_is_none_and_uncertain():
    found = TailShrinkage.of([hidden(0.4)], N_COLS)
    assert_allclose(found.mean[:N_COLS], 0, atol=0.02)  # no floor was hidden
    assert (found.sd[:N_COLS] > 0.5).all()


def test_values_are_drawn_in_at_least_as_the_nearest_cells_ask():
    cells = hidden(0.0)
    found = TailShrinkage.of([cells, hidden(0.8, seed=1)], N_COLS)
    law = found.for_values(cells.mixture, cells.group)
    assert (law.log_shrinkage >= 0.7).all()
