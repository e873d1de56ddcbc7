"""Are plain fits as quick and as they were? Two source folders of declip, in alternate rounds.

    python experiments/plain_fits.py old/src src --rounds 8

Each round is a process of its own that fits tables of three shapes by `FroCMC` and `BayesCMC`, some
sweeps each, with one thread. Printed are the least CPU seconds of all rounds, the ratio, and
whether both give the same numbers to the last bit. Both folders need their compiled kernels.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import subprocess
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

SHAPES = {"400 x 30": (400, 30, 1.0), "2000 x 60": (2000, 60, 0.5), "943 x 1682": (943, 1682, 0.06)}
REPEATS = 3


def table(n: int, m: int, share: float) -> Any:
    """Return a table of rank 5 with a ceiling, of which a share of the cells is observed."""
    from declip import Intervals

    rng = np.random.default_rng(0)
    X = rng.standard_normal((n, 5)) @ rng.standard_normal((5, m))
    X = np.minimum(X + 0.3 * rng.standard_normal(X.shape), 1.5)
    return Intervals.from_table(np.where(rng.random(X.shape) < share, X, np.nan), ceiling=1.5)


def fits() -> Iterator[tuple[str, Callable[[Any], Any]]]:
    """Yield the fits by name."""
    from declip import BayesCMC, FroCMC

    fro = {"alpha": 1.0, "scale": "none", "random_state": 0, "max_iter": 15, "tol": 0}
    yield "hinge", lambda cells: FroCMC(8, **fro).fit(cells)
    yield "tobit", lambda cells: FroCMC(8, clipped="tobit", bias=True, **fro).fit(cells)
    drawn = {"n_samples": 10, "burn_in": 5, "chains": 1, "random_state": 0}
    yield "bayes", lambda cells: BayesCMC(5, **drawn).fit(cells)


def measure() -> dict[str, tuple[float, str]]:
    """Return CPU seconds of each fit, and a sum over what it predicts."""
    found = {}
    for shape, size in SHAPES.items():
        cells = table(*size)
        for name, fit in fits():
            seconds = []
            for _ in range(REPEATS):
                began = time.process_time()
                model = fit(cells)
                seconds.append(time.process_time() - began)
            predicted = np.ascontiguousarray(model.reconstruct())
            found[f"{name}, {shape}"] = min(seconds), hashlib.sha1(predicted).hexdigest()[:12]
    return found


def round_of(source: str) -> dict[str, tuple[float, str]]:
    """Measure one source folder in a process of its own."""
    program = f"import sys; sys.path.insert(0, {source!r}); import declip; import plain_fits; "
    program += f"assert declip.__file__.startswith({source!r}); plain_fits.tell()"
    one = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    place = os.path.dirname(os.path.abspath(__file__))
    command = [sys.executable, "-c", program]
    told = subprocess.run(command, cwd=place, env=os.environ | one, stdout=-1, check=True)
    return json.loads(told.stdout)


def tell() -> None:
    warnings.simplefilter("ignore")
    print(json.dumps(measure()))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("before", type=os.path.abspath)
    parser.add_argument("after", type=os.path.abspath)
    parser.add_argument("--rounds", type=int, default=8)
    asked = parser.parse_args()
    rounds = [(round_of(asked.before), round_of(asked.after)) for _ in range(asked.rounds)]
    ratios = []
    for name in rounds[0][0]:
        old, new = (min(r[side][name][0] for r in rounds) for side in (0, 1))
        ratios.append(new / old)
        same = (
            "same bits" if len({r[side][name][1] for r in rounds for side in (0, 1)}) == 1 else ""
        )
        print(f"{name:<24}{old:8.4f}{new:8.4f}{new / old:7.3f}  {same}")
    print(f"{'geometric mean':<40}{np.exp(np.mean(np.log(ratios))):7.3f}")


if __name__ == "__main__":
    main()
