"""Runs are kept, found again, and the same every time."""

from contextlib import nullcontext

import pytest
from experiments.common import Runs
from experiments.paper import limits, theory
from experiments.paper.runner import Job, changed, found, run_all, run_and_keep, stored

TINY = {"k": [3], "first": 5, "max_iter": 20, "alpha": [1.0, 0.1], "keep": [1, 1]}


def theory_job(observed=1.0):
    return Job("theory", "one", {"clipped": (0.1,), "observed": observed, "seed": 0})


@pytest.fixture(autouse=True)
def small(monkeypatch):
    monkeypatch.setattr(theory, "SHAPE", (12, 15, 2))
    monkeypatch.setattr(limits, "SHAPE", (20, 24, 3))


def test_a_run_keeps_settings_versions_and_seconds(tmp_path):
    run_and_keep(theory_job(), tmp_path)
    result = stored(theory_job(), tmp_path)
    assert result["settings"] == {"clipped": [0.1], "observed": 1.0, "seed": 0}
    assert {"declip", "numpy"} <= result["versions"].keys()
    assert {"wall", "cpu"} == result["seconds"].keys()


def test_a_rerun_gives_the_same_numbers(tmp_path):
    settings = {"kind": "both ends", "share": 0.3, "seed": 1, "grid": TINY}
    job = Job("limits", "x", settings)
    result = run_and_keep(job, tmp_path)
    assert changed(job, tmp_path) == {}
    result["methods"]["Fro-CMC"]["all_cells"] *= 1 + 1e-9
    job.runs(tmp_path).add("x", result)
    assert list(changed(job, tmp_path)) == ["methods.Fro-CMC.all_cells"]


def test_a_result_with_other_settings_does_not_count(tmp_path):
    run_and_keep(theory_job(), tmp_path)
    assert stored(theory_job(), tmp_path) is not None
    assert stored(theory_job(observed=0.9), tmp_path) is None


def test_what_has_been_run_is_not_run_again(tmp_path):
    run_and_keep(theory_job(), tmp_path)
    path = theory_job().runs(tmp_path).path
    before = path.stat().st_mtime_ns
    assert run_all([theory_job()], tmp_path) == []
    assert path.stat().st_mtime_ns == before


def test_a_failed_run_is_reported_and_leaves_no_result(tmp_path):
    broken = Job("theory", "broken", {"clipped": (0.1,), "observed": 7.0, "seed": 0})
    ((job, error),) = run_all([broken], tmp_path, workers=1)
    assert job is broken
    assert "observed is a share" in error
    assert found([broken], tmp_path) == []


def test_the_last_run_of_a_name_counts(tmp_path):
    runs = Runs(tmp_path / "study.jsonl")
    for name, x in (("b", 1), ("a", 2), ("b", 3)):
        runs.add(name, {"x": x})
    assert runs.read() == {"b": {"x": 3}, "a": {"x": 2}}
    runs.sort()
    assert runs.path.read_text() == '{"run": "a", "x": 2}\n{"run": "b", "x": 3}\n'


def test_a_run_that_is_forgotten_is_made_again_and_others_are_kept(tmp_path):
    runs = Runs(tmp_path / "study.jsonl")
    for name in ("a", "b"):
        runs.resume(name, {}, lambda: {"x": 1})
    runs.forget("a")
    assert [runs.resume(name, {}, lambda: {"x": 2})["x"] for name in ("a", "b")] == [2, 1]


@pytest.mark.parametrize("end", [-1, -2, 1])
def test_a_run_that_was_cut_off_is_run_again(tmp_path, end):
    runs = Runs(tmp_path / "study.jsonl")
    runs.resume("whole", {}, lambda: {"x": 1})
    whole = runs.path.read_bytes()
    runs.resume("torn", {}, lambda: {"x": 2})
    torn = runs.path.read_bytes()[len(whole) :]
    runs.path.write_bytes(whole + torn[:end])
    missing = end != -1  # without its line break alone, a run is whole
    with warns_of_a_torn_line() if missing else nullcontext():
        again = runs.resume("torn", {}, lambda: {"x": 3})
    assert again["x"] == (3 if missing else 2)
    with warns_of_a_torn_line() if missing else nullcontext():
        runs.sort()
    assert [run["x"] for run in runs.read().values()] == [again["x"], 1]


def warns_of_a_torn_line():
    return pytest.warns(UserWarning, match="study.jsonl, line 2: not whole")
