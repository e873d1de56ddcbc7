"""The pictures of a report."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
from markupsafe import Markup
from numpy.typing import NDArray

from declip.report.ink import INK, drawing, svg
from declip.report.view import Column, View

__all__ = ["draw_columns", "draw_histograms", "draw_map", "draw_reclip", "use_logs"]

_MAP_ROWS, _MAP_COLS = 240, 160  # cells drawn one by one; larger tables are drawn in blocks
_ACROSS = 4
_MOST_POINTS = 400
_BINS = 24
_MOSTLY = 0.3


def use_logs(column: Column) -> bool:
    """Tell whether a column is better drawn on a logarithmic axis."""
    seen = np.concatenate([column.value, column.reported])
    seen = seen[np.isfinite(seen)]
    return bool(seen.size and seen.min() > 0 and seen.max() / seen.min() > 20)


def draw_map(view: View) -> Markup:
    """Draw the table: what was clipped, and what was missing."""
    shares = _block_shares(view)
    n, m = shares["limit"].shape
    height = float(np.clip(0.035 * n, 1.6, 5.5))
    with drawing(9.2, height + 0.7) as figure:
        ax = figure.subplots()
        for name, share in shares.items():
            ax.imshow(_shade(name, share), aspect="auto", interpolation="none", extent=(0, m, n, 0))
        _map_labels(ax, view, n, m)
        ax.set_ylabel(f"{view.shape[0]} rows")
        figure.legend(handles=_map_keys(shares), loc="outside upper right", ncols=4)
        return svg(figure, "Map of the table: clipped and missing cells", "map")


_MAP_COLOURS = {"limit": "#d55e00", "floor": "#0072b2", "range": "#8a5bb5", "missing": "#9aa3ad"}
_MAP_WORDS = {
    "limit": "above a limit",
    "floor": "below a limit",
    "range": "in a range",
    "missing": "missing",
}


def _block_shares(view: View) -> dict[str, NDArray]:
    """Return the share of cells of each kind, cell by cell or in blocks of a large table."""
    n, m = (min(size, most) for size, most in zip(view.shape, (_MAP_ROWS, _MAP_COLS), strict=True))
    side = view.cells.by_row
    exact = _counts(side.exact_rows(), side.exact_idx, view.shape, (n, m))
    kinds = {
        "limit": np.isposinf(side.upper),
        "floor": np.isneginf(side.lower),
        "range": np.isfinite(side.lower) & np.isfinite(side.upper),
    }
    counts = {
        name: _counts(side.censored_rows()[at], side.censored_idx[at], view.shape, (n, m))
        for name, at in kinds.items()
    }
    rows, cols = (
        np.bincount(np.arange(a) * b // a) for a, b in zip(view.shape, (n, m), strict=True)
    )
    size = np.outer(rows, cols)
    counts["missing"] = size - exact - sum(counts.values())
    return {name: count / size for name, count in counts.items()}


def _counts(
    rows: NDArray, cols: NDArray, shape: tuple[int, int], blocks: tuple[int, int]
) -> NDArray:
    r, c = (
        x.astype(np.int64) * b // a for x, a, b in zip((rows, cols), shape, blocks, strict=True)
    )
    return np.bincount(r * blocks[1] + c, minlength=blocks[0] * blocks[1]).reshape(blocks)


def _shade(name: str, share: NDArray) -> NDArray:
    from matplotlib.colors import to_rgb

    image = np.zeros((*share.shape, 4))
    image[..., :3] = to_rgb(_MAP_COLOURS[name])
    image[..., 3] = share * (0.45 if name == "missing" else 1.0)
    return image


def _map_keys(shares: dict[str, NDArray]) -> list[Any]:
    from matplotlib.patches import Patch

    return [
        Patch(color=_MAP_COLOURS[name], alpha=0.45 if name == "missing" else 1, label=words)
        for name, words in _MAP_WORDS.items()
        if shares[name].any()
    ]


def _map_labels(ax: Any, view: View, n: int, m: int) -> None:
    ax.set(xlim=(0, m), ylim=(n, 0), yticks=[])
    ax.grid(False)
    for side in ("top", "right"):
        ax.spines[side].set_visible(True)
    if m == view.shape[1] and m <= 40:
        names = [_short(name, 14) for name in view.col_names]
        ax.set_xticks(
            np.arange(m) + 0.5,
            names,
            rotation=0 if m <= 8 else 40,
            ha="center" if m <= 8 else "right",
        )
        for j in range(1, m):
            ax.axvline(j, color=INK["line"], lw=0.4)
    else:
        ax.set_xticks([])
        ax.set_xlabel(f"{view.shape[1]} columns")


def _short(name: str, most: int) -> str:
    name = " ".join(name.split())
    return name if len(name) <= most else name[: most - 1] + "…"


def _panels(figure: Any, count: int) -> list[Any]:
    rows = -(-count // _ACROSS)
    axes = np.atleast_1d(figure.subplots(rows, min(count, _ACROSS), squeeze=False)).ravel()
    for ax in axes[count:]:
        ax.remove()
    return list(axes[:count])


def _size(count: int, row_height: float) -> tuple[float, float]:
    return 9.2 if count >= _ACROSS else 2.3 * count + 0.6, row_height * -(-count // _ACROSS) + 0.5


def draw_histograms(view: View, columns: list[Column]) -> Markup:
    """Draw what was reported: exact values, clipped ones piled at their limit."""
    with drawing(*_size(len(columns), 1.55)) as figure:
        for ax, column in zip(_panels(figure, len(columns)), columns, strict=True):
            _draw_histogram(ax, column)
        figure.legend(handles=_keys(("exact", "limit")), loc="outside upper right", ncols=2)
        return svg(figure, "Histograms of the reported values, with limits", "hist")


def _draw_histogram(ax: Any, column: Column) -> None:
    reported = column.reported
    known = reported[np.isfinite(reported)]
    edges = _edges(known, use_logs(column))
    exact = column.known_lower == column.known_upper
    piles = [reported[exact], reported[column.clipped]]
    ax.hist(piles, edges, stacked=True, color=[INK["exact"], INK["limit"]], lw=0)
    for side in ("ceiling", "floor"):
        for limit in column.limits(side):
            ax.axvline(limit, color=INK["limit"], lw=1.1, ls=(0, (3, 2)))
    _finish(ax, column, axis="x")
    ax.set_yticks([])
    ax.spines["left"].set_visible(False)


def _edges(values: NDArray, logs: bool) -> NDArray:
    low, high = (values.min(), values.max()) if values.size else (0.0, 1.0)
    if not low < high:
        low, high = low - max(abs(low), 1) * 0.5, high + max(abs(high), 1) * 0.5
        return np.linspace(low, high, 4)
    return np.geomspace(low, high, _BINS + 1) if logs else np.linspace(low, high, _BINS + 1)


def draw_columns(view: View, columns: list[Column]) -> Markup:
    """Draw each column in order of its values: exact cells, restored ones with their bands."""
    with drawing(*_size(len(columns), 1.95)) as figure:
        for ax, column in zip(_panels(figure, len(columns)), columns, strict=True):
            _draw_sorted(ax, column)
        keys = _keys(("exact", "restored", "filled", "undetermined"), points=True)
        figure.legend(handles=keys, loc="outside upper right", ncols=len(keys))
        return svg(figure, "Restored columns, cells in order of their values", "cols")


def _draw_sorted(ax: Any, column: Column) -> None:
    order = np.argsort(column.value, kind="stable")
    order = order[np.isfinite(column.value[order])]
    filled = column.flag[order] == "filled"
    if filled.mean() > _MOSTLY:  # of a sparse table, what was seen
        order = order[~filled]
    if len(order) > _MOST_POINTS:
        order = order[np.linspace(0, len(order) - 1, _MOST_POINTS).astype(int)]
    x, flag = np.arange(len(order)), column.flag[order]
    for side in ("ceiling", "floor"):
        for limit in column.limits(side):
            ax.axhline(limit, color=INK["limit"], lw=1, ls=(0, (3, 2)), zorder=1)
    banded = (flag != "exact") & np.isfinite(column.low[order]) & np.isfinite(column.high[order])
    ax.vlines(
        x[banded],
        column.low[order][banded],
        column.high[order][banded],
        color=[INK[name] if name in INK else INK["soft"] for name in flag[banded]],
        lw=1,
        alpha=0.35,
        zorder=2,
    )
    size = 9 if len(order) <= 200 else 4
    for name in ("exact", "filled", "restored", "undetermined"):
        at = flag == name
        ax.scatter(x[at], column.value[order][at], s=size, color=INK[name], lw=0, zorder=3)
    ax.set_xticks([])
    ax.spines["bottom"].set_visible(False)
    _finish(ax, column, axis="y")


def _finish(ax: Any, column: Column, axis: str) -> None:
    from matplotlib.ticker import LogLocator, MaxNLocator, NullLocator

    which = ax.xaxis if axis == "x" else ax.yaxis
    if use_logs(column):
        (ax.set_xscale if axis == "x" else ax.set_yscale)("log")
        which.set_major_locator(LogLocator(numticks=5))
        which.set_minor_locator(NullLocator())
        which.set_major_formatter(lambda value, _: f"{value:g}")
    else:
        which.set_major_locator(MaxNLocator(4))
    ax.grid(axis=axis)
    ax.set_title(_short(column.name, 24), color=INK["ink"])
    if axis == "y":
        share = column.clipped.mean()
        ax.set_xlabel(f"{share:.0%} clipped", fontsize=8)


def _keys(names: tuple[str, ...], points: bool = False) -> list[Any]:
    from matplotlib.lines import Line2D
    from matplotlib.patches import Patch

    if not points:
        words = {"limit": "reported at a limit"}
        return [Patch(color=INK[name], label=words.get(name, name)) for name in names]
    marks = [Line2D([], [], color=INK[name], marker="o", ms=4, lw=0, label=name) for name in names]
    dashed = Line2D([], [], color=INK["limit"], lw=1, ls=(0, (3, 2)), label="limit")
    return [*marks, dashed]


def draw_reclip(reclip: Any) -> Markup | None:
    """Draw the reclip test, if it judged any cell."""
    if reclip is None or not getattr(reclip, "n_cells", 1):
        return None
    with drawing(9.2, 5.4) as figure:
        ax = figure.subplots()
        reclip.plot(ax)
        text = svg(figure, "Reclip test: restored against true distance", "reclip")
    return Markup(re.sub(r"#([0-9a-f]{2})\1\1\b", _grey, text))


def _grey(found: re.Match[str]) -> str:
    """Return the colour of the page for a fixed grey: paper, lines or words."""
    light = int(found[1], 16)
    return f"var(--{'paper' if light == 255 else 'line' if light > 160 else 'soft'})"
