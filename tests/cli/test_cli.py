"""The command, end to end, on files of every kind, good and bad."""

import inspect
import json
import os
import signal
import subprocess
import sys
from dataclasses import fields
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from tests.io.test_mutations import mutate

import declip
from declip import read_table, write_table
from declip.cli import main
from declip.demo import reported_assay
from declip.options import Reading, Restoring

FAST = ["--method", "tobit", "--rank", "2", "--alpha", "0.3", "--log", "--effort", "quick"]
KINDS = ["csv", "tsv", "xlsx", "parquet", "npz"]


@pytest.fixture(scope="module")
def cells():
    return reported_assay()


def run(capsys, *arguments):
    code = main([str(argument) for argument in arguments])
    out, err = capsys.readouterr()
    assert "Traceback" not in err
    return code, out, err


@pytest.mark.parametrize("kind", KINDS)
def test_a_file_of_any_kind_is_restored_in_its_kind(tmp_path, capsys, cells, kind):
    path = write_table(cells, tmp_path / f"assay.{kind}")
    code, out, _ = run(capsys, "restore", path, *FAST)
    assert code == 0
    restored = read_table(tmp_path / f"assay-restored.{kind}").intervals
    assert restored.n_censored == 0
    assert restored.shape == (60, 12)
    assert restored.row_labels.tolist() == cells.row_labels.tolist()
    assert "assay-restored" in out


def test_a_long_table_comes_back_long(tmp_path, capsys, cells):
    path = write_table(cells, tmp_path / "assay.csv", layout="long")
    assert run(capsys, "restore", path, *FAST)[0] == 0
    found = pl.read_csv(tmp_path / "assay-restored.csv", infer_schema=False)
    assert found.columns[:4] == ["row", "column", "value", "restored"]


def test_the_restored_file_equals_the_table_in_memory(tmp_path, capsys, cells):
    path = write_table(cells, tmp_path / "assay.csv")
    run(capsys, "restore", path, *FAST)
    options = {"log": True, "method": "tobit", "n_components": 2, "alpha": 0.3, "effort": "quick"}
    table = declip.restore(read_table(path).intervals, progress=False, n_jobs=-1, **options).table
    found = read_table(tmp_path / "assay-restored.csv").intervals
    # Restored cells have the digits that their bands bear, missing ones stay missing.
    missing = np.isnan(read_table(path).intervals.to_bounds()[0])
    np.testing.assert_allclose(found.to_bounds()[0], np.where(missing, np.nan, table), rtol=0.05)
    run(capsys, "restore", path, *FAST, "--fill", "-o", tmp_path / "filled.csv")
    filled = read_table(tmp_path / "filled.csv").intervals
    assert len(filled) == 720


def test_report_and_list_of_cells_are_written_when_asked_for(tmp_path, capsys, cells):
    path = write_table(cells, tmp_path / "assay.csv")
    names = [
        "--report",
        tmp_path / "r.html",
        "--flags",
        tmp_path / "f.csv",
        "-o",
        tmp_path / "o.csv",
    ]
    code, _, _ = run(capsys, "restore", path, *FAST, *names)
    assert code == 0
    assert "<svg" in (tmp_path / "r.html").read_text()
    assert pl.read_csv(tmp_path / "f.csv", infer_schema_length=None).height == 720
    assert sorted(p.name for p in tmp_path.iterdir()) == ["assay.csv", "f.csv", "o.csv", "r.html"]


def test_json_is_one_object_and_quiet_is_silent(tmp_path, capsys, cells):
    path = write_table(cells, tmp_path / "assay.csv")
    code, out, _ = run(capsys, "restore", path, *FAST, "--json")
    facts = json.loads(out)
    assert code == 0
    assert facts["cells"]["exact"] == 553
    assert facts["shape"] == [60, 12]
    assert facts["outputs"]["table"].endswith("assay-restored.csv")
    code, out, err = run(capsys, "restore", path, *FAST, "--quiet", "--overwrite")
    assert (code, out, err) == (0, "", "")


def test_a_file_is_not_replaced_without_the_flag(tmp_path, capsys, cells):
    path = write_table(cells, tmp_path / "assay.csv")
    (tmp_path / "o.csv").write_text("precious")
    code, out, err = run(capsys, "restore", path, "-o", tmp_path / "o.csv", *FAST)
    assert code == 1
    assert out == ""
    assert "the file exists" in err
    assert (tmp_path / "o.csv").read_text() == "precious"


