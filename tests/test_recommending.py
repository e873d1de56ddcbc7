"""Items for users by name, from a fitted model."""

import numpy as np
import pandas as pd
import pytest
from sklearn.metrics import ndcg_score

from declip import BayesCMC, FroCMC, Intervals, Recommender, metrics

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


def test_a_new_user_gets_what_is_like_what_they_rated(door):
    found = door.for_new_user({"film 0": 5, "film 7": 1}, n=5)
    assert {item for item, _ in found} == set(ITEMS[1:6])


def test_an_unknown_name_is_told(door):
    with pytest.raises(KeyError, match="user 'nobody' is not among the 60 users"):
        door.recommend("nobody")


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


def test_a_model_without_extend_says_so(ratings):
    door = Recommender(BayesCMC(1, n_samples=5, burn_in=5, random_state=0).fit(ratings), ratings)
    with pytest.raises(TypeError, match="A BayesCMC takes no new ratings: fit it"):
        door.extend(ratings)
