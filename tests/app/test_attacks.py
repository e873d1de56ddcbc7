"""The page attacked: by other sites, by hostile files, by slow senders, and ended at a bad time."""

import os
import re
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from contextlib import suppress

import httpx
import numpy as np
import psutil
import pytest

pytest.importorskip("starlette")
import uvicorn
from starlette.testclient import TestClient

from declip.app import jobs, make_app
from declip.app.server import serve

SMALL = b"id,x,y\na,1,2\nb,3,>4\nc,2,1\n"
SECONDS = 60  # in which a loaded machine does what takes one


def large(n=400, m=60):
    """Return a table that takes minutes to restore."""
    rng = np.random.default_rng(0)
    table = rng.normal(size=(n, 8)) @ rng.normal(size=(8, m)) + 0.1 * rng.normal(size=(n, m))
    rows = (",".join(f"{x:.4f}" if x < 2 else ">2" for x in row) for row in table)
    return "\n".join([",".join(f"x{j}" for j in range(m)), *rows]).encode()


LARGE = large()


@pytest.fixture(scope="module")
def app():
    return make_app(max_size=5_000_000)


@pytest.fixture(scope="module")
def page(app):
    with TestClient(app, base_url="http://127.0.0.1:8642") as client:
        client.headers["x-declip-secret"] = app.state.secret
        yield client


def upload(client, content=SMALL, name="table.csv", **headers):
    return client.post("/upload", params={"name": name}, content=content, headers=headers)


def until(client, key, *states):
    end = time.monotonic() + SECONDS
    while time.monotonic() < end:
        job = client.get(f"/jobs/{key}").json()
        if job["state"] in states:
            return job
        time.sleep(0.05)
    raise AssertionError(job)


@pytest.mark.parametrize(
    "headers",
    [
        {"origin": "http://evil.example"},
        {"origin": "null"},
        {"origin": "http://127.0.0.1:9999"},
        {"sec-fetch-site": "cross-site"},
        {"sec-fetch-site": "same-site"},
        {"host": "evil.example:8642", "origin": "http://evil.example:8642"},
    ],
)
def test_a_post_of_another_site_is_refused_even_with_the_secret(page, headers):
    assert upload(page, **headers).status_code in (400, 403)


def test_other_sites_may_open_the_page_but_fetch_nothing(page):
    key = upload(page).json()["key"]
    crossing = {"sec-fetch-site": "cross-site", "sec-fetch-mode": "no-cors"}
    for path in ("/", f"/jobs/{key}", f"/jobs/{key}/report"):
        assert page.get(path, headers=crossing).status_code == 403
    opening = {"sec-fetch-site": "cross-site", "sec-fetch-mode": "navigate"}
    assert page.get("/", headers=opening).status_code == 200


@pytest.mark.parametrize("path", ["/", "/jobs/nothing", "/nothing", "/upload"])
def test_every_answer_may_run_and_frame_nothing_of_others(page, path):
    answer = page.get(path)
    policy = answer.headers["content-security-policy"]
    assert "default-src 'none'" in policy
    assert "frame-ancestors 'none'" in policy
    assert "unsafe-inline" not in policy
    assert answer.headers["x-frame-options"] == "DENY"


def test_a_report_runs_no_script(page):
    key = upload(page).json()["key"]
    page.post(f"/jobs/{key}/restore", json={"method": "column"})
    assert until(page, key, "done", "failed")["state"] == "done"
    policy = page.get(f"/jobs/{key}/report").headers["content-security-policy"]
    assert policy.startswith("sandbox")
    assert "script-src" not in policy


def test_keys_of_tables_cannot_be_guessed(page):
    keys = {upload(page).json()["key"] for _ in range(3)}
    assert len(keys) == 3
    assert all(len(key) >= 22 for key in keys)  # 128 bits


def test_files_are_for_this_user_alone(app, page):
    key = upload(page).json()["key"]
    assert app.state.jobs.folder.stat().st_mode & 0o077 == 0
    assert app.state.jobs.get(key).folder.parent == app.state.jobs.folder


def test_a_file_that_breaks_its_reader_costs_one_answer(page, monkeypatch):
    start = jobs._Worker.__init__

    def broken(self, folder, task):
        start(self, folder, task)
        self._process.kill()

    monkeypatch.setattr(jobs._Worker, "__init__", broken)
    job = upload(page).json()
    assert job["message"] == "the file is too large for the memory, or breaks its reader"
    monkeypatch.undo()
    assert upload(page).json()["state"] == "read"


def test_a_file_that_takes_too_long_is_given_up(page, monkeypatch):
    monkeypatch.setattr(jobs, "_READING_SECONDS", 0.0)
    assert upload(page).json()["message"] == "the file was not read within 0 s"


def test_a_restoration_is_cancelled(app, page):
    key = upload(page, LARGE).json()["key"]
    page.post(f"/jobs/{key}/restore", json={"effort": "thorough"})
    while not until(page, key, "running")["doing"]:
        time.sleep(0.05)
    worker = app.state.jobs.get(key)._worker
    assert page.post(f"/jobs/{key}/cancel").json()["state"] == "cancelled"
    worker._process.join(SECONDS)
    assert worker._process.exitcode == -signal.SIGKILL
    assert page.post(f"/jobs/{key}/restore", json={"method": "column"}).status_code == 202
    assert until(page, key, "done")["message"] == ""


