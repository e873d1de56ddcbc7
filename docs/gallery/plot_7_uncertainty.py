"""
Uncertainty and multiple imputation
===================================

A restored value is an estimate, and an analysis that takes it for a measurement is too sure of
itself. `BayesCMC` gives intervals for single cells, and complete tables drawn from what is
possible; each is analysed, and `pool` brings the results together. 442 patients, ten measurements
(real data, complete, with scikit-learn), two of them clipped by us.
"""

import numpy as np
from matplotlib import pyplot as plt
from sklearn.datasets import load_diabetes

from declip import BayesCMC, pool

data = load_diabetes(as_frame=True, scaled=False)
table = data.data.drop(columns="sex").assign(progression=data.target)
names = list(table.columns)
truth = table.to_numpy(float)
truth = (truth - truth.mean(axis=0)) / truth.std(axis=0)
ceiling = np.full(truth.shape[1], np.inf)
for name in ("bmi", "bp"):
    ceiling[names.index(name)] = np.quantile(truth[:, names.index(name)], 0.75)
seen = np.minimum(truth, ceiling)

model = BayesCMC(4, ceiling=ceiling, random_state=0)
restored = model.fit_transform(seen)
print("chains agree:", model.converged_)

# %%
# An interval for each clipped cell, from its limit to a quantile.

rows, cols = np.nonzero(seen >= ceiling)
low, high = model.predict_interval(rows, cols, coverage=0.9)
inside = (low <= truth[rows, cols]) & (truth[rows, cols] <= high)
print(f"{inside.mean():.0%} of the true values lie in their 90 % interval")

# %%
# A regression of the progression of the disease on body mass index and blood pressure. Twenty
# complete tables, twenty regressions, one result.


def regression(complete):
    """Coefficients of bmi and bp, with standard errors."""
    causes = complete[:, [names.index("bmi"), names.index("bp")]]
    X = np.column_stack([np.ones(len(complete)), causes])
    y = complete[:, names.index("progression")]
    coefficient, residual, *_ = np.linalg.lstsq(X, y)
    variance = residual[0] / (len(y) - X.shape[1]) * np.linalg.inv(X.T @ X)
    return coefficient[1:], np.sqrt(np.diag(variance))[1:]


tables = model.sample(20, random_state=0)
pooled = pool([regression(t) for t in tables], complete_df=len(truth) - 3)
ways = {
    "complete data (truth)": regression(truth),
    "left at the limit": regression(seen),
    "restored, once": regression(restored),
    "20 tables, pooled": (pooled.estimate, pooled.std_error),
}
for name, ((bmi, bp), error) in ways.items():
    print(f"{name:>22}: bmi {bmi:.2f} +- {error[0]:.2f}, bp {bp:.2f} +- {error[1]:.2f}")
print("share of the information that was hidden:", np.round(pooled.missing_information, 2))

# %%
# Left: intervals, sorted by their upper end; those that miss the truth are orange. Right: the
# coefficients, with 95 % confidence intervals. Limits in place of values make the coefficient of
# bmi too large; the pooled ones are close to the truth. That is no promise: the intervals hold
# fewer truths than they say, since the tail of bmi is heavier than that of a normal distribution.

figure, axes = plt.subplots(1, 2, figsize=(9.5, 4.2), layout="constrained", width_ratios=(1.2, 1))
order = np.argsort(high)[::2]
x = np.arange(len(order))
colour = np.where(inside[order], "#0072B2", "#D55E00")
axes[0].vlines(x, low[order], high[order], color=colour, lw=1.5, alpha=0.35)
axes[0].scatter(x, truth[rows, cols][order], s=8, c=colour, label="truth")
axes[0].set(xlabel="clipped cell (every other)", ylabel="standard deviations from the mean")
axes[0].set_title("90 % intervals of clipped cells")

for k, (name, colour) in enumerate((("bmi", "#0072B2"), ("bp", "#009E73"))):
    for i, (estimate, error) in enumerate(ways.values()):
        place = -i - 0.12 + 0.24 * k
        axes[1].errorbar(estimate[k], place, xerr=1.96 * error[k], fmt="o", color=colour)
    axes[1].axvline(ways["complete data (truth)"][0][k], color=colour, lw=1, alpha=0.4, label=name)
axes[1].set_yticks(-np.arange(len(ways)), list(ways))
axes[1].set(xlabel="coefficient", xlim=(0, None))
axes[1].set_title("Regression of progression")
axes[1].legend(loc="upper right")
plt.show()
