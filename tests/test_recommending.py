"""Items for users by name, from a fitted model."""

from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from sklearn.metrics import ndcg_score

from declip import BayesCMC, FroCMC, Intervals, Recommender, metrics, recommending
from declip.estimators import fitted_low_rank

ITEMS = [f"film {j}" for j in range(12)]
USERS = [f"user {i}" for i in range(60)]


@pytest.fixture(scope="module")
def ratings():
    rng = np.random.default_rng(0)
    taste, kind = rng.normal(size=(60, 1)), np.repeat([1.0, -1.0], 6)
    stars = 3 + 1.5 * taste * kind + 0.2 * rng.normal(size=(60, 12))
    stars[rng.random(stars.shape) < 0.4] = np.nan
    table = pd.DataFrame(np.clip(stars, 1, 5), USERS, ITEMS)
    return Intervals.from_table(table, ceiling=5, floor=1)


@pytest.fixture(scope="module", params=[FroCMC(2, bias=True, random_state=0), BayesCMC(2)])
def door(request, ratings):
    model = request.param
    if isinstance(model, BayesCMC):
        model.set_params(n_samples=40, burn_in=40, random_state=0)
    return Recommender(model.fit(ratings), ratings)


def test_what_a_user_rated_is_left_out_unless_asked_for(door, ratings):
    rated = {ITEMS[j] for i, j in zip(*ratings.triplets()[:2], strict=True) if i == 7}
    unseen = [item for item, _ in door.recommend("user 7", n=12)]
    assert set(unseen) == {*ITEMS} - rated
    assert len(door.recommend("user 7", n=12, exclude_seen=False)) == 12


def test_estimates_fall_and_are_those_of_the_model(door):
    found = door.recommend("user 3", n=5, exclude_seen=False)
    row = door.model.reconstruct(rows=[3])[0]
    assert [e for _, e in found] == sorted(row, reverse=True)[:5]
    assert [ITEMS[j] for j in np.argsort(-row)[:5]] == [item for item, _ in found]


def test_items_of_a_kind_are_alike(door):
    assert {item for item, _ in door.similar_items("film 0", n=5)} == set(ITEMS[1:6])


def test_an_item_that_nobody_rated_is_like_none(ratings):
    new = {"row": "ann", "column": ["film 0", "film 99"], "value": [3.0, np.nan]}
    door = Recommender(FroCMC(2, bias=True, random_state=0).fit(ratings), ratings)
    door = door.extend(Intervals.from_long(pd.DataFrame(new)))
    assert door.similar_items("film 99") == []
    assert "film 99" not in dict(door.similar_items("film 0", n=20, min_ratings=0))


def test_factors_that_a_penalty_drew_to_nothing_point_nowhere(ratings, monkeypatch):
    model = FroCMC(2, bias=True, random_state=0).fit(ratings)
    Q = fitted_low_rank(model).Q.astype(np.float64)
    Q[3] = 1e-200  # whose square is 0
    monkeypatch.setattr(recommending, "fitted_low_rank", lambda _: SimpleNamespace(Q=Q))
    found = dict(Recommender(model, ratings).similar_items("film 0", n=20))
    assert set(found) == {*ITEMS} - {"film 0", "film 3"}


def test_items_with_few_ratings_are_left_out_of_the_similar(door, ratings):
    counts = pd.Series(ratings.by_col.row_sizes, ITEMS)
    fewest = int(counts.median())
    found = [item for item, _ in door.similar_items(ITEMS[0], n=20, min_ratings=fewest)]
    assert set(found) == {*counts.index[counts >= fewest]} - {ITEMS[0]}


def test_tuning_takes_what_tells_held_out_ratings_best(ratings):
    door = Recommender.tuned(ratings, n_components=[1, 4], alpha=[0.5, 500.0], random_state=0)
    # one factor made the ratings, and with the larger penalty it is gone
    assert (door.model.n_components_, door.model.alpha_) == (1, 0.5)
    assert {item for item, _ in door.similar_items("film 0", n=5)} == set(ITEMS[1:6])


