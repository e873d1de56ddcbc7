"""The state of a fit on disk: it cuts the history of the parts, and a fit resumes from it.

A folder holds ``checkpoint.json`` and, in a folder for its sweep, one file a part with the factors
as they are and one sweep earlier. The JSON file is written last, and the files of older sweeps are
removed after it, so that there is a whole state at any moment.
"""

from __future__ import annotations

import json
import shutil
import zlib
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from declip.blocks.parts import Move, ObjectiveTerms, Part
from declip.blocks.running import Runner
from declip.blocks.state import State
from declip.blocks.table import DamagedBlockError, whole_file

__all__ = ["Checkpoint", "load_part", "save_part"]

_FILE = "checkpoint.json"


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
class Checkpoint:
    """Where a fit keeps its state.

    Attributes
    ----------
    folder : Path
        The folder; every worker must see it.
    fit : dict
        What the fit is of: data and parameters. A state of another fit is refused.
    every : int
        Sweeps between two checkpoints.
    """

    folder: Path
    fit: dict[str, Any]
    every: int = 5
    saved: int = field(default=-1, init=False)

    def due(self, n_iter: int) -> bool:
        """Return whether a state is to be kept after this many sweeps."""
        return n_iter % self.every == 0

    def holds(self, n_iter: int) -> bool:
        """Return whether the state after this many sweeps is kept."""
        return self.saved == n_iter

    def save(self, state: State, runner: Runner) -> State:
        """Write a state; return it with parts that are read from there."""
        name = f"sweep-{state.n_iter:06d}"
        (self.folder / name).mkdir(parents=True, exist_ok=True)
        paths = {
            "rows": [str(self.folder / name / f"rows-{b:05d}.npy") for b in range(len(state.rows))],
            "columns": [
                str(self.folder / name / f"columns-{s:05d}.npy") for s in range(len(state.columns))
            ],
        }
        sums = runner.values(
            [
                runner.submit(save_part, part, path)
                for side, files in paths.items()
                for part, path in zip(getattr(state, side), files, strict=True)
            ]
        )
        cut = len(state.rows)
        content = {
            "fit": self.fit,
            "sweep": name,
            "rows": sums[:cut],
            "columns": sums[cut:],
            "terms": asdict(state.terms),
            "value": state.value,
            "history": state.history,
            "moves": [[_listed(m.map), m.shift] for m in state.moves],
            "momentum": state.momentum,
            "settled": state.settled,
        }
        with whole_file(self.folder / _FILE) as path:
            path.write_text(json.dumps(content))
        for old in self.folder.glob("sweep-*"):
            if old.name != name:
                shutil.rmtree(old, ignore_errors=True)
        self.saved = state.n_iter
        return self._restored(content, runner)

    def load(self, runner: Runner) -> State | None:
        """Return the state that is kept here, if there is one."""
        path = self.folder / _FILE
        if not path.is_file():
            return None
        try:
            content = json.loads(path.read_text())
        except ValueError as error:
            raise DamagedBlockError(f"Checkpoint {path} is damaged: {error}.") from error
        if content["fit"] != self.fit:
            raise ValueError(_another_fit(self.folder, content["fit"], self.fit))
        state = self._restored(content, runner)
        self.saved = state.n_iter
        return state

    def _restored(self, content: dict[str, Any], runner: Runner) -> State:
        folder = self.folder / content["sweep"]
        handles = {
            side: [
                runner.submit(
                    *(load_part, str(folder / f"{side}-{i:05d}.npy"), checksum),
                    near=i if side == "rows" else None,
                )
                for i, checksum in enumerate(content[side])
            ]
            for side in ("rows", "columns")
        }
        moves = [Move(None if m is None else np.array(m), shift) for m, shift in content["moves"]]
        return State(
            rows=handles["rows"],
            columns=handles["columns"],
            terms=ObjectiveTerms(**content["terms"]),
            value=content["value"],
            history=content["history"],
            moves=(moves[0], moves[1]),
            momentum=content["momentum"],
            settled=content["settled"],
        )


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
