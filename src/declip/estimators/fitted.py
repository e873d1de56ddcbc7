"""What a fitted estimator answers: single cells, blocks, other rows, and its score."""

from __future__ import annotations

from typing import Any, Generic, Protocol, Self, TypeVar

import numpy as np
from joblib import effective_n_jobs
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.validation import check_is_fitted, validate_data

from declip.containers import opened
from declip.estimators.transformer import TableTransformer, refuse_sparse
from declip.intervals import Intervals, as_intervals
from declip.losses import Hinge
from declip.lowrank import LowRank
from declip.validation import (
    cells_asked_for,
    check_columns,
    check_memory,
    check_selection,
    label_positions,
    named_columns,
    table_to_triplets,
    warn_without_cells,
)

__all__ = ["FittedTable", "fitted_low_rank"]

_SCORE_FOLDS = 5
_FEWER_ROWS = "transform fewer rows at a time."
_SINGLE_CELLS = "ask for fewer rows or columns, or for single cells with predict(rows, cols)."


class FittedMatrix(Protocol):
    """An estimate of every cell of a table, never formed as a whole unless it is asked for."""

    @property
    def shape(self) -> tuple[int, int]: ...
    @property
    def dtype(self) -> np.dtype: ...
    def block(self, rows: NDArray | slice = ..., cols: NDArray | slice = ...) -> NDArray: ...
    def predict(
        self, rows: NDArray[np.int32], cols: NDArray[np.int32], threads: int = 1
    ) -> NDArray: ...


Matrix = TypeVar("Matrix", bound=FittedMatrix)


