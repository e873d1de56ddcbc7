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

The ridge may have a `FactorPrior` on a side: then rows (or columns) are not drawn to 0 each on its
own, but to what the prior expects of them given the others, as features (`FeaturePrior`) do.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray
from scipy.sparse.linalg import LinearOperator

from declip.clipping import Clipping, Limits, clipping
from declip.lowrank import LowRank, squared_norm
from declip.svd import SVD, exceed, maps_of_roots, operator_norm, shrink

__all__ = [
    "ClippedTraceNorm",
    "FactorPrior",
    "FeaturePrior",
    "KnownCentre",
    "Ridge",
    "RowPull",
    "TraceNorm",
]


class RowPull(NamedTuple):
    """What a sweep draws the rows to: ``strength[i] * ridge * |p_i - centre_i|^2 / 2``.

    Attributes
    ----------
    centre : ndarray of shape (n_rows, k)
        One point for each row.
    strength : ndarray of shape (n_rows,) or None
        One number for each row; None is 1 for all.
    """

    centre: NDArray
    strength: NDArray | None = None


class FactorPrior(Protocol):
    r"""A penalty on the factors F of one side that couples its rows: ridge / 2 tr F^T K F.

    K = D - N with D diagonal and positive, N positive semi-definite, K too. So at any F0 it lies
    below :math:`\sum_i D_i |f_i - (N F_0)_i / D_i|^2` plus a constant, with equality at F0: a ridge
    on each row alone, about a centre of its own. That is what a sweep lowers.
    """

    @property
    def strength(self) -> NDArray[np.float64] | None:
        """The diagonal D; None is 1 for all rows."""

    def pulled(self, F: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return N F."""


@dataclass(frozen=True, eq=False)
class FeaturePrior:
    r"""Factors that are linear in features: :math:`\min_W |F - X W|^2 + \sum_f \rho_f |w_f|^2`.

    With the minimum over W taken, that is :math:`tr F^T (I - X (X^T X + \rho)^{-1} X^T) F`.

    Attributes
    ----------
    features : ndarray of shape (n_rows, n_features)
        One row of numbers for each row of the side.
    ridge : ndarray of shape (n_features,)
        Strength on the coefficients of each feature, as a share of that on the factors.

    Examples
    --------
    >>> import numpy as np
    >>> from declip.penalties import FeaturePrior
    >>> prior = FeaturePrior(np.array([[1.0], [-1.0]]), np.array([2.0]))
    >>> prior.coefficients(np.array([[3.0], [-3.0]]))  # 6 / (2 + 2)
    array([[1.5]])
    """

    features: NDArray[np.float64]
    ridge: NDArray[np.float64]
    strength: None = None

    @cached_property
    def solved(self) -> NDArray[np.float64]:
        """(X^T X + rho)^-1 X^T."""
        X = self.features
        return np.asarray(np.linalg.solve(X.T @ X + np.diag(self.ridge), X.T), np.float64)

    def coefficients(self, F: NDArray) -> NDArray[np.float64]:
        """Return the W that is best for factors F."""
        return np.asarray(self.solved @ F, np.float64)

    def pulled(self, F: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return X W."""
        return self.features @ self.coefficients(F)


@dataclass(frozen=True, eq=False)
class KnownCentre:
    """Rows that are drawn each to a point that is given: new rows, whose features are known."""

    centre: NDArray
    strength: None = None

    def pulled(self, F: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the centres."""
        return self.centre.astype(np.float64)


@dataclass(frozen=True)
class Ridge:
    """The ridge on factors and offsets.

    Attributes
    ----------
    alpha : float
        Strength on the factors.
    alpha_bias : float, optional
        Strength on the offsets; by default the same.
    row_prior, col_prior : FactorPrior, optional
        What rows and columns are drawn to; by default 0.
    """

    alpha: float
    alpha_bias: float | None = None
    row_prior: FactorPrior | None = None
    col_prior: FactorPrior | None = None

    @property
    def T(self) -> Ridge:
        """The penalty of the transposed table."""
        return replace(self, row_prior=self.col_prior, col_prior=self.row_prior)

    @property
    def plain(self) -> bool:
        """Whether every row and column is drawn to 0 on its own."""
        return self.row_prior is None and self.col_prior is None

    @property
    def on_offsets(self) -> float:
        """Strength on the offsets."""
        return self.alpha if self.alpha_bias is None else self.alpha_bias

    def value(self, model: LowRank) -> float:
        """Return alpha / 2 (|P|^2 + |Q|^2) + alpha_bias / 2 (|b|^2 + |c|^2)."""
        if not self.plain:
            grams = _gram(self.row_prior, model.A) + _gram(self.col_prior, model.B)
            ridge = self.vector(model.rank, model.bias)
            return 0.5 * float(ridge @ np.diagonal(grams))
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

    def pull(self, A: NDArray) -> RowPull | None:
        """Return what a sweep over rows with these factors draws them to; None is 0."""
        prior = self.row_prior
        if prior is None:
            return None
        strength, pulled = prior.strength, prior.pulled(A.astype(np.float64))
        if strength is None:
            return RowPull(pulled.astype(A.dtype))
        return RowPull((pulled / strength[:, None]).astype(A.dtype), strength.astype(A.dtype))

    def balanced(self, model: LowRank) -> tuple[LowRank, tuple[NDArray, NDArray]]:
        """Return the same matrix with the factors of the least penalty, and the maps used."""
        if self.plain:
            balanced, _, maps = model.balanced()
            return balanced, maps
        roots = [
            _root(_gram(prior, F))
            for prior, F in ((self.row_prior, model.P), (self.col_prior, model.Q))
        ]
        _, M, N = maps_of_roots(*roots)
        return model.mapped(M, N), (M, N)

    def centred(self, model: LowRank) -> tuple[LowRank, tuple[float, float]]:
        """Return the same matrix with the offsets of the least penalty, the mean being free."""
        if self.plain or not model.bias:
            return model.centred()
        shifts = _level(self.row_prior, model.row_offset), _level(self.col_prior, model.col_offset)
        return model.shifted(shifts), shifts

    def trace_norm(self) -> TraceNorm:
        """Return the trace norm that this ridge amounts to for balanced factors."""
        return TraceNorm(self.alpha)


def _precision(prior: FactorPrior | None, F: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return K F."""
    if prior is None:
        return F
    own = F if prior.strength is None else prior.strength[:, None] * F
    return own - prior.pulled(F)


def _gram(prior: FactorPrior | None, F: NDArray) -> NDArray[np.float64]:
    """Return F^T K F."""
    F = F.astype(np.float64)
    return F.T @ _precision(prior, F)


def _root(gram: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return R with R^T R = gram."""
    squares, V = np.linalg.eigh(0.5 * (gram + gram.T))
    return np.sqrt(np.maximum(squares, 0.0))[:, None] * V.T


def _level(prior: FactorPrior | None, offset: NDArray) -> float:
    """Return the t of the least (b - t)^T K (b - t)."""
    K1 = _precision(prior, np.ones((len(offset), 1)))[:, 0]
    return float(K1 @ offset.astype(np.float64)) / float(K1.sum())


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
