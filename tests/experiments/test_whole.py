"""How long everything took in one go is told by a record, and only where it was so run."""

from argparse import Namespace

import pytest
from experiments.paper import __main__ as command
from experiments.paper import whole
from experiments.paper.runner import Job

NOT_SO = "The runs shown here were not made in one go."


def recorded(folder, failed=(), fresh=True, adds=False):
    return whole.recorded(lambda: list(failed), folder, 3, 2, fresh=fresh, adds=adds)


def test_runs_from_nothing_in_one_go_say_how_long_they_took(tmp_path):
    assert recorded(tmp_path) == []
    said = whole.said(tmp_path, 3)
    assert said.startswith("In one go, from nothing, the 3 runs shown here took 0 minutes in 2")


@pytest.mark.parametrize("how", [{"failed": ["one"]}, {"fresh": False}])
def test_part_of_the_runs_leaves_no_record_and_takes_an_earlier_one_away(tmp_path, how):
    recorded(tmp_path)
    recorded(tmp_path, **how)
    assert whole.said(tmp_path, 3) == NOT_SO


def test_an_interruption_leaves_no_record(tmp_path):
    recorded(tmp_path)

    def interrupted():
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        whole.recorded(interrupted, tmp_path, 3, 2, fresh=True, adds=False)
    assert whole.said(tmp_path, 3) == NOT_SO


def test_a_record_of_more_runs_does_not_count(tmp_path):
    recorded(tmp_path)
    assert whole.said(tmp_path, 2) == NOT_SO


def test_runs_that_were_added_since_are_counted_apart(tmp_path):
    recorded(tmp_path)
    recorded(tmp_path, fresh=False, adds=True)
    said = whole.said(tmp_path, 5)
    assert said.startswith("In one go, from nothing, 3 of the 5 runs shown here took 0 minutes")
    assert said.endswith("The other 2 were added since.")


def test_only_a_command_that_began_from_nothing_counts(tmp_path, monkeypatch):
    def run_all(jobs, folder, workers):
        for job in jobs:
            job.runs(folder).add(job.name, {"settings": job.settings})
        return []

    monkeypatch.setattr(command, "run_all", run_all)
    jobs = [Job("theory", name, {}) for name in ("one", "two")]

    def made(jobs, **how):
        command.made(jobs, tmp_path, Namespace(**{"fresh": False, "study": [], "workers": 2} | how))
        return whole.said(tmp_path, 2) != NOT_SO

    assert not made(jobs[:1], study=["theory"])
    assert not made(jobs)  # goes on where the other one stopped
    assert made(jobs, fresh=True)
    assert made(jobs)  # nothing is left to do: the record stands
    assert made([*jobs, Job("theory", "three", {})], study=["theory"])  # this one is new
    assert not made([Job("theory", "one", {"seed": 1}), *jobs[1:]])
    assert made(jobs, fresh=True)
    assert not made(jobs, fresh=True, study=["theory"])
