"""Why cells are missing: by chance, or for their values? Held-out cells decide.

They decide by whether they are missing, not by their values: how well these are predicted varies
more from one short chain to the next than it tells of why cells are missing.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
from scipy.special import logsumexp

from declip.cells import Cells
from declip.intervals import Intervals
from declip.solvers.gibbs.chain import Model
from declip.solvers.gibbs.detection import Predicted
from declip.solvers.gibbs.posterior import Posterior
from declip.solvers.gibbs.sampler import Schedule, sample_posterior

__all__ = ["PatternEvidence", "weigh_patterns"]

_HELD_OUT = (0.1, 0.3)  # of the cells, seen or missing: more of a small table
_ENOUGH = 500  # held-out cells
_MOST_CELLS = 60_000  # of a table that is looked at: rows evenly spread over all
_SCHEDULE = {"n_samples": 80, "burn_in": 80, "chains": 1, "max_kept": 40}
_SURE = 2.0  # standard errors by which a pattern must be likelier than chance


@dataclass(frozen=True)
class PatternEvidence:
    """How likely it is which held-out cells are missing, by why cells are missing.

    Attributes
    ----------
    log_likelihood : dict of str to float
        Of "random", "low" and "high": mean over the held-out cells.
    standard_error : dict of str to float
        Of its difference from that of "random".
    n_cells : int
        Held-out cells.
    """

    log_likelihood: dict[str, float]
    standard_error: dict[str, float]
    n_cells: int

    @property
    def best(self) -> str:
        """The likeliest, if it is so by two standard errors; else "random"."""
        word = max(self.log_likelihood, key=lambda w: self.log_likelihood[w])
        return word if self.gain(word) > _SURE * self.standard_error[word] else "random"

    def gain(self, word: str) -> float:
        """Return how much likelier a held-out cell is than by chance, in logs."""
        return self.log_likelihood[word] - self.log_likelihood["random"]

    def __str__(self) -> str:
        word = max(("low", "high"), key=lambda w: self.log_likelihood[w])
        gain, error = self.gain(word), self.standard_error[word]
        return (
            f'missing="auto" took "{self.best}": as "{word}", which of {self.n_cells} held-out '
            f"cells are missing has a log-likelihood of {gain:+.3f} +- {error:.3f} over chance per "
            "cell."
        )


def weigh_patterns(
    intervals: Intervals, model: Model, signs: Sequence[int | None], seed: int, threads: int = 1
) -> PatternEvidence:
    """Fit the model with missing cells taken as low, then as high, and look at held-out cells.

    Parameters
    ----------
    intervals : Intervals
        The table.
    model : Model
        What is fitted, whatever it says of missing cells.
    signs : sequence
        For each column 1, -1 or 0 as of `Model`, or None where that is to be found.
    seed : int
        Of the cells that are held out and of the chains.
    threads : int
        Threads.
    """
    cells = _some_rows(intervals)
    free = np.array([sign is None for sign in signs])
    shown, held = _hold_out(cells, free, seed)
    logs = {"random": held.by_chance}
    for word, sign in (("low", 1), ("high", -1)):
        missing = tuple(sign if s is None else s for s in signs)
        schedule = Schedule(seed=seed, **_SCHEDULE)
        run = sample_posterior(shown, replace(model, missing=missing), schedule, threads=threads)
        logs[word] = held.log_likelihood(run.posterior)
    gains = {word: log - logs["random"] for word, log in logs.items()}
    n = max(len(logs["random"]), 1)
    errors = {word: float(gain.std() / np.sqrt(n)) for word, gain in gains.items()}
    means = {word: float(log.sum() / n) for word, log in logs.items()}
    return PatternEvidence(means, errors, n)


@dataclass(frozen=True, eq=False)
class _HeldOut:
    """Cells of which was not shown whether they are seen; and the share seen of each column."""

    rows: NDArray[np.int32]
    cols: NDArray[np.int32]
    seen: NDArray[np.bool_]
    share_seen: NDArray[np.float64]

    @property
    def by_chance(self) -> NDArray[np.float64]:
        """The log-probability of each to be seen or missing as it is, by its column alone."""
        share = self.share_seen[self.cols]
        return np.where(self.seen, np.log(share), np.log1p(-share))

    def log_likelihood(self, posterior: Posterior) -> NDArray[np.float64]:
        """Return that by the detection curves of a posterior."""
        logs = []
        for sample in posterior.samples:
            if sample.curve is None:
                return self.by_chance
            predicted = Predicted(*sample.at(self.rows, self.cols), self.cols)
            missing = np.minimum(sample.curve.log_missing(predicted), -1e-12)
            logs.append(np.where(self.seen, np.log(-np.expm1(missing)), missing))
        return logsumexp(logs, axis=0) - np.log(len(logs))


def _some_rows(intervals: Intervals) -> Intervals:
    n_rows, n_cols = intervals.shape
    n = max(1, min(n_rows, _MOST_CELLS // n_cols))
    return intervals.take_rows(np.unique(np.linspace(0, n_rows - 1, n).astype(np.intp)))


def _hold_out(
    intervals: Intervals, free: NDArray[np.bool_], seed: int
) -> tuple[Intervals, _HeldOut]:
    """Return the table with some cells of free columns without bounds, and these cells.

    Neither clipped cells nor rows of which nothing is seen are held out.
    """
    lower, upper = intervals.to_bounds()
    exact, missing = lower == upper, np.isnan(lower)
    share = np.clip(_ENOUGH / lower.size, *_HELD_OUT)
    chosen = np.random.default_rng(seed).random(lower.shape) < share
    chosen &= (exact | missing) & free & exact.any(axis=1)[:, None]
    chosen &= (exact & ~chosen).sum(axis=0) > 1  # columns must keep cells of their own
    rows, cols = (a.astype(np.int32) for a in np.nonzero(chosen))
    seen, empty = ((part & ~chosen).sum(axis=0) for part in (exact, missing))
    held = _HeldOut(rows, cols, exact[rows, cols], (seen + 1) / (seen + empty + 2))
    lower[chosen], upper[chosen] = -np.inf, np.inf
    rows, cols = (a.astype(np.int32) for a in np.nonzero(~np.isnan(lower)))
    side = Cells.from_sorted(len(lower), rows, cols, lower[rows, cols], upper[rows, cols])
    return replace(intervals, by_row=side), held
