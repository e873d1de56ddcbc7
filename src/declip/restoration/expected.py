"""Expected values in the units of the data, also of columns that are restored on another scale."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

from declip.restoration.predictive import CensoredMixture
from declip.scaling import Scaling

__all__ = ["expected_distance", "expected_squares", "expected_value"]

# Of a skewed column the mean is taken over these quantiles, so that no tail without end decides it
_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(7)
_NODES, _WEIGHTS = 0.5 * (_NODES + 1), 0.5 * _WEIGHTS


def expected_distance(scaling: Scaling, law: CensoredMixture, cols: NDArray) -> NDArray[np.float64]:
    """Return the distance, in standard units, from the limit of each cell to its expected value."""
    distance = law.in_blocks(lambda part: part.moments()[0])
    skewed = scaling.is_skewed(cols)
    if skewed.any():
        some, at = law.take(skewed), cols[skewed]
        value = _WEIGHTS @ _quantiles(scaling, some, at)
        distance[skewed] = some.sign * scaling.forward(value, at) - some.limit
    return distance


def expected_squares(
    scaling: Scaling,
    law: CensoredMixture,
    cols: NDArray,
    moved: NDArray,
    moments: NDArray,
) -> NDArray[np.float64]:
    """Return the expected squared errors of values that were moved, and of the limits.

    Of shape (2, n_cells), in standard units; of a skewed column the unit is half of what lies
    between one standard unit below and above the middle. ``moments`` are those of the law.
    """
    mean, square = moments
    # E (v - d)^2 and E d^2 for the distance d of the truth from the limit
    squares = np.array([square - 2 * moved * mean + moved**2, square])
    skewed = scaling.is_skewed(cols)
    if skewed.any():
        some, at = law.take(skewed), cols[skewed]
        value = _quantiles(scaling, some, at)
        low, high = (scaling.back(np.full(len(at), end), at) for end in (-1.0, 1.0))
        for line, away in enumerate((moved[skewed], np.zeros(len(at)))):
            told = scaling.back(some.sign * (some.limit + away), at)
            squares[line, skewed] = _WEIGHTS @ (2 * (value - told) / (high - low)) ** 2
    return squares


def expected_value(
    scaling: Scaling, centre: NDArray, spread: NDArray, cols: NDArray
) -> NDArray[np.float64]:
    """Return the expected values of normal cells, in the units of the data."""
    value = scaling.back(centre, cols)
    skewed = scaling.is_skewed(cols)
    if skewed.any():
        z = centre[skewed] + spread[skewed] * ndtri(_NODES)[:, None]
        value[skewed] = _WEIGHTS @ scaling.back(z, cols[skewed])
    return value


def _quantiles(scaling: Scaling, law: CensoredMixture, cols: NDArray) -> NDArray[np.float64]:
    """Return quantiles of cells in the units of the data, of shape (n_nodes, n_cells)."""

    def at_nodes(part: CensoredMixture) -> NDArray[np.float64]:
        moments = part.moments()
        return np.array([part.quantile(1 - q, moments) for q in _NODES])

    return scaling.back(law.sign * law.in_blocks(at_nodes), cols)
