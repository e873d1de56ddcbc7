"""Splits of the observed cells of a table into training and held-out cells."""

from __future__ import annotations

from collections.abc import Iterator
from numbers import Integral, Real
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import check_random_state, check_scalar

from declip.intervals import Intervals, as_intervals

__all__ = ["EntryKFold", "EntryShuffleSplit", "keep_cells"]

Split = tuple[NDArray[np.intp], NDArray[np.intp]]
_KEPT = -1  # the part of a cell that is never held out


class _EntrySplitter:
    """What the splitters share.

    Cells are numbered as `Intervals.triplets` lists them. They are dealt into parts, the exact and
    the censored cells separately, so that each part has its share of both; each is held out once.
    """

    n_splits: int
    random_state: Any

    def _deal(self, n_cells: int, rng: np.random.RandomState) -> Iterator[NDArray[np.int32]]:
        """Yield the part of each of some cells, from 0 on or `_KEPT`."""
        raise NotImplementedError

    def _n_parts(self) -> int:
        """Return the number of parts of a deal."""
        return 1

    def split(self, X: Any, y: Any = None, groups: Any = None) -> Iterator[Split]:
        """Yield training and held-out cells.

        Parameters
        ----------
        X : Intervals, or a table
            The observed cells; a table has no limits, so that all of its cells count as exact.
        y, groups : ignored
            For the conventions of scikit-learn.

        Yields
        ------
        train, test : ndarray of int
            Positions in ``X.triplets()``, sorted. Every row and every column that has an observed
            cell has one in ``train``, and an exact one if it has any.
        """
        intervals = as_intervals(X)
        rng = check_random_state(self.random_state)
        deals = zip(
            self._deal(intervals.n_exact, rng), self._deal(intervals.n_censored, rng), strict=True
        )
        for exact, censored in deals:
            parts = _spare(intervals, np.concatenate([exact, censored]))
            for k in range(self._n_parts()):
                held_out = parts == k
                if not held_out.any():
                    raise ValueError(_too_few(intervals, self))
                yield np.flatnonzero(~held_out), np.flatnonzero(held_out)

    def get_n_splits(self, X: Any = None, y: Any = None, groups: Any = None) -> int:
        """Return the number of splits."""
        return self.n_splits

    def __repr__(self) -> str:
        params = ", ".join(f"{name}={value!r}" for name, value in vars(self).items())
        return f"{type(self).__name__}({params})"


class EntryShuffleSplit(_EntrySplitter):
    """Hold out a random share of the cells, several times over.

    The exact and the clipped cells are drawn from separately, the same share of each. A row or a
    column is never emptied: it keeps a cell to train on, and an exact one if it has any.

    Parameters
    ----------
    n_splits : int, default=1
        Number of splits.
    test_size : float, default=0.1
        Share of the cells to hold out.
    random_state : int, RandomState instance or None, default=None
        Seed; with an int every call of `split` yields the same.

    Examples
    --------
    >>> import numpy as np
    >>> from declip import EntryShuffleSplit, Intervals
    >>> cells = Intervals.from_table(np.minimum(np.arange(40.0).reshape(8, 5), 30), ceiling=30)
    >>> [(train, test)] = EntryShuffleSplit(test_size=0.2, random_state=0).split(cells)
    >>> len(train), len(test), int((test >= cells.n_exact).sum())  # of the 10 clipped ones
    (32, 8, 2)
    """

    def __init__(self, n_splits: int = 1, *, test_size: float = 0.1, random_state: Any = None):
        self.n_splits = check_scalar(n_splits, "n_splits", Integral, min_val=1)
        self.test_size = check_scalar(
            test_size, "test_size", Real, min_val=0, max_val=1, include_boundaries="neither"
        )
        self.random_state = random_state

    def _deal(self, n_cells: int, rng: np.random.RandomState) -> Iterator[NDArray[np.int32]]:
        for _ in range(self.n_splits):
            parts = np.full(n_cells, _KEPT, np.int32)
            parts[rng.permutation(n_cells)[: round(self.test_size * n_cells)]] = 0
            yield parts


class EntryKFold(_EntrySplitter):
    """Deal the cells into folds at random, and hold out each fold once.

    The exact and the clipped cells are dealt separately, so that each fold has its share of both. A
    row or a column is never emptied: where all of its (exact) cells were dealt to the same fold,
    one of them is held out in none.

    Parameters
    ----------
    n_splits : int, default=5
        Number of folds, from 2 on.
    random_state : int, RandomState instance or None, default=None
        Seed; with an int every call of `split` yields the same.

    Examples
    --------
    >>> import numpy as np
    >>> from declip import EntryKFold, Intervals
    >>> cells = Intervals.from_table(np.minimum(np.arange(40.0).reshape(8, 5), 30), ceiling=30)
    >>> [len(test) for _, test in EntryKFold(4, random_state=0).split(cells)]
    [11, 11, 9, 9]
    """

    def __init__(self, n_splits: int = 5, *, random_state: Any = None):
        self.n_splits = check_scalar(n_splits, "n_splits", Integral, min_val=2)
        self.random_state = random_state

    def _deal(self, n_cells: int, rng: np.random.RandomState) -> Iterator[NDArray[np.int32]]:
        yield rng.permutation((np.arange(n_cells) % self.n_splits).astype(np.int32))

    def _n_parts(self) -> int:
        return self.n_splits


def keep_cells(intervals: Intervals, positions: NDArray[np.intp]) -> Intervals:
    """Return the table with the cells at some positions of `Intervals.triplets` alone."""
    kept = np.zeros(len(intervals), bool)
    kept[positions] = True
    return intervals.keep(kept[: intervals.n_exact], kept[intervals.n_exact :])


def _too_few(intervals: Intervals, splitter: _EntrySplitter) -> str:
    return (
        f"{splitter!r} leaves a split without a cell to hold out: of the {len(intervals)} observed "
        "cells, each row and each column keeps one to train on. Hold out more, or in fewer folds."
    )


def _spare(intervals: Intervals, parts: NDArray[np.int32]) -> NDArray[np.int32]:
    """Take one cell out of its part wherever a row or column would be emptied with the part."""
    rows, cols, _, _ = intervals.triplets()
    exact = slice(intervals.n_exact)
    for where in (exact, slice(None)):
        for line, size in zip((rows, cols), intervals.shape, strict=True):
            _spare_lines(line[where], size, parts[where])
    return parts


def _spare_lines(line: NDArray[np.int32], size: int, parts: NDArray[np.int32]) -> None:
    """Take one cell out, in place, of every line whose cells are all in the same part."""
    first, last = np.full(size, np.iinfo(np.int32).max, np.int32), np.full(size, _KEPT, np.int32)
    np.minimum.at(first, line, parts)
    np.maximum.at(last, line, parts)
    some = np.zeros(size, np.intp)
    some[line] = np.arange(len(line))
    parts[some[(first == last) & (last > _KEPT)]] = _KEPT
