"""Scales by name on which values are modelled, such as roots of counts, and the way back."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from declip.validation import check_choice

__all__ = ["VALUE_SCALES", "ValueScale", "from_scale"]


class ValueScale(NamedTuple):
    """A rising function of values that are not negative, and its inverse."""

    forward: Callable[[NDArray], NDArray]
    back: Callable[[NDArray], NDArray]


VALUE_SCALES = {"sqrt": ValueScale(np.sqrt, np.square), "log1p": ValueScale(np.log1p, np.expm1)}


def from_scale(values: ArrayLike, scale: str) -> NDArray[np.float64]:
    """Return values of a scale in the units that they had before `Intervals.on_scale`.

    Parameters
    ----------
    values : array-like
        Cells, tables or draws of them; what lies below 0 counts as 0.
    scale : {"sqrt", "log1p"}
        The scale.

    Returns
    -------
    ndarray
        Of the same shape.

    Examples
    --------
    >>> from declip import from_scale
    >>> from_scale([2.0, 3.0, -0.1], "sqrt")
    array([4., 9., 0.])
    """
    check_choice("scale", scale, tuple(VALUE_SCALES))
    plain = np.maximum(np.asarray(values, np.float64), 0.0)
    return np.asarray(VALUE_SCALES[scale].back(plain), np.float64)
