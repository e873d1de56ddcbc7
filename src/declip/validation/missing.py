"""What ``missing=`` says of the missing cells of each column."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from numpy.typing import NDArray

from declip.validation.sizes import check_choice

__all__ = ["MISSING_WORDS", "check_missing", "check_missing_model"]

MISSING_WORDS = ("random", "low", "high", "auto")
_MOST_CELLS = 20_000_000  # of a table whose missing cells are drawn


def check_missing(missing: Any, n_cols: int, labels: NDArray | None) -> tuple[str, ...]:
    """Return a word for each column, from one word or a mapping from columns to words.

    Columns that a mapping leaves out are missing at random.
    """
    if not isinstance(missing, Mapping):
        check_choice("missing", missing, MISSING_WORDS)
        return (str(missing),) * n_cols
    places = {} if labels is None else {label: j for j, label in enumerate(labels)}
    words = ["random"] * n_cols
    for column, word in missing.items():
        check_choice(f"missing[{column!r}]", word, MISSING_WORDS)
        is_number = isinstance(column, int) and not isinstance(column, bool)
        place = places.get(column, column if is_number else None)
        if place is None or not -n_cols <= place < n_cols:
            raise ValueError(f"missing names column {column!r}, which the table does not have.")
        words[place] = str(word)
    return tuple(words)


def check_missing_model(shape: tuple[int, int], noise: str, df: float) -> None:
    """Refuse what missing cells that tell of values do not go with."""
    n_cells = shape[0] * shape[1]
    if n_cells > _MOST_CELLS:
        raise ValueError(
            f"Where missing cells tell of values each is drawn, and the {n_cells:,} cells of a "
            f"{shape[0]} x {shape[1]} table are more than {_MOST_CELLS:,}: use fewer rows, or "
            'missing="random".'
        )
    if noise == "row+column" or df:
        raise ValueError(
            'missing="low", "high" and "auto" go with noise="column" or "global", and df=None.'
        )
