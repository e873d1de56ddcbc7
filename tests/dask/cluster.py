"""Clusters for the tests, data for them, and what is compared."""

import contextlib
import socket
import subprocess
import sys

import numpy as np
from distributed import Client, LocalCluster

from declip import Intervals

PATIENCE = 180  # seconds; a loaded machine is slow to start processes


@contextlib.contextmanager
def local_cluster(n_workers):
    """Processes of one thread, on any free port."""
    with (
        LocalCluster(
            n_workers=n_workers,
            threads_per_worker=1,
            processes=True,
            dashboard_address=None,
            worker_dashboard_address=None,
        ) as cluster,
        Client(cluster, timeout=PATIENCE) as client,
    ):
        client.wait_for_workers(n_workers, timeout=PATIENCE)
        yield client


@contextlib.contextmanager
def command_cluster(n_workers, folder):
    """A scheduler and workers started by the commands of Dask."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        address = f"tcp://127.0.0.1:{probe.getsockname()[1]}"
    port = address.rsplit(":", 1)[1]
    dask = [sys.executable, "-m", "dask"]
    commands = [
        [*dask, "scheduler", "--host", "127.0.0.1", "--port", port, "--no-dashboard"],
        *[[*dask, "worker", address, "--nthreads", "1", "--no-dashboard"]] * n_workers,
    ]
    logs = [(folder / f"dask-{i}.log").open("wb") for i in range(len(commands))]
    started = [
        subprocess.Popen(command, stdout=log, stderr=log, cwd=folder)
        for command, log in zip(commands, logs, strict=True)
    ]
    try:
        with Client(address, timeout=PATIENCE) as client:
            client.wait_for_workers(n_workers, timeout=PATIENCE)
            yield client
    finally:
        for process in reversed(started):
            process.terminate()
        for process, log in zip(started, logs, strict=True):
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(20)
            process.kill()
            log.close()


def ratings(seed=0, shape=(150, 30), k=3, ceiling=2.0):
    """A table with missing cells and a ceiling."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((shape[0], k)) @ rng.standard_normal((k, shape[1])) + 1
    X += 0.3 * rng.standard_normal(shape)
    X[rng.random(shape) < 0.4] = np.nan
    return np.minimum(X, ceiling)


def intervals(**how):
    return Intervals.from_table(ratings(**how), ceiling=2.0)


def bits(model):
    """The fitted numbers, to be compared bit by bit."""
    return (
        np.asarray(model.row_factors_).tobytes(),
        model.components_.tobytes(),
        model.history_.tobytes(),
    )
