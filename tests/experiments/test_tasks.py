"""What the experiments are made of: limits, races, splits and the printed F1."""

import numpy as np
import pytest
from experiments.paper import ablation, faithful, limits, synthetic
from experiments.ratings import Task

from declip.datasets import Ratings
from declip.lowrank import LowRank
from declip.solvers import limit_model


@pytest.fixture(scope="module")
def truth():
    return np.random.default_rng(0).gamma(4.0, size=(60, 80))


@pytest.mark.parametrize("kind", limits.KINDS)
@pytest.mark.parametrize("share", [0.2, 0.6])
def test_limits_hide_the_share_that_was_asked_for(truth, kind, share):
    found = limits.limits(truth, kind, share, np.random.default_rng(1))
    hidden = (truth < found.get("floor", -np.inf)) | (truth > found.get("ceiling", np.inf))
    assert hidden.mean() == pytest.approx(share, abs=2 / truth.size + 1e-3)


def test_limits_by_column_differ_between_columns_alone(truth):
    found = limits.limits(truth, "ceiling by column", 0.3, np.random.default_rng(1))
    assert found["ceiling"].shape == (80,)


def test_a_race_gives_the_best_of_each_round_more():
    quality = {"a": 1.0, "b": 3.0, "c": 2.0}
    fits = faithful.raced(
        [{"name": name} for name in quality],
        lambda point, n_iter: (point["name"], n_iter),
        lambda model: quality[model[0]],
        [[10, 3], [50, 2], [90, 1]],
    )
    made = [model for _, model in fits]
    assert made == [("a", 10), ("b", 10), ("c", 10), ("b", 50), ("c", 50), ("b", 90)]


def test_only_the_best_ranks_go_on_to_the_next_penalty():
    task = synthetic.table(9, 0, "rounded", "quick")
    grid = {"k": [2, 4, 10], "first": 10, "max_iter": 30, "alpha": [1.0, 0.1], "keep": [2, 1]}
    path = synthetic.fro_path(task, "hinge", 0, grid)
    assert [(point["k"], point["alpha"]) for point, _ in path] == [(10, 1.0), (4, 1.0), (10, 0.1)]


@pytest.mark.parametrize("beta", [0.0, 0.6])
def test_without_a_penalty_on_the_matrix_missing_cells_stay_where_the_descent_begins(beta):
    task = synthetic.table(9, 0, "rounded", "quick")
    it = ablation.problem(task, (0.0, beta))
    X = limit_model(task.cells, it.clipped_penalty.limits, 1.0)
    for eta in (1.0, 0.9):
        X = LowRank.from_svd(it.step(it.at(X, None), eta))
    missing = ~task.data.observed
    unmoved = synthetic.Unmoved(task).reconstruct()
    assert (unmoved[missing] == 10).all()
    # products of singular vectors, about 40 of size 10^3
    np.testing.assert_allclose(X.block()[missing], 10, atol=1e-9)


@pytest.mark.filterwarnings("ignore:DTrCMC stopped after 10 steps")
def test_the_race_of_pairs_carries_one_with_a_second_norm_to_the_end():
    task = synthetic.table(9, 0, "rounded", "quick")
    grid = {"penalties": [0.0, 0.4, 1.0], "first": 10, "rises": 2, "max_iter": 300, "tol": 1e-2}
    points = [(p, m.converged_) for p, m in synthetic.dtr_race(task, "hinge", 0, grid)]
    screened = [(p["alpha"], p["alpha_clipped"]) for p, _ in points if "screened" in p]
    ended = [(p["alpha"], p["alpha_clipped"]) for p, c in points if "screened" not in p and c]
    assert screened == [(0.4, 0.4), (0.4, 1.0), (1.0, 0.4), (1.0, 1.0)]
    assert ended[:3] == [(0.0, 0.0), (0.4, 0.0), (1.0, 0.0)]
    assert ended[3] in screened


@pytest.mark.filterwarnings("ignore:DTrCMC stopped after 10 steps")
def test_the_race_of_pairs_leaves_a_penalty_once_the_error_has_risen():
    task = synthetic.table(9, 0, "rounded", "quick")
    grid = {"penalties": synthetic.SIX, "first": 10, "rises": 1, "max_iter": 10, "tol": 1e-2}
    errors: dict[float, list[float]] = {}
    for point, model in synthetic.dtr_race(task, "hinge", 0, grid):
        if "screened" in point:
            found = task.errors(model.reconstruct())["validation"]
            errors.setdefault(point["alpha"], []).append(found)
    assert list(errors) == list(synthetic.SIX[1:])
    for mine in errors.values():
        rises = np.diff(mine) > 0
        assert not rises[:-1].any()
        assert rises[-1] or len(mine) == 5


def test_training_validation_and_test_cells_are_disjoint_and_all():
    task = synthetic.table(9, 0, "rounded", "quick")
    parts = np.stack([task.data.observed, task.validation, task.test])
    assert (parts.sum(axis=0) == 1).all()


def test_an_estimate_beyond_the_ceiling_is_as_good_as_one_at_it_on_validation_cells():
    task = synthetic.table(9, 0, "rounded", "quick")
    beyond = np.where(task.data.truth > 9, 100.0, task.data.truth)
    errors = task.errors(beyond)
    assert errors["validation"] == errors["unclipped_test_cells"] == 0
    assert errors["all_cells"] > 1


@pytest.fixture(scope="module")
def ratings():
    rng = np.random.default_rng(0)
    rows, cols = (x.ravel() for x in np.indices((20, 15)))
    values = rng.integers(1, 5, rows.size, endpoint=True).astype(float)
    return Ratings(rows, cols, values, (20, 15), np.arange(20), np.arange(15), 5.0, "toy")


@pytest.mark.parametrize(("number", "ceiling"), [(1, 4.0), (2, 5.0)])
def test_both_tasks_ask_for_the_top_of_the_scale(ratings, number, ceiling):
    task = Task.of(ratings, number, seed=0)
    assert task.ceiling == ceiling
    assert np.array_equal(task.high, ratings.values == 5)
    perfect = np.where(task.high, 4.6, 4.4)
    assert task.printed_f1(perfect, task.test) == 1


def test_training_ratings_are_clipped_in_task_one(ratings):
    task = Task.of(ratings, 1, seed=0)
    assert faithful.training_table(task).max() == 4
    cells = faithful.training_cells(task)
    assert cells.n_censored == (ratings.values[task.train] >= 4).sum()


@pytest.mark.parametrize(
    ("scores", "n_stops"),
    [((1, 2, 3, 4), 4), ((3, 2, 2, 9), 3), ((1, 3, 2, 4), 4), ((1, 1, 1, 2), 3)],
    ids=["rising", "falling", "recovering", "level"],
)
def test_steps_of_dtr_end_when_the_score_has_not_risen_twice(ratings, scores, n_stops):
    task, left = Task.of(ratings, 1, seed=0), iter(scores)
    grid = {**faithful.DTR_GRID, "stops": (1, 2, 3, 4), "patience": 2}
    fits = faithful.dtr(task, "hinge", grid, lambda _: next(left), 0)
    made = [how["max_iter"] for how, _ in fits]
    assert made == [1, 2, 3, 4][:n_stops]
