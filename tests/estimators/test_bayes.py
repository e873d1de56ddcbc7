"""BayesCMC: what it restores, how sure it is, and how it behaves."""

import pickle

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.utils.estimator_checks import parametrize_with_checks
from tests.callbacks import Callback

from declip import BayesCMC, Intervals, pool

SHORT = {"n_samples": 30, "burn_in": 20, "random_state": 0}
CHECKED = [
    BayesCMC(n_samples=10, burn_in=5),
    BayesCMC(n_samples=6, burn_in=5, chains=1, noise="row+column", df=4.0, warm_start=True),
    BayesCMC(n_components=1, n_samples=6, burn_in=5, noise="global", n_jobs=2),
]
pytestmark = [
    pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning"),
    pytest.mark.filterwarnings("ignore:.*(exact|observed) cell"),
]


def simulated(shape=(150, 12), rank=2, noise=0.4, quantile=0.7, missing=0.1, seed=0):
    """Return a truth, its limits, which cells are seen, and the table."""
    rng = np.random.default_rng(seed)
    P, Q = (rng.standard_normal((n, rank)) for n in shape)
    truth = P @ Q.T + rng.standard_normal(shape[1]) + noise * rng.standard_normal(shape)
    ceiling = np.quantile(truth, quantile, axis=0)
    seen = rng.random(shape) > missing
    return truth, ceiling, seen, np.where(seen, np.minimum(truth, ceiling), np.nan)


TRUTH, CEILING, SEEN, X = simulated()
CLIPPED = SEEN & (TRUTH >= CEILING)
MODEL = BayesCMC(ceiling=CEILING, n_samples=150, burn_in=100, random_state=0)


@pytest.fixture(scope="module")
def fitted():
    return clone(MODEL).fit(X)


@pytest.fixture(scope="module")
def short():
    return BayesCMC(ceiling=CEILING, **SHORT).fit(X)


@pytest.mark.filterwarnings("ignore")
@parametrize_with_checks(CHECKED)
def test_scikit_learn_checks_pass_without_expected_failures(estimator, check):
    check(estimator)


def rmse(x, truth):
    return np.sqrt(np.mean((x - truth) ** 2))


def test_clipped_cells_come_closer_to_the_truth_than_their_limits():
    restored = clone(MODEL).fit_transform(X)
    limits = np.broadcast_to(CEILING, X.shape)
    assert rmse(restored[CLIPPED], TRUTH[CLIPPED]) < 0.6 * rmse(limits[CLIPPED], TRUTH[CLIPPED])


def test_restored_cells_are_exact_or_within_their_intervals():
    restored = clone(MODEL).set_params(**SHORT).fit_transform(X)
    exact = SEEN & ~CLIPPED
    assert_array_equal(restored[exact], TRUTH[exact])
    assert np.all(restored[CLIPPED] > np.broadcast_to(CEILING, X.shape)[CLIPPED])
    assert np.isfinite(restored).all()


def test_intervals_of_clipped_cells_go_from_the_limit_to_a_quantile(fitted):
    cells = np.nonzero(CLIPPED)
    low, high = fitted.predict_interval(*cells, coverage=0.9)
    assert_array_equal(low, np.broadcast_to(CEILING, X.shape)[CLIPPED])
    wider = fitted.predict_interval(*cells, coverage=0.99)[1]
    assert np.all((low < high) & (high < wider))


def test_intervals_cover_what_they_promise_on_data_from_the_model():
    # 6 tables: some 3000 clipped and 1000 missing cells, so that the share has an error of 0.01.
    inside = {"clipped": [], "missing": []}
    for seed in range(6):
        truth, ceiling, seen, table = simulated(seed=seed + 10)
        model = clone(MODEL).set_params(ceiling=ceiling).fit(table)
        for kind, cells in (("clipped", seen & (truth >= ceiling)), ("missing", ~seen)):
            low, high = model.predict_interval(*np.nonzero(cells), coverage=0.9)
            inside[kind].extend((low <= truth[cells]) & (truth[cells] <= high))
    for kind, hits in inside.items():
        assert 0.86 <= np.mean(hits) <= 0.94, kind


