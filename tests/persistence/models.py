"""Small fitted models, what they answer, and whether two of them are the same to the last bit."""

import warnings
from functools import cache

import numpy as np
import pandas as pd

import declip
from declip import BayesCMC, DTrCMC, ExactCMC, FroCMC, TrCMC
from declip.persistence import encode

CEILING = 1.0
_rng = np.random.default_rng(0)
_whole = _rng.standard_normal((24, 2)) @ _rng.standard_normal((2, 6))
TABLE = np.minimum(_whole + 0.05 * _rng.standard_normal(_whole.shape), CEILING)
TABLE[_rng.random(TABLE.shape) < 0.1] = np.nan
FRAME = pd.DataFrame(TABLE, columns=list("abcdef"), index=[f"sample {i}" for i in range(24)])

_SHORT = {"n_samples": 12, "burn_in": 6, "random_state": 0}
UNFITTED = {
    "FroCMC": FroCMC(2, ceiling=CEILING, random_state=0),
    "FroCMC with offsets, tobit": FroCMC(
        2, ceiling=CEILING, clipped="tobit", bias=True, alpha_bias=0.3, random_state=0
    ),
    "TrCMC": TrCMC(0.5, ceiling=CEILING),
    "TrCMC factored, tobit": TrCMC(0.5, ceiling=CEILING, solver="factored", clipped="tobit"),
    "DTrCMC": DTrCMC(ceiling=CEILING, max_iter=40),
    "ExactCMC": ExactCMC(ceiling=CEILING, tol=1e-3),
    "BayesCMC": BayesCMC(2, ceiling=CEILING, **_SHORT),
    "BayesCMC for ratings": BayesCMC(2, ceiling=CEILING, noise="row+column", df=4, **_SHORT),
}
_PLAIN = ("FroCMC", "TrCMC", "DTrCMC", "ExactCMC", "BayesCMC")
ESTIMATORS = {name: UNFITTED[name] for name in _PLAIN}


@cache
def fitted(name):
    """Return one of the models, fitted; not to be written to."""
    from sklearn.base import clone

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return clone(UNFITTED[name]).fit(FRAME)


@cache
def restoration():
    """Return a restoration of the frame by a fixed method."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return declip.restore(FRAME, ceiling=CEILING, method="tobit", n_components=2, alpha=0.3)


def answers(model):
    """Return what a model says of cells, of the table and of new rows."""
    if isinstance(model, declip.Restoration):
        return {"cells": model.predict([0, 5], [1, 2]), "table": model.table.to_numpy()}
    found = {
        "cells": model.predict([0, 5, 23], [1, 2, 5]),
        "matrix": model.reconstruct(),
        "new rows": model.transform(FRAME.iloc[::-1]),
        "score": np.array(model.score(FRAME)),
    }
    if isinstance(model, BayesCMC):
        found["interval"] = np.array(model.predict_interval([0, 5], [1, 2]))
        found["deviation"] = model.predict([0, 5], [1, 2], return_std=True)[1]
        found["tables"] = model.sample(2, random_state=0)
    return found


def same(one, other):
    """Tell whether two objects have the same parameters and fitted state, bit by bit."""
    (content, arrays), (content2, arrays2) = encode(one), encode(other)
    return (
        content == content2
        and arrays.keys() == arrays2.keys()
        and all(
            (a.dtype, a.shape, a.tobytes("A"))
            == (arrays2[name].dtype, arrays2[name].shape, arrays2[name].tobytes("A"))
            for name, a in arrays.items()
        )
    )
