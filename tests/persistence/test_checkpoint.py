"""A fit that was killed is taken up where it was, and ends as if nothing had happened."""

import os
import signal
import subprocess
import sys
import textwrap
from pathlib import Path

import numpy as np
import pytest
from sklearn.base import clone
from tests.persistence.models import FRAME, TABLE, UNFITTED, fitted, same

from declip import FroCMC, ModelFileError, TrCMC
from declip.persistence import Checkpoint, checkpoint

ROOT = Path(__file__).parents[2]
each_model = pytest.mark.parametrize("name", UNFITTED)
pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")


class Killed(BaseException):
    """Ends a fit as a signal would."""


@pytest.fixture
def each_sweep(monkeypatch):
    """Write a state after every sweep."""
    monkeypatch.setattr(checkpoint, "PAUSE", 0.0)
    monkeypatch.setattr(checkpoint, "SHARE", 0.0)
    return monkeypatch


def killed_fit(model, table, after, monkeypatch):
    """Fit until so many states were written; return how many were."""
    put, written = Checkpoint.put, []

    def put_or_die(self, state, last=False):
        state = put(self, state, last)
        written.append(self.path.exists())
        if len(written) == after:
            raise Killed
        return state

    with monkeypatch.context() as patch:
        patch.setattr(Checkpoint, "put", put_or_die)
        with pytest.raises(Killed):
            model.fit(table)
    return len(written)


def without_checkpoint(model):
    return model.set_params(checkpoint=None)


@each_model
@pytest.mark.parametrize("after", [1, 2, 7])
def test_a_fit_that_was_taken_up_equals_the_undisturbed_one(name, after, each_sweep, tmp_path):
    model = clone(UNFITTED[name]).set_params(checkpoint=tmp_path / "fit.npz")
    stages = 1 if "factored" in name else after  # it leaves its state once in five sweeps
    killed_fit(clone(model), FRAME, min(after, 2 * stages), each_sweep)
    assert same(without_checkpoint(model.fit(FRAME)), fitted(name))


@pytest.mark.parametrize("name", ["FroCMC", "TrCMC", "DTrCMC", "ExactCMC", "BayesCMC"])
def test_a_fit_that_was_killed_at_its_last_sweep_equals_the_undisturbed_one(
    name, each_sweep, tmp_path
):
    model = clone(UNFITTED[name]).set_params(checkpoint=tmp_path / "fit.npz")
    last = fitted(name).n_iter_
    assert killed_fit(clone(model), FRAME, last, each_sweep) == last
    assert same(without_checkpoint(model.fit(FRAME)), fitted(name))


