"""declip.dask.FroCMC on worker processes: the same bits, whoever works and whoever dies."""

import os
import random
import signal
import subprocess
import sys
import threading
import time

import numpy as np
import pytest
from distributed.core import Status
from distributed.diagnostics.plugin import SchedulerPlugin
from tests.dask.cluster import PATIENCE, bits, command_cluster, intervals, local_cluster

import declip
from declip import prepare_blocks
from declip.blocks import DamagedBlockError
from declip.dask import FroCMC

EVERY = 3  # sweeps between checkpoints
HOW = {"n_components": 3, "alpha": 2.0, "random_state": 0, "tol": 0.0, "checkpoint_every": EVERY}
pytestmark = pytest.mark.filterwarnings("ignore:.*before it had settled")


@pytest.fixture(scope="module")
def blocks(tmp_path_factory):
    folder = tmp_path_factory.mktemp("blocks")
    prepare_blocks(intervals(), folder, n_blocks=4)
    return str(folder)


def undisturbed(blocks, max_iter, **how):
    """The same fit on this machine, which gives the same bits."""
    params = {name: value for name, value in HOW.items() if name != "checkpoint_every"}
    return bits(declip.FroCMC(**params | how, max_iter=max_iter).fit(blocks))


@pytest.mark.slow
@pytest.mark.parametrize("n_workers", [1, 3])
def test_the_number_of_workers_changes_no_bit(blocks, n_workers):
    with local_cluster(n_workers):
        assert bits(FroCMC(**HOW, max_iter=6).fit(blocks)) == undisturbed(blocks, 6)


@pytest.mark.slow
def test_workers_started_by_command_give_the_same_bits(blocks, tmp_path):
    with command_cluster(2, tmp_path):
        assert bits(FroCMC(**HOW, max_iter=6).fit(blocks)) == undisturbed(blocks, 6)


class RowSweeps(SchedulerPlugin):
    """Counts how often the row sweep of each block and sweep was completed."""

    name = "row-sweeps"

    def __init__(self):
        self.done = {}

    def transition(self, key, start, finish, *args, **kwargs):
        if finish == "memory" and "sweep_rows" in str(key):
            self.done[key] = self.done.get(key, 0) + 1


class Killer(threading.Thread):
    """Kills a worker at random so many times, each after a few more row sweeps.

    Only workers that have started: one that dies before is not started again by its nanny.
    """

    def __init__(self, cluster, sweeps, kills, seed):
        super().__init__(daemon=True)
        self.cluster, self.sweeps, self.kills = cluster, sweeps, kills
        self.random, self.killed, self.over = random.Random(seed), 0, threading.Event()

    def wait(self, true):
        while not true() and not self.over.is_set():
            time.sleep(0.01)

    def started(self):
        known = set(self.cluster.scheduler.workers)
        nannies = list(self.cluster.workers.values())
        return [
            (n.worker_address, n.pid)
            for n in nannies
            if n.worker_address in known and n.process.status == Status.running
        ]

    def run(self):
        while self.killed < self.kills and not self.over.is_set():
            target = len(self.sweeps) + self.random.randint(2, 8)
            self.wait(lambda target=target: len(self.sweeps) >= target and self.started())
            if not self.over.is_set():
                address, pid = self.random.choice(self.started())
                os.kill(pid, signal.SIGKILL)
                self.killed += 1
                self.wait(lambda address=address: address not in self.cluster.scheduler.workers)


def fit_while_killing(blocks, folder, kills, max_iter):
    """Return the fit, how many workers were killed, and the row sweeps that were made again."""
    with local_cluster(2) as client:
        scheduler = client.cluster.scheduler
        scheduler.allowed_failures = 20  # one task may be at work in several of the kills
        scheduler.add_plugin(sweeps := RowSweeps())
        killer = Killer(client.cluster, sweeps.done, kills, seed=0)
        killer.start()
        model = FroCMC(**HOW, max_iter=max_iter, checkpoint_dir=folder).fit(blocks)
        killer.over.set()
        killer.join(PATIENCE)
        result = bits(model)
    return result, killer.killed, sum(sweeps.done.values()) - len(sweeps.done)


@pytest.mark.parametrize(
    ("kills", "max_iter"), [(1, 8), pytest.param(10, 70, marks=pytest.mark.slow)]
)
def test_killed_workers_change_no_bit_and_cost_few_sweeps(blocks, tmp_path, kills, max_iter):
    found, killed, redone = fit_while_killing(blocks, tmp_path, kills, max_iter)
    assert killed == kills
    assert found == undisturbed(blocks, max_iter)
    # At most those since the last checkpoint and the one at work, of every block.
    assert redone <= killed * 4 * (EVERY + 1)


_DRIVER = """
import sys, warnings
from distributed import Client
from declip.dask import FroCMC
warnings.simplefilter("ignore")
address, blocks, folder, max_iter = sys.argv[1:]
with Client(address, timeout=180):
    FroCMC(n_components=3, alpha=2.0, random_state=0, tol=0.0, checkpoint_every=3, verbose=1,
           max_iter=int(max_iter), checkpoint_dir=folder).fit(blocks)
"""


@pytest.mark.slow
def test_a_driver_that_was_killed_is_resumed_to_the_same_bits(blocks, tmp_path):
    with local_cluster(2) as client:
        arguments = client.scheduler.address, blocks, str(tmp_path), "1000"
        driver = subprocess.Popen(
            [sys.executable, "-u", "-c", _DRIVER, *arguments],
            stdout=subprocess.PIPE,
            text=True,
        )
        for line in driver.stdout:
            if line.startswith("sweep    7"):
                break
        driver.kill()
        driver.wait()
        kept = sorted(path.name for path in tmp_path.glob("state/sweep-*"))
        assert kept[-1] >= "sweep-000006"
        first = int(kept[-1][-6:])
        max_iter = first + 6
        resumed = FroCMC(**HOW, max_iter=max_iter, checkpoint_dir=tmp_path).fit(blocks)
        assert bits(resumed) == undisturbed(blocks, max_iter)


@pytest.fixture(scope="module")
def two_workers():
    """Processes for all tests that leave them as they are: starting them takes the most time."""
    with local_cluster(2) as client:
        yield client


def test_a_fit_on_workers_gives_the_bits_of_one_here(blocks, two_workers):
    assert bits(FroCMC(**HOW, max_iter=6).fit(blocks)) == undisturbed(blocks, 6)
    how = {"clipped": "tobit", "bias": True}
    assert bits(FroCMC(**HOW, **how, max_iter=3).fit(blocks)) == undisturbed(blocks, 3, **how)


@pytest.mark.slow
def test_the_objective_at_convergence_is_that_of_a_fit_in_memory(blocks, two_workers):
    model = FroCMC(**HOW | {"tol": 1e-9}, max_iter=200).fit(blocks)
    expected = declip.FroCMC(3, alpha=2.0, random_state=0, tol=1e-9, scale="none").fit(intervals())
    assert model.converged_
    np.testing.assert_allclose(model.objective_, expected.objective_, rtol=1e-6)


def test_a_damaged_block_is_named_by_the_worker_that_reads_it(tmp_path, two_workers):
    prepare_blocks(intervals(), tmp_path, n_blocks=3)
    path = tmp_path / "block-00002.bin"
    data = bytearray(path.read_bytes())
    data[1000] ^= 4
    path.write_bytes(data)
    with pytest.raises(DamagedBlockError, match=r"block-00002\.bin .* damaged"):
        FroCMC(**HOW, max_iter=3).fit(str(tmp_path))
