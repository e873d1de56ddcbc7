"""The main job on a small example: ``declip demo [folder]``.

A simulated laboratory panel (`declip.datasets.load_assay`) has cells below the detection limit of
their analyte, cells above its upper limit, and gaps. `run` writes it as a file with ``<`` and ``>``
cells, restores that file as a user would, and compares with the truth, which a simulation knows.

`main` is an illustration of one method on the same panel. Concentrations multiply, so the table is
low rank in logarithms, and the limits are taken to logarithms with it. The measurements are noisy,
which calls for ``clipped="tobit"``. Offsets carry the level of each analyte; two factors and
alpha = 0.1 are what ten-fold hiding of exact cells prefers (of 1 to 4 factors and alpha from 0.01
to 1), without a look at the truth.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

import declip
from declip.datasets import Assay, load_assay
from declip.estimators import FroCMC
from declip.intervals import Intervals
from declip.io import read_table, write_table
from declip.report import write_cells, write_report

__all__ = ["main", "restore_assay", "run"]

PICTURE = "declip-demo.png"
_BELOW, _ABOVE = "#0072B2", "#D55E00"  # blue and vermilion of the palette of Okabe and Ito
_SHOWN = 4  # cells printed on each side


@dataclass(frozen=True, eq=False)
class Restoration:
    """A panel, its restored concentrations, and which of its cells were hidden."""

    assay: Assay
    restored: NDArray[np.float64]
    below: NDArray[np.bool_]
    above: NDArray[np.bool_]
    missing: NDArray[np.bool_]
    model: FroCMC

    @property
    def clipped(self) -> NDArray[np.bool_]:
        """Cells at a limit."""
        return self.below | self.above

    def error(self, values: NDArray[np.float64], cells: NDArray[np.bool_]) -> float:
        """Return the root mean squared error of the logarithms at some cells."""
        ratio = values[cells] / self.assay.truth[cells]
        return float(np.sqrt(np.mean(np.log(ratio) ** 2)))


def run(folder: Path, *, illustration: bool = False) -> dict[str, Path]:
    """Restore the panel from a file, and leave table, list of cells and report in a folder."""
    folder.mkdir(parents=True, exist_ok=True)
    names = {"input": "assay.csv", "table": "assay-restored.csv", "cells": "assay-cells.csv"}
    paths = {name: folder / file for name, file in names.items()}
    paths["report"] = folder / "assay-report.html"
    assay = load_assay()
    write_table(_reported(assay), paths["input"], overwrite=True)
    table = read_table(paths["input"])
    result = declip.restore(table.intervals, log=True)
    write_table(result.table, paths["table"], like=table, overwrite=True)
    write_cells(result, paths["cells"], overwrite=True)
    write_report(result, paths["report"], source=paths["input"], overwrite=True)
    print(_story(assay, result))
    if illustration:
        paths["picture"] = folder / PICTURE
        draw(restore_assay(), paths["picture"])
    print("\n".join(f"{name:<9}{path.resolve()}" for name, path in paths.items()))
    return paths


def _reported(assay: Assay) -> Intervals:
    """Return the panel as a laboratory reports it, with its labels."""
    cells = Intervals.from_table(assay.table, assay.ceiling, assay.floor)
    rows, cols = (np.array(x, dtype=object) for x in (assay.sample_ids, assay.analyte_names))
    return Intervals(cells.shape, cells.by_row, rows, cols)


def _story(assay: Assay, result: Any) -> str:
    clipped = (assay.table == assay.floor) | (assay.table == assay.ceiling)
    left, restored = (
        np.exp(np.sqrt(np.mean(np.log(values[clipped] / assay.truth[clipped]) ** 2)))
        for values in (assay.table, np.asarray(result.table))
    )
    return (
        "A laboratory panel with cells such as <0.5 and >200. It is simulated, so the truth is "
        f"known.\n\n{str(result).rstrip()}\n\n"
        f"Typical factor between the {clipped.sum()} clipped cells and the truth: "
        f"{left:.2f} left at the limit, {restored:.2f} restored.\n"
    )


def restore_assay() -> Restoration:
    """Restore the panel that ships with declip."""
    assay = load_assay()
    with np.errstate(divide="ignore"):  # no detection limit is 0, and -inf in logarithms
        floor, ceiling = np.log(assay.floor), np.log(assay.ceiling)
    model = FroCMC(
        n_components=2,
        floor=floor,
        ceiling=ceiling,
        clipped="tobit",
        alpha=0.1,
        bias=True,
        random_state=0,
    )
    return Restoration(
        assay=assay,
        restored=np.exp(model.fit_transform(np.log(assay.table))),
        below=assay.table == assay.floor,
        above=assay.table == assay.ceiling,
        missing=np.isnan(assay.table),
        model=model,
    )


def page(result: Restoration) -> str:
    """Return the outcome in words and figures."""
    assay, n = result.assay, result.assay.table.size
    left, restored = (result.error(x, result.clipped) for x in (assay.table, result.restored))
    counts = [
        (result.below, "below the detection limit of their analyte"),
        (result.above, "above its upper limit"),
        (result.missing, "missing"),
    ]
    lines = [
        "A simulated laboratory panel: "
        f"{len(assay.sample_ids)} samples, {len(assay.analyte_names)} analytes.",
        *(f"{m.sum():6d} of {n} cells {what} ({m.mean():.0%})" for m, what in counts),
        "",
        f"{2 * _SHOWN} of the clipped cells, drawn at random (concentrations):",
        "",
        f"{'sample':>12} {'analyte':>11} {'reported':>10} {'restored':>9} {'truth':>9}",
        *_cell_lines(result, result.below, "<"),
        *_cell_lines(result, result.above, ">"),
        "",
        f"How far the {result.clipped.sum()} clipped cells are from the truth (typical factor):",
        f"  left at the limit  {np.exp(left):.2f}",
        f"  restored           {np.exp(restored):.2f}",
        f"In logarithms the error is {1 - restored / left:.0%} smaller.",
    ]
    return "\n".join(lines)


def _cell_lines(result: Restoration, cells: NDArray[np.bool_], sign: str) -> list[str]:
    assay = result.assay
    where = np.argwhere(cells)
    chosen = np.random.default_rng(0).choice(len(where), _SHOWN, replace=False)
    return [
        f"{assay.sample_ids[i]:>12} {assay.analyte_names[j]:>11} "
        f"{f'{sign} {assay.table[i, j]:.4g}':>10} "
        f"{result.restored[i, j]:9.3g} {assay.truth[i, j]:9.3g}"
        for i, j in where[np.sort(chosen)]
    ]


def draw(result: Restoration, path: Path) -> None:
    """Save the picture: the panel as reported, restored and true; clipped cells against truth."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(13, 7), layout="constrained")
    FigureCanvasAgg(figure)
    subfigures: Any = figure.subfigures(1, 2, width_ratios=(1.35, 1))
    panels, right = subfigures
    _draw_panels(panels, result)
    _draw_scatter(right.subplots(), result)
    figure.savefig(path, dpi=130, facecolor="white")


