"""What scikit-learn expects of an estimator: checks, labels, pipelines, searches, callbacks."""

import copy
import pickle

import numpy as np
import pandas as pd
import polars as pl
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.callback import ProgressBar, ScoringMonitor
from sklearn.decomposition import PCA
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.utils.estimator_checks import parametrize_with_checks
from tests.estimators.names import name_of

from declip import DTrCMC, ExactCMC, FroCMC, Intervals, TrCMC
from declip.estimators.uncertainty import CellUncertainty
from declip.model_selection import without_limits
from declip.persistence import encode
from declip.scaling import Scaling

CHECKED = [
    FroCMC(n_components=1),
    FroCMC(n_components=2),
    FroCMC(n_components=1, bias=True),
    FroCMC(n_components=2, bias=True),
    FroCMC(n_components=1, clipped="tobit"),
    FroCMC(n_components=2, clipped="tobit", bias=True, init="svd"),
    FroCMC(n_components=1, clipped="value", warm_start=True),
    FroCMC(n_components=1, clipped="missing", n_jobs=2),
    TrCMC(),
    TrCMC(solver="factored"),
    TrCMC(clipped="tobit"),
    ExactCMC(),
    DTrCMC(max_iter=30),
]

CEILING = 4.0
FACTORS = [FroCMC(n_components=2, ceiling=CEILING, random_state=0)]
ESTIMATORS = [
    *FACTORS,
    TrCMC(ceiling=CEILING),
    TrCMC(ceiling=CEILING, solver="factored"),
    ExactCMC(ceiling=CEILING, tol=1e-3),
    DTrCMC(ceiling=CEILING, max_iter=20),
]
MODES = ["hinge", "tobit", "value", "missing"]


each_estimator = pytest.mark.parametrize("estimator", ESTIMATORS, ids=name_of)
each_with_factors = pytest.mark.parametrize("estimator", FACTORS, ids=name_of)
each_with_alpha = pytest.mark.parametrize(
    "estimator", [e for e in ESTIMATORS if hasattr(e, "alpha")], ids=name_of
)
each_that_falls = pytest.mark.parametrize(  # the trace norm of ExactCMC need not fall
    "estimator", [e for e in ESTIMATORS if not isinstance(e, ExactCMC)], ids=name_of
)
each_with_mode = pytest.mark.parametrize(
    ("estimator", "clipped"),
    [
        pytest.param(e, mode, id=f"{name_of(e)}-{mode}")
        for e in ESTIMATORS
        for mode in MODES
        if mode != "tobit" or isinstance(e, FroCMC | TrCMC)
    ],
)

pytestmark = pytest.mark.filterwarnings("ignore:DTrCMC stopped after 20 sweeps")


def simulated(shape=(40, 12), rank=2, noise=0.0, missing=0.1, seed=0):
    rng = np.random.default_rng(seed)
    P, Q = (1 + rng.standard_normal((n, rank)) for n in shape)
    X = np.minimum(P @ Q.T + noise * rng.standard_normal(shape), CEILING)
    X[rng.random(shape) < missing] = np.nan
    return X


X = simulated()
NAMES = [f"item {j}" for j in range(X.shape[1])]
FRAME = pd.DataFrame(X, columns=NAMES, index=[f"s{i}" for i in range(len(X))])


def fitted_state(estimator):
    """Return the fitted attributes, comparable by assert_equal."""
    return {
        name: vars(value)
        if isinstance(value, CellUncertainty)
        else encode(value)[1]
        if isinstance(value, Scaling)
        else value
        for name, value in vars(estimator).items()
        if name.endswith("_")
    }


