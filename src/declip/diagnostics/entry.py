"""The one function: a table before a fit, or a fitted estimator with its table."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from declip.diagnostics.coverage import Coverage
from declip.diagnostics.diagnosis import Diagnosis
from declip.diagnostics.fitted import check_fit
from declip.diagnostics.limit_checks import limit_concerns, table_limits
from declip.diagnostics.matrix import as_matrix, matrix_svd
from declip.diagnostics.parts import Matrix, measure_sizes
from declip.diagnostics.tangent import Tangent
from declip.diagnostics.theory import (
    BETA,
    Hidden,
    Theory,
    expert_seconds,
    hidden_cells,
    least_beta,
)
from declip.estimators.base import CompletionEstimator
from declip.estimators.fitted import fitted_low_rank
from declip.grams import censored_cells
from declip.intervals import Intervals, as_intervals
from declip.lowrank import LowRank
from declip.solvers import Limits
from declip.validation import backend_of, check_memory, check_same_shape, warn_user

__all__ = ["diagnose"]

_WORTH_SAYING = 5.0  # seconds


def diagnose(
    X_or_estimator: Any,
    X: Any = None,
    *,
    ceiling: Any = None,
    floor: Any = None,
    expert: bool = False,
    truth: Any = None,
    beta: float = BETA,
) -> Diagnosis:
    """Say whether a table can be restored, where not, and how sure each value is.

    ``diagnose(X, ceiling=, floor=)`` looks at a table before a fit: what is clipped where, which
    rank its exact cells can carry, which limits look wrong. ``diagnose(estimator, X)`` looks at a
    fit: which rows and columns the exact cells determine and by what margin, whether the fit is
    optimal, how sure each restored value is, and whether the residuals look as they should.

    Parameters
    ----------
    X_or_estimator : table, Intervals or fitted estimator
        A table as `FroCMC.fit` takes it, or an estimator that was fitted to ``X``.
    X : table or Intervals, optional
        The table of the fit.
    ceiling, floor : None, scalar, array-like or mapping
        Limits of a table, as in `Intervals.from_table`. An estimator and an `Intervals` have their
        own.
    expert : bool, default=False
        Whether to compute the quantities of the paper's Theorem 1: of the truth if it is given,
        else with the fit in its place. A warning says beforehand if that takes more than a few
        seconds.
    truth : array-like of shape (n_rows, n_cols), LowRank or pair of factors, optional
        The true matrix, in a simulation.
    beta : float, default=3.0
        Exponent of Theorem 1, for ``expert=True``: a larger one asks for more observed cells, and
        promises a smaller probability of failure.

    Returns
    -------
    Diagnosis
        Words, tables and pictures; ``print`` it first.

    Notes
    -----
    A row is determined if the smallest eigenvalue of the sum of v_j v_j^T over its exact cells, V
    the right singular vectors of the fit, is at least 1e-3 (for rows of more than 100 cells, 0.1
    divided by their number). The margin is the smallest eigenvalue of P_T P_K P_T on the tangent
    space T of the fit, K being the exact cells: where it is zero, another matrix of the same rank
    fits the exact cells as well, to first order.

    Examples
    --------
    >>> import numpy as np
    >>> from declip import FroCMC, diagnose
    >>> truth = np.outer(np.linspace(1, 2, 8), np.linspace(1, 2, 6))
    >>> seen = np.minimum(truth, 3)
    >>> diagnose(seen, ceiling=3).coverage.n_clipped
    8
    >>> model = FroCMC(n_components=1, ceiling=3, alpha=1e-3, random_state=0).fit(seen)
    >>> print(diagnose(model, seen).verdict)
    The exact cells determine every row and column of this fit.
    """
    estimator = X_or_estimator if isinstance(X_or_estimator, CompletionEstimator) else None
    table = X_or_estimator if estimator is None else X
    _check_call(estimator, X, ceiling is not None or floor is not None, expert and truth is None)
    if estimator is None:
        intervals = as_intervals(table, ceiling, floor)
    else:
        check_is_fitted(estimator)
        ceiling, floor = estimator.ceiling, estimator.floor
        intervals = estimator._read_new(table)
        check_same_shape(
            "X", intervals.shape, fitted_low_rank(estimator).shape, "the table of the fit"
        )
    coverage = Coverage.of(intervals)
    seconds = _seconds(coverage, estimator)
    if expert:
        _check_expert(intervals.shape, beta, seconds)
        smaller = min(intervals.shape)
        check_memory((smaller, smaller), np.float64, "expert=True", "diagnose a part of the table.")
    matrix = None if truth is None else as_matrix(truth, intervals.shape)
    limits = table_limits(intervals, ceiling, floor)
    return Diagnosis(
        coverage=coverage,
        concerns=limit_concerns(
            intervals, coverage, limits, (ceiling is not None, floor is not None)
        ),
        fit=None if estimator is None else check_fit(estimator, intervals, matrix),
        theory=_theory(intervals, estimator, matrix, limits, beta) if expert else None,
        expert_seconds=seconds,
        intervals=intervals,
        _backend=backend_of(table),
    )


def _check_call(
    estimator: CompletionEstimator[Any, Any] | None, X: Any, has_limits: bool, needs_fit: bool
) -> None:
    if estimator is None and X is not None:
        raise TypeError("diagnose takes a table, or a fitted estimator of declip and its table.")
    if estimator is None and needs_fit:
        raise ValueError(
            "expert=True needs a low-rank matrix: diagnose a fit, or give truth= in a simulation."
        )
    if estimator is not None and X is None:
        raise TypeError("diagnose(estimator, X) needs X, the table that was fitted.")
    if estimator is not None and has_limits:
        raise TypeError("the estimator has its own ceiling and floor: leave them out here.")


def _seconds(coverage: Coverage, estimator: CompletionEstimator[Any, Any] | None) -> float:
    rank = coverage.largest_rank() if estimator is None else fitted_low_rank(estimator).A.shape[1]
    share = coverage.n_clipped / max(coverage.n_observed, 1)
    return expert_seconds(coverage.shape, min(max(rank, 1), 20), share)


def _check_expert(shape: tuple[int, int], beta: float, seconds: float) -> None:
    if not beta > least_beta(shape):
        raise ValueError(
            f"beta = {beta:g} is too small: the lemmas of Theorem 1 need more than "
            f"{least_beta(shape):.4g} for a {shape[0]} x {shape[1]} table."
        )
    if seconds > _WORTH_SAYING:
        warn_user(f"expert=True takes about {seconds:.0f} s for a {shape[0]} x {shape[1]} table.")


def _theory(
    intervals: Intervals,
    estimator: CompletionEstimator[Any, Any] | None,
    truth: Matrix | None,
    limits: Limits | None,
    beta: float,
) -> Theory:
    if truth is None:
        assert estimator is not None
        matrix: Matrix = _without_offsets(fitted_low_rank(estimator))
    else:
        matrix = truth
    found = matrix_svd(matrix)
    if limits is None:
        cells = censored_cells(intervals.by_row, intervals.shape[1])
        hidden = Hidden(cells, np.zeros(cells.nnz, bool))
    else:
        hidden = hidden_cells(matrix, limits)
    share = len(intervals) / (intervals.shape[0] * intervals.shape[1])
    source = "fit" if truth is None else "truth"
    theory = Theory.of(Tangent(found.U, found.V), hidden, share, source, beta)
    return replace(theory, sizes=measure_sizes(matrix, found.S, limits))


def _without_offsets(model: LowRank) -> LowRank:
    """Return the same matrix with its offsets as factors."""
    if not model.bias:
        return model
    A, B = model.A.astype(np.float64), model.B.astype(np.float64)
    one, other = np.ones((len(A), 1)), np.ones((len(B), 1))
    right = np.hstack([B[:, :-1], other, B[:, -1:] + model.mean])
    return LowRank(np.hstack([A, one]), right)
