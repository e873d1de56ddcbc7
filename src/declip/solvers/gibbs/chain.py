"""One Markov chain: the columns given the rows, then the rows given the columns."""

from __future__ import annotations

import copy
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from declip import kernels
from declip.cells import Cells
from declip.intervals import Intervals
from declip.kernels import CellDraws, DrawProblem
from declip.losses import Tobit
from declip.lowrank import GroupOffsets, LowRank
from declip.ordering import Course
from declip.solvers.gibbs.detection import (
    Detection,
    DetectionCurve,
    MissingCells,
    MissingDraws,
    Predicted,
)
from declip.solvers.gibbs.edges import EdgeDraw, LevelCells
from declip.solvers.gibbs.ordered import draw_ordered
from declip.solvers.gibbs.priors import (
    Gaussian,
    NoiseScales,
    draw_normal_wishart,
    draw_relevance,
    standard_normal,
)
from declip.solvers.gibbs.side import GroupDraws, KnownSides, Regression
from declip.solvers.groups import GroupedCells

__all__ = ["Chain", "Model", "Table", "first_draws", "row_problem"]

_NOTHING = KnownSides()


@dataclass(frozen=True)
class Model:
    """What is fitted.

    Attributes
    ----------
    rank : int
        Number of factors.
    noise : {"column", "row+column", "global", "known"}
        Which cells share a noise scale; "known" if that of each cell is given.
    df : float
        Degrees of freedom of Student t noise; 0 for Gaussian noise.
    missing : tuple of int
        For each column 1 if its low values go missing, -1 if high ones do, 0 if cells are missing
        by chance; empty if they are in all.
    order : Course, optional
        Which side has an order, and how it goes along it.
    levels : {"", "known", "shared", "column", "pooled"}
        Which columns share the edges of levels, if these are sampled.
    """

    rank: int
    noise: str
    df: float = 0.0
    missing: tuple[int, ...] = ()
    order: Course | None = None
    levels: str = ""

    @property
    def row_offsets(self) -> bool:
        """Whether rows have offsets: where all cells share one unit."""
        return self.noise not in ("column", "known")


