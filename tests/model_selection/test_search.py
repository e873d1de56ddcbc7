"""The search over parameters."""

import numpy as np
import pandas as pd
import polars as pl
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from scipy.stats import loguniform
from sklearn.base import clone
from sklearn.callback import ProgressBar
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from tests.callbacks import Callback
from tests.model_selection.tables import (
    Constant,
    clipped_cells,
    clipped_table,
    few_warnings,
    low_rank,
)

from declip import (
    DTrCMC,
    EntryKFold,
    EntrySearchCV,
    EntryShuffleSplit,
    ExactCMC,
    FroCMC,
    Intervals,
    TrCMC,
)
from declip.model_selection.splits import keep_cells


def test_the_best_constant_is_found():
    cells = clipped_cells(ceiling=np.inf)
    levels = [0.0, 2.0, float(np.nanmean(cells.by_row.value)), 5.0]
    search = EntrySearchCV(Constant(), {"level": levels}, cv=3, random_state=0).fit(cells)
    assert search.best_params_ == {"level": levels[2]}


def test_scores_are_those_of_a_plain_loop():
    cells = clipped_cells(noise=0.3)
    cv = EntryKFold(3, random_state=0)
    grid = {"alpha": [0.1, 1.0], "n_components": [1, 3]}
    model = FroCMC(random_state=0, tol=1e-9, max_iter=2000)
    search = EntrySearchCV(model, grid, cv=cv, warm_start=False, scoring="neg_interval_rmse").fit(
        cells
    )
    for k, params in enumerate(search.cv_results_["params"]):
        for fold, (train, test) in enumerate(cv.split(cells)):
            fitted = clone(model).set_params(**params).fit(keep_cells(cells, train))
            rows, cols, lower, upper = (x[test] for x in cells.triplets())
            x = fitted.predict(rows, cols)
            expected = -np.sqrt(np.mean((x - np.clip(x, lower, upper)) ** 2))
            assert_allclose(search.cv_results_[f"split{fold}_test_score"][k], expected, rtol=1e-10)


@pytest.mark.parametrize("clipped", ["hinge", "tobit"])
@pytest.mark.parametrize("bias", [False, True])
def test_warm_starts_reach_what_cold_starts_reach(clipped, bias):
    cells = clipped_cells(noise=0.3)
    # 1000 puts all factors out: they have to come back.
    grid = {"alpha": [1000.0, 30.0, 1.0]}
    model = FroCMC(3, clipped=clipped, bias=bias, random_state=0, max_iter=500)
    warm, cold = (
        EntrySearchCV(model, grid, cv=EntryShuffleSplit(random_state=0), warm_start=w).fit(cells)
        for w in (True, False)
    )
    scores = [search.cv_results_["mean_test_score"] for search in (warm, cold)]
    assert_allclose(scores[0], scores[1], rtol=0.03)  # local optima nearly as good as each other
    assert warm.best_params_ == cold.best_params_


def test_warm_starts_save_sweeps():
    counted = {True: 0, False: 0}
    cells = clipped_cells(noise=0.3)
    for warm in counted:

        def sweeps(estimator, _, warm=warm):
            counted[warm] += estimator.n_iter_
            return 0.0

        grid = {"alpha": [0.3, 1, 3, 10]}
        model = FroCMC(3, bias=True, random_state=0)
        EntrySearchCV(model, grid, cv=3, random_state=0, warm_start=warm, scoring=sweeps).fit(cells)
    assert counted[True] < counted[False]


def test_the_usual_penalty_is_searched_beside_others():
    search = EntrySearchCV(FroCMC(1, random_state=0), {"alpha": [0.5, "auto"]}, cv=2)
    assert len(search.fit(low_rank(shape=(12, 8))).cv_results_["params"]) == 2


