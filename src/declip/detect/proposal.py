"""What detect_limits returns: the limits proposed, and the evidence for them."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import narwhals.stable.v2 as nw
import numpy as np
from numpy.typing import NDArray

from declip.detect.missingness import MissingTrend

__all__ = ["EndEvidence", "LimitProposal"]

_LISTED = 10  # columns that a summary lists


@dataclass(frozen=True, eq=False)
class EndEvidence:
    """What the columns of a table show at one end.

    Attributes
    ----------
    limit : float, ndarray of shape (n_features,) or None
        What is proposed: one limit for the table, one for each column (infinite where there is
        none), or nothing.
    end : ndarray of shape (n_features,)
        The last value of each column (with a tolerance, so much inside of it); NaN if it is empty.
    count, observed : ndarray of int
        How many values are there, of how many.
    expected : ndarray
        How many one would expect there, at most; NaN where it was not looked into.
    p_value : ndarray
        Chance of what is seen without a limit.
    reason : ndarray of str
        "piles up", "scale ends", "shared" (piles up together with other columns), "table" (the
        limit of the whole table), or "natural zero" and "", for which nothing is proposed.
    """

    limit: float | NDArray[np.float64] | None
    end: NDArray[np.float64]
    count: NDArray[np.int64]
    observed: NDArray[np.int64]
    expected: NDArray[np.float64]
    p_value: NDArray[np.float64]
    reason: NDArray[np.str_]


@dataclass(frozen=True, eq=False)
class LimitProposal:
    """Ceilings and floors that `detect_limits` proposes, and why.

    Attributes
    ----------
    ceiling, floor : float, ndarray of shape (n_features,) or None
        Limits as the estimators take them: for the table, for each column (infinite where there is
        none), or none at all.
    tol : float
        The tolerance that they were found with.
    at_ceiling, at_floor : EndEvidence
        What the columns show at their ends.
    labels : ndarray or None
        Names of the columns.
    missing : MissingTrend or None
        Whether missing cells follow values; its ``plot()`` draws it.
    """

    at_ceiling: EndEvidence = field(repr=False)
    at_floor: EndEvidence = field(repr=False)
    tol: float = 0.0
    labels: NDArray | None = field(default=None, repr=False)
    missing: MissingTrend | None = field(default=None, repr=False)

    @property
    def ceiling(self) -> float | NDArray[np.float64] | None:
        """The ceiling, or one for each column."""
        return self.at_ceiling.limit

    @property
    def floor(self) -> float | NDArray[np.float64] | None:
        """The floor, or one for each column."""
        return self.at_floor.limit

    def to_dict(self) -> dict[str, NDArray]:
        """Return the evidence as columns of a table, two rows for each column of X."""
        sides = {"ceiling": self.at_ceiling, "floor": self.at_floor}
        n = len(self.at_ceiling.count)
        names = np.arange(n) if self.labels is None else self.labels
        table = {"column": np.tile(names, 2), "side": np.repeat(list(sides), n)}
        limits = [_spread(e.limit, n) for e in sides.values()]
        table["proposed"] = np.concatenate(limits)
        for name in ("end", "count", "observed", "expected", "p_value", "reason"):
            table[name] = np.concatenate([getattr(e, name) for e in sides.values()])
        return table

    def to_frame(self, backend: Any = "pandas") -> Any:
        """Return `to_dict` as a data frame of pandas, polars or another backend of narwhals."""
        return nw.from_dict(self.to_dict(), backend=backend).to_native()

    def __str__(self) -> str:
        return _joined([self.limits, "" if self.missing is None else str(self.missing)])

    @property
    def limits(self) -> str:
        """What was found of limits, in words."""
        if self.ceiling is None and self.floor is None:
            return _joined(
                [f"No limits found in {len(self.at_ceiling.count)} columns.", self._zeros()]
            )
        lines = [self._line("ceiling", self.at_ceiling), self._line("floor", self.at_floor)]
        advice = "Nothing was applied: pass ceiling= and floor= on if you agree."
        if self.tol:
            advice = (
                "Nothing was applied: if you agree, use Intervals.from_table(X, ceiling=, floor=, "
                f"tol={self.tol:g})."
            )
        return _joined([*lines, self._zeros(), advice])

    def _line(self, side: str, e: EndEvidence) -> str:
        if e.limit is None:
            return f"{side}: none found"
        if np.ndim(e.limit) == 0:
            n, total = e.count[e.reason != ""].sum(), e.observed.sum()
            where = f"{n} of {total} values lie ({n / total:.1%})".replace("%", " %")
            return f"{side}: {e.limit:g} for the table, at which {where}"
        found = np.flatnonzero(np.isfinite(e.limit))
        head = f"{side}: found in {len(found)} of {len(e.count)} columns"
        more = [f"  ... and {len(found) - _LISTED} more: see to_frame()"] * (len(found) > _LISTED)
        return "\n".join([head, *(self._column(e, j) for j in found[:_LISTED]), *more])

    def _column(self, e: EndEvidence, j: int) -> str:
        name = j if self.labels is None else repr(self.labels[j])
        return (
            f"  column {name}: {e.end[j]:g}, at which {e.count[j]} of {e.observed[j]} values lie, "
            f"{e.expected[j]:.1f} expected at most ({e.reason[j]}, p = {e.p_value[j]:.1g})"
        )

    def _zeros(self) -> str:
        sides = (self.at_ceiling, self.at_floor)
        zeros = sum(np.count_nonzero(e.reason == "natural zero") for e in sides)
        if not zeros:
            return ""
        return (
            f"{zeros} columns pile up where they begin, at zero or the first step from it, which "
            "is not proposed; with zero=True it is."
        )


def _spread(limit: Any, n: int) -> NDArray[np.float64]:
    """Return a limit for each column, NaN where there is none."""
    if limit is None:
        return np.full(n, np.nan)
    limits = np.broadcast_to(np.asarray(limit, np.float64), (n,))
    return np.where(np.isinf(limits), np.nan, limits)


def _joined(lines: list[str]) -> str:
    return "\n".join(line for line in lines if line)