class Recorder:
    """A callback that writes down what it is told, and stops the fit after some sweeps."""

    def __init__(self, stop_after=None):
        self.stop_after = stop_after
        self.began, self.ended, self.models, self.tables, self.closed = [], [], [], [], 0

    def setup(self, estimator, context):
        self.max_sweeps = context.max_subtasks

    def teardown(self, estimator, context):
        self.closed += 1

    def on_fit_task_begin(self, estimator, context):
        self.began.append(context.task_name)

    def on_fit_task_end(self, estimator, context, *, X=None, fitted_estimator=None):
        self.ended.append(context.task_name)
        if context.task_name == "sweep":
            self.models.append(fitted_estimator)
            self.tables.append(X)
        return self.stop_after is not None and len(self.models) >= self.stop_after


@pytest.mark.filterwarnings("ignore")
@parametrize_with_checks(CHECKED)
def test_scikit_learn_checks_pass_without_expected_failures(estimator, check):
    check(estimator)


@each_estimator
def test_a_clone_has_the_parameters_and_no_fit(estimator):
    fitted = clone(estimator).fit(X)
    twin = clone(fitted)
    assert twin.get_params() == fitted.get_params()
    with pytest.raises(NotFittedError, match="is not fitted yet"):
        twin.transform(X)


def test_a_clone_carries_an_array_of_limits():
    limits = np.full(X.shape[1], CEILING)
    twin = clone(FroCMC(2, ceiling=limits))
    assert_array_equal(twin.ceiling, limits)
    assert twin.ceiling is not limits


@each_with_alpha
def test_set_params_counts_at_the_next_fit(estimator):
    one = clone(estimator).fit(X).set_params(alpha=2.0).fit(X)
    other = clone(estimator).set_params(alpha=2.0).fit(X)
    assert one.get_params()["alpha"] == 2.0
    assert_array_equal(one.reconstruct(), other.reconstruct())


@pytest.mark.parametrize("bias", [False, True])
def test_set_params_does_not_change_the_last_fit(bias):
    model = clone(ESTIMATORS[0]).set_params(bias=bias).fit(X)
    before = model.reconstruct()
    assert_array_equal(model.set_params(bias=not bias, n_components=1).reconstruct(), before)


def test_an_unknown_parameter_is_refused_by_name():
    with pytest.raises(ValueError, match="Invalid parameter 'lambda_' for estimator FroCMC"):
        FroCMC().set_params(lambda_=1)


@each_estimator
def test_fit_changes_no_parameter(estimator):
    limits = np.full(X.shape[1], CEILING)
    model = clone(estimator).set_params(ceiling=limits)
    before = model.get_params()
    model.fit(X)
    after = model.get_params()
    assert all(after[name] is before[name] for name in before)
    assert_array_equal(limits, CEILING)


@each_estimator
@pytest.mark.parametrize("order", ["C", "F"])
def test_fit_and_transform_leave_the_table_alone(estimator, order):
    table = np.array(X, order=order)
    table.flags.writeable = False
    clone(estimator).fit_transform(table)
    clone(estimator).fit(table).transform(table)
    assert_array_equal(table, X)


@each_estimator
def test_the_restored_table_is_not_the_table_that_was_given(estimator):
    assert not np.shares_memory(clone(estimator).fit_transform(X), X)


@each_with_mode
def test_a_second_fit_is_identical_bit_for_bit(estimator, clipped):
    model = clone(estimator).set_params(clipped=clipped).fit(X)
    first = fitted_state(model)
    np.testing.assert_equal(fitted_state(model.fit(X)), first)


@each_estimator
def test_another_table_leaves_no_trace_in_the_next_fit(estimator):
    model = clone(estimator).fit(FRAME).fit(X[:30, :9])
    np.testing.assert_equal(fitted_state(model), fitted_state(clone(estimator).fit(X[:30, :9])))


@each_with_factors
@pytest.mark.parametrize("clipped", MODES)
@pytest.mark.parametrize("bias", [False, True])
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_a_warm_start_begins_where_the_last_fit_ended(estimator, clipped, bias):
    model = clone(estimator).set_params(clipped=clipped, bias=bias, warm_start=True, max_iter=4)
    ended = model.fit(X).objective_
    # The same sum over the same factors: equal to rounding, eps times the number of cells.
    assert_allclose(model.fit(X).history_[0], ended, rtol=1e-12)
    assert model.objective_ < ended