def test_the_refit_leaves_warm_start_as_it_was():
    model = FroCMC(2, random_state=0)
    search = EntrySearchCV(model, {"alpha": [1.0, 0.1]}, cv=2).fit(clipped_cells())
    assert search.best_estimator_.warm_start is False
    assert search.best_estimator_.alpha == search.best_params_["alpha"]


def test_the_refit_fits_all_cells():
    cells = clipped_cells(noise=0.2)
    model = FroCMC(2, random_state=0, tol=1e-10, max_iter=3000)
    search = EntrySearchCV(model, {"alpha": [10.0, 1.0]}, cv=3, random_state=0).fit(cells)
    alone = clone(model).set_params(**search.best_params_).fit(cells)
    assert_allclose(search.best_estimator_.objective_, alone.objective_, rtol=1e-6)


@pytest.mark.parametrize("n_jobs", [2, -1])
def test_the_result_does_not_depend_on_n_jobs(n_jobs):
    cells = clipped_cells(noise=0.3)
    grid = {"alpha": [1.0, 10.0], "n_components": [1, 3]}
    model = FroCMC(random_state=0)
    one, many = (
        EntrySearchCV(model, grid, cv=3, random_state=0, n_jobs=n).fit(cells) for n in (1, n_jobs)
    )
    for name, column in one.cv_results_.items():
        if "test" in name:
            assert_array_equal(column, many.cv_results_[name])
    assert_array_equal(one.reconstruct(), many.reconstruct())


def test_the_names_are_those_of_grid_search():
    search = EntrySearchCV(FroCMC(2), {"alpha": [0.1, 1.0]}, cv=2).fit(clipped_cells())
    expected = {
        *("mean_fit_time", "std_fit_time", "mean_score_time", "std_score_time", "param_alpha"),
        *("params", "split0_test_score", "split1_test_score", "mean_test_score"),
        *("std_test_score", "rank_test_score"),
    }
    assert set(search.cv_results_) == expected
    assert search.cv_results_["rank_test_score"][search.best_index_] == 1
    assert search.best_score_ == search.cv_results_["mean_test_score"].max()
    assert search.n_splits_ == 2
    assert search.refit_time_ > 0
    assert not search.multimetric_


def test_a_list_of_grids_masks_the_parameters_that_a_candidate_does_not_set():
    grid = [{"alpha": [0.1]}, {"n_components": [1, 2]}]
    search = EntrySearchCV(FroCMC(random_state=0), grid, cv=2).fit(clipped_cells())
    assert_array_equal(search.cv_results_["param_alpha"].mask, [False, True, True])
    assert_array_equal(search.cv_results_["param_n_components"].mask, [True, False, False])


@pytest.mark.parametrize(
    ("model", "grid"),
    [
        (FroCMC(2, ceiling=4.0, random_state=0), {"alpha": [0.1, 1.0]}),
        (TrCMC(ceiling=4.0), {"alpha": [0.5, 2.0]}),
        (DTrCMC(ceiling=4.0, max_iter=30), {"alpha": [0.1, 1.0]}),
        (ExactCMC(ceiling=4.0, max_iter=100), {"max_rank": [2, None]}),
    ],
    ids=lambda given: type(given).__name__,
)
def test_every_estimator_can_be_tuned(model, grid):
    few_warnings()
    X = clipped_table(shape=(20, 15))
    search = EntrySearchCV(model, grid, cv=2, random_state=0).fit(X)
    assert np.isfinite(search.cv_results_["mean_test_score"]).all()
    assert search.transform(X).shape == X.shape


def as_sparse(X):
    rows, cols = np.nonzero(~np.isnan(X))
    return sparse.csr_array((X[rows, cols], (rows, cols)), shape=X.shape)


