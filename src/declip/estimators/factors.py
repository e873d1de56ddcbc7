"""Estimators whose fit is one low-rank matrix, and what is known of its cells."""

from __future__ import annotations

from dataclasses import replace
from functools import cached_property
from numbers import Real
from typing import Any, ClassVar

import numpy as np
from joblib import effective_n_jobs
from numpy.typing import ArrayLike, NDArray
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import check_is_fitted

from declip.estimators.base import CompletionEstimator
from declip.estimators.uncertainty import CellUncertainty
from declip.intervals import Intervals
from declip.losses import Loss
from declip.lowrank import GroupOffsets, LowRank
from declip.objective import certificate
from declip.penalties import Ridge
from declip.scaling import SCALES, Scaling
from declip.solvers import Solution, Stopping, solve_rows

__all__ = ["SCALING_CONSTRAINTS", "FreeRankEstimator", "LowRankEstimator", "noise_norm"]

_OF_MEMORY = ("_fit_cells", "_held")  # what is not in a copy
_STRENGTH = 0.15  # of what noise alone would ask for: near the best on real tables
SCALING_CONSTRAINTS: dict[str, Any] = {
    "alpha": [Interval(Real, 0, None, closed="left"), StrOptions({"auto"})],
    "scale": [StrOptions({"auto", *SCALES})],
}


def noise_norm(n_cells: int, shape: tuple[int, int]) -> float:
    """Return about the largest singular value of noise of standard deviation 1 in so many cells.

    That is sqrt(n) + sqrt(m), for n observed cells a column and m a row.
    """
    by_row, by_col = (n_cells / size for size in shape)
    return float(np.sqrt(by_row) + np.sqrt(by_col))


