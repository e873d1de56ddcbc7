"""Files written by a released version, which every later one must read: `python -m` makes them."""

from pathlib import Path

import numpy as np
from tests.persistence.models import ESTIMATORS, answers, fitted, restoration

FOLDER = Path(__file__).parent / "written_by_0.1.0"
NAMES = [*ESTIMATORS, "Restoration"]


def _answers(name, model):
    return {f"{name}: {question}": value for question, value in answers(model).items()}


def write():
    """Write one file for each kind of model, and what the models answered."""
    told = {}
    for name in NAMES:
        model = restoration() if name == "Restoration" else fitted(name)
        model.save(FOLDER / f"{name}.npz")
        told |= _answers(name, model)
    np.savez_compressed(FOLDER / "answers.npz", allow_pickle=False, **told)


if __name__ == "__main__":
    write()
