r"""Penalties: each an object with its value and what a solver needs of it.

=====================  ==============================================  ========================
penalty                value                                           a solver asks for
=====================  ==============================================  ========================
`Ridge`                :math:`\frac{\alpha}{2} (|P|^2 + |Q|^2)`        the strength a factor
`TraceNorm`            :math:`\alpha |X|_{tr}`                         prox, largest strength
`ClippedTraceNorm`     :math:`\beta |Clip(X)|_{tr}`                    a step along -subgradient
=====================  ==============================================  ========================

At balanced factors the ridge on P and Q is the trace norm of P Q^T. On offsets it is
:math:`\frac{\alpha_b}{2} (|b|^2 + |c|^2)`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse.linalg import LinearOperator

from declip.clipping import Clipping, Limits, clipping
from declip.lowrank import LowRank, squared_norm
from declip.svd import SVD, exceed, operator_norm, shrink

__all__ = ["ClippedTraceNorm", "Ridge", "TraceNorm"]


@dataclass(frozen=True)
class Ridge:
    """The ridge on factors and offsets.

    Attributes
    ----------
    alpha : float
        Strength on the factors.
    alpha_bias : float, optional
        Strength on the offsets; by default the same.
    """

    alpha: float
    alpha_bias: float | None = None

    @property
    def on_offsets(self) -> float:
        """Strength on the offsets."""
        return self.alpha if self.alpha_bias is None else self.alpha_bias

    def value(self, model: LowRank) -> float:
        """Return alpha / 2 (|P|^2 + |Q|^2) + alpha_bias / 2 (|b|^2 + |c|^2)."""
        # Offsets are in the unit of the data, factors in its root: neither may drown the other.
        offsets = squared_norm(model.row_offset) + squared_norm(model.col_offset)
        return self.of_squares(squared_norm(model.P) + squared_norm(model.Q), offsets)

    def of_squares(self, factors: float, offsets: float) -> float:
        """Return the value from the squared norms of all factors and of all offsets."""
        return 0.5 * (self.alpha * factors + self.on_offsets * offsets)

    def vector(self, rank: int, bias: bool, dtype: Any = np.float64) -> NDArray:
        """Return the strength on each column of the factors, and on the offset if there is one."""
        ridge = np.full(rank + bias, self.alpha, dtype)
        if bias:
            ridge[-1] = self.on_offsets
        return ridge

    def trace_norm(self) -> TraceNorm:
        """Return what it is for balanced factors."""
        return TraceNorm(self.alpha)


@dataclass(frozen=True)
class TraceNorm:
    """The sum of the singular values, times alpha."""

    alpha: float

    def value(self, singular_values: NDArray) -> float:
        """Return alpha times their sum."""
        return self.alpha * float(singular_values.sum())

    def prox(
        self,
        A: Any,
        step: float = 1.0,
        near: NDArray | None = None,
        max_rank: int | None = None,
        **how: Any,
    ) -> SVD:
        """Return the X with the least |X - A|^2 / 2 + step * alpha |X|_tr; see `svd.shrink`."""
        return shrink(A, step * self.alpha, near, max_rank, **how)

    def missing(self, gradient: SVD) -> tuple[NDArray, NDArray]:
        """Return factors of the step that lowers loss and penalty in new directions.

        They are the singular directions (s, u, v) of the gradient with s > alpha; a step
        -(s - alpha) u v^T lowers the objective by (s - alpha)^2 / 2.
        """
        U, S, V = gradient
        weight = np.sqrt(S[exceed(S, self.alpha)] - self.alpha)
        return U[:, : len(weight)] * weight, -V[:, : len(weight)] * weight

    @staticmethod
    def largest(gradient_at_zero: LinearOperator) -> float:
        """Return the strength from which on X = 0 is best, given the gradient there."""
        return operator_norm(gradient_at_zero)


@dataclass(frozen=True)
class ClippedTraceNorm:
    """The trace norm of Clip(X), the projection of X onto the limits of all cells, times beta.

    Attributes
    ----------
    beta : float
        Strength.
    limits : Limits
        Limits of all cells.
    """

    beta: float
    limits: Limits

    def value(self, singular_values: NDArray) -> float:
        """Return beta times the sum of the singular values of Clip(X)."""
        return self.beta * float(singular_values.sum())

    def clipping(self, X: LowRank, threads: int = 1) -> Clipping:
        """Return Clip(X), in the form that suits it."""
        return clipping(X, self.limits, threads)

    def descended(
        self, clipped: Clipping, clip: SVD, step: float, parts: tuple[Any, ...]
    ) -> LinearOperator:
        """Return X - step beta W * U V^T + parts, for Clip(X) = U S V^T.

        W marks the cells strictly within their limits; W * U V^T is a subgradient with W fixed.
        """
        return clipped.moved(clip, step * self.beta, parts)
