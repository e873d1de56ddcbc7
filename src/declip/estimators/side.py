"""What else is known of a table: features of rows and columns, groups, weights and errors."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any, Generic, NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import _fit_context

from declip.estimators.base import CompletionEstimator, State
from declip.estimators.fitted import Matrix
from declip.intervals import Intervals
from declip.lowrank import GroupOffsets
from declip.penalties import FeaturePrior, KnownCentre, Ridge
from declip.solvers import TableProblem
from declip.solvers.als import Problem
from declip.solvers.groups import GroupedCells, GroupedProblem, group_ridge
from declip.validation import (
    FeatureEncoder,
    GroupLabels,
    cell_numbers,
    read_features,
    refuse_side_information,
)

__all__ = ["Known", "KnownRows", "SideInformation", "SideInformationEstimator", "check_known_names"]

# Ridge of what features say of the factors of a side, as a share of that of the factors themselves.
# By the sum of squares of a feature over all rows, whatever its units: were a coefficient as cheap
# as one factor of one row, what is linear in the features would cost next to nothing on this side
# and, by scaling, on the other.
_RIDGE = 0.1


class Known(NamedTuple):
    """What is given besides a table, as it is given; see `SideInformationEstimator.fit`."""

    row_features: Any = None
    column_features: Any = None
    groups: Any = None
    weights: Any = None
    errors: Any = None

    @property
    def names(self) -> list[str]:
        """What of it is given."""
        return [name for name in self._fields if getattr(self, name) is not None]


def check_known_names(caller: str, given: Iterable[str]) -> None:
    """Refuse arguments of a fit that say nothing of what is known."""
    unknown = [name for name in given if name not in Known._fields]
    if unknown:
        raise TypeError(f"{caller} takes no {', '.join(unknown)}")


class KnownRows(NamedTuple):
    """What is known of other rows: their features as numbers, and the numbers of their groups."""

    features: NDArray[np.float64] | None = None
    groups: NDArray[np.int32] | None = None


@dataclass(frozen=True, eq=False)
class SideInformation:
    """What was known besides the cells of a fit, and what the fit made of it.

    Attributes
    ----------
    row_encoder, col_encoder : FeatureEncoder or None
        How features become numbers.
    row_features, col_features : ndarray or None
        Those of the fit, as numbers.
    groups : GroupLabels or None
        The groups of rows.
    index : ndarray or None
        The group of each row; -1 for none.
    weighted : {"", "weights", "errors"}
        Which of them cells had.
    coefficients : ndarray of shape (n_features, n_components + n_offsets) or None
        Of the factors of a row (and its offset) on its features.
    offsets : GroupOffsets or None
        Of the groups, in the units of the fit.
    """

    row_encoder: FeatureEncoder | None = None
    col_encoder: FeatureEncoder | None = None
    row_features: NDArray[np.float64] | None = None
    col_features: NDArray[np.float64] | None = None
    groups: GroupLabels | None = None
    index: NDArray[np.int32] | None = None
    weighted: str = ""
    coefficients: NDArray[np.float64] | None = None
    offsets: GroupOffsets | None = None

    @classmethod
    def of(cls, table: Intervals, known: Known) -> SideInformation:
        """Read what is known of the rows and columns of a table."""
        row_encoder, row_features = _encoded(known.row_features, "row_features", "row", table)
        col_encoder, col_features = _encoded(
            known.column_features, "column_features", "column", table
        )
        groups = index = None
        if known.groups is not None:
            given = _groups(known.groups, table)
            groups = GroupLabels.of(given)
            index = groups.index(given)
        weighted = "weights" if known.weights is not None else ""
        weighted = "errors" if known.errors is not None else weighted
        return cls(row_encoder, col_encoder, row_features, col_features, groups, index, weighted)

    @property
    def n_groups(self) -> int:
        """Number of groups."""
        return 0 if self.groups is None else len(self.groups.levels)

    def identity(self, cells: Intervals) -> list[Any]:
        """Return all that makes a fit another one: of two that differ, one cannot go on."""
        features = self.row_features, self.col_features, self.index
        return [*features, cells.by_row.weights, cells.by_row.scales]

    def grouped(self, cells: Intervals) -> GroupedCells | None:
        """Return the cells of the fit with the groups of their rows."""
        return None if self.index is None else GroupedCells(cells, self.index, self.n_groups)

    def problem(self, plain: TableProblem) -> Problem:
        """Return the problem of a fit with all that is known, from that of its cells alone."""
        penalty = plain.penalty
        if self.row_features is not None:
            penalty = replace(penalty, row_prior=_prior(self.row_features))
        if self.col_features is not None:
            penalty = replace(penalty, col_prior=_prior(self.col_features))
        table = replace(plain, penalty=penalty)
        cells = self.grouped(plain.intervals)
        if cells is None:
            return table
        return GroupedProblem(table, cells, group_ridge(cells))

    def fitted(self, A: NDArray, offsets: GroupOffsets | None) -> SideInformation:
        """Return the side information with the factors of rows and offsets of groups of a fit."""
        prior = _prior(self.row_features)
        found = None if prior is None else prior.coefficients(A)
        return replace(self, coefficients=found, offsets=offsets)

    def solved_for(
        self, known: KnownRows, penalty: Ridge, cells: Intervals
    ) -> tuple[Ridge, Intervals, GroupOffsets | None]:
        """Return the penalty of other rows, their cells without groups, and what those add."""
        if known.features is not None and self.coefficients is not None:
            centre = known.features @ self.coefficients
            penalty = replace(penalty, row_prior=KnownCentre(centre))
        if known.groups is None or self.offsets is None:
            return penalty, cells, None
        offsets = self.offsets.offsets.astype(cells.dtype)
        bare = GroupedCells(cells, known.groups, self.n_groups).without(offsets)
        return penalty, bare, GroupOffsets(known.groups, offsets)

    def check_given(self, known: Known) -> None:
        """Refuse features of other rows where the fit had none, and their lack where it had."""
        if (self.row_encoder is None) == (known.row_features is None):
            return
        raise ValueError(
            "this fit had row_features: give those of the new rows as well (row_features=)."
            if known.row_features is None
            else "this fit had no row_features: leave them out, or fit with them."
        )

    def rows(self, table: Intervals, known: Known) -> KnownRows:
        """Read what is known of other rows."""
        given, n = known, table.shape[0]
        self.check_given(given)
        features = index = None
        if self.row_encoder is not None:
            columns = read_features(given.row_features, "row_features", "row", table.row_labels, n)
            features = self.row_encoder.encode(columns)
        if self.groups is not None:
            index = np.full(n, -1, np.int32)
            if given.groups is not None:
                index = self.groups.index(_groups(given.groups, table))
        return KnownRows(features, index)


def _encoded(
    given: Any, what: str, axis: str, table: Intervals
) -> tuple[FeatureEncoder | None, NDArray[np.float64] | None]:
    if given is None:
        return None, None
    by_row = axis == "row"
    labels = table.row_labels if by_row else table.col_labels
    columns = read_features(given, what, axis, labels, table.shape[0 if by_row else 1])
    encoder = FeatureEncoder.of(what, columns)
    return encoder, encoder.encode(columns)


def _groups(given: Any, table: Intervals) -> NDArray[Any]:
    columns = read_features(given, "groups", "row", table.row_labels, table.shape[0])
    if len(columns) > 1:
        raise ValueError(
            f"groups has {len(columns)} columns: give one label for each row; to combine two, "
            "join their texts."
        )
    return next(iter(columns.values()))


def _prior(features: NDArray[np.float64] | None) -> FeaturePrior | None:
    if features is None:
        return None
    size = np.maximum(np.square(features).sum(axis=0), 1.0)  # of a category not seen: as if once
    return FeaturePrior(features, _RIDGE * size)


def counted(table: Intervals, known: Known) -> Intervals:
    """Return the cells that have a weight."""
    if known.weights is None:
        return table
    seen, n = cell_numbers(known.weights, table, "weights") > 0, table.n_exact
    return table if seen.all() else table.keep(seen[:n], seen[n:])


def weighed(cells: Intervals, known: Known, unit: NDArray | None = None) -> Intervals:
    """Return cells with the weights that they have.

    An error s is a weight of r^2 / s^2, with r such that the mean weight is 1; the known noise
    scales go with censored cells. ``unit`` is that of each column.
    """
    what = "weights" if known.errors is None else "errors"
    given = known.weights if known.errors is None else known.errors
    if given is None:
        return cells
    numbers, cols = cell_numbers(given, cells, what), cells.triplets()[1]
    if what == "weights":
        return _with(cells, numbers, None)
    sd = numbers / (1.0 if unit is None else unit[cols])
    return _with(cells, np.mean(sd**-2.0) ** -1 / sd**2, sd)


def precisely_weighed(cells: Intervals, known: Known) -> Intervals:
    """Return cells with weights as they are given; for errors s with the precisions 1 / s^2."""
    if known.errors is None:
        return weighed(cells, known)
    return _with(cells, cell_numbers(known.errors, cells, "errors") ** -2.0, None)


def _with(cells: Intervals, weight: NDArray, scale: NDArray | None) -> Intervals:
    n, dtype = cells.n_exact, cells.dtype
    weight = weight.astype(dtype)
    scales = None if scale is None else scale[n:].astype(dtype)
    side = replace(cells.by_row, weights=(weight[:n].copy(), weight[n:].copy()), scales=scales)
    return replace(cells, by_row=side)


class SideInformationEstimator(CompletionEstimator[State, Matrix], Generic[State, Matrix]):
    """An estimator whose fit takes what else is known of a table."""

    side_: SideInformation | None = None

    @_fit_context(prefer_skip_nested_validation=True)
    def fit(
        self,
        X: Any,
        y: Any = None,
        row_features: Any = None,
        column_features: Any = None,
        groups: Any = None,
        weights: Any = None,
        errors: Any = None,
    ) -> Self:
        """Fit the low-rank model to the observed cells of a table.

        Parameters
        ----------
        X : array-like, frame, sparse matrix or Intervals of shape (n_samples, n_features)
            NaN (and NA, None, masked or absent in a sparse matrix) is missing. An `Intervals`
            carries its own limits: ``ceiling`` and ``floor`` must then be None.
        y : ignored
            For the conventions of scikit-learn.
        row_features, column_features : frame, mapping or array-like, default=None
            What is known of each row (age, site, category) or column besides its cells: numbers,
            and categories as texts. Factors and offsets have a mean that is linear in them. A frame
            with an index is aligned by labels. Missing numbers count as the mean, with a mark of
            their own, missing categories as a level.
        groups : array-like of shape (n_samples,), default=None
            The plate, batch or condition of each row: each group has an offset in each column,
            shrunk towards 0. A row without one (None, NaN) has none.
        weights : scalar, array-like or sparse matrix, default=None
            Of the cells, 0 or more, in the shapes of ``ceiling``: what the loss of a cell is
            multiplied by, or in `BayesCMC` the precision of its noise. A cell of weight 0 does not
            count.
        errors : scalar, array-like or sparse matrix, default=None
            Known standard deviation of each observed cell, in its units and in the shapes of
            ``ceiling``: the whole noise of the cell. Not beside weights.

        Returns
        -------
        self : object
            The fitted estimator.
        """
        self._fit(X, y, known=Known(row_features, column_features, groups, weights, errors))
        return self

    def _known_of_fit(self, caller: str, given: dict[str, Any]) -> Known:
        check_known_names(caller, given)
        return Known(**given)

    def _known(self, table: Any, known: Any) -> SideInformation | None:
        if known is None or not known.names:
            return None
        if not isinstance(table, Intervals):
            refuse_side_information("A folder of blocks, or a table of Dask,", known.names)
        if known.weights is not None and known.errors is not None:
            raise ValueError("Give weights or errors, not both: an error s is a weight of 1 / s^2.")
        if getattr(self, "order", None) is not None:
            raise ValueError(f"order= goes without {' and '.join(known.names)}: leave one out.")
        return SideInformation.of(table, known)

    def _counted(self, table: Any, known: Any) -> Any:
        return table if known is None else counted(table, known)

    def _weighed(self, cells: Any, known: Any, settled: dict[str, Any]) -> Any:
        scaling = settled.get("scaling_")
        return weighed(cells, known, None if scaling is None else scaling.units.scale)

    def _as_fitted_for(self, X: Any, known: Known) -> tuple[Self, Intervals]:
        """Return the fitted estimator, the cells of other rows, and what else is known of them."""
        fitted = self._as_fitted()
        intervals = fitted._read_new(X)
        if fitted.side_ is None:
            if known.names:
                raise ValueError(f"this fit had no {known.names[0]}: fit with them first.")
            return fitted, intervals
        fitted.__dict__["_known_rows"] = fitted.side_.rows(intervals, known)
        return fitted, intervals

    def transform(self, X: Any, row_features: Any = None, groups: Any = None) -> NDArray:
        """Restore a table, solving for its rows with the fitted column factors.

        Parameters
        ----------
        X : array-like, frame, sparse matrix or Intervals of shape (n_samples, n_features)
            ``ceiling`` and ``floor`` of the estimator apply; limits that differ by row or cell are
            given with the rows, as an `Intervals`. With ``row_features`` a row may be empty.
        row_features : frame, mapping or array-like, default=None
            Features of these rows, if the fit had any.
        groups : array-like of shape (n_samples,), default=None
            Groups of these rows; a new group, or none, has no offset.

        Returns
        -------
        X_restored : ndarray of shape (n_samples, n_features)
            Dense; refused before allocation if it cannot fit in memory.
        """
        known = Known(row_features=row_features, groups=groups)
        fitted, intervals = self._as_fitted_for(X, known)
        return fitted._restored_rows(intervals, known=row_features is not None)

    def fold_in(
        self,
        X: Any,
        independent: bool = False,
        row_features: Any = None,
        groups: Any = None,
    ) -> Self:
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
        row_features, groups : see `transform`
            Of these rows.
        """
        known = Known(row_features=row_features, groups=groups)
        fitted, intervals = self._as_fitted_for(X, known)
        return fitted._stands_for(intervals, independent)

    def predict(
        self,
        rows: Any,
        cols: ArrayLike | None = None,
        row_features: Any = None,
        groups: Any = None,
    ) -> NDArray:
        """Return the low-rank estimate of single cells of the fitted table, or of a new table.

        Parameters
        ----------
        rows : array-like of int or labels, or a table
            Rows of the cells, by position or by text labels; or, if ``cols`` is None, a table (not
            sparse) whose rows are solved for as in `transform`.
        cols : array-like of int or labels, optional
            Columns of the cells, as many as ``rows``.
        row_features, groups : see `transform`
            Of the rows of a new table.

        Returns
        -------
        ndarray
            One value for each cell, or a table of the shape of ``rows``. Unlike `transform`, it
            does not put the observed values back.
        """
        if cols is not None or (row_features is None and groups is None and self.side_ is None):
            return super().predict(rows, cols)
        known = Known(row_features=row_features, groups=groups)
        fitted, intervals = self._as_fitted_for(rows, known)
        return fitted._predicted_rows(intervals)

    def _rows_known(self, n: int) -> KnownRows:
        """Return what is known of the rows that are solved for; an error if it was not given."""
        known = vars(self).get("_known_rows")
        if known is not None or self.side_ is None:
            return known or KnownRows()
        self.side_.check_given(Known())
        return KnownRows(groups=None if self.side_.groups is None else np.full(n, -1, np.int32))
