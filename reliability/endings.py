"""Ctrl-C at random moments of `restore` and `BayesCMC`, and of a page that is at work."""

import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from pathlib import Path

import httpx
import numpy as np
import psutil

import declip
from declip import BayesCMC
from declip.app.work import OUTPUTS
from reliability.children import ROOT, Record, asked
from reliability.interrupts import clocks

_TICK = 0.002
_AT_ONCE = 4  # pages
_SIGNALS = (signal.SIGINT, signal.SIGTERM)
_PHASES = ("opening", "reading", "restoring", "fetching")


def ctrl_c(times):
    """Interrupt each so many times."""
    return {name: asked("reliability.endings", name, times) for name in WORK}


def table(n=300, m=40):
    """Return a table that takes seconds to restore."""
    rng = np.random.default_rng(0)
    truth = rng.normal(size=(n, 6)) @ rng.normal(size=(6, m)) + 0.1 * rng.normal(size=(n, m))
    return np.minimum(truth, 2.0)


WORK = {
    "restore": lambda: declip.restore(
        table(90, 12), ceiling=2.0, effort="quick", random_state=0, progress=False
    ),
    "BayesCMC": lambda: BayesCMC(ceiling=2.0, n_samples=100, random_state=0).fit(table()),
}


def interrupted(work, after):
    """Return what Ctrl-C took, by the clock and in work of the main thread; None if too late.

    It comes when the process has worked for so long, so that a busy machine shifts no moment.
    """
    sent, done, moment = [], threading.Event(), time.process_time() + after

    def send():
        while time.process_time() < moment and not done.wait(_TICK):
            pass
        if not done.is_set():
            sent.append(clocks())
            os.kill(os.getpid(), signal.SIGINT)

    sender = threading.Thread(target=send)
    sender.start()
    try:
        work()
        done.set()
        sender.join()
        return None
    except KeyboardInterrupt:
        return clocks() - sent[0]
    finally:
        done.set()
        sender.join()


def _measured(name, times):
    signal.signal(signal.SIGINT, signal.default_int_handler)
    rng, found, done = np.random.default_rng(0), [], 0
    whole = _seconds_of(WORK[name])
    with tempfile.TemporaryDirectory() as folder:
        tempfile.tempdir = folder
        while len(found) < times:
            taken = interrupted(WORK[name], rng.uniform(0, whole))
            found, done = (found, done + 1) if taken is None else ([*found, taken], done)
        left = len(list(Path(folder).iterdir()))
    clock, work = np.array(found).T
    return {
        "interrupts": len(found),
        "ended before": done,
        "median [s]": float(np.median(clock)),
        "longest [s]": float(clock.max()),
        "most work of the main thread [s]": float(work.max()),
        "files left": left,
    }


def _seconds_of(work):
    """Return how long the whole work takes, once everything is imported."""
    work()
    began = time.process_time()
    work()
    return time.process_time() - began


def page_ended(times, resume=False):
    """End so many pages while somebody uses them, by SIGINT and by SIGTERM in turn."""
    record = Record("reliability.endings", "page ended", resume)
    whole = _round_seconds()
    moments = whole * np.random.default_rng(0).random(2 * times)
    cases = [(_SIGNALS[k % 2], moments[k]) for k in range(len(record.outcomes), 2 * times)]
    with ThreadPoolExecutor(_AT_ONCE) as pool:
        for found in pool.map(lambda case: _page_ended(*case), cases):
            record.add(json.dumps(found))
    found = [json.loads(outcome) for outcome in record.outcomes[: 2 * times]]
    return {how.name: _summed_up(found, how.name) for how in _SIGNALS}


def _summed_up(found, how):
    found = [rest for name, *rest in found if name == how]
    phases, taken, codes, said, left, processes = zip(*found, strict=True)
    return {
        "pages": len(found),
        "while": ", ".join(f"{phase} {phases.count(phase)}" for phase in _PHASES),
        "median [s]": float(np.median(taken)),
        "longest [s]": max(taken),
        "exit codes": sorted(set(codes)),
        "with other words than its address": sum(said),
        "folders left": sum(left),
        "processes left": sum(processes),
    }


def _page_ended(how, delay):
    """Signal as a terminal does, to all processes of the page, or as `kill` does, to one."""
    with tempfile.TemporaryDirectory() as folder, _served(folder) as (page, address):
        user = _User(address)
        threading.Thread(target=user.rounds, daemon=True).start()
        time.sleep(delay)
        family = psutil.Process(page.pid).children(recursive=True)
        phase, began = user.phase, time.monotonic()
        os.killpg(page.pid, how) if how is signal.SIGINT else page.send_signal(how)
        page.wait()
        taken = time.monotonic() - began
        said = page.communicate()[0]
        alive = psutil.wait_procs(family, timeout=10)[1]
        left = len(list(Path(folder).glob("declip-page-*")))
        return how.name, phase, taken, page.returncode, bool(said), left, len(alive)


@contextmanager
def _served(folder):
    """Serve a page in a session of its own, with its temporary files there."""
    command = [sys.executable, "-m", "declip", "app", "--port", "0", "--no-browser"]
    with subprocess.Popen(
        command,
        cwd=ROOT,
        env={**os.environ, "TMPDIR": str(folder)},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    ) as page:
        yield page, re.search(r"http://\S+", page.stdout.readline())[0]


class _User:
    """One who drops a file, restores it and looks at the results, again and again."""

    def __init__(self, address):
        self.phase, self._client = "opening", httpx.Client(base_url=address, timeout=120)
        rows = table(40, 8)
        self._file = "\n".join(",".join(f"{x:.3f}" if x < 2 else ">2" for x in r) for r in rows)

    def rounds(self):
        """Go on until the page is gone."""
        with suppress(httpx.HTTPError, ValueError, LookupError, TypeError):
            while True:
                self.round()

    def round(self):
        """Use the page once, from its opening to the report."""
        client, self.phase = self._client, "opening"
        secret = re.search(r'"secret": "([^"]+)"', client.get("/").text)[1]
        client.headers["x-declip-secret"] = secret
        self.phase = "reading"
        key = client.post("/upload?name=t.csv", content=self._file.encode()).json()["key"]
        self.phase = "restoring"
        client.post(f"/jobs/{key}/restore", json={"effort": "quick"})
        while client.get(f"/jobs/{key}").json()["state"] == "running":
            time.sleep(0.1)
        self.phase = "fetching"
        for kind in OUTPUTS:
            client.get(f"/jobs/{key}/{kind}")


def _round_seconds():
    """Return how long one takes to use a page that was just started."""
    with tempfile.TemporaryDirectory() as folder, _served(folder) as (page, address):
        began = time.monotonic()
        _User(address).round()
        taken = time.monotonic() - began
        page.terminate()
        page.wait()
    return taken


if __name__ == "__main__":
    print(json.dumps(_measured(sys.argv[1], int(sys.argv[2]))))
