"""What the bounds of a cell say of it: asked here.

A cell whose bounds are equal is exact. A limit of another kind, such as one that is itself
uncertain, would be recognised here.
"""

from __future__ import annotations

from typing import Any

import numpy as np

__all__ = ["left_censored", "ranged", "right_censored", "unbounded"]


def right_censored(upper: Any) -> Any:
    """Tell which cells have no upper bound: those at or above a ceiling.

    Examples
    --------
    >>> import numpy as np
    >>> from declip.censoring import right_censored
    >>> right_censored(np.array([5.0, np.inf, np.nan]))
    array([False,  True, False])
    """
    return np.isposinf(upper)


def left_censored(lower: Any) -> Any:
    """Tell which cells have no lower bound: those at or below a floor."""
    return np.isneginf(lower)


def ranged(lower: Any, upper: Any) -> Any:
    """Tell which cells have both bounds: ranges, and exact cells."""
    return np.isfinite(lower) & np.isfinite(upper)


def unbounded(lower: Any, upper: Any) -> Any:
    """Tell which cells have neither bound, so that nothing is known of them."""
    return left_censored(lower) & right_censored(upper)
