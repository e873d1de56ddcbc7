"""Which rows and columns the exact cells determine, and by what margin."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from declip.diagnostics.tangent import NEGLIGIBLE, Tangent
from declip.grams import exact_cells, extreme_eigenvalues
from declip.intervals import Intervals
from declip.lowrank import LowRank

__all__ = ["Determination", "Margin", "determine", "weakest"]

ZERO = 1e-10  # eigenvalues below this are rounding
LANCZOS_TOL = 1e-4
_RESTARTS = 12  # of Lanczos, for a large table
_WORK = 8e9  # multiplications that Lanczos may take before that limit applies


class Margin(NamedTuple):
    """Smallest eigenvalue of P_T P_K P_T, K the exact cells, and cheap bounds on it.

    ``value`` is NaN if Lanczos did not settle.
    """

    value: float
    low: float
    high: float

    @property
    def best(self) -> float:
        """The value, or the upper bound where there is none."""
        return self.high if np.isnan(self.value) else self.value


@dataclass(frozen=True, eq=False)
class Determination:
    """Which rows and columns of a fitted matrix the exact cells determine.

    Attributes
    ----------
    rank : int
        Factors of a row, with its offset.
    row_eigenvalues, col_eigenvalues : ndarray
        Smallest eigenvalue of the sum of v_j v_j^T over the exact cells of each row (of u_i u_i^T
        for each column): 1 if all its cells are exact, 0 if a direction of its factors is free.
    rows, cols : ndarray of bool
        What is determined: eigenvalue not below `weakest`, also when all others are left out.
    margin : Margin
        Of the whole table.
    margin_determined : Margin
        Of the table without the rows and columns that are not determined.
    """

    rank: int
    row_eigenvalues: NDArray[np.float64]
    col_eigenvalues: NDArray[np.float64]
    rows: NDArray[np.bool_]
    cols: NDArray[np.bool_]
    margin: Margin
    margin_determined: Margin


def weakest(n_cells: int) -> float:
    """Return the eigenvalue below which a row of so many cells is not determined.

    It is 1e-3; in rows of more than 100 cells, a tenth of what an average cell adds to each
    direction.
    """
    return min(1e-3, 0.1 / n_cells)


class _Part(NamedTuple):
    """A part of the table with its tangent space and the eigenvalues of its rows and columns."""

    intervals: Intervals
    tangent: Tangent
    rows: tuple[NDArray, NDArray]
    cols: tuple[NDArray, NDArray]

    def good(self) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
        n_rows, n_cols = self.intervals.shape
        return self.rows[0] >= weakest(n_cols), self.cols[0] >= weakest(n_rows)


def determine(
    intervals: Intervals, model: LowRank, negligible: float = NEGLIGIBLE, threads: int = 1
) -> Determination:
    """Find the rows and columns that the exact cells determine, at a fitted matrix.

    Singular values below the share ``negligible`` of the first are left out.
    """
    whole = part = _part(intervals, model, negligible, threads)
    rows, cols = (np.arange(n) for n in intervals.shape)
    while part is not None:
        good_rows, good_cols = part.good()
        if good_rows.all() and good_cols.all():
            break
        rows, cols = rows[good_rows], cols[good_cols]
        model = replace(model, A=model.A[good_rows], B=model.B[good_cols])
        part = _part(_taken(part.intervals, good_rows, good_cols), model, negligible, threads)
        if part is not None and max(part.tangent.n_factors) >= min(part.intervals.shape):
            part = None  # no larger than its rank, it says nothing that its exact cells do not
    margin = _margin(whole)
    return Determination(
        rank=0 if whole is None else whole.tangent.n_factors[1],
        row_eigenvalues=np.zeros(intervals.shape[0]) if whole is None else whole.rows[0],
        col_eigenvalues=np.zeros(intervals.shape[1]) if whole is None else whole.cols[0],
        rows=_mask(rows, intervals.shape[0], part),
        cols=_mask(cols, intervals.shape[1], part),
        margin=margin,
        margin_determined=margin if part is whole else _margin(part),
    )


def _part(intervals: Intervals, model: LowRank, negligible: float, threads: int) -> _Part | None:
    """Return a part of the table; None if nothing is left of it, or of the matrix."""
    if 0 in intervals.shape:
        return None
    tangent = Tangent.of(model, negligible, threads)
    if tangent.dimension == 0:
        return None
    n_rows, n_cols = intervals.shape
    return _Part(
        intervals,
        tangent,
        extreme_eigenvalues(exact_cells(intervals.by_row, n_cols), tangent.V),
        extreme_eigenvalues(exact_cells(intervals.by_col, n_rows), tangent.U),
    )


def _taken(intervals: Intervals, rows: NDArray, cols: NDArray) -> Intervals:
    """Return the rows and columns of two masks."""
    return intervals.take_rows(np.flatnonzero(rows)).T.take_rows(np.flatnonzero(cols)).T


def _mask(which: NDArray, size: int, part: _Part | None) -> NDArray[np.bool_]:
    mask = np.zeros(size, bool)
    mask[which if part is not None else []] = True
    return mask


def _margin(part: _Part | None) -> Margin:
    if part is None:
        return Margin(0.0, 0.0, 0.0)
    (low_r, high_r), (low_c, high_c) = (
        (float(ends[0].min()), float(ends[1].max())) for ends in (part.rows, part.cols)
    )
    # 1 - margin is the weight on T of all cells but the exact ones: at least that of any row or
    # column, at most the sum of the heaviest row and the heaviest column.
    low, high = max(low_r + low_c - 1, 0.0), min(low_r, low_c, 1.0)
    if high <= ZERO:
        return Margin(0.0, 0.0, high)
    exact = exact_cells(part.intervals.by_row, part.intervals.shape[1])
    per_restart = 80 * exact.nnz * sum(part.tangent.n_factors)
    value = part.tangent.smallest(
        exact,
        above=min(1.0, high_r + high_c),
        tol=LANCZOS_TOL,
        maxiter=int(np.clip(_WORK / max(per_restart, 1), _RESTARTS, 1000)),
    )
    return Margin(float(np.clip(value, low, high)), low, high)
