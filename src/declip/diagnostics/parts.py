"""The parts of the error in Theorem 2 of the paper, measured.

|M_hat - M| <= B1 + B2 + B3, all in root mean squares over the table: B1 = |M - Clip(M)| is what
clipping hid, B2 = |M_hat - Clip(M_hat)| how far the fit goes beyond the limits, and B3 =
|Clip(M_hat) - Clip(M)| how far it is off within them. The bounds that the theorem puts on the parts
are not given: that on B1 + B2 is never below the trivial one.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from declip.diagnostics.limits import cells_of
from declip.diagnostics.residuals import ResidualChecks
from declip.intervals import Intervals, face_value
from declip.lowrank import LowRank
from declip.solvers import Limits

__all__ = ["ErrorParts", "Matrix", "measure_parts", "row_blocks"]

_TILE = 1 << 22  # cells that are made at a time
_SAMPLE = 5 * 10**7  # cells from which a sample of the rows is taken


class Matrix(Protocol):
    """A matrix that can be looked at by blocks of rows."""

    @property
    def shape(self) -> tuple[int, int]: ...  # noqa: D102
    def block(self, rows: slice) -> NDArray: ...  # noqa: D102


class ErrorParts(NamedTuple):
    """B1, B2, B3 and the error itself, in root mean squares.

    Without the truth, B1 and B3 are of the observed cells, B1 with the restored values in place of
    the true ones, and the error is NaN. B2 is NaN where the limits of the cells are not known.
    """

    B1: float
    B2: float
    B3: float
    error: float
    with_truth: bool


def measure_parts(
    intervals: Intervals,
    model: LowRank,
    checks: ResidualChecks,
    limits: Limits | None,
    truth: Matrix | None = None,
) -> ErrorParts:
    """Measure the parts of the error at a fit."""
    if truth is not None and limits is not None:
        return _parts_with_truth(model, limits, truth)
    side, n = intervals.by_row, max(len(intervals), 1)
    hidden = checks.restored - face_value(side.lower, side.upper)
    cells = side.exact_rows(), side.exact_idx
    x = model.predict(*cells).astype(np.float64)
    if limits is not None:
        floor, ceiling = (
            cells_of(end, intervals.shape, *cells) for end in (limits.floor, limits.ceiling)
        )
        x = np.clip(x, floor, ceiling)
    within = np.sum((x - side.value) ** 2) + np.sum(checks.short**2)
    beyond = _mean_square_beyond(model, limits)
    B1, B2, B3 = (float(np.sqrt(mean)) for mean in (hidden @ hidden / n, beyond, within / n))
    return ErrorParts(B1, B2, B3, np.nan, with_truth=False)


def _parts_with_truth(model: LowRank, limits: Limits, truth: Matrix) -> ErrorParts:
    sums = np.zeros(4)
    for rows in row_blocks(truth.shape):
        X, M, here = model.block(rows).astype(np.float64), truth.block(rows), limits.rows(rows)
        X_in, M_in = here.clip(X), here.clip(M)
        sums += [np.sum(E**2) for E in (M - M_in, X - X_in, X_in - M_in, X - M)]
    B1, B2, B3, error = (float(root) for root in np.sqrt(sums / np.prod(truth.shape)))
    return ErrorParts(B1, B2, B3, error, with_truth=True)


def _mean_square_beyond(model: LowRank, limits: Limits | None) -> float:
    if limits is None:
        return np.nan
    total, n_rows = 0.0, 0
    for rows in row_blocks(model.shape, _SAMPLE):
        X = model.block(rows).astype(np.float64)
        total += float(((X - limits.rows(rows).clip(X)) ** 2).sum())
        n_rows += len(X)
    return total / (n_rows * model.shape[1])


def row_blocks(shape: tuple[int, int], sample: int | None = None) -> Iterator[slice]:
    """Yield blocks of rows of a moderate size; of every n-th row if a sample will do."""
    n_rows, n_cols = shape
    every = 1 if sample is None else max(1, n_rows * n_cols // sample)
    step = every * max(1, _TILE // n_cols)
    for start in range(0, n_rows, step):
        yield slice(start, min(start + step, n_rows), every)
