"""Columns on different scales brought to one, with their limits; logarithms, roots of counts."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from declip.intervals import Intervals, face_value
from declip.scales import LOGARITHM, UNCHANGED, VALUE_SCALES
from declip.solvers.gibbs.units import Units
from declip.validation import check_logarithms, check_not_negative

__all__ = ["SCALES", "Scaling", "mostly_missing", "scaled_by_rows"]

SCALES = ("columns", "table", "none")
_SPARSE = 0.25  # share of observed cells below which a table counts as ratings
_FEWEST_CELLS = 20  # of a row or column whose spread is looked at
_MORE_VARIED = 0.1  # variance of the logs of spreads that rows must have more of than columns


@dataclass(frozen=True, eq=False)
class Scaling:
    """A map of the cells of each column: a scale of values where asked for, then standard units.

    The units are the mean and the standard deviation of a normal distribution that is fitted to
    exact and clipped cells alike, so that a column does not look narrow because its top is cut off.

    Attributes
    ----------
    log : ndarray of bool of shape (n_cols,)
        Which columns are taken to logarithms.
    units : Units
        Where the columns lie then, and how far they spread.
    values : {"", "sqrt", "log1p"}
        The scale on which the values of columns without a logarithm are taken; "" as they are.
    """

    log: NDArray[np.bool_]
    units: Units
    values: str = ""

    @classmethod
    def of(
        cls,
        intervals: Intervals,
        scale: str = "columns",
        log: Any = False,
        values: str = "",
    ) -> Scaling:
        """Fit the units of a table.

        Parameters
        ----------
        intervals : Intervals
            The table.
        scale : {"columns", "table", "none"}
            Whether each column has its own units, all share them, or none are used.
        log : bool, or labels or numbers of columns
            Which columns are taken to logarithms.
        values : {"", "sqrt", "log1p"}
            The scale on which values of columns without a logarithm are taken.
        """
        n_cols = intervals.shape[1]
        chosen = _log_columns(log, intervals)
        plain = cls(chosen, Units(np.zeros(n_cols), np.ones(n_cols)), values)
        if scale == "none":
            return plain
        return replace(plain, units=Units.of(plain.apply(intervals), shared=scale == "table"))

    def _check_loaded(self) -> None:
        """Refuse a map that was read from a file and is none."""
        if self.values not in ("", *VALUE_SCALES):
            raise ValueError(f"values are on a scale that is not known, {self.values!r}")

    @classmethod
    def asked_for(cls, intervals: Intervals, scale: str) -> Scaling | None:
        """Return the units that a word of an estimator's ``scale=`` means; None to leave them.

        "auto" brings the columns of a table to common units, and leaves ratings, which share theirs
        and of which most are missing, as they are.
        """
        if scale == "auto":
            scale = "none" if mostly_missing(intervals) else "columns"
        return None if scale == "none" else cls.of(intervals, scale)

    def extended(self, new: Intervals, known: int) -> Scaling:
        """Return the units with those of the columns after the first ``known``, by their cells.

        Where all columns share theirs, so do the others.
        """
        more = new.shape[1] - known
        log = np.concatenate([self.log, np.zeros(more, bool)])
        return Scaling(log, self.units.extended(new, known), self.values)

    def apply(self, intervals: Intervals) -> Intervals:
        """Return the table in these units, limits included."""
        if self.log.any() or self.values:
            rows, cols, lower, upper = intervals.triplets()
            taken = self.log[cols]
            check_logarithms(
                intervals, rows, cols, *(np.where(taken, x, 1.0) for x in (lower, upper))
            )
            if self.values:
                check_not_negative(intervals, rows, cols, np.where(taken, 0.0, upper))
            intervals = intervals.with_bounds(
                *(self._on_scale(end, cols) for end in (lower, upper))
            )
        return self.units.standardise(intervals)

    def _on_scale(self, values: NDArray, cols: NDArray | slice) -> NDArray:
        """Return values of some columns on the scale that these are worked on."""
        others = VALUE_SCALES.get(self.values, UNCHANGED)
        return np.where(self.log[cols], LOGARITHM.forward(values), others.forward(values))

    def forward(self, values: NDArray, cols: NDArray | slice = slice(None)) -> NDArray[np.float64]:
        """Return values of some columns in these units; or a table, whole or to be broadcast."""
        plain = self._on_scale(values, cols)
        return (plain - self.units.shift[cols]) / self.units.scale[cols]

    def back(self, values: NDArray, cols: NDArray) -> NDArray[np.float64]:
        """Return values of some columns in the units of the data."""
        plain = self.units.restore(values, cols)
        others, log = VALUE_SCALES.get(self.values, UNCHANGED), self.log[cols]
        with np.errstate(over="ignore"):
            return np.where(log, LOGARITHM.back(np.where(log, plain, 0.0)), others.back(plain))


def mostly_missing(intervals: Any) -> bool:
    """Tell whether so few cells are observed that a table counts as ratings."""
    n_rows, n_cols = intervals.shape
    return len(intervals) < _SPARSE * n_rows * n_cols


def scaled_by_rows(intervals: Intervals) -> bool:
    """Tell whether the rows of a table differ in scale more than its columns do.

    Analytes have units of their own, samples do not; products differ in size, days do not.
    """
    rows, cols, lower, upper = intervals.triplets()
    value = face_value(lower, upper).astype(np.float64)
    by_row, by_col = (
        _variety_of_spreads(line, value, n)
        for line, n in zip((rows, cols), intervals.shape, strict=True)
    )
    return bool(by_row > max(by_col, 0.0) + _MORE_VARIED)


def _variety_of_spreads(rows: NDArray, value: NDArray, n: int) -> float:
    """Return the variance of the logs of n rows' spreads, less what chance alone makes of it."""
    count = np.bincount(rows, minlength=n)
    mean = np.bincount(rows, value, n) / np.maximum(count, 1)
    square = np.bincount(rows, (value - mean[rows]) ** 2, n) / np.maximum(count - 1, 1)
    some = (count >= _FEWEST_CELLS) & (square > 0)
    if some.sum() < 2:
        return -np.inf
    # the log of the standard deviation of m normal values has a variance of about 1 / (2 (m - 1))
    chance = np.mean(0.5 / (count[some] - 1))
    return float(np.var(0.5 * np.log(square[some])) - chance)


def _log_columns(log: Any, intervals: Intervals) -> NDArray[np.bool_]:
    """Tell which columns are taken to logarithms, by their labels or numbers."""
    n_cols = intervals.shape[1]
    if isinstance(log, bool | np.bool_):
        return np.full(n_cols, bool(log))
    if isinstance(log, str) or not isinstance(log, Iterable):
        raise TypeError(f"log must be True, False or the columns to take it of; got {log!r}.")
    labels = [] if intervals.col_labels is None else list(intervals.col_labels)
    chosen = np.zeros(n_cols, bool)
    for column in log:
        if column in labels:
            chosen[labels.index(column)] = True
        elif isinstance(column, int | np.integer) and -n_cols <= column < n_cols:
            chosen[column] = True
        else:
            raise ValueError(f"log names column {column!r}, which the table does not have.")
    return chosen
