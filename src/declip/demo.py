"""The main job on a small example: ``declip demo [folder]``.

A simulated laboratory panel (`declip.datasets.load_assay`) has cells below the detection limit of
their analyte, cells above its upper limit, and gaps. `run` writes it as a file with ``<`` and ``>``
cells, restores that file as a user would, and compares with the truth, which a simulation knows.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

import declip
from declip.datasets import Assay, load_assay
from declip.intervals import Intervals
from declip.io import read_table, write_table
from declip.report import write_cells, write_report

__all__ = ["reported_assay", "run"]

_BELOW, _ABOVE = "#0072B2", "#D55E00"  # blue and vermilion of the palette of Okabe and Ito
_FILES = {
    "input": "assay.csv",
    "table": "assay-restored.csv",
    "cells": "assay-cells.csv",
    "report": "assay-report.html",
    "picture": "declip-demo.png",
}


def run(folder: Path, *, illustration: bool = False) -> dict[str, Path]:
    """Restore the panel from a file, and leave table, list of cells and report in a folder."""
    folder.mkdir(parents=True, exist_ok=True)
    paths = {name: folder / file for name, file in _FILES.items()}
    write_table(reported_assay(), paths["input"], overwrite=True)
    table = read_table(paths["input"])
    result = declip.restore(table.intervals, log=True)
    write_table(result.table, paths["table"], like=table, overwrite=True)
    write_cells(result, paths["cells"], overwrite=True)
    write_report(result, paths["report"], source=paths["input"], overwrite=True)
    assay, restored = load_assay(), np.asarray(result.table)
    print(_story(assay, restored, str(result).rstrip()))
    if illustration:
        draw(assay, restored, paths["picture"])
    else:
        del paths["picture"]
    print("\n".join(f"{name:<9}{path.resolve()}" for name, path in paths.items()))
    return paths


def reported_assay() -> Intervals:
    """Return the panel as a laboratory reports it, with its labels."""
    assay = load_assay()
    cells = Intervals.from_table(assay.table, assay.ceiling, assay.floor)
    rows, cols = (np.array(x, dtype=object) for x in (assay.sample_ids, assay.analyte_names))
    return Intervals(cells.shape, cells.by_row, rows, cols)


def _at_floor(assay: Assay) -> NDArray[np.bool_]:
    return np.equal(assay.table, assay.floor)


def _at_ceiling(assay: Assay) -> NDArray[np.bool_]:
    return np.equal(assay.table, assay.ceiling)


def _story(assay: Assay, restored: NDArray[np.float64], page: str) -> str:
    clipped = _at_floor(assay) | _at_ceiling(assay)
    left, now = (
        np.exp(np.sqrt(np.mean(np.log(values[clipped] / assay.truth[clipped]) ** 2)))
        for values in (assay.table, restored)
    )
    return (
        "A laboratory panel with cells such as <0.5 and >200. It is simulated, so the truth is "
        f"known.\n\n{page}\n\n"
        f"Typical factor between the {clipped.sum()} clipped cells and the truth: "
        f"{left:.2f} left at the limit, {now:.2f} restored.\n"
    )


def draw(assay: Assay, restored: NDArray[np.float64], path: Path) -> None:
    """Save the picture: the panel as reported, restored and true; clipped cells against truth."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(13, 7), layout="constrained")
    FigureCanvasAgg(figure)
    subfigures: Any = figure.subfigures(1, 2, width_ratios=(1.35, 1))
    panels, right = subfigures
    _draw_panels(panels, assay, restored)
    _draw_scatter(right.subplots(), assay, restored)
    figure.savefig(path, dpi=130, facecolor="white")