def test_intervals_of_exact_cells_are_their_values(short):
    row, col = np.argwhere(SEEN & ~CLIPPED)[5]
    low, high = short.predict_interval([row], [col])
    assert low[0] == high[0] == X[row, col]


def test_intervals_of_missing_cells_have_equal_tails(short):
    cells = np.nonzero(~SEEN)
    low, high = short.predict_interval(*cells, coverage=0.8)
    for end, share in ((low, 0.9), (high, 0.1)):
        assert_allclose(short.probability_above(*cells, end), share, atol=1e-6)


def test_a_floor_mirrors_a_ceiling():
    model = BayesCMC(floor=-CEILING, **SHORT).fit(-X)
    row, col = np.argwhere(CLIPPED)[0]
    low, high = model.predict_interval([row], [col])
    assert low[0] < high[0] == -CEILING[col]
    assert model.fit_transform(-X)[row, col] < -CEILING[col]


def test_a_range_gives_an_interval_within_it():
    lower, upper = X.copy(), X.copy()
    lower[CLIPPED], upper[CLIPPED] = X[CLIPPED] - 0.5, X[CLIPPED] + 0.5
    model = BayesCMC(**SHORT).fit(Intervals.from_bounds(lower, upper))
    low, high = model.predict_interval(*np.nonzero(CLIPPED))
    assert np.all((lower[CLIPPED] < low) & (low < high) & (high < upper[CLIPPED]))


def test_the_standard_deviation_includes_the_noise(fitted):
    cells = np.nonzero(~SEEN)
    mean, std = fitted.predict(*cells, return_std=True)
    assert_array_equal(mean, fitted.predict(*cells))
    assert np.all(std >= 0.8 * fitted.noise_scale_[cells[1]])
    # Residuals over their deviation have variance 1, here of some 180 cells: 0.1 of error.
    assert_allclose(np.std((TRUTH[cells] - mean) / std), 1, atol=0.25)


def test_noise_scales_are_found_in_the_units_of_the_columns():
    units = np.logspace(-3, 3, 12)
    model = clone(MODEL).set_params(n_components=2, ceiling=CEILING * units).fit(X * units)
    # A column has 90 exact cells: an error of its scale of 8 %, and the prior adds to small ones.
    assert_allclose(np.median(model.noise_scale_ / units), 0.4, rtol=0.2)


def test_probabilities_above_a_threshold_fall_with_it(short):
    rows, cols = np.nonzero(~SEEN)
    shares = [short.probability_above(rows, cols, t) for t in (-3.0, 0.0, 3.0)]
    assert np.all(shares[0] > shares[1])
    assert np.all(shares[1] > shares[2])


def test_ratings_have_noise_scales_of_rows():
    rng = np.random.default_rng(0)
    shape = (120, 80)
    spread = np.where(np.arange(shape[0]) < 60, 0.2, 1.0)
    truth = rng.standard_normal(shape[0])[:, None] + rng.standard_normal(shape[1])
    truth += spread[:, None] * rng.standard_normal(shape)
    table = sparse.csr_array(np.where(rng.random(shape) < 0.2, np.minimum(truth, 1), 0))
    model = BayesCMC(2, ceiling=1, n_samples=60, burn_in=60, random_state=0).fit(table)
    assert model.noise_ == "row+column"
    assert model.row_noise_[:60].mean() < 0.5 * model.row_noise_[60:].mean()


def test_student_noise_is_not_led_astray_by_outliers():
    rng = np.random.default_rng(1)
    table = X.copy()
    wild = np.argwhere(SEEN & ~CLIPPED)
    wild = wild[rng.choice(len(wild), 60, replace=False)]
    table[tuple(wild.T)] -= 15
    errors = [
        rmse(clone(MODEL).set_params(df=df).fit_transform(table)[CLIPPED], TRUTH[CLIPPED])
        for df in (None, 3.0)
    ]
    assert errors[1] < 0.8 * errors[0]


