"""
Lost sales, with weekdays and drift
===================================

From the file of a shop, one line for each product and day, to the sales that it lost for want of
stock, and to the demand of the next week. 30 products, eight weeks (simulated, so that the demand
is known). Days follow each other: demand drifts, and weekdays return. ``order=`` tells it.
"""

import numpy as np
import pandas as pd
from matplotlib import pyplot as plt

from declip import BayesCMC, Intervals, from_scale

rng = np.random.default_rng(8)
n_products, n_days = 30, 63
level, week = np.exp(rng.normal(2.5, 0.7, n_products)), np.exp(0.3 * rng.normal(size=7))
drift = np.exp(rng.normal(0, 0.25, n_products)[:, None] * np.linspace(-1, 1, n_days))
demand = rng.poisson(level[:, None] * week[np.arange(n_days) % 7] * drift)
usual = np.round(level * rng.uniform(0.9, 1.6, n_products))[:, None]
stock = np.maximum(usual * rng.uniform(0.8, 1.3, demand.shape), 1).round()

file = pd.DataFrame(
    {
        "product": np.repeat([f"product {i:02d}" for i in range(n_products)], n_days),
        "day": np.tile(np.arange(n_days), n_products),
        "sold": np.minimum(demand, stock).ravel(),
        "stock": stock.ravel(),
    }
)
file.loc[file["day"] >= 56, "sold"] = np.nan  # the week to come: lines without a value
print(file.iloc[[0, 1, 2, -1]].to_string(index=False))

# %%
# The stock is the ceiling of each cell. Sales are counts, with zeros: on the scale of their square
# roots the noise of a count is the same at any size. ``counts=True`` says that selling all of a
# stock of 5 means a demand above 4.5, and ``noise="global"`` that counts share their noise here.

sales = Intervals.from_long(file, "product", "day", "sold", ceiling="stock")
print(sales)
model = BayesCMC(
    noise="global", order="columns", period=7, n_samples=200, burn_in=200, random_state=0
)
model.fit(sales.on_scale("sqrt", counts=True))

# %%
# Tables drawn from the posterior have what was sold where it is the demand, and draws of the demand
# where the stock ran out, or the day is still to come. Whatever is computed from each of them, its
# quantiles are a band: here the lost sales of each product.

tables = from_scale(model.sample(200, random_state=0), "sqrt").round()
low, high = np.quantile(tables, [0.05, 0.95], axis=0)

sold = np.minimum(demand, stock)
past = np.arange(n_days) < 56
lost = (tables - sold)[:, :, past].sum(axis=2)
summary = pd.DataFrame(
    {
        "lost": lost.mean(axis=0),
        "from": np.quantile(lost, 0.05, axis=0),
        "to": np.quantile(lost, 0.95, axis=0),
        "truth": (demand - sold)[:, past].sum(axis=1),
    },
    index=sales.row_labels,
)
print(summary.sort_values("lost", ascending=False).head(5).round(0).to_string())
inside = summary["truth"].between(summary["from"], summary["to"])
print(f"the band holds the truth for {inside.sum()} of {n_products} products")

# %%
# The week to come, beside the mean of the same weekday of what was sold.

ahead = tables.mean(axis=0)[:, ~past]
seasonal = sold[:, past].reshape(n_products, 8, 7).mean(axis=1)


def error(forecast):
    return np.sqrt(np.mean((forecast - demand[:, ~past]) ** 2))


print(f"error of the forecast {error(ahead):.2f}, of the mean of the weekday {error(seasonal):.2f}")

# %%
# A product that ran out often, and the lost sales of all.

figure, axes = plt.subplots(1, 2, figsize=(9.5, 4), layout="constrained", width_ratios=(1.6, 1))
which, day = int(np.argsort(summary["lost"].to_numpy())[-4]), np.arange(n_days)
axes[0].fill_between(
    day, low[which], high[which], step="mid", color="#D55E00", alpha=0.3, lw=0,
    label="demand, 90 % band",
)  # fmt: skip
axes[0].plot(day, demand[which], color="0.4", lw=1, label="demand (truth)")
axes[0].plot(day[past], sold[which, past], color="#0072B2", drawstyle="steps-mid", label="sold")
axes[0].axvline(55.5, color="0.6", lw=1, ls=":")
beside = axes[0].get_xaxis_transform()
axes[0].text(56.3, 0.97, "next week", color="0.4", va="top", rotation=90, transform=beside)
axes[0].set(xlabel="day", ylabel="pieces", title=str(sales.row_labels[which]))
axes[0].set_ylim(0, 1.4 * high[which].max())
axes[0].legend(loc="upper left", fontsize="small")

most = 1.05 * max(summary["to"].max(), summary["truth"].max())
axes[1].plot([0, most], [0, most], color="0.6", lw=1)
axes[1].vlines(summary["truth"], summary["from"], summary["to"], color="#D55E00", alpha=0.35, lw=3)
axes[1].plot(summary["truth"], summary["lost"], "o", ms=4, color="#D55E00")
axes[1].set(xlabel="truth", ylabel="estimated, with 90 % band", title="Lost sales of each product")
plt.show()
