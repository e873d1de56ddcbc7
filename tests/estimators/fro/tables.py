"""Tables under limits of every kind, and the estimator that is fitted to them."""

import numpy as np
import pytest

from declip import FroCMC

MODES = ["hinge", "tobit", "value", "missing"]
ESTIMATORS = [FroCMC(n_components=2, random_state=0, scale="none")]

each_mode = pytest.mark.parametrize("clipped", MODES)
each_bias = pytest.mark.parametrize("bias", [False, True], ids=["plain", "bias"])
each_estimator = pytest.mark.parametrize(
    "estimator", ESTIMATORS, ids=lambda estimator: type(estimator).__name__
)

# A sum of n products is off by at most n eps times the sum of their sizes; the tables here have
# n < 50 and entries up to 10, so that numbers computed in another order agree to well within this.
ROUNDING = 1e-12


def low_rank(shape=(24, 14), rank=2, seed=0):
    rng = np.random.default_rng(seed)
    P, Q = (0.7 + rng.standard_normal((n, rank)) for n in shape)
    return P @ Q.T


TRUTH = low_rank()
_rng = np.random.default_rng(1)
SEEN = _rng.random(TRUTH.shape) < 0.9
HIGH, LOW = np.quantile(TRUTH, [0.8, 0.15])
LIMITS = {
    "ceiling": {"ceiling": HIGH},
    "floor": {"floor": LOW},
    "both": {"ceiling": HIGH, "floor": LOW},
    "per column": {"ceiling": np.quantile(TRUTH, 0.8, axis=0)},
    "per row": {"ceiling": np.quantile(TRUTH, 0.8, axis=1)[:, np.newaxis]},
    "per cell": {
        "ceiling": np.where(_rng.random(TRUTH.shape) < 0.2, TRUTH - 0.3, np.inf),
        "floor": np.where(_rng.random(TRUTH.shape) < 0.1, TRUTH - 0.5, -np.inf),
    },
}
LIMITS["per cell"]["floor"][5] = TRUTH[5] - 0.4
each_limit = pytest.mark.parametrize("limits", LIMITS.values(), ids=LIMITS)


def clip(truth, ceiling=np.inf, floor=-np.inf):
    return np.clip(truth, floor, ceiling)


def seen_part(truth=TRUTH, **limits):
    """Return the table that is left of a truth: clipped, and NaN where unobserved."""
    return np.where(SEEN, clip(truth, **limits), np.nan)


def at_limits(X, ceiling=np.inf, floor=-np.inf):
    """Return masks of the cells at their ceiling, at their floor, and of the exact ones."""
    above, below = np.broadcast_to(ceiling, X.shape), np.broadcast_to(floor, X.shape)
    return above == X, below == X, (below < X) & (above > X)


X = seen_part(ceiling=HIGH)


def fro(n_components=2, **params):
    return FroCMC(n_components, **{"random_state": 0, "ceiling": HIGH, **params}, scale="none")


def sweeps(number):
    """Parameters of a fit that stops after so many sweeps, or when nothing changes any more."""
    return {"max_iter": number, "tol": 0.0}