def test_a_failure_leaves_no_output_at_all(tmp_path, capsys):
    path = tmp_path / "bad.csv"
    path.write_text("id,x,y\na,1,2\nb,oops,3\n")
    code, _, err = run(capsys, "restore", path, "--report", tmp_path / "r.html")
    assert code == 1
    assert err.startswith(f"declip: {path}, line 3, column 'x': 'oops' is neither a number, a")
    assert [p.name for p in tmp_path.iterdir()] == ["bad.csv"]


def test_limits_are_given_by_number_by_column_and_by_file(tmp_path, capsys):
    path = tmp_path / "t.csv"
    path.write_text("id,x,y\na,5,7\nb,1,2\nc,5,ND\nd,2,3\ne,3,1\n")
    (tmp_path / "limits.csv").write_text("column,floor,ceiling\ny,0.5,7\nx,,5\n")
    for options, clipped in (
        (["--ceiling", "x=5", "--floor", "y=0.5"], 3),
        (["--ceiling", "7", "--floor", "0.5"], 2),
        (["--limits", tmp_path / "limits.csv"], 4),
    ):
        code, out, _ = run(capsys, "check", path, "--json", *options)
        assert code == 0
        assert json.loads(out)["diagnosis"]["n_clipped"] == clipped


@pytest.mark.parametrize(
    ("arguments", "code", "says"),
    [
        (["restore", "no.csv"], 1, "no.csv: there is no such file"),
        (["restore", "no.doc"], 1, "the name must end in one of"),
        (["restore"], 2, "arguments are required: FILE"),
        (
            ["restore", "t.csv", "--ceiling", "high"],
            2,
            "--ceiling must be a number or COLUMN=NUMBER",
        ),
        (["restore", "t.csv", "--ceiling", "5", "--ceiling", "x=4"], 2, "takes one number"),
        (["restore", "t.csv", "--ceiling", "z=5"], 1, "--ceiling names column 'z'"),
        (["restore", "t.csv", "--method", "magic"], 2, "--method: invalid choice: 'magic'"),
        (["restore", "t.csv", "--rank", "99"], 1, "--rank must be"),
        (["restore", "t.csv", "--rank", "two"], 2, "'two' is not a whole number"),
        (["restore", "t.csv", "--time-limit", "-1"], 1, "--time-limit must be"),
        (["restore", "t.csv", "-o", "t.csv"], 2, "must be different files"),
        (["restore", "t.csv", "-o", "no/t.csv"], 1, "its folder does not exist"),
        (["restore", "t.csv", "--between", "0", "--between", "x=1"], 2, "--between takes LOW,HIGH"),
        (["restore", "t.csv", "--between", "x=0", "--between", "x=,9"], 2, "once for each column"),
        (["restore", "t.csv", "--between", "x=a"], 2, "--between must be LOW,HIGH"),
        (["restore", "t.csv", "--report", "r.txt"], 2, "--report must end in .html"),
        (["restore", "t.csv", "--flags", "f.npz"], 2, "--flags must end in"),
        (["restore", "t.csv", "--rows", "nobody"], 1, "there is no column 'nobody'"),
        (["restore", "t.csv", "--limits", "no.csv"], 1, "no.csv: there is no such file"),
        (["restore", "negative.csv", "--log"], 1, "log"),
        (["check", "empty.csv"], 1, "the file is empty"),
        (["frobnicate"], 2, "there is no command 'frobnicate'"),
        (["restore", "t.csv", "--nonsense"], 2, "unrecognized arguments: --nonsense"),
    ],
)
def test_a_wrong_call_is_one_line_and_an_exit_code(
    tmp_path, monkeypatch, capsys, arguments, code, says
):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "t.csv").write_text("id,x,y\na,1,2\nb,3,>4\nc,2,1\n")
    (tmp_path / "negative.csv").write_text("id,x,y\na,-1,2\nb,3,>4\nc,2,1\n")
    (tmp_path / "empty.csv").write_text("")
    before = sorted(p.name for p in tmp_path.iterdir())
    found, _, err = run(capsys, *arguments)
    assert found == code
    assert says in err
    *understood, last = err.splitlines()
    assert last.startswith("declip: ")
    assert not understood or understood[0].startswith("The file is read with")
    assert sorted(p.name for p in tmp_path.iterdir()) == before


def test_an_error_is_json_too_when_asked_for(tmp_path, capsys):
    code, out, _ = run(capsys, "check", tmp_path / "no.csv", "--json")
    assert code == 1
    assert "there is no such file" in json.loads(out)["error"]


