"""What the fields use on censored tables, in a few lines each from their papers.

A method takes a table in which every cell is exact, below a floor or above a ceiling (``lower``,
``upper``), and returns it complete. Those that were made for floors see ceilings in the mirror.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy import stats
from sklearn.ensemble import ExtraTreesRegressor
from sklearn.linear_model import BayesianRidge

from declip import Intervals
from declip.restoration.candidates import CensoredNormal, ColumnTobit, components
from declip.restoration.predictive import CensoredMixture

Column = Callable[[np.ndarray, np.ndarray, np.random.Generator], np.ndarray]


@dataclass(frozen=True, eq=False)
class Censored:
    """A table of exact cells, cells below a floor and cells above a ceiling.

    Attributes
    ----------
    lower, upper : ndarray
        What is known of each cell.
    half : ndarray
        Half the limit in the units of the measurements, where that means something.
    """

    lower: np.ndarray
    upper: np.ndarray
    half: np.ndarray

    @property
    def limit(self) -> np.ndarray:
        return np.where(np.isinf(self.lower), self.upper, self.lower)

    @property
    def exact(self) -> np.ndarray:
        return self.lower == self.upper


def by_column(method: Column) -> Callable[[Censored, np.random.Generator], np.ndarray]:
    """Return a method for floors of one column as one for tables: first floors, then ceilings."""

    def complete(table: Censored, rng: np.random.Generator) -> np.ndarray:
        out = table.limit.copy()
        for j in range(out.shape[1]):
            for sign, end in ((1.0, table.lower), (-1.0, table.upper)):
                beyond = np.isinf(end[:, j])
                if beyond.any() and not beyond.all():
                    out[:, j] = sign * method(sign * out[:, j], beyond, rng)
        return out

    return complete


def _positions(x: np.ndarray, below: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return normal scores of plotting positions, of the values seen and of those below."""
    share = below.mean()
    seen = share + (1 - share) * stats.rankdata(x[~below]) / ((~below).sum() + 1)
    hidden = share * stats.rankdata(x[below], "ordinal") / (below.sum() + 1)
    return stats.norm.ppf(seen), stats.norm.ppf(hidden)


def ros(x: np.ndarray, below: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Regression on order statistics (Helsel and Cohn 1988), of a column alone."""
    seen, hidden = _positions(x, below)
    slope, level = np.polyfit(seen, x[~below], 1)
    out = x.copy()
    out[below] = level + slope * hidden
    return out


def qrilc(x: np.ndarray, below: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Quantile regression, then draws below the lowest value seen (Lazar et al. 2016)."""
    share = below.mean()
    at = np.linspace(share + 0.001, 0.99, 100)
    shown = (at - share) / (1 - share)
    sd, mean = np.polyfit(stats.norm.ppf(at), np.quantile(x[~below], shown), 1)
    top = (x[~below].min() - mean) / max(sd, 1e-9)
    out = x.copy()
    share_below = stats.norm.cdf(top) * rng.uniform(1e-12, 1, below.sum())
    out[below] = mean + sd * stats.norm.ppf(np.maximum(share_below, 1e-300))
    return out


def min_prob(x: np.ndarray, below: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Draws about the 1 % quantile of the values seen (Lazar et al. 2016)."""
    seen = x[~below]
    out = x.copy()
    out[below] = rng.normal(np.quantile(seen, 0.01), 0.3 * seen.std(), below.sum())
    return out


def _chained(table: Censored, rounds: int, model: Callable[[], object], noise: bool) -> np.ndarray:
    """Predict each column from the others in turn, censored cells within their bounds."""
    out = table.limit.copy()
    for _ in range(rounds):
        for j in range(out.shape[1]):
            at = ~table.exact[:, j]
            if not at.any() or at.all():
                continue
            others = np.delete(out, j, axis=1)
            fitted = model().fit(others[~at], out[~at, j])  # type: ignore[attr-defined]
            mean = fitted.predict(others[at])
            low, high = table.lower[at, j], table.upper[at, j]
            if noise:
                sd = np.std(out[~at, j] - fitted.predict(others[~at])) + 1e-9
                a, b = (low - mean) / sd, (high - mean) / sd
                mean = mean + sd * np.clip(stats.truncnorm.mean(a, b), a, b)
            out[at, j] = np.clip(mean, low, high)
    return out


def chained_equations(table: Censored, rng: np.random.Generator) -> np.ndarray:
    """Regressions in turn, censored cells at their truncated normal mean (van Buuren 2018)."""
    return _chained(table, 10, BayesianRidge, noise=True)


def trees(table: Censored, rng: np.random.Generator) -> np.ndarray:
    """Forests in turn (missForest, Stekhoven and Buehlmann 2012), within the bounds."""
    return _chained(
        table, 3, lambda: ExtraTreesRegressor(30, min_samples_leaf=3, random_state=0), noise=False
    )


def soft_impute(table: Censored, rng: np.random.Generator) -> np.ndarray:
    """Soft-thresholded singular values (Mazumder et al. 2010); clipped cells count as missing."""
    exact = table.exact
    mean = np.nanmean(np.where(exact, table.lower, np.nan), axis=0)
    seen = np.where(exact, table.limit - mean, 0.0)
    shrink, fill = 0.1 * np.linalg.norm(seen, 2), np.zeros_like(seen)
    for _ in range(100):
        U, s, V = np.linalg.svd(np.where(exact, seen, fill), full_matrices=False)
        fill = (U * np.maximum(s - shrink, 0)) @ V
    return np.clip(np.where(exact, table.limit, fill + mean), table.lower, table.upper)


def left(table: Censored, rng: np.random.Generator) -> np.ndarray:
    """Every clipped cell at its limit."""
    return table.limit


def half_the_limit(table: Censored, rng: np.random.Generator) -> np.ndarray:
    """Half the floor; ceilings stay."""
    return table.half


SIMPLE = {
    "left at the limit": left,
    "half the limit": half_the_limit,
    "ROS": by_column(ros),
    "QRILC": by_column(qrilc),
    "MinProb": by_column(min_prob),
    "chained equations": chained_equations,
    "trees": trees,
    "soft-impute": soft_impute,
}
LIKELIHOODS = {"ML by column": ColumnTobit, "full covariance": CensoredNormal}


def by_likelihood(name: str, table: Censored, coverage: float) -> tuple[np.ndarray, ...]:
    """Return the table at its means under a censored normal, and the ends of bands."""
    shift, unit = table.limit.mean(axis=0), table.limit.std(axis=0)
    low, high = (table.lower - shift) / unit, (table.upper - shift) / unit
    fitted = LIKELIHOODS[name]().fit(Intervals.from_bounds(low, high))
    out = (table.limit - shift) / unit
    at = np.nonzero(~table.exact)
    reach = np.full((2, len(at[0])), -np.inf)
    law = CensoredMixture.of(low[at], high[at], reach, *components(fitted, *at))
    out[at] = law.sign * (law.limit + law.moments()[0])
    far = law.sign * law.quantile(1 - coverage)
    low[at] = np.where(law.sign > 0, law.limit, far)
    high[at] = np.where(law.sign > 0, far, -law.limit)
    complete, *bands = (shift + unit * x for x in (out, low, high))
    return np.where(table.exact, table.limit, complete), *bands
