"""Draws of a fitted method: its parameters are drawn first, all cells of a table under them."""

from __future__ import annotations

from dataclasses import dataclass
from functools import singledispatch
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from declip.estimators import BayesCMC
from declip.intervals import Intervals
from declip.restoration.candidates import CensoredNormal, ColumnTobit
from declip.restoration.tasks import fitted
from declip.solvers.gibbs.covariance import NormalDraws, sample_columns
from declip.solvers.gibbs.posterior import Posterior

__all__ = ["CellDistributions", "PosteriorDraws", "posterior_draws"]

_COLUMN_DRAWS = 100
_BOOTSTRAPS = 20  # fits of a method that has no posterior


class CellDistributions(NamedTuple):
    """What one draw of the parameters says of cells, in standard units.

    Attributes
    ----------
    centre, spread : ndarray of shape (n_cells,)
        Normal distributions of the cells given all else.
    value : ndarray of shape (n_cells,) or None
        The cells drawn together, within their intervals; None if they are independent.
    """

    centre: NDArray[np.float64]
    spread: NDArray[np.float64]
    value: NDArray[np.float64] | None = None


class PosteriorDraws(Protocol):
    """Draws of the parameters of a method."""

    def __len__(self) -> int:
        """Return how many there are."""

    def at(self, draw: int, rows: NDArray, cols: NDArray) -> CellDistributions:
        """Return what one of them says of cells."""

    def missing(self, draw: int, rows: NDArray, cols: NDArray) -> CellDistributions:
        """Return what one of them says of missing cells, whose absence may tell of their values."""


@singledispatch
def posterior_draws(estimator: Any, cells: Intervals, seed: int) -> PosteriorDraws:
    """Return draws of the parameters of a method that was fitted to cells.

    Samples of the posterior where the method has them, registered below for its class; else fits
    to rows drawn with replacement.
    """
    return _Bootstraps.of(estimator, cells, seed)


@dataclass(frozen=True, eq=False)
class _FactorDraws:
    posterior: Posterior

    def __len__(self) -> int:
        return len(self.posterior.samples)

    def at(self, draw: int, rows: NDArray, cols: NDArray) -> CellDistributions:
        return CellDistributions(*self.posterior.component(draw, rows, cols))

    def missing(self, draw: int, rows: NDArray, cols: NDArray) -> CellDistributions:
        return CellDistributions(*self.posterior.missing_component(draw, rows, cols))


@posterior_draws.register
def _(estimator: BayesCMC, cells: Intervals, seed: int) -> PosteriorDraws:
    return _FactorDraws(estimator.posterior_)


@dataclass(frozen=True, eq=False)
class _RowDraws:
    draws: NormalDraws

    def __len__(self) -> int:
        return len(self.draws)

    def at(self, draw: int, rows: NDArray, cols: NDArray) -> CellDistributions:
        value = self.draws.rows[draw, rows, cols].astype(np.float64)
        return CellDistributions(*self.draws.conditional(draw, rows, cols), value)

    missing = at


@posterior_draws.register
def _(estimator: CensoredNormal, cells: Intervals, seed: int) -> PosteriorDraws:
    return _RowDraws(estimator.draws_)


@dataclass(frozen=True, eq=False)
class _ColumnDraws:
    mean: NDArray[np.float64]
    sd: NDArray[np.float64]

    @classmethod
    def of(cls, estimator: ColumnTobit, cells: Intervals, seed: int) -> _ColumnDraws:
        found = estimator.location_, estimator.spread_
        if estimator.shared:  # all cells of a table speak for two numbers: they are known
            return cls(*(part[None] for part in found))
        return cls(*sample_columns(cells, found, n_draws=_COLUMN_DRAWS, seed=seed))

    def __len__(self) -> int:
        return len(self.mean)

    def at(self, draw: int, rows: NDArray, cols: NDArray) -> CellDistributions:
        return CellDistributions(self.mean[draw, cols], self.sd[draw, cols])

    missing = at


@posterior_draws.register
def _(estimator: ColumnTobit, cells: Intervals, seed: int) -> PosteriorDraws:
    return _ColumnDraws.of(estimator, cells, seed)


@dataclass(frozen=True, eq=False)
class _Bootstraps:
    estimator: Any
    cells: Intervals
    fits: list[Any]

    @classmethod
    def of(cls, estimator: Any, cells: Intervals, seed: int) -> _Bootstraps:
        rng, n = np.random.default_rng(seed), cells.shape[0]
        drawn = (cells.take_rows(rng.integers(n, size=n)) for _ in range(_BOOTSTRAPS))
        return cls(estimator, cells, [_refitted(estimator, rows) for rows in drawn])

    def __len__(self) -> int:
        return len(self.fits)

    def at(self, draw: int, rows: NDArray, cols: NDArray) -> CellDistributions:
        centre = self.fits[draw].predict(self.cells)[rows, cols]
        return CellDistributions(
            centre.astype(np.float64), self.estimator.predictive(rows, cols)[1]
        )

    missing = at


def _refitted(estimator: Any, cells: Intervals) -> Any:
    try:
        return fitted(estimator, cells)
    except ValueError:  # a column of which no cell was drawn
        return estimator
