r"""A scale for columns with a long upper end: straight below a knot, logarithmic above it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

__all__ = ["HalfLog"]


@dataclass(frozen=True, eq=False)
class HalfLog:
    r"""A map of the cells of each column that draws in its long upper end.

    With u the distance of a value above the knot it is :math:`u` up to 0, :math:`s \log(1 + u / s)`
    from there on, and straight again from :math:`u = e` on, with the slope that it has there: so
    that what lies far out does not come back as something without bound.

    Attributes
    ----------
    skewed : ndarray of bool of shape (n_cols,)
        Which columns are mapped; the others stay as they are.
    knot, scale, end : ndarray of shape (n_cols,)
        Where the logarithm begins, and the distances s and e.

    Examples
    --------
    >>> import numpy as np
    >>> from declip.halflog import HalfLog
    >>> one = np.ones(1)
    >>> long = HalfLog(skewed=one > 0, knot=one, scale=one, end=9 * one)
    >>> column = np.zeros(3, int)
    >>> long.forward(np.array([0.0, 1.0, np.e]), column)  # 1 + log(value) above the knot
    array([0., 1., 2.])
    >>> long.back(np.array([0.0, 1.0, 2.0]), column)
    array([0.        , 1.        , 2.71828183])
    """

    skewed: NDArray[np.bool_]
    knot: NDArray[np.float64]
    scale: NDArray[np.float64]
    end: NDArray[np.float64]

    def forward(self, values: NDArray, cols: NDArray | slice = slice(None)) -> NDArray[np.float64]:
        """Return values of some columns on this scale; or a table, whole or to be broadcast."""
        knot, scale, end = self._parts(cols)
        above = values - knot
        bent = scale * np.log1p(np.clip(above, 0, end) / scale)
        bent = bent + np.maximum(above - end, 0) * scale / (scale + end)
        return np.where(self.skewed[cols], knot + np.minimum(above, 0) + bent, values)

    def back(self, values: NDArray, cols: NDArray | slice = slice(None)) -> NDArray[np.float64]:
        """Return values of some columns in the units of the data."""
        knot, scale, end = self._parts(cols)
        above, top = values - knot, scale * np.log1p(end / scale)
        straight = scale * np.expm1(np.clip(above, 0, top) / scale)
        straight = straight + np.maximum(above - top, 0) * (scale + end) / scale
        return np.where(self.skewed[cols], knot + np.minimum(above, 0) + straight, values)

    def log_slope(self, values: NDArray, cols: NDArray | slice = slice(None)) -> NDArray:
        """Return the logarithm of the derivative of `forward` at values."""
        knot, scale, end = self._parts(cols)
        return np.where(self.skewed[cols], -np.log1p(np.clip(values - knot, 0, end) / scale), 0.0)

    def only(self, which: NDArray[np.bool_]) -> HalfLog:
        """Return the map of some of its columns; the others stay as they are."""
        return HalfLog(self.skewed & which, self.knot, self.scale, self.end)

    def extended(self, n_cols: int) -> HalfLog:
        """Return the same map with further columns, which stay as they are."""
        more = n_cols - len(self.skewed)
        parts = (np.append(part, np.ones(more)) for part in (self.knot, self.scale, self.end))
        return HalfLog(np.append(self.skewed, np.zeros(more, bool)), *parts)

    def _parts(self, cols: NDArray | slice) -> tuple[NDArray, NDArray, NDArray]:
        return self.knot[cols], self.scale[cols], self.end[cols]

    def _check_loaded(self) -> None:
        """Refuse a map that was read from a file and is none."""
        parts = self.knot, self.scale, self.end
        whole = all(part.shape == self.skewed.shape for part in parts) and self.skewed.dtype == bool
        if not (whole and np.isfinite(parts).all() and (np.array(parts[1:]) > 0).all()):
            raise ValueError("the scale of skewed columns is not of numbers, one for each column")