def test_check_says_what_is_clipped_and_proposes_limits(tmp_path, capsys):
    rng = np.random.default_rng(0)
    values = np.minimum(rng.normal(size=(300, 4)), 1.0)
    path = write_table(values, tmp_path / "t.csv")
    code, out, _ = run(capsys, "check", path, "--json")
    assert code == 0
    assert json.loads(out)["proposed"]["ceiling"] == 1.0
    code, out, _ = run(capsys, "check", path)
    assert "300 rows and 4 columns" in out
    assert out.rstrip().endswith("--ceiling 1")


@pytest.mark.parametrize("asked", ["version", "--version"])
def test_version_is_that_of_the_package(capsys, asked):
    assert run(capsys, asked)[:2] == (0, f"declip {declip.__version__}\n")


@pytest.mark.parametrize("kind", [Reading, Restoring])
def test_every_option_reaches_the_call_that_it_is_for(kind):
    call = {Reading: declip.read_table, Restoring: declip.restore}[kind]
    names = {"rank": "n_components", "seed": "random_state", "guess": "fill", "mark": "marks"}
    names["missing_means"] = "missing"
    taken = inspect.signature(call).parameters
    assert {names.get(f.name, f.name) for f in fields(kind)} <= taken.keys()


def asked(words, at):
    """Return what a shell is told after a line of words."""
    command = Path(sys.executable).with_name("declip")
    line = {"_DECLIP_COMPLETE": "1", "COMP_WORDS": words, "COMP_CWORD": str(at)}
    done = subprocess.run([command], env=os.environ | line, capture_output=True, text=True)
    return done.stdout.split()


def test_the_command_is_installed_and_completes(tmp_path):
    command = Path(sys.executable).with_name("declip")
    out = subprocess.run([command, "version"], capture_output=True, text=True, cwd=tmp_path)
    assert out.returncode == 0
    assert asked("declip re", 1) == ["restore"]
    assert asked("declip restore t.csv --qu", 3) == ["--qualifier", "--quiet"]
    assert asked("declip restore t.csv --effort ", 4) == ["quick", "normal", "thorough"]


@pytest.mark.parametrize("line", ["--help", "restore --help", "completion"])
def test_help_and_completion_load_nothing_that_takes_long(line):
    code = f"import sys; from declip.cli import main; main({line.split()!r}); print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    loaded = {name.partition(".")[0] for name in done.stdout.splitlines()[-1].split()}
    assert not loaded & {"numpy", "polars", "scipy", "sklearn", "rich", "pydantic", "pandas"}


def test_help_has_groups_choices_and_examples(capsys):
    _, out, _ = run(capsys, "restore", "--help")
    for part in ("Limits that the file", "Which column is what", "{quick,normal,thorough}"):
        assert part in out
    assert "examples:\n  declip restore assay.csv" in out


def test_choices_of_the_command_are_those_of_the_library():
    from typing import get_args, get_type_hints

    from declip.io.presets import PRESETS
    from declip.restoration.candidates import METHODS
    from declip.restoration.settings import EFFORTS, ROUNDINGS
    from declip.scales import VALUE_SCALES

    hints = get_type_hints(Restoring)
    assert get_args(hints["method"]) == ("auto", *METHODS)
    assert get_args(hints["effort"]) == tuple(EFFORTS)
    assert get_args(hints["rounding"]) == ROUNDINGS
    assert get_args(hints["scale"]) == ("auto", *VALUE_SCALES)
    assert get_args(get_args(get_type_hints(Reading)["format"])[0]) == tuple(PRESETS)


@pytest.mark.parametrize(
    ("options", "arguments"),
    [
        (["--log", "x,y"], {"log": ["x", "y"]}),
        (["--log"], {"log": True}),
        (["--scale", "sqrt"], {"scale": "sqrt"}),
        (["--between", "0,9"], {"between": (0.0, 9.0)}),
        (["--between", "-1"], {"between": (-1.0, None)}),
        (["--between", "none"], {"between": None}),
        (["--between", "x=0,9", "--between", "y=,7"], {"between": ({"x": 0}, {"x": 9, "y": 7})}),
        (["--between", "y=-1"], {"between": ({"y": -1}, None)}),
        (["--seed", "7", "--coverage", "0.8"], {"random_state": 7, "coverage": 0.8}),
        (["--guess"], {"fill": "all"}),
    ],
)
def test_options_reach_the_library_as_its_arguments(
    tmp_path, capsys, monkeypatch, options, arguments
):
    given = {}

    def restore(X, **said):
        given.update(said)
        raise ValueError("enough")

    monkeypatch.setattr(declip, "restore", restore, raising=False)
    (tmp_path / "t.csv").write_text("id,x,y\na,1,2\nb,3,>4\nc,2,1\n")
    run(capsys, "restore", *options, tmp_path / "t.csv")
    assert {name: given[name] for name in arguments} == arguments


