"""Whether the values of a table are amounts that call for logarithms."""

from __future__ import annotations

import numpy as np

from declip.intervals import Intervals, face_value

__all__ = ["spreads_widely"]

_SPREAD = 5.0  # ratio of large to small values from which logarithms are proposed


def spreads_widely(cells: Intervals) -> bool:
    """Tell amounts that spread over orders of magnitude: their logarithms are more even."""
    _, cols, lower, upper = cells.triplets()
    values = face_value(lower, upper)
    if (values <= 0).any():
        return False
    order = np.argsort(cols, kind="stable")
    parts = np.split(values[order], np.flatnonzero(np.diff(cols[order])) + 1)
    spread = [np.quantile(part, 0.95) / np.quantile(part, 0.05) for part in parts]
    return float(np.median(spread)) > _SPREAD
