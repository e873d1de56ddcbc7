"""Faults at each call of a solver: a clear error, and an estimator that is as usable as before."""

from contextlib import contextmanager

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from tests.callbacks import Callback

from declip import BayesCMC, DTrCMC, ExactCMC, FroCMC, TrCMC, kernels

RNG = np.random.default_rng(0)
CEILING = 1.5
X = np.minimum(RNG.normal(size=(15, 2)) @ RNG.normal(size=(2, 8)), CEILING)
X[::4, ::3] = np.nan
SHORT = {"ceiling": CEILING, "max_iter": 6}
ESTIMATORS = {
    "fro": FroCMC(2, random_state=0, **SHORT),
    "fro by conjugate gradients": FroCMC(8, random_state=0, **SHORT),
    "fro, tobit and bias": FroCMC(2, clipped="tobit", bias=True, random_state=0, **SHORT),
    "fro from an svd": FroCMC(2, init="svd", random_state=0, **SHORT),
    "trace": TrCMC(0.5, **SHORT),
    "trace, factored": TrCMC(0.5, solver="factored", clipped="tobit", **SHORT),
    "dtr": DTrCMC(**SHORT),
    "exact": ExactCMC(**SHORT),
    "bayes": BayesCMC(2, ceiling=CEILING, n_samples=6, burn_in=6, random_state=0),
    "bayes, student": BayesCMC(2, ceiling=CEILING, n_samples=6, burn_in=6, df=4, random_state=0),
}
KERNELS = ("update_rows", "residuals", "predict", "interval_loss", "draw_rows")
DECOMPOSITIONS = ("svd", "qr", "eigh")
pytestmark = pytest.mark.filterwarnings("ignore")


class Faulty:
    """A function that does its work until its turn comes, and then goes wrong."""

    def __init__(self, function, turn, fault):
        self.function, self.turn, self.fault, self.calls = function, turn, fault, 0

    def __call__(self, *args, **kwargs):
        self.calls += 1
        if self.calls != self.turn:
            return self.function(*args, **kwargs)
        if isinstance(self.fault, BaseException):
            raise self.fault
        return self.fault(self.function(*args, **kwargs))


def spoilt(result):
    """Return the same result with NaN in it."""
    if isinstance(result, float):
        return np.nan
    arrays = result if isinstance(result, tuple) else (result,)
    for array in arrays:
        if isinstance(array, np.ndarray):
            array[...] = np.nan
    return type(result)(*result) if hasattr(result, "_fields") else result


def places(model, monkeypatch):
    """Return (module, name, turn) of the first and last calls of the functions that a fit calls."""
    counting = {
        (module, name): Faulty(getattr(module, name), 0, None)
        for module, names in ((kernels._kernels, KERNELS), (np.linalg, DECOMPOSITIONS))
        for name in names
    }
    with monkeypatch.context() as patch:
        for (module, name), counter in counting.items():
            patch.setattr(module, name, counter)
        clone(model).fit(X)
    return [
        (*at, turn)
        for at, counter in counting.items()
        for turn in {1, counter.calls}
        if counter.calls
    ]


@contextmanager
def broken(monkeypatch, module, name, turn, fault):
    with monkeypatch.context() as patch:
        patch.setattr(module, name, Faulty(getattr(module, name), turn, fault))
        yield


@pytest.mark.parametrize("model", ESTIMATORS.values(), ids=ESTIMATORS)
@pytest.mark.parametrize(
    "fault",
    [MemoryError("std::bad_alloc"), np.linalg.LinAlgError("SVD did not converge")],
    ids=["memory", "linalg"],
)
def test_an_error_at_a_call_of_a_solver_comes_through_and_leaves_the_model_usable(
    model, fault, monkeypatch
):
    fresh, fitted = clone(model), clone(model).fit(X)
    before = fitted.transform(X)
    for place in places(model, monkeypatch):
        for hit in (fresh, fitted):
            with broken(monkeypatch, *place, fault), pytest.raises(type(fault), match=str(fault)):
                hit.fit(X)
        with pytest.raises(NotFittedError):
            fresh.transform(X)
    assert_array_equal(fitted.transform(X), before)
    assert_array_equal(fresh.fit(X).transform(X), before)


@pytest.mark.parametrize("model", ESTIMATORS.values(), ids=ESTIMATORS)
def test_numbers_that_are_not_finite_never_end_in_a_fitted_model(model, monkeypatch):
    hit = clone(model)
    for place in places(model, monkeypatch):
        with broken(monkeypatch, *place, spoilt):
            try:
                hit.fit(X)
            except (FloatingPointError, np.linalg.LinAlgError, ValueError):
                with pytest.raises(NotFittedError):
                    hit.transform(X)
                continue
        # What was spoilt was thrown away, or written over.
        assert np.isfinite(hit.transform(X)).all(), place
        assert np.isfinite(hit.objective_), place
        hit = clone(model)
    assert_array_equal(hit.fit(X).transform(X), clone(model).fit(X).transform(X))


@pytest.mark.parametrize("name", ["fro", "trace", "dtr", "exact"])
def test_numbers_that_are_not_finite_are_no_answer_for_new_rows(name, monkeypatch):
    model = clone(ESTIMATORS[name]).fit(X)
    before = model.transform(X)

    def spoil(_, own, *steps):
        own[...] = np.nan
        return np.nan

    with monkeypatch.context() as patch:
        patch.setattr(kernels._kernels, "update_rows", spoil)
        with pytest.raises(FloatingPointError, match=r"not finite.*Rescale the data"):
            model.transform(X)
    assert_array_equal(model.transform(X), before)


def test_rows_without_a_proper_posterior_are_told(monkeypatch):
    model = clone(ESTIMATORS["bayes"])
    with monkeypatch.context() as patch:
        patch.setattr(kernels._kernels, "draw_rows", lambda *args: 3.0)
        with pytest.raises(FloatingPointError, match="3 rows have no proper posterior"):
            model.fit(X)
    assert np.isfinite(model.fit_transform(X)).all()


class Answering(Callback):
    """A callback that answers with anything, and keeps what it was shown."""

    def __init__(self, answer):
        self.answer, self.sweeps = answer, 0

    def on_fit_task_end(self, estimator, context):
        self.sweeps += context.task_name == "sweep"
        return self.answer


@pytest.mark.parametrize("model", ESTIMATORS.values(), ids=ESTIMATORS)
@pytest.mark.parametrize("answer", ["go on", 3, {"stop": False}, [0]], ids=str)
def test_any_true_answer_of_a_callback_stops_the_fit_after_a_sweep(model, answer):
    callback = Answering(answer)
    fitted = clone(model).set_callbacks(callback).fit(X)
    assert callback.sweeps == fitted.n_iter_ == 1
    assert np.isfinite(fitted.transform(X)).all()


@pytest.mark.parametrize("model", ESTIMATORS.values(), ids=ESTIMATORS)
def test_an_answer_that_is_neither_true_nor_false_is_an_error_that_harms_nothing(model):
    fitted = clone(model).fit(X)
    before = fitted.transform(X)
    fitted.set_callbacks(Answering(np.zeros(2)))
    with pytest.raises(ValueError, match="truth value"):
        fitted.fit(X)
    assert_array_equal(fitted.set_callbacks().transform(X), before)