@pytest.mark.parametrize(
    "convert",
    [
        pd.DataFrame,
        lambda X: pl.DataFrame(X).fill_nan(None),
        as_sparse,
    ],
    ids=["pandas", "polars", "sparse"],
)
def test_every_kind_of_table_gives_the_same_search(convert):
    X = clipped_table()
    model = FroCMC(2, ceiling=4.0, random_state=0)
    plain, other = (
        EntrySearchCV(model, {"alpha": [0.1, 1.0]}, cv=2, random_state=0).fit(table)
        for table in (X, convert(X))
    )
    assert_array_equal(plain.cv_results_["mean_test_score"], other.cv_results_["mean_test_score"])


def test_an_intervals_gives_the_search_of_its_table():
    X, grid = clipped_table(), {"alpha": [0.1, 1.0]}
    plain = EntrySearchCV(FroCMC(2, ceiling=4.0, random_state=0), grid, cv=2, random_state=0)
    other = EntrySearchCV(FroCMC(2, random_state=0), grid, cv=2, random_state=0)
    plain.fit(X)
    other.fit(Intervals.from_table(X, ceiling=4.0))
    assert_array_equal(plain.cv_results_["mean_test_score"], other.cv_results_["mean_test_score"])


def test_the_best_estimator_has_the_limits_of_the_one_that_was_searched():
    search = EntrySearchCV(FroCMC(2, ceiling=4.0, random_state=0), {"alpha": [1.0]}, cv=2)
    assert search.fit(clipped_table()).best_estimator_.ceiling == 4.0


def test_column_names_are_kept():
    frame = pd.DataFrame(clipped_table()).rename(columns=lambda j: f"item {j}")
    search = EntrySearchCV(FroCMC(2, ceiling=4.0), {"alpha": [1.0]}, cv=2).fit(frame)
    assert list(search.feature_names_in_) == list(frame.columns)
    assert search.n_features_in_ == 30
    assert list(search.get_feature_names_out()) == list(frame.columns)


def test_limits_per_column_and_floors_are_those_of_the_estimator():
    truth = low_rank()
    high, low = np.quantile(truth, 0.8, axis=0), np.quantile(truth, 0.1, axis=0)
    X = np.clip(truth, low, high)
    model = FroCMC(3, ceiling=high, floor=low, random_state=0)
    scoring = ["neg_clipped_relative_rmse", "at_ceiling_auc"]
    search = EntrySearchCV(
        model, {"alpha": [0.01, 100.0]}, cv=2, scoring=scoring, refit=scoring[0], random_state=0
    ).fit(X)
    assert search.best_params_ == {"alpha": 0.01}
    assert search.cv_results_["mean_test_at_ceiling_auc"].max() > 0.9


def test_how_clipped_cells_count_can_be_tuned():
    cells = clipped_cells(ceiling=3.0)
    model = FroCMC(3, alpha=0.01, random_state=0)
    search = EntrySearchCV(model, {"clipped": ["value", "hinge"]}, cv=3, random_state=0).fit(cells)
    assert search.best_params_ == {"clipped": "hinge"}


def test_a_function_can_score():
    search = EntrySearchCV(
        Constant(), {"level": [1.0, 2.0]}, cv=2, scoring=lambda model, cells: -model.level
    ).fit(clipped_cells())
    assert search.best_params_ == {"level": 1.0}


def test_several_scores_one_of_which_decides():
    scoring = {"low": lambda m, _: -m.level, "high": lambda m, _: m.level}
    search = EntrySearchCV(
        Constant(), {"level": [1.0, 2.0]}, cv=2, scoring=scoring, refit="high"
    ).fit(clipped_cells())
    assert search.best_params_ == {"level": 2.0}
    assert search.multimetric_
    assert set(search.scorer_) == {"low", "high"}
    assert_array_equal(search.cv_results_["rank_test_low"], [1, 2])


def test_refit_may_be_a_function_of_the_results():
    search = EntrySearchCV(
        Constant(), {"level": [1.0, 2.0, 9.0]}, cv=2, refit=lambda results: 2
    ).fit(clipped_cells())
    assert search.best_params_ == {"level": 9.0}
    assert not hasattr(search, "best_score_")