@dataclass(frozen=True, eq=False)
class Table:
    """The standardised cells, and how to bring what belongs to them from rows to columns."""

    cells: Intervals
    missing: MissingCells | None = None
    known: KnownSides = _NOTHING
    levels: LevelCells | None = None

    @classmethod
    def of(
        cls,
        cells: Intervals,
        model: Model,
        level: NDArray[np.float64] | float = 0.0,
        known: KnownSides | None = None,
    ) -> Table:
        """Return the table that a model is fitted to: missing cells too, if they tell of values.

        Cells without bounds are left out; they are not missing for their values.
        """
        if not any(model.missing):
            return cls(cells.bounded(), known=known or _NOTHING)
        sign = np.array(model.missing, np.float64)
        return cls(*MissingCells.add_to(cells, sign, np.broadcast_to(level, sign.shape)))

    def seen_through(self, curve: DetectionCurve, draws: MissingDraws) -> Table:
        """Return the table with the limits beyond which the readings of missing cells lie."""
        missing = self.missing
        if missing is None:
            return self
        made = self._with_limits(missing.at, *curve.limits(missing.cols))
        lost, at = ~draws.low, (missing.rows, missing.cols)
        made.__dict__["counts"] = tuple(
            count - np.bincount(index[lost], minlength=len(count))
            for count, index in zip(self.counts, at, strict=True)
        )
        return made

    def cut_at(self, cuts: NDArray[np.float64] | None) -> Table:
        """Return the table with the edges between levels where they are now."""
        if cuts is None or self.levels is None:
            return self
        return self._with_limits(self.levels.at, *self.levels.limits(cuts))

    def _with_limits(self, at: NDArray, lower: NDArray, upper: NDArray) -> Table:
        """Return the table with other bounds of some censored cells, by row and by column."""
        side, order = self.cells.by_row, self.censored_order
        low, high = side.lower.copy(), side.upper.copy()
        low[at], high[at] = lower, upper
        cells = replace(self.cells, by_row=replace(side, lower=low, upper=high))
        flipped = replace(self.cells.by_col, lower=low[order], upper=high[order])
        cells.__dict__["by_col"] = flipped
        made = replace(self, cells=cells)
        kept = {"exact_order": self.exact_order, "censored_order": order, "counts": self.counts}
        made.__dict__.update(kept)
        return made

    @cached_property
    def grouped(self) -> GroupedCells | None:
        """The cells with the groups of their rows, if these are known."""
        index = self.known.groups
        return None if index is None else GroupedCells(self.cells, index, self.known.n_groups)

    def without(self, offsets: NDArray[np.float64]) -> Table:
        """Return the table without the offsets of groups."""
        if self.grouped is None:
            return self
        made = replace(self, cells=self.grouped.without(offsets))
        made.__dict__.update(
            exact_order=self.exact_order,
            censored_order=self.censored_order,
            counts=self.counts,
            grouped=self.grouped,
        )
        return made

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
        rows, cols = (side.row_sizes for side in (self.cells.by_row, self.cells.by_col))
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
    detection : Detection or None
        Why cells are missing, if that is sampled too.
    row_regression, col_regression : Regression or None
        Of factors on features, if these are known.
    groups : GroupDraws or None
        Offsets of groups of rows, if these are known.
    edges : EdgeDraw or None
        Where levels are cut, if that is sampled too.
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
    detection: Detection | None = None
    row_regression: Regression | None = None
    col_regression: Regression | None = None
    groups: GroupDraws | None = None
    edges: EdgeDraw | None = None

    @classmethod
    def start(cls, table: Table, model: Model, seed: np.random.SeedSequence) -> Chain:
        """Begin with rows from their prior, no column factors and censored cells at their mean."""
        rng, cells = np.random.default_rng(seed), table.cells
        (n, m), k = cells.shape, model.rank
        A, B = np.zeros((n, k + 1)), np.zeros((m, k + 1))
        A[:, :k] = rng.standard_normal((n, k))
        B[:, :k] = rng.standard_normal((m, k)) / np.sqrt(k)
        z, weights = first_draws(cells.by_row, model)
        known, width = table.known, k + model.row_offsets
        return cls(
            model=model,
            factors=LowRank(A, B, bias=True),
            scales=NoiseScales.start(model.noise, cells.shape, two_levels(cells)),
            row_prior=standard_normal(width),
            row_regression=Regression.start(known.row_features, width),
            col_regression=Regression.start(known.col_features, k + 1),
            groups=None if table.grouped is None else GroupDraws(np.zeros(table.grouped.shape)),
            z=z,
            weights=weights,
            rng=rng,
            seed=int(seed.generate_state(1, np.uint64)[0]),
            detection=None if table.missing is None else Detection.start(table.missing),
            edges=None if table.levels is None else EdgeDraw.start(table.levels.sets),
        )

    def copy(self) -> Chain:
        """Return a chain that goes on from here on its own."""
        twin = copy.copy(self)
        twin.rng = copy.deepcopy(self.rng)
        return twin

    def sweep(self, table: Table, threads: int) -> None:
        """Draw columns, then rows; the censored cells with both."""
        if self.detection is not None:
            table = table.seen_through(self.detection.curve, self.detection.draws)
        table = table.cut_at(None if self.edges is None else self.edges.cuts)
        whole, draws = table, CellDraws(self.z, self.weights)
        if self.groups is not None:
            table, draws = self._without_groups(table, draws)
        cells = table.to_columns(self._weighted(table, draws))
        squares = self._draw_cols(table, cells, threads)
        cells = table.to_rows(cells)
        squares = self._of_values(table, cells, squares)
        self.scales = self.scales.draw_cols(table.counts[1], squares, self.rng)
        cells = self._weighted(table, cells)
        self._draw_rows(table, cells, threads)
        self.z, self.weights = cells
        if self.groups is not None:
            self._draw_groups(whole, threads)
        if self.detection is not None and table.missing is not None:
            predicted = self._predicted(table.missing, threads)
            self.detection = self.detection.sweep(table.missing, predicted, self.n_sweeps, self.rng)
        if self.edges is not None and table.levels is not None:
            self._draw_edges(self.edges, table.levels, threads)
        self.n_sweeps += 1

    def _without_groups(self, table: Table, draws: CellDraws) -> tuple[Table, CellDraws]:
        """Return table and draws without the offsets of groups."""
        self.factors = replace(self.factors, groups=None)
        if self.groups is None or table.grouped is None:
            return table, draws
        offsets = self.groups.offsets
        return table.without(offsets), draws._replace(z=draws.z - table.grouped.censored(offsets))

    def _draw_groups(self, table: Table, threads: int) -> None:
        """Draw the offsets of groups, given the table with them; the draws get them back."""
        grouped, groups, side = table.grouped, self.groups, table.cells.by_row
        if grouped is None or groups is None:
            return
        self.z = np.clip(self.z + grouped.censored(groups.offsets), side.lower, side.upper)
        places = (side.exact_rows(), side.exact_idx), (side.censored_rows(), side.censored_idx)
        weights = self.weights or (np.ones(len(side.value)), np.ones(len(self.z)))
        values = side.value, self.z
        (exact, censored), (w, v), x = places, weights, self.factors
        residuals = (
            values[0] - x.predict(*exact, threads),
            values[1] - x.predict(*censored, threads),
        )
        at = self.scales.precision
        precisions = w * at(*exact), v * at(*censored)
        groups = groups.draw(grouped, residuals, precisions, self.rng)
        shared = self.col_regression is not None or self.model.row_offsets
        if not shared and np.all(grouped.index >= 0):
            B = self.factors.B.copy()
            groups, B[:, -1] = groups.levelled(B[:, -1], self.rng)
            self.factors = replace(self.factors, B=B)
        self.groups = groups
        self.factors = replace(self.factors, groups=GroupOffsets(grouped.index, groups.offsets))

    def _draw_edges(self, edges: EdgeDraw, cells: LevelCells, threads: int) -> None:
        """Draw the edges between levels, then the values of the cells between them."""
        at, units = (cells.rows, cells.cols), cells.units
        x, scale = self.factors.predict(*at, threads), self.scales.at(*at)
        if self.weights is not None:
            scale = scale / np.sqrt(self.weights[1][cells.at])
        in_units = units.restore(x, cells.cols), scale * units.scale[cells.cols]
        self.edges = edges.sweep(cells, *in_units, self.n_sweeps, self.rng)
        key = int(self.rng.integers(2**63)), 0
        bounds = cells.limits(self.edges.cuts)
        z = self.z.copy()
        z[cells.at] = kernels.truncated_normals(x, scale, *bounds, key, threads=threads)
        self.z = z

    def _predicted(self, missing: MissingCells, threads: int = 1) -> Predicted:
        at = missing.rows, missing.cols
        return Predicted(self.factors.predict(*at, threads), self.scales.at(*at), missing.cols)

    def _weighted(self, table: Table, cells: CellDraws) -> CellDraws:
        """Return what is drawn of the cells, with the weights of the readings of missing ones."""
        detection, missing = self.detection, table.missing
        if detection is None or missing is None:
            return cells
        weights = detection.curve.weights(self.scales.at(missing.rows, missing.cols), missing.cols)
        return detection.draws.put(cells, missing, weights, table.cells.n_exact)

    def _of_values(self, table: Table, cells: CellDraws, squares: NDArray) -> NDArray[np.float64]:
        """Return the squared residuals of columns, of missing cells those of values, not readings.

        The readings stay as they were drawn with the columns.
        """
        missing = table.missing
        if self.detection is None or missing is None or cells.weights is None:
            return squares
        self.detection = self.detection.read(cells.z[missing.at])
        more = self.detection.excess(
            self._predicted(missing), cells.weights[1][missing.at], self.rng
        )
        return squares + np.bincount(
            missing.cols, more * self.scales.rows[missing.rows], len(squares)
        )

    def _draw_cols(self, table: Table, cells: CellDraws, threads: int) -> NDArray[np.float64]:
        flipped, scales = self.factors.T, self.scales
        B = flipped.A.copy()
        prior = self._column_prior(B, table.known.col_features)
        precision = scales.cols, scales.rows
        cols = DrawProblem(table.cells.by_col, *flipped.design(), prior, precision, self.model.df)
        key = self.seed, 2 * self.n_sweeps
        squares = kernels.draw_rows(cols, B, cells, key, threads=threads)
        self.factors = LowRank(self.factors.A, B, bias=True)
        return squares

    def _column_prior(
        self, B: NDArray[np.float64], features: NDArray[np.float64] | None
    ) -> Gaussian:
        """Draw the prior of the columns."""
        offsets, order = self.model.row_offsets, self.model.order
        if order is not None and order.axis == "columns":
            return draw_ordered(order, B, False, self.rng)[0]
        draw, regression = draw_normal_wishart if offsets else draw_relevance, self.col_regression
        if regression is None or features is None:
            return draw(B, self.rng)
        own = draw(B - features @ regression.coefficients, self.rng, regression.as_rows)
        self.col_regression = regression.draw(B, features, own, self.rng)
        return self.col_regression.about(features, own)

    def _draw_row_prior(self, features: NDArray[np.float64] | None) -> Gaussian:
        """Draw the prior of the rows, and keep that of any other row."""
        A, offsets, order = self.factors.A, self.model.row_offsets, self.model.order
        if order is not None and order.axis == "rows":
            own = A if offsets else A[:, :-1]
            prior, self.row_prior = draw_ordered(order, own, not offsets, self.rng)
            return prior
        if self.row_regression is not None and features is not None:
            return self._row_prior_about(self.row_regression, features)
        if offsets:
            self.row_prior = draw_normal_wishart(A, self.rng)
        return self.row_prior

    def _row_prior_about(self, regression: Regression, features: NDArray[np.float64]) -> Gaussian:
        """Draw the prior of the rows about what their features say."""
        A = self.factors.A[:, : regression.coefficients.shape[1]]
        if self.model.row_offsets:
            own = A - features @ regression.coefficients
            self.row_prior = draw_normal_wishart(own, self.rng, regression.as_rows)
        self.row_regression = regression.draw(A, features, self.row_prior, self.rng)
        return self.row_regression.about(features, self.row_prior)

    def _draw_rows(self, table: Table, cells: CellDraws, threads: int) -> None:
        scales, model = self.scales, self.model
        prior = self._draw_row_prior(table.known.row_features)
        rows = row_problem(table.cells.by_row, self.factors, model, prior, scales)
        A = self.factors.A.copy()
        own = np.ascontiguousarray(A[:, : rows.design.shape[1]])
        key = self.seed, 2 * self.n_sweeps + 1
        squares = kernels.draw_rows(rows, own, cells, key, threads=threads)
        A[:, : own.shape[1]] = own
        self.factors = LowRank(A, self.factors.B, bias=True)
        self.misfit = _misfit(scales, squares, table.counts)
        self.scales = scales.draw_rows(table.counts[0], squares, self.rng)


