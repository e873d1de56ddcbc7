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


def forked(work):
    """Return what work gives in a copy of this process, by way of JSON; None if that crashed."""
    out, into = os.pipe()
    process = os.fork()
    if process == 0:
        os.close(out)
        status = 1
        try:
            with os.fdopen(into, "w") as pipe:
                json.dump(work(), pipe)
            status = 0
        finally:
            os._exit(status)
    os.close(into)
    with os.fdopen(out) as pipe:
        told = pipe.read()
    return json.loads(told) if os.waitpid(process, 0)[1] == 0 else None
