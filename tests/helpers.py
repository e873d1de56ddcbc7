"""Random tables and models that tests of several modules begin with.

What is computed a second time, as an oracle, is in `tests.twin`; calls with plain numbers are in
`tests.plain`.
"""

import numpy as np
from tests.twin import cell_loss, random_bounds

from declip import Intervals
from declip.lowrank import LowRank


def low_rank(seed, shape, rank=2, *, noise=0.0, centre=0.0):
    """Return P Q + noise, with the entries of P and Q normal about a centre.

    ``seed`` may be a generator, which then goes on.
    """
    rng = np.random.default_rng(seed)
    P, Q = (centre + rng.standard_normal(part) for part in ((shape[0], rank), (rank, shape[1])))
    return P @ Q + noise * rng.standard_normal(shape) if noise else P @ Q


def random_intervals(seed, shape):
    """Return cells of all kinds."""
    return Intervals.from_bounds(*random_bounds(np.random.default_rng(seed), shape))


def random_model(seed, shape, k, *, bias=False, mean=0.0, size=1.0):
    """Return normal factors, with offsets if there is a bias."""
    rng = np.random.default_rng(seed)
    A, B = (size * rng.standard_normal((n, k + bias)) for n in shape)
    return LowRank(A, B, mean, bias)


def cell_losses(intervals, X, scale=0.0):
    """Return the loss of every observed cell, by NumPy."""
    lower, upper = intervals.to_bounds()
    seen = ~np.isnan(lower)
    return cell_loss(X[seen], lower[seen], upper[seen], scale)[0]
