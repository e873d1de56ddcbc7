"""The figures of the page, as small PNG files."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from experiments.paper import limits, theory
from experiments.paper.summary import Result, averaged, clipping_rates, synthetic_errors
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

DPI = 110
GREY = "0.45"
COLOURS = {"Fro": "#0072B2", "Tr": "#D55E00", "DTr": "#009E73"}
# The paper's habit: solid for the proposed methods, dotted for the others.
LINES = {"CMC": "-", "MC": ":", "MCi": "--"}
MARKS = {"CMC": "o", "MC": "s", "MCi": "^"}


@contextmanager
def drawn(path: Path, width: float, height: float) -> Iterator[Figure]:
    figure = Figure(figsize=(width, height), layout="constrained")
    FigureCanvasAgg(figure)
    yield figure
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=DPI, facecolor="white", metadata={"Software": None})


def histograms(results: list[Result], path: Path) -> None:
    """Draw the shares of the ratings, the top of the scale marked."""
    with drawn(path, 8, 2.6) as figure:
        for ax, result in zip(
            figure.subplots(1, len(results), squeeze=False)[0], results, strict=True
        ):
            values = np.array(result["values"])
            top = values == result["ceiling"]
            ax.bar(values[~top], np.array(result["shares"])[~top], color=GREY)
            ax.bar(values[top], np.array(result["shares"])[top], color=COLOURS["Tr"])
            ax.set(title=result["settings"]["what"], xlabel="rating", xticks=values)
            ax.spines[["top", "right"]].set_visible(False)
        figure.axes[0].set_ylabel("share of the ratings")


def illustration(result: Result, path: Path) -> None:
    """Draw truth, what is seen, and what is restored, in one scale of colours."""
    titles = {"truth": "true", "seen": "observed: clipped at 10", "restored": "restored"}
    truth = np.array(result["truth"])
    U, _, Vt = np.linalg.svd(truth)
    order = np.ix_(np.argsort(U[:, 1]), np.argsort(Vt[1]))
    with drawn(path, 9.5, 2.7) as figure:
        axes = figure.subplots(1, 3)
        for ax, (name, title) in zip(axes, titles.items(), strict=True):
            image = ax.imshow(
                np.array(result[name])[order],
                vmin=0,
                vmax=truth.max(),
                aspect="auto",
                interpolation="none",
            )
            ax.set(title=title, xticks=[], yticks=[])
        bar = figure.colorbar(image, ax=axes, pad=0.01)
        bar.ax.axhline(10, color="white", lw=2)


def synthetic(results: list[Result], generator: str, path: Path) -> None:
    """Draw the errors against the clipping rate, as the paper's Figure 3."""
    panels = {"all_cells": "all cells", "unclipped_test_cells": "unclipped test cells"}
    rates = clipping_rates(results, "share_above")
    with drawn(path, 9.5, 3.9) as figure:
        for ax, (which, title) in zip(
            figure.subplots(1, 2, sharey=True), panels.items(), strict=True
        ):
            errors = synthetic_errors(results, which)
            for method in sorted({key[2] for key in errors}):
                family, kind = method.split("-")
                points = sorted(
                    (rates[generator, C].value, mean.value)
                    for (g, C, m), mean in errors.items()
                    if (g, m) == (generator, method)
                )
                if points:
                    look = {"color": COLOURS[family], "ls": LINES[kind], "marker": MARKS[kind]}
                    ax.plot(*zip(*points, strict=True), label=method, ms=4, lw=1.4, **look)
            ax.axhline(1e-2, color=GREY, lw=0.7)
            ax.set(title=title, xlabel="clipping rate (share of cells above C)", yscale="log")
            ax.spines[["top", "right"]].set_visible(False)
        figure.axes[0].set_ylabel("relative RMSE")
        figure.legend(
            *figure.axes[0].get_legend_handles_labels(), loc="outside right", frameon=False
        )


def varying(results: list[Result], path: Path) -> None:
    """Draw errors against the share of clipped cells, a panel for each kind of limit."""
    with drawn(path, 11, 2.9) as figure:
        axes = figure.subplots(1, len(limits.KINDS), sharey=True)
        for ax, kind in zip(axes, limits.KINDS, strict=True):
            mine = [r for r in results if r["settings"]["kind"] == kind]
            for method in limits.METHODS:
                means = averaged(mine, ("share",), lambda r: r["methods"][method]["all_cells"])  # noqa: B023
                points = sorted((share, mean.value) for (share,), mean in means.items())
                kind_of = method.split("-")[1]
                look = {"color": COLOURS["Fro"], "ls": LINES[kind_of], "marker": MARKS[kind_of]}
                if points:
                    ax.plot(*zip(*points, strict=True), label=method, ms=4, lw=1.4, **look)
            ax.set(title=kind, xlabel="share clipped", yscale="log")
            ax.spines[["top", "right"]].set_visible(False)
        axes[0].set_ylabel("relative RMSE, all cells")
        axes[0].legend(frameon=False, fontsize=8)


def phases(results: list[Result], path: Path) -> None:
    """Draw where matrices are recovered, and what the theory says of them."""
    points = [
        {**point, "observed": result["settings"]["observed"]}
        for result in results
        for point in result["points"]
    ]
    with drawn(path, 11, 3.3) as figure:
        axes = figure.subplots(1, 3, width_ratios=(1, 1, 1.25))
        for ax, name in zip(axes, ("Fro-CMC", "trace norm"), strict=False):
            image = _phase(ax, points, name)
        figure.colorbar(image, ax=axes[:2], label="share recovered", pad=0.01)
        _scatter(axes[2], points)


def _phase(ax: Any, points: list[dict[str, Any]], name: str) -> Any:
    clipped = sorted({p["clipped"] for p in points})
    observed = sorted({p["observed"] for p in points})
    share = np.full((len(observed), len(clipped)), np.nan)
    for i, p in enumerate(observed):
        for j, c in enumerate(clipped):
            here = [q for q in points if (q["observed"], q["clipped"]) == (p, c)]
            share[i, j] = np.mean([q["errors"][name] < theory.RECOVERED for q in here])
    image = ax.imshow(share, origin="lower", vmin=0, vmax=1, cmap="Greys_r", aspect="auto")
    ax.set_xticks(range(len(clipped)), [f"{c:g}" for c in clipped], fontsize=8)
    ax.set_yticks(range(len(observed)), [f"{p:g}" for p in observed], fontsize=8)
    title = {"Fro-CMC": "Fro-CMC, rank known"}.get(name, "least trace norm (Eq. 1)")
    ax.set(title=title, xlabel="share clipped", ylabel="share observed")
    return image


def _scatter(ax: Any, points: list[dict[str, Any]]) -> None:
    floor = 1e-9  # where zero margins are drawn
    for said, colour, mark in ((True, COLOURS["Fro"], "o"), (False, COLOURS["Tr"], "x")):
        here = [p for p in points if (p["errors"]["Fro-CMC"] < theory.RECOVERED) == said]
        ax.scatter(
            [p["nu_B"] for p in here],
            [max(p["margin"], floor) for p in here],
            c=colour,
            marker=mark,
            s=14,
            lw=0.9,
            label="recovered" if said else "not recovered",
        )
    ax.axvline(0.5, color=GREY, lw=0.8, ls=":")
    ax.set(title="Fro-CMC", xlabel="nu_B (the theorem asks for < 1/2)", yscale="log")
    ax.set_ylabel("identifiability margin (1e-9: zero)")
    ax.legend(frameon=False, fontsize=8, loc="center left")
    ax.spines[["top", "right"]].set_visible(False)
