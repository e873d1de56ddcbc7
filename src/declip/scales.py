"""Scales by name on which values are modelled, such as roots of counts, and the way back."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from declip.validation import check_choice

__all__ = ["LOGARITHM", "UNCHANGED", "VALUE_SCALES", "ValueScale", "from_scale"]


class ValueScale(NamedTuple):
    """A rising function of values, minus infinity where they have no lower end; its inverse."""

    forward: Callable[[NDArray], NDArray]
    back: Callable[[NDArray], NDArray]

    @classmethod
    def of_amounts(cls, forward: np.ufunc, back: np.ufunc) -> ValueScale:
        """Return the scale of values from 0 on; whatever lies below counts as 0."""
        return cls(
            lambda x: np.where(np.isneginf(x), -np.inf, forward(np.maximum(x, 0.0))),
            lambda z: back(np.maximum(z, 0.0)),
        )


def _logarithm(values: NDArray) -> NDArray[np.float64]:
    with np.errstate(divide="ignore"):
        return np.log(np.maximum(np.asarray(values, np.float64), 0.0))


UNCHANGED = ValueScale(lambda x: x, lambda z: z)
LOGARITHM = ValueScale(_logarithm, np.exp)  # of what is not positive: minus infinity
VALUE_SCALES = {
    "sqrt": ValueScale.of_amounts(np.sqrt, np.square),
    "log1p": ValueScale.of_amounts(np.log1p, np.expm1),
}


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
    return np.asarray(VALUE_SCALES[scale].back(np.asarray(values, np.float64)), np.float64)
