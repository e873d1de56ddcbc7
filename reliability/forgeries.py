"""Files of models with forged contents and the right checksums: refused, or an answer in time."""

import sys
import tempfile
import warnings
from collections import Counter
from pathlib import Path

import numpy as np
from tests.persistence.models import ESTIMATORS, TABLE, fitted

import declip
from declip import ModelFileError
from declip.persistence import Archive, read_archive, write_archive
from reliability.children import limit_memory, supervised

_ODD = (np.nan, np.inf, -np.inf, 0.0, -1.0, 1e300, -1e300, 1e-300, 2**31, 2**62)


def forged_models(count, resume=False):
    """Forge so many files of models, ask those that load, and count what came of it."""
    each = -(-count // len(ESTIMATORS))
    found = (supervised("reliability.forgeries", name, each, resume=resume) for name in ESTIMATORS)
    totals = sum(found, Counter())
    return {
        "files": sum(totals.values()),
        "refused": totals["refused"],
        "loaded, with an answer or a clear error": totals["done"],
        "other exceptions": totals["other"],
        "crashes": totals["crash"],
        "hangs": totals["hang"],
    }


def forged(archive, rng):
    """Return an archive with some numbers of an array, or one of the header, replaced."""
    arrays, content = dict(archive.arrays), archive.content
    if rng.random() < 0.3:
        return Archive(archive.kind, _forged_content(content, rng), arrays, archive.library)
    name = sorted(arrays)[rng.integers(len(arrays))]
    array = np.array(arrays[name])
    if rng.random() < 0.2:
        array = array[: rng.integers(len(array) + 1)] if array.ndim else array
    elif array.size and array.dtype.kind in "iuf":
        some = rng.integers(array.size, size=rng.integers(1, 4))
        with np.errstate(all="ignore"):
            array.flat[some] = np.array(rng.choice(_ODD)).astype(array.dtype)
    return Archive(archive.kind, content, arrays | {name: array}, archive.library)


def _forged_content(content, rng):
    places = list(_numbers(content))
    at, key = places[rng.integers(len(places))]
    at[key] = type(at[key])(rng.choice([0, -1, 1, 3, 10**9, 2**62]))
    return content


def _numbers(node):
    pairs = enumerate(node) if isinstance(node, list) else node.items()
    for key, value in pairs:
        if isinstance(value, list | dict):
            yield from _numbers(value)
        elif isinstance(value, int | float) and not isinstance(value, bool):
            yield node, key


def _asked(model):
    """Ask everything that a fitted model answers."""
    model.predict(np.arange(5), np.arange(5))
    model.transform(TABLE[:3])
    model.reconstruct(rows=[0, 1])
    if hasattr(model, "sample"):
        list(model.sample(2))
        model.predict(np.arange(5), np.arange(5), return_std=True)


def outcome(path):
    """Return what becomes of a file."""
    try:
        model = declip.load(path)
    except ModelFileError:
        return "refused"
    except Exception as error:
        return f"other: load: {error!r}"
    try:
        _asked(model)
    except (ValueError, TypeError, ArithmeticError, MemoryError, np.linalg.LinAlgError):
        return "done"
    except Exception as error:
        return f"other: {error!r}"
    return "done"


def main(name, start, stop):
    """Forge files of one kind of model, and print what came of each."""
    limit_memory()
    warnings.simplefilter("ignore")
    with tempfile.TemporaryDirectory() as folder:
        seed, path = Path(folder, "seed.npz"), Path(folder, "forged.npz")
        fitted(name).save(seed)
        _asked(declip.load(seed))
        for i in range(start, stop):
            forgery = forged(read_archive(seed, "model"), np.random.default_rng(i))
            write_archive(path, forgery, overwrite=True)
            print(i, outcome(path), flush=True)


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))
