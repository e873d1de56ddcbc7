"""
Sales with stock-outs
=====================

Sales are the smaller of demand and stock. In a week in which a product sold out, its sales only
say that demand was at least as large. 120 products, 52 weeks (simulated, so that the demand is
known).
"""

import numpy as np
from matplotlib import pyplot as plt

import declip

rng = np.random.default_rng(3)
n_products, n_weeks = 120, 52
week = np.arange(n_weeks)
season = np.stack([np.sin(2 * np.pi * week / 52), np.exp(-((week - 48) ** 2) / 8)])
level = rng.normal(3.5, 0.6, size=(n_products, 1))
pattern = rng.normal(0, 0.4, (n_products, 2)) @ season
demand = np.exp(level + pattern + 0.15 * rng.normal(size=(n_products, n_weeks)))

# The shop orders what is usual for the product, which in good weeks is too little.
stock = np.exp(level + 0.25 * rng.normal(size=demand.shape) + 0.25)
sales = np.minimum(demand, stock)
sold_out = demand >= stock
print(f"sold out in {sold_out.mean():.0%} of all weeks")

# %%
# The stock is the ceiling, a different one for each cell. Sales vary by factors: ``log=True``.
# One method is named, to keep the page quick; without it `restore` compares several.

result = declip.restore(sales, ceiling=stock, log=True, method="tobit", random_state=0)
print(result)
restored = result.table

# %%
# Lost sales of each product over the year: those that the stock did not allow.

lost = (demand - sales).sum(axis=1)
estimate = (restored - sales).sum(axis=1)
print(f"lost sales in all: {lost.sum():,.0f} in truth, {estimate.sum():,.0f} restored")

figure, axes = plt.subplots(1, 2, figsize=(9.5, 4), layout="constrained", width_ratios=(1.35, 1))
which = np.argmax(sold_out.sum(axis=1) * (lost < np.quantile(lost, 0.9)))
axes[0].plot(week, demand[which], color="0.5", lw=1, label="demand (truth)")
axes[0].plot(week, sales[which], color="#0072B2", drawstyle="steps-mid", label="sales")
out = sold_out[which]
low, high = result.lower[which, out], result.upper[which, out]
axes[0].vlines(week[out], low, high, color="#D55E00", alpha=0.35, lw=4)
axes[0].plot(
    week[out], restored[which, out], "o", ms=4, color="#D55E00", label="restored, with 90 % band"
)
axes[0].set(xlabel="week", ylabel="pieces")
axes[0].set_title("One product")
axes[0].legend(loc="upper left")

most = 1.05 * max(lost.max(), estimate.max())
axes[1].plot([0, most], [0, most], color="0.6", lw=1)
axes[1].plot(lost, estimate, "o", ms=4, color="#D55E00", alpha=0.6)
axes[1].set(xlabel="truth", ylabel="restored")
axes[1].set_title("Lost sales of each product, pieces a year")
plt.show()
