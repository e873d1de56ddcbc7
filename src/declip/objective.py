r"""The full objective, in one place, and the certificate of its optimum.

For the interval loss f (see `declip.kernels.interval_loss`) the factor model minimises

.. math:: F(P, Q) = f(P Q^T) + \frac{\alpha}{2} (|P|^2 + |Q|^2),

which at a balanced pair of factors equals :math:`f(X) + \alpha |X|_{tr}` with :math:`X = P Q^T`.
Offsets, where there are any, are penalised by :math:`\frac{\alpha}{2} (|b|^2 + |c|^2)`. The Tobit
likelihood scales the cells by the noise: its objective is :math:`F / \sigma^2 + n_{exact}
\log(\sqrt{2 \pi} \sigma)`, a negative log-likelihood plus a penalty, and :math:`\sigma` is one of
the variables.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from declip import kernels
from declip.intervals import Cells, Intervals
from declip.kernels import interval_loss, residuals
from declip.lowrank import LowRank
from declip.svd import SparsePlusLowRank, fits_dense, operator_norm

__all__ = [
    "Certificate",
    "Gradient",
    "Penalised",
    "certificate",
    "gradient",
    "largest_alpha",
    "objective",
    "total_loss",
]

_MANY_FACTORS = 100  # from this rank on X as a whole is made sooner than most of its cells
_MOSTLY_OBSERVED = 0.5  # share of observed cells from which they are most


@dataclass(frozen=True)
class Penalised:
    """How a loss and a penalty make an objective.

    Attributes
    ----------
    scale : float
        0 for the hinge, the noise scale for Tobit.
    n_exact : int
        Number of exact cells.
    """

    scale: float
    n_exact: int

    def __call__(self, loss: float, penalty: float) -> float:
        """Return the objective from the loss of the cells and the penalty."""
        value = loss + penalty
        if self.scale == 0:
            return value
        return value / self.scale**2 + self.n_exact * np.log(np.sqrt(2 * np.pi) * self.scale)


def objective(
    intervals: Intervals,
    model: LowRank,
    alpha: float,
    scale: float = 0.0,
    alpha_bias: float | None = None,
) -> float:
    """Return the objective of the factor model; offsets are penalised by alpha unless told."""
    loss = total_loss(intervals, model, scale)
    return Penalised(scale, intervals.n_exact)(loss, model.penalty(alpha, alpha_bias))


def total_loss(intervals: Intervals, model: LowRank, scale: float = 0.0, threads: int = 1) -> float:
    """Return the loss of all observed cells."""
    if _all_at_once(intervals, model):
        return _residuals_at_once(intervals.by_row, model, scale, threads)[0]
    design, offset = model.design()
    side = intervals.by_row
    return kernels.total_loss(side, model.A, design, offset, scale=scale, threads=threads)


class Gradient(NamedTuple):
    """Gradient of the loss with respect to X: sparse, kept as its exact and its censored cells."""

    loss: float
    exact: sparse.csr_array
    censored: sparse.csr_array

    def added_to(self, A: NDArray, B: NDArray, weight: float = 1.0) -> SparsePlusLowRank:
        """Return A B^T + weight * gradient, never formed."""
        return SparsePlusLowRank(A, B, (weight * self.exact, weight * self.censored))

    def operator(self) -> SparsePlusLowRank:
        """Return the gradient as a linear operator."""
        A, B = (np.zeros((n, 1), self.exact.dtype) for n in self.exact.shape)
        return SparsePlusLowRank(A, B, (self.exact, self.censored))


def gradient(
    intervals: Intervals,
    model: LowRank,
    scale: float = 0.0,
    threads: int = 1,
    dtype: Any = np.float64,
) -> Gradient:
    """Return the loss and its gradient with respect to X, the latter as numbers of ``dtype``."""
    side, shape = intervals.by_row, intervals.shape
    if _all_at_once(intervals, model):
        loss, exact, censored = _residuals_at_once(side, model, scale, threads)
    else:
        design, offset = model.design()
        loss, exact, censored = residuals(
            side, model.A, design, offset, scale=scale, threads=threads
        )
    return Gradient(
        loss,
        *(
            sparse.csr_array((data.astype(dtype, copy=False), idx, _narrow(ptr)), shape=shape)
            for data, idx, ptr in (
                (exact, side.exact_idx, side.exact_ptr),
                (censored, side.censored_idx, side.censored_ptr),
            )
        ),
    )


def _all_at_once(intervals: Intervals, model: LowRank) -> bool:
    """Return whether X as a whole is made sooner than its observed cells one by one."""
    n_rows, n_cols = intervals.shape
    observed = intervals.n_exact + intervals.n_censored
    wide, full = _MANY_FACTORS <= model.rank, _MOSTLY_OBSERVED * n_rows * n_cols <= observed
    return wide and full and fits_dense(intervals.shape)


def _residuals_at_once(
    side: Cells, model: LowRank, scale: float, threads: int
) -> tuple[float, NDArray, NDArray]:
    """Return what `declip.kernels.residuals` does, from X as a whole."""
    X = model.block()
    exact = X[side.exact_rows(), side.exact_idx] - side.value
    x = X[side.censored_rows(), side.censored_idx]
    loss, censored, _ = interval_loss(x, side.lower, side.upper, scale=scale, threads=threads)
    return 0.5 * _dot(exact, exact) + float(loss.sum()), exact, censored.astype(X.dtype, copy=False)


def _narrow(ptr: NDArray[np.int64]) -> NDArray:
    """Return row pointers as int32 where they fit: SciPy copies int32 columns to match int64."""
    return ptr.astype(np.int32) if ptr[-1] <= np.iinfo(np.int32).max else ptr


@dataclass(frozen=True)
class Certificate:
    """How far a point is from the optimum of the trace-norm problem, at most.

    Attributes
    ----------
    objective : float
        f(X) + alpha |X|_tr (+ offsets), with the noise scale held fixed.
    gap : float
        Objective minus a lower bound on its minimum; never negative but for rounding.
    norm_ratio : float
        |G|_op / alpha for the gradient G; at most 1 at the optimum.
    """

    objective: float
    gap: float
    norm_ratio: float


def certificate(
    intervals: Intervals,
    model: LowRank,
    alpha: float,
    scale: float = 0.0,
    trace_norm: float | None = None,
    threads: int = 1,
    alpha_bias: float | None = None,
) -> Certificate:
    """Certify a model against the convex problem of the same alpha, mean and noise scale.

    The dual point is Y = min(1, alpha / |G|_op) G for the gradient G of the loss; the gap is
    F(X) + f*(Y) - mean sum(Y) + (|Y 1|^2 + |Y^T 1|^2) / (2 alpha_bias), the last term only with
    offsets.
    """
    G = gradient(intervals, model, scale, threads, intervals.dtype)
    if trace_norm is None:
        trace_norm = model.trace_norm()
    norm = operator_norm(G.operator())
    shrink = 1.0 if norm <= alpha else alpha / norm
    offsets = sum(float(o @ o) for o in (model.row_offset, model.col_offset))
    strength = alpha if alpha_bias is None else alpha_bias
    primal = G.loss + alpha * trace_norm + 0.5 * strength * offsets
    dual = _conjugate(intervals, model, G, shrink, scale) - model.mean * shrink * (
        sum(float(S.data.sum(dtype=np.float64)) for S in (G.exact, G.censored))
    )
    if model.bias:
        sums = [sum(S.sum(axis=a, dtype=np.float64) for S in (G.exact, G.censored)) for a in (0, 1)]
        squares = shrink**2 * sum(float(s @ s) for s in sums)
        dual += 0.0 if squares == 0 else squares / (2 * strength) if strength > 0 else np.inf
    ratio = norm / alpha if alpha > 0 else np.inf if norm > 0 else 0.0
    return Certificate(primal, max(primal + dual, 0.0), ratio)


def largest_alpha(intervals: Intervals, scale: float = 0.0) -> float:
    """Return the alpha from which the best X is 0: the norm of the gradient at X = 0."""
    zero = LowRank.zero(intervals.shape, intervals.dtype)
    return operator_norm(gradient(intervals, zero, scale).operator())


def _conjugate(
    intervals: Intervals, model: LowRank, G: Gradient, shrink: float, scale: float
) -> float:
    """Return f*(shrink * G), the sum over cells of sup over x of x y - loss(x), or more (Tobit)."""
    side = intervals.by_row
    y = G.exact.data
    value = shrink * _dot(y, side.value) + 0.5 * shrink**2 * _dot(y, y)
    if intervals.n_censored == 0:
        return value
    y = shrink * G.censored.data.astype(np.float64)
    if scale == 0:
        # The support function of the interval: the infinite end never has a weight.
        end = np.where(y > 0, side.upper, np.where(y < 0, side.lower, 0.0)).astype(np.float64)
        return value + float(y @ end + 0.5 * y @ y)
    # f* is convex: f*(t y) <= t f*(y) + (1 - t) f*(0), and f*(loss'(x)) = x loss'(x) - loss(x).
    x = model.predict(side.censored_rows(), side.censored_idx).astype(np.float64)
    at_gradient = (
        x @ G.censored.data - interval_loss(x, side.lower, side.upper, scale=scale).value.sum()
    )
    ranged = np.isfinite(side.lower) & np.isfinite(side.upper)
    low, high = side.lower[ranged], side.upper[ranged]
    least = interval_loss(0.5 * (low + high), low, high, scale=scale).value.sum()
    return value + float(shrink * at_gradient - (1 - shrink) * least)


def _dot(x: NDArray, y: NDArray, step: int = 1 << 20) -> float:
    """Return x . y in double precision, a stretch at a time."""
    stretches = (slice(i, i + step) for i in range(0, len(x), step))
    return sum(float(x[s].astype(np.float64) @ y[s].astype(np.float64)) for s in stretches)
