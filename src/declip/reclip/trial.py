"""reclip_test: an estimator judged by values that it was not shown."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from declip.estimators import FroCMC
from declip.intervals import Intervals, as_intervals
from declip.model_selection import without_limits
from declip.reclip.lowering import Reclipped, reclip
from declip.reclip.result import LEFT, RESTORED, ReclipResult, Trial
from declip.scaling import Scaling
from declip.validation import backend_of, check_quantiles

__all__ = ["reclip_test"]

_MISSING, _EXACT = "taken as missing", "taken as exact"
_DEFAULT_RANK = 5


def reclip_test(
    X: Any,
    ceiling: Any = None,
    floor: Any = None,
    estimator: Any = None,
    *,
    quantiles: Sequence[float] = (0.9, 0.8, 0.6),
    scale: str = "columns",
    log: Any = False,
    tol: float = 0.0,
) -> ReclipResult:
    """Judge a restoration by the table itself: clip it lower, restore, compare with the truth.

    The limits are moved into the exact cells of each column. What they hide is known, so that the
    error of the restoration can be seen, next to leaving the cells at the limit and to fits that
    take clipped cells as missing, or as exact.

    Parameters
    ----------
    X : array-like, frame, sparse matrix or Intervals of shape (n_rows, n_cols)
        The table; NaN (absent in a sparse matrix) is missing. An `Intervals` carries its limits.
    ceiling, floor : None, scalar, array-like or mapping, default=None
        Limits of the table, as in `FroCMC`. Without any, ceilings are tested.
    estimator : estimator, default=None
        What restores, such as `FroCMC` or `BayesCMC`; its own limits are not used. None is
        ``FroCMC(clipped="tobit", bias=True)`` with up to five factors.
    quantiles : sequence of float, default=(0.9, 0.8, 0.6)
        Where the limits are put, as quantiles of the exact cells of each column. If a table has
        ceilings and floors, the hidden share is split between both.
    scale : {"columns", "table", "none"}, default="columns"
        Whether the estimator sees each column, or the table as a whole, in standard units.
    log : bool, or labels or numbers of columns, default=False
        Columns that the estimator sees in logarithms.
    tol : float, default=0.0
        A value within this distance of its limit counts as clipped.

    Returns
    -------
    ReclipResult
        Errors by quantile and by column; `print` it, or call its ``plot()`` or ``to_frame()``.

    Notes
    -----
    Cells that were clipped already are hidden too, and judged by what is known of them: that they
    lie at or beyond the real limit. Estimates are therefore cut off there. Beyond the real limit
    nothing is known, and a restoration is extrapolation, however well it does in the test.

    Examples
    --------
    >>> import numpy as np
    >>> from declip import FroCMC, reclip_test
    >>> rng = np.random.default_rng(0)
    >>> table = rng.normal(size=(60, 2)) @ rng.normal(size=(2, 8))
    >>> model = FroCMC(2, scale="none", random_state=0)
    >>> found = reclip_test(table, estimator=model, quantiles=[0.8])
    >>> bool(found.gain > 0.8)
    True
    """
    intervals = as_intervals(X, ceiling, floor, tol)
    if estimator is None:
        rank = max(1, min(_DEFAULT_RANK, min(intervals.shape) - 1))
        estimator = FroCMC(rank, clipped="tobit", bias=True, random_state=0)
    trials = [
        _trial(reclip_at(intervals, quantile, scale != "table"), quantile, estimator, scale, log)
        for quantile in check_quantiles(quantiles)
    ]
    spread = Scaling.of(intervals, "columns").units.scale
    judged = [trial for trial in trials if len(trial.cells)]
    return ReclipResult(judged, spread, intervals.col_labels, backend_of(X))


def reclip_at(intervals: Intervals, quantile: float, by_column: bool) -> Reclipped:
    """Move the limits of the sides that are clipped (ceilings if none is) to a quantile."""
    side = intervals.by_row
    floors, ceilings = side.left_censored.any(), side.right_censored.any()
    hidden = (1 - quantile) / (2 if floors and ceilings else 1)
    sides = {"floors": bool(floors), "ceilings": bool(ceilings or not floors)}
    return reclip(intervals, hidden, by_column=by_column, **sides)


def _trial(cells: Reclipped, quantile: float, estimator: Any, scale: str, log: Any) -> Trial:
    if len(cells) == 0:
        return Trial(quantile, cells, {})
    scaling = Scaling.of(cells.intervals, scale, log)
    shown = scaling.apply(cells.intervals)
    bounds = [scaling.forward(end, cells.cols) for end in (cells.lower, cells.upper)]

    def estimate(intervals: Intervals, restoring: bool) -> NDArray:
        x = _fitted_cells(without_limits(estimator), intervals, cells, bounds, restoring)
        return cells.within_reach(scaling.back(x, cells.cols))

    return Trial(
        quantile,
        cells,
        {
            RESTORED: estimate(shown, True),
            LEFT: cells.limit,
            _MISSING: estimate(shown.treat("missing"), False),
            _EXACT: estimate(shown.treat("value"), False),
        },
    )


def _fitted_cells(
    estimator: Any, shown: Intervals, cells: Reclipped, bounds: list[NDArray], restoring: bool
) -> NDArray:
    """Return what an estimator makes of the hidden cells; never short of the moved limit."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        estimator.fit(shown)
    if restoring:
        return estimator.expected(cells.rows, cells.cols, *bounds)
    return np.clip(estimator.predict(cells.rows, cells.cols), *bounds)
