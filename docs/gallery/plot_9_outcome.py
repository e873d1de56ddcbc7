"""
Outcome in the imputation
=========================

A model asks how an outcome depends on a biomarker, half of whose values are below the limit of
detection. Imputations that do not know of the outcome make the two less related than they are. So
the outcome goes into the imputation, as a feature of the rows, and then into the model. A simulated
study: 1,000 persons, 5 markers, a case the likelier the higher the first marker.
"""

import warnings

import numpy as np
import statsmodels.api as sm
from matplotlib import pyplot as plt

import declip

warnings.simplefilter("ignore")
rng = np.random.default_rng(0)
truth = 0.5 * rng.normal(size=(1000, 1)) + 0.9 * rng.normal(size=(1000, 5))  # logarithms
case = rng.random(1000) < 1 / (1 + np.exp(-1.2 * truth[:, 0]))
limit = np.quantile(truth, 0.5, axis=0)
seen = np.maximum(truth, limit)

# %%
# The analysis of one complete table: a logistic regression of the case on the first marker. The
# slope that the study was made with is 1.2.


def slope(table):
    """Return the slope and its variance."""
    found = sm.Logit(case, sm.add_constant(np.asarray(table)[:, 0])).fit(disp=0)
    return {"marker": found.params[1]}, found.cov_params()[1:, 1:]


# %%
# Held-out cells cannot tell that the outcome matters: of a person with four other markers it says
# little more. But the analysis to come asks for just that, so that the method that uses what is
# known is asked for by its name. In the command it is ``--covariates case --method bayes+known``.

quick = {"floor": limit, "effort": "quick"}
left_out = declip.restore(seen, method="bayes", **quick)
put_in = declip.restore(seen, method="bayes+known", row_features={"case": case * 1.0}, **quick)

estimates = {}
half = np.where(seen > limit, seen, limit - np.log(2))  # half the limit, in logarithms
for way, table in {"complete table": truth, "half the limit": half}.items():
    (found, variance) = slope(table)
    estimates[way] = found["marker"], 1.96 * np.sqrt(variance[0, 0])
for way, r in {"outcome left out": left_out, "outcome in it": put_in}.items():
    row = declip.pooled_fit(r, slope, n=20).table
    estimates[way] = row["estimate"][0], row["upper"][0] - row["estimate"][0]
for way, (value, reach) in estimates.items():
    print(f"{way:<18}{value:.2f} +- {reach:.2f}")

# %%
# Left: the slopes with their 95 % intervals; half the limit comes close by chance, being near the
# mean of what is below it here. Right: why. Below the limit cases lie higher than others, which
# only imputations that know who is a case can have.

fig, (left, right) = plt.subplots(1, 2, figsize=(10, 3.8), layout="constrained")
for k, (value, reach) in enumerate(estimates.values()):
    left.errorbar(value, k, xerr=reach, fmt="o", color="C0", capsize=3)
left.axvline(1.2, color="black", lw=0.8, ls="--")
left.set(yticks=range(4), yticklabels=list(estimates), xlabel="slope", title="Logistic regression")
left.invert_yaxis()

below = truth[:, 0] < limit[0]
drawn = {
    "truth": [truth],
    "outcome left out": left_out.sample(20),
    "outcome in it": put_in.sample(20),
}
gap = {
    way: [t[below & case, 0].mean() - t[below & ~case, 0].mean() for t in tables]
    for way, tables in drawn.items()
}
for k, differences in enumerate(gap.values()):
    right.plot(differences, np.full(len(differences), k), "o", alpha=0.4, ms=5)
right.set(yticks=range(3), yticklabels=list(gap), title="Cells below the limit, in each table")
right.set(xlabel="mean of cases less mean of others")
right.invert_yaxis()
plt.show()
assert np.mean(gap["outcome in it"]) > np.mean(gap["outcome left out"])