def test_auto_takes_a_table_for_a_table_and_no_more_factors_than_it_has(short):
    assert short.noise_ == "column"
    assert short.n_components_ == 10
    assert BayesCMC(**SHORT).fit(X[:, :4]).n_components_ == 3


@pytest.mark.parametrize(("noise", "most"), [("column", 15), ("row+column", 10), ("global", 10)])
def test_a_wide_table_may_take_more_factors_than_cells_that_share_a_unit(noise, most):
    rng = np.random.default_rng(0)
    model = BayesCMC(noise=noise, n_samples=2, burn_in=2, random_state=0)
    assert model.fit(rng.normal(size=(40, 30))).n_components_ == most


def test_new_rows_are_restored_under_the_fitted_columns(fitted):
    restored = fitted.transform(X[:50])
    clipped, missing = CLIPPED[:50], ~SEEN[:50]
    limits = np.broadcast_to(CEILING, X.shape)[:50]
    truth = TRUTH[:50]
    assert rmse(restored[clipped], truth[clipped]) < 0.6 * rmse(limits[clipped], truth[clipped])
    assert rmse(restored[missing], truth[missing]) < 0.8 * truth[missing].std()


def test_a_new_row_does_not_depend_on_the_others(short):
    assert_array_equal(short.transform(X[7:8])[0], short.transform(X)[7])


def test_the_result_does_not_depend_on_threads(short):
    many = clone(short).set_params(n_jobs=2).fit(X)
    assert_array_equal(many.reconstruct(), short.reconstruct())


def test_a_second_fit_is_identical(short):
    assert_array_equal(clone(short).fit(X).reconstruct(), short.reconstruct())


def test_sparse_and_dense_tables_agree(short):
    rows, cols = np.nonzero(SEEN)
    table = sparse.coo_array((X[SEEN], (rows, cols)), X.shape)
    assert_array_equal(clone(short).fit(table).reconstruct(), short.reconstruct())


def test_a_warm_start_goes_on_where_the_last_fit_ended():
    whole = BayesCMC(ceiling=CEILING, **SHORT | {"n_samples": 50}).fit(X)
    parts = BayesCMC(ceiling=CEILING, **SHORT, warm_start=True).fit(X).set_params(n_samples=20)
    assert_array_equal(parts.fit(X).reconstruct(), whole.reconstruct())
    assert parts.n_iter_ == whole.n_iter_ == 70


@pytest.mark.parametrize("change", [{"n_components": 2}, {"chains": 1}, {"noise": "global"}])
def test_a_warm_start_with_another_model_begins_anew(change):
    warm = BayesCMC(ceiling=CEILING, **SHORT, warm_start=True).fit(X).set_params(**change).fit(X)
    assert warm.n_iter_ == 50


def test_a_warm_start_with_another_table_begins_anew():
    warm = BayesCMC(ceiling=CEILING, **SHORT, warm_start=True).fit(X)
    assert warm.fit(np.where(SEEN, X - 1e-3, X)).n_iter_ == 50


def test_pickle_keeps_the_fit(short):
    twin = pickle.loads(pickle.dumps(short))
    assert_array_equal(twin.transform(X), short.transform(X))


def test_frames_keep_their_labels():
    frame = pd.DataFrame(X, columns=[f"c{j}" for j in range(12)])
    restored = (
        BayesCMC(ceiling=CEILING, **SHORT).set_output(transform="pandas").fit_transform(frame)
    )
    assert list(restored.columns) == list(frame.columns)


def test_memory_does_not_grow_with_the_number_of_samples():
    model = BayesCMC(ceiling=CEILING, **SHORT | {"n_samples": 200}, max_kept=20).fit(X)
    assert 10 <= len(model.posterior_.samples) <= 20


