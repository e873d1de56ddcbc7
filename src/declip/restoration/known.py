"""What else is known of a table, in a restoration: what it is worth, and weights of cells."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from declip.estimators.side import Known
from declip.intervals import Intervals
from declip.restoration.candidates import Candidate
from declip.restoration.settings import KNOWN, Settings
from declip.validation import cell_numbers, check_memory

__all__ = ["known_lines", "relative_weights"]

_WORDS = {"held_out": "a cell that was held out", "reclip": "one hidden behind a limit"}


def relative_weights(intervals: Intervals, known: Known) -> NDArray[np.float64] | None:
    """Return the weight of each cell as a table: as given, or by errors within each column."""
    if known.weights is None and known.errors is None:
        return None
    check_memory(intervals.shape, np.float64, "weights", "restore fewer rows at a time.")
    rows, cols, *_ = intervals.triplets()
    weights = np.ones(intervals.shape)
    if known.weights is not None:
        weights[rows, cols] = cell_numbers(known.weights, intervals, "weights")
        return weights
    precision = cell_numbers(known.errors, intervals, "errors") ** -2.0
    n = intervals.shape[1]
    count = np.maximum(np.bincount(cols, minlength=n), 1)
    mean = np.bincount(cols, precision, n) / count
    weights[rows, cols] = precision / mean[cols]
    return weights


def known_lines(candidates: Sequence[Candidate], settings: Settings) -> Iterator[str]:
    """Say what is known besides the cells, and by how much it helps."""
    if not settings.known:
        return
    names, by_method = " and ".join(settings.known), {c.method: c for c in candidates}
    with_it, without = by_method.get(KNOWN), by_method.get("bayes")
    if with_it is None or without is None:
        yield f"{names}: used by method {KNOWN} alone, and not judged against doing without."
        return
    times = [
        f"{what} is {np.exp(without.scores[name] - with_it.scores[name]):.2f} times as likely"
        for name, what in _WORDS.items()
        if name in with_it.scores and name in without.scores
    ]
    weight = with_it.scores["weight"]
    yield (
        f"With {names}, {', '.join(times)}, as the same method has it without: "
        f"it counts for {weight:.0%} of what is restored."
    )
