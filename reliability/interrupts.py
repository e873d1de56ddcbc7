"""How long Ctrl-C takes to end a fit of a large table."""

import json
import os
import signal
import sys
import threading
import time

import numpy as np

from declip import BayesCMC, DTrCMC, ExactCMC, FroCMC, TrCMC
from reliability.children import asked

_SIDE = 1900  # the largest square table that is worked on densely
_TICK = 0.01
MODELS = {
    "FroCMC": FroCMC(60, ceiling=2, tol=0, max_iter=10**6, random_state=0),
    "TrCMC": TrCMC(5.0, ceiling=2, tol=1e-12, max_iter=10**6, solver="proximal"),
    "TrCMC factored": TrCMC(5.0, ceiling=2, tol=1e-12, max_iter=10**6, solver="factored"),
    "DTrCMC": DTrCMC(ceiling=2, max_iter=10**6, max_rank=30),
    "ExactCMC": ExactCMC(ceiling=2, tol=1e-12, max_iter=10**6),
    "BayesCMC": BayesCMC(ceiling=2, n_samples=10**6, random_state=0),
}


def ctrl_c(times):
    """Interrupt a fit of each kind so many times."""
    return {name: asked("reliability.interrupts", name, times) for name in MODELS}


def clocks():
    """Return the time, and what the main thread has worked."""
    main = time.pthread_getcpuclockid(threading.main_thread().ident)
    return np.array([time.monotonic(), time.clock_gettime(main)])


def _interrupted(model, table, delay):
    """Return how long Ctrl-C took, by the clock and in work of the main thread."""
    sent = []

    def send():
        time.sleep(delay)
        sent.append(clocks())
        os.kill(os.getpid(), signal.SIGINT)

    sender = threading.Thread(target=send)
    sender.start()
    try:
        model.fit(table)
    except KeyboardInterrupt:
        taken = clocks() - sent[0]
    sender.join()
    return taken


def _measured(name, times):
    signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell ignores it in the background
    rng = np.random.default_rng(0)
    truth = rng.standard_normal((_SIDE, 10)) @ rng.standard_normal((10, _SIDE))
    table = np.minimum(truth + 0.1 * rng.standard_normal(truth.shape), 2.0)
    model = MODELS[name]
    found = []
    for _ in range(times):
        found.append(_interrupted(model, table, rng.uniform(0.5, 6.0)))
        while threading.active_count() > 1:  # LAPACK that was left to end by itself
            time.sleep(_TICK)
    clock, work = np.array(found).T
    return {
        "interrupts": times,
        "median [s]": float(np.median(clock)),
        "longest [s]": float(clock.max()),
        "most work of the main thread [s]": float(work.max()),
        "left unfitted": not hasattr(model, "n_iter_"),
    }


if __name__ == "__main__":
    print(json.dumps(_measured(sys.argv[1], int(sys.argv[2]))))
