"""Summaries of columns that count what was censored, beside the usual estimates."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from importlib.util import find_spec
from itertools import compress, pairwise
from typing import Any

import narwhals.stable.v2 as nw
import numpy as np
from numpy.typing import NDArray

from declip.extras import MissingExtra
from declip.inference.pooling import Pooled, RubinSums
from declip.inference.shares import CellsAbove
from declip.inference.statistics import SHARE_ABOVE, Statistic
from declip.inference.univariate import ESTIMATORS
from declip.validation import name_some

__all__ = [
    "Questions",
    "Segments",
    "Summary",
    "as_frame",
    "check_criteria",
    "library_of_frames",
    "notes_of",
    "summarise",
]

_FEWEST = 3  # values that have a spread
_FAR = 1000.0  # times beyond all values: a criterion in other units
_NAMED = 5  # columns that a message names
_SHOWN = 40  # lines of the printed page


@dataclass(frozen=True, eq=False, repr=False)
class Summary:
    """Statistics of the columns of a restored table. Returned by `Restoration.summary`.

    Attributes
    ----------
    table : frame
        A line for each column, group and statistic, in the kind of the input (of an array in
        pandas or polars, whichever there is). "estimate", "lower" and "upper" count what was
        censored; "missing_information" is the share of the variance that this makes; "n" are the
        values, of which shares were "censored" and "missing". "kaplan_meier", "ros" (robust
        regression on order statistics), "max_likelihood" (normal, or lognormal for columns that
        were restored in logarithms) and "half_limit" are what is usual instead, each column alone.
    confidence : float
        Of the intervals.
    n_imputations : int
        Tables that were drawn.
    notes : list of str
        What the user should know.

    Examples
    --------
    >>> import numpy as np
    >>> import declip
    >>> rng = np.random.default_rng(0)
    >>> truth = rng.normal(size=(80, 1)) + 0.5 * rng.normal(size=(80, 4))
    >>> r = declip.restore(np.minimum(truth, 1), ceiling=1, method="normal")
    >>> found = r.summary(["mean"], n=20)
    >>> low, high = np.array(found.table["lower"]), np.array(found.table["upper"])
    >>> bool(np.all((low < truth.mean(axis=0)) & (truth.mean(axis=0) < high)))
    True
    """

    table: Any
    confidence: float
    n_imputations: int
    notes: list[str] = field(default_factory=list)

    def plot(self, statistic: str | None = None, ax: Any = None) -> Any:
        """Draw the intervals of a statistic, with the usual estimates beside them.

        Parameters
        ----------
        statistic : str, optional
            Which of those that were asked for; the first by default.
        ax : matplotlib axes, optional
            Where; by default on a new figure.
        """
        from declip.inference.picture import draw_summary

        return draw_summary(self, statistic, ax)

    def as_columns(self) -> dict[str, list[Any]]:
        """Return the table as lists, one for each of its columns."""
        frame = nw.from_native(self.table, eager_only=True)
        return {name: frame[name].to_list() for name in frame.columns}

    def __str__(self) -> str:
        columns = self.as_columns()
        lines = [list(columns), *([_shown(cell) for cell in line] for line in _lines(columns))]
        width = [max(len(line[j]) for line in lines[: _SHOWN + 1]) for j in range(len(columns))]
        left = [isinstance(cells[0], str) if cells else True for cells in columns.values()]
        text = [
            "  ".join(
                cell.ljust(w) if is_left else cell.rjust(w)
                for cell, w, is_left in zip(line, width, left, strict=True)
            ).rstrip()
            for line in lines[: _SHOWN + 1]
        ]
        more = len(lines) - len(text)
        return "\n".join(
            [
                f"Intervals of {self.confidence:.0%} from {self.n_imputations} imputations",
                *text,
                *([f"and {more} lines more"] if more else []),
                *(f"- {note}" for note in self.notes),
            ]
        )

    def __repr__(self) -> str:
        n = len(next(iter(self.as_columns().values())))
        return f"Summary({n} lines, intervals of {self.confidence:.0%})"

    def _repr_html_(self) -> str | None:
        shown = getattr(self.table, "_repr_html_", None)
        return shown() if callable(shown) else None


@dataclass(frozen=True, eq=False)
class Segments:
    """The cells of a table, of which those of one column and one group of rows belong together.

    Attributes
    ----------
    order : ndarray of int
        The cells that have a value, segment after segment.
    ptr : ndarray of int
        Where each segment begins.
    columns, groups : list
        The labels of each segment; groups are None without groups.
    """

    order: NDArray[np.intp]
    ptr: NDArray[np.intp]
    col_of: NDArray[np.intp]
    columns: list[Any]
    groups: list[Any] | None

    @classmethod
    def of(
        cls,
        at: tuple[NDArray, NDArray],
        there: NDArray[np.bool_],
        names: Sequence[Any],
        labels: Sequence[Any] | None,
    ) -> Segments:
        """Put the cells of each column and group together."""
        rows, cols = at
        kinds, group = _kinds(labels, rows)
        segment = group * len(names) + cols
        order = np.flatnonzero(there)
        order = order[np.argsort(segment[order], kind="stable")]
        count = np.bincount(segment[order], minlength=len(kinds) * len(names))
        of_col = np.tile(np.arange(len(names)), len(kinds))
        return cls(
            order,
            np.concatenate([[0], np.cumsum(count)]),
            of_col,
            [names[j] for j in of_col],
            None if labels is None else [kind for kind in kinds for _ in names],
        )

    def __len__(self) -> int:
        """Return the number of segments."""
        return len(self.columns)

    @property
    def n(self) -> NDArray[np.intp]:
        """Values of each segment."""
        return np.diff(self.ptr)

    def cells(self, segment: int) -> NDArray[np.intp]:
        """Return the cells of a segment."""
        return self.order[self.ptr[segment] : self.ptr[segment + 1]]

    def sorted_values(self, values: NDArray) -> Iterable[NDArray[np.float64]]:
        """Yield the values of each segment in order."""
        x = values[self.order]
        for first, last in pairwise(self.ptr):
            yield np.sort(x[first:last])

    def shares(self, marked: NDArray[np.bool_]) -> NDArray[np.float64]:
        """Return the share of marked cells in each segment."""
        count = np.bincount(
            np.repeat(np.arange(len(self)), self.n), marked[self.order], minlength=len(self)
        )
        return count / np.maximum(self.n, 1)


@dataclass(frozen=True, eq=False)
class Questions:
    """What is asked of each column.

    Attributes
    ----------
    names : list of str
        Statistics.
    log : ndarray of bool of shape (n_cols,)
        Columns that were restored in logarithms.
    criteria : ndarray of shape (n_cols,) or None
        What shares lie above; NaN where nothing is asked.
    confidence : float
        Of the intervals.
    """

    names: list[str]
    log: NDArray[np.bool_]
    criteria: NDArray[np.float64] | None
    confidence: float

    @classmethod
    def of(
        cls,
        names: list[str],
        log: NDArray[np.bool_],
        criterion: Any,
        columns: Sequence[Any],
        confidence: float,
    ) -> Questions:
        """Read what was asked for."""
        if isinstance(confidence, bool) or not (0 < confidence < 1):
            raise ValueError(f"confidence must lie between 0 and 1; got {confidence!r}.")
        criteria = None if criterion is None else _criteria(criterion, columns)
        if criteria is None and not names:
            raise ValueError("Nothing is asked: name a statistic, such as 'mean', or a criterion.")
        return cls(
            names + ([SHARE_ABOVE] if criteria is not None else []), log, criteria, confidence
        )

    def about(self, column: int) -> list[Statistic]:
        """Return the statistics of a column."""
        criterion = np.nan if self.criteria is None else float(self.criteria[column])
        return [Statistic(name, bool(self.log[column]), criterion) for name in self.names]


def summarise(
    tables: Iterable[NDArray], segments: Segments, asked: Questions, known: NDArray
) -> dict[str, Any]:
    """Return the columns of a summary, from tables of which one at a time is in memory.

    Parameters
    ----------
    tables : iterable of ndarray of shape (1, n_cells) or (2, n_cells)
        Completed tables; in a second line the same with what lies beyond limits settled.
    segments : Segments
        Which cells belong together.
    asked : Questions
        What is asked for.
    known : ndarray of shape (2, n_cells)
        Bounds of each cell, NaN for missing ones.
    """
    sums, above = RubinSums(), _above(asked, segments, known.shape[1])
    statistics = [asked.about(column) for column in segments.col_of]
    for lines in tables:
        found = [
            [s.of(x) for s in wanted] if _enough_known(x) else [(np.nan, np.nan)] * len(wanted)
            for x, wanted in zip(segments.sorted_values(lines[0]), statistics, strict=True)
        ]
        estimate, variance = np.moveaxis(np.array(found).reshape(len(segments), -1, 2), -1, 0)
        sums.add(estimate, variance)
        above.add(lines)
    pooled = sums.pooled(np.maximum(segments.n - 1.0, 1.0)[:, None])
    parts = [
        _estimates(pooled, s, statistics[s], segments, asked, above) for s in range(len(segments))
    ]
    usual = [_usual(known[:, segments.cells(s)], statistics[s]) for s in range(len(segments))]
    shares = {
        "n": segments.n,
        "censored": segments.shares(known[0] < known[1]),
        "missing": segments.shares(np.isnan(known[0])),
    }
    return _long(segments, asked, np.array(parts), np.array(usual), shares)


def _above(asked: Questions, segments: Segments, n_cells: int) -> CellsAbove:
    """Return what counts cells above the criteria of their columns; none are without criteria."""
    criterion = np.full(n_cells, np.inf)
    if asked.criteria is not None:
        of_segment = asked.criteria[segments.col_of]
        criterion[segments.order] = np.repeat(of_segment, segments.n)
    return CellsAbove(criterion, segments.shares)


def _enough_known(x: NDArray) -> bool:
    """Tell whether sorted values are enough, and none of them is unknown."""
    return len(x) >= _FEWEST and not np.isnan(x[-1])


def _estimates(
    pooled: Pooled,
    segment: int,
    wanted: list[Statistic],
    segments: Segments,
    asked: Questions,
    above: CellsAbove,
) -> list[tuple[float, ...]]:
    """Return estimate, lower, upper and missing information of each statistic of a segment."""
    found = []
    for k, statistic in enumerate(wanted):
        one = Pooled(*(np.asarray(part)[segment, k] for part in pooled))
        if statistic.name == SHARE_ABOVE:
            one = above.pooled(one, segment, segments.cells(segment))
        ends = statistic.interval(one, segments.n[segment], asked.confidence)
        found.append((*(float(end) for end in ends), float(one.missing_information)))
    return found


def _usual(known: NDArray, wanted: list[Statistic]) -> list[list[float]]:
    """Return what estimators of one column alone say, from its observed cells."""
    lower, upper = known[:, ~np.isnan(known[0])]
    if len(lower) < _FEWEST:
        return [[np.nan] * len(ESTIMATORS)] * len(wanted)
    log = wanted[0].log
    fitted = [estimator(lower, upper, log) for estimator in ESTIMATORS.values()]
    return [[np.nan if one is None else s.exact(one) for one in fitted] for s in wanted]


def _long(
    segments: Segments,
    asked: Questions,
    parts: NDArray,
    usual: NDArray,
    shares: Mapping[str, NDArray],
) -> dict[str, Any]:
    """Return a line for each segment and statistic."""
    k = len(asked.names)
    columns: dict[str, Any] = {"column": [str(name) for name in segments.columns for _ in range(k)]}
    if segments.groups is not None:
        columns["group"] = [group for group in segments.groups for _ in range(k)]
    columns["statistic"] = asked.names * len(segments)
    if asked.criteria is not None:
        of_segment = asked.criteria[segments.col_of]
        is_share = np.array(asked.names) == SHARE_ABOVE
        columns["criterion"] = np.where(is_share, of_segment[:, None], np.nan).ravel()
    names = ("estimate", "lower", "upper", "missing_information")
    columns |= {name: parts[..., i].ravel() for i, name in enumerate(names)}
    columns |= {name: np.repeat(share, k) for name, share in shares.items()}
    columns |= {name: usual[..., i].ravel() for i, name in enumerate(ESTIMATORS)}
    asked_for = [
        name != SHARE_ABOVE or not np.isnan(columns["criterion"][i])
        for i, name in enumerate(columns["statistic"])
    ]
    return {name: list(compress(cells, asked_for)) for name, cells in columns.items()}


def as_frame(columns: Mapping[str, Any], like: Any) -> Any:
    """Return columns as a frame of the kind of a table."""
    lists = {name: list(cells) for name, cells in columns.items()}
    return nw.from_dict(lists, backend=library_of_frames(like)).to_native()


def library_of_frames(like: Any) -> Any:
    """Return the library of a frame or, of another table, one that is installed."""
    frame = nw.from_native(like, eager_only=True, pass_through=True)
    if isinstance(frame, nw.DataFrame):
        return nw.get_native_namespace(frame)
    found = next((name for name in ("pandas", "polars") if find_spec(name)), None)
    if found is None:
        raise MissingExtra("this needs pandas or polars: pip install 'declip[files]'")
    return found


def notes_of(segments: Segments, guessed: NDArray[np.bool_]) -> list[str]:
    """Return what cannot be estimated, and why."""
    notes = []
    few = sorted({segments.columns[s] for s in np.flatnonzero(segments.n < _FEWEST)}, key=str)
    if few:
        notes.append(f"Nothing is estimated from fewer than {_FEWEST} values: {_listed(few)}.")
    lost = sorted({segments.columns[s] for s in np.flatnonzero(guessed)}, key=str)
    if lost:
        notes.append(
            f"{_listed(lost)}: cells beyond limits are not determined by the data, so that only "
            "the usual estimates are given."
        )
    return notes


def check_criteria(asked: Questions, known: NDArray, cols: NDArray, names: Sequence[Any]) -> None:
    """Refuse criteria that lie so far from a column that they are in other units."""
    if asked.criteria is None:
        return
    size = np.where(np.isfinite(known), abs(known), 0.0).max(axis=0)
    largest = np.zeros(len(names))
    np.maximum.at(largest, cols, size)
    criterion = abs(asked.criteria)
    far = (criterion > _FAR * largest) & (largest > 0)
    if far.any():
        j = int(np.flatnonzero(far)[0])
        raise ValueError(
            f"criterion {asked.criteria[j]:g} is more than {_FAR:g} times all values of column "
            f"{names[j]!r} (up to {largest[j]:g}): give it in the units of the column."
        )


def _criteria(criterion: Any, columns: Sequence[Any]) -> NDArray[np.float64]:
    """Return the criterion of each column, from one for all, one for each, or by name."""
    if isinstance(criterion, Mapping):
        unknown = [name for name in criterion if name not in columns]
        if unknown:
            raise ValueError(
                f"criterion names column {unknown[0]!r}, which the table does not have (it has "
                f"{', '.join(map(repr, columns[:_NAMED]))}{', ...' * (len(columns) > _NAMED)})."
            )
        found = {name: _number(value) for name, value in criterion.items()}
        return np.array([found.get(name, np.nan) for name in columns])
    if isinstance(criterion, str) or np.ndim(criterion) == 0:
        return np.full(len(columns), _number(criterion))
    if len(criterion) != len(columns):
        raise ValueError(
            f"criterion must be a number, one for each of the {len(columns)} columns, or a mapping "
            f"from column to number; got {len(criterion)}."
        )
    return np.array([np.nan if value is None else _number(value) for value in criterion])


def _number(value: Any) -> float:
    try:
        number = float(value)
    except (TypeError, ValueError):
        number = np.nan
    if np.isnan(number):
        raise ValueError(f"criterion must be a number in the units of its column; got {value!r}.")
    return number


def _kinds(labels: Sequence[Any] | None, rows: NDArray) -> tuple[list[Any], NDArray[np.intp]]:
    """Return the groups in the order in which they come, and that of each cell."""
    if labels is None:
        return [None], np.zeros(len(rows), np.intp)
    kinds = list(dict.fromkeys(labels))
    number = {kind: k for k, kind in enumerate(kinds)}
    return kinds, np.array([number[label] for label in labels], np.intp)[rows]


def _listed(names: Sequence[Any]) -> str:
    return name_some("column", np.arange(len(names)), np.array(names, dtype=object))


def _lines(columns: Mapping[str, list[Any]]) -> Iterable[tuple[Any, ...]]:
    return zip(*columns.values(), strict=True)


def _shown(cell: Any) -> str:
    if isinstance(cell, float):
        return "" if np.isnan(cell) else f"{cell:.4g}"
    return "" if cell is None else str(cell)
