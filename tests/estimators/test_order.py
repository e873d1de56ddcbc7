"""An order in time: factors that drift and repeat, for FroCMC and BayesCMC."""

import warnings

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose

import declip
from declip import BayesCMC, FroCMC, Intervals

DAYS, PRODUCTS = 56, 20
T = np.arange(DAYS + 7)
rng = np.random.default_rng(0)
PATHS = np.stack([np.cumsum(rng.normal(size=T.size)) / 3, np.sin(2 * np.pi * T / 7), 1 + 0 * T])
TRUTH = rng.normal(size=(PRODUCTS, 3)) @ PATHS
NOISY = TRUTH + 0.5 * rng.normal(size=TRUTH.shape)
SEEN = np.where(rng.random(NOISY.shape) < 0.2, np.nan, np.minimum(NOISY, 1.5))
CEILING = 1.5


@pytest.fixture(autouse=True)
def _quiet():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


def rms(errors):
    return np.sqrt(np.mean(errors**2))


def test_the_fit_is_stationary_for_the_penalty_that_couples_the_steps():
    model = FroCMC(
        3, alpha=2.0, scale="none", order="columns", period=7, random_state=0, tol=1e-13,
        max_iter=20_000,
    )  # fmt: skip
    table = np.where(np.isnan(SEEN), np.nan, NOISY)[:, :DAYS]
    model.fit(table)
    P, Q, seen = model.row_factors_, model.components_.T, ~np.isnan(table)
    K = np.linalg.inv(np.eye(DAYS) + model.course_.covariance(DAYS))
    residual = np.where(seen, P @ Q.T - np.where(seen, table, 0), 0)
    value = 0.5 * (residual**2).sum() + model.alpha * (0.5 * (P**2).sum() + 0.5 * np.vdot(Q, K @ Q))
    assert_allclose(model.objective_, value, rtol=1e-9)
    assert np.all(np.diff(model.history_) <= 1e-9 * model.history_[0])
    size = np.abs(residual).max() * np.abs(P).max()
    assert np.abs(residual.T @ P + model.alpha * (K @ Q)).max() < 1e-3 * size


@pytest.mark.parametrize("order", ["columns", "rows"])
def test_order_brings_the_estimate_nearer_to_the_truth(order):
    table = SEEN[:, :DAYS] if order == "columns" else SEEN[:, :DAYS].T
    how = {"clipped": "tobit", "ceiling": CEILING, "random_state": 0, "n_components": 6}
    plain = FroCMC(**how, scale="table").fit(table).reconstruct()
    timed = FroCMC(**how, scale="table", order=order, period=7).fit(table).reconstruct()
    truth = TRUTH[:, :DAYS] if order == "columns" else TRUTH[:, :DAYS].T
    assert rms(timed - truth) < 0.9 * rms(plain - truth)


def test_rows_and_columns_are_the_same_transposed():
    how = {"n_components": 2, "alpha": 2.0, "scale": "none", "init": "svd", "period": 7}
    how |= {"ceiling": CEILING, "tol": 1e-12, "max_iter": 5000, "random_state": 0}
    one = FroCMC(order="columns", **how).fit(SEEN[:, :DAYS])
    other = FroCMC(order="rows", **how).fit(SEEN[:, :DAYS].T)
    assert_allclose(one.objective_, other.objective_, rtol=1e-5)


def test_new_days_are_forecast_without_a_cell_and_nearer_than_a_seasonal_mean():
    days = [f"day {t:02d}" for t in T]
    frame = pd.DataFrame(SEEN, columns=days)
    model = FroCMC(6, clipped="tobit", ceiling=CEILING, order="columns", period=7, random_state=0)
    model.fit(frame[days[:DAYS]]).extend(frame[days[DAYS:]] * np.nan)
    found = model.reconstruct(cols=np.arange(DAYS, DAYS + 7))
    truth = TRUTH[:, DAYS:]
    seasonal = np.nanmean(SEEN[:, :DAYS].reshape(PRODUCTS, -1, 7), axis=1)
    assert list(model.column_labels_) == days
    assert rms(found - truth) < rms(seasonal - truth)


