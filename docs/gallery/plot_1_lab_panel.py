"""
A lab panel with detection limits for each plate
================================================

178 wines were analysed for 13 properties (real data, complete, with scikit-learn). Suppose that
they had been run on three plates, and that each plate had its own detection limit for each
analyte: the limit of a cell then depends on its row and its column.
"""

import numpy as np
import pandas as pd
from matplotlib import pyplot as plt
from sklearn.datasets import load_wine

import declip

truth = load_wine(as_frame=True).data
rng = np.random.default_rng(0)
plate = rng.integers(3, size=len(truth))

# %%
# Plate A sees almost everything, plate C loses two fifths of each analyte. What lies below the
# limit is reported as the limit.

share_hidden = np.array([0.05, 0.2, 0.4])
by_plate = truth.quantile(share_hidden).to_numpy()  # a row for each plate
floor = by_plate[plate]  # a limit for each cell
reported = truth.clip(lower=floor)
hidden = truth.to_numpy() < floor
print(f"{hidden.mean():.0%} of the cells are below their limit")

# %%
# Limits are given as they are: one for each cell. Concentrations vary by factors, so the work is
# done on logarithms. By default `restore` compares several methods; here one is named, to keep
# the page quick.

result = declip.restore(reported, floor=floor, log=True, method="bayes", random_state=0)
print(result)

# %%
# The result is a frame with the same labels. Here the truth is known, so that we can look at what
# was hidden: the restored values, and half the limit, which is what is often put in place of
# them.

restored = result.table.to_numpy()[hidden]
ratio = {
    "the limit": floor[hidden] / truth.to_numpy()[hidden],
    "half the limit": floor[hidden] / 2 / truth.to_numpy()[hidden],
    "restored": restored / truth.to_numpy()[hidden],
}
error = {name: np.sqrt(np.mean(np.log(r) ** 2)) for name, r in ratio.items()}
print(pd.Series(error, name="typical factor off").apply(np.exp).round(2))

figure, axes = plt.subplots(1, 2, figsize=(9, 4), layout="constrained", width_ratios=(1, 1.1))
ax = axes[0]
unit = truth.mean().to_numpy()[np.nonzero(hidden)[1]]
ends = np.array([0.1, 1.3])
ax.loglog(ends, ends, color="0.6", lw=1)
true = truth.to_numpy()[hidden] / unit
ax.loglog(true, floor[hidden] / unit, "x", color="0.6", ms=3, label="limit")
ax.loglog(true, restored / unit, "o", color="#D55E00", ms=3, alpha=0.6, label="restored")
ax.set(xlabel="truth, in units of the mean of the analyte", ylabel="in the table")
ax.set_title("Cells below their limit")
ax.legend()

ax = axes[1]
bins = np.linspace(-2, 2.5, 46)
for (name, r), colour in zip(ratio.items(), ("0.6", "#CC79A7", "#D55E00"), strict=True):
    ax.hist(np.log2(r), bins, histtype="step", lw=2, color=colour, label=name)
ax.axvline(0, color="0.8", lw=1)
ax.set_xticks([-2, -1, 0, 1, 2], ["a quarter", "half", "right", "twice", "4 times"])
ax.set(yticks=[])
ax.set_title("Value in the table over the truth")
ax.legend()
plt.show()
