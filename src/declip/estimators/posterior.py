"""What is asked of a fitted posterior: means, bands, probabilities and draws of cells."""

from __future__ import annotations

from typing import Any

import numpy as np
from joblib import effective_n_jobs
from numpy.typing import ArrayLike, NDArray
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from declip.estimators.side import SideInformationEstimator
from declip.intervals import Intervals
from declip.levels import Levels
from declip.lowrank import LowRank
from declip.solvers.gibbs import (
    KnownSides,
    Posterior,
    Run,
    credible_interval,
    level_probabilities,
)
from declip.validation import check_columns, check_memory, named_columns, one_scale

__all__ = ["LARGEST_SEED", "PosteriorEstimator"]

LARGEST_SEED = 2**31 - 1


class PosteriorEstimator(SideInformationEstimator[Run, Posterior]):
    """Answers questions about cells from samples of a posterior.

    The subclass fits: it leaves ``posterior_``, ``run_``, ``intervals_`` and ``levels_``.
    """

    levels_: Levels | None = None

    def predict(
        self,
        rows: Any,
        cols: ArrayLike | None = None,
        row_features: Any = None,
        groups: Any = None,
        return_std: bool = False,
    ) -> Any:
        """Return the posterior mean of the low-rank matrix, for single cells or a new table.

        What is known of the very cell (its value, its limit) counts only through the factors; for
        clipped cells of the fitted table see `fit_transform` and `predict_interval`.

        Parameters
        ----------
        rows : array-like of int, or a table
            Rows of the cells; or, if ``cols`` is None, a table (not sparse) whose rows are drawn as
            in `transform`.
        cols : array-like of int, optional
            Columns of the cells, as many as ``rows``.
        row_features, groups : see `transform`
            Of the rows of a new table.
        return_std : bool, default=False
            Whether to return also the standard deviation of the cells' values, as `predictive`.

        Returns
        -------
        ndarray, or (ndarray, ndarray)
            Means, and standard deviations if asked for.
        """
        if not return_std:
            return super().predict(rows, cols, row_features, groups)
        if cols is None:
            raise ValueError(
                "return_std is for single cells of the fitted table: predict(rows, cols, "
                "return_std=True)."
            )
        return self.predictive(rows, cols)

    def predictive(self, rows: ArrayLike, cols: ArrayLike) -> tuple[NDArray, NDArray]:
        """Return the posterior mean and standard deviation of the values of cells, noise included.

        As in `predict`, what is known of the very cell counts only through the factors.

        Parameters
        ----------
        rows, cols : array-like of int
            The cells, of the fitted table.

        Returns
        -------
        mean, sd : ndarray
            One of each for each cell.
        """
        return self._model().moments(*self._positions(rows, cols), effective_n_jobs(self.n_jobs))

    def predictive_draws(
        self, rows: ArrayLike, cols: ArrayLike, most: int = 32
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return mean and standard deviation of the values of cells, by each of some draws.

        Parameters
        ----------
        rows, cols : array-like of int
            The cells, of the fitted table.
        most : int, default=32
            Draws at most, evenly spread over those that were kept.

        Returns
        -------
        mean, sd : ndarray of shape (n_draws, n_cells)
            Of the normal distributions whose mixture is the prediction (of ``df`` degrees of
            freedom where that was asked for).
        """
        return self._model().components(*self._positions(rows, cols), most)

    def predict_interval(
        self, rows: ArrayLike, cols: ArrayLike, coverage: float = 0.9
    ) -> tuple[NDArray, NDArray]:
        """Return intervals that hold the true values of cells with some probability.

        Parameters
        ----------
        rows, cols : array-like of int
            The cells, of the fitted table.
        coverage : float, default=0.9
            The probability.

        Returns
        -------
        low, high : ndarray
            Of a clipped cell from its limit to a quantile; of a missing cell, or one known to lie
            in a range, between two quantiles with equal tails; of an exact cell its value twice.
        """
        if not 0 < coverage < 1:
            raise ValueError(f"coverage must lie between 0 and 1; got {coverage!r}.")
        posterior = self._model()
        at = self._positions(rows, cols)
        lower, upper = self.intervals_.bounds_at(*at)
        return credible_interval(posterior, at, lower, upper, coverage)

    def probability_above(self, rows: ArrayLike, cols: ArrayLike, threshold: ArrayLike) -> NDArray:
        """Return the posterior probability that the values of cells lie above a threshold.

        As in `predict`, what is known of the very cell counts only through the factors.

        Parameters
        ----------
        rows, cols : array-like of int
            The cells, of the fitted table.
        threshold : float or array-like
            One for all cells, or one for each. For ratings rounded to whole numbers, a half below
            the rating that is asked about.
        """
        model, cut = self._model(), np.asarray(threshold, np.float64)
        return model.above(*self._positions(rows, cols), cut, effective_n_jobs(self.n_jobs))

    def predict_levels(self, rows: ArrayLike, cols: ArrayLike) -> NDArray[np.float64]:
        """Return the posterior probability of every level of cells of columns recorded in levels.

        As in `predict`, what is known of the very cell counts only through the factors.

        Parameters
        ----------
        rows, cols : array-like of int
            The cells, of the fitted table, in columns of one scale.

        Returns
        -------
        ndarray of shape (n_cells, n_levels)
            Levels from low to high, in the order of ``levels_.scales``.

        Examples
        --------
        >>> import numpy as np
        >>> from declip import BayesCMC
        >>> rng = np.random.default_rng(0)
        >>> mood = rng.normal(size=(60, 1)) + rng.normal(size=(60, 6))
        >>> answers = np.digitize(mood, [-1.5, -0.5, 0.5, 2.0]) + 1.0  # 1 to 5
        >>> model = BayesCMC(1, levels="shared", n_samples=50, burn_in=50, random_state=0)
        >>> model.fit(answers).predict_levels([0, 1], [2, 2]).shape
        (2, 5)
        """
        posterior, at = self._model(), self._positions(rows, cols)
        scale = one_scale(self.levels_, at[1], self.column_labels_)
        return level_probabilities(posterior, at, scale.cuts, effective_n_jobs(self.n_jobs))

    def _read_new(self, X: Any) -> Intervals:
        if self.levels_ is None or isinstance(X, Intervals):
            return super()._read_new(X)
        limits = {"ceiling": self.ceiling, "floor": self.floor}
        rows = Intervals.from_levels(X, levels=self.levels_, **limits, allow_empty=True)
        check_columns(self, named_columns(rows.shape[1], rows.col_labels))
        return rows

    def sample(self, n: int = 5, random_state: Any = None) -> NDArray:
        """Return complete tables drawn from the posterior (multiple imputation).

        Exact cells hold their values; clipped and missing ones are drawn, noise included. Analyse
        each table, and bring the results together with `declip.pool`.

        Parameters
        ----------
        n : int, default=5
            Number of tables.
        random_state : int, RandomState instance or None, default=None
            Seed of what is drawn.

        Returns
        -------
        ndarray of shape (n, n_samples, n_features)
        """
        posterior = self._model()
        check_memory((n, *posterior.shape), np.float64, "sample", "draw fewer tables at a time.")
        seeds = check_random_state(random_state).randint(LARGEST_SEED, size=n)
        lower, upper = self.intervals_.to_bounds()
        missing = np.isnan(lower)
        lower, upper = np.where(missing, -np.inf, lower), np.where(missing, np.inf, upper)
        rows, cols = (a.astype(np.int32) for a in np.nonzero(lower < upper))
        low, high = lower[rows, cols], upper[rows, cols]
        chosen = np.linspace(0, len(posterior.samples) - 1, n).round().astype(int)
        tables = np.repeat(lower[None].astype(np.float64), n, axis=0)
        for table, which, seed in zip(tables, chosen, seeds, strict=True):
            table[rows, cols] = posterior.complete(which, rows, cols, low, high, int(seed))
        return tables

    def to_arviz(self) -> Any:
        """Return the traced quantities of all chains as an ``InferenceData`` of ArviZ.

        Its posterior holds "cells" (the low-rank matrix at clipped cells and at random places, up
        to 50 of each), "column_means" and "noise_scales" of up to 50 columns, in the units of the
        table, for every sweep after the burn-in. Needs ``pip install 'declip[stats]'``.

        Examples
        --------
        >>> import numpy as np
        >>> from declip import BayesCMC
        >>> rng = np.random.default_rng(0)
        >>> table = np.minimum(rng.normal(size=(40, 1)) + 0.5 * rng.normal(size=(40, 4)), 1)
        >>> model = BayesCMC(1, ceiling=1, n_samples=50, burn_in=20, random_state=0).fit(table)
        >>> model.to_arviz().posterior["column_means"].shape  # chain, draw, column
        (2, 50, 4)
        """
        check_is_fitted(self)
        from declip.estimators.arviz import inference_data

        return inference_data(self.run_, self.intervals_)

    def _model(self) -> Posterior:
        check_is_fitted(self)
        return self.posterior_

    def _low_rank(self) -> LowRank:
        return self._model().low_rank()

    def _of_rows(self, intervals: Intervals, independent: bool) -> dict[str, Any]:
        posterior = self._solve_new_rows(intervals, independent)
        del self.run_  # which is that of the fitted rows
        rows = posterior.noise_scales()[0]
        return {"posterior_": posterior, "intervals_": intervals, "row_noise_": rows}

    def _solve_new_rows(self, intervals: Intervals, independent: bool = False) -> Posterior:
        if not hasattr(self, "run_"):
            raise TypeError("Rows are folded into the fitted BayesCMC, not into other rows of it.")
        posterior, seed = self._model(), self.run_.chains[0].seed
        samples = len(posterior.samples), intervals.shape[0], posterior.model.rank + 1
        check_memory(samples, np.float32, "BayesCMC", "transform fewer rows at a time.")
        threads, known = effective_n_jobs(self.n_jobs), None
        if self.side_ is not None:
            rows = self._rows_known(intervals.shape[0])
            known = KnownSides(rows.features, None, rows.groups, self.side_.n_groups)
        return posterior.new_rows(intervals, seed, threads, independent=independent, known=known)

    def _restored(self, intervals: Intervals, matrix: Posterior) -> NDArray:
        restored = super()._restored(intervals, matrix)
        if any(matrix.model.missing):
            rows, cols = (
                a.astype(np.int32) for a in np.nonzero(np.isnan(intervals.to_bounds()[0]))
            )
            ends = np.full(len(rows), -np.inf), np.full(len(rows), np.inf)
            restored[rows, cols] = self._expected(matrix, (rows, cols), ends)
        return restored.astype(intervals.dtype, copy=False)

    def _expected(
        self,
        matrix: Posterior,
        cells: tuple[NDArray, NDArray],
        bounds: tuple[NDArray, NDArray],
        x: NDArray | None = None,
    ) -> NDArray:
        return matrix.expected(*cells, *bounds, effective_n_jobs(self.n_jobs))
