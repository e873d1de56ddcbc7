"""The page on this computer: what it takes, what it refuses, and whom it answers."""

import subprocess
import sys
import time

import numpy as np
import pytest

pytest.importorskip("starlette")
from starlette.testclient import TestClient

import declip
from declip import write_table
from declip.app import make_app, work
from declip.app.jobs import safe_name
from declip.cli import main
from declip.demo import reported_assay

SMALL = b"id,x,y\na,1,2\nb,3,>4\nc,2,1\n"


@pytest.fixture
def page():
    """Return a client that came through the page."""
    app = make_app(max_size=100_000)
    with TestClient(app, base_url="http://127.0.0.1:8642") as client:
        client.headers["x-declip-secret"] = app.state.secret
        yield client


def upload(client, content=SMALL, name="table.csv"):
    return client.post("/upload", params={"name": name}, content=content)


def finished(client, key, seconds=60):
    for _ in range(seconds * 20):
        job = client.get(f"/jobs/{key}").json()
        if job["state"] != "running":
            return job
        time.sleep(0.05)
    raise AssertionError("not finished")


def test_a_file_is_uploaded_restored_and_downloaded(page, tmp_path):
    path = write_table(reported_assay(), tmp_path / "assay.csv")
    job = upload(page, path.read_bytes(), "assay.csv").json()
    assert job["summary"]["exact"] == 553
    assert (job["summary"]["above"], job["summary"]["below"]) == (52, 79)
    quick = {"log": True, "method": "column", "fill_missing": True}
    assert page.post(f"/jobs/{job['key']}/restore", json=quick).status_code == 202
    done = finished(page, job["key"])
    assert done["state"] == "done", done
    table = page.get(f"/jobs/{job['key']}/table")
    assert 'filename="assay-restored.csv"' in table.headers["content-disposition"]
    (tmp_path / "back.csv").write_bytes(table.content)
    back = declip.read_table(tmp_path / "back.csv").intervals
    expected = declip.restore(reported_assay(), log=True, method="column").table
    # two digits at least: half a unit of the second is up to a twentieth
    np.testing.assert_allclose(back.to_bounds()[0], expected, rtol=0.0501)
    assert "<svg" in page.get(f"/jobs/{job['key']}/report").text
    assert page.get(f"/jobs/{job['key']}/flags").text.startswith("row,column,reported")


def test_the_page_writes_the_file_that_the_command_writes(page, tmp_path):
    path = write_table(reported_assay(), tmp_path / "assay.csv")
    job = upload(page, path.read_bytes(), "assay.csv").json()
    page.post(f"/jobs/{job['key']}/restore", json={"log": True, "method": "column"})
    finished(page, job["key"])
    assert main(["restore", str(path), "--log", "--method", "column", "-q"]) == 0
    by_command = (tmp_path / "assay-restored.csv").read_bytes()
    assert page.get(f"/jobs/{job['key']}/table").content == by_command


def test_cells_that_stay_empty_are_not_said_to_be_filled(page, tmp_path):
    path = write_table(reported_assay(), tmp_path / "assay.csv")
    job = upload(page, path.read_bytes(), "assay.csv").json()
    page.post(f"/jobs/{job['key']}/restore", json={"log": True, "method": "column"})
    flags = finished(page, job["key"])["summary"]["flags"]
    assert (flags["left empty"], "filled" in flags) == (36, False)
    assert "the file leaves them empty" in page.get(f"/jobs/{job['key']}/report").text


def test_a_code_for_missing_is_not_offered_as_a_limit(page):
    rng = np.random.default_rng(0)
    lines = [
        f"p{i},{a},{99 if i % 9 == 0 else b}"
        for i, (a, b) in enumerate(rng.integers(1, 6, (60, 2)))
    ]
    job = upload(page, "\n".join(["id,x,y", *lines]).encode()).json()
    assert job["summary"]["proposal"] is None


# What Windows lacks is taken away, before declip is loaded; its processes load this file again.
ON_WINDOWS = """
import multiprocessing, os, signal, sys

if __name__ == "__main__":
    multiprocessing.get_all_start_methods = lambda: ["spawn"]
    sys.modules["multiprocessing.forkserver"] = None
    sys.modules["resource"] = None
    del os.getuid, signal.pthread_sigmask
    from starlette.testclient import TestClient
    from declip.app import make_app

    app = make_app(max_size=1000)
    with TestClient(app, base_url="http://127.0.0.1:8642") as client:
        client.headers["x-declip-secret"] = app.state.secret
        table = b"id,x,y\\na,1,2\\nb,3,>4\\nc,2,1\\n"
        answer = client.post("/upload", params={"name": "table.csv"}, content=table)
    print(answer.json()["summary"]["above"])
"""


def test_a_file_is_read_where_processes_cannot_be_forked(tmp_path):
    script = tmp_path / "page.py"
    script.write_text(ON_WINDOWS)
    ended = subprocess.run([sys.executable, script], capture_output=True, text=True)
    assert ended.stdout == "1\n", ended.stderr


def test_memory_is_not_limited_where_the_system_cannot(monkeypatch):
    monkeypatch.setitem(sys.modules, "resource", None)
    work._limit_memory()


def test_limits_change_what_is_clipped(page):
    key = upload(page).json()["key"]
    job = page.post(f"/jobs/{key}/read", json={"ceiling": {"x": 3}, "floor": 1}).json()
    assert (job["summary"]["above"], job["summary"]["below"]) == (2, 2)


