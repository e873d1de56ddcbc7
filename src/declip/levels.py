"""Ordered levels: the scales on which columns of a table are answered, and where they are cut."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

__all__ = ["Levels", "Scale"]

_SAME = 1e-6  # of the smallest gap between edges, or of 1: closer bounds are edges


@dataclass(frozen=True, eq=False)
class Scale:
    """Levels from low to high, and the edges of the values behind them.

    A value below the first edge counts as the first level, one above the last as the last.

    Attributes
    ----------
    names : ndarray of shape (n_levels,)
        Numbers, or texts.
    edges : ndarray of shape (n_levels - 1,)
        Rising.
    """

    names: NDArray
    edges: NDArray[np.float64]

    def _check_loaded(self) -> None:
        """Refuse a scale that was read from a file and is none."""
        fits = self.edges.shape == (len(self.names) - 1,) and len(self.edges) > 0
        if not (fits and np.isfinite(self.edges).all() and np.all(np.diff(self.edges) > 0)):
            raise ValueError("the edges of a scale do not rise between its levels")

    def __len__(self) -> int:
        """Return the number of levels."""
        return len(self.names)

    @cached_property
    def marks(self) -> NDArray[np.float64]:
        """The number of each level: its own, or 1, 2, ... of texts."""
        numbers = self.names.dtype.kind in "iuf"
        return self.names.astype(np.float64) if numbers else np.arange(1.0, len(self.names) + 1)

    @property
    def cuts(self) -> NDArray[np.float64]:
        """The edges, from minus to plus infinity."""
        return np.concatenate([[-np.inf], self.edges, [np.inf]])


@dataclass(frozen=True, eq=False)
class Levels:
    """The scales of a table.

    Attributes
    ----------
    scales : tuple of Scale
        Each once.
    of_column : ndarray of shape (n_cols,)
        Which of them each column is recorded in; -1 for a column of numbers.

    Examples
    --------
    >>> from declip import Intervals
    >>> levels = Intervals.from_levels([[1, 3], [2, 2]]).levels
    >>> levels.scales[0].names, levels.scales[0].edges
    (array([1., 2., 3.]), array([1.5, 2.5]))
    """

    scales: tuple[Scale, ...]
    of_column: NDArray[np.int32]

    def _check_loaded(self) -> None:
        """Refuse scales that were read from a file and of which a column has none."""
        if self.of_column.size and not -1 <= self.of_column.min() <= self.of_column.max() < len(
            self.scales
        ):
            raise ValueError("a column is recorded in levels of a scale that is not there")

    def scale_of(self, column: int) -> Scale | None:
        """Return the scale of a column, None if it holds numbers."""
        which = self.of_column[column]
        return None if which < 0 else self.scales[which]

    @cached_property
    def cuts(self) -> NDArray[np.float64]:
        """The edges of each scale from minus to plus infinity, of one length, then infinities."""
        longest = max(len(scale) for scale in self.scales)
        table = np.full((len(self.scales), longest + 1), np.inf)
        for row, scale in zip(table, self.scales, strict=True):
            row[: len(scale) + 1] = scale.cuts
        return table

    def bounds(
        self, cols: NDArray, values: NDArray, lower: NDArray, upper: NDArray
    ) -> tuple[NDArray, NDArray]:
        """Return bounds of cells: the edges beside their levels, or in columns of numbers others.

        Parameters
        ----------
        cols : ndarray of int
            The columns of the cells.
        values : ndarray
            The numbers of their levels.
        lower, upper : ndarray
            The bounds of cells of columns of numbers.
        """
        lower, upper = lower.copy(), upper.copy()
        for which, scale in enumerate(self.scales):
            here = np.flatnonzero(self.of_column[cols] == which)
            between = 0.5 * (scale.marks[1:] + scale.marks[:-1])
            level = np.searchsorted(between, values[here])
            lower[here], upper[here] = scale.cuts[level], scale.cuts[level + 1]
        return lower, upper

    def cut_numbers(self, cols: NDArray, bounds: NDArray) -> NDArray[np.intp]:
        """Return which cut each bound of cells is; -1 where it is none, or a column of numbers."""
        found = np.full(len(cols), -1, np.intp)
        for which, scale in enumerate(self.scales):
            here = np.flatnonzero(self.of_column[cols] == which)
            near = np.searchsorted(0.5 * (scale.edges[1:] + scale.edges[:-1]), bounds[here])
            reach = max(
                _SAME * min([1.0, *np.diff(scale.edges)]),
                4 * np.finfo(bounds.dtype).eps * abs(scale.edges).max(),
            )
            number = np.where(abs(bounds[here] - scale.edges[near]) <= reach, near + 1, -1)
            number = np.where(np.isneginf(bounds[here]), 0, number)
            found[here] = np.where(np.isposinf(bounds[here]), len(scale), number)
        return found

    def face_values(self, cols: NDArray, lower: NDArray, upper: NDArray) -> NDArray[np.float64]:
        """Return the number of the level of each cell, of several the mean; NaN without one."""
        low, high = self.cut_numbers(cols, lower), self.cut_numbers(cols, upper)
        face = np.full(len(cols), np.nan)
        for which, scale in enumerate(self.scales):
            here = np.flatnonzero((self.of_column[cols] == which) & (low >= 0) & (high > low))
            sums = np.concatenate([[0.0], np.cumsum(scale.marks)])
            face[here] = (sums[high[here]] - sums[low[here]]) / (high[here] - low[here])
        return face
