"""Threads change nothing, Ctrl-C stops a sweep, and a fork survives."""

import subprocess
import sys
import textwrap
import threading

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from tests.plain import residuals, update_rows
from tests.twin import random_bounds

from declip import Intervals

SCALES = [pytest.param(0.0, id="hinge"), pytest.param(0.8, id="tobit")]


@pytest.fixture(scope="module")
def problem():
    """Cells for some tens of chunks (of 16384 cells each) and rows of very different length."""
    rng = np.random.default_rng(0)
    lower, upper = random_bounds(rng, (3000, 200), missing=0.0)
    lower[::3, 5:] = upper[::3, 5:] = np.nan
    return Intervals.from_bounds(lower, upper).by_row, rng.standard_normal((200, 4))


def swept(problem, threads, scale=0.0):
    side, other = problem
    own = np.zeros((side.n_rows, other.shape[1]))
    loss = update_rows(
        *(side, own, other, np.zeros(len(other)), np.ones(other.shape[1])),
        **{"scale": scale, "inner_steps": 3, "threads": threads},
    )
    return own, loss


@pytest.mark.parametrize("threads", [2, 3, 5])
@pytest.mark.parametrize("scale", SCALES)
def test_half_sweep_is_bitwise_the_same_on_any_number_of_threads(problem, scale, threads):
    one, one_loss = swept(problem, 1, scale)
    many, many_loss = swept(problem, threads, scale)
    assert_array_equal(one, many)
    assert one_loss == many_loss


@pytest.mark.parametrize("threads", [2, 3, 5])
def test_residuals_are_bitwise_the_same_on_any_number_of_threads(problem, threads):
    side, other = problem
    own, _ = swept(problem, 1)
    one, many = (residuals(side, own, other, np.zeros(200), threads=t) for t in (1, threads))
    assert one[0] == many[0]
    assert_array_equal(one[1], many[1])
    assert_array_equal(one[2], many[2])


@pytest.mark.parametrize("threads", [0, 1000])
def test_a_strange_number_of_threads_still_solves(problem, threads):
    assert_array_equal(swept(problem, threads)[0], swept(problem, 1)[0])


def test_sweeps_in_several_python_threads_do_not_disturb_each_other(problem):
    results = [None] * 4

    def work(i):
        results[i] = swept(problem, 2)[0]

    workers = [threading.Thread(target=work, args=(i,)) for i in range(4)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    expected = swept(problem, 1)[0]
    for result in results:
        assert_array_equal(result, expected)


# A problem whose sweep takes a minute: 10 million Tobit cells, 60 factors, solved to rounding.
LONG = """
import os, signal, sys, threading, time
import numpy as np
from declip import Intervals, kernels
from declip.cells import Cells
from declip.losses import Tobit

n, m, k = 8_000, 1200, 60
rng = np.random.default_rng(0)
ptr, none = np.arange(n + 1) * m, np.zeros(n + 1, np.int64)
idx = np.tile(np.arange(m, dtype=np.int32), n)
side = Cells(none, idx[:0], np.zeros(0, np.float32), ptr, idx,
             rng.standard_normal(n * m, dtype=np.float32), np.full(n * m, np.inf, np.float32))
other = rng.standard_normal((m, k), dtype=np.float32)
own = np.zeros((n, k), np.float32)

def sweep(threads):
    rows = kernels.RowProblem(
        side, other, np.zeros(m, np.float32), Tobit(0.5), np.ones(k, np.float32)
    )
    kernels.update_rows(rows, own, inner_steps=100, inner_tol=0.0, threads=threads)

def draw(factors):
    ends = side.lower.astype(float), side.upper.astype(float)
    wide = Cells(none, idx[:0], np.zeros(0), ptr, idx, *ends)
    rows = kernels.DrawProblem(
        wide, other.astype(float), np.zeros(m), (np.eye(k), np.zeros(k)), (np.ones(n), np.ones(m))
    )
    interrupt_soon()
    kernels.draw_rows(rows, factors, kernels.CellDraws(wide.lower.copy(), None), (0, 0))

def interrupt_soon():
    signal.signal(signal.SIGINT, signal.default_int_handler)  # ignored in a shell's background
    def send():
        time.sleep(0.5)
        os.kill(os.getpid(), signal.SIGINT)
    threading.Thread(target=send, daemon=True).start()
"""


def run(script, timeout=60):
    """Run a script in a new interpreter; a script that does not stop fails by the timeout."""
    return subprocess.run(
        [sys.executable, "-c", textwrap.dedent(script)],
        capture_output=True,
        text=True,
        timeout=timeout,
        check=False,
    )


@pytest.mark.parametrize("threads", [1, 2])
def test_ctrl_c_stops_a_sweep_before_its_end(threads):
    done = run(
        LONG
        + f"""
interrupt_soon()
try:
    sweep({threads})
except KeyboardInterrupt:
    print("stopped with", (own != 0).any(axis=1).mean() < 0.5)
"""
    )
    assert done.stdout == "stopped with True\n", done.stderr


def test_ctrl_c_stops_the_draws_of_a_sampler_before_their_end():
    done = run(
        LONG
        + """
factors = np.zeros((n, k))
try:
    draw(factors)
except KeyboardInterrupt:
    print("stopped with", (factors != 0).any(axis=1).mean() < 0.5)
"""
    )
    assert done.stdout == "stopped with True\n", done.stderr


def test_ctrl_c_reaches_the_main_thread_while_another_sweeps():
    done = run(
        LONG
        + """
threading.Thread(target=sweep, args=(1,), daemon=True).start()
interrupt_soon()
try:
    time.sleep(50)
except KeyboardInterrupt:
    print("stopped with", (own != 0).any(axis=1).mean() < 0.5)
    sys.stdout.flush()
    os._exit(0)
"""
    )
    assert done.stdout == "stopped with True\n", done.stderr


def test_a_forked_child_sweeps_with_threads():
    done = run(
        """
import os, warnings
import numpy as np
from declip import Intervals, kernels
from declip.losses import Hinge

warnings.simplefilter("ignore", DeprecationWarning)  # Python warns of a fork beside threads
rng = np.random.default_rng(0)
side = Intervals.from_table(rng.standard_normal((2000, 50)), ceiling=5.0).by_row
other = rng.standard_normal((50, 3))

def sweep():
    own = np.zeros((2000, 3))
    rows = kernels.RowProblem(side, other, np.zeros(50), Hinge(), np.ones(3))
    kernels.update_rows(rows, own, threads=3)
    return own

parent = sweep()
child = os.fork()
if child == 0:
    os._exit(0 if (sweep() == parent).all() else 1)
print("child left", os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""
    )
    assert done.stdout == "child left 0\n", done.stderr
