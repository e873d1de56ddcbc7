"""How far estimates are from the truth, from the clipped truth, and from what is known of it.

The first two arguments are always the truth and the estimate, one element a cell, as in
`sklearn.metrics`; limits are scalars or have one element a cell. A figure that the cells do not
define, because there are none or because all are of one kind, is NaN, without a warning.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.metrics import average_precision_score, f1_score, roc_auc_score

from declip.losses import Hinge

__all__ = [
    "at_ceiling_auc",
    "at_ceiling_average_precision",
    "at_ceiling_f1",
    "clipped_relative_rmse",
    "interval_rmse",
    "level_log_score",
    "ndcg_at_k",
    "precision_at_k",
    "quadratic_weighted_kappa",
    "ranked_probability_score",
    "relative_rmse",
]


def relative_rmse(y_true: ArrayLike, y_pred: ArrayLike) -> float:
    """Return the root mean squared error in units of the root mean square of the truth.

    Parameters
    ----------
    y_true, y_pred : array-like of the same shape
        Truth and estimate.

    Returns
    -------
    float
        0 is perfect, and 1 is as good as estimating 0. NaN for no cell; for a truth of zeros, 0 if
        the estimate is zero too, else infinity.

    Examples
    --------
    >>> from declip.metrics import relative_rmse
    >>> relative_rmse([3.0, 4.0], [3.0, 9.0])
    1.0
    """
    truth, estimate = _arrays(y_true=y_true, y_pred=y_pred)
    error, size = (np.linalg.norm(x.ravel()) for x in (estimate - truth, truth))
    if truth.size == 0:
        return np.nan
    if size == 0:
        return 0.0 if error == 0 else np.inf
    return float(error / size)


def clipped_relative_rmse(
    y_true: ArrayLike,
    y_pred: ArrayLike,
    *,
    ceiling: ArrayLike | None = None,
    floor: ArrayLike | None = None,
) -> float:
    """Return `relative_rmse` after truth and estimate were clipped to the limits.

    This is the criterion by which the paper tunes: an estimate beyond the limit of a clipped cell
    is as good as one at it, and the truth beyond a limit need not be known.

    Parameters
    ----------
    y_true, y_pred : array-like of the same shape
        Truth (clipped already, or not) and estimate.
    ceiling, floor : float or array-like, optional
        Limits; None, or an infinite one, does not clip.

    Returns
    -------
    float
        As `relative_rmse`.

    Examples
    --------
    >>> from declip.metrics import clipped_relative_rmse
    >>> clipped_relative_rmse([3.0, 5.0], [3.0, 9.0], ceiling=5)
    0.0
    """
    truth, estimate = _arrays(y_true=y_true, y_pred=y_pred)
    low, high = -np.inf if floor is None else floor, np.inf if ceiling is None else ceiling
    return relative_rmse(np.clip(truth, low, high), np.clip(estimate, low, high))


def interval_rmse(lower: ArrayLike, upper: ArrayLike, y_pred: ArrayLike) -> float:
    """Return the root mean squared distance of estimates from the intervals of their cells.

    The error of an exact cell is two-sided; that of a clipped cell counts only where the estimate
    falls short of the limit.

    Parameters
    ----------
    lower, upper : array-like
        What is known of each cell: equal bounds for an exact one, an infinite bound for a clipped
        one.
    y_pred : array-like
        Estimate of each cell.

    Returns
    -------
    float
        In units of the data; NaN for no cell.

    Examples
    --------
    >>> import numpy as np
    >>> from declip.metrics import interval_rmse
    >>> interval_rmse([3, 5, 5], [3, np.inf, np.inf], [3, 9, 2])
    1.732
    """
    low, high, estimate = _arrays(lower=lower, upper=upper, y_pred=y_pred)
    if estimate.size == 0:
        return np.nan
    # The loss of a cell is half the squared distance.
    loss = Hinge().cells(estimate.ravel(), low.ravel(), high.ravel()).value
    return float(np.sqrt(2 * loss.mean()))


def at_ceiling_f1(
    y_true: ArrayLike,
    y_pred: ArrayLike,
    ceiling: ArrayLike,
    *,
    threshold: ArrayLike | None = None,
) -> float:
    """Return the F1 score of the question which cells are at their ceiling.

    Parameters
    ----------
    y_true, y_pred : array-like of the same shape
        Truth and estimate; a cell is at its ceiling if the truth is not below it.
    ceiling : float or array-like
        The ceiling.
    threshold : float or array-like, optional
        Estimates from here on say "at the ceiling"; by default from the ceiling on.

    Returns
    -------
    float
        From 0 to 1; 0 if no cell at the ceiling is found, NaN if there is none to be found.

    Examples
    --------
    >>> from declip.metrics import at_ceiling_f1
    >>> at_ceiling_f1([5, 5, 3, 2], [6, 4.6, 3, 5.1], ceiling=5)
    0.5
    """
    at, _ = _at_ceiling(y_true, y_pred, ceiling)
    if not at.any():
        return np.nan
    cut = ceiling if threshold is None else threshold
    said = np.asarray(y_pred, np.float64) >= np.asarray(cut, np.float64)
    return float(f1_score(at, said.ravel(), zero_division=0.0))


def at_ceiling_average_precision(y_true: ArrayLike, y_pred: ArrayLike, ceiling: ArrayLike) -> float:
    """Return the average precision of the estimates as a ranking of cells at their ceiling.

    Cells are ranked by how far the estimate lies above their ceiling.

    Parameters
    ----------
    y_true, y_pred, ceiling : array-like
        As in `at_ceiling_f1`.

    Returns
    -------
    float
        1 is perfect, the share of cells at the ceiling is chance; NaN if no cell is at it.

    Examples
    --------
    >>> from declip.metrics import at_ceiling_average_precision
    >>> at_ceiling_average_precision([5, 5, 3, 2], [6, 4.6, 3, 5.1], ceiling=5)
    0.833
    """
    at, margin = _at_ceiling(y_true, y_pred, ceiling)
    return float(average_precision_score(at, margin)) if at.any() else np.nan


def at_ceiling_auc(y_true: ArrayLike, y_pred: ArrayLike, ceiling: ArrayLike) -> float:
    """Return the chance that a cell at its ceiling is ranked above one that is not.

    Parameters
    ----------
    y_true, y_pred, ceiling : array-like
        As in `at_ceiling_f1`; cells are ranked as in `at_ceiling_average_precision`.

    Returns
    -------
    float
        The area under the ROC curve: 1 is perfect, 1/2 is chance; NaN if all cells are at the
        ceiling, or none.

    Examples
    --------
    >>> from declip.metrics import at_ceiling_auc
    >>> at_ceiling_auc([5, 5, 3, 2], [6, 4.6, 3, 5.1], ceiling=5)
    0.75
    """
    at, margin = _at_ceiling(y_true, y_pred, ceiling)
    return float(roc_auc_score(at, margin)) if at.any() and not at.all() else np.nan


def _at_ceiling(
    y_true: ArrayLike, y_pred: ArrayLike, ceiling: ArrayLike
) -> tuple[NDArray[np.bool_], NDArray[np.float64]]:
    """Return which cells are at their ceiling, and how far the estimates lie above it."""
    truth, estimate = _arrays(y_true=y_true, y_pred=y_pred)
    limit = np.asarray(ceiling, np.float64)
    if not np.isfinite(limit).all():
        raise ValueError(
            "ceiling must be a finite number for every cell: leave out cells that have no ceiling."
        )
    return (truth >= limit).ravel(), (estimate - limit).ravel()


def _arrays(**given: ArrayLike) -> list[NDArray[np.float64]]:
    arrays = {name: np.asarray(values, np.float64) for name, values in given.items()}
    if len({a.shape for a in arrays.values()}) > 1:
        shapes = ", ".join(f"{name} {a.shape}" for name, a in arrays.items())
        raise ValueError(f"{' and '.join(arrays)} must have the same shape; got {shapes}.")
    return list(arrays.values())


def precision_at_k(
    y_true: ArrayLike, y_pred: ArrayLike, rows: ArrayLike, *, k: int = 10, relevant: float
) -> float:
    """Return the mean share of relevant cells among the k of each row that are ranked highest.

    Parameters
    ----------
    y_true, y_pred : array-like of the same shape
        Truth and estimate of cells that were held out.
    rows : array-like
        The row (user) of each cell.
    k : int, default=10
        How many are shown; a row with fewer cells shows all.
    relevant : float
        Truth from which a cell is relevant.

    Returns
    -------
    float
        From 0 to 1; NaN for no cell.

    Examples
    --------
    >>> from declip.metrics import precision_at_k
    >>> precision_at_k([5, 1, 4, 2], [4.9, 3.0, 2.0, 4.0], [0, 0, 1, 1], k=1, relevant=4)
    0.5
    """
    truth, estimate = (x.ravel() for x in _arrays(y_true=y_true, y_pred=y_pred))
    row, place = _ranked(estimate, rows)
    shown = place < k
    hits = np.bincount(row, shown * (truth >= relevant))
    return float(np.mean(hits / np.bincount(row, shown))) if truth.size else np.nan


def ndcg_at_k(y_true: ArrayLike, y_pred: ArrayLike, rows: ArrayLike, *, k: int = 10) -> float:
    """Return the mean normalised discounted cumulative gain of the k highest ranked of each row.

    Parameters
    ----------
    y_true, y_pred : array-like of the same shape
        Truth (the gain, from 0 on) and estimate of cells that were held out.
    rows : array-like
        The row (user) of each cell.
    k : int, default=10
        How many are shown.

    Returns
    -------
    float
        1 if every row is ranked as its truth is; NaN if no row has a gain.

    Examples
    --------
    >>> from declip.metrics import ndcg_at_k
    >>> ndcg_at_k([3, 2, 1], [0.9, 0.5, 0.1], [0, 0, 0], k=2)
    1.0
    """
    truth, estimate = (x.ravel() for x in _arrays(y_true=y_true, y_pred=y_pred))
    if truth.size and truth.min() < 0:
        raise ValueError(f"gains must not be negative; y_true has {truth.min():g}.")

    def gains(ranking: NDArray) -> NDArray:
        row, place = _ranked(ranking, rows)
        discount = np.where(place < k, 1 / np.log2(place + 2.0), 0.0)
        return np.bincount(row, truth * discount)

    best = gains(truth) if truth.size else np.zeros(0)
    some = best > 0
    return float(np.mean(gains(estimate)[some] / best[some])) if some.any() else np.nan


def _ranked(scores: NDArray, rows: ArrayLike) -> tuple[NDArray, NDArray]:
    """Return the number of the row of each cell, and its place there by falling score."""
    names = np.asarray(rows).ravel()
    if names.shape != scores.shape:
        raise ValueError(f"rows must have one element a cell: {names.size}, not {scores.size}.")
    row = np.unique(names, return_inverse=True)[1]
    order = np.lexsort((-scores, row))
    starts = np.concatenate([[0], np.cumsum(np.bincount(row))[:-1]]) if row.size else [0]
    place = np.empty(len(scores), int)
    place[order] = np.arange(len(scores)) - np.repeat(starts, np.bincount(row))
    return row, place


def level_log_score(y_true: ArrayLike, y_prob: ArrayLike, levels: ArrayLike) -> float:
    """Return the mean of minus the log of the probability that was given to the level that came.

    Parameters
    ----------
    y_true : array-like of shape (n_cells,)
        The levels that came.
    y_prob : array-like of shape (n_cells, n_levels)
        Probabilities, as of `BayesCMC.predict_levels`.
    levels : array-like of shape (n_levels,)
        The levels, in the order of the probabilities.

    Returns
    -------
    float
        0 is perfect; infinite if something came that was held to be impossible. NaN for no cell.

    Examples
    --------
    >>> from declip.metrics import level_log_score
    >>> level_log_score([1, 3], [[0.5, 0.25, 0.25], [0.25, 0.25, 0.5]], [1, 2, 3])
    0.693
    """
    came, chances = _levels_and_chances(y_true, y_prob, levels)
    with np.errstate(divide="ignore"):
        logs = np.log(chances[np.arange(len(came)), came])
    return float(-logs.mean()) if len(came) else np.nan


def ranked_probability_score(y_true: ArrayLike, y_prob: ArrayLike, levels: ArrayLike) -> float:
    """Return the mean sum of squared errors of the probabilities of no more than each level.

    A probability on a level far from the one that came costs more than on one beside it.

    Parameters
    ----------
    y_true, y_prob, levels : array-like
        As in `level_log_score`.

    Returns
    -------
    float
        0 is perfect, and the number of levels less 1 the worst; NaN for no cell.

    Examples
    --------
    >>> from declip.metrics import ranked_probability_score
    >>> ranked_probability_score([1, 3], [[0.5, 0.25, 0.25], [0.25, 0.25, 0.5]], [1, 2, 3])
    0.312
    """
    came, chances = _levels_and_chances(y_true, y_prob, levels)
    below = np.cumsum(chances, axis=1)[:, :-1]
    truth = came[:, None] <= np.arange(chances.shape[1] - 1)
    return float(((below - truth) ** 2).sum(axis=1).mean()) if len(came) else np.nan


def quadratic_weighted_kappa(y_true: ArrayLike, y_pred: ArrayLike, levels: ArrayLike) -> float:
    """Return Cohen's kappa of levels and predicted ones, errors weighted by their squares.

    Parameters
    ----------
    y_true, y_pred : array-like of shape (n_cells,)
        The levels that came, and those that were predicted.
    levels : array-like of shape (n_levels,)
        All levels from low to high; errors are counted in steps between them.

    Returns
    -------
    float
        1 is perfect, 0 is chance; NaN for no cell, or where all are of one level.

    Examples
    --------
    >>> from declip.metrics import quadratic_weighted_kappa
    >>> quadratic_weighted_kappa([1, 2, 3, 3], [1, 2, 3, 2], levels=[1, 2, 3])
    0.8
    """
    names = np.asarray(levels)
    came, said = _places(y_true, names, "y_true"), _places(y_pred, names, "y_pred")
    if len(came) != len(said):
        raise ValueError(
            f"y_true and y_pred must have the same length: {len(came)}, not {len(said)}."
        )
    if not len(came):
        return np.nan
    # 1 - E (a - b)^2 over the same for pairs at random
    apart = came.var() + said.var() + (came.mean() - said.mean()) ** 2
    return float(1 - ((came - said) ** 2).mean() / apart) if apart > 0 else np.nan


def _levels_and_chances(
    y_true: ArrayLike, y_prob: ArrayLike, levels: ArrayLike
) -> tuple[NDArray[np.intp], NDArray[np.float64]]:
    names, chances = np.asarray(levels), np.asarray(y_prob, np.float64)
    came = _places(y_true, names, "y_true")
    if chances.shape != (len(came), len(names)):
        raise ValueError(
            f"y_prob must have a row for each cell and a column for each level, "
            f"{(len(came), len(names))}; got {chances.shape}."
        )
    if chances.size and (chances.min() < 0 or abs(chances.sum(axis=1) - 1).max() > 1e-6):
        raise ValueError("y_prob must hold probabilities: none below 0, and rows that add up to 1.")
    return came, chances


def _places(values: ArrayLike, names: NDArray, what: str) -> NDArray[np.intp]:
    """Return the place of each value among the levels."""
    given = np.asarray(values).ravel()
    found = given[:, None] == names
    lost = np.flatnonzero(~found.any(axis=1))
    if len(lost):
        raise ValueError(f"{what} holds {given.tolist()[lost[0]]!r}, which is none of the levels.")
    return found.argmax(axis=1)