def test_bands_of_new_days_hold_them_and_widen():
    model = FroCMC(6, clipped="tobit", ceiling=CEILING, order="columns", period=7, random_state=0)
    model.fit(SEEN[:, :DAYS]).extend(np.full(SEEN.shape, np.nan))
    rows, cols = (a.ravel() for a in np.indices((PRODUCTS, 7)))
    mean, sd = model.predictive(rows, cols + DAYS)
    held = np.mean(abs(NOISY[rows, cols + DAYS] - mean) < 1.645 * sd)
    assert 0.8 < held <= 1.0
    by_day = sd.reshape(PRODUCTS, 7).mean(axis=0)
    assert by_day[6] > by_day[0] > model.predictive(rows, cols)[1].mean()


def test_an_order_without_an_exact_cell_says_how_sure_it_is():
    table = np.floor(TRUTH[:, :DAYS])
    cells = Intervals.from_bounds(table, table + 1)
    model = FroCMC(2, clipped="tobit", order="columns", random_state=0).fit(cells)
    assert np.all(model.predictive([0, 1], [0, 9])[1] > 0)


def test_the_posterior_is_nearer_with_order_and_holds_the_days_to_come(tmp_path):
    table = SEEN.copy()
    table[:, DAYS:] = np.nan
    how = {"ceiling": CEILING, "n_samples": 150, "burn_in": 100, "chains": 2, "random_state": 0}
    plain = BayesCMC(6, noise="row+column", **how).fit(table[:, :DAYS])
    timed = BayesCMC(6, order="columns", period=7, **how).fit(table)
    past = rms(timed.reconstruct()[:, :DAYS] - TRUTH[:, :DAYS])
    assert past < 0.95 * rms(plain.reconstruct() - TRUTH[:, :DAYS])
    rows, cols = (a.ravel() for a in np.indices((PRODUCTS, 7)))
    low, high = timed.predict_interval(rows, cols + DAYS, coverage=0.9)
    covered = np.mean((NOISY[rows, cols + DAYS] > low) & (NOISY[rows, cols + DAYS] < high))
    assert 0.8 < covered <= 1.0
    # the farther ahead, the less is known
    sd = timed.predictive(rows, cols + DAYS)[1].reshape(PRODUCTS, 7).mean(axis=0)
    assert sd[6] > sd[0]
    again = declip.load(timed.save(tmp_path / "model.npz"))
    assert_allclose(again.predict([0], [60]), timed.predict([0], [60]))


def test_the_other_layout_of_the_posterior_is_nearer_too():
    table = SEEN[:, :DAYS].T
    how = {"ceiling": CEILING, "n_samples": 150, "burn_in": 100, "chains": 1, "random_state": 0}
    plain = BayesCMC(6, **how).fit(table)
    timed = BayesCMC(6, order="rows", period=7, **how).fit(table)
    truth = TRUTH[:, :DAYS].T
    assert rms(timed.reconstruct() - truth) < rms(plain.reconstruct() - truth)
    assert np.isfinite(timed.transform(table[:3])).all()


@pytest.mark.parametrize(
    ("params", "said"),
    [
        ({"period": 80}, "period=80 must lie between 1 and the number of columns, 56"),
        ({"smooth": 3}, "'smooth' parameter of FroCMC must be"),
        ({"order": "time"}, "'order' parameter of FroCMC must be"),
    ],
)
def test_an_order_that_cannot_be_is_refused(params, said):
    with pytest.raises(ValueError, match=said):
        FroCMC(2, **{"order": "columns", **params}).fit(SEEN[:, :DAYS])


def test_an_order_of_too_many_steps_is_refused():
    cells = Intervals.from_triplets([0, 1], [0, 3999], [1.0, 2.0], (2, 4000))
    with pytest.raises(ValueError, match="up to 1000 columns; the table has 4000"):
        FroCMC(1, order="columns").fit(cells)
