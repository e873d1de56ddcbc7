"""Columns of any type turned into floats, their names, and the errors about them."""

from typing import Any, NoReturn

import narwhals.stable.v2 as nw
import numpy as np
from numpy.typing import NDArray

from declip.validation.triplets import axis_name


def series_to_float(column: Any, name: str, row_labels: NDArray[Any] | None) -> NDArray[Any]:
    """Floats of a narwhals Series, NaN where a cell is missing; float32 is kept."""
    if column.dtype == nw.Float32:
        return np.asarray(column.to_numpy())
    if column.dtype.is_numeric() or column.dtype == nw.Boolean:
        return np.asarray(column.cast(nw.Float64).to_numpy())
    return column_to_float(column.to_numpy(), name, row_labels)


def column_to_float(
    cells: NDArray[Any], name: str, row_labels: NDArray[Any] | None
) -> NDArray[Any]:
    """Floats of an array of any type; None, NA and NaT are missing."""
    if cells.dtype.kind in "Mm":
        refuse_dates(cells, name)
    if cells.dtype.kind == "c":
        raise ValueError(
            f"Complex data not supported: {name} holds {cells[0]}. Take the real part with .real, "
            "or the size with abs()."
        )
    if cells.dtype.kind in "biuf":
        return cells.astype(np.float64)
    numbers = np.empty(cells.size)
    for i, cell in enumerate(cells):
        try:
            numbers[i] = _as_number(cell)
        except (TypeError, ValueError) as error:
            _refuse_cell(cells, i, name, row_labels, error)
    return numbers


def _as_number(cell: Any) -> float:
    if cell is None or cell is np.ma.masked or type(cell).__name__ in ("NAType", "NaTType"):
        return np.nan
    if isinstance(cell, str | bytes):
        raise ValueError(f"could not convert string to float: {cell!r}")
    if isinstance(cell, np.timedelta64):
        raise TypeError("argument must be a string or a real number, not a duration")
    return float(cell)


def _refuse_cell(
    cells: NDArray[Any],
    first: int,
    name: str,
    row_labels: NDArray[Any] | None,
    error: TypeError | ValueError,
) -> NoReturn:
    if isinstance(error, TypeError):
        row = axis_name("row", first, row_labels)
        raise TypeError(
            f"{name} holds {cells[first]!r} at {row}: {error}. "
            "Convert the column to numbers or drop it."
        ) from error
    texts = [i for i in range(first, cells.size) if isinstance(cells[i], str | bytes)]
    i = next((i for i in texts if not _looks_like_number(cells[i])), first)
    text, row = cells[i], axis_name("row", i, row_labels)
    raise ValueError(
        f"{name} holds text, could not convert string to float: {text!r} at {row}. {_remedy(text)}"
    ) from error


def _looks_like_number(text: str | bytes) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def _remedy(text: str | bytes) -> str:
    if _looks_like_number(text):
        return "Convert the column to numbers, for instance with astype(float)."
    sign = str(text if isinstance(text, str) else text.decode(errors="replace")).strip()[:1]
    if sign in ("<", ">"):
        limit = "floor" if sign == "<" else "ceiling"
        return f"Write the limit itself as the value of such cells, and pass it as {limit}=."
    return "Convert the column to numbers (NaN where a cell is missing) or drop it."


def refuse_dates(cells: NDArray[Any], name: str) -> NoReturn:
    """Raise the error about dates, which numpy would silently turn into numbers."""
    first = cells[0] if cells.size else ""
    raise TypeError(
        f"{name} holds dates or durations ({cells.dtype}, first {first}): "
        "convert them to numbers or drop them. A frame with one line a cell is read with "
        "Intervals.from_long."
    )


def named_columns(n_cols: int, labels: Any = None) -> dict[str, Any]:
    """Return the fitted attributes about columns; names only if all of them are texts."""
    names = [] if labels is None else list(labels)
    if not (names and all(isinstance(name, str) for name in names)):
        return {"n_features_in_": n_cols}
    return {"n_features_in_": n_cols, "feature_names_in_": np.asarray(names, dtype=object)}


def check_columns(fitted: Any, found: dict[str, Any]) -> None:
    """Refuse columns that are not those of a fitted estimator, in the words of scikit-learn."""
    n_cols, labels = found["n_features_in_"], list(found.get("feature_names_in_", []))
    if n_cols != fitted.n_features_in_:
        raise ValueError(
            f"X has {n_cols} features, but {type(fitted).__name__} is expecting "
            f"{fitted.n_features_in_} features as input."
        )
    if labels and list(getattr(fitted, "feature_names_in_", labels)) != labels:
        unseen = [name for name in labels if name not in set(fitted.feature_names_in_)]
        raise ValueError(
            "The feature names should match those that were passed during fit"
            + (f"; unseen at fit time: {', '.join(unseen[:5])}." if unseen else ", in order.")
        )


def check_same_columns(found: Any, known: Any) -> None:
    """Refuse rows of a table whose columns are not those of another one."""
    if found.shape[1] != known.shape[1]:
        raise ValueError(
            f"The new rows have {found.shape[1]} columns, but the table that was restored has "
            f"{known.shape[1]}."
        )
    labels = found.col_labels, known.col_labels
    if all(part is not None for part in labels) and list(labels[0]) != list(labels[1]):
        raise ValueError(
            "The new rows must have the columns of the table that was restored, in its order: "
            f"{', '.join(map(repr, list(labels[1])[:5]))}{', ...' if len(labels[1]) > 5 else ''}."
        )
