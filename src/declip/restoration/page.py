"""The page that a restoration prints."""

from __future__ import annotations

import textwrap
from typing import TYPE_CHECKING, Any

import numpy as np

from declip.intervals import Intervals
from declip.restoration.candidates import METHODS

if TYPE_CHECKING:
    from declip.restoration.result import Restoration

__all__ = ["page", "verdict"]

_WIDTH = 88
_SHOWN = 8


def page(r: Restoration, fill: bool = True) -> str:
    """Return what was clipped, what was done about it, and how far it can be trusted.

    Without ``fill`` missing cells stay so in the file that the page speaks of.
    """
    parts = [
        _table(r.intervals),
        _outcome(r, fill),
        _method(r),
        _trust(r),
        _candidates(r.candidates),
    ]
    if r.warnings:
        parts.append("\n".join(["Take note", *(_item(w) for w in r.warnings)]))
    return "\n\n".join(parts)


def _table(intervals: Intervals) -> str:
    size = int(np.prod(intervals.shape, dtype=np.int64))
    above, below, in_range = intervals.by_row.censored_counts()
    lines = [
        ("exact", intervals.n_exact),
        ("at or above a ceiling", above),
        ("at or below a floor", below),
        ("known to lie in a range", in_range),
        ("missing", size - len(intervals)),
    ]
    shown = [f"  {n:>10,}  {what} ({n / size:.1%})" for what, n in lines if n or what == "exact"]
    rows, cols = intervals.shape
    return "\n".join([f"A table of {rows:,} rows and {cols:,} columns", *shown])


def _outcome(r: Restoration, fill: bool) -> str:
    words = {
        "exact": "exact: untouched",
        "restored": "restored beyond their limit",
        "filled": "missing: filled" if fill else "missing: left empty",
        "undetermined": "undetermined: left at the limit, or empty",
    }
    above, below, in_range = r.intervals.by_row.censored_counts()
    if in_range:
        beyond = "beyond their limit or " if above + below else ""
        words["restored"] = f"restored {beyond}within their range"
    if r.settings.get("fill") == "all":
        words["undetermined"] = "undetermined: guessed, or left at the limit"
    lines = [f"  {n:>10,}  {words[flag]}" for flag, n in r.counts.items() if n]
    return "\n".join(["What came out", *lines])


def _method(r: Restoration) -> str:
    parameters = ", ".join(
        f"{name} {_number(value)}" for name, value in r.chosen["parameters"].items()
    )
    name = METHODS[r.chosen["method"]] + (f": {parameters}" if parameters else "")
    if len(r.chosen.get("weights", {})) > 1:
        name = "Most of all " + name
    return "\n".join(["How", _item(name), _item(r.chosen["why"])])


def verdict(r: Restoration) -> str:
    """Return in a sentence or two what can be said of the clipped cells: the same everywhere."""
    if r.intervals.n_censored == 0:
        return "Nothing is clipped; there is no limit to look beyond."
    if not any(r.intervals.by_row.censored_counts()[:2]):
        return "No cell lies beyond a limit; those known to lie in a range are restored within it."
    if r.reclip is None:
        return "Too few exact cells to test the restoration: clipped cells were left as they are."
    if r.kept_limits:
        return (
            "Hidden values show no gain over leaving cells at their limits: they were left there."
        )
    low, high = r.expected_gain_range
    restored, left = r.expected_factors
    off = f"are expected to be off by a factor of {restored:.2g}, limits by {left:.2g}"
    in_logs = "" if np.isnan(restored) else f" In logarithmic columns restored values {off}."
    return (
        f"Restoring is expected to take {r.expected_gain:.0%} off the error of leaving clipped "
        f"cells at their limits ({max(low, -1.0):.0%} to {high:.0%}). That is an estimate for what "
        f"lies beyond the real limits, where nothing was seen.{in_logs}"
    )


def _trust(r: Restoration) -> str:
    lines = ["How far to trust it", _item(verdict(r))]
    if r.reclip is not None and not np.isnan(r.reclip.gain):
        lines.append(
            _item(
                f"{r.reclip.n_hidden:,} exact values were hidden behind moved limits: restoring "
                f"them took {r.reclip.gain:.0%} off the error, measured up to the real limits."
            )
        )
    if r.counts.get("restored") or r.counts.get("filled"):
        lines.append(
            _item(f"Bands (lower, upper) are made to hold {r.coverage:.0%} of the truths.")
        )
    return "\n".join(lines)


def _candidates(candidates: list[dict[str, Any]]) -> str:
    lines = [
        "Methods weighed (lower is better, but for the weight)",
        f"  {'method':<12} {'parameters':<26} {'held-out':>9} {'hidden':>9} {'error':>7} "
        f"{'weight':>7}",
    ]
    for c in candidates[:_SHOWN]:
        parameters = ", ".join(f"{name} {_number(v)}" for name, v in c["parameters"].items())
        figures = [c.get(name) for name in ("held_out", "reclip", "error", "weight")]
        held, hidden, error, weight = ("" if f is None else f"{f:.3f}" for f in figures)
        line = f"  {c['method']:<12} {parameters:<26} {held:>9} {hidden:>9} {error:>7} {weight:>7}"
        lines.append(line.rstrip())
    return "\n".join(
        [
            *lines,
            "  (held-out, hidden: minus the mean log-likelihood of such cells; the weights make",
            "  that of hidden cells least. error: where leaving cells at the limit is 1)",
        ]
    )


def _item(text: str) -> str:
    return textwrap.fill(text, _WIDTH, initial_indent="  - ", subsequent_indent="    ")


def _number(value: Any) -> str:
    return f"{value:.3g}" if isinstance(value, float) else str(value)
