"""One Markov chain: the columns given the rows, then the rows given the columns."""

from __future__ import annotations

import copy
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from declip import kernels
from declip.intervals import Cells, Intervals
from declip.kernels import CellDraws, DrawProblem
from declip.losses import Tobit
from declip.lowrank import LowRank
from declip.solvers.gibbs.priors import (
    Gaussian,
    NoiseScales,
    draw_normal_wishart,
    draw_relevance,
    standard_normal,
)

__all__ = ["Chain", "Model", "Table", "first_draws", "row_problem"]


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

    def to_columns(self, cells: CellDraws) -> CellDraws:
        """Return a copy of what is drawn of the cells, by column; it is kept by row."""
        z, weights = cells.z[self.censored_order], cells.weights
        if weights is None:
            return CellDraws(z)
        return CellDraws(z, (weights[0][self.exact_order], weights[1][self.censored_order]))

    def to_rows(self, cells: CellDraws) -> CellDraws:
        """Return the same by row again."""
        z, weights = _scattered(cells.z, self.censored_order), cells.weights
        if weights is None:
            return CellDraws(z)
        exact, censored = weights
        back = _scattered(exact, self.exact_order), _scattered(censored, self.censored_order)
        return CellDraws(z, back)

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
    weights: tuple[NDArray[np.float64], NDArray[np.float64]] | None
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
        z, weights = first_draws(cells.by_row, model)
        return cls(
            model=model,
            factors=LowRank(A, B, bias=True),
            scales=NoiseScales.start(model.noise, cells.shape),
            row_prior=standard_normal(k + model.row_offsets),
            z=z,
            weights=weights,
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
        cells = table.to_columns(CellDraws(self.z, self.weights))
        self._draw_cols(table, cells, threads)
        cells = table.to_rows(cells)
        self._draw_rows(table, cells, threads)
        self.z, self.weights = cells
        self.n_sweeps += 1

    def _draw_cols(self, table: Table, cells: CellDraws, threads: int) -> None:
        flipped, scales = self.factors.T, self.scales
        B = flipped.A.copy()
        prior = (draw_normal_wishart if self.model.row_offsets else draw_relevance)(B, self.rng)
        precision = scales.cols, scales.rows
        cols = DrawProblem(table.cells.by_col, *flipped.design(), prior, precision, self.model.df)
        key = self.seed, 2 * self.n_sweeps
        squares = kernels.draw_rows(cols, B, cells, key, threads=threads)
        self.factors = replace(self.factors, B=B)
        self.scales = scales.draw_cols(table.counts[1], squares, self.rng)

    def _draw_rows(self, table: Table, cells: CellDraws, threads: int) -> None:
        scales, model = self.scales, self.model
        if model.row_offsets:
            self.row_prior = draw_normal_wishart(self.factors.A, self.rng)
        rows = row_problem(table.cells.by_row, self.factors, model, self.row_prior, scales)
        A = self.factors.A.copy()
        own = np.ascontiguousarray(A[:, : rows.design.shape[1]])
        key = self.seed, 2 * self.n_sweeps + 1
        squares = kernels.draw_rows(rows, own, cells, key, threads=threads)
        A[:, : own.shape[1]] = own
        self.factors = replace(self.factors, A=A)
        self.misfit = _misfit(scales, squares, table.counts)
        self.scales = scales.draw_rows(table.counts[0], squares, self.rng)


def row_problem(
    side: Cells, factors: LowRank, model: Model, prior: Gaussian, scales: NoiseScales
) -> DrawProblem:
    """Return what rows are drawn from: with or without an offset of their own."""
    design, offset = factors.design()
    if not model.row_offsets:
        design, offset = np.ascontiguousarray(factors.Q), np.ascontiguousarray(factors.col_offset)
    return DrawProblem(side, design, offset, prior, (scales.rows, scales.cols), model.df)


def first_draws(side: Cells, model: Model) -> CellDraws:
    """Return censored cells at the mean of N(0, 1) in their intervals, and weights of 1."""
    z = Tobit(1.0).expected(np.zeros(len(side.lower)), side.lower, side.upper)
    return CellDraws(z, (np.ones(len(side.value)), np.ones(len(z))) if model.df else None)


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
