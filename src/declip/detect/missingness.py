"""Whether missing cells follow values: more of them where values are low, or high."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.stats import spearmanr

from declip.extras import needs
from declip.intervals import Intervals, face_value

__all__ = ["MissingTrend", "missing_trend"]

_SURE = 0.001  # chance of such a correlation without a trend
_CLEAR = 1.5  # how many times more cells are missing at one end than at the other
_FEWEST_ROWS, _FEWEST_MISSING = 20, 20
_BARS = 40  # characters
_AT_ONCE = 2**18  # cells
_Term = Callable[[NDArray, NDArray, NDArray], tuple[NDArray, NDArray]]


@dataclass(frozen=True, eq=False)
class MissingTrend:
    """How the share of missing cells goes with the values that are seen.

    Attributes
    ----------
    correlation, p_value : float
        Rank correlation of the share missing in a row with the level of the row, the mean of its
        cells in standard units of their columns; NaN for too few rows or missing cells.
    fifths : ndarray of shape (5,)
        Share missing in each fifth of the rows, from the lowest level to the highest.
    row_level, row_share : ndarray of shape (n_rows,)
        Level of each row, and share missing in it; NaN for a row of which nothing is seen.
    col_mean, col_share : ndarray of shape (n_cols,)
        Mean of each column, and share missing in it.
    """

    correlation: float
    p_value: float
    fifths: NDArray[np.float64]
    row_level: NDArray[np.float64] = field(repr=False)
    row_share: NDArray[np.float64] = field(repr=False)
    col_mean: NDArray[np.float64] = field(repr=False)
    col_share: NDArray[np.float64] = field(repr=False)

    @property
    def word(self) -> str:
        """What ``missing=`` may be worth a try: "low", "high" or "random"."""
        low, high = self.fifths[0], self.fifths[-1]
        if not self.p_value < _SURE or max(low, high) < _CLEAR * min(low, high):
            return "random"
        return "low" if self.correlation < 0 else "high"

    def plot(self) -> Any:
        """Draw the share missing against the level of rows and the mean of columns."""
        with needs("report"):
            from matplotlib.figure import Figure

        figure = Figure(figsize=(9, 3.6), layout="constrained")
        for ax, x, share, name in zip(
            figure.subplots(1, 2, sharey=True),
            (self.row_level, self.col_mean),
            (self.row_share, self.col_share),
            ("level of the row (standard units of its columns)", "mean of the column"),
            strict=True,
        ):
            ax.plot(x, 100 * share, "o", ms=3.5, alpha=0.5, color="#0072B2", mec="none")
            ax.set(xlabel=name, ylim=(-3, 103))
            ax.spines[["top", "right"]].set_visible(False)
        left, right = figure.axes
        edges = np.nanquantile(self.row_level, np.linspace(0, 1, 6))
        steps = left.stairs(100 * self.fifths, edges, baseline=None, color="#D55E00", lw=2)
        steps.set_label("fifths of the rows")
        left.legend(frameon=False, fontsize=9)
        left.set_ylabel("missing, %")
        left.set_title("Rows", loc="left", fontsize=11)
        right.set_title("Columns", loc="left", fontsize=11)
        return figure

    def __str__(self) -> str:
        if self.word == "random":
            return ""
        bars = [
            f"  {name:>7} {'#' * round(_BARS * share):<{_BARS}} {share:4.0%}"
            for name, share in zip(("lowest", "", "", "", "highest"), self.fifths, strict=True)
        ]
        return "\n".join([self.finding, *bars, self.advice])

    @property
    def finding(self) -> str:
        """What was found, in a sentence."""
        return (
            f"Missing cells follow {self.word} values: {self.fifths[0]:.0%} are missing in the "
            f"fifth of the rows with the lowest values, {self.fifths[-1]:.0%} in the highest "
            f"(rank correlation {self.correlation:.2f}, p = {self.p_value:.1g})."
        )

    @property
    def advice(self) -> str:
        """What may be done about it."""
        return (
            f"If values go missing because they are {self.word}, use missing={self.word!r}; "
            "missing='auto' lets held-out cells decide."
        )


def missing_trend(intervals: Intervals) -> MissingTrend:
    """Look at how the share of missing cells goes with the values that are seen.

    Examples
    --------
    >>> import numpy as np
    >>> from declip import Intervals
    >>> from declip.detect.missingness import missing_trend
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(100, 1)) + 0.5 * rng.normal(size=(100, 8))
    >>> X[X < -0.3] = np.nan
    >>> missing_trend(Intervals.from_table(X)).word
    'low'
    """
    (n_rows, n_cols), side = intervals.shape, intervals.by_row
    exact, censored = (np.bincount(c, None, n_cols) for c in (side.exact_idx, side.censored_idx))
    in_col = exact + censored
    in_row = np.diff(side.exact_ptr) + np.diff(side.censored_ptr)
    with np.errstate(invalid="ignore", divide="ignore"):
        mean = _summed(intervals, n_cols, lambda rows, cols, x: (cols, x)) / in_col
        square = _summed(intervals, n_cols, lambda rows, cols, x: (cols, (x - mean[cols]) ** 2))
        spread = np.sqrt(square / in_col)
        unit = np.where(spread > 0, spread, 1.0)
        score = _summed(intervals, n_rows, lambda rows, c, x: (rows, (x - mean[c]) / unit[c]))
        level = score / in_row
    share = np.where(in_row > 0, 1 - in_row / n_cols, np.nan)
    known, n_missing = in_row > 0, n_rows * n_cols - len(intervals)
    fifths, correlation, p_value = np.full(5, np.nan), np.nan, np.nan
    if known.sum() >= _FEWEST_ROWS and n_missing >= _FEWEST_MISSING and np.ptp(share[known]) > 0:
        correlation, p_value = map(float, spearmanr(level[known], share[known]))
        order = np.argsort(level[known], kind="stable")
        fifths = np.array([part.mean() for part in np.array_split(share[known][order], 5)])
    return MissingTrend(correlation, p_value, fifths, level, share, mean, 1 - in_col / n_rows)


def _summed(intervals: Intervals, size: int, term: _Term) -> NDArray[np.float64]:
    """Return sums over all cells, of terms that rows, columns and face values give, by index.

    Some cells at a time, so that a large table needs little room beside it.
    """
    side, sums = intervals.by_row, np.zeros(size)
    for rows, cols, lower, upper in (
        (side.exact_rows(), side.exact_idx, side.value, side.value),
        (side.censored_rows(), side.censored_idx, side.lower, side.upper),
    ):
        for k in range(0, len(cols), _AT_ONCE):
            some = slice(k, k + _AT_ONCE)
            value = face_value(lower[some], upper[some]).astype(np.float64)
            np.add.at(sums, *term(rows[some], cols[some], value))
    return sums