def test_the_late_end_of_a_cancelled_restoration_does_not_end_the_next_one(page, monkeypatch):
    key, late = upload(page, LARGE).json()["key"], threading.Event()
    result = jobs._Worker.result

    def ends_late(self, *args):
        try:
            return result(self, *args)
        except jobs.TaskError:
            late.wait(SECONDS)
            raise

    monkeypatch.setattr(jobs._Worker, "result", ends_late)
    page.post(f"/jobs/{key}/restore", json={"effort": "thorough"})
    while not until(page, key, "running")["doing"]:
        time.sleep(0.05)
    page.post(f"/jobs/{key}/cancel")
    page.post(f"/jobs/{key}/restore", json={"method": "column"})
    late.set()
    assert until(page, key, "done")["message"] == ""


def test_a_body_that_is_no_file_is_bounded(page):
    key = upload(page).json()["key"]
    assert page.post(f"/jobs/{key}/read", content=b" " * 3_000_000).status_code == 413


def test_a_slow_upload_is_cut_off():
    app = make_app(upload_seconds=0.5)
    listener = socket.create_server(("127.0.0.1", 0))
    server = uvicorn.Server(uvicorn.Config(app, log_level="error"))
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]}, daemon=True)
    thread.start()
    head = (
        f"POST /upload?name=t.csv HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 1000\r\n"
        f"X-Declip-Secret: {app.state.secret}\r\n\r\nid,"
    )
    with socket.create_connection(listener.getsockname()) as sender:
        sender.sendall(head.encode())
        sender.settimeout(SECONDS)
        assert sender.recv(100).startswith(b"HTTP/1.1 408")
    server.should_exit = True
    thread.join(SECONDS)
    assert not thread.is_alive()


@pytest.fixture
def running(tmp_path):
    """Return a page that runs as a process of its own: the process, its address and its secret."""
    command = [sys.executable, "-m", "declip", "app", "--port", "0", "--no-browser"]
    env = {**os.environ, "TMPDIR": str(tmp_path)}
    process = subprocess.Popen(
        command,
        env=env,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    address = re.search(r"http://\S+", process.stdout.readline())[0]
    yield process, address
    process.kill()
    process.wait()


def client_of(address):
    """Return a client that has opened the page."""
    client = httpx.Client(base_url=address, timeout=SECONDS)
    client.headers["x-declip-secret"] = re.search(r'"secret": "([^"]+)"', client.get("/").text)[1]
    return client


def busy(address):
    """Start a restoration that takes minutes; return a client and the key."""
    client = client_of(address)
    key = upload(client, LARGE).json()["key"]
    client.post(f"/jobs/{key}/restore", json={"effort": "thorough"})
    while not until(client, key, "running")["doing"]:
        time.sleep(0.05)
    return client, key


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGTERM])
def test_the_page_ends_cleanly_in_the_middle_of_a_large_restoration(running, tmp_path, how):
    process, address = running
    client, _ = busy(address)
    family = psutil.Process(process.pid).children(recursive=True)
    began = time.monotonic()
    process.send_signal(how)
    _, complaints = process.communicate(timeout=SECONDS)
    assert time.monotonic() - began < 10  # two seconds on a machine that does nothing else
    assert (process.returncode, complaints) == (0, "")
    assert list(tmp_path.glob("declip-page-*")) == []
    assert psutil.wait_procs(family, timeout=SECONDS)[1] == []
    client.close()


def endless():
    """Yield the parts of a file that has no end."""
    while True:
        yield b"1,2,3\n"
        time.sleep(0.05)


@pytest.mark.parametrize("content", [lambda: b"a,b\n" + b"1,<2\n" * 200_000, endless])
def test_ctrl_c_in_a_terminal_ends_a_page_that_is_being_sent_or_reads_a_file(
    running, tmp_path, content
):
    process, address = running
    client = client_of(address)

    def send():
        with suppress(httpx.HTTPError):
            client.post("/upload", params={"name": "t.csv"}, content=content())

    threading.Thread(target=send, daemon=True).start()
    while not list(tmp_path.glob("declip-page-*/*/upload.csv")):
        time.sleep(0.02)
    began = time.monotonic()
    os.killpg(process.pid, signal.SIGINT)
    process.wait(SECONDS)
    assert time.monotonic() - began < 5  # a quarter of a second on a machine without other work
    assert (process.returncode, process.communicate()[1]) == (0, "")
    assert list(tmp_path.glob("declip-page-*")) == []


def test_a_page_that_is_killed_leaves_nothing_behind(running, tmp_path):
    process, address = running
    client, _ = busy(address)
    family = psutil.Process(process.pid).children(recursive=True)
    process.kill()
    process.wait()
    assert psutil.wait_procs(family, timeout=SECONDS)[1] == []
    assert list(tmp_path.glob("declip-page-*")) == []
    client.close()


def test_folders_of_pages_that_are_gone_are_removed_at_the_next_start(tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    ended = subprocess.Popen([sys.executable, "-c", ""])
    ended.wait()
    left = tmp_path / f"declip-page-{ended.pid}-abc"
    left.mkdir()
    kept = tmp_path / f"declip-page-{os.getpid()}-abc"
    kept.mkdir()
    jobs.Jobs().close()
    assert not left.exists()
    assert kept.exists()


def test_a_port_in_use_is_told():
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(ValueError, match=f"port {port} cannot be used"):
            serve(port, open_browser=False)
