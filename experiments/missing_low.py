"""Cells of complete tables removed by a detection curve, or by chance, and filled by `restore`.

    python experiments/missing_low.py            # all tables; resumes where it was stopped
    python experiments/missing_low.py --page     # only write the page anew

Each column loses its lower cells by a curve about its 30 % quantile: steep (width 0.1 standard
deviations), gentle (0.6), or in between (0.3) with 5 % lost by chance; or 25 % by chance alone.
Rows that lose everything are left out. Tables have 200 rows at most.
"""

from __future__ import annotations

import argparse
import warnings
from typing import Any

import numpy as np
from clipped_tables import TABLES, _folder
from common import RESULTS, Runs, markdown_table, progress, publish
from scipy.special import ndtr
from sklearn.datasets import load_digits

import declip
from declip import Intervals
from declip.restoration.missing import WhyMissing
from declip.restoration.settings import Settings
from declip.restoration.tasks import Scaled

TREATMENTS = {
    "steep": (0.3, 0.1, 0.0),
    "gentle": (0.3, 0.6, 0.0),
    "with 5 % by chance": (0.3, 0.3, 0.05),
    "by chance": (0.0, 1.0, 0.25),
}
MODES = {
    "steep": ("random", "low"),
    "gentle": ("random", "low"),
    "with 5 % by chance": ("random", "low", "auto"),
    "by chance": ("random", "auto"),
}
SETTINGS = {"rows": 200, "effort": "quick", "seed": 0}
_DIFFERENT = 8  # values that a column of digits must have


def tables() -> dict[str, Any]:
    def digits() -> np.ndarray:
        X = load_digits().data[::9]
        return X[:, [len(np.unique(column)) >= _DIFFERENT for column in X.T]]

    names = ("wine (log)", "breast cancer (log)")
    return {name: TABLES[name] for name in names} | {"digits": digits} | _folder()


def removed(truth: np.ndarray, treatment: str, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the truth and what is left of it, without rows that lose everything."""
    quantile, width, lost = TREATMENTS[treatment]
    rng = np.random.default_rng([seed, *treatment.encode()])
    limit = np.quantile(truth, quantile, axis=0) if quantile else -np.inf
    seen = rng.random(truth.shape) < ndtr((truth - limit) / (width * truth.std(axis=0)))
    seen &= rng.random(truth.shape) >= lost
    some = seen.any(axis=1)
    return truth[some], np.where(seen, truth, np.nan)[some]


def judged(truth: np.ndarray, table: np.ndarray, mode: str) -> dict[str, Any]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        r = declip.restore(
            table, missing=mode, effort=SETTINGS["effort"], progress=False, random_state=0
        )
    cells = np.isnan(table) & ~np.isnan(r.table)
    spread = np.broadcast_to(truth.std(axis=0), truth.shape)
    gap = ((r.table - truth) / spread)[cells]
    means = (np.where(cells, r.table, truth).mean(axis=0) - truth.mean(axis=0)) / truth.std(axis=0)
    return {
        "error": float(np.sqrt(np.mean(gap**2))),
        "bias": float(np.mean(abs(means))),
        "covered": float(np.mean(((r.lower <= truth) & (truth <= r.upper))[cells])),
        "cells": int(cells.sum()),
    }


def left_of(name: str, treatment: str) -> tuple[np.ndarray, np.ndarray]:
    """Return some rows of a table, and what the treatment leaves of them."""
    truth = np.asarray(tables()[name](), float)
    truth = truth[:: -(-len(truth) // SETTINGS["rows"])]
    return removed(truth[:, truth.std(axis=0) > 0], treatment, SETTINGS["seed"])


def taken(table: np.ndarray) -> str:
    """Return the word that ``missing="auto"`` takes."""
    cells, settings = Intervals.from_table(table), Settings(missing="auto")
    return next(iter(WhyMissing.of(cells, Scaled.of(cells, settings), settings).words))


def run(runs: Runs, name: str, treatment: str, mode: str) -> dict[str, Any]:
    """Fill a table; what "auto" does is what the word does that it takes."""
    key = f"{name} / {treatment} / {mode}"
    truth, table = left_of(name, treatment)
    if mode == "auto":
        found = runs.resume(key, SETTINGS, lambda: {"took": taken(table)})
        if found["took"] not in MODES[treatment]:
            run(runs, name, treatment, found["took"])
        return found
    return runs.resume(key, SETTINGS, lambda: judged(truth, table, mode))


def by_case(found: dict[str, dict[str, Any]]) -> dict[str, dict[str, Any]]:
    """Return the runs of each table and treatment, by mode; "auto" as the word that it took."""
    cases: dict[str, dict[str, Any]] = {}
    for key, answer in sorted(found.items()):
        case, mode = key.rsplit(" / ", 1)
        cases.setdefault(case, {})[mode] = answer
    for modes in cases.values():
        if "auto" in modes:
            took = modes["auto"]["took"]
            modes["auto"] = {**modes[took], "took": took}
    return cases


def page(found: dict[str, dict[str, Any]]) -> str:
    rows, ratios = [], {"error": [], "bias": [], "covered": [], "auto": []}
    for key, modes in by_case(found).items():
        name, treatment = key.split(" / ")
        other, base = modes.get("low", modes.get("auto")), modes["random"]
        if treatment != "by chance":
            ratios["error"].append(other["error"] / base["error"])
            ratios["bias"].append(other["bias"] / base["bias"])
            ratios["covered"].append(other["covered"])
        else:
            other = modes["auto"]
            ratios["auto"].append(other["error"] / base["error"])
        numbers = [f"{base['error']:.2f}", f"{other['error']:.2f}"]
        numbers += [f"{base['bias']:.3f}", f"{other['bias']:.3f}"]
        numbers += [f"{base['covered']:.0%}", f"{other['covered']:.0%}"]
        rows.append([name, treatment, *numbers, modes.get("auto", {}).get("took", "")])
    header = ["table", "removed", "error, random", "low", "bias, random", "low"]
    header += ["covered, random", "low", "auto took"]
    median = {name: float(np.median(x)) for name, x in ratios.items() if x}
    lines = [
        "Errors of filled cells and biases of column means are in standard deviations of a column;",
        "bands are to hold 90 %. Where cells were removed by chance, the second figure is that of",
        '`missing="auto"`.',
        "",
    ]
    if "error" in median:
        lines += [
            f"Median over {len(ratios['error'])} tables and curves: error {median['error']:.2f} of "
            f'that with `missing="random"`, bias of column means {median["bias"]:.2f} of it, bands '
            f"hold {median['covered']:.0%} (from {min(ratios['covered']):.0%} to "
            f"{max(ratios['covered']):.0%}).",
            "",
        ]
    if ratios["auto"]:
        lines += [
            f"Cells removed by chance: the error of `auto` is {median['auto']:.3f} of that of "
            f"`random` in the median, at worst {max(ratios['auto']):.3f}.",
            "",
        ]
    return "\n".join(lines) + "\n" + markdown_table(header, rows)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--page", action="store_true", help="only write the page anew")
    runs = Runs(RESULTS / "missing_low.jsonl")
    cases = [
        (name, treatment, mode)
        for treatment in MODES
        for name in tables()
        for mode in MODES[treatment]
    ]
    if not parser.parse_args().page:
        with progress() as bar:
            for case in bar.track(cases, description="tables"):
                run(runs, *case)
    publish("missing_low", page(runs.read()))


if __name__ == "__main__":
    main()