def test_a_bad_file_is_one_line_without_a_path_of_this_computer(page):
    job = upload(page, b"id,x\na,oops\n").json()
    assert job["state"] == "unread"
    assert job["message"].startswith("table.csv, line 2, column 'x': 'oops'")
    assert "/" not in job["message"].replace("a number", "")
    assert page.post(f"/jobs/{job['key']}/restore").status_code == 409


def test_words_can_be_mended_by_a_limit(page):
    job = upload(page, b"id,x,y\na,ND,1\nb,2,3\nc,1,2\n").json()
    assert "needs the floor" in job["message"]
    mended = page.post(f"/jobs/{job['key']}/read", json={"floor": {"x": 0.5}}).json()
    assert mended["state"] == "read"


@pytest.mark.parametrize("limits", [{"ceiling": "five"}, {"ceiling": {"x": None}}, {"floor": True}])
def test_limits_that_are_no_numbers_are_refused(page, limits):
    key = upload(page).json()["key"]
    assert page.post(f"/jobs/{key}/read", json=limits).status_code == 400


def test_an_oversized_file_is_refused_before_it_is_read(page):
    answer = upload(page, b"x" * 100_001)
    assert answer.status_code == 413
    assert "larger than 0.1 MB" in answer.json()["error"]


def test_an_oversized_stream_without_a_length_is_refused(page):
    chunks = (b"x" * 10_000 for _ in range(20))
    answer = page.post("/upload", params={"name": "t.csv"}, content=chunks)
    assert answer.status_code == 413


@pytest.mark.parametrize("name", ["evil.exe", "table", "", "x.csv.py", "x.html", "../../x"])
def test_a_file_of_another_kind_is_refused(page, name):
    assert upload(page, name=name).status_code == 415


@pytest.mark.parametrize(
    ("name", "safe"),
    [
        ("../x.csv", "x.csv"),
        ("..\\..\\x.csv", "x.csv"),
        ("/etc/passwd.csv", "passwd.csv"),
        ("a\0b.csv", "a_b.csv"),
        ("<img src=x onerror=alert(1)>.csv", "_img src_x onerror_alert(1)_.csv"),
        ('"; filename="y.exe.csv', "_; filename__y.exe.csv".replace(";", "_")),
        ("...csv", "csv"),
        ("x" * 300 + ".csv", "x" * 76 + ".csv"),
        ("données 1.csv", "données 1.csv"),
    ],
)
def test_names_are_made_harmless(name, safe):
    assert safe_name(name) == safe


def test_no_name_from_the_user_is_used_as_a_path(page):
    jobs = page.app.state.jobs
    for name in ("../x.csv", "/etc/x.csv", "..\\x.csv", "%2e%2e%2fx.csv"):
        key = upload(page, name=name).json()["key"]
        folder = jobs.get(key).folder
        assert folder.parent == jobs.folder
        assert [p.name for p in folder.iterdir()] == ["upload.csv"]


@pytest.mark.parametrize("kind", ["upload", "upload.csv", "%2e%2e%2fupload.csv", "table", "secret"])
def test_only_results_can_be_downloaded(page, kind):
    key = upload(page).json()["key"]
    assert page.get(f"/jobs/{key}/{kind}").status_code == 404


@pytest.mark.parametrize(
    "options", [{"log": "yes"}, {"time_limit": True}, {"effort": 3}, {"between": 3}]
)
def test_options_that_cannot_be_are_refused(page, options):
    key = upload(page).json()["key"]
    assert page.post(f"/jobs/{key}/restore", json=options).status_code == 400


def test_another_host_name_is_refused(page):
    for host in ("evil.example", "127.0.0.1.evil.example", "evil.example:8642"):
        assert page.get("/", headers={"host": host}).status_code == 400


def test_changes_need_the_secret_of_the_page(page):
    for secret in ("", "wrong", "é"):
        answer = page.post(
            "/upload?name=t.csv", content=SMALL, headers={"x-declip-secret": secret.encode()}
        )
        assert answer.status_code == 403
    assert page.app.state.secret in page.get("/").text


def test_other_sites_may_not_read_or_frame_the_page(page):
    answer = page.get("/", headers={"origin": "http://evil.example"})
    assert "access-control-allow-origin" not in answer.headers
    policy = answer.headers["content-security-policy"]
    assert "frame-ancestors 'none'" in policy
    assert "default-src 'none'" in policy
    assert answer.headers["cross-origin-resource-policy"] == "same-origin"
    assert answer.headers["x-content-type-options"] == "nosniff"


def test_an_unknown_table_and_bad_json_are_refused(page):
    assert page.get("/jobs/nothing").status_code == 404
    key = upload(page).json()["key"]
    assert page.post(f"/jobs/{key}/read", content=b"{").status_code == 400
    assert page.post(f"/jobs/{key}/read", content=b"[1]").status_code == 400


def test_an_error_in_the_background_is_told(page):
    key = upload(page, b"id,x,y\na,0,2\nb,3,4\nc,2,1\n").json()["key"]
    page.post(f"/jobs/{key}/restore", json={"log": True})
    job = finished(page, key)
    assert job["state"] == "failed"
    assert "no logarithm, first row 'a', column 'x'" in job["message"]
    assert page.get(f"/jobs/{key}/table").status_code == 404


def test_old_tables_are_forgotten_and_all_at_the_end():
    app = make_app()
    with TestClient(app, base_url="http://localhost") as client:
        client.headers["x-declip-secret"] = app.state.secret
        keys = [upload(client).json()["key"] for _ in range(22)]
        assert client.get(f"/jobs/{keys[0]}").status_code == 404
        assert client.get(f"/jobs/{keys[-1]}").status_code == 200
        folder = app.state.jobs.folder
        assert len(list(folder.iterdir())) == 20
    assert not folder.exists()
