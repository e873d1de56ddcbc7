"""Pictures of a diagnosis."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from declip.diagnostics.coverage import Coverage
from declip.diagnostics.determination import weakest
from declip.diagnostics.fitted import FittedChecks
from declip.extras import needs
from declip.intervals import Intervals

with needs("report"):
    from matplotlib.colors import to_rgb
    from matplotlib.figure import Figure

__all__ = ["draw"]

# Vermilion and blue of Okabe and Ito for what is clipped; pale for the rest
_EXACT, _ABOVE, _BELOW, _MISSING = "#A9D3EF", "#D55E00", "#0072B2", "#EFEFEF"
_PIXELS = 300  # of the clip map, at most, on each side
_POINTS = 5_000  # cells drawn in a scatter, at most


def draw(coverage: Coverage, intervals: Intervals, fit: FittedChecks | None) -> Figure:
    """Draw the clip map, and what is known of rows, columns and cells."""
    figure = Figure(figsize=(14 if fit else 10, 4.6), layout="constrained")
    axes = figure.subplots(1, 3 if fit else 2)
    _clip_map(axes[0], coverage, intervals)
    if fit is None:
        _exact_counts(axes[1], coverage)
    else:
        _eigenvalues(axes[1], coverage, fit)
        _sd(axes[2], intervals, fit)
    return figure


def _clip_map(ax: Any, coverage: Coverage, intervals: Intervals) -> None:
    shares, tiles = _shares(intervals)
    colours = (_MISSING, _EXACT, _ABOVE, _BELOW)
    picture = np.einsum("kij,kc->ijc", _strengthened(shares), [to_rgb(c) for c in colours])
    n_rows, n_cols = coverage.shape
    ax.imshow(picture, aspect="auto", interpolation="nearest", extent=(0, n_cols, n_rows, 0))
    title = (
        "Clip map" if tiles == (1, 1) else f"Clip map (a point is {tiles[0]} x {tiles[1]} cells)"
    )
    ax.set_title(title, loc="left", fontsize=11)
    ax.set(xlabel="column", ylabel="row")
    names = ("missing", "exact", "at a ceiling", "at a floor")
    for colour, name in zip(colours, names, strict=True):
        ax.plot([], [], "s", color=colour, markeredgecolor="0.6", label=name)
    ax.legend(loc="upper center", bbox_to_anchor=(0.5, -0.13), ncols=4, frameon=False, fontsize=9)


def _shares(intervals: Intervals) -> tuple[NDArray[np.float64], tuple[int, int]]:
    """Return the shares of missing, exact, high and low cells in each tile, and the tile's size."""
    n_rows, n_cols = intervals.shape
    tile = -(-n_rows // _PIXELS), -(-n_cols // _PIXELS)
    shape = -(-n_rows // tile[0]), -(-n_cols // tile[1])
    side = intervals.by_row
    above = side.right_censored
    rows, cols = side.censored_rows(), side.censored_idx
    kinds = [
        (side.exact_rows(), side.exact_idx),
        (rows[above], cols[above]),
        (rows[~above], cols[~above]),
    ]
    size = np.outer(_lengths(n_rows, tile[0]), _lengths(n_cols, tile[1]))
    counts = [
        np.bincount(i // tile[0] * shape[1] + j // tile[1], minlength=shape[0] * shape[1])
        for i, j in kinds
    ]
    shares = np.array([c.reshape(shape) / size for c in counts])
    return np.concatenate([1 - shares.sum(axis=0, keepdims=True), shares]), tile


def _strengthened(shares: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the shares with the fullest tile at full strength, so that sparse tables show."""
    observed = 1 - shares[0]
    stretch = np.sqrt(observed / max(float(observed.max()), 1e-300)) / np.where(
        observed, observed, 1
    )
    seen = shares[1:] * stretch
    return np.concatenate([1 - seen.sum(axis=0, keepdims=True), seen])


def _lengths(n: int, tile: int) -> NDArray[np.int64]:
    return np.diff(np.append(np.arange(0, n, tile), n))


def _exact_counts(ax: Any, coverage: Coverage) -> None:
    for counts, colour in ((coverage.rows, _ABOVE), (coverage.cols, _BELOW)):
        share = _rank_axis(len(counts))
        ax.plot(share, np.sort(counts.exact), color=colour, label=f"{counts.axis}s")
    rank = coverage.largest_rank()
    ax.axhline(rank, color="0.4", lw=1, ls="--")
    ax.annotate(f"rank {rank}", (1, rank), ha="right", va="bottom", color="0.3", fontsize=9)
    ax.set_title("Exact cells of each row and column", loc="left", fontsize=11)
    ax.set(xlabel="share of rows or columns", ylabel="exact cells", yscale="symlog", xlim=(0, 1))
    ax.set_ylim(bottom=0)
    ax.legend(frameon=False)


def _eigenvalues(ax: Any, coverage: Coverage, fit: FittedChecks) -> None:
    found = fit.determination
    n_rows, n_cols = coverage.shape
    sides = (
        ("rows", found.row_eigenvalues, weakest(n_cols), _ABOVE),
        ("columns", found.col_eigenvalues, weakest(n_rows), _BELOW),
    )
    for name, values, least, colour in sides:
        share, shown = _rank_axis(len(values)), np.maximum(np.sort(values), 1e-8)
        ax.plot(share, shown, color=colour, label=f"{name}: {(values < least).sum()} below")
        ax.axhline(least, color=colour, lw=1, ls="--")
    ax.set_title("Determined rows and columns", loc="left", fontsize=11)
    ax.set(
        xlabel="share of rows or columns",
        ylabel="smallest eigenvalue (dashed: not determined below)",
        yscale="log",
        xlim=(0, 1),
        ylim=(0.7e-8, 1.5),
    )
    ax.legend(frameon=False, loc="lower right")


def _sd(ax: Any, intervals: Intervals, fit: FittedChecks) -> None:
    shown = np.arange(len(fit.sd))
    if len(shown) > _POINTS:
        shown = np.random.default_rng(0).choice(len(fit.sd), _POINTS, replace=False)
    good = fit.in_determined
    above = intervals.by_row.right_censored
    for kind, colour, marker, name in (
        (good & above, _ABOVE, "^", "at a ceiling"),
        (good & ~above, _BELOW, "v", "at a floor"),
        (~good, "0.3", "x", "not determined"),
    ):
        some = shown[kind[shown]]
        if len(some):
            value, sd = fit.residuals.restored[some], np.maximum(fit.sd[some], 1e-300)
            look = {"s": 12, "marker": marker, "c": colour, "alpha": 0.5, "linewidths": 0.8}
            ax.scatter(value, sd, label=name, **look)
    ax.set_title("How sure the restored values are", loc="left", fontsize=11)
    ax.set(xlabel="restored value", ylabel="standard deviation, at least")
    if len(shown) and fit.uncertainty.sigma > 0:
        ax.set_yscale("log")
        ax.axhline(fit.uncertainty.sigma, color="0.4", lw=1, ls="--", label="noise")
    ax.legend(frameon=False, fontsize=9)


def _rank_axis(n: int) -> NDArray[np.float64]:
    return (np.arange(n) + 0.5) / n
