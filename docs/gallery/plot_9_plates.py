"""
Batches on plates
=================

Samples are measured on plates, and plates differ: each shifts each analyte a little, and each has
limits of its own. A fit that does not know of plates takes the shifts for structure. With
``groups=`` every plate has an offset in each column, drawn to 0 by how much plates differ at all.
A simulated panel: 12 plates of 20 samples, 12 analytes, shifts of one standard deviation.
"""

import warnings

import numpy as np
from matplotlib import pyplot as plt

from declip import BayesCMC

warnings.simplefilter("ignore", UserWarning)
rng = np.random.default_rng(0)
n, m, n_plates = 240, 12, 12
plate = np.arange(n) % n_plates
values = rng.normal(size=(n, 2)) @ rng.normal(size=(2, m)) / np.sqrt(2)
values += 0.5 * rng.normal(size=(n, m))
shift = values.std(axis=0) * rng.normal(size=(n_plates, m))
truth = values + shift[plate]

# %%
# The upper limit of quantification of each plate and analyte hides 5 to 40 % of its cells.

share = rng.uniform(0.6, 0.95, (n_plates, m))
limit = np.array(
    [[np.quantile(truth[plate == p, j], share[p, j]) for j in range(m)] for p in range(n_plates)]
)[plate]
seen, hidden = np.minimum(truth, limit), truth > limit
print(f"{hidden.mean():.0%} of the cells are at a limit")

# %%
# Two fits that differ in ``groups=`` alone.

model = BayesCMC(chains=1, n_samples=150, burn_in=100, random_state=0, ceiling=limit)
found = {
    "at the limit": seen,
    "without groups": model.fit_transform(seen),
    "with groups": model.fit_transform(seen, groups=plate),
}
error = {way: np.sqrt(np.mean((x - truth)[hidden] ** 2)) for way, x in found.items()}
for way, e in error.items():
    print(f"{way:<16}{e:.2f}")
assert error["with groups"] < 0.8 * error["without groups"]

# %%
# Left: cells that were at a limit. Right: the mean of one analyte on each plate, which is what
# differs between plates.

fig, (left, right) = plt.subplots(1, 2, figsize=(10, 4.2), layout="constrained")
for way, colour in (("without groups", "#999999"), ("with groups", "#0072b2")):
    left.plot(truth[hidden], found[way][hidden], ".", color=colour, ms=3, label=way)
ends = truth[hidden].min(), truth[hidden].max()
left.plot(ends, ends, color="black", lw=0.8)
left.set(xlabel="truth", ylabel="restored", title="Cells at a limit")
left.legend(frameon=False, markerscale=3)

column = int(np.argmax(np.abs(shift).max(axis=0)))
means = {
    way: [x[plate == p, column].mean() for p in range(n_plates)]
    for way, x in {"truth": truth, **found}.items()
}
order = np.argsort(means["truth"])
for way, style in {"truth": "k-", "at the limit": "C1.--", "with groups": "C0o"}.items():
    right.plot(np.array(means[way])[order], style, ms=5, lw=1, label=way)
right.set(xlabel="plate, in the order of the truth", ylabel="mean", title=f"Analyte {column + 1}")
right.legend(frameon=False)
plt.show()