def test_without_refit_there_is_a_best_candidate_but_no_estimator():
    search = EntrySearchCV(Constant(), {"level": [1.0, 2.0]}, cv=2, refit=False)
    search.fit(clipped_cells())
    assert search.best_params_ in ({"level": 1.0}, {"level": 2.0})
    with pytest.raises(NotFittedError):
        search.predict([0], [0])


def test_candidates_are_drawn_from_distributions_by_the_seed():
    search = EntrySearchCV(
        FroCMC(random_state=0),
        param_distributions={"alpha": loguniform(0.1, 10), "n_components": [1, 2, 3]},
        n_iter=5,
        cv=2,
        random_state=3,
    )
    once = search.fit(clipped_cells()).cv_results_["params"]
    again = clone(search).fit(clipped_cells()).cv_results_["params"]
    assert len(once) == 5
    assert once == again


def test_given_splits_are_used_as_they_are():
    cells = clipped_cells()
    seen = []

    def scorer(model, hidden):
        seen.append((model.n_cells_, len(hidden.rows)))
        return 0.0

    splits = [(np.arange(10, 400), np.arange(10))]
    EntrySearchCV(Constant(), {"level": [0.0]}, cv=splits, scoring=scorer).fit(cells)
    assert seen == [(390, 10)]


def test_all_candidates_see_the_same_folds():
    seen = {}

    def scorer(model, hidden):
        seen.setdefault(model.level, []).append(tuple(hidden.rows))
        return 0.0

    cells = clipped_cells()
    EntrySearchCV(Constant(), {"level": [0.0, 1.0]}, cv=3, scoring=scorer).fit(cells)
    assert seen[0.0] == seen[1.0]
    assert len(set(seen[0.0])) == 3


def test_a_fit_that_fails_is_told_and_not_chosen():
    search = EntrySearchCV(FroCMC(random_state=0), {"n_components": [2, 99]}, cv=2)
    with pytest.warns(
        UserWarning, match=r"2 of 4 fits failed. The first: ValueError: n_components"
    ):
        search.fit(clipped_cells())
    assert search.best_params_ == {"n_components": 2}
    assert np.isnan(search.cv_results_["mean_test_score"][1])
    assert search.cv_results_["rank_test_score"][1] == 2


def test_a_fit_that_fails_may_raise():
    search = EntrySearchCV(FroCMC(), {"n_components": [99]}, cv=2, error_score="raise")
    with pytest.raises(ValueError, match="n_components"):
        search.fit(clipped_cells())


def test_if_all_fits_fail_the_search_fails():
    with pytest.raises(ValueError, match=r"All 2 fits failed. The first: ValueError: n_components"):
        EntrySearchCV(FroCMC(), {"n_components": [99]}, cv=2).fit(clipped_cells())


def test_a_strength_that_is_no_number_is_named():
    search = EntrySearchCV(FroCMC(2), {"alpha": [None, 1.0]}, cv=2, random_state=0)
    with pytest.raises(ValueError, match=r"The 'alpha' parameter of FroCMC .* Got None instead"):
        search.fit(clipped_cells())


def test_folds_do_not_warn_of_what_the_refit_warns_of():
    cells = clipped_cells()
    search = EntrySearchCV(FroCMC(3, max_iter=1), {"alpha": [0.1, 0.2]}, cv=2)
    with pytest.warns(ConvergenceWarning, match="stopped after 1 sweep") as caught:
        search.fit(cells)
    assert len(caught) == 1


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({}, "Give either param_grid or param_distributions"),
        ({"param_grid": {"alpha": [1]}, "param_distributions": {"alpha": [1]}}, "Give either"),
        ({"param_grid": {"ceiling": [4, 5]}}, "ceiling cannot be tuned"),
        ({"param_grid": {"alpha": [1]}, "scoring": "accuracy"}, "got 'accuracy'"),
        ({"param_grid": {"alpha": [1]}, "scoring": 3}, "scoring must be a name"),
        ({"param_grid": {"alpha": [1]}, "scoring": ["at_ceiling_f1"]}, "refit must name the score"),
        ({"param_grid": {"alpha": [1]}, "refit": "AUC"}, "refit must name the score"),
    ],
)
def test_what_cannot_be_searched_is_refused(wrong, message):
    with pytest.raises(ValueError, match=message):
        EntrySearchCV(FroCMC(2), **wrong).fit(clipped_cells())


