"""Complete tables drawn from what a restoration knows: multiple imputation."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from declip.censoring import ranged
from declip.intervals import Intervals, face_value
from declip.kernels import truncated_normals
from declip.restoration.candidates import ColumnTobit
from declip.restoration.draws import CellDistributions, PosteriorDraws, posterior_draws
from declip.restoration.model import FittedMethod, RestorationModel
from declip.restoration.output_kind import OutputKind
from declip.restoration.predictive import CensoredMixture

__all__ = ["Imputation"]

_LARGEST_SEED = 2**31 - 1


def check_draws(n: int) -> None:
    """Refuse a number of tables that is none."""
    if isinstance(n, bool) or not isinstance(n, int | np.integer) or n < 1:
        raise ValueError(f"n must be a whole number of tables from 1 on; got {n!r}.")


@dataclass(frozen=True, eq=False)
class Imputation:
    """The cells of a table, of which those that are not exact can be drawn.

    For one table one draw of the parameters serves all cells, and the shrinkage beyond a limit is
    drawn once for each column: means over a column vary as much as is unknown of them.

    Attributes
    ----------
    model : RestorationModel
        What is known, by the methods that tables are drawn with.
    intervals : Intervals
        The table that the model was fitted to, in its own units.
    rows, cols : ndarray of int
        Where all cells are: exact ones, censored ones, missing ones that are filled.
    """

    model: RestorationModel
    intervals: Intervals
    rows: NDArray[np.int32]
    cols: NDArray[np.int32]

    @classmethod
    def of(
        cls, model: RestorationModel, intervals: Intervals, output_kind: OutputKind
    ) -> Imputation:
        """Look up the cells that the table of a restoration has."""
        missing = output_kind.missing(intervals)
        if model.settings.by_rows:
            intervals, missing = intervals.T, missing[::-1]
        seen = intervals.triplets()
        rows, cols = (np.concatenate([seen[i], missing[i]]) for i in (0, 1))
        return cls(_of_relations(model), intervals, rows, cols)

    @cached_property
    def is_drawn(self) -> NDArray[np.bool_]:
        """Which cells are drawn; the others are exact, or nothing determines them."""
        drawn = self.model.gets_value(self.rows, self.cols)
        drawn[: len(self.intervals)] |= self._ranged
        drawn[: self.intervals.n_exact] = False
        return drawn

    @cached_property
    def is_guess(self) -> NDArray[np.bool_]:
        """Which cells are at their limit because nothing determines what lies beyond."""
        guess = ~self.is_drawn
        guess[: self.intervals.n_exact] = False
        guess[len(self.intervals) :] = False
        return guess

    def tables(self, n: int, seed: int | None = None) -> Iterator[NDArray[np.float64]]:
        """Yield the values of all cells, n times; the seed is that of the restoration if None."""
        return (table for (table,) in self.draws(n, seed))

    def draws(
        self, n: int, seed: int | None = None, *, settled: bool = False
    ) -> Iterator[NDArray[np.float64]]:
        """Yield the values of all cells, n times, of shape (1, n_cells).

        The methods come up as often as they count, and their draws one after the other. Where it is
        asked for, ``settled`` tables stand in a second line: the same draws, had the shrinkage
        been known to be at its mean.
        """
        check_draws(n)
        rng = np.random.default_rng(self.seed(seed))
        orders = [rng.permutation(len(draws)) for draws in self._posteriors]
        start = rng.random()
        for i in rng.permutation(n):
            table = np.tile(self._at_limits, (2 if settled else 1, 1))
            picks = self._picked((i + start) / n)
            parts = self._censored, *self._missing
            for which, part in zip(picks, parts, strict=True):
                draw = int(orders[which][i % len(orders[which])])
                if len(part):
                    table[:, part] = self._drawn(which, draw, part, rng, settled)
            yield table

    def seed(self, given: int | None) -> int:
        """Return a seed that was given, or that of the restoration."""
        return self.model.settings.random_state if given is None else given

    def _picked(self, u: float) -> tuple[int, int, int]:
        """Return the methods of cells beyond limits, of missing ones, and of those in empty rows.

        The first two are the same if they can be.
        """
        methods = self.model.methods
        shares = np.cumsum([[m.weight, m.fill_weight] for m in methods], axis=0)
        beyond, missing = (
            int(np.searchsorted(line, u * line[-1], side="right")) for line in shares.T
        )
        last = len(methods) - 1
        return min(beyond, last), min(missing, last), self.model.informed

    def _drawn(
        self, which: int, draw: int, part: NDArray, rng: np.random.Generator, settled: bool
    ) -> NDArray[np.float64]:
        """Draw some cells, all censored or all missing, in the units of the table."""
        rows, cols = self.rows[part], self.cols[part]
        posterior = self._posteriors[which]
        if part[0] < len(self.intervals):
            cells = posterior.at(draw, rows, cols)
            z = self._beyond(self.model.methods[which], cells, part, rng, settled)
        else:
            z = self._unseen(posterior.missing(draw, rows, cols), cols, rng)
        values = self.model.table.scaling.back(z, cols)
        return np.clip(self.model.settings.bounds.clip(values, cols), *self._ends[:, part])

    def _beyond(
        self,
        method: FittedMethod,
        cells: CellDistributions,
        part: NDArray,
        rng: np.random.Generator,
        settled: bool,
    ) -> NDArray[np.float64]:
        """Draw cells within their intervals, with a shrinkage for each side and column."""
        cols, at = self.cols[part], part - self.intervals.n_exact
        side, reach = self.model.table.cells.by_row, self.model.table.ends.reach_at(cols)
        components = cells.centre[None], cells.spread[None]
        mixture = CensoredMixture.of(side.lower[at], side.upper[at], reach, *components)
        if cells.value is None:
            log_survival = np.log1p(-rng.random(len(part)))
        else:
            log_survival = np.minimum(mixture.log_survival(mixture.sign * cells.value), 0.0)
        group, bounds = method.group(mixture.sign, cols), self.model.table.bounds_at(cols)
        log_c = [method.shrinkage.drawn(rng), *([method.shrinkage.centre] if settled else [])]
        shrunk = (mixture.shrunk(line[group]).within(*bounds) for line in log_c)
        return mixture.sign * np.array([line.at_survival(log_survival) for line in shrunk])

    def _unseen(
        self, cells: CellDistributions, cols: NDArray, rng: np.random.Generator
    ) -> NDArray[np.float64]:
        """Draw missing cells between the bounds of their columns."""
        low, high = self.model.table.bounds_at(cols)
        key = int(rng.integers(_LARGEST_SEED)), 0
        fresh = truncated_normals(cells.centre, cells.spread, low, high, key)
        if cells.value is None:
            return fresh
        return np.where((cells.value >= low) & (cells.value <= high), cells.value, fresh)

    @cached_property
    def _posteriors(self) -> list[PosteriorDraws]:
        cells, seed = self.model.table.cells, self.model.settings.random_state
        return [posterior_draws(m.estimator, cells, seed) for m in self.model.methods]

    @cached_property
    def _ranged(self) -> NDArray[np.bool_]:
        _, _, lower, upper = self.intervals.triplets()
        return ranged(lower, upper)

    @cached_property
    def _censored(self) -> NDArray[np.intp]:
        drawn = np.flatnonzero(self.is_drawn)
        return drawn[drawn < len(self.intervals)]

    @cached_property
    def _missing(self) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
        """Missing cells that are drawn, and those of rows of which only features are known."""
        drawn = np.flatnonzero(self.is_drawn)
        drawn = drawn[drawn >= len(self.intervals)]
        alone = self.model.without_cells(self.rows[drawn])
        return drawn[~alone], drawn[alone]

    @cached_property
    def _ends(self) -> NDArray[np.float64]:
        """What each cell is known to lie between, rounding counted."""
        _, cols, lower, upper = self.intervals.triplets()
        ends = np.full((2, len(self.rows)), np.inf)
        ends[0] = -np.inf
        bounds = lower.astype(np.float64), upper.astype(np.float64)
        ends[:, : len(cols)] = self.model.table.steps.inside(*bounds, cols)
        return ends

    @cached_property
    def _at_limits(self) -> NDArray[np.float64]:
        """Every cell as it was reported, NaN if it was not."""
        _, _, lower, upper = self.intervals.triplets()
        table = np.full(len(self.rows), np.nan)
        table[: len(lower)] = face_value(lower, upper)
        return table


def _of_relations(model: RestorationModel) -> RestorationModel:
    """Return the model with the methods that know how columns go together, if there are any.

    A relation that is not in what is drawn is weaker in every model fitted to it, while one that a
    method need not have known of does no harm.
    """
    some = [m for m in model.methods if not isinstance(m.estimator, ColumnTobit)]
    return replace(model, methods=some or model.methods)
