"""Runs are kept, found again, and the same every time."""

import json

import pytest
from experiments.paper import limits, theory
from experiments.paper.runner import Job, found, is_repeated, run_all, run_one, stored

TINY = {"k": [3], "first": 5, "max_iter": 20, "alpha": [1.0, 0.1], "keep": [1, 1]}


def theory_job(observed=1.0):
    return Job("theory", "one", {"clipped": (0.1,), "observed": observed, "seed": 0})


@pytest.fixture(autouse=True)
def small(monkeypatch):
    monkeypatch.setattr(theory, "SHAPE", (12, 15, 2))
    monkeypatch.setattr(limits, "SHAPE", (20, 24, 3))


def test_a_run_keeps_settings_versions_and_seconds(tmp_path):
    result = json.loads(run_one(theory_job(), tmp_path).read_text())
    assert result["settings"] == {"clipped": [0.1], "observed": 1.0, "seed": 0}
    assert {"declip", "numpy"} <= result["versions"].keys()
    assert {"wall", "cpu"} == result["seconds"].keys()


def test_a_rerun_gives_the_same_numbers(tmp_path):
    settings = {"kind": "both ends", "share": 0.3, "seed": 1, "grid": TINY}
    job = Job("limits", "x", settings)
    path = run_one(job, tmp_path)
    assert is_repeated(job, tmp_path)
    result = json.loads(path.read_text())
    result["methods"]["Fro-CMC"]["all_cells"] *= 1 + 1e-9
    path.write_text(json.dumps(result))
    assert not is_repeated(job, tmp_path)


def test_a_result_with_other_settings_does_not_count(tmp_path):
    run_one(theory_job(), tmp_path)
    assert stored(theory_job(), tmp_path) is not None
    assert stored(theory_job(observed=0.9), tmp_path) is None


def test_what_has_been_run_is_not_run_again(tmp_path):
    path = run_one(theory_job(), tmp_path)
    before = path.stat().st_mtime_ns
    assert run_all([theory_job()], tmp_path) == []
    assert path.stat().st_mtime_ns == before


def test_a_failed_run_is_reported_and_leaves_no_file(tmp_path):
    broken = Job("theory", "broken", {"clipped": (0.1,), "observed": 7.0, "seed": 0})
    ((job, error),) = run_all([broken], tmp_path, workers=1)
    assert job is broken
    assert "observed is a share" in error
    assert found([broken], tmp_path) == []
