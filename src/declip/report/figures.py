"""The figures of a report: the map of the table, small ones of its columns, the reclip test."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from markupsafe import Markup
from numpy.typing import NDArray

from declip.intervals import Intervals
from declip.report.ink import INK, drawing, svg
from declip.report.names import apart
from declip.report.scale import AxisScale, axis_scales
from declip.report.view import Column, View

__all__ = ["LONGEST", "Figure", "block_shares", "figures"]

LONGEST = 60  # characters of a name over a picture, or in a list
_SHOWN = 12  # columns drawn one by one
_WIDTHS = {"wide": 9.2, "narrow": 4.2}  # inches: one picture for each kind of screen
_PANEL = (2.3, 1.5)
_MAP_ROWS, _MAP_COLS = 240, 160  # cells drawn one by one; larger tables are drawn in blocks
_MOST_POINTS = 400
_MOSTLY = 0.3
_DASHED = (0, (3, 2))
_NAMED = {
    "wide": (40, 14),
    "narrow": (14, 12),
}  # columns up to which the map names them, and how long

_MAP_KEYS = {
    "ceiling": "above a limit",
    "floor": "below a limit",
    "range": "in a range",
    "missing": "missing",
}


class Panel(NamedTuple):
    """A small picture of one column, with what stands above and below it."""

    name: str
    picture: Markup
    words: str


class Figure(NamedTuple):
    """A figure of a report: all that the page shows of it.

    Attributes
    ----------
    name : str
        By which it is known in the page.
    section : str
        Where in the page it stands.
    caption : str
        What stands below it.
    keys : mapping
        What the colours mean; their names are those of the style of the page.
    pictures : mapping
        One picture for each width of a screen.
    panels : sequence of Panel
        Or one for each of some columns.
    """

    name: str
    section: str
    caption: str
    keys: Mapping[str, str] = {}
    pictures: Mapping[str, Markup] = {}
    panels: Sequence[Panel] = ()


def figures(view: View) -> list[Figure]:
    """Return the figures of a report, in order."""
    columns = _Columns(view)
    found = _map(view), _histograms(columns), _sorted(columns), _reclip(view.restoration.reclip)
    return [figure for figure in found if figure is not None]


class _Columns:
    """The columns that are drawn one by one, those with the most clipped cells."""

    def __init__(self, view: View) -> None:
        chosen = view.most_clipped(_SHOWN)
        self.numbers, self.columns = chosen, [view.column(j) for j in chosen]
        self.scales = axis_scales(self.columns, [view.in_logs(j) for j in chosen])
        self.all_clipped = len(chosen) == np.count_nonzero(view.clipped_by_column)

    def panels(self, draw: Callable[..., Markup]) -> list[Panel]:
        """Return a panel for each."""
        names = apart([column.name for column in self.columns], LONGEST)
        parts = zip(self.numbers, names, self.columns, self.scales, strict=True)
        return [Panel(name, draw(c, scale, j), _share(c)) for j, name, c, scale in parts]


def _share(column: Column) -> str:
    """Return how many of the cells of which anything is known are clipped."""
    clipped, measured = int(column.clipped.sum()), int(column.measured.sum())
    return f"{clipped} of {measured} measured at a limit" if measured else "nothing measured"


def _map(view: View) -> Figure:
    shares = block_shares(view.cells)
    keys = {name: words for name, words in _MAP_KEYS.items() if shares[name].any()}
    caption = "The table as it was read. Blank cells were measured."
    pictures = {width: _draw_map(view, shares, width) for width in _WIDTHS}
    return Figure("map", "clipped", caption, keys, pictures)


def _histograms(columns: _Columns) -> Figure:
    keys = {"exact": "exact", "limit": "reported at a limit", "dashed": "limit"}
    which = "clipped cells" if columns.all_clipped else "the most clipped cells"
    caption = f"Reported values of the columns with {which}."
    panels = columns.panels(_draw_histogram)
    return Figure("histograms", "clipped", caption, keys, panels=panels)


def _sorted(columns: _Columns) -> Figure:
    keys = {name: name for name in ("exact", "restored", "filled", "undetermined")}
    caption = (
        "Each column with its cells in order of their values. Before, every restored cell stood at "
        "the dashed line; bars are the bands in which the truth is expected."
    )
    panels = columns.panels(_draw_sorted)
    return Figure("columns", "restored", caption, keys | {"dashed": "limit"}, panels=panels)


def _reclip(reclip: Any) -> Figure | None:
    if reclip is None or not reclip.n_cells:
        return None
    hidden = f"{reclip.n_hidden:,}".replace(",", "\u2009")
    caption = (
        f"The limits were moved into the measured values; {hidden} of these were hidden so, "
        "restored and compared. Distances are in standard deviations of the column. Beyond the "
        "real limits the error is not known: that is extrapolation, and it grows with the distance."
    )
    pictures = {width: _draw_reclip(reclip, width) for width in _WIDTHS}
    return Figure("reclip", "trust", caption, pictures=pictures)


def _draw_map(view: View, shares: Mapping[str, NDArray], width: str) -> Markup:
    """Draw the table: what was clipped, and what was missing."""
    n, m = shares["ceiling"].shape
    height = float(np.clip(0.035 * n, 1.6, 5.5))
    with drawing(_WIDTHS[width], height + 0.7) as figure:
        ax = figure.subplots()
        for name, share in shares.items():
            ax.imshow(_shade(name, share), aspect="auto", interpolation="none", extent=(0, m, n, 0))
        _map_labels(ax, view, (n, m), width)
        return svg(figure, "Map of the table: clipped and missing cells", f"map-{width}")


# Those of the page's style in the light; a picture of points cannot take them from there.
_MAP_COLOURS = {"ceiling": "#d55e00", "floor": "#0072b2", "range": "#8a5bb5", "missing": "#9aa3ad"}


def block_shares(cells: Intervals) -> dict[str, NDArray]:
    """Return the share of cells of each kind, cell by cell or in blocks of a large table."""
    shape = cells.shape
    n, m = (min(size, most) for size, most in zip(shape, (_MAP_ROWS, _MAP_COLS), strict=True))
    side = cells.by_row
    exact = _counts(side.exact_rows(), side.exact_idx, shape, (n, m))
    kinds = {
        "ceiling": side.right_censored,
        "floor": side.left_censored,
        "range": ~(side.left_censored | side.right_censored),
    }
    counts = {
        name: _counts(side.censored_rows()[at], side.censored_idx[at], shape, (n, m))
        for name, at in kinds.items()
    }
    rows, cols = (np.bincount(np.arange(a) * b // a) for a, b in zip(shape, (n, m), strict=True))
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


def _map_labels(ax: Any, view: View, blocks: tuple[int, int], width: str) -> None:
    n, m = blocks
    ax.set(xlim=(0, m), ylim=(n, 0), yticks=[])
    ax.set_ylabel(f"{view.shape[0]} rows")
    ax.grid(False)
    for side in ("top", "right"):
        ax.spines[side].set_visible(True)
    most, length = _NAMED[width]
    if view.shape[1] > most:
        ax.set_xticks([])
        ax.set_xlabel(f"{view.shape[1]} columns")
        return
    few = m <= most // 5
    names = apart(view.col_names, length)
    ax.set_xticks(
        np.arange(m) + 0.5, names, rotation=0 if few else 45, ha="center" if few else "right"
    )
    for j in range(1, m):
        ax.axvline(j, color=INK["line"], lw=0.4)


def _draw_histogram(column: Column, scale: AxisScale, j: int) -> Markup:
    """Draw what was reported of a column: exact values, clipped ones piled at their limit."""
    reported = column.reported
    known = reported[np.isfinite(reported)]
    with drawing(*_PANEL, layout=None) as figure:
        ax = figure.add_axes((0.02, 0.17, 0.96, 0.8))
        edges = scale.edges(known)
        clipped, all_cells = (np.histogram(x, edges)[0] for x in (reported[column.clipped], known))
        below = all_cells - clipped
        ax.stairs(below, edges, fill=True, color=INK["exact"], lw=0)
        ax.stairs(all_cells, edges, baseline=below, fill=True, color=INK["limit"], lw=0)
        ax.vlines(edges[1:-1], 0, all_cells[:-1], color=INK["paper"], lw=0.8)
        for limit in column.limits:
            ax.axvline(limit, color=INK["limit"], lw=1.1, ls=_DASHED)
        scale.apply_to(ax, "x", (edges[0], edges[-1]))
        ax.set_yticks([])
        ax.spines["left"].set_visible(False)
        return svg(figure, f"Histogram of the reported values of {column.name}", f"hist-{j}")


def _draw_sorted(column: Column, scale: AxisScale, j: int) -> Markup:
    """Draw a column in order of its values: exact cells, restored ones with their bands."""
    order = _shown_cells(column)
    x, flag, value = np.arange(len(order)), column.flag[order], column.value[order]
    with drawing(*_PANEL, layout=None) as figure:
        ax = figure.add_axes((0.2, 0.03, 0.79, 0.94))
        for limit in column.limits:
            ax.axhline(limit, color=INK["limit"], lw=1, ls=_DASHED, zorder=1)
        low, high = (
            np.clip(end[order], scale.low, scale.high) for end in (column.low, column.high)
        )
        banded = (flag != "exact") & (low < high)
        colours = [INK[name] for name in flag[banded]]
        ax.vlines(x[banded], low[banded], high[banded], color=colours, lw=1, alpha=0.4, zorder=2)
        size = 9 if len(order) <= 200 else 4
        for name in ("exact", "filled", "restored", "undetermined"):
            at = flag == name
            ax.scatter(x[at], value[at], s=size, color=INK[name], lw=0, zorder=3)
        ax.set_xticks([])
        ax.spines["bottom"].set_visible(False)
        scale.apply_to(ax, "y")
        return svg(figure, f"Cells of {column.name} in order of their values", f"cells-{j}")


def _shown_cells(column: Column) -> NDArray:
    """Return the cells in order of their values: some of many, and of a sparse table the seen."""
    order = np.argsort(column.value, kind="stable")
    order = order[np.isfinite(column.value[order]) & (column.flag[order] != "")]
    filled = column.flag[order] == "filled"
    if filled.mean() > _MOSTLY:
        order = order[~filled]
    if len(order) > _MOST_POINTS:
        order = order[np.linspace(0, len(order) - 1, _MOST_POINTS).astype(int)]
    return order


def _draw_reclip(reclip: Any, width: str) -> Markup:
    with drawing(_WIDTHS[width], 0.45 * _WIDTHS[width] + 1.4) as figure:
        ax = figure.subplots()
        reclip.plot(ax)
        ax.set_title("")  # the page says it in words
        if width == "narrow":
            ax.set_xlabel("true distance beyond the moved limit")
        text = svg(figure, "Reclip test: restored against true distance", f"reclip-{width}")
    for colour, name in (("#0072b2", "filled"), ("#d55e00", "restored")):
        text = Markup(text.replace(colour, f"var(--{name})"))
    return Markup(re.sub(r"#([0-9a-f]{2})\1\1\b", _grey, text))


def _grey(found: re.Match[str]) -> str:
    """Return the colour of the page for a fixed grey: paper, lines or words."""
    light = int(found[1], 16)
    return f"var(--{'paper' if light == 255 else 'line' if light > 160 else 'soft'})"
