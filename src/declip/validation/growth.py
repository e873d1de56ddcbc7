"""Tables that grow: where new rows, columns and cells belong, and the errors about them."""

from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray

from declip.validation.triplets import axis_name


def places_by_label(
    known: NDArray[Any] | None, given: NDArray[Any] | None, sizes: tuple[int, int], axis: str
) -> tuple[NDArray[np.intp], NDArray[Any] | None]:
    """Return where rows or columns belong in a table that grows by them, and its labels then.

    Those with a known label are where they were, others follow at the end. Without labels they are
    called 0, 1, 2, ...

    Parameters
    ----------
    known, given : ndarray of labels or None
        Of the table, and of what is added to it.
    sizes : two int
        How many there are of each.
    axis : str
        "row" or "column", for the errors.
    """
    if known is None and given is None:
        return np.arange(sizes[1]), None
    names = [
        list(range(size)) if labels is None else labels.tolist()
        for labels, size in zip((known, given), sizes, strict=True)
    ]
    kinds = [{isinstance(name, str) for name in part} for part in names]
    if kinds[0] != kinds[1] and all(kinds):
        _refuse_other_labels(names, axis)
    for part, whose in zip(names, ("the fitted table", "the new cells"), strict=True):
        _refuse_twice(part, axis, whose)
    position = {name: i for i, name in enumerate(names[0])}
    for name in names[1]:
        position.setdefault(name, len(position))
    places = np.array([position[name] for name in names[1]], np.intp)
    return places, _as_labels(list(position))


def places_at_end(
    known: NDArray[Any] | None, given: NDArray[Any] | None, sizes: tuple[int, int]
) -> tuple[NDArray[np.intp], NDArray[Any] | None]:
    """Return where rows that are all new belong; labels are kept if both tables have them."""
    places = sizes[0] + np.arange(sizes[1])
    if known is None or given is None:
        return places, None
    again = [name for name in given.tolist() if name in set(known.tolist())]
    if again:
        raise ValueError(
            f"Row {again[0]!r} is in the fitted table already, and partial_fit appends rows: give "
            "new ones other labels, and more cells of known rows to extend."
        )
    return places, np.concatenate([known, given])


def refuse_known_cells(rows: Any, cols: Any, labels: tuple[Any, Any]) -> NoReturn:
    """Refuse cells that the table has already."""
    name = f"{axis_name('row', rows[0], labels[0])}, {axis_name('column', cols[0], labels[1])}"
    raise ValueError(
        f"Cell {name} is known already, and {len(rows) - 1} others that were given. With "
        "replace_known=True they count as they are now. New rows without labels are for "
        "partial_fit, or counted from the end of the fitted table on."
    )


def _refuse_twice(names: list[Any], axis: str, whose: str) -> None:
    """Refuse labels of which two are the same, so that one cannot be told from the other."""
    seen: set[Any] = set()
    for name in names:
        if name in seen:
            raise ValueError(
                f"Two {axis}s of {whose} are named {name!r}, and cannot be told apart: name each "
                "differently."
            )
        seen.add(name)


def _refuse_other_labels(names: list[list[Any]], axis: str) -> NoReturn:
    raise ValueError(
        f"The {axis}s of the fitted table are named as {names[0][0]!r}, those that were given as "
        f"{names[1][0]!r}: which of them are the same is not clear. Label both in the same way."
    )


def _as_labels(names: list[Any]) -> NDArray[Any] | None:
    if names == list(range(len(names))):
        return None
    labels = np.empty(len(names), dtype=object)
    labels[:] = names
    return labels