def test_complete_tables_hold_what_is_known_and_vary_in_the_rest(short):
    tables = short.sample(4, random_state=0)
    exact = SEEN & ~CLIPPED
    assert tables.shape == (4, *X.shape)
    assert_array_equal(tables[:, exact], np.tile(X[exact], (4, 1)))
    assert np.all(tables[:, CLIPPED] >= np.broadcast_to(CEILING, X.shape)[CLIPPED])
    assert np.all(tables[:, ~exact].std(axis=0) > 0)


def test_complete_tables_have_the_mean_and_deviation_of_the_posterior(fitted):
    tables = fitted.sample(100, random_state=0)
    mean, std = fitted.predict(*np.nonzero(~SEEN), return_std=True)
    drawn = tables[:, ~SEEN]
    # 100 tables: errors of a tenth of the deviation.
    assert_allclose(np.mean((drawn.mean(axis=0) - mean) / std), 0, atol=0.05)
    assert_allclose(np.mean(drawn.std(axis=0) / std), 1, atol=0.1)


def test_pooled_means_cover_the_mean_of_the_complete_table(fitted):
    tables = fitted.sample(20, random_state=1)
    n = len(X)
    pooled = pool((t.mean(axis=0), t.std(axis=0, ddof=1) / np.sqrt(n)) for t in tables)
    low, high = pooled.interval(0.99)
    assert np.all((low < TRUTH.mean(axis=0)) & (TRUTH.mean(axis=0) < high))
    assert np.all(pooled.std_error > TRUTH.std(axis=0) / np.sqrt(n) * 0.8)


def test_convergence_is_reported_by_kind(fitted):
    kinds = {"cells", "column means", "noise scales"}
    assert set(fitted.r_hat_) == set(fitted.ess_) == kinds
    assert fitted.converged_
    assert np.median(fitted.ess_["cells"]) > 30


def test_noise_scales_and_effective_sizes_count_for_convergence(fitted, monkeypatch):
    run = fitted.run_
    assert run.disagreement() == ""
    apart = {**run.r_hat(), "noise scales": np.full(5, 1.3)}
    monkeypatch.setattr(type(run), "r_hat", lambda _: apart)
    assert run.disagreement() == "R-hat is above 1.2 for 100% of the noise scales"
    monkeypatch.undo()
    few = {**run.effective(), "cells": np.full(5, 4.0)}
    monkeypatch.setattr(type(run), "effective", lambda _: few)
    assert "effective sample size is below 10 for 100% of the cells" in run.disagreement()
    assert not run.converged


def test_chains_are_kept_apart(fitted):
    chains = fitted.posterior_.by_chain()
    assert len(chains) == fitted.chains == 2
    samples = [sample for chain in chains for sample in chain.samples]
    assert all(a is b for a, b in zip(samples, fitted.posterior_.samples, strict=True))
    at = np.array([0, 1], np.int32), np.array([2, 3], np.int32)
    each = [chain.predict(*at) for chain in chains]
    assert_allclose(np.mean(each, axis=0), fitted.posterior_.predict(*at))


def test_a_posterior_prints_in_ten_lines(fitted):
    lines = str(fitted.posterior_).splitlines()
    assert lines[0] == f"Posterior of a {X.shape[0]} x {X.shape[1]} table"
    assert len(lines) <= 10
    means = fitted.posterior_.column_means()
    assert_allclose(means, fitted.posterior_.block().mean(axis=0), rtol=1e-5)


def test_transform_of_the_fitted_rows_agrees_with_fit_transform(fitted):
    once, again = fitted._restored(fitted.intervals_, fitted.posterior_), fitted.transform(X)
    spread = fitted.posterior_.moments(*np.indices(X.shape, np.int32).reshape(2, -1))[1]
    # means over 150 draws, one in three of them independent: five standard errors of the two
    assert np.all(abs(once - again).ravel() < 5 * spread * np.sqrt(2 / 50))


@pytest.mark.filterwarnings("default")
def test_chains_that_do_not_agree_bring_a_warning_that_says_what_to_do():
    with pytest.warns(ConvergenceWarning, match="Raise n_samples and burn_in, or set warm_start"):
        BayesCMC(ceiling=CEILING, n_samples=4, burn_in=0, random_state=0).fit(X)


