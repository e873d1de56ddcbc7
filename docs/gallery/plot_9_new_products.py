"""
New products by category
========================

What will a product sell that was never sold? Its category and its price say much. With
``row_features=`` the factors of a row have a mean that is linear in what is known of it, so that a
row may be empty, and moves to its own cells as they come in. A simulated table: 300 products by 12
shops, where sales stop at the stock of a shop.
"""

import warnings

import numpy as np
import pandas as pd
from matplotlib import pyplot as plt
from sklearn.base import clone

from declip import BayesCMC

warnings.simplefilter("ignore", UserWarning)
rng = np.random.default_rng(1)
kinds = {"tea": 2.5, "juice": 3.5, "soap": 2.0, "bread": 4.0}
products = pd.DataFrame({"kind": rng.choice(list(kinds), 300), "price": rng.uniform(1, 5, 300)})
taste = rng.normal(size=(4, 12)) * 0.4  # how shops differ in what they sell
level = products.kind.map(kinds).to_numpy() - 0.3 * products.price.to_numpy()
truth = level[:, None] + taste[products.kind.map(list(kinds).index).to_numpy()]
truth += 0.5 * rng.normal(size=(300, 1)) + 0.3 * rng.normal(size=(300, 12))  # logarithms of sales
stock = np.quantile(truth, 0.8, axis=0)
sales = np.minimum(truth, stock)

# %%
# The last 60 products are new: of them nothing but kind and price is known.

old, new = slice(0, 240), slice(240, 300)
model = BayesCMC(ceiling=stock, chains=1, n_samples=200, burn_in=100, random_state=0)
model.fit(sales[old], row_features=products[old])
empty = np.full((60, 12), np.nan)
launch = model.fold_in(empty, row_features=products[new])
at = np.indices(empty.shape).reshape(2, -1)
low, high = launch.predict_interval(*at)
wanted = truth[new].ravel()
print(f"bands of 90 % hold {np.mean((low <= wanted) & (wanted <= high)):.0%}")

# %%
# Then the shops sell it, one after the other: the error of the shops that are still to come.


def error(fitted, shops, **known):
    """Return the error in the shops to come, after some have sold the new products."""
    first = empty.copy()
    first[:, :shops] = sales[new][:, :shops]
    return np.sqrt(np.mean((fitted.predict(first, **known) - truth[new])[:, 6:] ** 2))


plain = clone(model).fit(sales[old])
steps = np.arange(0, 6)
informed = [error(model, k, row_features=products[new]) for k in steps]
blind = [error(plain, k) for k in steps]
assert informed[0] < 0.7 * blind[0]

fig, (left, right) = plt.subplots(1, 2, figsize=(10, 4.2), layout="constrained")
mean = launch.predict(*at)
left.vlines(wanted, low, high, color="#56b4e9", alpha=0.25, lw=1)
for kind in kinds:
    which = np.repeat(products.kind[new].to_numpy() == kind, 12)
    left.plot(wanted[which], mean[which], ".", ms=4, label=kind)
left.plot(*[[wanted.min(), wanted.max()]] * 2, color="black", lw=0.8)
left.set(xlabel="demand (logarithm)", ylabel="expected, before any sale", title="New products")
left.legend(frameon=False)
right.plot(steps, blind, "o-", color="#999999", label="nothing known")
right.plot(steps, informed, "o-", color="#0072b2", label="kind and price known")
right.set(xlabel="shops that have sold it", ylabel="error in the shops to come", ylim=(0, None))
right.legend(frameon=False)
plt.show()
