r"""The quantities of the paper's Theorem 1, with floors and limits that vary by cell.

M = U S V^T has rank r; T is its tangent space; *hidden* are the cells at or beyond a limit, a *tie*
one exactly at it. The theorem: if rho_F, rho_inf and nu_B are below 1/2 and rho_op below 1/4, and
cells are observed independently with a probability p of at least each p_min, then the least trace
norm recovers M with probability at least 1 - delta. The condition is sufficient only, and hardly
ever met: failing it does not mean failure.

What the suprema rho are is known only up to an interval [low, high]. At a hidden cell the
information operator leaves 0 of Z (of a tie its positive part), so that what is lost of Z is Z at
the cells of a set that depends on Z, between those beyond the limits and all hidden ones. Hence the
upper ends. For the lower ends, half the sum of the losses of Z and -Z is Z with the weight 1 beyond
a limit and 1/2 at a tie, a linear map whose spectral radius bounds the gain in any norm.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil, e, inf, log, log2, sqrt
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from declip.diagnostics.parts import Matrix, Sizes, row_blocks
from declip.diagnostics.tangent import Tangent
from declip.grams import extreme_eigenvalues
from declip.solvers import Limits

__all__ = [
    "Conditions",
    "Hidden",
    "Range",
    "Theory",
    "coherence",
    "expert_seconds",
    "failure_bound",
    "golfing_steps",
    "hidden_cells",
    "least_beta",
    "order_of_p",
    "paper_constant",
    "rho_inf_above",
    "smallest_p",
]

LIMITS = {"nu_B": 0.5, "rho_F": 0.5, "rho_inf": 0.5, "rho_op": 0.25}  # of Theorem 1
BETA = 3.0  # the paper's choice
_LANCZOS_STEPS = 200  # for the cost said beforehand
_ROUNDING = 1e-14
_SPEED = 5e8  # multiplications a second, for the same


class Range(NamedTuple):
    """A quantity known to lie in [low, high]."""

    low: float
    high: float


class Conditions(NamedTuple):
    """The four quantities that the theorem wants below `LIMITS`."""

    nu_B: Range
    rho_F: Range
    rho_inf: Range
    rho_op: Range


class Hidden(NamedTuple):
    """Cells of a matrix at or beyond a limit: weights of 1 by row, and which of them are ties."""

    cells: sparse.csr_array
    tie: NDArray[np.bool_]

    def weighing_ties(self, weight: float) -> sparse.csr_array:
        """Return the cells with another weight for the ties."""
        data = np.where(self.tie, weight, 1.0)
        return sparse.csr_array((data, self.cells.indices, self.cells.indptr), self.cells.shape)


@dataclass(frozen=True)
class Theory:
    """The quantities of Theorem 1: sufficient only, failing it does not mean failure.

    Attributes
    ----------
    source : {"truth", "fit"}
        The matrix they are of.
    rank : int
        Its rank r.
    mu_0, mu_1 : float
        Coherence and joint coherence.
    nu_B : float
        Importance of the hidden cells: largest eigenvalue of P_T P_hidden P_T.
    nu_bounds : Range
        What the rows and columns alone say of nu_B.
    rho_F, rho_inf, rho_op : Range
        Information loss in three norms.
    k_0 : int
        Steps of the golfing scheme.
    p_min : dict of str to Range
        Five lower bounds on the probability of observing a cell; infinite where a condition fails.
    p_needed : Range
        The largest of them, at most 1.
    p_observed : float
        Share of observed cells.
    c_rho : Range
        The paper's constant.
    p_simple : Range
        The share that the short form of the theorem asks for, c_rho max(mu_1^2, mu_0) r f(n_1,
        n_2), with f written out; at least the largest of ``p_min``, and not cut at 1.
    beta : float
        The exponent that trades the share against the probability of failure; the paper takes 3.
    delta : float
        Bound on the probability of failure.
    sizes : Sizes or None
        Of Theorem 2: beta_1, beta_2 and mu of the same matrix. None for large tables, and where the
        limits of missing cells are not known.
    """

    source: str
    rank: int
    mu_0: float
    mu_1: float
    nu_B: float
    nu_bounds: Range
    rho_F: Range
    rho_inf: Range
    rho_op: Range
    k_0: int
    p_min: dict[str, Range]
    p_needed: Range
    p_observed: float
    c_rho: Range
    p_simple: Range
    beta: float
    delta: float
    sizes: Sizes | None = None

    @property
    def holds(self) -> bool | None:
        """Whether the conditions of the theorem hold; None if the intervals leave it open."""
        ranges = {name: getattr(self, name) for name in ("rho_F", "rho_inf", "rho_op")}
        ranges["nu_B"] = Range(self.nu_B, self.nu_B)
        sure = all(r.high < LIMITS[name] for name, r in ranges.items())
        out = any(r.low >= LIMITS[name] for name, r in ranges.items())
        if out or self.p_observed < self.p_needed.low:
            return False
        return True if sure and self.p_observed >= self.p_needed.high else None

    @classmethod
    def of(
        cls, tangent: Tangent, hidden: Hidden, p_observed: float, source: str, beta: float = BETA
    ) -> Theory:
        """Compute the quantities at a tangent space with matched singular vectors U and V."""
        r = tangent.U.shape[1]
        mu_0, mu_1 = coherence(tangent)
        nu, rho_F, nu_bounds, loss_op = _losses(tangent, hidden)
        at = Conditions(
            nu_B=Range(nu, nu),
            rho_F=rho_F,
            rho_inf=Range(rho_F.low, rho_inf_above(tangent, hidden.cells)),
            rho_op=Range(*(sqrt(r) * mu_1 * end for end in loss_op)),
        )
        k_0 = golfing_steps(tangent.shape, r)
        p_min = smallest_p(tangent.shape, r, (mu_0, mu_1), beta, at)
        ends = [max(p[end] for p in p_min.values()) for end in (0, 1)]
        least, c_rho = 1 / (tangent.shape[0] * tangent.shape[1]), paper_constant(at, beta)
        simple = max(mu_1**2, mu_0) * r * order_of_p(tangent.shape, r)
        return cls(
            source,
            r,
            mu_0,
            mu_1,
            nu,
            nu_bounds,
            at.rho_F,
            at.rho_inf,
            at.rho_op,
            k_0=k_0,
            p_min=p_min,
            p_needed=Range(*(min(1.0, max(least, end)) for end in ends)),
            p_observed=p_observed,
            c_rho=c_rho,
            p_simple=Range(*(end * simple for end in c_rho)),
            beta=beta,
            delta=failure_bound(tangent.shape, k_0, beta),
        )


def coherence(tangent: Tangent) -> tuple[float, float]:
    """Return mu_0 and mu_1."""
    (n_1, n_2), r = tangent.shape, tangent.U.shape[1]
    mu_0 = max(len(F) / r * float((F**2).sum(axis=1).max()) for F in (tangent.U, tangent.V))
    largest = max(
        float(np.abs(tangent.U[rows] @ tangent.V.T).max()) for rows in row_blocks((n_1, n_2))
    )
    return mu_0, sqrt(n_1 * n_2 / r) * largest


def hidden_cells(matrix: Matrix, limits: Limits) -> Hidden:
    """Find the cells of a matrix at or beyond their limits."""
    cols, ties, counts = [], [], []
    for rows in row_blocks(matrix.shape):
        X, here = matrix.block(rows), limits.rows(rows)
        out = here.side(X) != 0
        cols.append(np.broadcast_to(np.arange(X.shape[1], dtype=np.int32), X.shape)[out])
        ties.append(((X == here.floor) | (X == here.ceiling))[out])
        counts.append(out.sum(axis=1))
    ptr = np.concatenate([[0], np.cumsum(np.concatenate(counts))])
    idx = np.concatenate(cols)
    cells = sparse.csr_array((np.ones(len(idx)), idx, ptr), shape=matrix.shape)
    return Hidden(cells, np.concatenate(ties))


def _losses(tangent: Tangent, hidden: Hidden) -> tuple[float, Range, Range, Range]:
    """Return nu_B, rho_F, cheap bounds on nu_B, and the gain in the operator norm."""
    half = hidden.weighing_ties(0.5)
    nu, nu_bounds = _importance(tangent, hidden.cells)
    low = _importance(tangent, half)[0] if hidden.tie.any() else nu
    # Z = e_i (V a)^T has the norm |a|, and loses at least a^T (sum of w v_j v_j^T) a of its square
    single = max(float(ends.max()) for ends in _row_and_column_weights(tangent, half))
    counts = [int(np.diff(S.indptr).max(initial=0)) for S in (hidden.cells, hidden.cells.tocsc())]
    # |P_S Z|_op <= |P_S Z|_F <= sqrt(nu) |Z|_F <= sqrt(2 r nu) |Z|_op, and a 0-1 mask is a Schur
    # multiplier of norm at most the square root of the most ones in a row, or in a column
    most = min(sqrt(2 * tangent.U.shape[1] * nu), sqrt(min(counts)))
    return nu, Range(min(low, nu), nu), nu_bounds, Range(sqrt(single), max(most, sqrt(single)))


def _importance(tangent: Tangent, weights: sparse.csr_array) -> tuple[float, Range]:
    """Return the largest eigenvalue of P_T W P_T, and what rows and columns alone say of it."""
    heaviest = [float(ends.max()) for ends in _row_and_column_weights(tangent, weights)]
    bounds = Range(min(1.0, max(heaviest)), min(1.0, sum(heaviest)))
    if bounds.high - bounds.low <= _ROUNDING:
        return bounds.high, bounds
    nu = tangent.largest(weights)[0]
    return (bounds.high if np.isnan(nu) else min(nu, 1.0)), bounds


def _row_and_column_weights(tangent: Tangent, weights: sparse.csr_array) -> list[NDArray]:
    """Return the largest eigenvalue of the sum of w v_j v_j^T for each row, and for each column."""
    return [
        extreme_eigenvalues(weights, tangent.V)[1],
        extreme_eigenvalues(weights.T.tocsr(), tangent.U)[1],
    ]


def rho_inf_above(tangent: Tangent, hidden: sparse.csr_array) -> float:
    """Return the largest, over cells (a, b), sum of |P_T(e_a f_b^T)| over the hidden cells.

    With p = U U^T and q = V V^T, P_T(e_a f_b^T) is q_bj (1 - p_aa) in row a, p_ia (1 - q_bb) in
    column b, p_aa + q_bb - p_aa q_bb where they meet, and -p_ia q_bj elsewhere.
    """
    U, V = tangent.U, tangent.V
    if hidden.nnz == 0:
        return 0.0
    n_1, n_2 = tangent.shape
    if n_2 > n_1:  # fewer operations the other way round
        return rho_inf_above(Tangent(V, U), hidden.T.tocsr())
    q, p_own, q_own = np.abs(V @ V.T), (U**2).sum(axis=1), (V**2).sum(axis=1)
    largest, step = 0.0, max(1, (1 << 23) // max(n_1, n_2))
    for start in range(0, n_1, step):
        a = slice(start, min(start + step, n_1))
        mask = hidden[a].toarray()
        p = np.abs(U[a] @ U.T)
        down = p @ hidden  # sum over i of |p_ia| in column j
        across = mask @ q  # sum over j in row a of |q_bj|
        pa, qb = p_own[a, None], q_own[None, :]
        # all cells as if off row a and column b, then what these, and where they meet, add to that
        total = down @ q
        total += across * (1 - 2 * pa) + down * (1 - 2 * qb) + mask * (2 * pa * qb)
        largest = max(largest, float(total.max()))
    return largest


def golfing_steps(shape: tuple[int, int], r: int) -> int:
    """Return k_0 = ceil(log2(2 sqrt(2) sqrt(n_1 n_2 r)))."""
    return ceil(log2(2 * sqrt(2) * sqrt(shape[0] * shape[1] * r)))


def smallest_p(
    shape: tuple[int, int], r: int, mu: tuple[float, float], beta: float, at: Conditions
) -> dict[str, Range]:
    """Return the five p_min; p_min^{op,2} has n_1 n_2 below the bar, which slipped in print."""
    (n_1, n_2), (mu_0, mu_1), k_0 = shape, mu, golfing_steps(shape, r)
    n, m = n_1 * n_2, max(shape)
    pooled = (n_1 + n_2) * log(n) / n
    return {
        "F": _over_gap(8 * k_0 * mu_0 * beta * r * pooled, 0.5, at.rho_F),
        "op1": _over_gap(8 * k_0 * beta / 3 * log(n_1 + n_2) / m, 0.25, at.rho_op),
        "op2": _over_gap(
            8 * k_0 * beta * r * mu_1**2 / 3 * m * log(n_1 + n_2) / n, 0.25, at.rho_op
        ),
        "inf": _over_gap(8 * k_0 * mu_0 * r * beta / 3 * pooled, 0.5, at.rho_inf),
        "main": _over_gap(8 * beta * r * mu_0 / 3 * pooled, 0.5, at.nu_B),
    }


def paper_constant(at: Conditions, beta: float = BETA) -> Range:
    """Return c_rho: with beta = 3 the largest of 24 / (1/2 - rho_F)^2, 8 / (1/4 - rho_op)^2 ..."""
    parts = [
        _over_gap(8 * beta, 0.5, at.rho_F),
        _over_gap(8 * beta / 3, 0.25, at.rho_op),
        _over_gap(8 * beta / 3, 0.5, at.rho_inf),
        _over_gap(8 * beta / 3, 0.5, at.nu_B),
    ]
    return Range(max(p.low for p in parts), max(p.high for p in parts))


def order_of_p(shape: tuple[int, int], r: int) -> float:
    """Return f(n_1, n_2) of the theorem, with the appendix's bound on k_0."""
    n_1, n_2 = shape
    steps = log2(2 * sqrt(2 * r)) + 1 + log(n_1 * n_2) / (2 * log(2))
    return steps * (n_1 + n_2) * log(n_1 * n_2) / (n_1 * n_2)


def least_beta(shape: tuple[int, int]) -> float:
    """Return what beta has to exceed: 1 + log 2 / log(n_1 n_2), the largest of the lemmas."""
    return 1 + log(2) / log(max(shape[0] * shape[1], 2))


def failure_bound(shape: tuple[int, int], k_0: int, beta: float) -> float:
    """Return delta; its last term is added, and not taken off as printed."""
    n_1, n_2 = shape
    n = float(n_1 * n_2)
    steps = e**0.25 * n**-beta + 2 * n ** (1 - beta) + (n_1 + n_2) ** (1 - beta)
    return k_0 * steps + 2 * n ** (1 - beta)


def _over_gap(factor: float, limit: float, rho: Range) -> Range:
    return Range(*(inf if end >= limit else factor / (limit - end) ** 2 for end in rho))


def expert_seconds(shape: tuple[int, int], rank: int, clipped_share: float) -> float:
    """Return about how long `Theory.of` takes, in seconds."""
    small, large = sorted(shape)
    hidden = clipped_share * small * large
    lanczos = _LANCZOS_STEPS * hidden * 8 * rank
    # |p| W |q| for blocks of rows
    products = large * (hidden + large * rank + small**2 / 20)
    return (lanczos + products + small * large * rank) / _SPEED