@each_that_falls
def test_without_warm_start_the_last_fit_does_not_count(estimator):
    model = clone(estimator).fit(X)
    start = model.history_[0]
    assert model.fit(X).history_[0] == start > model.objective_


@each_with_factors
@pytest.mark.parametrize("change", [{"n_components": 3}, {"bias": True}])
def test_a_warm_start_with_another_model_begins_anew(estimator, change):
    warm = clone(estimator).set_params(warm_start=True).fit(X).set_params(**change).fit(X)
    np.testing.assert_equal(
        fitted_state(warm), fitted_state(clone(estimator).set_params(**change).fit(X))
    )


def test_a_warm_start_without_bias_forgets_the_mean_of_a_fit_with_bias():
    warm = clone(ESTIMATORS[0]).set_params(bias=True, warm_start=True).fit(X)
    assert warm.set_params(bias=False).fit(X).mean_ == 0


def test_a_warm_start_with_another_shape_begins_anew():
    warm = clone(ESTIMATORS[0]).set_params(warm_start=True).fit(X).fit(X[:30])
    np.testing.assert_equal(fitted_state(warm), fitted_state(clone(ESTIMATORS[0]).fit(X[:30])))


@each_estimator
@pytest.mark.parametrize("duplicate", [lambda e: pickle.loads(pickle.dumps(e)), copy.deepcopy])
def test_pickle_and_copy_keep_the_fit(estimator, duplicate):
    model = clone(estimator).fit(FRAME)
    twin = duplicate(model)
    np.testing.assert_equal(fitted_state(twin), fitted_state(model))
    assert_array_equal(twin.transform(FRAME), model.transform(FRAME))


@each_estimator
def test_a_pipeline_restores_before_the_next_step(estimator):
    pipeline = make_pipeline(clone(estimator), PCA(n_components=2, random_state=0))
    restored = clone(estimator).fit_transform(X)
    expected = PCA(n_components=2, random_state=0).fit_transform(restored)
    assert_array_equal(pipeline.fit_transform(X), expected)


@each_estimator
def test_a_pipeline_transforms_new_rows(estimator):
    pipeline = make_pipeline(clone(estimator), PCA(n_components=2, random_state=0)).fit(X[:30])
    expected = pipeline[-1].transform(pipeline[0].transform(X[30:]))
    assert_array_equal(pipeline.transform(X[30:]), expected)


@each_with_factors
def test_a_grid_search_on_score_finds_the_rank(estimator):
    # Noise of a tenth of the spread: rank 1 misses half of the variance, rank 6 fits the noise.
    table = simulated((60, 20), rank=2, noise=0.15, seed=1)
    grid = {"n_components": [1, 2, 6], "alpha": [1e-2, 1.0, 30.0]}
    search = GridSearchCV(clone(estimator), grid, cv=3).fit(table)
    assert search.best_params_["n_components"] == 2
    assert search.best_params_["alpha"] < 30
    assert np.isfinite(search.cv_results_["mean_test_score"]).all()


def test_the_best_estimator_of_a_search_is_the_one_fitted_alone():
    search = GridSearchCV(clone(ESTIMATORS[0]), {"alpha": [0.1, 10.0]}, cv=3).fit(X)
    alone = clone(ESTIMATORS[0]).set_params(**search.best_params_).fit(X)
    assert_array_equal(search.transform(X), alone.transform(X))


@each_estimator
@pytest.mark.parametrize("method", ["transform", "fit_transform"])
def test_pandas_output_keeps_columns_and_index(estimator, method):
    model = clone(estimator).set_output(transform="pandas").fit(FRAME)
    restored = getattr(model, method)(FRAME)
    pd.testing.assert_index_equal(restored.columns, FRAME.columns)
    pd.testing.assert_index_equal(restored.index, FRAME.index)
    assert_array_equal(restored, getattr(clone(estimator).fit(X), method)(X))


