"""Would a hard limit serve where low cells are missing? FroCMC with the least value seen as floor.

    python experiments/missing_limit.py    # about a minute

The tables and curves of `missing_low.py`. Missing cells are either missing at random, or taken to
lie below the least value that was seen of their column: the likeliest place of a hard limit.
"""

from __future__ import annotations

import warnings

import numpy as np
from common import RESULTS, Runs, markdown_table, progress, publish
from missing_low import SETTINGS, TREATMENTS, left_of, tables

from declip import FroCMC

CURVES = [name for name in TREATMENTS if name != "by chance"]


def errors(name: str, treatment: str) -> dict[str, float]:
    """Return the errors of missing cells, in standard deviations of a column."""
    truth, table = left_of(name, treatment)
    missing, least = np.isnan(table), np.nanmin(table, axis=0)
    spread = np.broadcast_to(truth.std(axis=0), truth.shape)
    fits = {
        "random": FroCMC(clipped="tobit", bias=True, random_state=0).fit_transform(table),
        "limit": FroCMC(clipped="tobit", bias=True, floor=least, random_state=0).fit_transform(
            np.where(missing, least, table)
        ),
    }
    return {
        mode: float(np.sqrt(np.mean((((X - truth) / spread)[missing]) ** 2)))
        for mode, X in fits.items()
    }


def page(found: dict[str, dict[str, float]]) -> str:
    rows = []
    for treatment in CURVES:
        cases = [run for key, run in found.items() if key.endswith(f" / {treatment}")]
        ratios = [run["limit"] / run["random"] for run in cases]
        worse = sum(ratio > 1 for ratio in ratios)
        rows.append([treatment, f"{np.median(ratios):.2f}", f"{max(ratios):.2f}", str(worse)])
    header = ["curve", "error over that at random, median", "largest", "tables made worse"]
    words = f"{len(tables())} tables; a hard limit at the least value seen, by `FroCMC`:"
    return f"{words}\n\n{markdown_table(header, rows)}"


def main() -> None:
    runs = Runs(RESULTS / "missing_limit.jsonl")
    with progress() as bar, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for treatment in CURVES:
            for name in bar.track(tables(), description=treatment):
                key = f"{name} / {treatment}"
                runs.resume(key, SETTINGS, lambda n=name, t=treatment: errors(n, t))
    publish("missing_limit", page(runs.read()))


if __name__ == "__main__":
    main()
