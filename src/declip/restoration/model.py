"""What a restoration is made by: fitted methods with their weights, and what they say of cells."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone

from declip.estimators.side import Known
from declip.intervals import Intervals
from declip.restoration.candidates import (
    Candidate,
    components,
    missing_components,
    n_draws,
    summed_up,
)
from declip.restoration.choose import Choice, Member, pooled_moments
from declip.restoration.determined import Determined, kept_columns
from declip.restoration.predictive import CensoredMixture
from declip.restoration.settings import KNOWN, NOTHING, Settings
from declip.restoration.shrinkage import TailShrinkage
from declip.restoration.tasks import Scaled, fitted

__all__ = ["FittedMethod", "RestorationModel"]

_FINAL = {"max_iter": 300, "tol": 1e-6}  # the fits that only compare end earlier
# Gauss-Hermite nodes of the uncertain shrinkage, and their weights
_LARGE = 300_000  # censored cells
_NODES = ((-np.sqrt(3), 1 / 6), (0.0, 2 / 3), (np.sqrt(3), 1 / 6))


@dataclass(frozen=True, eq=False)
class FittedMethod:
    """A method that counts, fitted to the table in standard units.

    Attributes
    ----------
    method : str
        One of `METHODS`.
    estimator : estimator
        Fitted.
    weight, fill_weight : float
        How much it counts for what lies beyond limits, and for missing cells.
    shrinkage : TailShrinkage
        How far it is drawn in beyond the limits.
    """

    method: str
    estimator: Any
    weight: float
    fill_weight: float
    shrinkage: TailShrinkage

    @classmethod
    def of(
        cls,
        member: Member,
        cells: Intervals,
        missing: Mapping[int, str],
        max_kept: int | None,
        known: Mapping[str, Any] = NOTHING,
    ) -> FittedMethod:
        """Fit a method to the whole table; ``missing`` says which columns miss cells for values."""
        final = _final(member.candidate, max_kept)
        estimator = fitted(final.set_params(missing=missing) if missing else final, cells, known)
        weights = float(member.weight), float(member.fill_weight)
        return cls(member.candidate.method, estimator, *weights, member.shrinkage)

    def group(self, sign: NDArray, cols: NDArray) -> NDArray[np.intp]:
        """Return the side and column by which cells look up their shrinkage."""
        n_groups = len(self.shrinkage.mean) // 2
        return (sign > 0) * n_groups + (cols if n_groups > 1 else 0)


@dataclass(frozen=True, eq=False)
class RestorationModel:
    """The methods that count, fitted to a table, and all that turns them into values of its cells.

    Of a table that is worked on by rows it is that of the transposed one (``settings.by_rows``).

    Attributes
    ----------
    methods : sequence of FittedMethod
        What counts, by weight.
    table : Scaled
        The table in standard units, and what these are.
    settings : Settings
        What was asked for.
    kept : ndarray of bool of shape (n_cols,)
        Columns whose limits stay, because restoring shows no gain.
    determined : Determined
        Rows and columns that the data determine.
    half_width : float
        Of the bands of missing cells, in standard deviations.
    """

    methods: Sequence[FittedMethod]
    table: Scaled
    settings: Settings
    kept: NDArray[np.bool_]
    determined: Determined
    half_width: float

    @classmethod
    def of(
        cls,
        table: Scaled,
        choice: Choice,
        settings: Settings,
        determined: Determined,
        missing: Mapping[int, str] = MappingProxyType({}),
        max_kept: int | None = None,
    ) -> RestorationModel:
        """Fit the methods that count to the whole table; keep at most so many draws of each."""
        return cls(
            [
                FittedMethod.of(
                    m, table.cells, missing, max_kept, settings.known_to(m.candidate.method)
                )
                for m in choice.members
            ],
            table,
            settings,
            kept_columns(choice.reclip, table.cells.shape[1]),
            determined,
            float(choice.half_width),
        )

    def for_rows(
        self, intervals: Intervals, known: Known | None = None, *, independent: bool = False
    ) -> RestorationModel:
        """Return the model of other rows under their own limits, with the columns as they are.

        Rows that are summed up together are drawn ``independent`` of each other; otherwise what is
        said of a row does not depend on the others. ``known`` are their features and groups.
        """
        table, side = self.table.for_rows(intervals), self._side_of(intervals, known or Known())
        methods = [
            replace(
                m,
                estimator=m.estimator.fold_in(
                    table.cells,
                    independent=independent,
                    **(side if m.method == KNOWN else {}),
                ),
            )
            for m in self.methods
        ]
        determined = self.determined.for_rows(intervals, self.settings.describes_rows)
        return replace(self, methods=methods, table=table, determined=determined)

    def _side_of(self, intervals: Intervals, known: Known) -> dict[str, Any]:
        """Return features and groups of other rows as numbers, as methods take them."""
        if self.settings.side is None:
            if known.names:
                raise ValueError(f"this restoration was made without {known.names[0]}.")
            return {}
        rows = self.settings.side.rows(intervals, known)
        groups = rows.groups
        given = {
            "row_features": rows.features,
            "groups": None if groups is None else np.where(groups < 0, np.nan, groups),
        }
        return {name: part for name, part in given.items() if part is not None}

    def _check_loaded(self) -> None:
        """Refuse a model that was read from a file and is not that of one table."""
        shape = self.table.cells.shape
        sides = len(self.determined.rows), len(self.determined.cols)
        if not (self.methods and sides == shape and self.kept.shape == shape[1:]):
            raise ValueError("the model of a restoration is not that of its table")

    def missing(
        self, rows: NDArray, cols: NDArray
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return mean and standard deviation of missing cells in standard units."""
        parts = [missing_components(m.estimator, rows, cols) for m in self.methods]
        mean, sd = pooled_moments(parts, [m.fill_weight for m in self.methods])
        alone = self.without_cells(rows)
        if alone.any():
            centre, spread = parts[self.informed]
            mean[alone], sd[alone] = pooled_moments([(centre[:, alone], spread[:, alone])], [1.0])
        return mean, sd

    @property
    def informed(self) -> int:
        """Index of the method that takes side information; -1 if there is none."""
        return next((i for i, m in enumerate(self.methods) if m.method == KNOWN), -1)

    def without_cells(self, rows: NDArray) -> NDArray[np.bool_]:
        """Return which rows have no cell, so that side information is all there is of them.

        Methods are weighed on rows with cells, by which the others know as much.
        """
        if self.informed < 0:
            return np.zeros(len(rows), bool)
        return self.table.cells.by_row.row_sizes[rows] == 0

    def censored(
        self, rows: NDArray, cols: NDArray, ends: tuple[NDArray, NDArray]
    ) -> tuple[CensoredMixture, CensoredMixture]:
        """Return the distributions of cells within ends, for their values and for their bands.

        The ends are in standard units.
        """
        of_values, of_bands, most = [], [], n_draws(self.table.cells.n_censored)
        for m in self.methods:
            parts = components(m.estimator, rows, cols, most)
            mixture = self.table.mixture(cols, ends, *(summed_up(*parts) if self.large else parts))
            group = m.group(mixture.sign, cols)
            of_values.append(m.shrinkage.for_values(mixture, group))
            mean, sd = m.shrinkage.centre[group], m.shrinkage.sd[group]
            of_bands.append(mixture.shrunk(mean).spread_over(_NODES, sd))
        weights = np.array([m.weight for m in self.methods])
        weights /= weights.sum()
        return CensoredMixture.pooled(of_values, weights), CensoredMixture.pooled(of_bands, weights)

    @property
    def large(self) -> bool:
        """Whether there are so many cells that draws of them are summed up by two moments."""
        return self.table.cells.n_censored > _LARGE

    def gets_value(self, rows: NDArray, cols: NDArray) -> NDArray[np.bool_]:
        """Tell which cells get a value: those that the data determine, or all if asked for."""
        known = self.determined.at(rows, cols)
        return known if self.settings.fill == "determined" else np.ones(len(rows), bool)


def _final(candidate: Candidate, max_kept: int | None) -> Any:
    given = candidate.estimator.get_params(deep=False)
    more = {name: value for name, value in _FINAL.items() if name in given}
    if "n_samples" in given:
        more["n_samples"] = 2 * given["n_samples"]
    if max_kept is not None and "max_kept" in given:
        more["max_kept"] = max_kept
        # BayesCMC keeps every second draw when it is full: so many that it ends full
        halvings = int(np.log2(max(more["n_samples"] / max_kept, 1)))
        more["n_samples"] = max_kept * 2**halvings
    return clone(candidate.estimator).set_params(**more)
