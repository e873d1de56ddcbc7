"""Pictures of the guide, drawn from the code and from kept results."""

from __future__ import annotations

import io
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from _pages import facts
from declip.losses import Hinge, Tobit

INK, GREY = "#222222", "#6b6b6b"
BLUE, ORANGE, GREEN, PINK = "#0072B2", "#D55E00", "#009E73", "#CC79A7"
STYLE: dict[Any, Any] = {
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.titlelocation": "left",
    "axes.titlesize": 10.5,
    "font.size": 9.5,
    "legend.frameon": False,
    "savefig.facecolor": "white",
    "svg.hashsalt": "declip",
    "text.color": INK,
}


@contextmanager
def drawing(width: float, height: float) -> Iterator[Any]:
    from matplotlib import rc_context
    from matplotlib.figure import Figure

    with rc_context(STYLE):
        yield Figure(figsize=(width, height), layout="constrained")


def svg(figure: Any) -> str:
    file = io.StringIO()
    figure.savefig(file, format="svg", metadata={"Date": None})
    return file.getvalue()


def pictures() -> dict[str, str]:
    return {"loss.svg": loss(), "cells.svg": cells(), "treatments.svg": treatments()}


def cells() -> str:
    """What is known of a cell, as an interval on the line."""
    kinds = [
        ("exact: 3", 3, 3),
        ("at the ceiling: 5 or more", 5, np.inf),
        ("at the floor: 1 or less", -np.inf, 1),
        ("a range: 2 to 4", 2, 4),
        ("missing: not stored", np.nan, np.nan),
    ]
    with drawing(6.4, 2.5) as figure:
        ax = figure.subplots()
        for i, (_, low, high) in enumerate(kinds):
            ax.plot([-0.6, 7.6], [-i, -i], color="0.85", lw=1, zorder=0)
            ends = max(low, -0.5), min(high, 7.5)
            ax.plot(ends, (-i, -i), color=BLUE, lw=5, solid_capstyle="butt")
            for end in {low, high}:
                if np.isfinite(end):
                    ax.plot(end, -i, "o", color=BLUE, ms=8)
            for end, marker in ((low, "<"), (high, ">")):
                if np.isinf(end):
                    ax.plot(np.clip(end, -0.55, 7.55), -i, marker, color=BLUE, ms=9)
        ax.set_yticks(-np.arange(len(kinds)), [name for name, _, _ in kinds])
        ax.set(xlim=(-0.9, 7.9), xlabel="true value of the cell")
        ax.spines["left"].set_visible(False)
        ax.tick_params(axis="y", length=0)
        return svg(figure)


def loss() -> str:
    """The loss of a cell at the ceiling 5, by each treatment."""
    x = np.linspace(2.5, 8, 400)
    low = np.full_like(x, 5.0)
    hinge = Hinge().cells(x, low, np.full_like(x, np.inf)).value
    with drawing(7.2, 3.1) as figure:
        axes = figure.subplots(1, 2, width_ratios=(1, 1))
        axes[0].plot(x, 0.5 * (x - 5) ** 2, color=GREY, ls="--", label="value: at face value")
        axes[0].plot(x, hinge, color=BLUE, lw=2, label="hinge")
        for scale, shade in ((0.5, 1.0), (1.0, 0.55)):
            tobit = Tobit(scale).cells(x, low, np.full_like(x, np.inf)).value
            axes[0].plot(x, tobit, color=ORANGE, alpha=shade, label=f"tobit, noise {scale:g}")
        axes[0].axvline(5, color="0.8", lw=1, zorder=0)
        axes[0].set(ylim=(-0.1, 3.2), xlabel="prediction", title="Loss of a cell at the ceiling 5")
        axes[1].plot(x, np.maximum(x, 5), color=BLUE, lw=2)
        for scale, shade in ((0.5, 1.0), (1.0, 0.55)):
            restored = Tobit(scale).expected(x, low, np.full_like(x, np.inf))
            axes[1].plot(x, restored, color=ORANGE, alpha=shade)
        axes[1].axhline(5, color="0.8", lw=1, zorder=0)
        axes[1].set(ylim=(4.5, 8), xlabel="prediction", title="Value that the cell is restored to")
        figure.legend(loc="outside lower center", ncols=4, fontsize=8.5)
        return svg(figure)


def treatments() -> str:
    """Error of the clipped cells of real tables, by each treatment (experiments/tables.py)."""
    return _treatments(facts.means("tables", ("table", "quantile")))


def _treatments(rows: list[dict[str, Any]]) -> str:
    names = ("value", "missing", "hinge", "tobit")
    colours = dict(zip(names, ("0.6", PINK, BLUE, ORANGE), strict=True))
    with drawing(7.2, 3.0) as figure:
        ax = figure.subplots()
        for i, row in enumerate(rows):
            left = row["left at the limit"]
            for name, colour in colours.items():
                ax.plot(row[name] / left, -i, "o", color=colour, ms=7, alpha=0.9)
        for name, colour in colours.items():
            ax.plot([], [], "o", color=colour, label=name)
        ax.axvline(1, color="0.6", lw=1, ls="--")
        labels = [f"{row['table']}, {row['quantile']:g}" for row in rows]
        ax.set_yticks(-np.arange(len(rows)), labels)
        ax.set(xlim=(0, 1.05), xlabel="error of the clipped cells; 1 is leaving them at the limit")
        ax.legend(loc="center left", bbox_to_anchor=(0.02, 0.5))
        ax.spines["left"].set_visible(False)
        ax.tick_params(axis="y", length=0)
        return svg(figure)