def test_a_value_beyond_the_ceiling_is_refused_before_any_fit():
    with pytest.raises(ValueError, match="are above their ceiling"):
        EntrySearchCV(FroCMC(2, ceiling=1.0), {"alpha": [1.0]}).fit(clipped_table())


def test_methods_of_the_best_estimator_are_there_if_it_has_them():
    search = EntrySearchCV(Constant(), {"level": [1.0]}, cv=2)
    assert hasattr(search, "predict")
    assert not hasattr(search, "transform")
    assert not hasattr(search, "reconstruct")
    cells = clipped_cells()
    assert_array_equal(search.fit(cells).predict(np.arange(3), np.arange(3)), np.ones(3))


def test_predictions_are_those_of_the_best_estimator():
    X = clipped_table()
    model = FroCMC(2, ceiling=4.0, random_state=0)
    search = EntrySearchCV(model, {"alpha": [0.1, 1.0]}, cv=2).fit(X)
    best = search.best_estimator_
    assert_array_equal(search.transform(X), best.transform(X))
    assert_array_equal(search.predict([1, 2], [3, 4]), best.predict([1, 2], [3, 4]))
    assert_array_equal(search.reconstruct([1], [2, 3]), best.reconstruct([1], [2, 3]))
    assert search.score(X) == best.score(X)


class StopAfter(Callback):
    """A callback that ends the search after so many tasks."""

    def __init__(self, n_tasks):
        self.n_tasks = n_tasks

    def setup(self, estimator, context):
        self.done = 0

    def on_fit_task_end(self, estimator, context):
        self.done += context.parent is not None
        return self.done >= self.n_tasks


def test_a_callback_may_end_the_search_with_what_is_known():
    search = EntrySearchCV(Constant(), {"level": [3.0, 2.0, 1.0]}, cv=2, random_state=0)
    search.set_callbacks(StopAfter(4)).fit(clipped_cells())
    assert_array_equal(np.isnan(search.cv_results_["mean_test_score"]), [False, False, True])
    assert search.best_index_ in (0, 1)


def test_the_progress_bar_of_scikit_learn_works(capsys):
    search = EntrySearchCV(FroCMC(2), {"alpha": [1.0, 2.0]}, cv=2).set_callbacks(ProgressBar())
    search.fit(clipped_cells())
    assert "EntrySearchCV" in capsys.readouterr().out


def test_the_search_is_left_as_it_was_given():
    model = FroCMC(2, random_state=0)
    search = EntrySearchCV(model, {"alpha": [1.0, 2.0]}, cv=2).fit(clipped_cells())
    assert search.estimator is model
    assert not hasattr(model, "row_factors_")
    assert model.alpha == "auto"


def test_sparse_ratings_are_never_made_dense():
    # Dense it would be 80 GB.
    rng = np.random.default_rng(0)
    cells = np.unique(rng.integers(0, 500, (4000, 2)) * 200, axis=0)
    values = rng.integers(1, 6, len(cells)).astype(float)
    ratings = sparse.coo_array((values, cells.T), shape=(10**5, 10**5))
    model = FroCMC(1, ceiling=5, bias=True, max_iter=2, random_state=0)
    few_warnings()
    search = EntrySearchCV(model, {"alpha": [1.0, 10.0]}, cv=2, random_state=0).fit(ratings)
    assert np.isfinite(search.best_score_)
