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
