"""Do the intervals of summaries and pooled models hold the truth? Simulated tables, censored by us.

    python experiments/inference.py

Tables of three exposures and an outcome that depends on the first of them (slope 0.5). Exposures
are normal and end at ceilings, or lognormal (standard deviation 1 of the logarithms) and end at
floors; they are independent, or correlated by 0.6; there is one limit, or one of three for each
row. `restore` (told of logarithms, where values are lognormal, and that columns have units of
their own), `Restoration.summary` and `pooled_fit` run as they do by default. Reported is the share
of 95 % intervals that hold the truth: of the mean of each exposure, of the share beyond a criterion
in the middle of what the limits hide, of the slope; and the same for half the limit (the limit
itself for ceilings), taken as data. Behind each stands its standard error over the tables.
"""

from __future__ import annotations

import argparse
import warnings
from itertools import product
from typing import Any

import numpy as np
from common import RESULTS, Runs, markdown_table, progress, write_text
from numpy.typing import NDArray
from scipy import stats

import declip
from declip.environment import environment
from declip.inference.statistics import Statistic
from declip.intervals import face_value

RUNS = Runs(RESULTS / "inference.jsonl")
SIZES, SHARES, LIMITS = (40, 100, 400), (0.2, 0.4, 0.6), (1, 3)
KINDS, CORRELATIONS = ("normal", "lognormal"), (0.0, 0.6)
SETTINGS = list(product(KINDS, CORRELATIONS, LIMITS, SHARES, SIZES))
SLOPE, N_EXPOSURES = 0.5, 3
WAYS = ("declip", "half the limit")
QUESTIONS = ("mean", "share", "slope")
N_INTERVALS = (N_EXPOSURES, N_EXPOSURES, 1)  # of each question, in a table
FIRST_SEED = 4000  # those before were looked at while the rules were made


def simulated(setting: tuple, seed: int) -> tuple[declip.Intervals, float]:
    """Return a censored table, and the criterion in the middle of what its limits hide."""
    kind, rho, limits, share, n = setting
    rng = np.random.default_rng([seed, SETTINGS.index(setting)])
    p = N_EXPOSURES
    root = np.linalg.cholesky(rho * np.ones((p, p)) + (1 - rho) * np.eye(p))
    z = rng.standard_normal((n, p)) @ root.T
    outcome = SLOPE * z[:, :1] + rng.standard_normal((n, 1))
    hidden = share * (rng.choice([0.5, 1.0, 1.5], (n, 1)) if limits == 3 else np.ones((n, 1)))
    if kind == "normal":
        limit, criterion = stats.norm.isf(hidden), stats.norm.isf(share / 2)
        lower, upper = np.minimum(z, limit), np.where(z > limit, np.inf, z)
    else:
        limit, criterion = np.exp(stats.norm.ppf(hidden)), float(np.exp(stats.norm.ppf(share / 2)))
        x = np.exp(z)
        lower, upper = np.where(x < limit, -np.inf, x), np.maximum(x, limit)
    ends = (np.hstack([end, outcome]) for end in (lower, upper))
    return declip.Intervals.from_bounds(*ends), float(criterion)


def slope_of(table: np.ndarray, kind: str) -> tuple[Any, Any]:
    """Return the coefficients of the outcome on the first exposure, and their covariance."""
    x = np.log(table[:, 0]) if kind == "lognormal" else table[:, 0]
    X = np.column_stack([np.ones(len(x)), x])
    b, squares, _, _ = np.linalg.lstsq(X, table[:, -1], rcond=None)
    return b, np.linalg.inv(X.T @ X) * squares[0] / (len(x) - 2)


def truths(setting: tuple) -> dict[str, float]:
    kind, share = setting[0], setting[3]
    normal = kind == "normal"
    return {
        "mean": 0.0 if normal else float(np.exp(0.5)),
        "share": share / 2 if normal else 1 - share / 2,
        "slope": SLOPE,
    }


def by_declip(cells: declip.Intervals, criterion: float, kind: str) -> dict[str, list]:
    """Return the intervals of all questions."""
    log = list(range(N_EXPOSURES)) if kind == "lognormal" else False
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        r = declip.restore(cells, log=log, scale="columns", progress=False)
    asked = [criterion] * N_EXPOSURES + [0.0]
    found = r.summary(["mean"], criterion=asked).as_columns()
    lines = list(zip(*(found[c] for c in ("statistic", "lower", "upper")), strict=True))
    lines = lines[: 2 * N_EXPOSURES]  # the outcome comes last
    slope = declip.pooled_fit(r, lambda t: slope_of(t, kind)).pooled.interval()
    return {
        "mean": [line[1:] for line in lines if line[0] == "mean"],
        "share": [line[1:] for line in lines if line[0] == "share_above"],
        "slope": [(slope[0][1], slope[1][1])],
    }


