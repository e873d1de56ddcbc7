"""What a fit needs to know of all cells before it begins, gathered block by block."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from declip.cells import Cells
from declip.intervals import face_value
from declip.losses import CLIPPED_MODES

__all__ = ["BlockSummary"]

_DISTINCT = 1024  # different limits that are all kept; of more, as many quantiles


@dataclass(frozen=True)
class BlockSummary:
    """Sizes of the values of exact cells, of censored cells at their limit, and the limits.

    Attributes
    ----------
    exact, censored : list of float
        Count, mean, sum of squared deviations from it, and largest size.
    ceilings, floors : list of [float, float]
        Limits of cells at a ceiling, and at a floor, with their counts.
    """

    exact: list[float] = field(default_factory=lambda: [0, 0.0, 0.0, 0.0])
    censored: list[float] = field(default_factory=lambda: [0, 0.0, 0.0, 0.0])
    ceilings: list[list[float]] = field(default_factory=list)
    floors: list[list[float]] = field(default_factory=list)

    @classmethod
    def of(cls, cells: Cells) -> BlockSummary:
        """Return the summary of some cells."""
        return cls(
            _moments(cells.value),
            _moments(face_value(cells.lower, cells.upper)),
            _counted(cells.lower[cells.right_censored]),
            _counted(cells.upper[cells.left_censored]),
        )

    @classmethod
    def together(cls, parts: Iterable[BlockSummary]) -> BlockSummary:
        """Return the summary of the cells of several."""
        parts = list(parts)
        return cls(
            _merged([p.exact for p in parts]),
            _merged([p.censored for p in parts]),
            _gathered([p.ceilings for p in parts]),
            _gathered([p.floors for p in parts]),
        )

    def values(self, clipped: str) -> tuple[float, float]:
        """Return mean and standard deviation of the values that count."""
        left_out = CLIPPED_MODES[clipped].cells == "left out"
        n, mean, squares, _ = self.exact if left_out else _merged([self.exact, self.censored])
        return mean, float(np.sqrt(squares / n))

    @property
    def largest(self) -> float:
        """Largest size of a value or a limit."""
        return max(self.exact[3], self.censored[3])

    def typical_limits(self, clipped: str) -> tuple[float | None, float | None]:
        """Return the medians of the floors and of the ceilings, if cells at them count as such."""
        if CLIPPED_MODES[clipped].cells != "kept":
            return None, None
        floor, ceiling = (_median(end) if end else None for end in (self.floors, self.ceilings))
        return floor, ceiling


def _moments(values: NDArray) -> list[float]:
    if len(values) == 0:
        return [0, 0.0, 0.0, 0.0]
    wide = values.astype(np.float64)
    mean = wide.mean()
    return [len(wide), float(mean), float(((wide - mean) ** 2).sum()), float(np.abs(wide).max())]


def _merged(parts: list[list[float]]) -> list[float]:
    n = sum(p[0] for p in parts)
    if n == 0:
        return [0, 0.0, 0.0, 0.0]
    mean = sum(p[0] * p[1] for p in parts) / n
    squares = sum(p[2] + p[0] * (p[1] - mean) ** 2 for p in parts)
    return [n, mean, squares, max(p[3] for p in parts)]


def _counted(limits: NDArray) -> list[list[float]]:
    values, counts = np.unique(limits.astype(np.float64), return_counts=True)
    return _thinned(values, counts.astype(np.float64))


def _gathered(parts: list[list[list[float]]]) -> list[list[float]]:
    pairs = np.array([pair for part in parts for pair in part]).reshape(-1, 2)
    values, which = np.unique(pairs[:, 0], return_inverse=True)
    return _thinned(values, np.bincount(which, pairs[:, 1], len(values)))


def _thinned(values: NDArray, counts: NDArray) -> list[list[float]]:
    if len(values) > _DISTINCT:
        at = (np.arange(_DISTINCT) + 0.5) / _DISTINCT * counts.sum()
        total = counts.sum() / _DISTINCT
        values = values[np.searchsorted(np.cumsum(counts), at)]
        counts = np.full(_DISTINCT, total)
    return [[float(v), float(c)] for v, c in zip(values, counts, strict=True)]


def _median(limits: list[list[float]]) -> float:
    values, counts = np.array(sorted(limits)).T
    ends = np.cumsum(counts)
    low, high = (values[np.searchsorted(ends, ends[-1] / 2, side)] for side in ("left", "right"))
    return float(0.5 * (low + high))
