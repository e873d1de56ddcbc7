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
from pathlib import Path

import httpx
import numpy as np
import psutil

import declip
from declip import BayesCMC
from reliability.children import ROOT, Record, asked
from reliability.interrupts import clocks

_LONGEST = 8.0  # seconds to the end of a page at work
_TICK = 0.002
_SIGNALS = (signal.SIGINT, signal.SIGTERM)


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
    """End so many pages in the middle of a restoration, by SIGINT and by SIGTERM in turn."""
    record = Record("reliability.endings", "page ended", resume)
    rng = np.random.default_rng(0)
    for case, delay in enumerate(rng.uniform(0, _LONGEST, 2 * times)):
        if case >= len(record.outcomes):
            record.add(json.dumps(_page_ended(_SIGNALS[case % 2], delay)))
    found = [json.loads(outcome) for outcome in record.outcomes[: 2 * times]]
    return {how.name: _summed_up(found[k::2]) for k, how in enumerate(_SIGNALS)}


def _summed_up(found):
    taken, codes, left, processes = zip(*found, strict=True)
    return {
        "pages": len(found),
        "longest [s]": max(taken),
        "exit codes": sorted(set(codes)),
        "folders left": sum(left),
        "processes left": sum(processes),
    }


def _page_ended(how, delay):
    command = [sys.executable, "-m", "declip", "app", "--port", "0", "--no-browser"]
    with tempfile.TemporaryDirectory() as folder:
        env = {**os.environ, "TMPDIR": folder}
        with subprocess.Popen(
            command, cwd=ROOT, env=env, stdout=subprocess.PIPE, text=True
        ) as page:
            _busy(re.search(r"http://\S+", page.stdout.readline())[0])
            time.sleep(delay)
            family = psutil.Process(page.pid).children(recursive=True)
            began = time.monotonic()
            page.send_signal(how)
            page.wait()
            taken = time.monotonic() - began
        alive = psutil.wait_procs(family, timeout=10)[1]
        return taken, page.returncode, len(list(Path(folder).glob("declip-page-*"))), len(alive)


def _busy(address):
    """Start a restoration that takes minutes."""
    text = "\n".join(",".join(f"{x:.3f}" if x < 2 else ">2" for x in row) for row in table())
    with httpx.Client(base_url=address, timeout=120) as client:
        secret = re.search(r'"secret": "([^"]+)"', client.get("/").text)[1]
        client.headers["x-declip-secret"] = secret
        key = client.post("/upload?name=t.csv", content=text.encode()).json()["key"]
        client.post(f"/jobs/{key}/restore", json={"effort": "thorough"})


if __name__ == "__main__":
    print(json.dumps(_measured(sys.argv[1], int(sys.argv[2]))))
