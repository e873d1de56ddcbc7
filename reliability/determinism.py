"""The same seed gives the same bits: again, in other processes, with any number of threads."""

import json
import sys
from concurrent.futures import ThreadPoolExecutor

import numpy as np
from sklearn.base import clone
from tests.persistence.models import FRAME, TABLE, UNFITTED, answers, fitted

from declip.persistence import fingerprint
from reliability.children import asked

_BLAS = ("1", "2")
_JOBS = (1, 8)


def marks(n_jobs=None, repeats=1):
    """Return fingerprints of the fitted state and of the answers of each model."""
    found = {}
    for name, model in UNFITTED.items():
        for i in range(repeats):
            fit = clone(model).set_params(n_jobs=n_jobs).fit(FRAME)
            told = answers(fit)
            found[f"{name}, {i}"] = fingerprint([fit.set_params(n_jobs=None), told])
    return found


def repeats(count):
    """Fit every model so many times, and count the different results."""
    found = marks(repeats=count)
    return {name: len({found[f"{name}, {i}"] for i in range(count)}) for name in UNFITTED}


def processes_and_threads():
    """Fit every model in processes with other hash seeds and numbers of threads."""
    here = marks()
    others = [
        asked("reliability.determinism", jobs, OPENBLAS_NUM_THREADS=blas, PYTHONHASHSEED=str(seed))
        for seed, (blas, jobs) in enumerate((b, j) for b in _BLAS for j in _JOBS)
    ]
    return {
        "processes": len(others),
        "threads of declip": list(_JOBS),
        "threads of BLAS": [int(b) for b in _BLAS],
        "models": len(here),
        "differences": sum(o is None or o[name] != here[name] for o in others for name in here),
    }


def shared(count, workers=8):
    """Let threads share a fitted model, and count the transforms that differ from serial ones."""
    rng = np.random.default_rng(0)
    tables = [TABLE[rng.permutation(len(TABLE))[: rng.integers(1, 24)]] for _ in range(16)]
    found = {}
    for name in UNFITTED:
        model = fitted(name)
        expected = [model.transform(table) for table in tables]
        here = count if name == "FroCMC" else count // 10

        def differs(i, model=model, expected=expected):
            return not np.array_equal(model.transform(tables[i % 16]), expected[i % 16])

        with ThreadPoolExecutor(workers) as pool:
            wrong = sum(pool.map(differs, range(here)))
        found[name] = {"transforms": here, "differences": wrong}
    return found


if __name__ == "__main__":
    print(json.dumps(marks(int(sys.argv[1]))))