@each_estimator
@pytest.mark.parametrize("method", ["transform", "fit_transform"])
def test_polars_output_keeps_columns(estimator, method):
    frame = pl.DataFrame(FRAME.to_dict("list"), strict=False)
    model = clone(estimator).set_output(transform="polars").fit(frame)
    restored = getattr(model, method)(frame)
    assert isinstance(restored, pl.DataFrame)
    assert restored.columns == NAMES


def test_pandas_output_of_an_intervals_table_has_its_columns():
    intervals = Intervals.from_table(FRAME, ceiling=CEILING)
    restored = FroCMC(2, random_state=0).set_output(transform="pandas").fit_transform(intervals)
    assert restored.columns.tolist() == NAMES


@each_estimator
@pytest.mark.parametrize(
    "table", [FRAME, pl.from_pandas(FRAME), Intervals.from_table(FRAME, ceiling=CEILING)]
)
def test_feature_names_go_in_and_come_out(estimator, table):
    model = without_limits(estimator) if isinstance(table, Intervals) else clone(estimator)
    model.fit(table)
    assert model.n_features_in_ == len(NAMES)
    assert model.feature_names_in_.tolist() == NAMES
    assert model.get_feature_names_out().tolist() == NAMES


@each_estimator
def test_a_table_without_names_gets_numbered_ones(estimator):
    model = clone(estimator).fit(X)
    assert not hasattr(model, "feature_names_in_")
    assert model.get_feature_names_out().tolist() == [f"x{j}" for j in range(X.shape[1])]


@each_estimator
@pytest.mark.parametrize("method", ["transform", "predict", "score"])
def test_other_column_names_are_refused_by_name(estimator, method):
    model = clone(estimator).fit(FRAME)
    renamed = FRAME.rename(columns={"item 3": "item three"})
    message = (
        "The feature names should match those that were passed during fit.\n"
        "Feature names unseen at fit time:\n- item three\n"
        "Feature names seen at fit time, yet now missing:\n- item 3\n"
    )
    with pytest.raises(ValueError, match=message):
        getattr(model, method)(renamed)


@each_estimator
def test_columns_in_another_order_are_refused(estimator):
    model = clone(estimator).fit(FRAME)
    with pytest.raises(ValueError, match="must be in the same order as they were in fit"):
        model.transform(FRAME[NAMES[::-1]])


@each_estimator
def test_other_column_names_of_an_intervals_table_are_refused(estimator):
    model = clone(estimator).fit(FRAME)
    renamed = Intervals.from_table(FRAME.rename(columns={"item 3": "item three"}), ceiling=CEILING)
    with pytest.raises(ValueError, match="unseen at fit time: item three"):
        model.transform(renamed)


@each_estimator
@pytest.mark.parametrize("kind", [np.asarray, Intervals.from_table])
@pytest.mark.parametrize("method", ["transform", "predict", "score"])
def test_another_number_of_columns_is_refused_with_both(estimator, kind, method):
    model = clone(estimator).fit(X)
    message = f"X has 5 features, but {type(model).__name__} is expecting 12 features as input"
    with pytest.raises(ValueError, match=message):
        getattr(model, method)(kind(X[:, :5]))


@each_estimator
def test_callbacks_see_one_task_a_sweep(estimator):
    seen = Recorder()
    model = clone(estimator).set_callbacks(seen).fit(X)
    assert seen.began == ["fit", *["sweep"] * model.n_iter_]
    assert seen.ended == [*["sweep"] * model.n_iter_, "fit"]
    assert seen.max_sweeps == model.max_iter
    assert seen.closed == 1


@each_estimator
def test_callbacks_see_the_table_that_was_given(estimator):
    seen = Recorder()
    clone(estimator).set_callbacks(seen).fit(FRAME)
    assert all(table is FRAME for table in seen.tables)