def two_levels(cells: Intervals) -> NDArray[np.bool_] | None:
    """Tell which columns have two levels, and so no scale of their own; None if there are none."""
    if cells.levels is None:
        return None
    sizes = np.array([*map(len, cells.levels.scales), 0])  # the last for columns of numbers
    two = sizes[cells.levels.of_column] == 2
    return two if two.any() else None


def row_problem(
    side: Cells, factors: LowRank, model: Model, prior: Gaussian, scales: NoiseScales
) -> DrawProblem:
    """Return what rows are drawn from: with or without an offset of their own."""
    if model.row_offsets:
        design, offset = factors.design()
    else:
        design, offset = np.ascontiguousarray(factors.Q), np.ascontiguousarray(factors.col_offset)
    return DrawProblem(side, design, offset, prior, (scales.rows, scales.cols), model.df)


def first_draws(side: Cells, model: Model) -> CellDraws:
    """Return censored cells at the mean of N(0, 1) in their intervals, and weights of 1."""
    z = Tobit(1.0).expected(np.zeros(len(side.lower)), side.lower, side.upper)
    if side.weights is not None:
        return CellDraws(z, (side.weights[0].copy(), side.weights[1].copy()))
    return CellDraws(z, (np.ones(len(side.value)), np.ones(len(z))) if model.df else None)


def _scattered(values: NDArray, order: NDArray) -> NDArray:
    out = np.empty_like(values)
    out[order] = values
    return out


def _misfit(scales: NoiseScales, squares: NDArray, counts: tuple[NDArray, NDArray]) -> float:
    logs = float(counts[1] @ np.log(scales.cols))
    if scales.kind == "row+column":  # else those of rows are 1
        logs = float(counts[0] @ np.log(scales.rows)) + logs
    return 0.5 * (float(scales.rows @ squares) - logs) / max(int(counts[0].sum()), 1)
