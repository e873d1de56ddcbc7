"""A good table, ways to spoil it, and the estimators that must say so."""

import re

import numpy as np
import pandas as pd
import pytest
from tests.callbacks import Callback
from tests.estimators.names import name_of

from declip import DTrCMC, ExactCMC, FroCMC, TrCMC

NAN, INF = np.nan, np.inf
CEILING = 4.0
FACTORS = [FroCMC(n_components=2, ceiling=CEILING, random_state=0)]
ESTIMATORS = [
    *FACTORS,
    TrCMC(ceiling=CEILING, tol=1e-3),
    TrCMC(ceiling=CEILING, tol=1e-3, solver="factored"),
    ExactCMC(ceiling=CEILING, tol=1e-2),
    DTrCMC(ceiling=CEILING, max_iter=200, tol=1.0),  # counts as settled, and is silent
]


each_estimator = pytest.mark.parametrize("estimator", ESTIMATORS, ids=name_of)
each_with_factors = pytest.mark.parametrize("estimator", FACTORS, ids=name_of)
each_reader = pytest.mark.parametrize("method", ["transform", "predict", "score"])

_rng = np.random.default_rng(0)
X = np.minimum((1 + _rng.standard_normal((12, 2))) @ (1 + _rng.standard_normal((2, 6))), CEILING)
FRAME = pd.DataFrame(X, columns=list("abcdef"), index=[f"s{i}" for i in range(12)])


def changed(row, col, value):
    table = X.astype(type(value) if isinstance(value, complex) else float)
    table[row, col] = value
    return table


def objects(row, col, value):
    table = X.astype(object)
    table[row, col] = value
    return table


def refuses(error, *fragments):
    """Expect an error whose message holds all these fragments, in this order."""
    return pytest.raises(error, match="(?s)" + ".*".join(re.escape(f) for f in fragments))


class Interrupting(Callback):
    """A callback that raises after some sweeps."""

    def __init__(self, error, after=2):
        self.error, self.left = error, after

    def on_fit_task_end(self, estimator, context):
        self.left -= 1
        if self.left == 0:
            raise self.error
