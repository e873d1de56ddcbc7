"""A clipped table, and the three convex estimators."""

import warnings

import numpy as np
import pytest

from declip import DTrCMC, ExactCMC, Intervals, TrCMC

each_solver = pytest.mark.parametrize("solver", ["splitting", "proximal", "factored"])
each_convex = pytest.mark.parametrize(
    "estimator",
    [
        TrCMC(0.5, scale="none"),
        TrCMC(0.5, solver="proximal", scale="none"),
        TrCMC(0.5, solver="factored", scale="none"),
        ExactCMC(),
        DTrCMC(0.2, 0.1, max_iter=150, scale="none"),
        DTrCMC(0.2, 0.1, max_iter=150, solver="subgradient", scale="none"),
    ],
    ids=["TrCMC", "TrCMC proximal", "TrCMC factored", "ExactCMC", "DTrCMC", "DTrCMC subgradient"],
)
each_mode = pytest.mark.parametrize("clipped", ["hinge", "value", "missing"])

CEILING = 2.0


def low_rank(shape=(20, 12), rank=2, noise=0.0, seed=0):
    rng = np.random.default_rng(seed)
    P, Q = (0.7 + rng.standard_normal((n, rank)) for n in shape)
    return P @ Q.T + noise * rng.standard_normal(shape)


TRUTH = low_rank(noise=0.05)
SEEN = np.random.default_rng(1).random(TRUTH.shape) < 0.9
X = np.where(SEEN, np.minimum(TRUTH, CEILING), np.nan)
CELLS = Intervals.from_table(X, ceiling=CEILING)


def quiet(fit, *args):
    """Fit without a word about steps that were too few."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return fit(*args)
