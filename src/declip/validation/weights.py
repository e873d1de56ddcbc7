"""Weights and errors of cells."""

from __future__ import annotations

from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray

from declip.containers import opened
from declip.validation.limits import Limit, numbers_of_cells
from declip.validation.triplets import Triplets, where

__all__ = ["cell_numbers", "check_known", "check_side_model", "refuse_side_information"]


def cell_numbers(given: Any, cells: Any, what: str) -> NDArray[np.float64]:
    """Return the number of each observed cell of an `Intervals`, in the order of its `triplets`.

    Parameters
    ----------
    given : number, array, frame, sparse matrix, mapping or Series
        In the shapes of a limit; see `declip.validation.resolve_limit`.
    cells : Intervals
        The table.
    what : {"weights", "errors"}
        For messages.
    """
    rows, cols, lower, _ = cells.triplets()
    at = Triplets(
        rows, cols, lower.astype(np.float64), cells.shape, cells.row_labels, cells.col_labels
    )
    found: Limit = numbers_of_cells(opened(given).table, at, what)
    numbers = np.broadcast_to(found.at(at), rows.shape).astype(np.float64)
    bad = ~(numbers > 0) if what == "errors" else ~(numbers >= 0)
    bad |= np.isinf(numbers)
    if bad.any():
        k = int(np.flatnonzero(bad)[0])
        ask = "a standard deviation above 0" if what == "errors" else "a number of 0 or more"
        raise ValueError(f"{what} must be {ask} at every cell: {where(at, [k])} has {numbers[k]}.")
    return numbers


def check_side_model(names: list[str], df: float | None, missing: Any) -> None:
    """Refuse what weights, errors and groups do not go with in `BayesCMC`."""
    if df and {"weights", "errors"} & {*names}:
        raise ValueError("weights and errors go with df=None: Student t noise draws weights anew.")
    if missing != "random" and names:
        raise ValueError(
            f'missing={missing!r} goes without {" and ".join(names)}: use missing="random".'
        )


def check_known(names: list[str], scale: str, missing: Any) -> None:
    """Refuse what features, groups, weights and errors do not go with in `restore`."""
    if names and scale == "rows":
        raise ValueError(f'scale="rows" goes without {" and ".join(names)}: use scale="columns".')
    if names and missing != "random":
        raise ValueError(
            f'missing={missing!r} goes without {" and ".join(names)}: use missing="random".'
        )


def refuse_side_information(what: str, names: list[str]) -> NoReturn:
    """Refuse features, groups, weights or errors where they are not taken."""
    raise TypeError(
        f"{what} is fitted without {' or '.join(names)}: fit the table in memory, or leave "
        f"{'them' if len(names) > 1 else 'it'} out."
    )