@each_estimator
def test_callbacks_do_not_change_the_fit(estimator):
    watched = clone(estimator).set_callbacks(Recorder()).fit(X)
    assert_array_equal(watched.reconstruct(), clone(estimator).fit(X).reconstruct())


@each_estimator
def test_a_callback_that_answers_true_stops_the_fit(estimator, recwarn):
    seen = Recorder(stop_after=3)
    model = clone(estimator).set_callbacks(seen).fit(X)
    assert model.n_iter_ == 3
    assert not model.converged_
    assert seen.closed == 1
    # Who stops a fit knows that it did not settle.
    assert not [w for w in recwarn if issubclass(w.category, ConvergenceWarning)]


@each_estimator
def test_callbacks_get_an_estimator_that_is_ready_for_use(estimator):
    seen = Recorder(stop_after=3)
    model = clone(estimator).set_callbacks(seen).fit(FRAME)
    early = seen.models[0]
    exact = X < CEILING
    assert early.n_iter_ == 1
    assert early.objective_ == model.history_[1]
    assert_array_equal(early.transform(FRAME)[exact], X[exact])
    # A dot product of 2 factors, summed in another order: a few eps of entries up to ~10.
    assert_allclose(early.predict([3, 4], [0, 1]), early.reconstruct()[[3, 4], [0, 1]], rtol=1e-13)


@each_that_falls
def test_the_estimator_of_an_early_sweep_stays_as_it_was(estimator):
    seen = Recorder()
    clone(estimator).set_callbacks(seen).fit(X)
    objectives = [early.objective_ for early in seen.models]
    assert objectives == sorted(objectives, reverse=True)
    # a splitting shows the same matrix until the next one is complete
    assert len({early.row_factors_.tobytes() for early in seen.models}) > 1


@each_estimator
def test_callbacks_are_closed_when_a_fit_fails(estimator):
    class Failing(Recorder):
        def on_fit_task_end(self, estimator, context):
            raise RuntimeError("no space left on the log")

    seen = Failing()
    with pytest.raises(RuntimeError, match="no space left"):
        clone(estimator).set_callbacks(seen).fit(X)
    assert seen.closed == 1


@each_estimator
def test_the_progress_bar_shows_the_fit(estimator, capsys):
    clone(estimator).set_callbacks(ProgressBar()).fit(X)
    assert f"{type(estimator).__name__} - fit" in capsys.readouterr().out


@each_estimator
@pytest.mark.filterwarnings("ignore:The estimator PCA does not support callbacks")
def test_the_progress_bar_of_a_pipeline_shows_the_fit(estimator, capsys):
    pipeline = make_pipeline(clone(estimator), PCA(n_components=2))
    pipeline.set_callbacks(ProgressBar()).fit(X)
    assert type(estimator).__name__ in capsys.readouterr().out


@each_estimator
def test_the_scoring_monitor_scores_every_sweep(estimator):
    monitor = ScoringMonitor(scoring={"error": lambda model, X, y: model.score(X)})
    model = clone(estimator).set_callbacks(monitor).fit(X, np.zeros(len(X)))
    rows = [row for row in monitor.get_logs().data if row["task_name"] == "sweep"]
    assert [row["task_id"] for row in rows] == list(range(model.n_iter_))
    assert rows[-1]["error"] > rows[0]["error"]


@each_estimator
@pytest.mark.parametrize("every", [1, 4])
def test_verbose_prints_the_objective_every_so_many_sweeps(estimator, every, capsys):
    model = clone(estimator).set_params(verbose=every).fit(X)
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == model.n_iter_ // every
    assert f"{every}: objective {model.history_[every]:.8g}" in lines[0]


@each_estimator
def test_silence_is_the_default(estimator, capsys):
    clone(estimator).fit(X)
    assert capsys.readouterr() == ("", "")
