"""Damaged files of models: loading gives the model that was saved, or a ModelFileError."""

import resource
import tempfile
import time
from collections import Counter
from pathlib import Path

import numpy as np
from tests.persistence.models import ESTIMATORS, fitted, restoration, same
from tests.persistence.mutations import mutated

import declip
from declip import ModelFileError
from reliability.children import forked

NAMES = [*ESTIMATORS, "Restoration"]


def damaged_files(count):
    """Damage so many files, in one process for each kind of model, and return what came of it."""
    each = -(-count // len(NAMES))
    chunks = [forked(lambda i=i: _chunk(i, each)) for i in range(len(NAMES))]
    crashed = sum(found is None for found in chunks)
    found = [c for c in chunks if c is not None]
    totals = Counter()
    for chunk in found:
        totals.update(chunk["outcomes"])
    return {
        "files": sum(totals.values()),
        "refused": totals["refused"],
        "loaded and the same": totals["same"],
        "silent differences": totals["different"],
        "other exceptions": totals["other"],
        "crashed processes": crashed,
        "slowest load [s]": max(c["slowest"] for c in found),
        "most memory above the start [MB]": max(c["memory"] for c in found),
    }


def _peak():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1000


def _outcome(path, model):
    try:
        found = declip.load(path)
    except ModelFileError:
        return "refused"
    except Exception:
        return "other"
    return "same" if same(found, model) else "different"


def _chunk(number, count):
    with tempfile.TemporaryDirectory() as folder:
        seed, path = Path(folder, "seed.npz"), Path(folder, "damaged.npz")
        name = NAMES[number]
        model = restoration() if name == "Restoration" else fitted(name)
        raw = model.save(seed).read_bytes()
        assert same(declip.load(seed), model)
        start, slowest, outcomes = _peak(), 0.0, Counter()
        for i in range(count):
            path.write_bytes(mutated(raw, np.random.default_rng((number, i)))[0])
            began = time.process_time()
            outcomes[_outcome(path, model)] += 1
            slowest = max(slowest, time.process_time() - began)
    return {"outcomes": dict(outcomes), "slowest": slowest, "memory": _peak() - start}
