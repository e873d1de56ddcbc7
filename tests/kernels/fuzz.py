"""Random tables through every kernel: whatever validation lets in must come out unharmed.

``python -m tests.kernels.fuzz --seconds 60`` goes on until the time is up. The seed of the case
that is being run is always on the screen, so that a crash can be run again with ``--first``.
"""

import argparse
from dataclasses import replace
from time import monotonic

import numpy as np
import tests.kernels.another_build  # noqa: F401
from numpy.testing import assert_array_equal
from tests.plain import interval_loss, residuals, update_rows

from declip import Intervals, kernels
from declip.kernels import CellDraws, DrawProblem

KINDS = ("missing", "exact", "ceiling", "floor", "range")
MOST_DIGITS = {np.float32: 13, np.float64: 140}  # of the size of the values; some are larger
ROUNDING = {np.dtype(np.float32): 1e-3, np.dtype(np.float64): 1e-9}


def run_case(seed):
    """Make the table of a seed and put it through every kernel, on an instruction set by lot."""
    rng = np.random.default_rng(seed)
    best = kernels.current_isa()
    kernels.use_isa(rng.choice(kernels.isa_names()))
    try:
        table, size = random_intervals(rng)
        for check in CHECKS:
            check(rng, table, size)
    finally:
        kernels.use_isa(best)


def random_intervals(rng):
    """Return a table with ties, infinities, empty rows and ranges, and the size of its values."""
    shape, dtype = _shape(rng), rng.choice([np.float32, np.float64])
    digits = MOST_DIGITS[dtype] if rng.random() < 0.3 else 2
    size = 10.0 ** rng.uniform(-digits, digits)
    kind = rng.choice(KINDS, size=shape, p=rng.dirichlet(np.ones(len(KINDS))))
    kind[rng.random(shape[0]) < 0.2] = "missing"
    kind[:, rng.random(shape[1]) < 0.2] = "missing"
    kind.flat[rng.integers(kind.size)] = rng.choice(KINDS[1:])
    lower = size * (rng.integers(-3, 4, shape) if rng.random() < 0.5 else rng.normal(size=shape))
    width = size * rng.exponential(size=shape) * 10.0 ** rng.uniform(-18, 1, shape)
    upper = np.where(kind == "range", lower + width, lower)
    lower[kind == "floor"], upper[kind == "ceiling"] = -np.inf, np.inf
    lower[kind == "missing"] = upper[kind == "missing"] = np.nan
    return Intervals.from_bounds(lower.astype(dtype), upper.astype(dtype)), size


def _shape(rng):
    """Return a small shape, or one with rows (or columns) longer than a block of the kernels."""
    short, long = rng.integers(1, 9), int(rng.choice([rng.integers(1, 9), rng.integers(50, 600)]))
    return (short, long) if rng.random() < 0.5 else (long, short)


def random_factors(rng, table, size):
    """Return factors whose products have about the size of the values, or vanish."""
    k = int(rng.integers(1, 71))
    unit = np.sqrt(size / np.sqrt(k)) * (rng.random() > 0.1)
    return [(unit * rng.normal(size=(n, k))).astype(table.dtype) for n in table.shape]


def check_sweep(rng, table, size):
    """No row rises, many threads do as one, and the loss is that of the residuals."""
    P, Q = random_factors(rng, table, size)
    scale = float(rng.choice([0.0, size * 10.0 ** rng.uniform(-3, 3)]))
    alpha = float(rng.choice([0.0, size * 10.0 ** rng.uniform(-6, 4)]))
    ridge = np.full(P.shape[1], alpha, P.dtype)
    how = {
        "scale": scale,
        "inner_steps": int(rng.choice([0, 1, 3, 100])),
        "cg_steps": int(rng.choice([0, 0, 3])),
    }
    for side, own, other in ((table.by_row, P, Q), (table.by_col, Q, P)):
        offset = (size * rng.normal(size=len(other)) * (rng.random() < 0.5)).astype(own.dtype)
        after, again = own.copy(), own.copy()
        loss = update_rows(side, after, other, offset, ridge, **how)
        assert loss == update_rows(side, again, other, offset, ridge, **how, threads=3)
        assert_array_equal(after, again)
        assert np.isfinite(after).all()
        values = [_objective(side, F, other, offset, alpha, scale) for F in (own, after)]
        rounding = ROUNDING[own.dtype] * (abs(values[0]) + _largest_square(table, size))
        assert values[1] <= values[0] + rounding, f"rose from {values[0]} to {values[1]}"


def _objective(side, own, other, offset, alpha, scale):
    loss, exact, censored = residuals(side, own, other, offset, scale=scale, threads=2)
    assert np.isfinite(exact).all()
    assert np.isfinite(censored).all()
    return loss + 0.5 * alpha * float(np.sum(own.astype(np.float64) ** 2))


def _largest_square(table, size):
    return len(table) * (10 * size) ** 2


def check_predict(rng, table, size):
    """A cell is the product of its factors."""
    P, Q = random_factors(rng, table, size)
    rows, cols, _, _ = table.triplets()
    found = kernels.predict(rows, cols, P, Q, threads=2)
    wide = P.astype(np.float64)[rows], Q.astype(np.float64)[cols]
    reach = np.einsum("ck,ck->c", *map(np.abs, wide))
    off = np.abs(found - np.einsum("ck,ck->c", *wide))
    assert (off <= ROUNDING[P.dtype] * reach).all()