def by_substitution(cells: declip.Intervals, criterion: float, kind: str) -> dict[str, list]:
    """Return the intervals of a table with half the limit, taken as data."""
    lower, upper = cells.to_bounds()
    face = face_value(lower, upper)
    table = np.where(np.isneginf(lower), 0.5 * face, face)
    n, t = len(table), stats.t.ppf(0.975, len(table) - 1)
    means, shares = [], []
    for x in table[:, :N_EXPOSURES].T:
        means.append(tuple(x.mean() + s * t * x.std(ddof=1) / np.sqrt(n) for s in (-1, 1)))
        share, variance = Statistic("share_above", criterion=criterion).of(np.sort(x))
        shares.append(tuple(share + s * t * np.sqrt(variance) for s in (-1, 1)))
    b, cov = slope_of(table, kind)
    reach = stats.t.ppf(0.975, n - 2) * np.sqrt(cov[1, 1])
    return {"mean": means, "share": shares, "slope": [(b[1] - reach, b[1] + reach)]}


def run(setting: tuple, seed: int) -> dict[str, list[int]]:
    """Return how many of the intervals of one table hold the truth, for each question."""
    cells, criterion = simulated(setting, seed)
    true, ways = truths(setting), (by_declip, by_substitution)
    found = {name: way(cells, criterion, setting[0]) for name, way in zip(WAYS, ways, strict=True)}
    return {
        name: [sum(bool(low <= true[q] <= high) for low, high in ends[q]) for q in QUESTIONS]
        for name, ends in found.items()
    }


def shares(stored: dict[str, dict]) -> dict[tuple, NDArray]:
    """Return the shares that held the truth by setting: of each table, way and question."""
    found: dict[tuple, list[NDArray]] = {}
    by_name = {_name(setting): setting for setting in SETTINGS}
    for name, held in stored.items():
        setting = by_name.get(name.rpartition(" ")[0])
        if setting is not None:
            counts = np.array([held[way] for way in WAYS]) / N_INTERVALS
            found.setdefault(setting, []).append(counts)
    return {setting: np.array(tables) for setting, tables in found.items()}


def page(found: dict[tuple, NDArray]) -> str:
    """Return the table of the page: pooled over what is not named in a line."""
    header = ["%", "tables", *QUESTIONS, *(f"{q}, half the limit" for q in QUESTIONS)]
    lines = []
    for name, part in _parts():
        some = [tables for setting, tables in found.items() if part(setting)]
        if some:
            tables = 100 * np.concatenate(some)
            mean, error = tables.mean(axis=0), tables.std(axis=0) / np.sqrt(len(tables))
            ours = [f"{m:.1f} ± {e:.1f}" for m, e in zip(mean[0], error[0], strict=True)]
            lines.append([name, f"{len(tables):,}", *ours, *(f"{m:.0f}" for m in mean[1])])
    return markdown_table(header, lines) + _by_setting(found)


def _by_setting(found: dict[tuple, NDArray]) -> str:
    """Tell the lowest and the highest share of a setting for each question."""
    means = 100 * np.array([tables[:, 0].mean(axis=0) for tables in found.values()])
    fewest = min(map(len, found.values()))
    ends = zip(QUESTIONS, means.min(axis=0), means.max(axis=0), strict=True)
    told = ", ".join(f"{question} {low:.1f} to {high:.1f}" for question, low, high in ends)
    return f"\nBy setting (at least {fewest} tables each): {told}.\n"


def _name(setting: tuple) -> str:
    return "/".join(map(str, setting))


def _parts() -> list[tuple[str, Any]]:
    return [
        ("all", lambda s: True),
        *((f"{kind}", lambda s, k=kind: s[0] == k) for kind in KINDS),
        *((f"{n} rows", lambda s, n=n: s[4] == n) for n in SIZES),
        *((f"{share:.0%} censored", lambda s, c=share: s[3] == c) for share in SHARES),
        *((f"{m} limit{'s' * (m > 1)}", lambda s, m=m: s[2] == m) for m in LIMITS),
        ("independent", lambda s: s[1] == 0),
        ("correlated", lambda s: s[1] > 0),
    ]


def write() -> None:
    write_text(RESULTS / "inference.md", page(shares(RUNS.read())))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--tables", type=int, default=200, help="simulated for each setting")
    parser.add_argument("--write", action="store_true", help="only write what was run")
    asked = parser.parse_args()
    if not asked.write:
        done = RUNS.read()
        RUNS.add("made with", environment())
        with progress() as bar:
            for seed in bar.track(
                range(FIRST_SEED, FIRST_SEED + asked.tables), description="tables of each setting"
            ):
                # in any order, so that a study that is broken off has some of each kind
                for i in np.random.default_rng(seed).permutation(len(SETTINGS)):
                    name = f"{_name(SETTINGS[i])} {seed}"
                    if name not in done:
                        RUNS.add(name, run(SETTINGS[i], seed))
        RUNS.sort()
    write()


if __name__ == "__main__":
    main()
