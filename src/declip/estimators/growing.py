"""Fits that go on as their table grows: new rows, new columns, new cells of known ones."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from typing import Any, Self

import numpy as np
from joblib import effective_n_jobs
from numpy.typing import NDArray
from threadpoolctl import ThreadpoolController

from declip.estimators.factors import LowRankEstimator
from declip.intervals import Intervals, as_intervals
from declip.joining import Growth
from declip.losses import Loss
from declip.lowrank import LowRank
from declip.ordering import Course, OrderedPrior
from declip.penalties import Ridge
from declip.solvers import Solution, Stopping, TableProblem, minimise, solve_rows, start_loss
from declip.validation import check_sweeps, named_columns, places_of

__all__ = ["GrowingEstimator"]

_KEPT = ("alpha_", "n_components_", "course_", "fit_params_")  # of the fit, as its table grows


@cache
def _blas() -> ThreadpoolController:
    """Return the libraries of this process: to look for them takes as long as a small update."""
    return ThreadpoolController()


class GrowingEstimator(LowRankEstimator):
    """A low-rank matrix under a ridge on its factors, into which new cells are taken.

    What is new is solved for with the rest fixed, then a sweep goes over the whole table. Known
    columns keep their units, and the penalty its strength.
    """

    def extend(self, X: Any, *, replace_known: bool = False, sweeps: int = 1) -> Self:
        """Take new rows, new columns and new cells of known ones into the fit.

        Costs a small part of a new fit, and is nearly as good; to make it as good, fit again from
        time to time.

        Parameters
        ----------
        X : frame, Intervals, array-like or sparse matrix
            The new cells alone, missing where there are none. Rows and columns with a label that
            the fit knows are those of the fit, all others are new; without labels they are counted
            from 0. The limits of the estimator apply; an `Intervals` has its own. Of an order in
            time, what follows needs no cell: it is forecast.
        replace_known : bool, default=False
            Whether a cell that is known already takes its new value or limit; else it is an error.
        sweeps : int, default=1
            Sweeps over the whole table, after new rows and columns were solved for.

        Returns
        -------
        self : object
            The estimator; `history_` and `n_iter_` tell of this update.

        Examples
        --------
        >>> import pandas as pd
        >>> from declip import FroCMC, Intervals
        >>> ratings = [("ann", "Alien", 4), ("ann", "Brazil", 2), ("bob", "Alien", 3)]
        >>> names = ["row", "column", "value"]
        >>> model = FroCMC(1, alpha=0.1, random_state=0)
        >>> model = model.fit(Intervals.from_long(pd.DataFrame(ratings, columns=names)))
        >>> later = [("bob", "Clue", 5), ("cem", "Alien", 1)]
        >>> model.extend(Intervals.from_long(pd.DataFrame(later, columns=names))).row_factors_.shape
        (3, 1)
        >>> list(model.row_labels_), list(model.column_labels_)
        (['ann', 'bob', 'cem'], ['Alien', 'Brazil', 'Clue'])
        """
        fitted = self._as_fitted()
        if fitted.side_ is not None:
            raise TypeError(
                "A fit with features, groups, weights or errors is not extended: fit again with "
                "the new rows, or ask for them by transform(rows, row_features=, groups=)."
            )
        limits = (None, None) if isinstance(X, Intervals) else (self.ceiling, self.floor)
        given = as_intervals(X, *limits, estimator=fitted, allow_empty=True)
        return self._grown_by(fitted, given, replace_known, check_sweeps(sweeps))

    def partial_fit(self, X: Any, y: Any = None) -> Self:
        """Take a batch of new rows into the fit; the first batch is fitted.

        Parameters
        ----------
        X : array-like, frame, sparse matrix or Intervals of shape (n_samples, n_features)
            New rows, all of them, with the columns of the fit. For new columns, and for more cells
            of known rows, see `extend`.
        y : ignored
            For the conventions of scikit-learn.

        Returns
        -------
        self : object
            The estimator, which now has these rows below those that it had.
        """
        if not hasattr(self, "components_"):
            return self.fit(X, y)
        fitted = self._as_fitted()
        return self._grown_by(fitted, fitted._read_new(X), append=True)

    def _grown_by(
        self,
        fitted: Self,
        given: Intervals,
        replace_known: bool = False,
        sweeps: int = 1,
        append: bool = False,
    ) -> Self:
        """Solve for new cells under the parameters of the fit, and take the result over."""
        old = fitted._cells_to_extend()
        labels = fitted.row_labels_, fitted.column_labels_
        growth = Growth.of(old.shape, labels, given.treat(fitted.clipped), append)
        with _blas().limit(limits=1, user_api="blas"):
            found = fitted._extended(growth, old, replace_known, sweeps)
        self._check_finite(found["objective_"], found["row_factors_"], found["components_"])
        kept = {name: vars(self)[name] for name in _KEPT if name in vars(self)}
        self._take_over(kept | found)
        return self

    course_: Course | None = None

    def _ordered(self, ridge: Ridge, course: Course | None, shape: tuple[int, int]) -> Ridge:
        """Return the penalty with what the factors of an ordered side follow."""
        if course is None:
            return ridge
        if course.axis == "rows":
            return replace(ridge, row_prior=course.prior(shape[0]))
        return replace(ridge, col_prior=course.prior(shape[1]))

    def _spreads(self, cells: Intervals) -> tuple[NDArray | None, NDArray | None]:
        penalty = self._ordered(self._penalty(1.0), self.course_, cells.shape)
        sides = (penalty.row_prior, cells.by_row), (penalty.col_prior, cells.by_col)
        row, col = (
            prior.spread(side.row_sizes > 0) if isinstance(prior, OrderedPrior) else None
            for prior, side in sides
        )
        return row, col

    def _penalty(self, alpha: float) -> Ridge:
        """Return the penalty of this strength."""
        return Ridge(alpha)

    def _last_fit(
        self, intervals: Intervals, settled: dict[str, Any]
    ) -> tuple[LowRank | None, Loss]:
        """Return the last fit, and its loss, for a table that may have grown since.

        Rows and columns are found by their labels, or without labels in their order; those that
        are new begin at what the others say of them.
        """
        old, loss = self._factors(), start_loss(intervals, self.clipped, self.scale_)
        labels = (
            (self.row_labels_, intervals.row_labels),
            (self.column_labels_, intervals.col_labels),
        )
        sizes = zip(old.shape, intervals.shape, strict=True)
        rows, cols = (places_of(*pair, *size) for pair, size in zip(labels, sizes, strict=True))
        if rows is None or cols is None:
            return None, loss
        model = self._factors_in(settled["scaling_"], cols).moved((rows, cols), intervals.shape)
        model = model.astype(intervals.dtype)
        if old.shape != intervals.shape:
            penalty, threads = self._penalty(settled["alpha_"]), effective_n_jobs(self.n_jobs)
            model = solve_rows(intervals.by_row, model, penalty, loss, threads)
        return model, loss

    def _cells_to_extend(self) -> Intervals:
        cells = vars(self).get("_fit_cells")
        if cells is None:
            raise TypeError(
                f"This {type(self).__name__} has no cells of its fit: it was copied, loaded or "
                "fitted to blocks. Fit it to the whole table again, with "
                "warm_start=True to begin at what it knows."
            )
        return cells

    def _extended(
        self, growth: Growth, old: Intervals, replace_known: bool, sweeps: int
    ) -> dict[str, Any]:
        scaling = self.scaling_
        if scaling is not None:
            scaling = scaling.extended(growth.new, old.shape[1])
            growth = replace(growth, new=scaling.apply(growth.new))
        cells = growth.joined(old, replace_known)
        solution = self._updated(cells, growth, sweeps)
        return {
            "scaling_": scaling,
            "row_labels_": cells.row_labels,
            "column_labels_": cells.col_labels,
            **named_columns(cells.shape[1], cells.col_labels),
            **self._finished(cells, solution),
        }

    def _updated(self, cells: Intervals, growth: Growth, sweeps: int) -> Solution:
        """Solve for new rows with the columns fixed, for new columns likewise, then sweep.

        Steps that follow those of an order begin at what these say of them.
        """
        ridge, loss = self._row_penalty(self.components_), self._loss()
        penalty = self._ordered(ridge, self.course_, cells.shape)
        threads = effective_n_jobs(self.n_jobs)
        places = [np.arange(size) for size in growth.known]
        model, new = self._factors().moved(places, cells.shape), growth.added()
        sides = (cells.by_row, penalty.row_prior), (cells.by_col, penalty.col_prior)
        for (side, prior), which in zip(sides, new, strict=True):
            if len(which) and isinstance(prior, OrderedPrior):
                model.A[which] = prior.following(model.A[: which[0]])
            elif len(which):
                part = replace(model, A=model.A[which])
                model.A[which] = solve_rows(side.take(which), part, ridge, loss, threads).A
            model = model.T
        problem = TableProblem(cells, model, penalty, threads)
        return minimise(problem, loss, Stopping(sweeps, 0.0), polish=False)
