"""Differences between two conditions where low intensities go missing: power and false alarms.

    python experiments/missing_conditions.py            # resumes where it was stopped
    python experiments/missing_conditions.py --page     # only write the page anew

Each table has 300 proteins in 6 + 6 samples; a fifth of the proteins differs by 1.5 (in log2), and
a cell of intensity x is seen with probability 0.98 Phi((x - 18.5) / 0.7). Each protein seen at all
is tested by Student's t at 5 %; imputations are pooled by Rubin's rules. A protein that a method
cannot test counts as not found.
"""

from __future__ import annotations

import argparse
import warnings
from typing import Any

import numpy as np
from common import RESULTS, Runs, markdown_table, progress, publish
from scipy import stats
from scipy.special import ndtr, ndtri

from declip import BayesCMC

SETTINGS = {"proteins": 300, "samples": 12, "effect": 1.5, "imputations": 20}
TABLES = 6
GROUP = np.arange(SETTINGS["samples"]) >= SETTINGS["samples"] // 2


def simulated(seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return complete intensities, what is seen of them, and the differences."""
    rng = np.random.default_rng(seed)
    n, m = SETTINGS["proteins"], SETTINGS["samples"]
    effect = SETTINGS["effect"] * (rng.random(n) < 0.2) * rng.choice([-1, 1], n)
    table = 20 + 1.8 * rng.standard_normal((n, 1)) + 0.5 * rng.standard_normal((n, m))
    table += 0.4 * rng.standard_normal((n, 2)) @ rng.standard_normal((2, m))
    table += np.outer(effect, GROUP - 0.5)
    seen = rng.random((n, m)) < 0.98 * ndtr((table - 18.5) / 0.7)
    some = seen.any(axis=1)
    return table[some], np.where(seen, table, np.nan)[some], effect[some]


def min_prob(table: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Fill with normal numbers about the first percentile of each sample."""
    low = np.nanquantile(table, 0.01, axis=0)
    sd = np.nanmedian(np.nanstd(table, axis=1, ddof=1))
    return np.where(np.isnan(table), low + sd * rng.standard_normal(table.shape), table)


def qrilc(table: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Fill each sample from the lower part of a normal fitted to the quantiles that are seen."""
    filled = table.copy()
    for j, column in enumerate(table.T):
        missing = np.isnan(column)
        share = missing.mean()
        levels = np.linspace(share + 0.01, 0.99, 100)
        seen = np.quantile(column[~missing], (levels - share) / (1 - share))
        sd, mean = np.polyfit(ndtri(levels), seen, 1)
        filled[missing, j] = mean + sd * ndtri(share * rng.random(missing.sum()))
    return filled


def differences(table: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the difference of each row, its variance and degrees of freedom; NaN allowed."""
    parts = [table[:, GROUP], table[:, ~GROUP]]
    n = np.array([(~np.isnan(part)).sum(axis=1) for part in parts])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        mean = [np.nanmean(part, axis=1) for part in parts]
        squares = sum(
            np.nansum((p - m[:, None]) ** 2, axis=1) for p, m in zip(parts, mean, strict=True)
        )
        df = n.sum(axis=0) - 2.0
        variance = squares / df * (1 / n[0] + 1 / n[1])
    testable = (n.min(axis=0) >= 2) & (df > 0)
    return mean[0] - mean[1], np.where(testable, variance, np.nan), df


def p_values(tables: list[np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
    """Return pooled differences and p-values by Rubin's rules, as Barnard and Rubin have them."""
    found = [differences(table) for table in tables]
    q, u = (np.array([f[i] for f in found]) for i in (0, 1))
    df, m = found[0][2], len(tables)
    mean, within = q.mean(axis=0), u.mean(axis=0)
    between = q.var(axis=0, ddof=1) if m > 1 else np.zeros_like(mean)
    total = within + (1 + 1 / m) * between
    with np.errstate(divide="ignore", invalid="ignore"):
        share = (1 + 1 / m) * between / total
        old = (m - 1) / share**2
        seen = (df + 1) / (df + 3) * df * (1 - share)
        nu = np.where(share > 0, 1 / (1 / old + 1 / seen), df)
        return mean, 2 * stats.t.sf(abs(mean) / np.sqrt(total), nu)


def run(seed: int) -> dict[str, Any]:
    truth, table, effect = simulated(seed)
    rng = np.random.default_rng(seed)
    m = SETTINGS["imputations"]
    tables = {
        "complete truth": [truth],
        "complete cases": [table],
        "MinProb": [min_prob(table, rng)],
        "QRILC": [qrilc(table, rng)],
    }
    for word in ("random", "low"):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            model = BayesCMC(5, missing=word, random_state=seed, chains=1).fit(table)
            tables[f'missing="{word}"'] = list(model.sample(m, random_state=seed))
    answers = {}
    hit = np.isnan(table).any(axis=1)
    for name, filled in tables.items():
        difference, p = p_values(filled)
        found = p < 0.05
        bias = (difference - effect) * np.sign(effect)
        answers[name] = {
            "power": float(found[effect != 0].mean()),
            "power, rows with missing cells": float(found[(effect != 0) & hit].mean()),
            "false": float(found[effect == 0].mean()),
            "bias": float(np.nanmean(bias[(effect != 0) & hit])),
            "proteins": len(effect),
            "differing": int((effect != 0).sum()),
        }
    return {"answers": answers, "missing": float(np.isnan(table).mean())}


def page(found: dict[str, dict[str, Any]]) -> str:
    runs = list(found.values())
    names = ("power", "power, rows with missing cells", "false", "bias")
    rows = []
    for method in runs[0]["answers"]:
        means = [np.mean([r["answers"][method][name] for r in runs]) for name in names]
        rows.append([method, *(f"{v:.1%}" for v in means[:3]), f"{means[3]:+.2f}"])
    header = ["", "found", "found, with missing cells", "false alarms", "bias of a difference"]
    share = np.mean([r["missing"] for r in runs])
    return (
        f"{len(runs)} tables of about {runs[0]['answers']['QRILC']['proteins']} proteins, "
        f"{share:.0%} of the cells missing; a difference is {SETTINGS['effect']}, and its bias is "
        "towards it (+) or towards zero (-), in rows with missing cells.\n\n"
        + markdown_table(header, rows)
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--page", action="store_true", help="only write the page anew")
    runs = Runs(RESULTS / "missing_conditions.jsonl")
    if not parser.parse_args().page:
        with progress() as bar:
            for seed in bar.track(range(TABLES), description="tables"):
                runs.resume(str(seed), SETTINGS, lambda seed=seed: run(seed))
    publish("missing_conditions", page(runs.read()))


if __name__ == "__main__":
    main()
