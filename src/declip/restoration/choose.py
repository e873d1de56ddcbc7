"""The choice of a method: rank and penalty by held-out cells, the method by the reclip test."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from time import monotonic
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import log_ndtr
from scipy.stats import norm
from sklearn.base import clone

from declip.intervals import Intervals
from declip.losses import Hinge, Tobit
from declip.model_selection import EntrySearchCV, EntryShuffleSplit, HeldOutCells
from declip.model_selection.splits import keep_cells
from declip.reclip import LEFT, RESTORED, Reclipped, ReclipResult, Trial, reclip
from declip.restoration.bands import Observation, TailShrinkage, calibrated
from declip.restoration.bounds import Bounds
from declip.restoration.candidates import METHODS, Candidate, PredictiveDistribution, grid, untuned
from declip.restoration.rounding import RoundingGrid
from declip.restoration.tails import TruncatedNormal
from declip.scaling import Scaling

__all__ = ["Choice", "Settings", "choose"]

_HELD_OUT = 0.1
_ENOUGH_HELD_OUT = 1000  # cells, over all splits
_SPENT = 0.9  # share of the budget after which nothing more is begun
_PATIENCE = 2  # larger ranks that may be worse before no more are tried
_LEAST_HIDDEN, _MOST_HIDDEN = 0.1, 0.4  # of the exact cells of a column, by one limit
_SCALE_STEPS = 10
_TWO_LEVELS_UP_TO = 30_000  # observed cells
_PARTS = (0.25, 0.5)  # of the share that the real limits hide: evidence from close to them


@dataclass(frozen=True)
class Settings:
    """What the user asked for."""

    method: str = "auto"
    n_components: int | None = None
    alpha: float | None = None
    scale: str = "columns"
    log: Any = False
    coverage: float = 0.9
    budget: float = 10.0
    seed: int = 0
    n_jobs: int | None = None
    bounds: Bounds = field(default_factory=Bounds)

    @property
    def ratings(self) -> bool:
        """Whether all columns share their units and limits."""
        return self.scale == "table"


@dataclass(frozen=True, eq=False)
class ReclipTask:
    """A table with moved limits in standard units: what a candidate is judged by."""

    cells: Reclipped
    scaling: Scaling
    shown: Intervals
    quantile: float
    steps: RoundingGrid
    real: RoundingGrid

    @classmethod
    def of(
        cls, cells: Reclipped, settings: Settings, hidden: NDArray, real: RoundingGrid
    ) -> ReclipTask:
        """Scale the table, without a look at what is hidden but for the ``real`` steps."""
        steps = RoundingGrid.of(cells.intervals, settings.ratings)
        widened = steps.widen(cells.intervals)
        scaling = Scaling.of(widened, settings.scale, settings.log)
        quantile = 1 - float(np.median(hidden[hidden > 0]))
        return cls(cells, scaling, scaling.apply(widened), round(quantile, 3), steps, real)

    def observe(self, estimator: Any) -> Observation:
        """Fit an estimator, and return the laws that it gives to the hidden cells."""
        cells, forward = self.cells, self.scaling.forward
        centre, spread = PredictiveDistribution(fitted(estimator, self.shown), self.shown).at(
            cells.rows, cells.cols
        )
        ends = self.steps.inside(cells.lower, cells.upper, cells.cols)
        lower, upper, value = (forward(x, cells.cols) for x in (*ends, self._known()))
        tails = TruncatedNormal.of(lower, upper, centre, spread)
        return Observation(cells.cols, tails, value, cells.censored)

    def _known(self) -> NDArray:
        """Return the truth of the hidden cells, or what those clipped before lie beyond."""
        cells = self.cells
        low, high = 0.5 * self.real.at(cells.cols)
        inside = np.where(cells.above, cells.value - high, cells.value + low)
        return np.where(cells.censored, inside, cells.value)

    def trial(self, seen: Observation, pulls: TailShrinkage, bounds: Bounds) -> Trial:
        """Return the restored cells, as values that the table could hold, and those left."""
        reach = bounds.clip(self.cells.real_limit, self.cells.cols)
        cap = self.scaling.forward(reach, self.cells.cols)
        restored = pulls.pull(seen.tails, seen.cols).mean(cap)
        beyond = np.clip(self.scaling.back(restored, seen.cols), self.cells.lower, self.cells.upper)
        estimate = self.cells.within_reach(beyond)
        return Trial(self.quantile, self.cells, {RESTORED: estimate, LEFT: self.cells.limit})


@dataclass
class Choice:
    """The chosen method, and the evidence for it.

    Attributes
    ----------
    candidate : Candidate
        What was chosen.
    candidates : list of Candidate
        All that were looked at.
    pulls : TailShrinkage or None
        Of the columns under the chosen method; None if nothing could be hidden.
    reclip : ReclipResult or None
        The test of the chosen method.
    filled_reach : float
        Half-width of the bands of filled cells, in standard deviations.
    complete : bool
        Whether the budget was enough for all candidates.
    """

    candidate: Candidate
    candidates: list[Candidate]
    pulls: TailShrinkage | None = None
    reclip: ReclipResult | None = None
    filled_reach: float = 1.645
    complete: bool = True


@dataclass
class _Search:
    """The state of a choice: the table in standard units, splits, levels, and the clock."""

    intervals: Intervals
    settings: Settings
    tick: Callable[[str], None]
    began: float = field(default_factory=monotonic)

    def __post_init__(self) -> None:
        settings = self.settings
        steps = RoundingGrid.of(self.intervals, settings.ratings)
        widened = steps.widen(self.intervals)
        self.scaling = Scaling.of(widened, settings.scale, settings.log)
        self.scaled = self.scaling.apply(widened)
        self.splits = _splits(self.scaled, settings.seed)
        self.levels = [
            ReclipTask.of(cells, settings, hidden, steps)
            for cells, hidden in _reclipped(self.intervals, not settings.ratings)
            if (~cells.censored).any()
        ]

    def spent(self) -> float:
        """Return the share of the budget that has gone."""
        return (monotonic() - self.began) / max(self.settings.budget, 1e-9)

    def tuned(self, method: str) -> Candidate:
        """Return the method with the rank and penalty that held-out cells prefer."""
        settings, worse = self.settings, 0
        best: Candidate | None = None
        shape, fixed = self.intervals.shape, (settings.n_components, settings.alpha)
        estimator = untuned(
            method, len(self.intervals), settings.ratings, settings.seed, settings.n_jobs
        )
        grids = list(grid(method, shape, *fixed))
        if not grids:
            return Candidate(method, estimator)
        for parameters in grids:
            if best is not None and self.spent() > _SPENT:
                break
            self.tick(f"{method}: {parameters.get('n_components', [''])[0]} factors")
            search = EntrySearchCV(
                estimator, parameters, cv=self.splits, scoring=_likelihood, refit=False
            ).fit(self.scaled)
            score = -search.best_score_
            if best is None or score < best.scores["held_out"]:
                chosen = clone(estimator).set_params(**search.best_params_)
                best, worse = Candidate(method, chosen, {"held_out": score}), 0
            else:
                worse += 1
            if worse == _PATIENCE:
                break
        return best or Candidate(method, estimator)

    def judge(self, candidate: Candidate) -> list[Observation]:
        """Score a candidate by the reclip test, or without limits by held-out cells."""
        began = monotonic()
        seen = [level.observe(candidate.estimator) for level in self.levels]
        if seen:
            pulls = self.pulls(seen)
            surprise = np.concatenate([pulls.surprise(s) for s in seen])
            candidate.scores["reclip"] = float(surprise.mean())
            candidate.scores["error"] = 1 - self.result(seen, pulls).gain
        elif self.splits:
            errors, spread, known = self.held_out(candidate)
            candidate.scores["held_out"] = _surprise(errors, spread, known)
        candidate.scores["seconds"] = monotonic() - began
        return seen

    def pulls(self, seen: Sequence[Observation]) -> TailShrinkage:
        return TailShrinkage.of(seen, self.intervals.shape[1], self.settings.coverage)

    def result(self, seen: Sequence[Observation], pulls: TailShrinkage) -> ReclipResult:
        pairs = zip(self.levels, seen, strict=True)
        trials = [level.trial(s, pulls, self.settings.bounds) for level, s in pairs]
        spread = Scaling.of(self.intervals, "columns").units.scale
        return ReclipResult(trials, spread, self.intervals.col_labels)

    def held_out(self, candidate: Candidate) -> tuple[NDArray, NDArray, NDArray[np.bool_]]:
        """Return errors and predicted spreads of held-out cells, and which errors are known.

        That of a clipped cell is known to be at least its distance from the limit.
        """
        train, test = self.splits[0]
        shown, cells = keep_cells(self.scaled, train), HeldOutCells.of(self.scaled).take(test)
        laws = PredictiveDistribution(fitted(candidate.estimator, shown), shown)
        centre, spread = laws.at(cells.rows, cells.cols)
        error = Hinge().cells(centre, cells.lower, cells.upper).gradient
        return error, spread, cells.lower == cells.upper


def choose(
    intervals: Intervals, settings: Settings, tick: Callable[[str], None] = lambda _: None
) -> tuple[Choice, Scaling, Intervals]:
    """Choose a method by evidence within a budget of time.

    Returns
    -------
    Choice, Scaling, Intervals
        What was chosen, the units that it works in, and the table in them.
    """
    search = _Search(intervals, settings, tick)
    methods = _methods(intervals, settings)
    candidates: list[Candidate] = []
    observed: dict[int, list[Observation]] = {}
    for method in methods:
        if candidates and search.spent() > _SPENT:
            break
        found = search.tuned(method) if search.splits else _column(settings)
        candidates.append(found)
        if not observed or search.spent() <= _SPENT:
            tick(f"{method}: reclip test")
            try:
                observed[id(found)] = search.judge(found)
            except MemoryError:  # another method may need less
                if not observed and method == methods[-1]:
                    raise
                candidates.remove(found)
        if not search.splits:
            break
    judged = [c for c in candidates if id(c) in observed]
    criterion = "reclip" if search.levels else "held_out"
    best = min(judged, key=lambda c: c.scores.get(criterion, np.inf))
    choice = Choice(best, candidates)
    choice.complete = len(judged) == len(methods) or not search.splits
    if search.levels:
        seen = observed[id(best)]
        choice.pulls = search.pulls(seen)
        choice.reclip = search.result(seen, choice.pulls)
    if search.splits:
        errors, spread, known = search.held_out(best)
        nominal = lambda share: float(norm.ppf((1 + share) / 2))  # noqa: E731
        choice.filled_reach = calibrated(abs(errors) / spread, known, settings.coverage, nominal)
    return choice, search.scaling, search.scaled


def fitted(estimator: Any, shown: Intervals) -> Any:
    """Fit a copy of an estimator, without the warnings that the user could do nothing about."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        return clone(estimator).fit(shown)


