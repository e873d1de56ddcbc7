"""Clipped tables of low rank, and an estimator whose answer is known."""

import warnings

import numpy as np
import pytest
from sklearn.base import BaseEstimator

from declip import EntryKFold, EntryShuffleSplit, Intervals

SPLITTERS = [
    pytest.param(EntryKFold(4, random_state=0), id="folds"),
    pytest.param(EntryShuffleSplit(3, test_size=0.3, random_state=0), id="shuffles"),
]


def low_rank(seed=0, shape=(40, 30), rank=3, noise=0.0):
    rng = np.random.default_rng(seed)
    P, Q = rng.normal(1, 0.5, (shape[0], rank)), rng.normal(1, 0.5, (shape[1], rank))
    return P @ Q.T + noise * rng.standard_normal(shape)


def clipped_table(seed=0, ceiling=4.0, missing=0.2, **kwargs):
    X = np.minimum(low_rank(seed, **kwargs), ceiling)
    X[np.random.default_rng(seed + 1).random(X.shape) < missing] = np.nan
    return X


def clipped_cells(seed=0, ceiling=4.0, **kwargs):
    return Intervals.from_table(clipped_table(seed, ceiling, **kwargs), ceiling=ceiling)


def sparse_cells(seed, shape, share, clipped):
    """A table with few cells a row, of which a share is clipped."""
    rng = np.random.default_rng(seed)
    X = np.where(rng.random(shape) < share, rng.random(shape), np.nan)
    X[rng.random(shape) < clipped] *= 0
    X[np.unravel_index(rng.integers(X.size), shape)] = 0.5
    return Intervals.from_table(np.where(X == 0, 1.0, X), ceiling=1.0)


def few_warnings():
    warnings.simplefilter("ignore", UserWarning)


class Constant(BaseEstimator):
    """Predicts one number."""

    def __init__(self, level=0.0):
        self.level = level

    def fit(self, X, y=None):
        self.n_cells_ = len(X)
        return self

    def predict(self, rows, cols):
        return np.full(len(rows), self.level)
