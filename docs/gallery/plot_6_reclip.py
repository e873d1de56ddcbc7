"""
Choose and check a model with the reclip test
=============================================

Beyond the limit of a real table nothing can be checked. But some of its exact values can be
hidden behind a lower limit, restored, and compared with what they were. Does this test choose the
right model? Here the truth beyond the real limit is known, too: 569 tumours, 30 measurements
(real data, complete, with scikit-learn), clipped by us.
"""

import warnings

import numpy as np
from matplotlib import pyplot as plt
from sklearn.datasets import load_breast_cancer

from declip import FroCMC, reclip_test

truth = np.log1p(load_breast_cancer().data)
truth = (truth - truth.mean(axis=0)) / truth.std(axis=0)
ceiling = np.quantile(truth, 0.8, axis=0)
seen = np.minimum(truth, ceiling)
hidden = truth > ceiling

# %%
# Candidates: clipped cells dropped, taken at face value, and by the two losses.

candidates = {
    "missing": {"clipped": "missing"},
    "value": {"clipped": "value"},
    "hinge": {"clipped": "hinge"},
    "tobit, rank 1": {"clipped": "tobit", "n_components": 1},
    "tobit, rank 2": {"clipped": "tobit", "n_components": 2},
    "tobit, rank 6": {"clipped": "tobit"},
}


def error(restored, true, limit):
    """Root mean squared error, where leaving cells at their limit is 1."""
    return np.sqrt(np.mean((restored - true) ** 2) / np.mean((limit - true) ** 2))


# %%
# For each: the error in the test, and the error beyond the real limit, which only we can know. A
# few tumours are clipped almost throughout; `fit` names them in a warning, which is left out here.

warnings.simplefilter("ignore", UserWarning)
tested, actual = {}, {}
for name, settings in candidates.items():
    model = FroCMC(**{"n_components": 6, **settings}, ceiling=ceiling, alpha=2, random_state=0)
    found = reclip_test(seen, ceiling, estimator=model, quantiles=[0.7], scale="none")
    tested[name] = 1 - found.gain
    restored = model.fit_transform(seen)
    limits = np.broadcast_to(ceiling, truth.shape)
    actual[name] = error(restored[hidden], truth[hidden], limits[hidden])
    print(f"{name:>14}: in the test {tested[name]:.2f}, beyond the real limit {actual[name]:.2f}")

# %%
# The test ranks the models much as the truth does, so it can choose between them. But it is too
# hopeful of how well the chosen one does: it judges values that lie within the table, and beyond
# the real limit the way is longer.

figure, axes = plt.subplots(1, 2, figsize=(9.5, 4.2), layout="constrained")
ends = (0.3, 1.15)
axes[0].plot(ends, ends, color="0.7", lw=1)
for name in candidates:
    axes[0].plot(tested[name], actual[name], "o", color="#D55E00")
    above = name in ("value", "tobit, rank 1")
    where = {"xytext": (0, 7 if above else -14), "textcoords": "offset points", "ha": "center"}
    axes[0].annotate(name, (tested[name], actual[name]), **where)
axes[0].set(xlim=ends, ylim=ends)
axes[0].set(xlabel="error in the reclip test", ylabel="error beyond the real limit")
axes[0].set_title("1 is leaving cells at their limit")

found.plot(ax=axes[1])
axes[1].set_title("The test of the last model")
axes[1].set_xlabel("true distance beyond the moved limit, in sd")
plt.show()