def test_a_wholly_clipped_column_is_restored_beyond_its_limit_with_a_warning():
    table = X.copy()
    table[:, 3] = np.where(SEEN[:, 3], CEILING[3], np.nan)
    with pytest.warns(UserWarning, match=r"1 column \(3\) without an exact cell"):
        restored = BayesCMC(ceiling=CEILING, **SHORT).fit_transform(table)
    assert np.isfinite(restored).all()
    assert np.all(restored[SEEN[:, 3], 3] > CEILING[3])


def test_one_row_and_one_column_tables_are_filled():
    for table in (X[:1], X[:, :1]):
        assert np.isfinite(BayesCMC(**SHORT).fit_transform(table)).all()


def test_a_table_without_limits_or_gaps_comes_back_as_it_was():
    assert_array_equal(BayesCMC(**SHORT).fit_transform(TRUTH), TRUTH)


def test_extreme_scales_do_no_harm():
    for scale in (1e-140, 1e140):
        restored = BayesCMC(ceiling=CEILING * scale, **SHORT).fit_transform(X * scale)
        expected = BayesCMC(ceiling=CEILING, **SHORT).fit_transform(X)
        assert_allclose(restored / scale, expected, rtol=1e-3, atol=1e-3)


class Recorder(Callback):
    def __init__(self, stop_after=None):
        self.stop_after, self.models = stop_after, []

    def setup(self, estimator, context):
        self.max_sweeps = context.max_subtasks

    def on_fit_task_end(self, estimator, context, *, fitted_estimator=None):
        if context.task_name == "sweep":
            self.models.append(fitted_estimator)
        return self.stop_after is not None and len(self.models) >= self.stop_after


def test_callbacks_see_every_sweep_and_can_stop_the_fit():
    seen = Recorder(stop_after=30)
    model = BayesCMC(ceiling=CEILING, **SHORT).set_callbacks(seen).fit(X)
    assert seen.max_sweeps == 50
    assert model.n_iter_ == len(seen.models) == 30
    assert [m.n_iter_ for m in seen.models] == list(range(1, 31))
    assert np.isfinite(seen.models[0].predict([0], [0])).all()


def test_verbose_prints_the_misfit(capsys):
    model = BayesCMC(ceiling=CEILING, **SHORT, verbose=25).fit(X)
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 2
    assert f"{model.history_[24]:.8g}" in lines[0]


def test_what_needs_a_fit_says_so():
    for ask in (
        lambda m: m.predict_interval([0], [0]),
        lambda m: m.sample(),
        lambda m: m.predict([0], [0]),
    ):
        with pytest.raises(NotFittedError):
            ask(BayesCMC())


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"n_components": 0}, "'n_components' parameter"),
        ({"n_components": 13}, "from 1 to 12"),
        ({"noise": "rows"}, "'noise' parameter"),
        ({"df": 1.0}, "'df' parameter"),
        ({"chains": 0}, "'chains' parameter"),
    ],
)
def test_parameters_that_make_no_sense_are_refused(params, message):
    with pytest.raises(ValueError, match=message):
        BayesCMC(**params).fit(X)


@pytest.mark.parametrize("coverage", [0, 1, 90])
def test_a_coverage_that_is_no_share_is_refused(short, coverage):
    with pytest.raises(ValueError, match="coverage must lie between 0 and 1"):
        short.predict_interval([0], [0], coverage=coverage)


def test_deviations_of_a_new_table_are_refused_with_the_way_out(short):
    with pytest.raises(ValueError, match="for single cells of the fitted table"):
        short.predict(X, return_std=True)


def test_samples_that_cannot_fit_in_memory_are_refused_before_the_fit(monkeypatch):
    monkeypatch.setattr("declip.validation.sizes.free_memory", lambda: 1e5)
    monkeypatch.setattr("declip.validation.sizes.ALWAYS_TRIED", 1)
    with pytest.raises(MemoryError, match="lower max_kept or n_components"):
        BayesCMC(ceiling=CEILING).fit(X)