def _draw_panels(figure: Any, assay: Assay, restored: NDArray[np.float64]) -> None:
    level = np.nanmedian(assay.table, axis=0)
    height = np.log2(restored / level)
    samples = np.argsort(height.mean(axis=1))
    analytes = np.argsort(height.T @ height.mean(axis=1))
    reach = float(np.abs(np.log2(assay.truth / level)).max())
    titles = {
        "As reported: clipped at the limits (▼ ▲), gaps in grey": assay.table,
        "Restored by declip": restored,
        "Truth (the data are simulated)": assay.truth,
    }
    axes = figure.subplots(3, 1, sharex=True)
    for ax, (title, values) in zip(axes, titles.items(), strict=True):
        shown = np.log2(values / level)[np.ix_(samples, analytes)].T
        image = ax.imshow(
            shown, aspect="auto", cmap="RdBu_r", vmin=-reach, vmax=reach, interpolation="none"
        )
        ax.set_facecolor("0.75")
        ax.set_title(title, loc="left", fontsize=11)
        ax.set_yticks(range(len(analytes)), [assay.analyte_names[j][-2:] for j in analytes])
        ax.tick_params(labelsize=8, length=0)
        ax.set_ylabel("analyte")
    for cells, marker in ((_at_floor(assay), "v"), (_at_ceiling(assay), "^")):
        y, x = np.nonzero(cells[np.ix_(samples, analytes)].T)
        axes[0].scatter(x, y, s=16, marker=marker, c="black", linewidths=0)
    axes[-1].set_xticks([])
    axes[-1].set_xlabel(f"{len(samples)} samples, ordered by their mean")
    bar = figure.colorbar(image, ax=axes, aspect=45, pad=0.015)
    ticks = [t for t in range(-10, 11, 2) if abs(t) <= reach]
    bar.set_ticks(ticks, labels=[f"{2**t}" if t >= 0 else f"1/{2**-t}" for t in ticks])
    bar.set_label("concentration, in units of the analyte's median")


def _draw_scatter(ax: Any, assay: Assay, restored: NDArray[np.float64]) -> None:
    below, above = _at_floor(assay), _at_ceiling(assay)
    limit = np.where(below, assay.floor, assay.ceiling)
    ratios = [assay.truth / limit, restored / limit]
    low, high = (f([r[below | above] for r in ratios]) for f in (np.min, np.max))
    ends = np.array([low / 1.15, high * 1.15])
    ax.plot(ends, ends, color="0.3", lw=1.2, zorder=1)
    ax.axhline(1, color="0.3", lw=1.2, ls=(0, (5, 3)), zorder=1)
    for cells, marker, colour, side in (
        (below, "v", _BELOW, "below the detection limit"),
        (above, "^", _ABOVE, "above the upper limit"),
    ):
        x, y = (r[cells] for r in ratios)
        label = f"{cells.sum()} cells {side}"
        ax.scatter(
            x, y, s=34, marker=marker, c=colour, alpha=0.8, linewidths=0, label=label, zorder=2
        )
    ax.set(xscale="log", yscale="log", xlim=ends, ylim=ends, aspect="equal")
    for axis in (ax.xaxis, ax.yaxis):
        ticks = [t for t in (0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10) if ends[0] <= t <= ends[1]]
        axis.set_ticks(ticks, [f"{t:g}" for t in ticks])
        axis.set_minor_locator(_no_ticks())
    ax.set_xlabel("truth, in units of the cell's limit")
    ax.set_ylabel("restored, in units of the cell's limit")
    ax.set_title("The clipped cells: restored against true", loc="left", fontsize=11)
    ax.grid(color="0.92", zorder=0)
    words: dict[str, Any] = {"textcoords": "offset points", "color": "0.3", "fontsize": 9}
    ax.annotate("left at the limit", (ends[0], 1), xytext=(6, 5), **words)
    ax.annotate("restored = truth", (ends[0] * 1.15,) * 2, xytext=(10, 0), **words)
    ax.legend(loc="lower right", frameon=True, fontsize=9)


def _no_ticks() -> Any:
    from matplotlib.ticker import NullLocator

    return NullLocator()
