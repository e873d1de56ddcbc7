"""
A survey with a ceiling
=======================

400 people answer 12 questions on a scale from 1 to 5 (simulated, so that the truth is known).
Many would have gone beyond 5: the answers pile up at the top, and the differences between
satisfied people are lost.
"""

import numpy as np
from matplotlib import pyplot as plt

from declip import BayesCMC

rng = np.random.default_rng(1)
n_people, n_items = 400, 12
attitude = rng.normal(size=(n_people, 2))
weight = np.abs(rng.normal(0.8, 0.3, size=(2, n_items)))
opinion = 4.2 + attitude @ weight + 0.5 * rng.normal(size=(n_people, n_items))
answer = np.clip(np.rint(opinion), 1, 5)
print(f"{np.mean(answer == 5):.0%} of the answers are 5")

# %%
# A whole number stands for what is rounded to it: an answer of 5 says "4.5 or more", an answer of
# 1 "1.5 or less". So the limits are a half inside the ends of the scale. `fit` warns of people
# who gave the top answer throughout: nothing says how far beyond it they are.

seen = np.clip(answer, 1.5, 4.5)
model = BayesCMC(floor=1.5, ceiling=4.5, random_state=0)
restored = model.fit_transform(seen)

# %%
# What is gained: the mean of a person, which is what such surveys are about. At the top of the
# scale the raw means cannot tell people apart. The restored ones can, except for those who gave
# the top answer throughout: all of them are put at the same place.

happy = answer.mean(axis=1) >= 4.5
raw, better, true = answer.mean(axis=1), restored.mean(axis=1), opinion.mean(axis=1)
for name, score in (("raw", raw), ("restored", better)):
    error = np.sqrt(np.mean((score - true)[happy] ** 2))
    print(f"{name:>9}: error {error:.2f} points for the {happy.sum()} most satisfied people")

figure, axes = plt.subplots(1, 2, figsize=(9, 4), sharex=True, sharey=True, layout="constrained")
for ax, score, name in zip(axes, (raw, better), ("raw answers", "restored"), strict=True):
    ax.plot([1, 8], [1, 8], color="0.6", lw=1)
    ax.plot(true[~happy], score[~happy], "o", ms=3, color="#0072B2", alpha=0.5)
    ax.plot(true[happy], score[happy], "o", ms=3, color="#D55E00", alpha=0.7)
    ax.set(xlabel="mean opinion of a person, truth", xlim=(1.5, 7.5), ylim=(1.5, 7.5))
    ax.set_title(f"Mean of the {name}")
axes[0].set_ylabel("in the survey")
plt.show()
