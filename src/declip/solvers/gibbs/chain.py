"""One Markov chain: the columns given the rows, then the rows given the columns."""

from __future__ import annotations

import copy
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from declip import kernels
from declip.intervals import Cells, Intervals
from declip.losses import Tobit
from declip.lowrank import LowRank
from declip.solvers.gibbs.priors import (
    Gaussian,
    NoiseScales,
    draw_normal_wishart,
    draw_relevance,
    standard_normal,
)

__all__ = ["Chain", "Model", "Table", "expected_cells", "row_design"]

Pair = tuple[NDArray[np.float64], NDArray[np.float64]]


@dataclass(frozen=True)
class Model:
    """What is fitted.

    Attributes
    ----------
    rank : int
        Number of factors.
    noise : {"column", "row+column", "global"}
        Which cells share a noise scale.
    df : float
        Degrees of freedom of Student t noise; 0 for Gaussian noise.
    """

    rank: int
    noise: str
    df: float = 0.0

    @property
    def row_offsets(self) -> bool:
        """Whether rows have offsets: where all cells share one unit."""
        return self.noise != "column"


@dataclass(frozen=True, eq=False)
class Table:
    """The standardised cells, and how to bring what belongs to them from rows to columns."""

    cells: Intervals

    @cached_property
    def exact_order(self) -> NDArray[np.int64]:
        """Positions, by row, of the exact cells by column."""
        return np.argsort(self.cells.by_row.exact_idx, kind="stable")

    @cached_property
    def censored_order(self) -> NDArray[np.int64]:
        """Positions, by row, of the censored cells by column."""
        return np.argsort(self.cells.by_row.censored_idx, kind="stable")

    @cached_property
    def counts(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Observed cells of each row and of each column."""
        rows, cols = (
            np.diff(side.exact_ptr) + np.diff(side.censored_ptr)
            for side in (self.cells.by_row, self.cells.by_col)
        )
        return rows, cols


@dataclass(eq=False)
class Chain:
    """The state of a chain; each sweep replaces its arrays and never writes into them.

    Attributes
    ----------
    model : Model
        What is fitted.
    factors : LowRank
        Row and column factors with offsets.
    scales : NoiseScales
        Precisions of the noise.
    row_prior : Gaussian
        The prior under which the rows were drawn.
    z : ndarray
        Values of the censored cells, by row.
    weights : (ndarray, ndarray) or None
        Weights of exact and censored cells, by row; None for Gaussian noise.
    rng, seed : Generator, int
        For what is drawn here, and for what the kernels draw.
    n_sweeps : int
        Sweeps made so far.
    misfit : float
        Mean over the cells of minus the log density of the noise, up to a constant.
    """

    model: Model
    factors: LowRank
    scales: NoiseScales
    row_prior: Gaussian
    z: NDArray[np.float64]
    weights: Pair | None
    rng: np.random.Generator
    seed: int
    n_sweeps: int = 0
    misfit: float = np.inf

    @classmethod
    def start(cls, cells: Intervals, model: Model, seed: np.random.SeedSequence) -> Chain:
        """Begin with rows from their prior, no column factors and censored cells at their mean."""
        rng = np.random.default_rng(seed)
        (n, m), k = cells.shape, model.rank
        A, B = np.zeros((n, k + 1)), np.zeros((m, k + 1))
        A[:, :k] = rng.standard_normal((n, k))
        B[:, :k] = rng.standard_normal((m, k)) / np.sqrt(k)
        return cls(
            model=model,
            factors=LowRank(A, B, bias=True),
            scales=NoiseScales.start(model.noise, cells.shape),
            row_prior=standard_normal(k + model.row_offsets),
            z=expected_cells(cells.by_row),
            weights=(np.ones(cells.n_exact), np.ones(cells.n_censored)) if model.df else None,
            rng=rng,
            seed=int(seed.generate_state(1, np.uint64)[0]),
        )

    def copy(self) -> Chain:
        """Return a chain that goes on from here on its own."""
        twin = copy.copy(self)
        twin.rng = copy.deepcopy(self.rng)
        return twin

    def sweep(self, table: Table, threads: int) -> None:
        """Draw columns, then rows; the censored cells with both."""
        self._draw_cols(table, threads)
        self._draw_rows(table, threads)
        self.n_sweeps += 1

    def _draw_cols(self, table: Table, threads: int) -> None:
        flipped, scales = self.factors.T, self.scales
        prior = draw_normal_wishart if self.model.row_offsets else draw_relevance
        design, offset = flipped.design()
        orders = table.exact_order if self.weights else None, table.censored_order
        state = self._cells_in(orders)
        B = flipped.A.copy()
        squares = kernels.draw_rows(
            *(table.cells.by_col, state[1], B, design, offset, prior(B, self.rng)),
            *((scales.cols, scales.rows), (self.seed, 2 * self.n_sweeps)),
            weights=state[0],
            df=self.model.df,
            threads=threads,
        )
        self._take_cells(orders, state)
        self.factors = replace(self.factors, B=B)
        self.scales = scales.draw_cols(table.counts[1], squares, self.rng)

    def _draw_rows(self, table: Table, threads: int) -> None:
        scales, offsets = self.scales, self.model.row_offsets
        if offsets:
            self.row_prior = draw_normal_wishart(self.factors.A, self.rng)
        A, (design, offset) = self.factors.A.copy(), row_design(self.factors, offsets)
        own = A if offsets else np.ascontiguousarray(A[:, :-1])
        state = self._cells_in((None, None))
        squares = kernels.draw_rows(
            *(table.cells.by_row, state[1], own, design, offset, self.row_prior),
            *((scales.rows, scales.cols), (self.seed, 2 * self.n_sweeps + 1)),
            weights=state[0],
            df=self.model.df,
            threads=threads,
        )
        self.weights, self.z = state
        A[:, : own.shape[1]] = own
        self.factors = replace(self.factors, A=A)
        self.misfit = _misfit(scales, squares, table.counts)
        self.scales = scales.draw_rows(table.counts[0], squares, self.rng)

    def _cells_in(
        self, orders: tuple[NDArray | None, NDArray | None]
    ) -> tuple[Pair | None, NDArray[np.float64]]:
        """Return copies of the weights and values of the cells, in another order."""
        exact, censored = (slice(None) if order is None else order for order in orders)
        z = np.array(self.z[censored])
        if self.weights is None:
            return None, z
        return (np.array(self.weights[0][exact]), np.array(self.weights[1][censored])), z

    def _take_cells(
        self, orders: tuple[NDArray | None, NDArray], state: tuple[Pair | None, NDArray]
    ) -> None:
        """Bring weights and values back from that order."""
        weights, z = state
        self.z = _scattered(z, orders[1])
        if weights is not None and orders[0] is not None:
            self.weights = _scattered(weights[0], orders[0]), _scattered(weights[1], orders[1])


def row_design(factors: LowRank, offsets: bool) -> Pair:
    """Return what the rows are seen through: with or without a column for their offset."""
    if offsets:
        return factors.design()
    return np.ascontiguousarray(factors.Q), np.ascontiguousarray(factors.col_offset)


def expected_cells(side: Cells) -> NDArray[np.float64]:
    """Return the mean of N(0, 1) in the interval of each censored cell."""
    return Tobit(1.0).expected(np.zeros(len(side.lower)), side.lower, side.upper)


def _scattered(values: NDArray, order: NDArray) -> NDArray:
    out = np.empty_like(values)
    out[order] = values
    return out


def _misfit(scales: NoiseScales, squares: NDArray, counts: tuple[NDArray, NDArray]) -> float:
    logs = sum(
        float(n @ np.log(precision))
        for n, precision in zip(counts, (scales.rows, scales.cols), strict=True)
    )
    return 0.5 * (float(scales.rows @ squares) - logs) / max(int(counts[0].sum()), 1)