class LowRankEstimator(CompletionEstimator[Solution, LowRank]):
    """Holds a fitted low-rank matrix, and solves for new rows with its columns fixed.

    A subclass implements `_solve`, which fits the cells and returns a `Solution`, and has the
    parameter ``alpha`` or a `_row_penalty` of its own. With the parameter ``scale`` its solver gets
    the cells in standard units: then ``scaling_`` is not None, factors and objective are in these
    units, and `_model` is in those of the table.
    """

    scale: str = "none"
    scaling_: Scaling | None = None
    alpha_: float
    _usual_alpha: ClassVar[float] = 1.0  # "auto" without scaling
    _on_request: ClassVar[tuple[str, ...]] = ("singular_values_", "uncertainty_")

    def _row_penalty(self, components: NDArray) -> Ridge:
        """Return the penalty under which new rows are solved for, given column factors."""
        return Ridge(self._strength())

    def _strength(self) -> float:
        """Return the strength of the penalty of this fit."""
        return self.alpha_ if hasattr(self, "alpha_") else float(self.alpha)

    def _settled(self, table: Any) -> tuple[Any, dict[str, Any]]:
        scaling = Scaling.asked_for(table, self._units_asked_for())
        cells = table if scaling is None else scaling.apply(table).astype(table.dtype)
        alpha = self._settled_alpha(cells, scaled=scaling is not None)
        return cells, {"scaling_": scaling} | alpha

    def _units_asked_for(self) -> str:
        """Return the word of ``scale`` that counts."""
        return self.scale

    def _settled_alpha(self, cells: Any, scaled: bool) -> dict[str, float]:
        """Return the strength that was asked for; "auto" by what noise alone would ask for."""
        if not isinstance(self.alpha, str):
            return {"alpha_": float(self.alpha)}
        if not scaled:
            return {"alpha_": self._usual_alpha}
        return {"alpha_": _STRENGTH * noise_norm(len(cells), cells.shape)}

    def _loss(self) -> Loss:
        """Return the loss that was fitted."""
        return Loss.fitted(self.clipped, self.scale_)

    def _stopping(self, **watched: Any) -> Stopping:
        """Return when the solver stops, and whom it tells."""
        return Stopping(self.max_iter, **{"tol": self.tol, **watched})

    def _fitted(self, state: Solution) -> dict[str, Any]:
        model = state.model
        return {
            "row_factors_": np.ascontiguousarray(model.P),
            "components_": np.ascontiguousarray(model.Q.T),
            "row_offset_": model.row_offset,
            "column_offset_": model.col_offset,
            "mean_": model.mean,
            "has_offsets_": model.bias,
            "scale_": state.scale,
            "history_": state.history,
            "objective_": float(state.history[-1]),
            "n_iter_": state.n_iter,
            "converged_": bool(state.converged),
        }

    def _finished(self, table: Any, state: Solution) -> dict[str, Any]:
        fitted = self._fitted(state)
        held = fitted["row_factors_"], fitted["components_"], state.model
        # the cells by rows are kept, those by columns are not
        return fitted | {"_fit_cells": replace(table), "_held": held}

    def _side_found(self, side: Any, state: Solution) -> Any:
        return side.fitted(state.model.A, state.model.groups)

    def _cells_of_fit(self) -> Intervals:
        """Return the cells of the fit, in its units."""
        cells = vars(self).get("_fit_cells")
        if cells is None:
            raise AttributeError("the cells of the fit are not at hand")
        return cells

    def _factors(self) -> LowRank:
        """Return the fitted matrix in the units of the fit."""
        check_is_fitted(self)
        P, components, model = vars(self).get("_held", (None, None, None))
        if P is not self.row_factors_ or components is not self.components_:
            groups = None if self.side_ is None else self.side_.offsets
            model = self._columns_with(self.row_factors_, self.row_offset_, groups)
            self._held = self.row_factors_, self.components_, model
        return model

    def _factors_in(
        self, scaling: Scaling | None, places: NDArray[np.intp] | slice = slice(None)
    ) -> LowRank:
        """Return the fitted matrix in other units, to start from: up to what they are shifted by.

        Of the factors that is exact; the columns of a table that changed little keep their place.
        Those of the other units are found at ``places``.
        """
        model, old = self._factors(), self.scaling_
        if old is scaling:
            return model
        ones = np.ones(model.shape[1])
        before = ones if old is None else old.units.scale
        after = ones if scaling is None else scaling.units.scale[places]
        return replace(model, B=model.B * (before / after)[:, None].astype(model.dtype))

    def _in_units(self, model: LowRank) -> LowRank:
        """Return a matrix in the units of the fit in those of the table."""
        if self.scaling_ is None:
            return model
        units = self.scaling_.units
        return model.in_units(units.scale, units.shift)

    def _standardised(self, intervals: Intervals) -> Intervals:
        """Return cells of a table in the units of the fit."""
        return intervals if self.scaling_ is None else self.scaling_.apply(intervals)

    def _unit_of(self, cols: NDArray) -> NDArray | float:
        return 1.0 if self.scaling_ is None else self.scaling_.units.scale[cols]

    def _model(self) -> LowRank:
        return self._in_units(self._factors())

    def _low_rank(self) -> LowRank:
        return self._model()

    def _columns_with(self, P: NDArray, b: NDArray, groups: GroupOffsets | None = None) -> LowRank:
        """Return the matrix of rows with these factors and offsets, in the units of the fit."""
        Q = self.components_.T
        if not self.has_offsets_:
            return LowRank(P, Q, self.mean_, groups=groups)
        A, B = np.column_stack([P, b]), np.column_stack([Q, self.column_offset_])
        return LowRank(A, B, self.mean_, True, groups)

    def _of_rows(self, intervals: Intervals, independent: bool) -> dict[str, Any]:
        side, solved = intervals.by_row, self._solved_rows(intervals)
        others = {} if self.side_ is None else {"side_": replace(self.side_, offsets=solved.groups)}
        known = self.uncertainty_ if hasattr(self, "uncertainty_") else None
        if known is not None:
            known = replace(known, exact_ptr=side.exact_ptr, exact_idx=side.exact_idx)
        return {
            "row_factors_": np.ascontiguousarray(solved.P),
            "row_offset_": solved.row_offset,
            "uncertainty_": known,
            "_fit_cells": None,
            **others,
        }

    def _solve_new_rows(self, intervals: Intervals) -> LowRank:
        return self._in_units(self._solved_rows(intervals))

    def _solved_rows(self, intervals: Intervals) -> LowRank:
        """Return the matrix of other rows under the fitted columns, in the units of the fit."""
        n, k, dtype = intervals.shape[0], len(self.components_), self.components_.dtype
        model = self._columns_with(np.zeros((n, k), dtype), np.zeros(n, dtype))
        treated = self._standardised(intervals.treat(self.clipped)).astype(model.A.dtype)
        penalty, groups = self._row_penalty(self.components_), None
        if self.side_ is not None:
            penalty, treated, groups = self.side_.solved_for(self._rows_known(n), penalty, treated)
        threads = effective_n_jobs(self.n_jobs)
        solved = solve_rows(treated.by_row, model, penalty, self._loss(), threads)
        self._check_finite(solved.A)
        return replace(solved, groups=groups)

    def _expected(
        self,
        matrix: LowRank,
        cells: tuple[NDArray, NDArray],
        bounds: tuple[NDArray, NDArray],
        x: NDArray | None = None,
    ) -> NDArray:
        if x is None:
            x = matrix.predict(*cells, effective_n_jobs(self.n_jobs))
        loss = self._loss()
        if self.scaling_ is None or not loss.has_scale:  # the nearest point of an interval is that
            return loss.expected(x, *bounds)  # in any units
        z, low, high = (self.scaling_.forward(part, cells[1]) for part in (x, *bounds))
        expected = self.scaling_.back(loss.expected(z, low, high), cells[1])
        return np.clip(expected, *bounds).astype(x.dtype, copy=False)

    @cached_property
    def singular_values_(self) -> NDArray:
        """Singular values of P Q^T, largest first."""
        self._cells_of_fit()
        return self._factors().singular_values()

    def _certified_gap(self) -> float:
        """Return the duality gap of the fit, in units of the objective."""
        if self.side_ is not None:  # the certificate is that of a fit to cells alone
            return float("nan")
        cells, loss = self._cells_of_fit(), self._loss()
        proof = certificate(
            cells,
            self._factors(),
            self._row_penalty(self.components_),
            loss,
            trace_norm=float(self.singular_values_.sum()),
            threads=effective_n_jobs(self.n_jobs),
        )
        return loss.objective(proof.gap, 0.0, 0)

    @cached_property
    def uncertainty_(self) -> CellUncertainty:
        """Noise of the columns and exact cells of the rows, from which `predictive` is computed."""
        cells, model = self._cells_of_fit(), self._factors()
        penalty = self._row_penalty(self.components_)
        ridge = penalty.vector(model.rank, model.bias, model.dtype)
        return CellUncertainty.of(cells, model, ridge, self._spreads(cells))

    def _spreads(self, cells: Intervals) -> tuple[NDArray | None, NDArray | None]:
        """Return how far factors of rows and of columns may go from those that they follow."""
        return None, None

    def predictive(self, rows: ArrayLike, cols: ArrayLike) -> tuple[NDArray, NDArray]:
        """Return mean and standard deviation of the values of cells of the fitted table.

        The noise is included. What is known of the very cell (its value, its limit) counts only
        through the factors.

        Parameters
        ----------
        rows, cols : array-like of int
            The cells.

        Returns
        -------
        mean, sd : ndarray
            One of each for each cell.

        Notes
        -----
        The variance is that of the noise of the column, from the residuals of its cells, plus that
        of the factors of the row given those of the columns: read it as "at least". With an order
        of columns that of their factors is added, so that bands widen with the steps ahead.
        """
        model = self._model()
        at = self._positions(rows, cols)
        if getattr(self, "uncertainty_", None) is None:
            raise ValueError(
                f"This {type(self).__name__} has no cells of its fit: it was fitted to blocks, or "
                "saved by an earlier version. Fit it again in memory."
            )
        mean = model.predict(*at, effective_n_jobs(self.n_jobs)).astype(np.float64)
        return mean, self.uncertainty_.sd(self._factors(), *at) * self._unit_of(at[1])

    def _not_converged(self, solution: Solution) -> str:
        return (
            f"{type(self).__name__} stopped after {solution.n_iter} sweeps before it had settled: "
            f"the last one still lowered the objective by {solution.last_fall:.1e}, where tol is "
            f"{self.tol}. Raise max_iter or alpha, or accept a larger tol."
        )

    def __getstate__(self) -> dict[str, Any]:
        """Leave out the cells of the fit, and what the factors tell as well."""
        state = super().__getstate__()
        return {name: part for name, part in state.items() if name not in _OF_MEMORY}

    def _check_loaded(self) -> None:
        """Refuse a state that was read from a file and in which the parts do not fit together."""
        self._validate_params()
        model = self._factors()
        model._check_loaded()
        shape = len(self.row_offset_), len(self.column_offset_)
        if model.shape != shape or shape[1] != self.n_features_in_:
            raise ValueError("factors and offsets are not of one table")
        if self.scaling_ is not None and len(self.scaling_.units.scale) != shape[1]:
            raise ValueError("the units are not those of the columns")


class FreeRankEstimator(LowRankEstimator):
    """A low-rank matrix whose rank was not given: that is the number of its singular values."""

    _on_request: ClassVar[tuple[str, ...]] = ("singular_values_", "rank_", "uncertainty_")

    @cached_property
    def singular_values_(self) -> NDArray:
        """Singular values that are not zero, largest first."""
        self._cells_of_fit()
        S = self._factors().singular_values()
        return S[S > 0]

    @cached_property
    def rank_(self) -> int:
        """Rank of the matrix."""
        return len(self.singular_values_)
