"""Candidates fitted one after the other, from the strongest penalty to the weakest."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from numbers import Real
from time import perf_counter
from typing import Any

import numpy as np
from joblib import hash as content_hash
from sklearn.base import clone

from declip.intervals import Intervals
from declip.model_selection.results import Outcome
from declip.model_selection.scoring import HeldOutCells, Scorer

__all__ = ["Params", "Path", "paths_of", "quiet", "without_limits"]

Params = Mapping[str, Any]


class Path:
    """Candidates that differ in ``alpha`` alone, each fitted from the solution of the last.

    Parameters
    ----------
    estimator : estimator
        What they are candidates of.
    members : dict from int to params
        Number and parameters of each, from the largest alpha to the smallest.
    warm : bool
        Whether to set ``warm_start`` on the way.
    """

    def __init__(self, estimator: Any, members: dict[int, Params], warm: bool) -> None:
        self.estimator, self.members, self.warm = estimator, members, warm

    def fit(self, intervals: Intervals, last: int) -> Any:
        """Return one of the candidates, fitted by way of those before it."""
        model = self._model()
        numbers = list(self.members)
        with quiet():
            for k in numbers[: numbers.index(last)]:
                _set(model, self.members[k]).fit(intervals)
        _set(model, self.members[last]).fit(intervals)
        return model.set_params(warm_start=self.estimator.warm_start) if self.warm else model

    def score(
        self,
        shown: Intervals,
        hidden: HeldOutCells,
        scorers: Mapping[str, Scorer],
        error_score: Any,
    ) -> dict[int, Outcome]:
        """Fit every candidate to the cells shown, and score it on the hidden ones."""
        model = self._model()
        return {
            k: _outcome(_set(model, params), shown, hidden, scorers, error_score)
            for k, params in self.members.items()
        }

    def _model(self) -> Any:
        model = clone(self.estimator)
        return model.set_params(warm_start=True) if self.warm else model


def paths_of(estimator: Any, candidates: Sequence[Params], warm_start: bool) -> list[Path]:
    """Return the candidates as paths over alpha, or one by one if there is no warm start."""
    if not (warm_start and {"alpha", "warm_start"} <= estimator.get_params(deep=False).keys()):
        return [Path(estimator, {k: params}, False) for k, params in enumerate(candidates)]
    groups: dict[str, dict[int, Params]] = {}
    for k in sorted(range(len(candidates)), key=lambda k: _falling(candidates[k].get("alpha", 0))):
        rest = {name: value for name, value in candidates[k].items() if name != "alpha"}
        groups.setdefault(content_hash(rest), {})[k] = candidates[k]
    return [Path(estimator, members, True) for members in groups.values()]


def _falling(alpha: Any) -> float:
    """Return what strengths are sorted by: the largest first, what is no number before all."""
    return -float(alpha) if isinstance(alpha, Real) else -np.inf


def without_limits(estimator: Any) -> Any:
    """Return a copy of an estimator that leaves the limits to an `Intervals`."""
    known = estimator.get_params(deep=False)
    return clone(estimator).set_params(**dict.fromkeys({"ceiling", "floor"} & known.keys()))


@contextmanager
def quiet() -> Iterator[None]:
    """Silence what fits on the way warn of: the last one warns of it too."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        yield


def _set(model: Any, params: Params) -> Any:
    return model.set_params(**clone(dict(params), safe=False))


def _outcome(
    model: Any,
    shown: Intervals,
    hidden: HeldOutCells,
    scorers: Mapping[str, Scorer],
    error_score: Any,
) -> Outcome:
    began = perf_counter()
    try:
        model.fit(shown)
    except Exception as error:
        if error_score == "raise":
            raise
        failed = f"{type(error).__name__}: {error}"
        return Outcome(dict.fromkeys(scorers, error_score), perf_counter() - began, 0.0, failed)
    fitted = perf_counter()
    scores = {name: float(scorer(model, hidden)) for name, scorer in scorers.items()}
    return Outcome(scores, fitted - began, perf_counter() - fitted)
