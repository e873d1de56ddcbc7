"""Compiled loops over cells, and nothing else.

A *side* is the table seen by rows (or, transposed, by columns): for each row its exact cells, then
its open cells, which are known only by an interval. Every loop is written once and serves both
sides. ``scale`` chooses the loss of an open cell: 0 is half the squared distance to the interval, a
positive number is the censored Gaussian (Tobit) likelihood with that standard deviation, times its
square.
"""

from __future__ import annotations

from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from . import _kernels  # type: ignore[attr-defined]

__all__ = [
    "CellLoss",
    "Side",
    "current_isa",
    "half_sweep",
    "interval_loss",
    "isa_names",
    "predict",
    "residuals",
    "use_isa",
]

Floats = NDArray[np.floating]

current_isa = _kernels.current_isa
isa_names = _kernels.isa_names
use_isa = _kernels.use_isa


class Side(Protocol):
    """Cells by row: what the kernels read (see `declip.intervals.Cells`)."""

    @property
    def exact_ptr(self) -> NDArray[np.int64]: ...  # noqa: D102
    @property
    def exact_idx(self) -> NDArray[np.int32]: ...  # noqa: D102
    @property
    def value(self) -> Floats: ...  # noqa: D102
    @property
    def open_ptr(self) -> NDArray[np.int64]: ...  # noqa: D102
    @property
    def open_idx(self) -> NDArray[np.int32]: ...  # noqa: D102
    @property
    def lower(self) -> Floats: ...  # noqa: D102
    @property
    def upper(self) -> Floats: ...  # noqa: D102


class CellLoss(NamedTuple):
    """Loss of cells at a prediction, with its first two derivatives."""

    value: NDArray[np.float64]
    gradient: NDArray[np.float64]
    curvature: NDArray[np.float64]


def _arrays(side: Side) -> tuple[NDArray, ...]:
    return (
        side.exact_ptr,
        side.exact_idx,
        side.value,
        side.open_ptr,
        side.open_idx,
        side.lower,
        side.upper,
    )


def half_sweep(
    side: Side,
    own: Floats,
    other: Floats,
    offset: Floats,
    ridge: Floats,
    *,
    scale: float = 0.0,
    inner_steps: int = 1,
    cg_steps: int = 0,
    inner_tol: float = 1e-12,
    threads: int = 1,
) -> float:
    """Lower the objective of every row of ``own``, in place, with ``other`` fixed.

    Row i minimises, over p = own[i], the loss of its cells at ``other[j] @ p + offset[j]`` plus
    ``sum(ridge * p**2) / 2``, by at most ``inner_steps`` safeguarded Newton steps (each solved by
    Cholesky, or by ``cg_steps`` conjugate gradient steps if that is positive). The objective of no
    row ever rises.

    Returns
    -------
    float
        The loss of all cells after the sweep, without the ridge.
    """
    return _kernels.half_sweep(
        *_arrays(side), own, other, offset, ridge, scale, inner_steps, cg_steps, inner_tol, threads
    )


def residuals(
    side: Side,
    own: Floats,
    other: Floats,
    offset: Floats,
    *,
    scale: float = 0.0,
    threads: int = 1,
) -> tuple[float, Floats, Floats]:
    """Return the loss of all cells and its gradient at the exact and at the open cells."""
    exact, open_ = np.empty_like(side.value), np.empty_like(side.lower)
    loss = _kernels.residuals(*_arrays(side), own, other, offset, scale, exact, open_, threads)
    return loss, exact, open_


def predict(
    rows: NDArray[np.int32],
    cols: NDArray[np.int32],
    own: Floats,
    other: Floats,
    *,
    threads: int = 1,
) -> Floats:
    """Return ``own[rows] @ other[cols]``, cell by cell. The indices must be in range."""
    out = np.empty(len(rows), own.dtype)
    _kernels.predict(rows, cols, own, other, out, threads)
    return out


def interval_loss(
    x: NDArray, lower: NDArray, upper: NDArray, *, scale: float = 0.0, threads: int = 1
) -> CellLoss:
    """Return value, gradient and curvature of the loss of cells predicted as ``x``.

    Examples
    --------
    >>> import numpy as np
    >>> from declip.kernels import interval_loss
    >>> interval_loss(np.array([4.0, 6.0]), np.full(2, 5.0), np.full(2, np.inf)).value
    array([0.5, 0. ])
    """
    arrays = [np.ascontiguousarray(a, np.float64) for a in (x, lower, upper)]
    out = CellLoss(*(np.empty_like(arrays[0]) for _ in range(3)))
    _kernels.interval_loss(*arrays, scale, *out, threads)
    return out