class FittedTable(TableTransformer, Generic[Matrix]):
    """Restores and predicts cells from a fitted matrix, of the rows of the fit or of others.

    The subclass fits it, and says what `Matrix` it answers from; it has the parameters ``ceiling``,
    ``floor`` and ``n_jobs``.
    """

    row_labels_: NDArray | None = None
    column_labels_: NDArray | None = None
    side_: Any = None  # what was known besides the cells

    def _rows_known(self, n: int) -> Any:
        """Return what is known of the n rows that are solved for."""
        raise NotImplementedError

    def _model(self) -> Matrix:
        """Return the fitted matrix."""
        raise NotImplementedError

    def _low_rank(self) -> LowRank:
        """Return the fitted matrix, or one that stands for it, as factors."""
        raise NotImplementedError

    def _factors(self) -> LowRank:
        """Return the fitted matrix as factors in the units of the fit."""
        return self._low_rank()

    def _solve_new_rows(self, intervals: Intervals) -> Matrix:
        """Return the matrix of other rows under the fitted columns."""
        raise NotImplementedError

    def _expected(
        self,
        matrix: Matrix,
        cells: tuple[NDArray, NDArray],
        bounds: tuple[NDArray, NDArray],
        x: NDArray | None = None,
    ) -> NDArray:
        """Return the expected values of cells given their bounds; ``x`` is the matrix there."""
        raise NotImplementedError

    def predictive(self, rows: ArrayLike, cols: ArrayLike) -> tuple[NDArray, NDArray]:
        """Return mean and standard deviation of the values of cells of the fitted table."""
        raise NotImplementedError

    def predictive_draws(
        self, rows: ArrayLike, cols: ArrayLike, most: int = 32
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return the normal distributions whose mixture is the prediction of cells.

        Parameters
        ----------
        rows, cols : array-like of int
            The cells, of the fitted table.
        most : int, default=32
            Draws at most, evenly spread over those that were kept.

        Returns
        -------
        mean, sd : ndarray of shape (n_draws, n_cells)
            Of each draw from a posterior; without one there is a single draw, that of `predictive`.
        """
        mean, sd = self.predictive(rows, cols)
        return np.asarray(mean, np.float64)[None], np.asarray(sd, np.float64)[None]

    def _unit_of(self, cols: NDArray) -> NDArray | float:
        """Return the unit in which errors of cells of these columns count."""
        return 1.0

    def _as_fitted(self) -> Self:
        """Return the fitted estimator with the parameters of its fit, whatever was set since."""
        check_is_fitted(self)
        twin = object.__new__(type(self))
        twin.__dict__.update(vars(self) | getattr(self, "fit_params_", {}))
        return twin

    def locate(self, rows: ArrayLike, cols: ArrayLike) -> tuple[NDArray, NDArray]:
        """Return the positions of cells of the fitted table that are named by their labels.

        Whatever is asked of cells by position may be asked by text labels as well; where labels are
        numbers this says which is meant.

        Parameters
        ----------
        rows, cols : array-like of labels
            Labels of the rows and of the columns, of a frame or of `Intervals.from_long`.
        """
        check_is_fitted(self)
        return (
            label_positions(rows, self.row_labels_, "row"),
            label_positions(cols, self.column_labels_, "column"),
        )

    def _positions(
        self, rows: Any, cols: Any, shape: tuple[int, int] | None = None
    ) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
        """Return the positions of cells that are given by position or by text labels."""
        shape = self._model().shape if shape is None else shape
        return cells_asked_for(rows, cols, shape, (self.row_labels_, self.column_labels_))

    def _read_new(self, X: Any) -> Intervals:
        """Return the cells of rows to be solved for; an Intervals has limits of its own."""
        if isinstance(X, Intervals) or opened(X).foreign:
            limits = (None, None) if isinstance(X, Intervals) else (self.ceiling, self.floor)
            rows = as_intervals(X, *limits, estimator=self)
            check_columns(self, named_columns(rows.shape[1], rows.col_labels))
            return rows
        cells = table_to_triplets(X, estimator=self, allow_empty=True)
        # before the limits: those of other columns would only seem to have the wrong shape
        validate_data(self, X, reset=False, skip_check_array=True)
        return Intervals.from_cells(cells, self.ceiling, self.floor)

    def transform(self, X: Any) -> NDArray:
        """Restore a table, solving for its rows with the fitted column factors.

        Parameters
        ----------
        X : array-like, frame, sparse matrix or Intervals of shape (n_samples, n_features)
            ``ceiling`` and ``floor`` of the estimator apply; limits that differ by row or cell are
            given with the rows, as an `Intervals`.

        Returns
        -------
        X_restored : ndarray of shape (n_samples, n_features)
            Dense; refused before allocation if it cannot fit in memory.
        """
        fitted = self._as_fitted()
        return fitted._restored_rows(fitted._read_new(X))

    def _restored_rows(self, intervals: Intervals, known: bool = False) -> NDArray:
        """Return other rows restored; rows without a cell are warned of unless more is known."""
        _check_dense(intervals, "transform", _FEWER_ROWS)
        if not known:
            warn_without_cells("row", intervals.by_row.row_sizes, intervals.row_labels)
        return self._restored(intervals, self._solve_new_rows(intervals))

    def fold_in(self, X: Any, independent: bool = False) -> Self:
        """Return an estimator that stands for other rows, with the fitted columns as they are.

        Whatever is asked of it by position is asked of the rows of ``X``: `predict`, `predictive`,
        and of `BayesCMC` intervals and samples. Its diagnostics remain those of the fit.

        Parameters
        ----------
        X : array-like, frame, sparse matrix or Intervals of shape (n_samples, n_features)
            As in `transform`.
        independent : bool, default=False
            Whether rows that are drawn (`BayesCMC`) have random numbers of their own, as where all
            of them together are summed up. If not, what is drawn for a row does not depend on
            which others there are.
        """
        fitted = self._as_fitted()
        return fitted._stands_for(fitted._read_new(X), independent)

    def _stands_for(self, intervals: Intervals, independent: bool) -> Self:
        """Return itself with other rows in place of those of the fit."""
        attributes = self._of_rows(intervals, independent)
        self.__dict__.update(attributes, row_labels_=intervals.row_labels)
        return self

    def _of_rows(self, intervals: Intervals, independent: bool) -> dict[str, Any]:
        """Return the fitted attributes that are others for other rows."""
        raise NotImplementedError

    def _restored(self, intervals: Intervals, matrix: Matrix) -> NDArray:
        """Return the matrix with every observed cell at its expected value given its interval."""
        side = intervals.by_row
        table = matrix.block()
        table = table.astype(np.result_type(table, side.value), copy=False)
        table[side.exact_rows(), side.exact_idx] = side.value
        cells = side.censored_rows(), side.censored_idx
        table[cells] = self._expected(matrix, cells, (side.lower, side.upper), table[cells])
        return table

    def predict(self, rows: Any, cols: ArrayLike | None = None) -> NDArray:
        """Return the low-rank estimate of single cells of the fitted table, or of a new table.

        Parameters
        ----------
        rows : array-like of int or labels, or a table
            Rows of the cells, by position or by text labels; or, if ``cols`` is None, a table (not
            sparse) whose rows are solved for as in `transform`.
        cols : array-like of int or labels, optional
            Columns of the cells, as many as ``rows``.

        Returns
        -------
        ndarray
            One value for each cell, or a table of the shape of ``rows``. Unlike `transform`, it
            does not put the observed values back.
        """
        check_is_fitted(self)
        if cols is not None:
            at = self._positions(rows, cols)
            return self._model().predict(*at, effective_n_jobs(self.n_jobs))
        refuse_sparse(rows)
        fitted = self._as_fitted()
        return fitted._predicted_rows(fitted._read_new(rows))

    def _predicted_rows(self, intervals: Intervals) -> NDArray:
        """Return every cell of other rows."""
        _check_dense(intervals, "predict", _SINGLE_CELLS)
        return self._solve_new_rows(intervals).block()

    def expected(
        self, rows: ArrayLike, cols: ArrayLike, lower: ArrayLike, upper: ArrayLike
    ) -> NDArray:
        """Return the restored values of cells of the fitted table that lie in [lower, upper].

        That is the point of the interval nearest to the low-rank estimate; for "tobit" the mean of
        a normal distribution about it, cut off at the ends; of `BayesCMC` the posterior mean.

        Parameters
        ----------
        rows, cols : array-like of int
            The cells.
        lower, upper : array-like
            The bounds of each; infinite where there is none.
        """
        at = self._positions(rows, cols)
        return self._expected(self._model(), at, (np.asarray(lower), np.asarray(upper)))

    def reconstruct(self, rows: Any = None, cols: Any = None) -> NDArray:
        """Return a dense block of the fitted low-rank matrix.

        Parameters
        ----------
        rows, cols : array-like of int or bool, slice, optional
            Which rows and columns; all by default.
        """
        model = self._model()
        chosen = [
            check_selection(which, size, name)
            for which, size, name in zip((rows, cols), model.shape, ("rows", "cols"), strict=True)
        ]
        shape = (len(chosen[0]), len(chosen[1]))
        check_memory(shape, model.dtype, "reconstruct", _SINGLE_CELLS)
        return model.block(*chosen)

    def score(self, X: Any, y: Any = None) -> float:
        """Return minus the root mean squared error of cells predicted from the rest of their row.

        Each cell is hidden once (in five parts), its row solved for from the others with the fitted
        column factors, and the distance of the prediction from the cell's interval taken, in the
        unit that the fit has for its column. Higher is better; scores of fits that differ in
        ``scale`` are not in the same unit.

        Parameters
        ----------
        X : array-like, frame, sparse matrix or Intervals of shape (n_samples, n_features)
            Rows to score.
        y : ignored
            For the conventions of scikit-learn.
        """
        fitted = self._as_fitted()
        intervals = fitted._read_new(X)
        if len(intervals) == 0:
            raise ValueError("X has no observed cell to score: every cell is missing.")
        rows, cols, lower, upper = intervals.triplets()
        part = (np.arange(len(rows)) + rows) % _SCORE_FOLDS
        total = 0.0
        for fold in range(_SCORE_FOLDS):
            hidden = part == fold
            shown = intervals.keep(~hidden[: intervals.n_exact], ~hidden[intervals.n_exact :])
            x = fitted._solve_new_rows(shown).predict(rows[hidden], cols[hidden])
            loss = Hinge().cells(x, lower[hidden], upper[hidden]).value
            total += (loss / self._unit_of(cols[hidden]) ** 2).sum()
        return -float(np.sqrt(2 * total / len(rows)))


def fitted_low_rank(estimator: FittedTable[Any]) -> LowRank:
    """Return the fitted matrix, or of `BayesCMC` one that stands for its posterior.

    Parameters
    ----------
    estimator : FittedTable
        Fitted; else an error says so.
    """
    return estimator._low_rank()


def _check_dense(intervals: Intervals, what: str, remedy: str) -> None:
    check_memory(intervals.shape, intervals.dtype, what, remedy)