def test_a_fit_may_be_killed_again_and_again(each_sweep, tmp_path):
    model = clone(UNFITTED["DTrCMC"]).set_params(checkpoint=tmp_path / "fit.npz")
    for _ in range(fitted("DTrCMC").n_iter_ // 3):
        killed_fit(clone(model), FRAME, 3, each_sweep)
    assert same(without_checkpoint(model.fit(FRAME)), fitted("DTrCMC"))


def test_a_warm_start_is_taken_up(each_sweep, tmp_path):
    path = tmp_path / "fit.npz"
    models = [clone(UNFITTED["BayesCMC"]).set_params(warm_start=True).fit(FRAME) for _ in range(3)]
    whole, killed, again = (m.set_params(n_samples=9) for m in models)
    killed_fit(killed.set_params(checkpoint=path), FRAME, 4, each_sweep)
    again.set_params(checkpoint=path).fit(FRAME)
    assert same(without_checkpoint(again), whole.fit(FRAME))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_a_large_double_trace_norm_is_taken_up(dtype, each_sweep, tmp_path, monkeypatch):
    # With factors alone, as for a table too large to be held densely.
    monkeypatch.setattr("declip.svd._DENSE_UP_TO", 10)
    table = np.minimum(np.random.default_rng(0).normal(size=(80, 150)), 1).astype(dtype)
    plain = clone(UNFITTED["DTrCMC"]).set_params(max_rank=5, max_iter=12)
    model = clone(plain).set_params(checkpoint=tmp_path / "fit.npz")
    killed_fit(clone(model), table, 5, each_sweep)
    assert same(without_checkpoint(model.fit(table)), plain.fit(table))


def test_the_file_is_removed_when_the_fit_is_complete(each_sweep, tmp_path):
    FroCMC(2, random_state=0, checkpoint=tmp_path / "fit.npz").fit(TABLE)
    assert list(tmp_path.iterdir()) == []


def test_a_short_fit_writes_no_state(tmp_path, monkeypatch):
    monkeypatch.setattr("declip.persistence.checkpoint.write_archive", None)
    FroCMC(2, random_state=0, max_iter=3, tol=0, checkpoint=tmp_path / "fit.npz").fit(TABLE)


def test_states_are_written_rarely_if_they_take_long(tmp_path, monkeypatch):
    clock, writes = [0.0], []
    monkeypatch.setattr(checkpoint, "monotonic", lambda: clock[0])

    def slow(*_, **__):
        writes.append(clock[0])
        clock[0] += 2.0

    monkeypatch.setattr(checkpoint, "write_archive", slow)
    mark = Checkpoint(tmp_path / "fit.npz", {})
    for _ in range(1000):
        clock[0] += 0.1
        mark.put([1.0])
    # 2 s to write, so that 40 s pass between the end of one and the next: a twentieth.
    assert len(writes) == 3
    assert np.diff(writes).min() >= 42


CHANGES = {
    "alpha": ({"alpha": 0.2}, TABLE),
    "n_components": ({"n_components": 3}, TABLE),
    "random_state": ({"random_state": 1}, TABLE),
    "ceiling, table": ({"ceiling": [1.5, 1, 1, 1, 1, 1]}, TABLE),
    "table": ({}, np.where(np.arange(6) == 5, TABLE - 1e-15, TABLE)),
}


@pytest.mark.parametrize("differs", CHANGES)
def test_the_checkpoint_of_another_fit_is_refused(differs, each_sweep, tmp_path):
    path = tmp_path / "fit.npz"
    model = clone(UNFITTED["FroCMC"]).set_params(checkpoint=path)
    killed_fit(model, TABLE, 3, each_sweep)
    before = path.read_bytes()
    params, table = CHANGES[differs]
    match = f"of another fit, which differs in: {differs}. Give this fit a path of its own"
    with pytest.raises(ModelFileError, match=match):
        clone(model).set_params(**params).fit(table)
    assert path.read_bytes() == before


def test_the_checkpoint_of_another_estimator_is_refused(each_sweep, tmp_path):
    model = TrCMC(checkpoint=tmp_path / "fit.npz")
    killed_fit(model, TABLE, 3, each_sweep)
    with pytest.raises(ModelFileError, match=r"differs in: .*estimator"):
        FroCMC(2, checkpoint=tmp_path / "fit.npz").fit(TABLE)


def test_threads_and_words_may_differ(each_sweep, tmp_path):
    model = clone(UNFITTED["FroCMC"]).set_params(checkpoint=tmp_path / "fit.npz")
    killed_fit(clone(model), FRAME, 3, each_sweep)
    model.set_params(n_jobs=2, on_interrupt="keep").fit(FRAME)
    model.set_params(n_jobs=None, on_interrupt="raise")
    assert same(without_checkpoint(model), fitted("FroCMC"))


def test_a_damaged_checkpoint_is_refused(each_sweep, tmp_path):
    path = tmp_path / "fit.npz"
    model = clone(UNFITTED["FroCMC"]).set_params(checkpoint=path)
    killed_fit(model, TABLE, 3, each_sweep)
    path.write_bytes(path.read_bytes()[:-100])
    with pytest.raises(ModelFileError, match=r"fit\.npz: "):
        model.fit(TABLE)


def test_a_model_is_not_a_checkpoint(tmp_path):
    path = fitted("FroCMC").save(tmp_path / "model.npz")
    with pytest.raises(ModelFileError, match="this is a model, not a checkpoint"):
        FroCMC(2, checkpoint=path).fit(TABLE)
    assert path.exists()


def test_a_folder_that_does_not_exist_is_named(each_sweep, tmp_path):
    with pytest.raises(ModelFileError, match="its folder does not exist"):
        FroCMC(2, checkpoint=tmp_path / "no" / "fit.npz").fit(TABLE)


def test_a_wrong_kind_of_path_is_refused():
    with pytest.raises(ValueError, match="'checkpoint' parameter"):
        FroCMC(2, checkpoint=7).fit(TABLE)


FIT = """
import sys, warnings
from sklearn.base import clone
from declip.persistence import checkpoint
from tests.persistence.models import FRAME, UNFITTED
warnings.simplefilter("ignore")
checkpoint.PAUSE = checkpoint.SHARE = 0.0
put, count = checkpoint.Checkpoint.put, 0

def told(self, state, last=False):
    global count
    state = put(self, state, last)
    count += 1
    print(count, flush=True)
    return state

checkpoint.Checkpoint.put = told
model = clone(UNFITTED[sys.argv[1]]).set_params(checkpoint=sys.argv[2])
model.fit(FRAME).set_params(checkpoint=None).save(sys.argv[3])
"""


def begin(name, folder):
    """Start a fit in another process."""
    arguments = [name, str(folder / "fit.npz"), str(folder / "model.npz")]
    return subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(FIT), *arguments],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        text=True,
    )


@pytest.mark.parametrize("name", ["FroCMC", pytest.param("BayesCMC", marks=pytest.mark.slow)])
def test_a_process_that_was_killed_is_taken_up_by_another(name, tmp_path):
    import declip

    first = begin(name, tmp_path)
    while first.stdout.readline().strip() != "4":
        assert first.poll() is None
    first.send_signal(signal.SIGKILL)
    first.communicate()
    assert (tmp_path / "fit.npz").exists()
    assert not (tmp_path / "model.npz").exists()
    second = begin(name, tmp_path)
    assert second.communicate()[0]
    assert second.returncode == 0
    assert not (tmp_path / "fit.npz").exists()
    assert same(declip.load(tmp_path / "model.npz"), fitted(name))
