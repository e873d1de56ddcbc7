"""Compiled loops over cells, and nothing else.

A *side* is the table seen by rows (or, transposed, by columns): for each row its exact cells, then
its censored cells, which are known only by an interval. Every loop is written once and serves both
sides. The loss of a censored cell is an object of `declip.losses`, which names its compiled struct.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from . import _kernels  # type: ignore[attr-defined]

__all__ = [
    "CellDraws",
    "CellLoss",
    "CompiledLoss",
    "DrawProblem",
    "Loss",
    "RowProblem",
    "Side",
    "UnknownCells",
    "compiled_loss",
    "current_isa",
    "draw_normal_rows",
    "draw_rows",
    "interval_loss",
    "isa_names",
    "newton_solve",
    "newton_sums",
    "predict",
    "residuals",
    "step_trial",
    "total_loss",
    "truncated_normals",
    "update_rows",
    "use_isa",
]

Floats = NDArray[np.floating]
Pair = tuple[NDArray[np.float64], NDArray[np.float64]]

CompiledLoss = Any  # what `compiled_loss` returns
compiled_loss = _kernels.loss  # by the name that it has in loss.hpp

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
    def censored_ptr(self) -> NDArray[np.int64]: ...  # noqa: D102
    @property
    def censored_idx(self) -> NDArray[np.int32]: ...  # noqa: D102
    @property
    def lower(self) -> Floats: ...  # noqa: D102
    @property
    def upper(self) -> Floats: ...  # noqa: D102
    @property
    def weights(self) -> tuple[Floats, Floats] | None: ...  # noqa: D102
    @property
    def scales(self) -> Floats | None: ...  # noqa: D102


class CellLoss(NamedTuple):
    """Loss of cells at a prediction, with its first two derivatives."""

    value: NDArray[np.float64]
    gradient: NDArray[np.float64]
    curvature: NDArray[np.float64]


class Loss(Protocol):
    """A loss of censored cells: one of `declip.losses`."""

    @property
    def compiled(self) -> CompiledLoss: ...  # noqa: D102


@dataclass(frozen=True, eq=False)
class RowProblem:
    """What the rows of one side are fitted to, with the factors of the other side fixed.

    Row i has the factors p = own[i]: its cells are predicted as ``design[j] @ p + offset[j]``, and
    its objective is the loss of its cells, each times its weight if they have any, plus ``sum(ridge
    * p**2) / 2``; with centres and strengths of rows ``row_ridge[i] * sum(ridge * (p -
    centre[i])**2) / 2``.

    Attributes
    ----------
    side : Side
        The cells.
    design : ndarray of shape (n_other, k)
        What the factors of a row are multiplied by.
    offset : ndarray of shape (n_other,)
        What is added.
    loss : Loss
        Of censored cells.
    ridge : ndarray of shape (k,), optional
        Strength of the penalty on each factor; needed to solve for rows.
    centre : ndarray of shape (n_rows, k), optional
        What the penalty draws each row to; by default 0.
    row_ridge : ndarray of shape (n_rows,), optional
        By what the penalty of each row is multiplied; by default 1.
    """

    side: Side
    design: Floats
    offset: Floats
    loss: Loss
    ridge: Floats | None = None
    centre: Floats | None = None
    row_ridge: Floats | None = None

    @property
    def compiled(self) -> Any:
        """The same, checked and as the compiled loops take it."""
        dtype = self.design.dtype
        ridge, row_ridge = _or_empty(self.ridge, dtype), _or_empty(self.row_ridge, dtype)
        centre = np.empty((0, 0), dtype) if self.centre is None else self.centre
        cells, loss = _cells(self.side), self.loss.compiled
        return _kernels.row_problem(cells, self.design, self.offset, ridge, loss, centre, row_ridge)


def _or_empty(given: Floats | None, dtype: Any) -> Floats:
    return np.empty(0, dtype) if given is None else given


def _cells(side: Side, weighted: bool = True) -> Any:
    none = np.empty(0, side.value.dtype)
    exact, censored = (side.weights if weighted else None) or (none, none)
    scales = side.scales if weighted else None
    return _kernels.cells(
        side.exact_ptr,
        side.exact_idx,
        side.value,
        side.censored_ptr,
        side.censored_idx,
        side.lower,
        side.upper,
        exact,
        censored,
        none if scales is None else scales,
    )


def update_rows(
    rows: RowProblem,
    own: Floats,
    *,
    inner_steps: int = 1,
    cg_steps: int = 0,
    inner_tol: float = 1e-12,
    half: bool = False,
    threads: int = 1,
) -> float:
    """Lower the objective of every row of ``own``, in place.

    By at most ``inner_steps`` safeguarded Newton steps a row, each solved by Cholesky, or by
    ``cg_steps`` conjugate gradient steps if that is positive, preconditioned by the diagonal of the
    Hessian. The objective of no row ever rises.

    With ``half``, the design is rounded to half precision on the way in: half the memory to fetch
    at random. Double precision is never halved, nor anything on a processor that cannot.

    Returns
    -------
    float
        The loss of all cells after the sweep, without the ridge.
    """
    return _kernels.update_rows(rows.compiled, own, inner_steps, cg_steps, inner_tol, half, threads)


def residuals(rows: RowProblem, own: Floats, *, threads: int = 1) -> tuple[float, Floats, Floats]:
    """Return the loss of all cells and its gradient at the exact and at the censored cells."""
    exact, censored = np.empty_like(rows.side.value), np.empty_like(rows.side.lower)
    loss = _kernels.residuals(rows.compiled, own, exact, censored, threads)
    return loss, exact, censored


def total_loss(rows: RowProblem, own: Floats, *, threads: int = 1) -> float:
    """Return the loss of all cells; nothing is stored for a cell."""
    none = np.empty(0, own.dtype)
    return _kernels.residuals(rows.compiled, own, none, none, threads)


def newton_sums(rows: RowProblem, own: Floats, *, threads: int = 1) -> Floats:
    """Return what the cells of a block add to the Newton step of every row of ``own``.

    For row i at p = own[i], over its cells here: the upper triangle of ``H = sum(curvature * q
    q^T)``, row by row, then ``g = sum(gradient * q)``, with ``q = design[j]``. The sums of several
    blocks, added up, go to `newton_solve`.
    """
    k = own.shape[1]
    out = np.empty((len(own), k * (k + 3) // 2), own.dtype)
    _kernels.newton_sums(rows.compiled, own, out, threads)
    return out


def newton_solve(
    sums: Floats, own: Floats, ridge: Floats, *, threads: int = 1
) -> tuple[Floats, NDArray[np.float64]]:
    """Return the Newton step ``-(H + R)^-1 (g + R p)`` of every row, and its slope.

    ``R = diag(ridge)``, and the slope is the derivative of the objective of the row along the step:
    negative, or 0 where there is nothing to gain. A row of which no cell counts goes to 0.
    """
    step, slope = np.empty_like(own), np.empty(len(own))
    _kernels.newton_solve(sums, own, ridge, step, slope, threads)
    return step, slope


def step_trial(
    rows: RowProblem,
    own: Floats,
    step: Floats,
    lengths: NDArray[np.float64],
    *,
    threads: int = 1,
) -> NDArray[np.float64]:
    """Return what a step of every row does to its censored cells in a block.

    For row i, with ``dx = design[j] @ step[i]``, over its censored cells: ``sum(gradient * dx)``,
    ``sum(curvature * dx**2)``, ``sum(dx**2)``, and for each of the ``lengths`` t the change of the
    loss from ``own[i]`` to ``own[i] + t * step[i]``.
    """
    out = np.empty((len(own), 3 + len(lengths)))
    _kernels.step_trial(rows.compiled, own, step, lengths, out, threads)
    return out


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
    x: NDArray, lower: NDArray, upper: NDArray, loss: CompiledLoss, *, threads: int = 1
) -> CellLoss:
    """Return value, gradient and curvature of the loss of cells predicted as ``x``."""
    arrays = [np.ascontiguousarray(a, np.float64) for a in (x, lower, upper)]
    out = CellLoss(*(np.empty_like(arrays[0]) for _ in range(3)))
    _kernels.interval_loss(*arrays, loss, *out, threads)
    return out


class CellDraws(NamedTuple):
    """What is drawn of the cells of a side, in its order; a draw overwrites it.

    Attributes
    ----------
    z : ndarray
        Values of the censored cells.
    weights : (ndarray, ndarray) or None
        Weights of the exact and of the censored cells under Student t noise.
    """

    z: NDArray[np.float64]
    weights: Pair | None = None


@dataclass(frozen=True, eq=False)
class DrawProblem:
    """What the rows of one side are drawn from, with the factors of the other side fixed.

    The cells of row i are ``design[j] @ own[i] + offset[j]`` plus normal noise of precision
    ``precision[0][i] * precision[1][j]``, times the weight of the cell under Student t noise.

    Attributes
    ----------
    side : Side
        The cells, of float64.
    design, offset : ndarray
        As in `RowProblem`.
    prior : (matrix, vector or matrix)
        Precision of the normal prior of a row, and that precision times its mean: one vector for
        all rows, or a row for each.
    precision : (ndarray, ndarray)
        Of the noise: for each row of this side, and of the other.
    df : float
        Degrees of freedom of Student t noise; 0 for normal noise.
    prior_scale : ndarray, optional
        By what the prior precision of each row is multiplied (not what is given as that times its
        mean); by default 1.
    """

    side: Side
    design: NDArray[np.float64]
    offset: NDArray[np.float64]
    prior: Pair
    precision: Pair
    df: float = 0.0
    prior_scale: NDArray[np.float64] | None = None


def draw_rows(
    rows: DrawProblem,
    own: NDArray[np.float64],
    cells: CellDraws,
    key: tuple[int, int],
    *,
    same_stream: bool = False,
    threads: int = 1,
) -> NDArray[np.float64]:
    """Draw the factors ``own`` of every row and what is drawn of its ``cells``, in place.

    Censored cells are drawn with the factors of their row integrated out.

    Parameters
    ----------
    rows : DrawProblem
        What they are drawn from.
    own : ndarray
        Factors of this side; overwritten.
    cells : CellDraws
        Values and weights of the cells; overwritten.
    key : (int, int)
        Seed and number of the sweep: with the number of the row they fix what is drawn.
    same_stream : bool
        Whether all rows draw the same random numbers, so that their order does not matter.
    threads : int
        Threads; the result does not depend on it.

    Returns
    -------
    ndarray
        For each row, its weighted squared residuals times the precision of the other side, summed.
    """
    squares = np.zeros(len(own))
    exact_weight, censored_weight = cells.weights or (np.empty(0), np.empty(0))
    precision, information = rows.prior
    failed = _kernels.draw_rows(
        _cells(rows.side, weighted=False),
        cells.z,
        exact_weight,
        censored_weight,
        own,
        rows.design,
        rows.offset,
        precision,
        np.atleast_2d(information),
        _or_empty(rows.prior_scale, np.float64),
        *rows.precision,
        rows.df if cells.weights else 0.0,
        *key,
        same_stream,
        squares,
        threads,
    )
    if failed:
        raise FloatingPointError(f"{failed:.0f} rows have no proper posterior")
    return squares


@dataclass(frozen=True, eq=False)
class UnknownCells:
    """The cells of complete rows that are known by bounds alone: those of row i from ptr[i] on.

    Attributes
    ----------
    ptr, idx : ndarray of int
        Where each row begins, and the columns of its cells.
    lower, upper : ndarray
        Their bounds; infinite ones for a missing cell.
    """

    ptr: NDArray[np.int64]
    idx: NDArray[np.int32]
    lower: NDArray[np.float64]
    upper: NDArray[np.float64]

    @classmethod
    def of(cls, lower: NDArray[np.float64], upper: NDArray[np.float64]) -> UnknownCells:
        """Return the cells of a table whose bounds differ."""
        unknown = lower < upper
        ptr = np.concatenate([[0], np.cumsum(unknown.sum(axis=1))])
        return cls(ptr, np.nonzero(unknown)[1].astype(np.int32), lower[unknown], upper[unknown])


def draw_normal_rows(
    rows: NDArray[np.float64],
    unknown: UnknownCells,
    label: NDArray[np.int64],
    classes: Pair,
    key: tuple[int, int],
    *,
    same_stream: bool = False,
    threads: int = 1,
) -> None:
    """Draw the unknown cells of normal rows in place, each given the rest of its row.

    Parameters
    ----------
    rows : ndarray of shape (n, p)
        Complete rows; overwritten.
    unknown : UnknownCells
        Which of their cells are drawn.
    label : ndarray of shape (n,)
        The classes of the rows. They must be in range.
    classes : (ndarray, ndarray)
        Means of the classes, of shape (n_classes, p), and their precisions, (n_classes, p, p).
    key : (int, int)
        Seed and number of the sweep.
    same_stream : bool
        As in `draw_rows`.
    threads : int
        Threads; the result does not depend on it.
    """
    mean, precision = classes
    failed = _kernels.draw_normal_rows(
        rows,
        label,
        mean,
        precision.ravel(),
        unknown.ptr,
        unknown.idx,
        unknown.lower,
        unknown.upper,
        *key,
        same_stream,
        threads,
    )
    if failed:
        raise FloatingPointError(f"{failed:.0f} rows have no proper posterior")


def truncated_normals(
    mean: NDArray[np.float64],
    sd: NDArray[np.float64],
    lower: NDArray[np.float64],
    upper: NDArray[np.float64],
    key: tuple[int, int],
    *,
    threads: int = 1,
) -> NDArray[np.float64]:
    """Draw from normals that are known to lie between bounds, far in the tails as well.

    Examples
    --------
    >>> import numpy as np
    >>> from declip.kernels import truncated_normals
    >>> one = np.ones(3)
    >>> bool(np.all(truncated_normals(0 * one, one, 40 * one, np.inf * one, key=(0, 0)) > 40))
    True
    """
    arrays = np.broadcast_arrays(mean, sd, lower, upper)
    mean, sd, lower, upper = (np.ascontiguousarray(a, np.float64) for a in arrays)
    out = np.empty_like(mean)
    _kernels.truncated_normals(mean, sd, lower, upper, *key, out, threads)
    if np.isnan(out).any():
        k = int(np.argmax(np.isnan(out)))
        raise FloatingPointError(
            f"no normal of mean {mean[k]:g} and deviation {sd[k]:g} lies between {lower[k]:g} and "
            f"{upper[k]:g}"
        )
    return out
