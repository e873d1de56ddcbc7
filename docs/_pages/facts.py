"""Figures that the prose quotes, from the kept results."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

RESULTS = Path(__file__).parents[2] / "experiments" / "results"


def facts() -> dict[str, str]:
    """Return the figures by the names that pages have for them."""
    treated, restored, bayes = (_rows(name) for name in ("tables", "tables_restore", "bayes"))
    shares = {
        name: [row[name] / row["left at the limit"] for row in treated]
        for name in ("hinge", "tobit")
    }
    chosen = [method for row in restored for method in row["methods"]]
    beyond = [row["cover"] for row in restored]
    breast = [r["values"]["coverage"][0] for r in bayes if r["case"].startswith("breast cancer")]
    return {
        **{f"{name}_range": f"{min(s):.2f} to {max(s):.2f}" for name, s in shares.items()},
        **{f"{name}_off": f"{_percent(1 - max(s), 1 - min(s))}" for name, s in shares.items()},
        "bayes_chosen": f"{chosen.count('bayes')} of {len(chosen)}",
        "bands_beyond": f"from {_percent(min(beyond), max(beyond))}",
        "breast_coverage": _percent(min(breast), max(breast)),
    }


def _rows(name: str) -> list[dict[str, Any]]:
    return json.loads((RESULTS / f"{name}.json").read_text())["rows"]


def _percent(low: float, high: float) -> str:
    return f"{100 * low:.0f} to {100 * high:.0f} %"


def ratings() -> str:
    """Return a table of the average precision on the rating tasks, from the kept runs."""
    kept = (RESULTS / "paper" / "beyond.jsonl").read_text().splitlines()
    found: dict[str, dict[str, list]] = {}
    for run in map(json.loads, kept):
        settings = run["settings"]
        task = f"{settings['data']}, task {settings['task']}"
        found.setdefault(settings["model"], {}).setdefault(task, []).append(run["grid"])
    bayes = {r["case"]: r["values"]["AP"][0] for r in _rows("bayes") if "AP" in r["values"]}
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