def _draw_panels(figure: Any, result: Restoration) -> None:
    assay = result.assay
    level = np.nanmedian(assay.table, axis=0)
    samples = np.argsort(result.model.row_factors_[:, 0])
    analytes = np.argsort(result.model.components_[0])
    reach = float(np.abs(np.log2(assay.truth / level)).max())
    titles = {
        "As reported: clipped at the limits (▼ ▲), gaps in grey": assay.table,
        "Restored by declip": result.restored,
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
    for cells, marker in ((result.below, "v"), (result.above, "^")):
        y, x = np.nonzero(cells[np.ix_(samples, analytes)].T)
        axes[0].scatter(x, y, s=16, marker=marker, c="black", linewidths=0)
    axes[-1].set_xticks([])
    axes[-1].set_xlabel(f"{len(samples)} samples, ordered by the first factor")
    bar = figure.colorbar(image, ax=axes, aspect=45, pad=0.015)
    ticks = [t for t in range(-10, 11, 2) if abs(t) <= reach]
    bar.set_ticks(ticks, labels=[f"{2**t}" if t >= 0 else f"1/{2**-t}" for t in ticks])
    bar.set_label("concentration, in units of the analyte's median")


def _draw_scatter(ax: Any, result: Restoration) -> None:
    assay = result.assay
    limit = np.where(result.below, assay.floor, assay.ceiling)
    ratios = [assay.truth / limit, result.restored / limit]
    low, high = (f([r[result.clipped] for r in ratios]) for f in (np.min, np.max))
    ends = np.array([low / 1.15, high * 1.15])
    ax.plot(ends, ends, color="0.3", lw=1.2, zorder=1)
    ax.axhline(1, color="0.3", lw=1.2, ls=(0, (5, 3)), zorder=1)
    for cells, marker, colour, side in (
        (result.below, "v", _BELOW, "below the detection limit"),
        (result.above, "^", _ABOVE, "above the upper limit"),
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
    ax.annotate(
        *("left at the limit", (ends[0], 1)),
        **{"xytext": (6, 5), "textcoords": "offset points", "color": "0.3", "fontsize": 9},
    )
    ax.annotate(
        *("restored = truth", (ends[0] * 1.15, ends[0] * 1.15)),
        **{"xytext": (10, 0), "textcoords": "offset points", "color": "0.3", "fontsize": 9},
    )
    ax.legend(loc="lower right", frameon=True, fontsize=9)


def _no_ticks() -> Any:
    from matplotlib.ticker import NullLocator

    return NullLocator()


def main(argv: Sequence[str] | None = None) -> None:
    """Restore the panel, print the outcome and save the picture."""
    parser = argparse.ArgumentParser(
        prog="python -m declip.demo",
        description="Restore a simulated laboratory panel, print the outcome and save a picture.",
    )
    parser.add_argument(
        "folder", nargs="?", type=Path, default=Path(), help="where the picture goes"
    )
    folder = parser.parse_args(argv).folder
    folder.mkdir(parents=True, exist_ok=True)
    result = restore_assay()
    print(page(result))
    path = (folder / PICTURE).resolve()
    draw(result, path)
    print(f"\nPicture: {path}")


if __name__ == "__main__":
    main()
