"""
The illustration of the paper
=============================

A matrix of rank 2 with a ceiling, after Figure 2 of `Teshima et al. (AAAI 2019)
<https://doi.org/10.1609/aaai.v33i01.33015151>`_: ordinary completion, which takes clipped cells
at face value or leaves them out, beside clipped completion.
"""

import numpy as np
from matplotlib import pyplot as plt

from declip import FroCMC
from declip.datasets import make_clipped_low_rank

data = make_clipped_low_rank(40, 60, 2, ceiling=8, integer=False, observed=0.8, random_state=0)
print(f"{data.clip_rate:.0%} of the cells lie above the ceiling")

# %%
# The same estimator, told to treat clipped cells in three ways.

models = {
    "at face value (MC)": FroCMC(
        2, ceiling=8, clipped="value", alpha=1e-3, random_state=0, scale="none"
    ),
    "left out (MCi)": FroCMC(
        2, ceiling=8, clipped="missing", alpha=1e-3, random_state=0, scale="none"
    ),
    "at least the ceiling (CMC)": FroCMC(
        2, ceiling=8, clipped="hinge", alpha=1e-3, random_state=0, scale="none"
    ),
}
found = {name: model.fit(data.table).reconstruct() for name, model in models.items()}
for name, X in found.items():
    error = np.linalg.norm(X - data.truth) / np.linalg.norm(data.truth)
    print(f"{name:>26}: relative error {error:.4f}")

# %%
# Rows and columns are sorted to show the pattern. Below: every cell against the truth.

U, _, Vt = np.linalg.svd(data.truth)
order = np.ix_(np.argsort(U[:, 1]), np.argsort(Vt[1]))
pictures = {"truth": data.truth, "what is seen": data.table, **found}
figure, axes = plt.subplots(2, 5, figsize=(12, 5.2), layout="constrained")
for ax, (name, values) in zip(axes[0], pictures.items(), strict=True):
    ax.imshow(values[order], vmin=0, vmax=data.truth.max(), aspect="auto", interpolation="none")
    ax.set(xticks=[], yticks=[])
    ax.set_title(name, fontsize=9.5)
ends = (0, 1.05 * data.truth.max())
for ax, values in zip(axes[1], pictures.values(), strict=True):
    ax.plot(ends, ends, color="0.6", lw=1)
    ax.plot(data.truth, values, ".", ms=1.5, color="#D55E00", alpha=0.4)
    ax.set(xlim=ends, ylim=ends, xlabel="truth")
plt.show()
