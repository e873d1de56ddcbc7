"""The picture of a summary: intervals, and what is usual beside them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from declip.extras import needs
from declip.inference.univariate import ESTIMATORS

if TYPE_CHECKING:
    from declip.inference.summary import Summary

__all__ = ["draw_summary"]

_MARKS = dict(zip(ESTIMATORS, ("s", "^", "D", "x"), strict=True))
_COLOURS = dict(zip(ESTIMATORS, ("#E69F00", "#009E73", "#CC79A7", "#D55E00"), strict=True))
_WORDS = {
    "kaplan_meier": "Kaplan-Meier",
    "ros": "ROS",
    "max_likelihood": "maximum likelihood",
    "half_limit": "half the limit",
}
_DRAWN = ("estimate", "lower", "upper", *ESTIMATORS)
_MOST = 40  # lines
_WIDE = 20.0  # times: values are drawn on a logarithmic axis


def draw_summary(summary: Summary, statistic: str | None = None, ax: Any = None) -> Any:
    """Draw the intervals of a statistic, a line for each column and group.

    Parameters
    ----------
    summary : Summary
        What to draw.
    statistic : str, optional
        Which; the first by default.
    ax : matplotlib axes, optional
        Where; by default on a new figure.
    """
    columns = summary.as_columns()
    asked = list(dict.fromkeys(columns["statistic"]))
    chosen = asked[0] if statistic is None else statistic
    if chosen not in asked:
        raise ValueError(f"The summary has no statistic {chosen!r}; it has {', '.join(asked)}.")
    at = [i for i, name in enumerate(columns["statistic"]) if name == chosen][:_MOST]
    ax = _new_axes(len(at)) if ax is None else ax
    y = np.arange(len(at))[::-1]
    value = {name: np.array(columns[name], float)[at] for name in columns if name in _DRAWN}
    ax.hlines(y, value["lower"], value["upper"], color="#0072B2", lw=2, alpha=0.6)
    ax.plot(value["estimate"], y, "o", color="#0072B2", ms=6, label="declip")
    for name, mark in _MARKS.items():
        colour = _COLOURS[name]
        ax.plot(value[name], y - 0.22, mark, color=colour, ms=4.5, label=_WORDS[name])
    ax.set_yticks(y, [_label(columns, i) for i in at])
    finite = np.concatenate(list(value.values()))
    finite = finite[np.isfinite(finite)]
    if finite.size and finite.min() > 0 and finite.max() / finite.min() > _WIDE:
        ax.set_xscale("log")
    what = chosen.replace("_", " ") + _criterion(columns, at)
    ax.set_xlabel(f"{what}, intervals of {summary.confidence:.0%}")
    ax.grid(axis="x", color="0.92", zorder=0)
    ax.spines[["top", "right"]].set_visible(False)
    ax.legend(loc="lower center", bbox_to_anchor=(0.5, 1.0), ncols=5, frameon=False, fontsize=8.5)
    return ax


def _criterion(columns: dict[str, list[Any]], at: list[int]) -> str:
    """Return the criterion of lines, if they have one in common."""
    found = {columns["criterion"][i] for i in at} if "criterion" in columns else set()
    one = found.pop() if len(found) == 1 else None
    return "" if one is None or np.isnan(one) else f" {one:g}"


def _label(columns: dict[str, list[Any]], i: int) -> str:
    group = f", {columns['group'][i]}" if "group" in columns else ""
    return f"{columns['column'][i]}{group}"


def _new_axes(lines: int) -> Any:
    with needs("report"):
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure

    figure = Figure(figsize=(7.5, 1.4 + 0.36 * lines), layout="constrained")
    FigureCanvasAgg(figure)
    return figure.subplots()
