"""What a search found, as the table that `GridSearchCV` calls cv_results_."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.stats import rankdata

__all__ = ["Outcome", "tabulate"]


class Outcome(NamedTuple):
    """One candidate on one split."""

    scores: Mapping[str, float]
    fit_time: float
    score_time: float
    error: str | None = None


def tabulate(
    candidates: Sequence[Mapping[str, Any]],
    outcomes: Mapping[tuple[int, int], Outcome],
    n_splits: int,
    names: Sequence[str],
) -> dict[str, Any]:
    """Return cv_results_ from the outcomes by (candidate, split); what is not there is NaN."""

    def figures(read: Any) -> NDArray[np.float64]:
        table = np.full((len(candidates), n_splits), np.nan)
        for place, outcome in outcomes.items():
            table[place] = read(outcome)
        return table

    results: dict[str, Any] = {}
    for name in ("fit_time", "score_time"):
        results |= _summary(name, figures(lambda outcome, name=name: getattr(outcome, name)))
    results |= _param_columns(candidates) | {"params": [dict(params) for params in candidates]}
    for name in names:
        scores = figures(lambda outcome, name=name: outcome.scores[name])
        results |= {f"split{k}_test_{name}": scores[:, k] for k in range(n_splits)}
        results |= _summary(f"test_{name}", scores)
        means = results[f"mean_test_{name}"]
        ranks = rankdata(np.where(np.isnan(means), np.inf, -means), method="min")
        results[f"rank_test_{name}"] = ranks.astype(np.int32)
    return results


def _summary(name: str, table: NDArray[np.float64]) -> dict[str, NDArray]:
    return {f"mean_{name}": table.mean(axis=1), f"std_{name}": table.std(axis=1)}


def _param_columns(candidates: Sequence[Mapping[str, Any]]) -> dict[str, np.ma.MaskedArray]:
    """Return a masked column for each parameter: not every candidate sets each of them."""
    columns = {}
    for name in sorted({name for params in candidates for name in params}):
        column = np.ma.MaskedArray(np.empty(len(candidates), object), mask=True)
        for k, params in enumerate(candidates):
            if name in params:
                column[k] = params[name]
        columns[f"param_{name}"] = column
    return columns
