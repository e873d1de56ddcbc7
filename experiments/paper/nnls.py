"""Tr-CMC with a rank that is held as in NNLS, the solver that the paper's program was built on.

By its description (Toh and Yun, 2010) and a public copy of its version 0: an iteration looks for at
most five singular triplets more than the last one kept, 150 in all, and from iteration 15 on ends
them at a gap of the shrunken singular values. A gap is where the mean of some before is more than
five times that of some after, ten times while the penalty still falls. The paper does not say how
much of this its program kept.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from numpy.typing import NDArray

from declip.intervals import Intervals
from declip.losses import Hinge
from declip.lowrank import LowRank
from declip.penalties import TraceNorm
from declip.solvers import Solution, Stopping, TraceProblem, proximal
from declip.svd import SVD

MORE, MOST = 5, 150  # singular triplets
GAP, FIRST_GAP, GAP_FROM = 5.0, 10.0, 15  # ratios of means, and iterations
LEAST, WINDOW = 5, 10  # triplets that are always kept, and those before and after a gap


@dataclass
class HeldRank(TraceProblem):
    """The problem, with what an iteration keeps set by the ones before."""

    kept: int = 0
    iterations: int = 0
    last: LowRank = field(init=False)

    def step(self, Y: LowRank, penalty: TraceNorm, near: LowRank) -> tuple[LowRank, SVD]:
        self.iterations += 1
        self.max_rank = min(self.kept + MORE, MOST)
        _, found = super().step(Y, penalty, near)
        gap = GAP if penalty.alpha == self.penalty.alpha else FIRST_GAP
        self.kept = before_gap(found.S, gap) if self.iterations >= GAP_FROM else len(found.S)
        found = SVD(*(part[..., : self.kept] for part in found))
        self.last = LowRank.from_svd(found, Y.A.dtype)
        return self.last, found


def before_gap(S: NDArray, gap: float) -> int:
    """Return how many singular values come before the widest gap, or all if there is none."""
    n = len(S)
    sudden = (k + 1 for k in range(LEAST, n) if S[k - 1] > gap * S[k])
    n = next(sudden, n)
    ratios = {
        k: S[max(0, k - 1 - WINDOW) : k].mean() / S[k : min(n, k + 1 + WINDOW)].mean()
        for k in range(LEAST, n)
    }
    widest = max(ratios, key=lambda k: ratios[k], default=len(S))
    return widest if ratios and ratios[widest] > gap else len(S)


def iterates(
    cells: Intervals, alpha: float, first_alpha: float, stops: tuple[int, ...]
) -> list[tuple[int, LowRank]]:
    """Return the matrix after each of so many iterations: the last one, not the best."""
    problem = HeldRank(cells, TraceNorm(alpha), Hinge())
    found: list[tuple[int, LowRank]] = []

    def keep(state: Solution) -> None:
        if state.n_iter in stops:
            found.append((state.n_iter, problem.last))

    start = LowRank.zero(cells.shape, cells.dtype)
    proximal(problem, start, Stopping(max(stops), 0.0, keep), first_alpha)
    return found
