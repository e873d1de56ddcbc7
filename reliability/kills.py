"""Processes killed in the middle of a save, and in the middle of a fit."""

import os
import signal
import tempfile
import time
from pathlib import Path

import numpy as np
from sklearn.base import clone
from tests.persistence.models import UNFITTED, same

import declip
from declip import BayesCMC, FroCMC
from declip.persistence import Checkpoint, checkpoint

_ROWS = 100_000  # of the model that is saved: 17 MB


def saves_killed(count, seed=0):
    """Kill so many processes at random moments of a save that replaces a file."""
    rng = np.random.default_rng(seed)
    outcomes = {"old": 0, "new": 0, "neither": 0, "temporary files left": 0}
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "model.npz")
        old, new = _large(1.0), _large(2.0)
        began = time.monotonic()
        old.save(path)
        took = time.monotonic() - began
        for _ in range(count):
            old.save(path, overwrite=True)
            saving, started = _forked(lambda tell: (tell(), new.save(path, overwrite=True)))
            os.read(started, 1)
            time.sleep(rng.uniform(0, 1.2 * took))
            _kill(saving)
            os.close(started)
            found = declip.load(path)
            outcomes["old" if same(found, old) else "new" if same(found, new) else "neither"] += 1
        outcomes["temporary files left"] = len(list(Path(folder).iterdir())) - 1
    return {"kills": count, **outcomes, "seconds of a save": took}


def fits_killed(kills, seed=0):
    """Kill a fit of each kind some times, take it up, and compare the end with a whole fit."""
    rng = np.random.default_rng(seed)
    return {name: _fit_killed(name, kills, rng) for name in UNFITTED}


def _fit_killed(name, kills, rng):
    table, whole, killed = _table(), _model(name).fit(_table()), 0
    with tempfile.TemporaryDirectory() as folder:
        path, model = Path(folder, "fit.npz"), Path(folder, "model.npz")
        while not model.exists():
            fitting, states = _forked(lambda tell: _fit(name, table, path, model, tell))
            if killed < kills:
                wanted = int(rng.integers(1, 4))  # states, so that every process goes on a little
                if all(os.read(states, 1) for _ in range(wanted)):
                    time.sleep(rng.uniform(0, 0.05))
                    killed += _kill(fitting)
                else:
                    os.waitpid(fitting, 0)
            else:
                while os.read(states, 1):
                    pass
                os.waitpid(fitting, 0)
            os.close(states)
        found = declip.load(model)
    return {"kills": killed, "sweeps": whole.n_iter_, "the same": same(found, whole)}


def _forked(work):
    """Start work in a process of its own; return its number and a pipe in which it tells."""
    out, into = os.pipe()
    process = os.fork()
    if process == 0:
        os.close(out)
        try:
            work(lambda: os.write(into, b"."))
        finally:
            os._exit(0)
    os.close(into)
    return process, out


def _kill(process):
    """Kill a process; tell whether that ended it."""
    os.kill(process, signal.SIGKILL)
    return os.WIFSIGNALED(os.waitpid(process, 0)[1])


def _fit(name, table, path, model, tell):
    checkpoint.PAUSE = checkpoint.SHARE = 0.0
    put = Checkpoint.put

    def told(self, state, last=False):
        state = put(self, state, last)
        tell()
        return state

    Checkpoint.put = told
    fit = _model(name).set_params(checkpoint=path).fit(table)
    fit.set_params(checkpoint=None).save(model)


def _large(value):
    model = FroCMC(20, max_iter=1, random_state=0)
    model.fit(np.random.default_rng(0).standard_normal((200, 30)))
    model.__getstate__()  # computes what is computed on request, while factors and cells agree
    model.row_factors_ = np.full((_ROWS, 20), value)
    model.row_offset_ = np.full(_ROWS, value)
    return model


def _table():
    rng = np.random.default_rng(0)
    truth = rng.standard_normal((300, 5)) @ rng.standard_normal((5, 60))
    table = np.minimum(truth + 0.1 * rng.standard_normal(truth.shape), 1.0)
    table[rng.random(table.shape) < 0.3] = np.nan
    return table


def _model(name):
    model = clone(UNFITTED[name])
    if isinstance(model, BayesCMC):
        return model.set_params(n_samples=40, burn_in=20)
    return model.set_params(tol=1e-8, max_iter=150)
