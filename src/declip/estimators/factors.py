"""Estimators whose fit is one low-rank matrix, and what is known of its cells."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from joblib import effective_n_jobs
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.validation import check_is_fitted

from declip.estimators.base import CompletionEstimator
from declip.estimators.uncertainty import CellUncertainty
from declip.intervals import Intervals
from declip.losses import Loss
from declip.lowrank import LowRank
from declip.objective import certificate
from declip.penalties import Ridge
from declip.solvers import Solution, Stopping, solve_rows
from declip.validation import check_cells

__all__ = ["FreeRankEstimator", "LowRankEstimator"]

_OF_MEMORY = ("_fit_data", "_held")  # what is not in a copy


@dataclass(frozen=True, eq=False)
class FitData:
    """What a fit was made of, kept by reference for what is computed only on request."""

    intervals: Intervals
    penalty: Ridge


class LowRankEstimator(CompletionEstimator[Solution, LowRank]):
    """Holds a fitted low-rank matrix, and solves for new rows with its columns fixed.

    A subclass implements `_solve`, which fits the cells and returns a `Solution`, and has the
    parameter ``alpha`` or a `_row_penalty` of its own.
    """

    _on_request: ClassVar[tuple[str, ...]] = ("singular_values_", "uncertainty_")

    def _row_penalty(self, components: NDArray) -> Ridge:
        """Return the penalty under which new rows are solved for, given column factors."""
        return Ridge(self.alpha)

    def _loss(self) -> Loss:
        """Return the loss that was fitted."""
        return Loss.of_scale(self.scale_)

    def _stopping(self, **watched: Any) -> Stopping:
        """Return when the solver stops, and whom it tells."""
        return Stopping(self.max_iter, self.tol, **watched)

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
        penalty = self._row_penalty(fitted["components_"])
        held = fitted["row_factors_"], fitted["components_"], state.model
        # the cells by rows are kept, those by columns are not
        return fitted | {"_fit_data": FitData(replace(table), penalty), "_held": held}

    def _data(self) -> FitData:
        data = vars(self).get("_fit_data")
        if data is None:
            raise AttributeError("the cells of the fit are not at hand")
        return data

    def _model(self) -> LowRank:
        check_is_fitted(self)
        P, components, model = vars(self).get("_held", (None, None, None))
        if P is not self.row_factors_ or components is not self.components_:
            model = self._columns_with(self.row_factors_, self.row_offset_)
            self._held = self.row_factors_, self.components_, model
        return model

    def _low_rank(self) -> LowRank:
        return self._model()

    def _columns_with(self, P: NDArray, b: NDArray) -> LowRank:
        """Return the matrix of rows with these factors and offsets."""
        Q = self.components_.T
        if not self.has_offsets_:
            return LowRank(P, Q, self.mean_)
        A, B = np.column_stack([P, b]), np.column_stack([Q, self.column_offset_])
        return LowRank(A, B, self.mean_, True)

    def _solve_new_rows(self, intervals: Intervals) -> LowRank:
        n, k, dtype = intervals.shape[0], len(self.components_), self.components_.dtype
        model = self._columns_with(np.zeros((n, k), dtype), np.zeros(n, dtype))
        side = intervals.treat(self.clipped).astype(model.A.dtype).by_row
        threads = effective_n_jobs(self.n_jobs)
        penalty = self._row_penalty(self.components_)
        solved = solve_rows(side, model, penalty, self._loss(), threads)
        self._check_finite(solved.A)
        return solved

    def _expected(
        self,
        matrix: LowRank,
        cells: tuple[NDArray, NDArray],
        bounds: tuple[NDArray, NDArray],
        x: NDArray | None = None,
    ) -> NDArray:
        if x is None:
            x = matrix.predict(*cells, effective_n_jobs(self.n_jobs))
        return self._loss().expected(x, *bounds)

    @cached_property
    def singular_values_(self) -> NDArray:
        """Singular values of P Q^T, largest first."""
        self._data()
        return self._model().singular_values()

    def _certified_gap(self) -> float:
        """Return the duality gap of the fit, in units of the objective."""
        data, loss = self._data(), self._loss()
        proof = certificate(
            data.intervals,
            self._model(),
            data.penalty,
            loss,
            trace_norm=float(self.singular_values_.sum()),
            threads=effective_n_jobs(self.n_jobs),
        )
        return loss.objective(proof.gap, 0.0, 0)

    @cached_property
    def uncertainty_(self) -> CellUncertainty:
        """Noise of the columns and exact cells of the rows, from which `predictive` is computed."""
        data, model = self._data(), self._model()
        ridge = data.penalty.vector(model.rank, model.bias, model.dtype)
        return CellUncertainty.of(data.intervals, model, ridge)

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
        of the factors of the row given those of the columns: read it as "at least".
        """
        model = self._model()
        at = check_cells(rows, cols, model.shape)
        if not hasattr(self, "uncertainty_"):
            raise ValueError(
                f"This {type(self).__name__} has not kept the cells that it was fitted to, as one "
                "fitted to blocks, or saved by an earlier version, has not: fit it again in memory."
            )
        mean = model.predict(*at, effective_n_jobs(self.n_jobs)).astype(np.float64)
        return mean, self.uncertainty_.sd(model, *at)

    def _not_converged(self, solution: Solution) -> str:
        return (
            f"{type(self).__name__} stopped after {solution.n_iter} sweeps before it had settled: "
            f"the last one still lowered the objective by {solution.last_fall:.1e}, where tol is "
            f"{self.tol:g}. Raise max_iter or alpha, or accept a larger tol."
        )

    def __getstate__(self) -> dict[str, Any]:
        """Leave out the cells of the fit, and what the factors tell as well."""
        state = super().__getstate__()
        return {name: part for name, part in state.items() if name not in _OF_MEMORY}

    def _check_loaded(self) -> None:
        """Refuse a state that was read from a file and in which the parts do not fit together."""
        self._validate_params()
        model = self._model()
        model._check_loaded()
        shape = len(self.row_offset_), len(self.column_offset_)
        if model.shape != shape or shape[1] != self.n_features_in_:
            raise ValueError("factors and offsets are not of one table")


class FreeRankEstimator(LowRankEstimator):
    """A low-rank matrix whose rank was not given: that is the number of its singular values."""

    _on_request: ClassVar[tuple[str, ...]] = ("singular_values_", "rank_", "uncertainty_")

    @cached_property
    def singular_values_(self) -> NDArray:
        """Singular values that are not zero, largest first."""
        self._data()
        S = self._model().singular_values()
        return S[S > 0]

    @cached_property
    def rank_(self) -> int:
        """Rank of the matrix."""
        return len(self.singular_values_)
