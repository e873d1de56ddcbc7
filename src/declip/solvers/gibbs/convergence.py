"""Whether chains agree: split R-hat and effective sample size of what was traced.

Gelman, Carlin, Stern, Dunson, Vehtari and Rubin, Bayesian Data Analysis (2013), Section 11.4-5.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

__all__ = ["effective_sample_size", "split_r_hat"]


def split_r_hat(traces: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return R-hat of each quantity, every chain split into halves.

    Parameters
    ----------
    traces : ndarray of shape (n_chains, n_samples, n_quantities)
        At least four samples. A quantity that never changes has an R-hat of 1.
    """
    return _variances(_halves(traces))[0]


def effective_sample_size(traces: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return how many independent samples each quantity's mean is worth.

    The autocorrelations are summed in pairs up to the first negative one, none counted larger than
    the one before it (Geyer's initial monotone sequence).
    """
    halves = _halves(traces)
    m, n, _ = halves.shape
    _, within, pooled = _variances(halves)
    centred = halves - halves.mean(axis=1, keepdims=True)
    spectrum = np.abs(np.fft.rfft(centred, 2 * n, axis=1)) ** 2
    autocovariance = np.fft.irfft(spectrum, 2 * n, axis=1)[:, :n].mean(axis=0) / n
    still = pooled <= 0
    safe = np.where(still, 1.0, pooled)
    rho = 1 - (within - autocovariance * n / (n - 1)) / safe
    rho[0] = 1
    pairs = rho[: n - n % 2].reshape(n // 2, 2, -1).sum(axis=1)
    positive = np.cumprod(pairs > 0, axis=0)
    tau = 2 * (np.minimum.accumulate(pairs, axis=0) * positive).sum(axis=0) - 1
    # Chains that swing are worth more than their length; no more than m n log10(m n).
    ess = m * n / np.maximum(tau, 1 / np.log10(max(m * n, 10)))
    return np.where(still, float(m * n), ess)


def _halves(traces: NDArray[np.float64]) -> NDArray[np.float64]:
    half = traces.shape[1] // 2
    return np.concatenate([traces[:, :half], traces[:, traces.shape[1] - half :]])


def _variances(halves: NDArray) -> tuple[NDArray, NDArray, NDArray]:
    """Return R-hat, the variance within the chains, and the pooled one."""
    n = halves.shape[1]
    within = halves.var(axis=1, ddof=1).mean(axis=0)
    pooled = (n - 1) / n * within + halves.mean(axis=1).var(axis=0, ddof=1)
    flat = within <= 0
    r_hat = np.sqrt(pooled / np.where(flat, 1.0, within))
    return np.where(flat, np.where(pooled > 0, np.inf, 1.0), r_hat), within, pooled
