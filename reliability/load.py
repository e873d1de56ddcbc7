"""`restore` counts its work: the same bits on an idle machine and on a busy one."""

import json
import os
import subprocess
import sys

import numpy as np

from declip import restore
from declip.persistence import fingerprint
from reliability.children import asked


def mark(n_jobs):
    """Return the fingerprint of all that a restoration says of a table with limits and gaps."""
    rng = np.random.default_rng(0)
    truth = rng.normal(size=(150, 2)) @ rng.normal(size=(2, 8)) + 0.5 * rng.normal(size=(150, 8))
    seen = np.where(rng.random(truth.shape) < 0.1, np.nan, np.minimum(truth, 1.0))
    r = restore(seen, ceiling=1.0, n_jobs=n_jobs)
    return fingerprint([r.table, r.lower, r.upper, r.expected_gain, r.chosen["weights"]])


def restored(count):
    """Restore in processes of their own, then beside two busy ones a core; count the results."""
    before = [asked("reliability.load", 1 + i % 2) for i in range(count)]
    busy = [
        subprocess.Popen([sys.executable, "-c", "while True: pass"])
        for _ in range(2 * (os.cpu_count() or 1))
    ]
    try:
        beside = [asked("reliability.load", 1 + i % 2) for i in range(count)]
    finally:
        for process in busy:
            process.kill()
    return {
        "restorations": f"{count} and {count} beside {len(busy)} busy processes",
        "different results": len(set(before + beside)),
    }


if __name__ == "__main__":
    print(json.dumps(mark(int(sys.argv[1]))))
