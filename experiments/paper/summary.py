"""What the runs say together: means over the seeds, and the paper's own numbers."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

import numpy as np
from experiments.common import RESULTS, Runs, mean_and_error
from experiments.paper import beyond
from experiments.paper.runner import Job

Result = dict[str, Any]

# Table 3: FilmTrust task 1, task 2, MovieLens-100K task 1, task 2.
PAPER_F1 = {
    "DTr-CMC": ("0.47 (0.01)", "0.46 (0.01)", "0.39 (0.00)", "0.38 (0.00)"),
    "Fro-CMC": ("0.35 (0.01)", "0.40 (0.01)", "0.41 (0.00)", "0.41 (0.01)"),
    "Fro-MC": ("0.27 (0.01)", "0.35 (0.01)", "0.21 (0.01)", "0.38 (0.01)"),
    "Tr-CMC": ("0.36 (0.00)", "0.39 (0.00)", "0.40 (0.00)", "0.40 (0.00)"),
    "Tr-MC": ("0.22 (0.00)", "0.35 (0.01)", "0.12 (0.00)", "0.38 (0.00)"),
    "all positive": ("0.41 (0.00)", "0.41 (0.00)", "0.35 (0.00)", "0.35 (0.00)"),
}
# Appendix "Computation time", seconds.
PAPER_SECONDS = {
    "synthetic": {"DTr-CMC": 97, "Fro-CMC": 85, "Tr-CMC": 10},
    "FilmTrust": {"DTr-CMC": 706, "Fro-CMC": 606, "Tr-CMC": 15},
    "MovieLens-100K": {"DTr-CMC": 324, "Fro-CMC": 609, "Tr-CMC": 11},
}
SAMPLED = "BayesCMC"
_KINDS = ("method", "model", "what", "data")  # settings that tell how long a run takes
TASKS = [(data, task) for data in ("FilmTrust", "MovieLens-100K") for task in (1, 2)]


class Mean(NamedTuple):
    """A mean over the seeds with its standard error, NaN for one seed."""

    value: float
    error: float
    seeds: int

    @classmethod
    def of(cls, values: Iterable[float]) -> Mean:
        x = list(values)
        return cls(*mean_and_error(x), len(x)) if x else cls(np.nan, np.nan, 0)

    def text(self, digits: str = ".2f", error: str = "") -> str:
        if not self.seeds:
            return "-"
        spread = f" ({self.error:{error or digits}})" if np.isfinite(self.error) else ""
        return f"{self.value:{digits}}{spread}"


def grouped(results: Iterable[Result], *names: str) -> dict[tuple, list[Result]]:
    """Return the results by the values of some settings."""
    groups: dict[tuple, list[Result]] = {}
    for result in results:
        key = tuple(result["settings"].get(name) for name in names)
        groups.setdefault(key, []).append(result)
    return groups


def averaged(
    results: Iterable[Result], names: tuple[str, ...], value: Callable[[Result], float]
) -> dict[tuple, Mean]:
    """Return the mean of a value over the runs that agree in some settings."""
    groups = grouped(results, *names)
    return {key: Mean.of(value(result) for result in mine) for key, mine in groups.items()}


def synthetic_errors(results: Iterable[Result], which: str) -> dict[tuple, Mean]:
    """Return (generator, C, method) -> error of what validation chose."""
    return averaged(results, ("generator", "C", "method"), lambda r: r["chosen"][which])


def cut_off(results: Iterable[Result]) -> set[tuple]:
    """Return the (generator, C, method) of which a chosen fit had not converged."""
    groups = grouped(results, "generator", "C", "method")
    return {key for key, mine in groups.items() if not all(r["chosen"]["converged"] for r in mine)}


def best_pairs(grid: list[dict[str, Any]], by: str = "validation") -> tuple[dict, dict]:
    """Return the best points of DTr without and with a second norm, of those fitted to the end."""
    ended = [p for p in grid if "screened" not in p and p["alpha"] > 0]
    one, two = ([p for p in ended if (p["alpha_clipped"] > 0) == flag] for flag in (False, True))
    return tuple(min(points, key=lambda p: p[by]) for points in (one, two))  # type: ignore[return-value]


class Descent(NamedTuple):
    """A run of the paper's descent: its settings, its errors, and the splitting's end if it ran."""

    point: dict[str, Any]
    errors: dict[str, float]
    minimum: dict[str, Any] | None


def descents(results: list[Result]) -> list[Descent]:
    """Return the paper's descents; the authors' code takes the last iterate, the paper the best."""
    found = []
    for run in (r for r in results if r["settings"]["what"] == "descents"):
        whole = {**run["settings"], "what": "grid"}
        grids = [r["grid"] for r in results if r["settings"] == whole]
        ends = {(p["alpha"], p["alpha_clipped"]): p for grid in grids for p in grid}
        for p in run["descents"]:
            errors = p["last" if p["steps"] == "code" else "best"]
            found.append(Descent(p, errors, ends.get((p["alpha"], p["alpha_clipped"]))))
    return found


def clipping_rates(results: Iterable[Result], name: str) -> dict[tuple, Mean]:
    return averaged(results, ("generator", "C"), lambda r: r[name])


def faithful_scores(results: Iterable[Result], which: str) -> dict[tuple, Mean]:
    """Return (method, data, task) -> score of what validation chose."""
    return averaged(results, ("method", "data", "task"), lambda r: r["chosen"][which])


def all_positive(results: Iterable[Result]) -> dict[tuple, Mean]:
    """Return (data, task) -> F1 of calling every cell high."""
    seeds = {(*(r["settings"][n] for n in ("data", "task", "seed")),): r for r in results}
    return averaged(seeds.values(), ("data", "task"), lambda r: r["all_positive_f1"])


def cpu_seconds(results: Iterable[Result]) -> float:
    return sum(result.get("seconds", {}).get("cpu", 0.0) for result in results)


def expected_seconds(jobs: Iterable[Job], results: list[Result]) -> float:
    """Return what all jobs take: those that were not run as the mean of those of their kind."""
    kinds = grouped(results, *_KINDS)
    means = {kind: cpu_seconds(mine) / len(mine) for kind, mine in kinds.items()}
    usual = cpu_seconds(results) / max(len(results), 1)
    wanted = grouped([{"settings": job.settings} for job in jobs], *_KINDS)
    return sum(
        cpu_seconds(kinds.get(kind, []))
        + (len(mine) - len(kinds.get(kind, []))) * means.get(kind, usual)
        for kind, mine in wanted.items()
    )


def beyond_scores(results: Iterable[Result]) -> dict[tuple, dict[str, Any]]:
    """Return (model, data, task) -> scores at the setting that validation chose.

    Beside the models of the study: BayesCMC, as `experiments/bayes.py` left it.
    """
    groups = grouped(results, "model", "data", "task")
    return {key: beyond.chosen(mine) for key, mine in groups.items()} | _of_bayes()


def _of_bayes() -> dict[tuple, dict[str, Any]]:
    runs = grouped(Runs(RESULTS / "bayes.jsonl").read().values(), "case")
    cases = {(SAMPLED, *task): runs.get((f"{task[0]}, task {task[1]}",), []) for task in TASKS}
    return {
        key: {name: mean_and_error([r[name] for r in mine]) for name in beyond.METRICS}
        | {"seeds": len(mine)}
        for key, mine in cases.items()
        if mine
    }
