"""
Missing because low: intensities
================================

In proteomics and metabolomics what is too low is not written as ``<0.5``; it is simply missing,
mostly but not always. Taken as missing at random it is filled too high, and a protein that is
absent from one condition shows no difference between the two. With ``missing="low"`` a detection
curve is fitted together with the cells. A simulated table: 250 proteins, 5 + 5 samples, log2
intensities; a quarter of the proteins differs by 2 between the conditions.
"""

import warnings

import numpy as np
from matplotlib import pyplot as plt
from scipy.special import ndtr, ndtri
from scipy.stats import ttest_ind

from declip import BayesCMC, detect_limits, pool

warnings.simplefilter("ignore", UserWarning)
rng = np.random.default_rng(2)
n, treated = 250, np.arange(10) >= 5
effect = 2.0 * (rng.random(n) < 0.25) * rng.choice([-1, 1], n)
truth = 20 + 1.8 * rng.standard_normal((n, 1)) + 0.5 * rng.standard_normal((n, 10))
truth += np.outer(effect, treated - 0.5)
seen = rng.random(truth.shape) < 0.98 * ndtr((truth - 18.5) / 0.6)
some = seen.any(axis=1)
truth, effect, table = truth[some], effect[some], np.where(seen, truth, np.nan)[some]

# %%
# ``detect_limits`` looks at where cells are missing, and has a picture of it.

trend = detect_limits(table).missing
print(trend)
trend.plot()

# %%
# Four ways to fill the table: at random, and three that take missing as low. MinProb draws numbers
# about the first percentile of a sample, QRILC from the lower part of a normal distribution that is
# fitted to the quantiles of a sample. Neither knows which protein it is.

missing = np.isnan(table)


def min_prob():
    """Draw about the first percentile of each sample."""
    low, sd = np.nanquantile(table, 0.01, axis=0), np.nanmedian(np.nanstd(table, axis=1))
    return np.where(missing, low + sd * rng.standard_normal(table.shape), table)


def qrilc():
    """Draw from the lower part of a normal distribution for each sample."""
    filled = table.copy()
    for j, share in enumerate(missing.mean(axis=0)):
        levels = np.linspace(share + 0.01, 0.99, 100)
        values = np.nanquantile(table[:, j], (levels - share) / (1 - share))
        sd, mean = np.polyfit(ndtri(levels), values, 1)
        filled[missing[:, j], j] = mean + sd * ndtri(share * rng.random(missing[:, j].sum()))
    return filled


model = BayesCMC(4, missing="low", chains=1, random_state=0)
ways = {
    "at random": BayesCMC(4, chains=1, random_state=0).fit_transform(table),
    "MinProb": min_prob(),
    "QRILC": qrilc(),
    'missing="low"': model.fit_transform(table),
}
curve = model.detection_
print(f"limit {np.mean(curve['limit']):.1f}, width {np.mean(curve['width']):.2f}, ", end="")
print(f"lost by chance {curve['lost']:.1%}")

# %%
# What matters: the error of the filled cells, the bias of the differences between conditions, and
# what a t-test finds. A table filled with expected values is too sure of itself (false alarms);
# twenty drawn ones, pooled, are not. They find more than the seen cells alone, though here less
# than MinProb and QRILC, whose numbers the test takes for measurements: the model does not know of
# the conditions, and draws what it fills towards the level of the protein.

hit = missing.any(axis=1)
print(f"{'':15} {'error':>6} {'bias':>6} {'found':>6} {'false':>6}")
for name, filled in ways.items():
    error = np.sqrt(np.mean((filled - truth)[missing] ** 2))
    difference = filled[:, treated].mean(axis=1) - filled[:, ~treated].mean(axis=1)
    bias = np.mean(((difference - effect) * np.sign(effect))[hit & (effect != 0)])
    found = ttest_ind(filled[:, treated], filled[:, ~treated], axis=1).pvalue < 0.05
    rates = found[effect != 0].mean(), found[effect == 0].mean()
    print(f"{name:15} {error:6.2f} {bias:+6.2f} {rates[0]:6.0%} {rates[1]:6.0%}")


def difference_of(filled):
    """Return the difference of each protein, with its standard error."""
    parts = filled[:, treated], filled[:, ~treated]
    variance = sum(part.var(axis=1, ddof=1) for part in parts) / 5
    return parts[0].mean(axis=1) - parts[1].mean(axis=1), np.sqrt(variance)


pooled = pool([difference_of(t) for t in model.sample(20, random_state=0)], complete_df=8)
low, high = pooled.interval(0.95)
found = (low > 0) | (high < 0)
print(f"twenty tables, pooled: found {found[effect != 0].mean():.0%}", end=", ")
print(f"false {found[effect == 0].mean():.0%}")
halves = table[:, treated], table[:, ~treated]
with np.errstate(all="ignore"):
    found = ttest_ind(*halves, axis=1, nan_policy="omit").pvalue < 0.05
print(f"seen cells alone:      found {found[effect != 0].mean():.0%}", end=", ")
print(f"false {found[effect == 0].mean():.0%}")

# %%
# Filled against true values. At random nearly everything is too high; MinProb puts all cells at one
# height, QRILC scatters them without regard to their protein.

figure, axes = plt.subplots(1, 4, figsize=(12, 3.2), sharey=True, layout="constrained")
ends = truth.min(), truth.max()
for ax, (name, filled) in zip(axes, ways.items(), strict=True):
    ax.plot(ends, ends, color="0.7", lw=1)
    ax.plot(truth[missing], filled[missing], "o", ms=2.5, alpha=0.4, mec="none", color="#0072B2")
    ax.set_title(name, loc="left", fontsize=11)
    ax.set_xlabel("true value")
    ax.spines[["top", "right"]].set_visible(False)
axes[0].set_ylabel("filled in")
plt.show()
