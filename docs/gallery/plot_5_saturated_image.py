"""
A saturated image
=================

A camera takes the same scene at four exposures. The long ones lose the highlights, the short ones
drown the shadows in noise. The scene is a photograph that ships with scikit-learn; exposure,
saturation and noise are ours, so that the truth is known.
"""

import numpy as np
from matplotlib import pyplot as plt
from sklearn.datasets import load_sample_image

from declip import FroCMC

scene = (load_sample_image("china.jpg")[::3, ::3] / 255) ** 2.2  # light, from the encoded picture
height, width, _ = scene.shape
times = np.array([0.125, 0.5, 1.0, 4.0])
light = scene[..., None] * times  # height x width x colour x exposure
rng = np.random.default_rng(0)
taken = np.clip(light + 0.02 * rng.normal(size=light.shape), 0, 1)
for time, share in zip(times, (taken == 1).mean(axis=(0, 1, 2)), strict=True):
    print(f"exposure {time:5.3f}: {share:.0%} saturated")

# %%
# A row for each pixel, a column for each colour and exposure. Light is proportional to the
# exposure, so that the table has rank 3: one for each colour. The fit is not told the exposure
# times; it finds them.

table = taken.reshape(height * width, -1)
model = FroCMC(3, floor=0, ceiling=1, clipped="tobit", alpha=1e-3, random_state=0)
fitted = model.fit(table).reconstruct().reshape(light.shape)
print(f"noise {model.scale_:.3f} (0.02 in truth)")

# %%
# The longest exposure as it was taken, and as restored; beside it the shortest one, brightened to
# the same level.

longest = {
    "truth": light[..., 3],
    "as taken": taken[..., 3],
    "shortest, brightened": taken[..., 0] * times[3] / times[0],
    "restored": fitted[..., 3],
}
for name, picture in longest.items():
    print(f"{name:>21}: error {np.sqrt(np.mean((picture - light[..., 3]) ** 2)):.3f}")

figure, axes = plt.subplots(2, 2, figsize=(9, 6.4), layout="constrained")
for ax, (name, picture) in zip(axes.flat, longest.items(), strict=True):
    ax.imshow(np.clip(picture / 4, 0, 1) ** (1 / 2.2))
    ax.set_title(name)
    ax.axis("off")
plt.show()

# %%
# Value for value, where the longest exposure is saturated:

lost = taken[..., 3] == 1
some = rng.choice(lost.sum(), 4000, replace=False)
figure, ax = plt.subplots(figsize=(5, 4), layout="constrained")
ax.plot([1, 4], [1, 4], color="0.6", lw=1)
shown = (("shortest, brightened", "0.6"), ("as taken", "#0072B2"), ("restored", "#D55E00"))
for name, colour in shown:
    values = longest[name][lost][some]
    ax.plot(light[..., 3][lost][some], values, ".", ms=2, color=colour, label=name)
ax.set(xlabel="light, truth", ylabel="in the picture", ylim=(0, 5))
ax.legend(markerscale=5)
plt.show()
