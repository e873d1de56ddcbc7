"""Work on blocks done by the workers of a Dask cluster."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any
from uuid import uuid4

from dask.delayed import delayed
from distributed import Client, default_client

from declip.blocks.running import WorkersReplacedError

_PATIENCE = 10  # seconds after which to see whether workers are gone

__all__ = [
    "ClusterRunner",
    "current_client",
    "stop_if_folder_is_not_shared",
    "with_workers_that_stay",
]


def current_client(client: Client | None) -> Client:
    """Return the client to use: the one given, or the one in force."""
    if client is not None:
        return client
    try:
        return default_client()
    except ValueError:
        raise RuntimeError(
            "There is no Dask client, and declip starts none. Connect to a cluster first: "
            'distributed.Client("tcp://scheduler:8786"), or distributed.Client() for this machine.'
        ) from None


class ClusterRunner:
    """Runs functions as tasks; a handle is a future.

    Tasks take futures and small values, never data of the driver: whatever a lost worker held can
    be made again. Neighbouring blocks begin on the same worker, and tasks follow their data.
    """

    def __init__(self, client: Client, n_blocks: int = 1) -> None:
        self.client = client
        self.run = uuid4().hex[:12]
        self.count, self.n_blocks = 0, n_blocks
        self._settle()

    def _settle(self) -> None:
        """Give every block a home among the workers that there are."""
        client, n_blocks = self.client, self.n_blocks
        places = [
            (w, i) for w, threads in sorted(client.nthreads().items()) for i in range(threads)
        ]
        if not places:
            raise RuntimeError("The Dask cluster has no workers: add some, or wait for them.")
        self.homes = [places[b * len(places) // n_blocks] for b in range(n_blocks)]

    def submit(self, function: Callable[..., Any], *args: Any, near: int | None = None) -> Any:
        """Return a future of ``function(*args)``."""
        self.count += 1
        home = self.homes[near] if near is not None and near < len(self.homes) else None
        return self.client.submit(
            function,
            *args,
            key=f"declip-{function.__name__}-{self.run}-{self.count}",
            workers=None if home is None else [home[0]],
            allow_other_workers=home is not None,
            pure=False,
        )

    def together(self, first: int, last: int) -> bool:
        """Return whether some blocks began on the same thread of a worker."""
        return self.homes[first] == self.homes[last - 1]

    def submit_delayed(self, function: Callable[..., Any], part: Any, *args: Any) -> Any:
        """Return a future of a function of a lazy part of a Dask collection."""
        return self.client.compute(delayed(function, pure=False)(part, *args))

    def values(self, handles: Sequence[Any]) -> list[Any]:
        """Wait for futures and return their values.

        Tasks that wait for a worker which is gone are not given to one that came when there was
        none: then all is left to the caller, with new homes.
        """
        gathering = self.client.sync(_begun, self.client, list(handles))
        while not self.client.sync(_ended, gathering):
            alive = set(self.client.nthreads())
            if alive and alive.isdisjoint(worker for worker, _ in self.homes):
                self.client.sync(_given_up, gathering)
                self._settle()
                raise WorkersReplacedError
        return list(gathering.result())


async def _begun(client: Client, handles: list[Any]) -> asyncio.Future[Any]:
    return asyncio.ensure_future(client.gather(handles, asynchronous=True))


async def _ended(gathering: asyncio.Future[Any]) -> bool:
    return bool((await asyncio.wait([gathering], timeout=_PATIENCE))[0])


async def _given_up(gathering: asyncio.Future[Any]) -> None:
    gathering.cancel()


def with_workers_that_stay(work: Callable[[], Any]) -> Any:
    """Return what ``work()`` gives, done again as long as all of its workers are replaced.

    It goes on from its checkpoint, or anew: the bits are the same.
    """
    while True:
        with suppress(WorkersReplacedError):
            return work()


def stop_if_folder_is_not_shared(client: Client, folder: Path) -> None:
    """Refuse a folder that some worker does not see as the driver does."""
    token = folder / f".seen-{uuid4().hex}"
    token.touch()
    try:
        seen = client.run(os.path.exists, str(token))
    finally:
        token.unlink(missing_ok=True)
    blind = [worker for worker, sees in seen.items() if not sees]
    if blind:
        raise RuntimeError(
            f"Worker {blind[0]} does not see the folder {folder}. Blocks and checkpoints lie in "
            "checkpoint_dir: give one on a file system that the driver and all workers share."
        )
