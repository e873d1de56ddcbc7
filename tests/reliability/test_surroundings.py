"""The command in bad surroundings: one clear line each."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

TABLE = "id,x,y\na,1,2\nb,3,>4\nc,2,1\nd,1,3\n"


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "table.csv"
    path.write_text(TABLE)
    return path


def run(*arguments, out=subprocess.PIPE, **how):
    command = [sys.executable, "-m", "declip", *map(str, arguments)]
    return subprocess.run(
        command, stdout=out, stderr=subprocess.PIPE, text=True, timeout=300, check=False, **how
    )


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no full device")
def test_a_full_disk_is_told_in_one_line(file):
    with open("/dev/full", "w") as full:
        done = run("check", file, out=full)
    assert done.returncode == 1
    assert done.stderr == "declip: [Errno 28] No space left on device\n"


def test_a_folder_that_cannot_be_written_is_told_in_one_line(file, capsys):
    from declip.cli import main

    assert main(["restore", str(file), "--method", "column", "-o", "/proc/restored.csv"]) == 1
    *understood, error = capsys.readouterr().err.splitlines()
    assert " ".join(understood).startswith("The file is read with one line for each row.")
    assert error.startswith("declip: /proc/")
    assert "cannot be written" in error


def test_a_closed_pipe_is_no_traceback(file):
    out, into = os.pipe()
    os.close(out)
    with os.fdopen(into, "w") as closed:
        done = run("check", file, out=closed)
    assert (done.returncode, done.stderr) == (1, "")


def test_a_disk_that_fills_up_is_told_with_the_file_that_did_not_fit(file):
    resource = pytest.importorskip("resource")
    asked = ["--method", "column", "--quiet", "-o", file.with_name("new.csv")]
    report = file.with_name("report.html")

    def small():
        resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))

    done = run("restore", file, *asked, "--report", report, preexec_fn=small)
    assert (done.returncode, done.stderr) == (
        1,
        f"declip: {report}: cannot be written: File too large\n",
    )
    assert [path.name for path in file.parent.iterdir()] == ["table.csv"]


@pytest.mark.parametrize(
    "surroundings",
    [
        {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"},
        pytest.param({"PYTHONIOENCODING": "ascii"}, marks=pytest.mark.slow),
        pytest.param({"LC_ALL": "xx_XX.nothing"}, marks=pytest.mark.slow),
    ],
)
def test_an_odd_locale_without_a_home_changes_no_result(file, surroundings):
    path = file.with_name("umlaut.csv")
    path.write_text(TABLE.replace("x,y", "größe,höhe"), encoding="utf-8")
    env = {k: v for k, v in os.environ.items() if k not in ("HOME", "XDG_CACHE_HOME")}
    out = path.with_name("new.csv")
    asked = ["--method", "column", "-o", out]
    done = run("restore", path, *asked, env=env | surroundings, encoding="utf-8")
    assert done.returncode == 0
    assert "Error" not in done.stderr
    assert out.read_text(encoding="utf-8").splitlines()[0] == "id,größe,höhe"