def check_loss(rng, table, size):
    """Losses are finite, curvatures within [0, 1], and a gradient leads back to the interval."""
    _, _, lower, upper = (a.astype(np.float64) for a in table.triplets())
    censored = lower < upper
    lower, upper = lower[censored], upper[censored]
    x = 3 * size * rng.normal(size=len(lower))
    scale = float(rng.choice([0.0, size * 10.0 ** rng.uniform(-6, 6)]))
    value, gradient, curvature = interval_loss(x, lower, upper, scale=scale, threads=2)
    assert np.isfinite(value).all()
    assert np.isfinite(gradient).all()
    assert ((curvature >= 0) & (curvature <= 1)).all()
    assert (gradient[x < lower] <= 0).all()
    assert (gradient[x > upper] >= 0).all()


def check_draws(rng, table, size):
    """Drawn cells lie in their intervals and drawn factors are finite, with and without weights."""
    cells = table.astype(np.float64)
    for side, own, other in ((cells.by_row, 0, 1), (cells.by_col, 1, 0)):
        rows, F, z = _draw_problem(rng, cells, size, side, own, other)
        squares = _drawn(rng, rows, F, z)
        assert np.isfinite(F).all()
        assert np.isfinite(squares).all()
        assert ((side.lower <= z) & (z <= side.upper)).all()


def check_spoilt_draws(rng, table, size):
    """A number that is not finite, anywhere, gives an error or a finite draw, never a hang."""
    cells = table.astype(np.float64)
    side = cells.by_row
    rows, F, z = _draw_problem(rng, cells, size, side, 0, 1)
    spoilt = [side.value.copy(), side.lower.copy(), side.upper.copy()]
    some = [
        a for a in (z, rows.design, rows.offset, *rows.prior, *rows.precision, *spoilt) if a.size
    ]
    hit = some[rng.integers(len(some))]
    hit.flat[rng.integers(hit.size)] = rng.choice([np.nan, np.inf, -np.inf, 0.0, 1e300, -1e300])
    side = replace(side, **dict(zip(("value", "lower", "upper"), spoilt, strict=True)))
    try:
        assert np.isfinite(_drawn(rng, replace(rows, side=side), F, z)).all()
        assert np.isfinite(F).all()
    except FloatingPointError:
        pass


def _draw_problem(rng, cells, size, side, own, other):
    factors = random_factors(rng, cells, size)
    k = factors[own].shape[1]
    prior = np.eye(k) * k / size, rng.normal(size=k) / np.sqrt(size)
    precision = tuple(rng.gamma(2.0, size=len(factors[i])) / size for i in (own, other))
    z, offset = np.clip(0.0, side.lower, side.upper), np.zeros(len(factors[other]))
    return DrawProblem(side, factors[other], offset, prior, precision), factors[own].copy(), z


def _drawn(rng, rows, own, z):
    weights = None
    if rng.random() < 0.5:
        weights = np.ones(len(rows.side.value)), np.ones(len(z))
    key = int(rng.integers(2**63)), int(rng.integers(2**40))
    return kernels.draw_rows(
        replace(rows, df=float(rng.uniform(1.5, 30))),
        own,
        CellDraws(z, weights),
        key,
        same_stream=bool(rng.random() < 0.2),
        threads=int(rng.integers(1, 4)),
    )


def check_normals(rng, table, size):
    """Truncated normals lie in their bounds, however far these are in the tail."""
    _, _, lower, upper = (a.astype(np.float64) for a in table.triplets())
    mean = 3 * size * rng.normal(size=len(lower))
    sd = size * 10.0 ** rng.uniform(-3, 3, len(lower))
    drawn = kernels.truncated_normals(mean, sd, lower, upper, (int(rng.integers(2**63)), 0))
    assert ((lower <= drawn) & (drawn <= upper)).all()


def check_spoilt_normals(rng, table, size):
    """What cannot be drawn is refused, and what is drawn lies in its bounds."""
    odd = [np.nan, np.inf, -np.inf, 0.0, -1.0, size, 1e-300, 1e300, -1e300]
    for _ in range(20):
        mean, sd, lower, upper = rng.choice(odd, (4, 1))
        try:
            drawn = kernels.truncated_normals(mean, sd, lower, upper, (int(rng.integers(2**63)), 0))
        except FloatingPointError:
            continue
        assert ((lower <= drawn) & (drawn <= upper)).all()


CHECKS = (
    *(check_sweep, check_predict, check_loss, check_draws, check_spoilt_draws),
    *(check_normals, check_spoilt_normals),
)


def main():
    ask = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    ask.add_argument("--seconds", type=float, default=60)
    ask.add_argument("--first", type=int, default=0, help="the first seed")
    asked = ask.parse_args()
    seed, end = asked.first, monotonic() + asked.seconds
    while monotonic() < end:
        print(f"\rseed {seed}", end="", flush=True)
        run_case(seed)
        seed += 1
    print(f"\r{seed - asked.first} random tables through every kernel, no fault")


if __name__ == "__main__":
    main()