def test_a_pipe_that_closes_is_no_traceback(tmp_path):
    (tmp_path / "t.csv").write_text("id,x,y\na,1,2\nb,3,>4\nc,2,1\n")
    line = f"{sys.executable} -m declip check t.csv --json | true"
    done = subprocess.run(line, shell=True, capture_output=True, text=True, cwd=tmp_path)
    assert "Traceback" not in done.stderr


def test_an_interruption_leaves_nothing_and_has_its_own_code(tmp_path, capsys, monkeypatch):
    def interrupted(X, **options):
        raise KeyboardInterrupt

    monkeypatch.setattr(declip, "restore", interrupted, raising=False)
    (tmp_path / "t.csv").write_text("id,x,y\na,1,2\nb,3,>4\nc,2,1\n")
    code, out, err = run(capsys, "restore", tmp_path / "t.csv")
    assert (code, out) == (130, "")
    assert err.endswith("declip: interrupted; nothing was written\n")
    assert [p.name for p in tmp_path.iterdir()] == ["t.csv"]


def test_an_import_that_ctrl_c_breaks_is_an_interruption(tmp_path, capsys, monkeypatch):
    def half_imported(X, **options):
        try:
            signal.raise_signal(signal.SIGINT)
        except KeyboardInterrupt:
            raise AttributeError("module 'scipy' has no attribute '_lib'") from None

    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    monkeypatch.setattr(declip, "restore", half_imported, raising=False)
    (tmp_path / "t.csv").write_text("id,x,y\na,1,2\nb,3,>4\nc,2,1\n")
    code, _, err = run(capsys, "restore", tmp_path / "t.csv")
    assert signal.signal(signal.SIGINT, before) is signal.default_int_handler
    assert code == 130
    assert err.endswith("declip: interrupted; nothing was written\n")


def test_a_wrong_call_is_told_without_the_library_being_loaded():
    code = "import sys; from declip.cli import main; main(['--no']); print('numpy' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.stdout == "False\n"
    assert done.stderr.startswith("declip: ")


def test_warnings_of_the_work_become_notes(tmp_path, capsys):
    (tmp_path / "t.csv").write_text("id,x,y\na,1,2\nb,3,>4\nc,2,1\nd,4,3\n")
    code, out, err = run(capsys, "restore", tmp_path / "t.csv")
    assert code == 0
    assert "Warning" not in err
    assert "Traceback" not in out


def test_degenerate_tables_and_mutated_files_are_one_line_at_most(tmp_path, capsys):
    rng, path = np.random.default_rng(0), tmp_path / "t.csv"
    pool = ["1", "2", "<1", ">3", "NA", "1-2", "0", "-1", "1e10", "1e-8", "2.5", "7"]
    codes = []
    for k in range(40):
        n, m = rng.integers(1, 9), rng.integers(1, 6)
        lines = [",".join([f"r{i}", *rng.choice(pool, m)]) for i in range(n)]
        text = "\n".join([",".join(["id", *(f"c{j}" for j in range(m))]), *lines]).encode()
        path.write_bytes(text if k % 2 else mutate(text, rng))
        code, _, err = run(capsys, "check", path, "--json")
        assert err.count("\n") == code
        codes.append(code)
    assert set(codes) == {0, 1}


def test_missing_means_low_says_how_well_that_explains_the_table(tmp_path, capsys):
    rng = np.random.default_rng(0)
    table = rng.standard_normal((60, 1)) + 0.3 * rng.standard_normal((60, 5)) + 10
    table[table < 9.5] = np.nan
    path = write_table(table, tmp_path / "intensities.csv")
    code, out, err = run(capsys, "restore", path, "--missing-means", "low", "--effort", "quick")
    assert code == 0, err
    assert "taken as missing for their values" in " ".join((out + err).split())
    assert "missing: left empty" in out
    assert out.endswith("left so: --fill writes what they got.\n")
    code, out, _ = run(capsys, "check", path)
    assert "Missing cells follow low values" in out
    assert out.rstrip().endswith("--missing-means low --fill")
