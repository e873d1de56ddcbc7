"""Do imputations know the mean of what a limit hides? Complete tables, clipped by us.

    python experiments/hidden_means.py

The tables and treatments of `tables_restore.py` (those of at most 6,000 cells), whose columns do
not end as normal ones do. `restore` runs with its defaults; of each column in which three cells or
more are hidden, the mean of these is taken over 50 imputations, with the interval of 95 % that
their differences make. Reported is the share of the columns in which it holds the true mean; and
the same, had the shrinkage beyond the limits been known instead of drawn. The page is of all cases
that are stored.
"""

from __future__ import annotations

import warnings
from itertools import product

import numpy as np
from clipped_tables import OTHER, TREATMENTS, TUNED, clipped_table
from common import RESULTS, Runs, markdown_table, progress, publish
from scipy import stats

from declip import restore
from declip.environment import environment

RUNS = Runs(RESULTS / "hidden_means.jsonl")
WAYS = ("drawn", "taken as known")
N_IMPUTATIONS, SEED, DRAW_SEED = 50, 5, 1
MOST_CELLS, FEWEST_HIDDEN = 6000, 3


def run(name: str, treatment: str) -> dict[str, list[int]]:
    """Return in how many columns the true mean was held by either way, and of how many."""
    case = clipped_table(name, treatment, SEED)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        r = restore(case.recorded[0], progress=False)
    cells = r.imputation
    rows, cols = (cells.cols, cells.rows) if r.transposed else (cells.rows, cells.cols)
    hidden = case.clipped[rows, cols] & cells.is_drawn
    count = np.bincount(cols[hidden], minlength=case.truth.shape[1])

    def means(values: np.ndarray) -> np.ndarray:
        total = np.bincount(cols[hidden], values[hidden], len(count))
        return total[count >= FEWEST_HIDDEN] / count[count >= FEWEST_HIDDEN]

    drawn = np.array(
        [
            [means(case.standard(line, cols)) for line in lines]
            for lines in cells.draws(N_IMPUTATIONS, DRAW_SEED, settled=True)
        ]
    )
    away = abs(means(case.truth[rows, cols]) - drawn.mean(axis=0))
    return counted(away, drawn.std(axis=0, ddof=1))


def counted(away: np.ndarray, sd: np.ndarray) -> dict[str, list[int]]:
    m = N_IMPUTATIONS
    held = away <= stats.t.ppf(0.975, m - 1) * np.sqrt(1 + 1 / m) * sd
    return {way: [int(line.sum()), len(line)] for way, line in zip(WAYS, held, strict=True)}


def page(stored: dict[str, dict]) -> str:
    cases = {tuple(name.split(" / ")): found for name, found in stored.items() if " / " in name}
    parts = {
        "all": cases,
        "tuned on": {c: found for c, found in cases.items() if c[0] not in OTHER},
        "aside": {c: found for c, found in cases.items() if c[0] in OTHER},
        **{t: {c: found for c, found in cases.items() if c[1] == t} for t in TREATMENTS},
    }
    lines = []
    for name, part in parts.items():
        shares = np.array([[100 * f[w][0] / f[w][1] for w in WAYS] for f in part.values()])
        if len(shares):
            error = shares.std(axis=0) / np.sqrt(len(shares))
            told = [f"{s:.0f} ± {e:.0f}" for s, e in zip(shares.mean(axis=0), error, strict=True)]
            lines.append(
                [name, str(len(part)), str(sum(f[WAYS[0]][1] for f in part.values())), *told]
            )
    return markdown_table(["%", "tables", "columns", *(f"shrinkage {w}" for w in WAYS)], lines)


def small_tables() -> list[str]:
    return [name for name, read in (TUNED | OTHER).items() if np.size(read()) <= MOST_CELLS]


def main() -> None:
    done = RUNS.read()
    RUNS.add("made with", environment())
    with progress() as bar:
        todo = list(product(small_tables(), TREATMENTS))
        for name, treatment in bar.track(todo, description="tables"):
            if f"{name} / {treatment}" not in done:
                RUNS.add(f"{name} / {treatment}", run(name, treatment))
    RUNS.sort()
    publish("hidden_means", page(RUNS.read()))


if __name__ == "__main__":
    main()
