"""The page that a restoration prints."""

from __future__ import annotations

from textwrap import fill
from typing import TYPE_CHECKING, Any

import numpy as np

from declip.intervals import Intervals

if TYPE_CHECKING:
    from declip.restoration.result import Restoration

__all__ = ["NAMES", "page"]

NAMES = {
    "bayes": "Bayesian factor model (BayesCMC)",
    "tobit": "factor model, censored normal noise (FroCMC, tobit)",
    "tobit+bias": "factor model with offsets, censored normal noise (FroCMC, tobit)",
    "hinge": "factor model (FroCMC, hinge)",
    "hinge+bias": "factor model with offsets (FroCMC, hinge)",
    "trace": "trace norm, censored normal noise (TrCMC, tobit)",
    "column": "each column alone, as a censored normal law",
}
_WIDTH = 88
_SHOWN = 8


def page(r: Restoration) -> str:
    """Return what was clipped, what was done about it, and how far it can be trusted."""
    parts = [_table(r.intervals), _outcome(r), _method(r), _trust(r), _candidates(r.candidates)]
    if r.warnings:
        parts.append("\n".join(["Take note", *(_item(w) for w in r.warnings)]))
    return "\n\n".join(parts)


def _table(intervals: Intervals) -> str:
    side, size = intervals.by_row, int(np.prod(intervals.shape, dtype=np.int64))
    above, below = int(np.isposinf(side.upper).sum()), int(np.isneginf(side.lower).sum())
    lines = [
        ("exact", intervals.n_exact),
        ("at or above a ceiling", above),
        ("at or below a floor", below),
        ("known to lie in a range", intervals.n_censored - above - below),
        ("missing", size - len(intervals)),
    ]
    shown = [f"  {n:>10,}  {what} ({n / size:.1%})" for what, n in lines if n or what == "exact"]
    rows, cols = intervals.shape
    return "\n".join([f"A table of {rows:,} rows and {cols:,} columns", *shown])


def _outcome(r: Restoration) -> str:
    words = {
        "exact": "exact: untouched",
        "restored": "restored beyond their limit",
        "filled": "missing: filled",
        "undetermined": "undetermined: left at the limit, or at the location of the column",
    }
    lines = [f"  {n:>10,}  {words[flag]}" for flag, n in r.counts.items() if n]
    return "\n".join(["What came out", *lines])


def _method(r: Restoration) -> str:
    parameters = ", ".join(
        f"{name} {_number(value)}" for name, value in r.chosen["parameters"].items()
    )
    name = NAMES[r.chosen["method"]] + (f": {parameters}" if parameters else "")
    return "\n".join(["How", _item(name), _item(r.chosen["why"])])


def _trust(r: Restoration) -> str:
    lines = ["How far to trust it"]
    if r.intervals.n_censored == 0:
        return "\n".join([*lines, _item("Nothing is clipped; there is no limit to look beyond.")])
    if r.kept_limits:
        lines.append(_item("All clipped cells were left at their limits."))
    if r.reclip is None:
        return "\n".join([*lines, _item("Too few exact cells to test the restoration.")])
    lines.append(
        _item(f"Reclip test on {r.reclip.n_cells:,} values of this table: {r.reclip.verdict()}")
    )
    lines.append(
        _item(
            f"Bands (lower, upper) are set to hold {r.coverage:.0%} of such values. Beyond the "
            "real limits the restoration is extrapolation: its error cannot be seen in the table."
        )
    )
    return "\n".join(lines)


def _candidates(candidates: list[dict[str, Any]]) -> str:
    lines = [
        "Methods compared (lower is better)",
        f"  {'method':<12} {'parameters':<28} {'held-out':>9} {'reclip':>9} {'error':>7}",
    ]
    for c in candidates[:_SHOWN]:
        parameters = ", ".join(f"{name} {_number(v)}" for name, v in c["parameters"].items())
        figures = [c.get(name) for name in ("held_out", "reclip", "error")]
        held, reclip, error = ("" if f is None else f"{f:.3f}" for f in figures)
        lines.append(f"  {c['method']:<12} {parameters:<28} {held:>9} {reclip:>9} {error:>7}")
    return "\n".join(
        [*lines, "  (error: of values hidden by the test, where leaving them at the limit is 1)"]
    )


def _item(text: str) -> str:
    return fill(text, _WIDTH, initial_indent="  - ", subsequent_indent="    ")


def _number(value: Any) -> str:
    return f"{value:.3g}" if isinstance(value, float) else str(value)