def test_a_new_user_gets_what_is_like_what_they_rated(door):
    found = door.for_new_user({"film 0": 5, "film 7": 1}, n=5)
    assert {item for item, _ in found} == set(ITEMS[1:6])


def test_ranks_to_be_tuned_may_be_an_array(ratings):
    door = Recommender.tuned(ratings, n_components=np.array([2]), alpha=[4.0], random_state=0)
    assert door.model.n_components == 2


def test_few_items_are_tuned_with_few_factors():
    X = np.random.default_rng(0).integers(1, 6, (40, 4)).astype(float)
    door = Recommender.tuned(Intervals.from_table(X, 5, 1), random_state=0)
    assert door.model.n_components <= 4


def test_an_unknown_name_is_told(door):
    with pytest.raises(KeyError, match=r"is not among the 60 users.*for_new_user"):
        door.recommend("nobody")


@pytest.mark.parametrize(
    ("rated", "message"),
    [({}, "No ratings"), ({"film 2": 7}, r"item 'film 2' has 7, beyond the scale 1\.0 to 5\.0")],
)
def test_ratings_of_a_new_user_that_cannot_be_are_refused(door, rated, message):
    with pytest.raises(ValueError, match=message):
        door.for_new_user(rated)


def test_precision_counts_the_relevant_among_those_shown():
    truth, estimate, rows = [5, 4, 1, 5, 2], [3, 2, 1, 1, 2], ["a", "a", "a", "b", "b"]
    assert metrics.precision_at_k(truth, estimate, rows, k=2, relevant=4) == (1.0 + 0.5) / 2
    assert metrics.precision_at_k(truth, estimate, rows, k=1, relevant=4) == (1.0 + 0.0) / 2


@pytest.mark.parametrize("k", [1, 3, 10])
def test_ndcg_is_that_of_scikit_learn(k):
    rng = np.random.default_rng(0)
    truth, estimate = rng.integers(1, 6, (20, 8)), rng.normal(size=(20, 8))
    rows = np.repeat(np.arange(20), 8)
    found = metrics.ndcg_at_k(truth, estimate, rows, k=k)
    np.testing.assert_allclose(found, ndcg_score(truth, estimate, k=k))


def test_new_ratings_are_taken_in_by_the_model_and_count_as_seen(ratings):
    door = Recommender(FroCMC(2, bias=True, random_state=0).fit(ratings), ratings)
    new = pd.DataFrame({"row": "ann", "column": [*ITEMS[:3], "film 99"], "value": [5, 5, 4, 1]})
    door = door.extend(Intervals.from_long(new, ceiling=5, floor=1))
    unseen = [item for item, _ in door.recommend("ann", n=20)]
    assert set(unseen) == set(ITEMS[3:])
    assert set(unseen[:3]) == set(ITEMS[3:6])  # of the same kind
    assert "film 99" in [item for item, _ in door.recommend("user 7", n=20)]


def test_a_rating_that_was_changed_replaces_the_known_one_if_asked(ratings):
    door = Recommender(FroCMC(2, bias=True, random_state=0).fit(ratings), ratings)
    rows, cols, lower, _ = ratings.triplets()
    user, item = ratings.row_labels[rows[0]], ratings.col_labels[cols[0]]
    new = pd.DataFrame({"row": [user], "column": [item], "value": [5.0 if lower[0] < 3 else 1.0]})
    new = Intervals.from_long(new, ceiling=5, floor=1)
    with pytest.raises(ValueError, match="is known already"):
        door.extend(new)
    assert len(door.extend(new, replace_known=True).ratings) == len(ratings)


def test_a_model_without_extend_says_so(ratings):
    door = Recommender(BayesCMC(1, n_samples=5, burn_in=5, random_state=0).fit(ratings), ratings)
    with pytest.raises(TypeError, match="A BayesCMC takes no new ratings: fit it"):
        door.extend(ratings)
