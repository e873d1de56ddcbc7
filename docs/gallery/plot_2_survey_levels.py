"""
A survey in levels, against ceilings on numbers
===============================================

300 people answer 12 questions with *never*, *rarely*, *sometimes*, *often* or *always* (simulated,
so that the truth is known). The words are in order, but not at even distances: *rarely* covers a
narrow range here, and *sometimes* a wide one. Taken for the numbers 1 to 5, the ends of the scale
can be treated as limits; taken for levels, the distances are found as well.
"""

import numpy as np
import pandas as pd
from matplotlib import pyplot as plt
from scipy.stats import norm

from declip import BayesCMC
from declip.metrics import level_log_score, ranked_probability_score

rng = np.random.default_rng(4)
words = ["never", "rarely", "sometimes", "often", "always"]
edges = np.array([-1.6, -1.2, 0.5, 1.1])
habit = rng.normal(size=(300, 2)) @ rng.normal(0.8, 0.4, size=(2, 12))
told = np.digitize(habit + 0.7 * rng.normal(size=habit.shape), edges)  # 0 to 4
seen = rng.random(told.shape) < 0.8
rows, cols = np.nonzero(~seen)  # questions that were not asked

# %%
# As words: ordered categories of a frame, of which `BayesCMC` samples the edges.

answers = pd.DataFrame(np.where(seen, np.array(words)[told], None))
scale = pd.CategoricalDtype(words, ordered=True)
settings = {"n_samples": 150, "burn_in": 100, "random_state": 0}
levels = BayesCMC(4, levels="shared", **settings).fit(answers.astype(scale))
print("edges found ", np.round(levels.edges_[0], 2))

# %%
# As numbers: whole ones, and limits half a step inside the ends of the scale.

numbers = np.where(seen, np.clip(told + 1.0, 1.5, 4.5), np.nan)
ceilings = BayesCMC(4, floor=1.5, ceiling=4.5, **settings).fit(numbers)
above = np.column_stack([ceilings.probability_above(rows, cols, k + 0.5) for k in range(1, 5)])

# %%
# What would the answers have been that were not given? Each method tells probabilities; the score
# of those of the levels is better.

truth, names = told[rows, cols], np.arange(5)
by_numbers = -np.diff(above, axis=1, prepend=1.0, append=0.0)
by_levels = levels.predict_levels(rows, cols)
for name, found in (("ceilings on numbers", by_numbers), ("levels", by_levels)):
    log, ranked = (
        score(truth, np.maximum(found, 1e-9) / np.maximum(found, 1e-9).sum(1, keepdims=True), names)
        for score in (level_log_score, ranked_probability_score)
    )
    print(f"{name:>20}: log score {log:.3f}, ranked probability score {ranked:.3f}")

# %%
# Left, where the edges were found beside the true ones (both brought to the same place and width).
# Right, how often an answer came that was given a probability: on the diagonal if it is to be
# trusted.

figure, (left, right) = plt.subplots(1, 2, figsize=(9, 4), layout="constrained")
at = np.linspace(-3, 3, 200)
left.fill_between(at, norm.pdf(at) * 2.0, color="0.9")
found = np.mean([s.cuts[0, 1:-1] for s in levels.posterior_.samples], axis=0)
found = (found - found.mean()) / found.std() * edges.std() + edges.mean()
for k, (true, one) in enumerate(zip(edges, found, strict=True)):
    left.axvline(true, color="0.4", lw=3, alpha=0.5, label="true" if k == 0 else None)
    left.axvline(one, color="#D55E00", lw=1.2, label="found" if k == 0 else None)
middles = np.concatenate([[-2.3], 0.5 * (edges[1:] + edges[:-1]), [1.9]])
for place, word in zip(middles, words, strict=True):
    left.text(place, 0.9, word, rotation=90, ha="center", va="top", color="0.3")
left.set(title="Edges between the answers", yticks=[], ylim=(0, 0.95), xlim=(-3, 3))
left.legend(loc="lower right")

for name, chances, color in (
    ("ceilings on numbers", by_numbers, "#0072B2"),
    ("levels", by_levels, "#D55E00"),
):
    part = np.minimum((8 * chances).astype(int), 7)
    came = (truth[:, None] == names).astype(float)
    size = np.bincount(part.ravel(), minlength=8)
    x, y = (np.bincount(part.ravel(), v.ravel(), 8) / np.maximum(size, 1) for v in (chances, came))
    right.plot(x[size > 20], y[size > 20], "o-", ms=4, color=color, label=name)
right.plot([0, 1], [0, 1], color="0.6", lw=1, zorder=0)
right.set(title="Calibration", xlabel="probability told", ylabel="share that came")
right.legend()
plt.show()
