"""Ratings: what to show whom, from a fitted model and the ratings it was fitted to."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from declip.estimators import FroCMC, fitted_low_rank
from declip.intervals import Intervals
from declip.joining import Growth
from declip.model_selection import EntrySearchCV

__all__ = ["Recommender"]


@dataclass(frozen=True, eq=False)
class Recommender:
    """Items for users, and items like an item, by the names that the ratings have.

    Parameters
    ----------
    model : estimator
        Fitted to the ratings.
    ratings : Intervals
        Users are rows, items columns; labels are their names, else they go by number. What is
        stored counts as seen.

    Examples
    --------
    >>> import pandas as pd
    >>> from declip import FroCMC, Intervals, Recommender
    >>> stars = pd.DataFrame(
    ...     {"Alien": [5, 4, 1, None], "Brazil": [5, None, 2, 1], "Clue": [None, 2, 5, 4]},
    ...     index=["ann", "bob", "cem", "dot"],
    ... )
    >>> ratings = Intervals.from_table(stars, ceiling=5)
    >>> model = FroCMC(1, alpha=0.1, bias=True, scale="none", random_state=0).fit(ratings)
    >>> door = Recommender(model, ratings)
    >>> [item for item, _ in door.recommend("bob", n=1)]
    ['Brazil']
    >>> [item for item, _ in door.recommend("bob", n=2, exclude_seen=False)]
    ['Alien', 'Brazil']
    >>> [item for item, _ in door.for_new_user({"Clue": 5}, n=1)]
    ['Brazil']
    """

    model: Any
    ratings: Intervals

    @classmethod
    def tuned(
        cls,
        ratings: Intervals,
        *,
        n_components: Sequence[int] | None = None,
        alpha: Sequence[float] = (2.0, 4.0, 8.0, 16.0, 32.0),
        random_state: Any = None,
    ) -> Recommender:
        """Fit factors and offsets of users and items, tuned on held-out ratings.

        Parameters
        ----------
        ratings : Intervals
            Users are rows, items columns.
        n_components : sequence of int, optional
            Numbers of factors to be tried; by default 5, 10 and 20, as far as there are as many
            users and items.
        alpha : sequence of float
            Strengths of the penalty to be tried; fewer ratings of a user or item ask for more.
        random_state : int, RandomState instance or None
            Draws the held-out ratings, of which there are three lots, and where fits begin.
        """
        model = FroCMC(bias=True, scale="none", random_state=random_state)
        most = min(ratings.shape)
        if n_components is None:
            n_components = [k for k in _RANKS if k <= most] or [most]
        grid = {"n_components": list(n_components), "alpha": list(alpha)}
        search = EntrySearchCV(model, grid, cv=3, random_state=random_state)
        return cls(search.fit(ratings).best_estimator_, ratings)

    def recommend(
        self, user: Any, n: int = 10, exclude_seen: bool = True
    ) -> list[tuple[Any, float]]:
        """Return the items of a user with the highest estimates, best first, as (item, estimate).

        Parameters
        ----------
        user : label or int
            The row.
        n : int, default=10
            How many, at most.
        exclude_seen : bool, default=True
            Whether to leave out what the user has rated.
        """
        row = self._users(user)
        side = self.ratings.by_row
        seen = np.concatenate(
            [
                side.exact_idx[side.exact_ptr[row] : side.exact_ptr[row + 1]],
                side.censored_idx[side.censored_ptr[row] : side.censored_ptr[row + 1]],
            ]
        )
        estimates = self.model.reconstruct(rows=[row])[0]
        return self._best(estimates, n, seen if exclude_seen else [])

    def for_new_user(
        self, ratings: Mapping[Any, float], n: int = 10, exclude_seen: bool = True
    ) -> list[tuple[Any, float]]:
        """Return the best items of a user who was not in the fit, solved for by what they rated.

        Parameters
        ----------
        ratings : mapping from item to rating
            What they rated; one at a limit of the fitted ratings counts as clipped there.
        n : int, default=10
            How many, at most.
        exclude_seen : bool, default=True
            Whether to leave out what they rated.
        """
        low, high = self._scale
        for item, rating in ratings.items():
            if not low <= rating <= high:
                raise ValueError(f"item {item!r} has {rating}, beyond the scale {low} to {high}.")
        if not ratings:
            raise ValueError("No ratings: a new user is known by at least one.")
        items = np.array([self._items(item) for item in ratings], dtype=int)
        row = np.full((1, self.ratings.shape[1]), np.nan)
        row[0, items] = list(ratings.values())
        bounds = np.where(row <= low, -np.inf, row), np.where(row >= high, np.inf, row)
        cells = replace(Intervals.from_bounds(*bounds), col_labels=self.ratings.col_labels)
        return self._best(self.model.predict(cells)[0], n, items if exclude_seen else [])

    def extend(self, ratings: Intervals, *, replace_known: bool = False) -> Recommender:
        """Take new ratings into the model, and return the recommender that knows them.

        Parameters
        ----------
        ratings : Intervals
            New ratings, by known and by new users, of known and of new items; the model, which is
            changed, takes them as its `extend` does.
        replace_known : bool, default=False
            Whether a rating that is known already counts as it is now, or is an error.
        """
        if not hasattr(self.model, "extend"):
            raise TypeError(
                f"A {type(self.model).__name__} takes no new ratings: fit it to all of them again."
            )
        self.model.extend(ratings, replace_known=replace_known)
        labels = self.ratings.row_labels, self.ratings.col_labels
        growth = Growth.of(self.ratings.shape, labels, ratings)
        return Recommender(self.model, growth.joined(self.ratings, replace_known))

    def similar_items(
        self, item: Any, n: int = 10, min_ratings: int = 1
    ) -> list[tuple[Any, float]]:
        """Return the items whose factors point the same way, as (item, cosine), nearest first.

        Parameters
        ----------
        item : label or int
            The column.
        n : int, default=10
            How many, at most.
        min_ratings : int, default=1
            Items with fewer are left out: the factors of a few ratings may point anywhere. Items
            without ratings or factors are like none.
        """
        column = self._items(item)
        factors = fitted_low_rank(self.model).Q.astype(np.float64)
        lengths, rated = np.linalg.norm(factors, axis=1), self.ratings.by_col.row_sizes
        known = (lengths > np.finfo(np.float32).eps * lengths.max(initial=0.0)) & (rated > 0)
        towards = factors / np.where(known, lengths, np.inf)[:, None]
        left_out = ~(known & known[column]) | (rated < min_ratings)
        left_out[column] = True
        return self._best(towards @ towards[column], n, left_out)

    def _best(self, scores: NDArray, n: int, left_out: Any) -> list[tuple[Any, float]]:
        scores = np.array(scores, dtype=np.float64)
        scores[left_out] = -np.inf
        order = np.argsort(-scores, kind="stable")[:n]
        labels = self.ratings.col_labels
        return [
            (int(j) if labels is None else labels[j], float(scores[j]))
            for j in order
            if scores[j] > -np.inf
        ]

    @cached_property
    def _users(self) -> Callable[[Any], int]:
        return _finder("user", self.ratings.row_labels, self.ratings.shape[0])

    @cached_property
    def _items(self) -> Callable[[Any], int]:
        return _finder("item", self.ratings.col_labels, self.ratings.shape[1])

    @cached_property
    def _scale(self) -> tuple[float, float]:
        """The one floor and ceiling of all clipped ratings; infinite where there is none."""
        side = self.ratings.by_row
        floors, ceilings = side.upper[side.left_censored], side.lower[side.right_censored]
        return float(floors.max(initial=-np.inf)), float(ceilings.min(initial=np.inf))


_RANKS = (5, 10, 20)
_NEW = {
    "user": "for_new_user(...) serves someone new, extend(...) takes them in",
    "item": "extend(...) takes in new ones, with ratings",
}


def _finder(what: str, labels: NDArray | None, count: int) -> Callable[[Any], int]:
    """Return the function from a label, or a number where there are none, to a place."""
    known = {label: i for i, label in enumerate(range(count) if labels is None else labels)}

    def place(asked: Any) -> int:
        if asked not in known:
            raise KeyError(
                f"{what} {asked!r} is not among the {count} {what}s of the ratings: {_NEW[what]}."
            )
        return known[asked]

    return place
