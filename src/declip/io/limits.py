"""Limits given for a table, or for single columns of it, and the cells that stand there."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from declip.io.errors import TableFileError
from declip.io.layouts import Listed
from declip.io.problems import Remedy
from declip.io.words import CODES_BEYOND
from declip.rounding import limits_on_grid
from declip.validation import Triplets, apply_limits, resolve_limit
from declip.validation.limits import Side
from declip.validation.triplets import where

__all__ = ["LimitsGiven", "apply_given"]


@dataclass(frozen=True, eq=False)
class LimitsGiven:
    """Ceiling and floor of the table, as an estimator takes them, and those of single columns."""

    ceiling: Any = None
    floor: Any = None
    by_column: Mapping[str, Mapping[Any, float]] | None = None

    def or_else(self, others: Mapping[str, Mapping[Any, float]]) -> LimitsGiven:
        """Return these, with others for columns that have none of their own, by side."""
        own = {side: getattr(self, side) for side in others}
        return replace(
            self,
            **{
                side: {**others[side], **(limit or {})}
                for side, limit in own.items()
                if limit is None or isinstance(limit, Mapping)
            },
        )

    def of(self, side: str, columns: NDArray | None) -> Any:
        """Return one side; the limits of single columns replace that of the table."""
        limit, special = getattr(self, side), (self.by_column or {}).get(side)
        if not special:
            return limit
        if limit is None or isinstance(limit, Mapping):
            return {**(limit or {}), **special}
        names = [] if columns is None else columns.tolist()
        if np.ndim(limit) == 0:
            return {**dict.fromkeys(names, limit), **special}
        return {**dict(zip(names, np.ravel(limit), strict=False)), **special}


def apply_given(
    listed: Listed,
    limits: LimitsGiven,
    rows: NDArray,
    cols: NDArray,
    lower: NDArray,
    upper: NDArray,
) -> None:
    """Open the exact cells that stand at a limit of the table or of their column."""
    ceiling, floor = (limits.of(side, listed.col_labels) for side in ("ceiling", "floor"))
    if ceiling is None and floor is None:
        return
    exact = lower == upper
    labels = listed.row_labels, listed.col_labels
    cells = Triplets(rows[exact], cols[exact], lower[exact], listed.shape, *labels)
    ceiling, floor = limits_on_grid(cells.values, ceiling, floor)
    try:
        _refuse_codes_beyond(listed, cells, ceiling, floor)
        lower[exact], upper[exact] = apply_limits(cells, ceiling, floor)
    except TableFileError:
        raise
    except (TypeError, ValueError) as error:
        raise TableFileError(listed.sheet.path, str(error)) from error


def _refuse_codes_beyond(listed: Listed, cells: Triplets, ceiling: Any, floor: Any) -> None:
    """Refuse numbers beyond a limit that stand for missing values in many files, such as 99."""
    given: list[tuple[Side, Any]] = [("ceiling", ceiling), ("floor", floor)]
    for side, limit in given:
        at = resolve_limit(limit, cells, side).at(cells)
        beyond = np.flatnonzero(cells.values > at if side == "ceiling" else cells.values < at)
        kinds = np.unique(cells.values[beyond])
        if not kinds.size or not np.isin(kinds, CODES_BEYOND).all():
            continue
        relation, n = "above" if side == "ceiling" else "below", len(beyond)
        codes = ", ".join(f"{kind:g}" for kind in kinds)
        lie = f"value ({codes}) lies" if n == 1 else f"values ({codes}) lie"
        what = f"{n:,} {lie} {relation} the {side}, first {where(cells, beyond[:1])}"
        means = [
            Remedy("missing", f"{kind:g}", "if it stands for a missing value") for kind in kinds
        ]
        moved = Remedy(side, "NUMBER", f"if the {side} lies elsewhere")
        listed.sheet.fail(what, None, None, *means, moved)
