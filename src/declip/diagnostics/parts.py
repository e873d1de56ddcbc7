"""What Theorem 2 of the paper speaks of, measured: parts of the error, sizes of the hypotheses.

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

from declip.diagnostics.limit_checks import cells_of
from declip.diagnostics.residuals import ResidualChecks
from declip.intervals import Intervals, face_value
from declip.lowrank import LowRank
from declip.solvers import Limits
from declip.svd import fits_dense, truncated_svd

__all__ = ["ErrorParts", "Matrix", "Sizes", "measure_parts", "measure_sizes", "row_blocks"]

_TILE = 1 << 22  # cells that are made at a time
_ROUNDING = 1e-10  # singular values below this share of the first are zero
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


class Sizes(NamedTuple):
    """The least beta_1 and beta_2 of a set G with this matrix, and the coherence of Clip of it.

    With the rank as k: beta_1 = |M|_tr^2 / sqrt(k n_1 n_2), beta_2 likewise of Clip(M), and mu the
    largest squared norm of a row of the singular vectors of Clip(M), 1 at most.
    """

    beta_1: float
    beta_2: float
    mu: float


def measure_sizes(matrix: Matrix, singular_values: NDArray, limits: Limits | None) -> Sizes | None:
    """Measure the sizes; None without known limits, or of a table too large to decompose."""
    n_1, n_2 = matrix.shape
    if limits is None or not fits_dense((n_1, n_2)):
        return None
    unit = np.sqrt(max(len(singular_values), 1) * n_1 * n_2)
    clipped = limits.clip(matrix.block(slice(None)).astype(np.float64))
    U, S, V = truncated_svd(clipped, min(n_1, n_2))
    kept = S > _ROUNDING * S[:1]
    mu = max((float((F[:, kept] ** 2).sum(axis=1).max()) for F in (U, V)), default=0.0)
    return Sizes(float(singular_values.sum()) ** 2 / unit, float(S.sum()) ** 2 / unit, mu)


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
