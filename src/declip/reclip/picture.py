"""The picture of a reclip test."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from declip.extras import needs
from declip.reclip.result import LEFT, RESTORED, ReclipResult

__all__ = ["draw_reclip"]

_COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7")  # of the palette of Okabe and Ito
_BINS = 8
_FEWEST_IN_BIN = 10
_MOST_POINTS = 3000


def draw_reclip(result: ReclipResult, ax: Any = None) -> Any:
    """Draw restored against true distance beyond the moved limit, and its mean by each treatment.

    Parameters
    ----------
    result : ReclipResult
        What to draw.
    ax : matplotlib axes, optional
        Where; by default on a new figure.
    """
    if result.n_cells == 0:
        raise ValueError("The reclip test judged no cell: there is nothing to draw.")
    if ax is None:
        with needs("report"):
            from matplotlib.backends.backend_agg import FigureCanvasAgg
            from matplotlib.figure import Figure

        figure = Figure(figsize=(7, 5.5), layout="constrained")
        FigureCanvasAgg(figure)
        ax = figure.subplots()
    truth, censored = _distances(result)
    far = float(np.quantile(truth, 0.995)) or 1.0
    ax.plot([0, far], [0, far], color="0.3", lw=1, zorder=1)
    ax.annotate("restored = truth", (far, far), color="0.3", fontsize=9, ha="right", va="bottom")
    _draw_points(ax, truth, _estimates(result, RESTORED), censored)
    for name, colour in zip(result.treatments, _COLOURS, strict=False):
        if name == LEFT:
            ax.axhline(0, color=colour, lw=2, ls=(0, (5, 3)), label=name, zorder=3)
            continue
        x, y = _binned(truth, _estimates(result, name))
        ax.plot(x, y, "o-", color=colour, lw=2, ms=5, label=f"{name}: mean", zorder=4)
    ax.set(xlim=(-0.02 * far, far), ylim=(-0.08 * far, 1.15 * far))
    ax.set_xlabel("true distance beyond the moved limit (standard deviations of the column)")
    ax.set_ylabel("restored distance")
    ax.set_title(
        f"Reclip test: {result.n_cells} hidden values\n{result.verdict()}", loc="left", fontsize=11
    )
    ax.legend(loc="upper left", frameon=True, fontsize=9)
    ax.grid(color="0.93", zorder=0)
    return ax


def _draw_points(ax: Any, truth: NDArray, found: NDArray, censored: NDArray[np.bool_]) -> None:
    some = np.arange(len(truth))
    if len(truth) > _MOST_POINTS:
        some = np.random.default_rng(0).choice(len(truth), _MOST_POINTS, replace=False)
    for cells, marker, label in (
        (some[~censored[some]], "o", None),
        (some[censored[some]], ">", "at or beyond the real limit"),
    ):
        if len(cells):
            style = {"s": 12, "alpha": 0.25, "linewidths": 0, "c": _COLOURS[0]}
            ax.scatter(truth[cells], found[cells], marker=marker, label=label, zorder=2, **style)


def _distances(result: ReclipResult) -> tuple[NDArray, NDArray[np.bool_]]:
    parts = [
        abs(t.cells.value - t.cells.limit) / result.spread[t.cells.cols] for t in result.trials
    ]
    return np.concatenate(parts), np.concatenate([t.cells.censored for t in result.trials])


def _estimates(result: ReclipResult, name: str) -> NDArray:
    return np.concatenate(
        [
            abs(t.estimates[name] - t.cells.limit) / result.spread[t.cells.cols]
            for t in result.trials
        ]
    )


def _binned(x: NDArray, y: NDArray) -> tuple[NDArray, NDArray]:
    """Return the means of x and y in bins of equal numbers of cells."""
    n = max(1, min(_BINS, len(x) // _FEWEST_IN_BIN))
    parts = np.array_split(np.argsort(x, kind="stable"), n)
    return np.array([x[p].mean() for p in parts]), np.array([y[p].mean() for p in parts])
