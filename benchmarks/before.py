"""The same fits by this version and by another one, in turn: is it slower than it was?

``python -m benchmarks.before PYTHON`` takes the Python of an environment in which the other
version is installed, and prints CPU seconds on one thread (the least of some rounds) and their
ratio. ``restore`` and the trace norm have had other algorithms since: their ratio tells of these.
"""

from __future__ import annotations

import argparse
import inspect
import json
import os
import subprocess
import sys
import time
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

THREADS = {f"{name}_NUM_THREADS": "1" for name in ("OMP", "OPENBLAS", "MKL")}


def table(n: int, m: int, rank: int, observed: float = 1.0) -> tuple[np.ndarray, float]:
    """Return a table of low rank with noise, clipped at its upper fifth, and the ceiling."""
    rng = np.random.default_rng(0)
    truth = rng.normal(size=(n, rank)) @ rng.normal(size=(rank, m)) + rng.normal(size=(n, m))
    ceiling = float(np.quantile(truth, 0.8))
    seen = rng.random((n, m)) < observed
    return np.where(seen, np.minimum(truth, ceiling), np.nan), ceiling


def plain(make: Callable[..., Any], **settings: Any) -> Any:
    """Return an estimator for the values as they are, also where there is no other choice."""
    choice = {"scale": "none"} if "scale" in inspect.signature(make).parameters else {}
    return make(**settings, **choice)


def fits() -> dict[str, Callable[[], object]]:
    from declip import BayesCMC, FroCMC, TrCMC, restore

    ratings, top = table(2000, 1000, 5, observed=0.1)
    panel, most = table(300, 20, 3, observed=0.9)
    square, highest = table(400, 300, 5, observed=0.5)
    sweeps = {"n_components": 20, "alpha": 1.0, "max_iter": 10, "tol": 0.0, "random_state": 0}

    def fro(**more: Any) -> Callable[[], object]:
        return lambda: plain(FroCMC, ceiling=top, n_jobs=1, **sweeps, **more).fit(ratings)

    return {
        "FroCMC, 10 sweeps": fro(),
        "FroCMC, Tobit, 10 sweeps": fro(clipped="tobit"),
        "FroCMC, offsets, 10 sweeps": fro(bias=True),
        "TrCMC": lambda: plain(TrCMC, alpha=30.0, ceiling=highest, n_jobs=1).fit(square),
        "BayesCMC": lambda: BayesCMC(5, ceiling=most, n_jobs=1, random_state=0).fit(panel),
        "restore": lambda: restore(panel, ceiling=most, n_jobs=1),
    }


def measured() -> dict[str, float]:
    """Return the CPU seconds of each fit, after one that is not counted."""
    warnings.simplefilter("ignore")
    found, some = {}, fits()
    some["BayesCMC"]()
    for name, fit in some.items():
        began = time.process_time()
        fit()
        found[name] = time.process_time() - began
    return found


def measured_by(python: str) -> dict[str, float]:
    command = [python, __file__, "--measure"]
    done = subprocess.run(command, env=os.environ | THREADS, capture_output=True, check=True)
    return json.loads(done.stdout)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("python", nargs="?", help="of the environment with the other version")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--measure", action="store_true", help="this version, once, as JSON")
    args = parser.parse_args()
    if args.measure:
        print(json.dumps(measured()))
        return
    rounds = [
        [measured_by(python) for python in (args.python, sys.executable)]
        for _ in range(args.rounds)
    ]
    print("| fit | before, CPU s | now | ratio |\n|---|---|---|---|")
    for name in rounds[0][0]:
        before, now = (min(pair[k][name] for pair in rounds) for k in (0, 1))
        print(f"| {name} | {before:.3f} | {now:.3f} | {now / before:.2f} |")


if __name__ == "__main__":
    main()
