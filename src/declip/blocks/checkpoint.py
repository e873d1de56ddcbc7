"""The state of a fit on disk: it cuts the history of the parts, and a fit resumes from it.

A folder holds ``checkpoint.json`` and, in a folder for its sweep, one file a part with the factors
as they are and one sweep earlier. The JSON file is written last, and the files of older sweeps are
removed after it, so that there is a whole state at any moment.
"""

from __future__ import annotations

import json
import shutil
import zlib
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from declip.blocks.parts import Move, Part
from declip.blocks.problem import BlockPoint
from declip.blocks.running import Runner
from declip.blocks.table import DamagedBlockError
from declip.persistence import decode, encode, whole_file
from declip.solvers.als import State

__all__ = ["BlockCheckpoint", "load_part", "save_part"]

_FILE = "checkpoint.json"
_FORMAT = 3


def save_part(part: Part, path: str) -> int:
    """Write a part and return its checksum."""
    both = np.stack(part)
    with whole_file(Path(path)) as temporary, temporary.open("wb") as file:
        np.save(file, both)
    return zlib.crc32(both.data)


def load_part(path: str, checksum: int) -> Part:
    """Read a part, or say which file is damaged."""
    try:
        both = np.load(path)
    except (OSError, ValueError, EOFError) as error:
        raise DamagedBlockError(f"Checkpoint {path} cannot be read: {error}.") from error
    if zlib.crc32(both.data) != checksum:
        raise DamagedBlockError(f"Checkpoint {path} is damaged: it is not what was written.")
    return Part(*both)


@dataclass
class BlockCheckpoint:
    """Where a fit of blocks keeps its state: a `declip.solvers.ResumePoint`.

    Unlike `declip.persistence.Checkpoint`, one file of one process, it is written by the workers
    that hold the parts, after so many sweeps, and stays when the fit is over.

    Attributes
    ----------
    folder : Path
        The folder; every worker must see it.
    fit : dict
        What the fit is of: data and parameters. A state of another fit is refused.
    runner : Runner
        Where the parts are.
    every : int
        Sweeps between two checkpoints.
    """

    folder: Path
    fit: dict[str, Any]
    runner: Runner
    every: int = 5
    saved: int = field(default=-1, init=False)

    def put(self, state: State, last: bool = False) -> State:
        """Write a state if it is due, or is the last; return it with parts read from there."""
        if self.saved == state.n_iter or not (last or state.n_iter % self.every == 0):
            return state
        return self._save(state)

    def done(self) -> None:
        """Leave the last state where it is: more sweeps may be asked for."""

    def _save(self, state: State) -> State:
        name = f"sweep-{state.n_iter:06d}"
        (self.folder / name).mkdir(parents=True, exist_ok=True)
        content = {
            "fit": self._fit,
            "sweep": name,
            "rows": self._save_side(name, "rows", state.point.rows),
            "columns": self._save_side(name, "columns", state.point.columns),
            "mean": state.point.mean,
            "loss": state.point.loss,
            "penalty": state.point.penalty,
            "moves": [[_listed(m.map), m.shift] for m in state.point.moves],
            "loss_of_cells": encode(state.loss)[0],
            "history": state.history,
            "momentum": state.momentum,
            "settled": state.settled,
        }
        with whole_file(self.folder / _FILE) as path:
            path.write_text(json.dumps(content))
        for old in self.folder.glob("sweep-*"):
            if old.name != name:
                shutil.rmtree(old, ignore_errors=True)
        return self._restored(content)

    @property
    def _fit(self) -> dict[str, Any]:
        return {"format": _FORMAT, **self.fit}

    def _paths(self, sweep: str, side: str, n: int) -> list[str]:
        return [str(self.folder / sweep / f"{side}-{i:05d}.npy") for i in range(n)]

    def _save_side(self, sweep: str, side: str, handles: list[Any]) -> list[int]:
        """Write the parts of a side, and return their checksums."""
        paths = self._paths(sweep, side, len(handles))
        written = [
            self.runner.submit(save_part, part, path)
            for part, path in zip(handles, paths, strict=True)
        ]
        return self.runner.values(written)

    @property
    def state(self) -> State | None:
        """The state that is kept here, if there is one."""
        path = self.folder / _FILE
        if not path.is_file():
            return None
        try:
            content = json.loads(path.read_text())
        except ValueError as error:
            raise DamagedBlockError(f"Checkpoint {path} is damaged: {error}.") from error
        if content["fit"] != self._fit:
            raise ValueError(_another_fit(self.folder, content["fit"], self._fit))
        return self._restored(content)

    def _restored(self, content: dict[str, Any]) -> State:
        self.saved = len(content["history"]) - 1
        first, second = (
            Move(None if m is None else np.array(m), shift) for m, shift in content["moves"]
        )
        point = BlockPoint(
            self._load_side(content["sweep"], "rows", content["rows"]),
            self._load_side(content["sweep"], "columns", content["columns"]),
            mean=content["mean"],
            loss=content["loss"],
            penalty=content["penalty"],
            moves=(first, second),
        )
        loss, history = decode(content["loss_of_cells"], {}), content["history"]
        return State(point, loss, history, content["momentum"], content["settled"])

    def _load_side(self, sweep: str, side: str, checksums: list[int]) -> list[Any]:
        paths = self._paths(sweep, side, len(checksums))
        return [
            self.runner.submit(load_part, path, checksum, near=i if side == "rows" else None)
            for i, (path, checksum) in enumerate(zip(paths, checksums, strict=True))
        ]


def _listed(matrix: Any) -> Any:
    return None if matrix is None else matrix.tolist()


def _another_fit(folder: Path, kept: dict[str, Any], asked: dict[str, Any]) -> str:
    differing = [
        f"{name} was {kept.get(name)!r} and is {asked.get(name)!r}"
        for name in sorted({*kept, *asked})
        if kept.get(name) != asked.get(name)
    ]
    return (
        f"The checkpoint in {folder} is of another fit: {'; '.join(differing)}. "
        "Choose another checkpoint_dir, or remove this one to begin anew."
    )
