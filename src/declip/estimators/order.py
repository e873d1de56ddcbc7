"""The parameters of an order in time, as estimators take them."""

from __future__ import annotations

from numbers import Integral, Real
from typing import Any

import numpy as np
from sklearn.utils._param_validation import Interval, StrOptions

from declip.ordering import Course
from declip.validation import check_steps

__all__ = ["ORDER_CONSTRAINTS", "course_of"]

ORDER_CONSTRAINTS: dict[str, Any] = {
    "order": [StrOptions({"rows", "columns"}), None],
    "smooth": [Interval(Integral, 0, 2, closed="both")],
    "period": [Interval(Real, 1, None, closed="neither"), "array-like", None],
}


def course_of(order: str | None, smooth: int, period: Any, shape: tuple[int, int]) -> Course | None:
    """Return how rows or columns follow each other, None if they do not.

    The strengths of drift and seasons are still to be found.
    """
    if order is None:
        return None
    periods = () if period is None else tuple(float(p) for p in np.atleast_1d(period))
    check_steps(order, shape[order == "columns"], periods)
    return Course(order, int(smooth), periods)
