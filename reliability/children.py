"""Figures from processes of their own."""

import json
import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]


def asked(module, *arguments, **env):
    """Return what ``python -m module`` prints last, as JSON; None if it crashed."""
    done = subprocess.run(
        [sys.executable, "-m", module, *map(str, arguments)],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        text=True,
        check=False,
        env={**os.environ, "PYTHONWARNINGS": "ignore", "OPENBLAS_NUM_THREADS": "1", **env},
    )
    return json.loads(done.stdout.splitlines()[-1]) if done.returncode == 0 else None
