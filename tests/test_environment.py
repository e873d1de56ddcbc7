"""What a result was made with."""

import os
import platform
import re

import numpy as np

import declip
from declip import environment


def test_tells_date_machine_and_versions():
    found = environment.environment()
    assert re.fullmatch(r"\d{4}-\d\d-\d\d", found["date"])
    assert f"{os.cpu_count()} cores" in found["machine"]
    assert found["versions"]["python"] == platform.python_version()
    assert found["versions"]["declip"] == declip.__version__
    assert found["versions"]["numpy"] == np.__version__


def test_a_package_that_is_not_there_is_left_out():
    assert "no-such-package" not in environment.environment(["no-such-package"])["versions"]


def test_a_machine_without_cpuinfo_is_named_by_its_kind(monkeypatch, tmp_path):
    monkeypatch.setattr(environment, "_CPUINFO", tmp_path / "none")
    assert environment.environment()["machine"].startswith(platform.machine())


def test_show_versions_prints_a_line_each(capsys):
    declip.show_versions()
    lines = dict(line.split(": ", 1) for line in capsys.readouterr().out.splitlines())
    assert list(lines)[:3] == ["system", "machine", "python"]
    assert lines["declip"] == declip.__version__


def test_a_result_is_told_in_one_line():
    found = {"date": "2020-01-31", "machine": "a box", "versions": {"declip": "0.1", "numpy": "2"}}
    assert environment.in_words(found) == "2020-01-31, a box; declip 0.1, numpy 2"
