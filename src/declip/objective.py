r"""The full objective, in one place, and the certificate of its optimum.

For the interval loss f (see `declip.losses`) the factor model minimises

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
from declip.cells import Cells
from declip.intervals import Intervals
from declip.losses import Hinge, Loss
from declip.lowrank import LowRank
from declip.penalties import Ridge, TraceNorm
from declip.svd import SparsePlusLowRank, fits_dense, operator_norm

__all__ = [
    "Certificate",
    "Gradient",
    "certificate",
    "gradient",
    "largest_alpha",
    "objective",
    "total_loss",
]

_MANY_FACTORS = 100  # from this rank on X as a whole is made sooner than most of its cells
_MOSTLY_OBSERVED = 0.5  # share of observed cells from which they are most
_STRETCH = 1 << 20  # numbers that are summed in double precision at a time
_HINGE = Hinge()


def objective(
    intervals: Intervals, model: LowRank, penalty: Ridge, loss: Loss = _HINGE, threads: int = 1
) -> float:
    """Return the objective of the factor model."""
    cells = total_loss(intervals, model, loss, threads)
    return loss.objective(cells, penalty.value(model), intervals.by_row.weight[0])


def total_loss(
    intervals: Intervals, model: LowRank, loss: Loss = _HINGE, threads: int = 1
) -> float:
    """Return the loss of all observed cells."""
    side = intervals.by_row
    if _all_at_once(intervals, model):
        return _residuals_at_once(side, model, loss, threads)[0]
    return kernels.total_loss(model.row_problem(side, loss), model.A, threads=threads)


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
    loss: Loss = _HINGE,
    threads: int = 1,
    dtype: Any = np.float64,
) -> Gradient:
    """Return the loss and its gradient with respect to X, the latter as numbers of ``dtype``."""
    side, shape = intervals.by_row, intervals.shape
    if _all_at_once(intervals, model):
        total, exact, censored = _residuals_at_once(side, model, loss, threads)
    else:
        rows = model.row_problem(side, loss)
        total, exact, censored = kernels.residuals(rows, model.A, threads=threads)

    def as_matrix(data: NDArray, idx: NDArray, ptr: NDArray) -> sparse.csr_array:
        return sparse.csr_array((data.astype(dtype, copy=False), idx, _narrow(ptr)), shape=shape)

    return Gradient(
        total,
        as_matrix(exact, side.exact_idx, side.exact_ptr),
        as_matrix(censored, side.censored_idx, side.censored_ptr),
    )


def _all_at_once(intervals: Intervals, model: LowRank) -> bool:
    """Return whether X as a whole is made sooner than its observed cells one by one."""
    n_rows, n_cols = intervals.shape
    observed = intervals.n_exact + intervals.n_censored
    if intervals.by_row.weights is not None:
        return False
    wide, full = _MANY_FACTORS <= model.rank, _MOSTLY_OBSERVED * n_rows * n_cols <= observed
    return wide and full and fits_dense(intervals.shape)


def _residuals_at_once(
    side: Cells, model: LowRank, loss: Loss, threads: int
) -> tuple[float, NDArray, NDArray]:
    """Return what `declip.kernels.residuals` does, from X as a whole."""
    X = model.block()
    exact = X[side.exact_rows(), side.exact_idx] - side.value
    x = X[side.censored_rows(), side.censored_idx]
    value, slope, _ = loss.cells(x, side.lower, side.upper, threads)
    return 0.5 * _dot(exact, exact) + float(value.sum()), exact, slope.astype(X.dtype, copy=False)


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
    penalty: Ridge,
    loss: Loss = _HINGE,
    trace_norm: float | None = None,
    threads: int = 1,
) -> Certificate:
    """Certify a model against the convex problem of the same penalty, mean and noise scale.

    The dual point is Y = min(1, alpha / |G|_op) G for the gradient G of the loss; the gap is
    F(X) + f*(Y) - mean sum(Y) + (|Y 1|^2 + |Y^T 1|^2) / (2 alpha_bias), the last term only with
    offsets.
    """
    G = gradient(intervals, model, loss, threads, intervals.dtype)
    if trace_norm is None:
        trace_norm = model.trace_norm()
    alpha, norm = penalty.alpha, operator_norm(G.operator())
    shrink = 1.0 if norm <= alpha else alpha / norm
    offsets = sum(float(o @ o) for o in (model.row_offset, model.col_offset))
    # |P|^2 + |Q|^2 of balanced factors is twice the trace norm
    primal = G.loss + penalty.of_squares(2 * trace_norm, offsets)
    total = sum(float(S.data.sum(dtype=np.float64)) for S in (G.exact, G.censored))
    dual = _conjugate(intervals, model, G, shrink, loss) - model.mean * shrink * total
    if model.bias:
        sums = [sum(S.sum(axis=a, dtype=np.float64) for S in (G.exact, G.censored)) for a in (0, 1)]
        dual += _over(shrink**2 * sum(float(s @ s) for s in sums), 2 * penalty.on_offsets)
    return Certificate(primal, max(primal + dual, 0.0), _over(norm, alpha))


def _over(above: float, below: float) -> float:
    """Return above / below, where 0 / 0 is 0."""
    return above / below if below > 0 else np.inf if above > 0 else 0.0


def largest_alpha(intervals: Intervals, loss: Loss = _HINGE) -> float:
    """Return the alpha from which the best X is 0."""
    zero = LowRank.zero(intervals.shape, intervals.dtype)
    return TraceNorm.largest(gradient(intervals, zero, loss).operator())


def _conjugate(
    intervals: Intervals, model: LowRank, G: Gradient, shrink: float, loss: Loss
) -> float:
    """Return f*(shrink * G), the sum over cells of sup over x of x y - loss(x), or more."""
    side = intervals.by_row
    y = G.exact.data
    value = shrink * _dot(y, side.value) + 0.5 * shrink**2 * _dot(y, y)
    if intervals.n_censored == 0:
        return value
    x = model.predict(side.censored_rows(), side.censored_idx).astype(np.float64)
    slope = G.censored.data.astype(np.float64)
    return value + loss.conjugate(x, slope, shrink, side.lower, side.upper)


def _dot(x: NDArray, y: NDArray) -> float:
    """Return x . y in double precision, a stretch at a time."""
    stretches = (slice(i, i + _STRETCH) for i in range(0, len(x), _STRETCH))
    return sum(float(x[s].astype(np.float64) @ y[s].astype(np.float64)) for s in stretches)
