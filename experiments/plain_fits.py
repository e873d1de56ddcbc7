"""Are plain fits as quick and as they were? Two source folders of declip, fit by fit in turn.

    python experiments/plain_fits.py old/src src --repeats 12

Each folder has a process of its own, with one thread. Both make the same fits of tables of three
shapes by `FroCMC` and `BayesCMC`, some sweeps each, one after the other, so that whatever else runs
on the machine slows both. Printed are the median CPU seconds, the median of the ratios of pairs,
and whether both give the same numbers to the last bit. Both folders need their compiled kernels.
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
from collections.abc import Callable
from typing import Any

import numpy as np

SHAPES = {"400 x 30": (400, 30, 1.0), "2000 x 60": (2000, 60, 0.5), "943 x 1682": (943, 1682, 0.06)}


def table(n: int, m: int, share: float) -> Any:
    """Return a table of rank 5 with a ceiling, of which a share of the cells is observed."""
    from declip import Intervals

    rng = np.random.default_rng(0)
    X = rng.standard_normal((n, 5)) @ rng.standard_normal((5, m))
    X = np.minimum(X + 0.3 * rng.standard_normal(X.shape), 1.5)
    return Intervals.from_table(np.where(rng.random(X.shape) < share, X, np.nan), ceiling=1.5)


def fits() -> dict[str, Callable[[Any], Any]]:
    """Return the fits by name."""
    from declip import BayesCMC, FroCMC

    fro = {"alpha": 1.0, "scale": "none", "random_state": 0, "max_iter": 10, "tol": 0}
    drawn = {"n_samples": 5, "burn_in": 5, "chains": 1, "random_state": 0}
    return {
        "hinge": lambda cells: FroCMC(8, **fro).fit(cells),
        "tobit": lambda cells: FroCMC(8, clipped="tobit", bias=True, **fro).fit(cells),
        "bayes": lambda cells: BayesCMC(5, **drawn).fit(cells),
    }


def serve() -> None:
    """Make the fits whose names come in, and tell their CPU seconds and what they predict."""
    warnings.simplefilter("ignore")
    tables, known = {name: table(*size) for name, size in SHAPES.items()}, fits()
    for line in sys.stdin:
        name, shape = line.rstrip("\n").split(", ")
        began = time.process_time()
        model = known[name](tables[shape])
        seconds = time.process_time() - began
        predicted = np.ascontiguousarray(model.reconstruct())
        print(json.dumps([seconds, hashlib.sha1(predicted).hexdigest()]), flush=True)


class Side:
    """A process with one of the source folders."""

    def __init__(self, source: str) -> None:
        check = f"assert declip.__file__.startswith({source!r}), declip.__file__"
        lines = f"import sys; sys.path.insert(0, {source!r}); import declip; {check}"
        one = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
        self.process = subprocess.Popen(
            [sys.executable, "-c", f"{lines}; import plain_fits; plain_fits.serve()"],
            cwd=os.path.dirname(os.path.abspath(__file__)),
            env=os.environ | one,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def fit(self, name: str) -> tuple[float, str]:
        """Return CPU seconds of a fit, and a sum over what it predicts."""
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        print(name, file=self.process.stdin, flush=True)
        return tuple(json.loads(self.process.stdout.readline()))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("before", type=os.path.abspath)
    parser.add_argument("after", type=os.path.abspath)
    parser.add_argument("--repeats", type=int, default=12)
    asked = parser.parse_args()
    sides = Side(asked.before), Side(asked.after)
    medians = []
    for name in (f"{fit}, {shape}" for shape in SHAPES for fit in ("hinge", "tobit", "bayes")):
        pairs = [[side.fit(name) for side in sides] for _ in range(asked.repeats + 1)][1:]
        seconds = np.array([[seconds for seconds, _ in pair] for pair in pairs])
        medians.append(float(np.median(seconds[:, 1] / seconds[:, 0])))
        same = "same bits" if len({bits for pair in pairs for _, bits in pair}) == 1 else ""
        old, new = np.median(seconds, axis=0)
        print(f"{name:<24}{old:8.4f}{new:8.4f}{medians[-1]:7.3f}  {same}", flush=True)
    print(f"{'geometric mean':<40}{np.exp(np.mean(np.log(medians))):7.3f}")


if __name__ == "__main__":
    main()
