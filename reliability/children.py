"""Figures from processes of their own."""

import json
import os
import resource
import select
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

import psutil

ROOT = Path(__file__).parents[1]
RECORDS = ROOT / ".reliability"  # outcomes of runs that are under way
_MEMORY = 4 * 2**30  # bytes of address space of a process under test
_SECONDS = 30.0  # of work without a word (20 times that by the clock), or it hangs
_FINE = ("refused", "same", "done")


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


def limit_memory():
    """Let this process ask for 4 GiB in all."""
    resource.setrlimit(resource.RLIMIT_AS, (_MEMORY, _MEMORY))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def supervised(module, name, count, *, resume=False):
    """Count what becomes of cases that processes run one after the other.

    ``python -m module name i count`` prints "i outcome" for each case from i on; when a process
    ends or hangs, that is the outcome of its case, and another goes on with the next. Outcomes are
    kept as they come: to ``resume`` is to go on where a run was broken off.
    """
    record = Record(module, name, resume)
    while len(record.outcomes) < count:
        place = [name, str(len(record.outcomes)), str(count)]
        command = [sys.executable, "-W", "ignore", "-m", module, *place]
        env = {**os.environ, "OPENBLAS_NUM_THREADS": "1", "RUST_BACKTRACE": "0"}
        with subprocess.Popen(
            command, cwd=ROOT, env=env, stdout=subprocess.PIPE, bufsize=0
        ) as process:
            for line in _lines(process):
                record.add(line.partition(" ")[2])
        if len(record.outcomes) < count:
            killed = process.returncode == -signal.SIGKILL
            record.add(f"{'hang' if killed else 'crash'} ({process.returncode})")
    return Counter(o.split()[0].rstrip(":") for o in record.outcomes[:count])


class Record:
    """The outcomes of the cases of one name, a line each, in a file that outlives the process."""

    def __init__(self, module, name, resume):
        RECORDS.mkdir(exist_ok=True)
        self.name = name
        self._path = RECORDS / f"{module}-{name.replace(' ', '-')}.txt"
        if not resume:
            self._path.unlink(missing_ok=True)
        self.outcomes = self._path.read_text().splitlines() if self._path.exists() else []

    def add(self, outcome):
        """Keep an outcome, and print it if it is none of those that are promised."""
        self.outcomes.append(outcome)
        with self._path.open("a") as file:
            file.write(outcome + "\n")
        if outcome not in _FINE:
            print(f"{self.name}: {len(self.outcomes) - 1} {outcome}", flush=True)


def _lines(process):
    """Yield the lines of a process; one that works on without a word is killed."""
    rest, watched = b"", psutil.Process(process.pid)
    last = _work(watched), time.monotonic()
    while _work(watched) - last[0] < _SECONDS and time.monotonic() - last[1] < 20 * _SECONDS:
        if not select.select([process.stdout], [], [], 1.0)[0]:
            continue
        part = os.read(process.stdout.fileno(), 2**16)
        if not part:
            return
        last = _work(watched), time.monotonic()
        *lines, rest = (rest + part).split(b"\n")
        yield from (line.decode() for line in lines)
    process.kill()


def _work(process):
    times = process.cpu_times()
    return times.user + times.system
