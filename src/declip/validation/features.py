"""What is known of rows or columns besides their cells: numbers, categories and groups."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import narwhals.stable.v2 as nw
import numpy as np
from numpy.typing import NDArray

from declip.containers import label_array
from declip.validation.coverage import name_some
from declip.validation.messages import warn_user
from declip.validation.triplets import axis_name

__all__ = ["FeatureEncoder", "GroupLabels", "LevelFeature", "NumberFeature", "read_features"]

_MOST_NUMBERS = 2000  # columns of the encoded features: their Gram matrix is factored
_MISSING = "(missing)"  # the level of a category that is not given

Columns = dict[str, NDArray[Any]]


@dataclass(frozen=True)
class NumberFeature:
    """A number for each row: standardised; where it is missing its mean, and a mark if some were.

    Attributes
    ----------
    name : str
        Of the feature.
    centre, spread : float
        Mean and standard deviation.
    missing : float
        Share of rows of the fit in which it was missing.
    """

    name: str
    centre: float
    spread: float
    missing: float

    @classmethod
    def of(cls, name: str, values: NDArray[np.float64]) -> NumberFeature:
        """Find centre and spread of what is there."""
        there = values[~np.isnan(values)]
        centre = float(there.mean()) if there.size else 0.0
        spread = float(there.std()) if there.size else 0.0
        return cls(name, centre, spread or 1.0, 1 - there.size / max(values.size, 1))

    def encoded(self, given: NDArray[Any]) -> NDArray[np.float64]:
        """Return one column, or two."""
        values = _numbers(self.name, given)
        gone = np.isnan(values)
        found = [np.where(gone, 0.0, (values - self.centre) / self.spread)]
        return np.column_stack([*found, *([gone - self.missing] if self.missing else [])])


@dataclass(frozen=True)
class LevelFeature:
    """A category for each row: a column for each level, less its share; missing is a level.

    Attributes
    ----------
    name : str
        Of the feature.
    levels : tuple of str
        Its levels, sorted.
    shares : tuple of float
        The share of rows of the fit that have each.
    """

    name: str
    levels: tuple[str, ...]
    shares: tuple[float, ...]

    @classmethod
    def of(cls, name: str, given: NDArray[Any]) -> LevelFeature:
        """Find the levels."""
        levels, counts = np.unique(_levels(given), return_counts=True)
        return cls(name, tuple(levels.tolist()), tuple((counts / max(len(given), 1)).tolist()))

    def encoded(self, given: NDArray[Any]) -> NDArray[np.float64]:
        """Return a column for each level; for a level that was not seen, zeros and a warning."""
        found = _levels(given)
        new = sorted({*found.tolist()} - {*self.levels} - {_MISSING})
        if new:
            warn_user(
                f"feature {self.name!r} has the level {new[0]!r}, which the fit did not see: such "
                "rows count as the average."
            )
        one_hot = (found[:, None] == np.array(self.levels)).astype(np.float64)
        return np.where(one_hot.any(axis=1)[:, None], one_hot - self.shares, 0.0)


@dataclass(frozen=True)
class FeatureEncoder:
    """How features become numbers, as at the time of the fit.

    Attributes
    ----------
    what : str
        The argument that they came by.
    parts : tuple of NumberFeature or LevelFeature
        One for each feature.
    """

    what: str
    parts: tuple[NumberFeature | LevelFeature, ...]

    @classmethod
    def of(cls, what: str, columns: Columns) -> FeatureEncoder:
        """Learn what each feature is like; say which have gaps."""
        parts: list[NumberFeature | LevelFeature] = []
        for name, given in columns.items():
            if given.dtype.kind in "iufb":
                parts.append(NumberFeature.of(name, _numbers(name, given)))
            else:
                parts.append(LevelFeature.of(name, given))
        gaps = [p.name for p in parts if _has_gaps(p)]
        if gaps:
            warn_user(
                f"{what}: {', '.join(map(repr, gaps))} has missing values: a missing number counts "
                "as the mean with a mark of its own, a missing category as a level."
            )
        found = cls(what, tuple(parts))
        if found.width > _MOST_NUMBERS:
            widest = max(parts, key=_width)
            raise ValueError(
                f"{what} would become {found.width} numbers a row, {_width(widest)} of them for "
                f"{widest.name!r}: leave out names and ids, or join rare levels."
            )
        return found

    @property
    def width(self) -> int:
        """Numbers for each row."""
        return sum(_width(part) for part in self.parts)

    def encode(self, columns: Columns) -> NDArray[np.float64]:
        """Return the numbers of rows, of shape (n_rows, width)."""
        for part in self.parts:
            if part.name not in columns:
                raise ValueError(f"{self.what} has no {part.name!r}, which the fit had.")
        made = [part.encoded(columns[part.name]) for part in self.parts]
        return np.ascontiguousarray(np.column_stack(made))


@dataclass(frozen=True)
class GroupLabels:
    """The groups of rows at the time of the fit; a row may be of none."""

    levels: tuple[str, ...]

    @classmethod
    def of(cls, given: NDArray[Any]) -> GroupLabels:
        """Find the groups."""
        return cls(tuple(sorted({*_levels(given).tolist()} - {_MISSING})))

    def index(self, given: NDArray[Any]) -> NDArray[np.int32]:
        """Return the number of the group of each row; -1 if it has none, or one not seen."""
        number = {level: g for g, level in enumerate(self.levels)}
        found = _levels(given)
        new = sorted({*found.tolist()} - {*self.levels} - {_MISSING})
        if new:
            warn_user(f"group {new[0]!r} was not in the fit: its rows have no offset of a group.")
        return np.array([number.get(level, -1) for level in found], np.int32)


def read_features(given: Any, what: str, axis: str, labels: Any, size: int) -> Columns:
    """Return features by name, one value for each row (or column) of a table.

    Parameters
    ----------
    given : frame, Series, mapping, or array-like of shape (size,) or (size, n_features)
        Numbers and categories. With an index they are aligned by labels.
    what : str
        The argument that they came by, for messages.
    axis : {"row", "column"}
        What they are of.
    labels : ndarray or None
        Labels of the rows (or columns) of the table.
    size : int
        How many there are.
    """
    columns, index = _columns_of(given, what)
    if not columns:
        raise ValueError(f"{what} has no feature.")
    lengths = {name: len(values) for name, values in columns.items()}
    if len(set(lengths.values())) > 1:
        raise ValueError(f"{what} has features of different lengths: {lengths}.")
    length = next(iter(lengths.values()))
    order = _aligned(index, labels, what, axis)
    if order is None and length != size:
        raise ValueError(
            f"{what} is for {length} {axis}s and the table has {size}: give one for each, in its "
            "order, or a frame with its labels as index."
        )
    return {n: v if order is None else v[order] for n, v in columns.items()}


def _columns_of(given: Any, what: str) -> tuple[Columns, NDArray[Any] | None]:
    """Return features by name, and their labels."""
    frame = nw.from_native(given, eager_only=True, allow_series=True, pass_through=True)
    if isinstance(frame, nw.Series):
        frame = frame.alias(frame.name or "feature").to_frame()
    if isinstance(frame, nw.DataFrame):
        index = nw.maybe_get_index(frame)
        columns = {str(name): _series(frame[name]) for name in frame.columns}
        return columns, None if index is None else label_array(index)
    if isinstance(given, Mapping):
        return {str(name): _plain(values) for name, values in given.items()}, None
    array = np.asarray(given)
    if array.ndim not in (1, 2):
        raise ValueError(f"{what} must have one or two dimensions; got {array.ndim}.")
    array = array.reshape(len(array), -1)
    return {f"feature {j}": _plain(array[:, j]) for j in range(array.shape[1])}, None


def _series(series: nw.Series) -> NDArray[Any]:
    if series.dtype.is_numeric() or series.dtype == nw.Boolean:
        return series.cast(nw.Float64).to_numpy().astype(np.float64)
    if series.dtype.is_temporal():
        raise TypeError(f"feature {series.name!r} holds dates: give a number, as days since one.")
    return np.array(series.to_list(), object)


def _plain(values: Any) -> NDArray[Any]:
    """Return numbers as numbers, also from an array of objects, and all else as objects."""
    array = np.asarray(values)
    if array.dtype.kind != "O":
        return array.astype(object) if array.dtype.kind in "US" else array
    if all(v is None or isinstance(v, int | float | np.number) for v in array):
        return np.array([np.nan if v is None else float(v) for v in array])
    return array


def _aligned(
    index: NDArray[Any] | None, labels: NDArray[Any] | None, what: str, axis: str
) -> NDArray[np.intp] | None:
    """Return where each label of the table stands in the features; None to take their order."""
    if index is None or labels is None:
        return None
    place = {label: i for i, label in enumerate(index)}
    lacking = np.array([label not in place for label in labels])
    if lacking.any():
        if not any(label in place for label in labels):
            return None
        some = name_some(axis, np.flatnonzero(lacking), labels)
        raise ValueError(f"{what} lacks {some} of the table.")
    if len(place) < len(index):
        raise ValueError(f"the index of {what} names a {axis} twice.")
    return np.array([place[label] for label in labels])


def _numbers(name: str, given: NDArray[Any]) -> NDArray[np.float64]:
    try:
        values = np.asarray(given, np.float64)
    except (TypeError, ValueError):
        raise ValueError(f"feature {name!r} held numbers in the fit, and words now.") from None
    if np.isinf(values).any():
        i = int(np.flatnonzero(np.isinf(values))[0])
        raise ValueError(f"feature {name!r} is infinite at {axis_name('row', i, None)}.")
    return values


def _levels(given: NDArray[Any]) -> NDArray[Any]:
    return np.array([_MISSING if _is_gap(v) else _level(v) for v in given], dtype=np.str_)


def _level(value: Any) -> str:
    """Return the name of a level: 3.0 and 3 are one."""
    if isinstance(value, float | np.floating) and float(value).is_integer():
        return str(int(value))
    return str(value)


def _is_gap(value: Any) -> bool:
    return value is None or str(value) in ("", "<NA>", "NaT") or bool(value != value)


def _has_gaps(part: NumberFeature | LevelFeature) -> bool:
    return part.missing > 0 if isinstance(part, NumberFeature) else _MISSING in part.levels


def _width(part: NumberFeature | LevelFeature) -> int:
    return 1 + (part.missing > 0) if isinstance(part, NumberFeature) else len(part.levels)
