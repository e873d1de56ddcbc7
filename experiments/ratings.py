"""The two rating tasks of the paper, on FilmTrust and MovieLens-100K.

Task 1: training ratings clipped at C (7 of 8, 4 of 5); which test ratings were above C? Task 2: raw
ratings; which test ratings are at the top of the scale? Ratings are split .8 / .1 / .1; users and
items without a training rating are removed, as in the paper.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from sklearn.metrics import average_precision_score, f1_score, precision_recall_curve, roc_auc_score

from declip import Intervals
from declip.datasets import Ratings, fetch_filmtrust, fetch_movielens_100k

DATA: dict[str, Callable[[], Ratings]] = {
    "FilmTrust": fetch_filmtrust,
    "MovieLens-100K": fetch_movielens_100k,
}


@dataclass(frozen=True, eq=False)
class Task:
    """Ratings of one task: those to learn from, and cells to find the high ones among."""

    ratings: Ratings
    ceiling: float
    high: np.ndarray
    train: np.ndarray
    validation: np.ndarray
    test: np.ndarray

    @classmethod
    def of(cls, ratings: Ratings, number: int, seed: int) -> Task:
        order = np.random.default_rng(seed).permutation(ratings.values.size)
        train, *held_out = np.split(order, np.rint(np.array([0.8, 0.9]) * order.size).astype(int))
        known = np.isin(ratings.rows, ratings.rows[train]) & np.isin(
            ratings.cols, ratings.cols[train]
        )
        ceiling = ratings.ceiling - 1 if number == 1 else ratings.ceiling
        high = ratings.values > ratings.ceiling - 1
        return cls(ratings, ceiling, high, train, *(part[known[part]] for part in held_out))

    def intervals(self, cut: float) -> Intervals:
        """Return the training ratings, those of the ceiling or more clipped at ``cut``."""
        data, train = self.ratings, self.train
        values = np.where(data.values >= self.ceiling, cut, data.values)[train]
        return Intervals.from_triplets(
            data.rows[train], data.cols[train], values, data.shape, ceiling=cut
        )

    def scores(self, prediction: np.ndarray, part: np.ndarray) -> dict[str, float]:
        truth, x = self.high[part], prediction[part]
        return {
            "AP": float(average_precision_score(truth, x)),
            "AUC": float(roc_auc_score(truth, x)),
        }

    def f1(self, prediction: np.ndarray) -> float:
        """Return F1 of the test cells at the threshold that is best for the validation cells."""
        p, r, thresholds = precision_recall_curve(
            self.high[self.validation], prediction[self.validation]
        )
        f1 = 2 * p * r / np.maximum(p + r, 1e-12)
        best = thresholds[np.argmax(f1[:-1])]
        return float(f1_score(self.high[self.test], prediction[self.test] >= best))

    def printed_f1(self, prediction: np.ndarray, part: np.ndarray) -> float:
        """Return F1 as in the paper: a cell is called high half a step below the top of the scale.

        That is above C + 1/2 in task 1, and above C - 1/2 in task 2.
        """
        said = prediction[part] > self.ratings.ceiling - 0.5
        return float(f1_score(self.high[part], said, zero_division=0.0))
