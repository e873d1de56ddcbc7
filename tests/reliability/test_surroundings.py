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


def run(*arguments, out=subprocess.PIPE):
    command = [sys.executable, "-m", "declip", *map(str, arguments)]
    return subprocess.run(
        command, stdout=out, stderr=subprocess.PIPE, text=True, timeout=300, check=False
    )


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no full device")
def test_a_full_disk_is_told_in_one_line(file):
    with open("/dev/full", "w") as full:
        done = run("check", file, out=full)
    assert done.returncode == 1
    assert done.stderr == "declip: [Errno 28] No space left on device\n"


def test_a_folder_that_cannot_be_written_is_told_in_one_line(file):
    done = run("restore", file, "--method", "column", "-o", "/proc/restored.csv")
    assert done.returncode == 1
    *understood, error = done.stderr.splitlines()
    assert " ".join(understood).startswith("The file is read with one line for each row.")
    assert error.startswith("declip: /proc/")
    assert "cannot be written" in error


def test_a_closed_pipe_is_no_traceback(file):
    out, into = os.pipe()
    os.close(out)
    with os.fdopen(into, "w") as closed:
        done = run("check", file, out=closed)
    assert (done.returncode, done.stderr) == (1, "")
