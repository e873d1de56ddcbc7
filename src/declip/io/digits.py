"""Numbers as they are written in a file: as many digits as the band around them bears."""

from __future__ import annotations

import numpy as np

__all__ = ["number_text", "restored_text", "short_text"]

_LEAST, _MOST, _PLAIN = 2, 6, 4  # significant digits: at least, at most, and without a band
_LARGE = 1e7  # from here on a number is written with an exponent


def number_text(value: float) -> str:
    """Return a number in as few digits as give it back, without ``.0``.

    Examples
    --------
    >>> number_text(234.0), number_text(0.1)
    ('234', '0.1')
    """
    if value == int(value) and abs(value) < 1e15 if np.isfinite(value) else False:
        return str(int(value))
    return repr(float(value))


def short_text(value: float, digits: int) -> str:
    """Return a number for people, of so many digits, with an exponent only if it is far from 1.

    Examples
    --------
    >>> short_text(1604.2, 3), short_text(25000.0, 4), short_text(3.2e9, 3)
    ('1600', '25000', '3.2e+09')
    """
    text = f"{value:.{digits}g}"
    return f"{float(text):.0f}" if "e+" in text and abs(value) < _LARGE else text


def restored_text(value: float, low: float, high: float, bounds: tuple[float, float]) -> str:
    """Return a restored number with two digits more than its band is sure of.

    Rounding does not take it beyond what is known of the cell or, where it lies half a step inside
    a limit, beyond its band.

    Examples
    --------
    >>> restored_text(0.013437, 0.002, 0.05, (-np.inf, 0.05))
    '0.013'
    >>> restored_text(7.1234, 5.0, 12.0, (5.0, np.inf))
    '7.1'
    >>> restored_text(4.9632, 4.5, 5.6, (5.0, np.inf))  # an answer of 5
    '4.96'
    """
    if not bounds[0] <= value <= bounds[1]:
        bounds = (low, high)
    digits = _decimals(value, low, high)
    for more in range(18):
        text = _fixed(value, digits + more)
        if bounds[0] <= float(text) <= bounds[1]:
            return text
    return number_text(value)


def _decimals(value: float, low: float, high: float) -> int:
    """Return how many decimals count: two significant digits of the nearer end of the band."""
    size = np.floor(np.log10(abs(value))) if value else 0.0
    sides = [side for side in (value - low, high - value) if np.isfinite(side) and side > 0]
    if not sides:
        return int(_PLAIN - 1 - size)
    wanted = 1 - np.floor(np.log10(min(sides)))
    return int(np.clip(wanted, _LEAST - 1 - size, _MOST - 1 - size))


def _fixed(value: float, decimals: int) -> str:
    if value and (abs(value) < 1e-4 or abs(value) >= 1e15):
        size = int(np.floor(np.log10(abs(value))))
        return f"{value:.{max(decimals + size, 0)}e}"
    if decimals <= 0:
        return str(int(round(value, decimals)))
    return f"{value:.{decimals}f}"
