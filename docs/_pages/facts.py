"""Figures that the prose quotes, from the kept results."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from statistics import mean, median, quantiles
from typing import Any

RESULTS = Path(__file__).parents[2] / "experiments" / "results"


NAMES = (
    *("hinge_range", "tobit_range", "hinge_off", "tobit_off", "bayes_best", "breast_coverage"),
    *("bands_beyond", "bands_mostly", "restored_tables", "restored_cases", "restored_off"),
    *("restored_worse", "restored_worst", "paper_error"),
)


@cache
def facts() -> dict[str, str]:
    """Return the figures by the names that pages have for them."""
    treated, bayes = means("tables", ("table", "quantile")), means("bayes", ("case",))
    shares = {
        name: [row[name] / row["left at the limit"] for row in treated]
        for name in ("hinge", "tobit")
    }
    breast = [row["coverage"] for row in bayes if row["case"].startswith("breast cancer")]
    return {
        **{f"{name}_range": f"{min(s):.2f} to {max(s):.2f}" for name, s in shares.items()},
        **{f"{name}_off": f"{_percent(1 - max(s), 1 - min(s))}" for name, s in shares.items()},
        **_restored(runs(RESULTS / "tables_restore.jsonl")),
        "breast_coverage": _percent(min(breast), max(breast)),
        "paper_error": f"{median(_paper_errors()):.2g}",
    }


def _restored(rows: list[dict[str, Any]]) -> dict[str, str]:
    """Return what `restore` gained on complete tables that were clipped."""
    others = {run["run"]: run for run in runs(RESULTS / "peers" / "tables_restore.jsonl")}
    errors = [others[row["run"]]["errors"] for row in rows]
    left = [
        row["errors"]["restore"] / other["left at the limit"]
        for row, other in zip(rows, errors, strict=True)
    ]
    best = [min(other, key=other.get) for other in errors]
    held = [row["cover"] for row in rows]
    return {
        "bayes_best": f"{best.count('BayesCMC')} of {len(best)}",
        "bands_beyond": f"{100 * mean(held):.0f} %",
        "bands_mostly": f"{100 * quantiles(held, n=20)[0]:.0f} %",
        "restored_tables": str(len({row["settings"]["table"] for row in rows})),
        "restored_cases": str(len(rows)),
        "restored_off": f"{1 - median(left):.0%}".replace("%", " %"),
        "restored_worse": str(sum(x > 1 for x in left) or "none"),
        "restored_worst": f"{max(left):.2f}",
    }


def _paper_errors() -> list[float]:
    """Return the errors of FroCMC on the paper's synthetic task at C = 7."""
    task = {"generator": "rounded", "C": 7, "method": "Fro-CMC"}
    found = _paper("synthetic")
    return [r["chosen"]["all_cells"] for r in found if task.items() <= r["settings"].items()]


def runs(path: Path) -> list[dict[str, Any]]:
    """Return the runs of a file of JSON Lines; of those with the same name the last."""
    lines = map(json.loads, path.read_text().splitlines())
    return list({run["run"]: run for run in lines}.values())


def _paper(study: str) -> list[dict[str, Any]]:
    return runs(RESULTS / "paper" / f"{study}.jsonl")


def means(study: str, names: tuple[str, ...]) -> list[dict[str, Any]]:
    """Return the settings by these names, each with the mean of its runs' figures."""
    found: dict[tuple, list[dict[str, Any]]] = {}
    for run in runs(RESULTS / f"{study}.jsonl"):
        found.setdefault(tuple(run["settings"][name] for name in names), []).append(run)
    return [dict(zip(names, setting, strict=True)) | _mean(some) for setting, some in found.items()]


def _mean(some: list[dict[str, Any]]) -> dict[str, float]:
    figures = [name for name, value in some[0].items() if isinstance(value, float)]
    return {name: sum(run[name] for run in some) / len(some) for name in figures}


def _percent(low: float, high: float) -> str:
    return f"{100 * low:.0f} to {100 * high:.0f} %"


def ratings() -> str:
    """Return a table of the average precision on the rating tasks, from the kept runs."""
    found: dict[str, dict[str, list]] = {}
    for run in _paper("beyond"):
        settings = run["settings"]
        task = f"{settings['data']}, task {settings['task']}"
        found.setdefault(settings["model"], {}).setdefault(task, []).append(run["grid"])
    bayes = {row["case"]: row["AP"] for row in means("bayes", ("case",)) if "AP" in row}
    table = {model: {t: _chosen(grids) for t, grids in by.items()} for model, by in found.items()}
    table["BayesCMC"] = bayes
    lines = [["model", *bayes], ["---"] * (1 + len(bayes))]
    lines += [[m, *(f"{by[t]:.3f}" if t in by else "" for t in bayes)] for m, by in table.items()]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines) + "\n"


def _chosen(grids: list[list[dict[str, Any]]]) -> float:
    """Return the mean test score of the setting with the best mean on validation cells."""
    settings = list(zip(*grids, strict=True))  # one tuple of runs for each setting
    best = max(settings, key=lambda point: sum(run["validation"]["AP"] for run in point))
    return sum(run["test"]["AP"] for run in best) / len(best)
