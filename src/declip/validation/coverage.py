"""Warnings about rows and columns that the data do not determine."""

from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from declip.validation.messages import warn_user

_NAMED = 5  # rows or columns named in a message


def warn_about_coverage(
    axis: str, exact: NDArray, observed: NDArray, rank: int, labels: NDArray | None
) -> None:
    """Warn of rows (or columns) without cells, and of those with fewer exact cells than the rank.

    Parameters
    ----------
    axis : {"row", "column"}
        What is counted.
    exact, observed : ndarray of int
        Exact cells and observed cells of each row (or column).
    rank : int
        Number of factors to fit.
    labels : ndarray or None
        Names of the rows (or columns).
    """
    warn_without_cells(axis, observed, labels)
    few = (observed > 0) & (exact < rank)
    if few.any() and rank == 1:
        warn_user(
            f"{name_some(axis, np.flatnonzero(few), labels)} without an exact cell: only limits "
            "are known there. Read what is restored there with care."
        )
    elif few.any():
        warn_user(
            f"{name_some(axis, np.flatnonzero(few), labels)} with fewer exact cells than the rank "
            f"{rank}: not determined by the data alone. Lower n_components, raise alpha, or read "
            "these with care.",
        )


def warn_without_cells(axis: str, observed: NDArray, labels: NDArray | None) -> None:
    """Warn of rows (or columns) of which nothing was observed."""
    empty = np.flatnonzero(observed == 0)
    if len(empty):
        warn_user(
            f"{name_some(axis, empty, labels)} without any observed cell: nothing is known there, "
            "and what is filled in is only the middle of the model.",
        )


def warn_nothing_clipped(has_ceiling: bool, has_floor: bool) -> None:
    """Warn that limits were given and no value is at them."""
    limits = " or ".join(["the ceiling"] * has_ceiling + ["the floor"] * has_floor)
    warn_user(
        f"nothing is at {limits}: every observed cell counts as exact. Check the limit, or allow "
        "a tolerance with Intervals.from_table(..., tol=).",
    )


def name_some(axis: str, which: NDArray, labels: NDArray | None) -> str:
    """Count rows (or columns) and name the first of them, such as ``2 rows ('a', 'b')``."""
    names: Iterable[Any] = which[:_NAMED] if labels is None else labels[which[:_NAMED]]
    listed = ", ".join(repr(n) if isinstance(n, str) else str(n) for n in names)
    more = f" and {len(which) - _NAMED} more" if len(which) > _NAMED else ""
    return f"{len(which)} {axis}{'s' if len(which) > 1 else ''} ({listed}{more})"
