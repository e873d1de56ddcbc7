"""Ctrl-C ends a fit: the estimator is as it was, or keeps what the last sweep left."""

import os
import signal
import threading

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from tests.callbacks import Callback
from tests.persistence.models import FRAME, UNFITTED, same

from declip import BayesCMC, FroCMC, svd

each_model = pytest.mark.parametrize("name", UNFITTED)
AFTER = 4  # sweeps


@pytest.fixture(autouse=True)
def ctrl_c_counts():
    """A shell starts what runs in its background so that Ctrl-C is ignored; not here."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


class Pressing(Callback):
    """A callback that presses Ctrl-C after some sweeps."""

    def __init__(self, after=AFTER):
        self.left = after

    def on_fit_task_end(self, estimator, context):
        self.left -= 1
        if self.left == 0:
            os.kill(os.getpid(), signal.SIGINT)


@each_model
@pytest.mark.filterwarnings("ignore")
def test_ctrl_c_leaves_the_estimator_unfitted(name):
    model = clone(UNFITTED[name])
    before = dict(vars(model))
    model.set_callbacks(Pressing())
    with pytest.raises(KeyboardInterrupt):
        model.fit(FRAME)
    assert vars(model.set_callbacks()) == before
    with pytest.raises(NotFittedError):
        model.predict([0], [0])


@each_model
@pytest.mark.filterwarnings("ignore")
def test_ctrl_c_keeps_what_the_last_sweep_left_if_asked(name):
    model = clone(UNFITTED[name]).set_params(on_interrupt="keep").set_callbacks(Pressing())
    with pytest.warns(ConvergenceWarning, match=f"was interrupted after {AFTER} sweeps"):
        model.fit(FRAME)
    assert model.n_iter_ == AFTER
    assert not model.converged_
    assert np.isfinite(model.transform(FRAME)).all()


@pytest.mark.parametrize("name", ["TrCMC", "DTrCMC", "BayesCMC"])
@pytest.mark.filterwarnings("ignore")
def test_what_is_kept_is_what_so_many_sweeps_give(name):
    # These end with nothing but their last sweep, so that a shorter fit is the oracle. DTrCMC
    # keeps the best matrix that it has looked at, which it does every five sweeps of a small table.
    after = 10 if name == "DTrCMC" else AFTER
    model = clone(UNFITTED[name]).set_params(on_interrupt="keep").set_callbacks(Pressing(after))
    fewer = {"burn_in": 0, "n_samples": after} if name == "BayesCMC" else {"max_iter": after}
    if name == "BayesCMC":
        model.set_params(burn_in=0)
    model.fit(FRAME)
    expected = clone(UNFITTED[name]).set_params(**fewer).fit(FRAME)
    assert_array_equal(model.reconstruct(), expected.reconstruct())
    assert_array_equal(model.history_, expected.history_)


class Stopping(Callback):
    """A callback that asks the fit to stop after some sweeps."""

    def __init__(self):
        self.left = AFTER

    def on_fit_task_end(self, estimator, context):
        self.left -= 1
        return self.left == 0


@pytest.mark.filterwarnings("ignore")
def test_what_a_callback_stops_between_two_looks_is_what_so_many_sweeps_give():
    model = clone(UNFITTED["DTrCMC"]).set_callbacks(Stopping()).fit(FRAME)
    expected = clone(UNFITTED["DTrCMC"]).set_params(max_iter=AFTER).fit(FRAME)
    assert_array_equal(model.reconstruct(), expected.reconstruct())
    assert_array_equal(model.history_, expected.history_)


@pytest.mark.filterwarnings("ignore")
def test_ctrl_c_before_the_first_sweep_leaves_the_estimator_unfitted(monkeypatch):
    def pressed(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr("declip.estimators.fro.start_model", pressed)
    model = FroCMC(2, on_interrupt="keep")
    with pytest.raises(KeyboardInterrupt):
        model.fit(FRAME)
    assert not hasattr(model, "n_iter_")


@pytest.mark.filterwarnings("ignore")
def test_chains_that_agree_do_not_count_as_converged_after_ctrl_c():
    how = {"n_samples": 60, "burn_in": 20, "random_state": 0, "noise": "global"}
    model = BayesCMC(1, on_interrupt="keep", **how).set_callbacks(Pressing(70)).fit(FRAME)
    assert model.run_.converged
    assert not model.converged_


@pytest.mark.filterwarnings("ignore")
def test_an_interrupted_fit_can_be_taken_up_from_its_checkpoint(tmp_path, monkeypatch):
    monkeypatch.setattr("declip.persistence.checkpoint.PAUSE", 0.0)
    monkeypatch.setattr("declip.persistence.checkpoint.SHARE", 0.0)
    path = tmp_path / "fit.npz"
    model = clone(UNFITTED["FroCMC"]).set_params(checkpoint=path, on_interrupt="keep")
    model.set_callbacks(Pressing()).fit(FRAME)
    assert path.exists()
    model.set_callbacks().fit(FRAME).set_params(checkpoint=None, on_interrupt="raise")
    assert same(model, clone(UNFITTED["FroCMC"]).fit(FRAME))


def test_a_word_that_on_interrupt_does_not_know_is_refused():
    with pytest.raises(ValueError, match="'on_interrupt' parameter"):
        FroCMC(2, on_interrupt="ignore").fit(FRAME)


def test_a_large_svd_does_not_hold_up_ctrl_c(monkeypatch):
    # The work never ends by itself: only an interrupt that does not wait for it gets here.
    release = threading.Event()

    def endless(*_, **__):
        os.kill(os.getpid(), signal.SIGINT)
        release.wait(60)
        return np.eye(600), np.ones(600), np.eye(600)

    monkeypatch.setattr("declip.svd.np.linalg.svd", endless)
    try:
        with pytest.raises(KeyboardInterrupt):
            svd._dense_svd(np.zeros((600, 600)), 600)
        assert not release.is_set()
    finally:
        release.set()


def test_an_error_of_a_large_svd_is_passed_on():
    with pytest.raises(np.linalg.LinAlgError):
        svd._dense_svd(np.full((600, 600), np.nan), 600)
