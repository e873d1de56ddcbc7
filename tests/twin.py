"""The kernels once more in plain NumPy, slow and clear: the oracles of the tests.

Tables are dense here: ``lower`` and ``upper`` hold one bound a cell, NaN where none was observed.
"""

import numpy as np

NODES, WEIGHTS = np.polynomial.legendre.leggauss(200)


def truncated_normal(a, width):
    """Return log mass, mean and variance of N(0, 1) given (a, a + width), by quadrature.

    Gauss-Legendre from the mode max(a, 0), after a mirroring that puts the heavy end at a. What
    lies 9.5 beyond the mode, or where the density has fallen by e^-45, is below 1e-19.
    """
    flip = 2 * a + width < 0
    a = np.where(flip, -a - width, a)
    mode = np.maximum(a, 0.0)
    first = np.where(a > 0, 0.0, np.maximum(a, -9.5))
    last = np.minimum(width + np.where(a > 0, 0.0, a), np.minimum(9.5, 45 / np.maximum(mode, 1e-9)))
    middle, half = 0.5 * (first + last), 0.5 * (last - first)
    t = middle[..., None] + half[..., None] * NODES
    density = WEIGHTS * np.exp(-t * (mode[..., None] + 0.5 * t))
    total = density.sum(axis=-1)
    mean = (density * t).sum(axis=-1) / total
    variance = (density * (t - mean[..., None]) ** 2).sum(axis=-1) / total
    log_mass = np.log(half * total) - 0.5 * mode**2 - 0.5 * np.log(2 * np.pi)
    return log_mass, np.where(flip, -1, 1) * (mode + mean), variance


def cell_loss(x, lower, upper, scale=0.0):
    """Return value, gradient and curvature of the loss of each cell."""
    r = x - np.clip(x, lower, upper)
    value, gradient, curvature = 0.5 * r**2, r, 1.0 - ((lower < x) & (x < upper))
    soft = lower < upper
    if scale > 0 and soft.any():
        log_mass, mean, variance = _tobit_moments(x[soft], lower[soft], upper[soft], scale)
        value[soft], gradient[soft] = -(scale**2) * log_mass, -scale * mean
        curvature[soft] = 1 - variance
    return value, gradient, curvature


def _tobit_moments(x, lower, upper, scale):
    below = np.isneginf(lower)  # a floor is a ceiling in the mirror
    a = np.where(below, x - upper, lower - x) / scale
    log_mass, mean, variance = truncated_normal(a, (upper - lower) / scale)
    return log_mass, np.where(below, -mean, mean), variance


class Row:
    """The objective of one row as a function of its factors p, with the other side fixed."""

    def __init__(self, lower, upper, other, offset, ridge, scale=0.0):
        seen = ~np.isnan(lower)
        self.lower, self.upper = lower[seen], upper[seen]
        self.Q, self.offset, self.ridge, self.scale = other[seen], offset[seen], ridge, scale

    def cells(self, p):
        return cell_loss(self.Q @ p + self.offset, self.lower, self.upper, self.scale)

    def loss(self, p):
        return self.cells(p)[0].sum()

    def value(self, p):
        return self.loss(p) + 0.5 * self.ridge @ p**2

    def gradient(self, p):
        return self.Q.T @ self.cells(p)[1] + self.ridge * p

    def hessian(self, p):
        return (self.Q.T * self.cells(p)[2]) @ self.Q + np.diag(self.ridge)


def newton_steps(row, p, steps):
    """Take Newton steps with the line search of the kernel."""
    for _ in range(steps):
        slope, H = row.gradient(p), row.hessian(p)
        if 0.5 * (slope**2 / np.diag(H)).sum() <= 1e-12 * row.value(p):
            break
        d = -np.linalg.solve(H, slope)
        if slope @ d >= -1e-12 * row.value(p):
            break
        p = p + line_search(row, p, d) * d
    return p


def line_search(row, p, d):
    """Return 1 if the full step lowers F well, else a t near the minimum along d."""

    def slope_at(t):
        return row.gradient(p + t * d) @ d

    before, slope = row.value(p), slope_at(0.0)
    change, full = row.value(p + d) - before, slope_at(1.0)
    if change <= 0.25 * slope or (full <= 0 and change <= 0):
        return 1.0
    (low, low_slope), (high, high_slope) = (0.0, slope), (1.0, full)
    for step in range(40):
        if low > 0 and low_slope >= 0.3 * slope:
            break
        t = low - low_slope * (high - low) / (high_slope - low_slope)
        if not low < t < high or step % 3 == 2:
            t = 0.5 * (low + high)
        if (at := slope_at(t)) <= 0:
            low, low_slope = t, at
        else:
            high, high_slope = t, at
    return low


def minimiser(row, k):
    """Return the minimiser of a strictly convex row: Newton steps from 0, halved to descend."""
    p = np.zeros(k)
    for _ in range(100):
        slope = row.gradient(p)
        if np.abs(slope).max() <= 1e-12:
            break
        d = -np.linalg.solve(row.hessian(p), slope)
        value, t = row.value(p), 1.0
        while row.value(p + t * d) > value * (1 + 1e-14) + 1e-4 * t * (slope @ d):
            t *= 0.5
        p = p + t * d
    return p


def random_bounds(rng, shape, *, missing=0.3, spread=2.0):
    """Return tables of bounds with exact, ceiling, floor, range and missing cells.

    Row 0 is empty, row 1 all open and row 2 all exact, as far as there are such rows.
    """
    kind = rng.choice(
        ["missing", "exact", "ceiling", "floor", "range"],
        size=shape,
        p=[missing, 0.4 * (1 - missing), *[0.2 * (1 - missing)] * 3],
    )
    for i, names in enumerate((["missing"], ["ceiling", "floor", "range"], ["exact"])):
        kind[i : i + 1] = rng.choice(names, size=kind[i : i + 1].shape)
    lower = spread * rng.standard_normal(shape)
    upper = lower + np.where(kind == "range", rng.exponential(1.0, shape), 0.0)
    lower[kind == "floor"], upper[kind == "ceiling"] = -np.inf, np.inf
    lower[kind == "missing"] = upper[kind == "missing"] = np.nan
    return lower, upper
