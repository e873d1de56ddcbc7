"""
A regression on exposures with several limits
=============================================

Three metals in the urine of 150 workers and a marker of kidney function, simulated. Two
laboratories measured them: one from 0.3 ug/L on, the other from 0.8. What lies below is reported
as ``<0.3`` or ``<0.8``. How does the marker change with lead?
"""

import numpy as np
import pandas as pd
from matplotlib import pyplot as plt
from scipy import stats

import declip

rng = np.random.default_rng(3)
n, names = 150, ["lead", "cadmium", "nickel"]
logs = rng.multivariate_normal([0, -0.2, 0.3], 0.4 + 0.6 * np.eye(3), n)
marker = 1 + 0.5 * logs[:, 0] + 0.8 * rng.standard_normal(n)
truth = pd.DataFrame(np.exp(logs), columns=names).assign(marker=marker)

floor = np.repeat(np.where(rng.random(n) < 0.5, 0.3, 0.8)[:, None], 4, axis=1)
floor[:, 3] = -np.inf  # the marker is always measured
seen = truth.clip(lower=floor)
print("below their limit:", (truth[names] < floor[:, :3]).mean().round(2).to_dict())

# %%
# The marker is part of the table that is restored: what is drawn below a limit must know of it.

r = declip.restore(seen, floor=floor, log=names, effort="quick")

# %%
# What the table says of each metal, and what is usual instead. The criterion lies below the higher
# limit: no count of measured values can answer it.

found = r.summary(["mean", "median"], criterion={"lead": 0.5, "cadmium": 0.5, "nickel": 0.5})
found.table[["column", "statistic", "estimate", "lower", "upper", "kaplan_meier", "half_limit"]]

# %%

fig, ax = plt.subplots(figsize=(7.5, 3.2), layout="constrained")
found.plot("share_above", ax)
true = (truth[names] > 0.5).mean()
ax.plot(true, [2, 1, 0], "|", color="black", ms=18, label="all values")
ax.legend(loc="upper left", fontsize=8)

# %%
# The regression over twenty imputations, and on half the limit as if it were data. The true slope
# is 0.5.

pooled = declip.pooled_fit(r, "marker ~ np.log(lead)", n=20)
half = seen.where(truth >= floor, 0.5 * floor)
halved = stats.linregress(np.log(half["lead"]), half["marker"])
all_values = stats.linregress(logs[:, 0], marker)
print(f"half the limit: {halved.slope:.2f} +- {halved.stderr:.2f}")
print(f"all values:     {all_values.slope:.2f} +- {all_values.stderr:.2f}")
pooled.table
