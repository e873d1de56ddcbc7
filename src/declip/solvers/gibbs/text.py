"""A posterior in a few lines."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from declip.solvers.gibbs.posterior import Posterior

__all__ = ["summed_up"]

_LOOKED_AT = 20  # samples
_SHOWN = 5  # factors and edges


def summed_up(posterior: Posterior) -> str:
    """Return the table, the chains, factors, noise, and what else was sampled, a line each."""
    return "\n".join(_lines(posterior))


def _lines(posterior: Posterior) -> Iterator[str]:
    (n, m), model, samples = posterior.shape, posterior.model, posterior.samples
    kept = np.bincount(posterior.chain_of or np.zeros(len(samples), int))
    each = ", ".join(map(str, kept))
    yield f"Posterior of a {n} x {m} table"
    yield f"  samples kept    {len(samples)} ({len(kept)} chains: {each})"
    some = samples[:: max(1, len(samples) // _LOOKED_AT)]
    sizes = np.array([s.factors.singular_values() for s in some]) / np.sqrt(n * m)
    yield f"  factors         {model.rank}, of sizes {_range(sizes)} (standard deviations)"
    kind = f"Student t of {model.df:g} degrees" if model.df else "normal"
    yield f'  noise           "{model.noise}", {kind}'
    yield f"  noise scales    {_quartiles(posterior.noise_scales()[1])}"
    means = np.array([p.column_means() for p in posterior.by_chain()])
    if len(means) > 1:
        apart = np.ptp(means, axis=0) / posterior.units.scale
        yield f"  chains differ   in column means by at most {apart.max():.2g} standard deviations"
    if posterior.edges is not None:
        cuts = np.array([s.cuts[0] for s in samples if s.cuts is not None])
        shown = _range(cuts[:, np.isfinite(cuts[0])])
        sets = len(posterior.edges.scale_of)
        yield f"  edges           {shown}{f' (first of {sets} sets)' if sets > 1 else ''}"
    if any(model.missing):
        low, high = model.missing.count(1), model.missing.count(-1)
        yield f"  missing         for low values in {low} columns, for high ones in {high}"


def _range(drawn: NDArray) -> str:
    """Return the first means with their deviations."""
    shown = zip(drawn.mean(axis=0)[:_SHOWN], drawn.std(axis=0)[:_SHOWN], strict=True)
    return ", ".join(f"{m:.3g} +- {s:.1g}" for m, s in shown) + (
        ", ..." if drawn.shape[1] > _SHOWN else ""
    )


def _quartiles(values: NDArray) -> str:
    low, middle, high = np.quantile(values, (0.25, 0.5, 0.75))
    return f"{middle:.3g} in the median of the columns, quartiles {low:.3g} and {high:.3g}"