def _column(settings: Settings) -> Candidate:
    return Candidate("column", untuned("column", 1, settings.ratings, settings.seed, None))


def _methods(intervals: Intervals, settings: Settings) -> list[str]:
    if settings.method != "auto":
        return [settings.method]
    if min(intervals.shape) < 2:
        return ["column"]
    # without clipped cells the hinge is the same as Tobit
    return [m for m in METHODS if intervals.n_censored or not m.startswith("tobit")]


def _splits(intervals: Intervals, seed: int) -> list[tuple[NDArray, NDArray]]:
    n = int(np.clip(_ENOUGH_HELD_OUT / (_HELD_OUT * len(intervals)), 1, 4))
    try:
        splitter = EntryShuffleSplit(n, test_size=_HELD_OUT, random_state=seed)
        return list(splitter.split(intervals))
    except ValueError:  # too few cells to hold any out
        return []


def _reclipped(intervals: Intervals, by_column: bool) -> list[tuple[Reclipped, NDArray]]:
    """Return tables with limits moved a little inwards, and the shares that they hide.

    What lies just inside a real limit tells most of what lies beyond it, so it comes first. A large
    table has judged cells enough without the second.
    """
    if intervals.n_censored == 0:
        return []
    _, cols, lower, upper = intervals.triplets()
    group = cols if by_column else np.zeros_like(cols)
    n = intervals.shape[1] if by_column else 1
    observed = np.maximum(np.bincount(group, minlength=n), 1)
    clipped = [np.isneginf(lower), np.isposinf(upper)]
    share = np.array([np.bincount(group[c], minlength=n) / observed for c in clipped])
    hidden = np.where(share > 0, np.clip(share, _LEAST_HIDDEN, _MOST_HIDDEN), 0.0)
    sides = {"floors": bool(clipped[0].any()), "ceilings": bool(clipped[1].any())}
    parts = _PARTS if len(intervals) <= _TWO_LEVELS_UP_TO else _PARTS[:1]
    return [
        (reclip(intervals, part * hidden, by_column=by_column, **sides), part * hidden)
        for part in parts
    ]


def _likelihood(estimator: Any, cells: HeldOutCells) -> float:
    """Return the mean log-likelihood of held-out cells under the noise scale that fits best."""
    x = np.asarray(estimator.predict(cells.rows, cells.cols), np.float64)
    error = Hinge().cells(x, cells.lower, cells.upper).gradient
    known = cells.lower == cells.upper
    scale = max(float(np.sqrt(np.mean(error**2))), 1e-9)
    for _ in range(_SCALE_STEPS if not known.all() else 0):
        expected = Tobit(scale).expected_squares(x, cells.lower, cells.upper)
        scale = max(float(np.sqrt(np.where(known, error**2, expected).mean())), 1e-9)
    cell = Tobit(scale).cells(x, cells.lower, cells.upper)
    exact = 0.5 * (error / scale) ** 2 + np.log(scale)
    return -float(np.mean(np.where(known, exact, cell.value / scale**2)))


def _surprise(error: NDArray, spread: NDArray, known: NDArray[np.bool_]) -> float:
    z = error / spread
    return float(np.mean(np.where(known, 0.5 * z**2 + np.log(spread), -log_ndtr(-abs(z)))))
