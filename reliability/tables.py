"""Random tables through `restore` and every estimator: an answer or a clear error, in time."""

import sys
import warnings
from collections import Counter

import numpy as np

import declip
from declip import BayesCMC, DTrCMC, ExactCMC, FroCMC, Intervals, TrCMC
from reliability.children import limit_memory, supervised

_ODD = (0.0, -0.0, np.inf, -np.inf, np.nan, 1.0, -1.0, 1e-300, 1e150, -1e150, 1e12, 5e-324)
_CLEAR = (ValueError, ArithmeticError, MemoryError)
METHODS = (
    "auto",
    "bayes",
    "normal",
    "tobit",
    "tobit+bias",
    "hinge",
    "hinge+bias",
    "trace",
    "column",
)
ESTIMATORS = {
    "FroCMC": lambda rng: FroCMC(
        int(rng.integers(1, 5)),
        alpha=float(rng.choice([0.0, 1e-6, 0.1, 10.0, 1e6])),
        clipped=str(rng.choice(["hinge", "tobit", "value", "missing"])),
        bias=bool(rng.random() < 0.5),
        max_iter=30,
        random_state=0,
    ),
    "TrCMC": lambda rng: TrCMC(
        float(rng.choice([1e-3, 0.1, 10.0])),
        clipped=str(rng.choice(["hinge", "tobit"])),
        max_iter=30,
    ),
    "DTrCMC": lambda rng: DTrCMC(max_iter=30),
    "ExactCMC": lambda rng: ExactCMC(tol=1e-2, max_iter=30),
    "BayesCMC": lambda rng: BayesCMC(
        int(rng.integers(1, 4)),
        n_samples=6,
        burn_in=4,
        noise=str(rng.choice(["column", "row+column"])),
        df=rng.choice([None, 4.0]),
        random_state=0,
    ),
}
NAMES = ["restore", *ESTIMATORS]


def random_tables(count, resume=False):
    """Put so many tables through `restore` and the estimators, and return what came of them."""
    each = -(-count // len(NAMES))
    totals = sum(
        (supervised("reliability.tables", name, each, resume=resume) for name in NAMES), Counter()
    )
    return {
        "tables": sum(totals.values()),
        "restored": totals["done"],
        "refused by a clear error": totals["refused"],
        "other exceptions": totals["other"],
        "answers that are not finite": totals["different"],
        "crashes": totals["crash"],
        "hangs": totals["hang"],
    }


def random_table(rng):
    """Return a table with its ceiling and floor, or an Intervals: zeros, ties and infinities."""
    shape = tuple(int(n) for n in rng.integers(1, 14, 2))
    size = 10.0 ** rng.uniform(-3, 3)
    X = size * np.exp(rng.normal(size=shape)) * (1 if rng.random() < 0.6 else -1)
    X = np.round(X / size, int(rng.integers(0, 3))) * size if rng.random() < 0.5 else X
    X[rng.random(shape) < rng.choice([0.0, 0.2, 0.8])] = 0.0
    X[rng.random(shape) < rng.choice([0.0, 0.3])] = np.nan
    limits = {side: _limit(rng, X, side) for side in ("ceiling", "floor")}
    if rng.random() < 0.3:
        X.flat[rng.integers(X.size)] = rng.choice(_ODD)
    if rng.random() < 0.3:
        low, high = np.sort([X, X + size * rng.exponential(size=shape)], axis=0)
        low[rng.random(shape) < 0.2], high[rng.random(shape) < 0.2] = -np.inf, np.inf
        gone = np.isnan(X)
        low[gone] = high[gone] = np.nan
        return Intervals.from_bounds(low, high), {}
    return X, limits


def _limit(rng, X, side):
    """Return a limit of one of many forms that cuts the table there, or one of odd numbers."""
    kind = rng.integers(5)
    if kind == 0 or np.isnan(X).all():
        return None
    at = float(np.nanquantile(X, rng.uniform(0.5, 1) if side == "ceiling" else rng.uniform(0, 0.5)))
    limit = {1: at, 2: np.full(X.shape[1], at), 3: np.full((len(X), 1), at)}.get(int(kind))
    if limit is None:
        limit = np.where(rng.random(X.shape) < 0.3, rng.choice(_ODD), at)
    bound = np.minimum if side == "ceiling" else np.maximum
    with np.errstate(invalid="ignore"):
        X[...] = np.where(np.isnan(limit), X, bound(X, limit))
    return limit


def outcome(name, rng):
    """Return what becomes of one table."""
    try:
        X, limits = random_table(rng)
        answer = _answer(name, X, limits, rng)
    except _CLEAR as error:
        return "refused" if str(error) else f"other: {error!r}"
    except Exception as error:
        return f"other: {error!r}"
    return "done" if answer else "different"


def _answer(name, X, limits, rng):
    if name == "restore":
        found = declip.restore(X, **limits, **_settings(rng), progress=False)
        table = np.asarray(found.table)
        return bool(np.isfinite(table[found.flags != "undetermined"]).all())
    model = ESTIMATORS[name](rng)
    if isinstance(X, Intervals):
        return bool(np.isfinite(model.fit(X).reconstruct()).all())
    found = model.set_params(**limits).fit_transform(X)
    empty = np.isnan(X).all(axis=0)
    return bool(np.isfinite(found[:, ~empty]).all())


def _settings(rng):
    """Return settings of `restore`; most name rank and penalty, which saves the time of tuning."""
    chosen = {"n_components": int(rng.integers(1, 4)), "alpha": float(rng.choice([1e-3, 1.0, 1e3]))}
    return {
        "method": str(rng.choice(METHODS)),
        "log": bool(rng.random() < 0.4),
        "fill": str(rng.choice(["determined", "all"])),
        "between": [None, (0, None), (-1e3, 1e3)][rng.integers(3)] if rng.random() < 0.2 else None,
        "effort": 0.05,
        **(chosen if rng.random() < 0.95 else {}),
    }


def main(name, start, stop):
    """Run some tables, and print what came of each."""
    limit_memory()
    warnings.simplefilter("ignore")
    np.seterr(all="ignore")
    for i in range(start, stop):
        print(i, outcome(name, np.random.default_rng((NAMES.index(name), i))), flush=True)


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))
