"""
Star ratings
============

1,000 users have rated some of 400 items with one to five stars (simulated, so that the truth is
known). Whoever would give six gives five. `FroCMC` works on the ratings alone, as a sparse
matrix; `EntrySearchCV` finds its parameters.
"""

import numpy as np
from matplotlib import pyplot as plt
from scipy import sparse

from declip import EntrySearchCV, EntryShuffleSplit, FroCMC

rng = np.random.default_rng(0)
n_users, n_items, rank = 1000, 400, 3
taste = rng.normal(size=(n_users, rank)) @ rng.normal(size=(rank, n_items)) / np.sqrt(rank)
offsets = 0.4 * rng.normal(size=(n_users, 1)) + 0.5 * rng.normal(size=n_items)
liking = 3.7 + offsets + 0.8 * taste
opinion = liking + 0.6 * rng.normal(size=liking.shape)
stars = np.clip(np.rint(opinion), 1, 5)

rated = rng.random(stars.shape) < 0.06
rows, cols = np.nonzero(rated)
ratings = sparse.csr_array((stars[rows, cols], (rows, cols)), shape=stars.shape)
print(f"{ratings.nnz:,} ratings, {np.mean(ratings.data == 5):.0%} of them five stars")

# %%
# A rating is rounded: five stars mean "4.5 or more". So the ceiling is 4.5, and ratings of 5 are
# put there. The penalty and the number of factors are chosen on held-out ratings (folds of cells,
# not of users), by how well five stars are told from fewer.

capped = ratings.copy()
capped.data = np.minimum(ratings.data, 4.5)
model = FroCMC(ceiling=4.5, clipped="tobit", bias=True, alpha_bias=2.0, random_state=0)
grid = {"n_components": [2, 3, 5], "alpha": [1, 2, 4, 8]}
cv = EntryShuffleSplit(1, test_size=0.1, random_state=0)
search = EntrySearchCV(model, grid, cv=cv, scoring="at_ceiling_average_precision").fit(capped)
print(search.best_params_, f"average precision {search.best_score_:.3f}")

# %%
# The same search for a model that takes five stars for five, to compare with.

plain = FroCMC(ceiling=5, clipped="value", bias=True, alpha_bias=2.0, random_state=0)
usual = EntrySearchCV(plain, grid, cv=cv, scoring="at_ceiling_average_precision").fit(ratings)
print(usual.best_params_, f"average precision {usual.best_score_:.3f}")

# %%
# Who would like what they have not rated? Here the truth is known of the other cells.

others = np.argwhere(~rated)
i, j = others[rng.choice(len(others), 20_000, replace=False)].T
true = liking[i, j]
estimate = {"five stars: 4.5 or more": search.predict(i, j), "five stars: 5": usual.predict(i, j)}
for name, found in estimate.items():
    error = np.sqrt(np.mean((found - true)[true > 5] ** 2))
    print(f"{name:>24}: error {error:.2f} stars where the true liking is above 5")

figure, axes = plt.subplots(1, 2, figsize=(9, 4), layout="constrained")
results = search.cv_results_
for k, colour in zip(grid["n_components"], ("#0072B2", "#009E73", "#CC79A7"), strict=True):
    mine = results["param_n_components"] == k
    alpha, score = results["param_alpha"][mine].astype(float), results["mean_test_score"][mine]
    axes[0].plot(alpha, score, "o-", color=colour, label=f"{k} factors")
axes[0].set_xscale("log", base=2)
axes[0].set_xticks(grid["alpha"], grid["alpha"])
axes[0].set(xlabel="alpha", ylabel="average precision, held-out ratings")
axes[0].set_title("The search")
axes[0].legend()

bins = np.linspace(1.5, 6.5, 21)
middle = 0.5 * (bins[1:] + bins[:-1])
for (name, found), colour in zip(estimate.items(), ("#D55E00", "0.5"), strict=True):
    place = np.digitize(true, bins) - 1
    mean = [found[place == b].mean() if np.sum(place == b) > 20 else np.nan for b in range(20)]
    axes[1].plot(middle, mean, "o-", ms=4, color=colour, label=name)
axes[1].plot([1.5, 6.5], [1.5, 6.5], color="0.8", lw=1, zorder=0)
axes[1].axhline(5, color="0.8", lw=1, ls="--", zorder=0)
axes[1].set(xlabel="true liking", ylabel="mean estimate")
axes[1].set_title("Pairs that were never rated")
axes[1].legend()
plt.show()
