"""declip summary and --imputations, end to end."""

import json

import numpy as np
import polars as pl
import pytest

from declip.cli import main

FAST = ["--method", "column", "--log"]


@pytest.fixture(scope="module")
def truth():
    rng = np.random.default_rng(0)
    return np.exp(rng.normal(size=(60, 1)) + 0.5 * rng.normal(size=(60, 3)))


@pytest.fixture
def wells(tmp_path, truth):
    """A file of wells at two sites, with values below two limits."""
    lines = ["well,site,lead,zinc,iron"]
    for i, row in enumerate(truth):
        limit = 0.5 if i % 2 else 0.8
        cells = [f"<{limit}" if value < limit else f"{value:.4f}" for value in row]
        lines.append(f"w{i},{'north' if i < 35 else 'south'},{','.join(cells)}")
    path = tmp_path / "wells.csv"
    path.write_text("\n".join(lines) + "\n")
    return path


def run(capsys, *arguments):
    code = main([str(argument) for argument in arguments])
    out, err = capsys.readouterr()
    assert "Traceback" not in err
    return code, out, err


@pytest.mark.parametrize("criterion", [0.3, 2.0])  # below the limits, and above
def test_shares_of_groups_hold_the_truth(capsys, wells, truth, criterion):
    code, out, _ = run(
        capsys, "summary", wells, "--by", "site", "--criterion", criterion, "--json", *FAST
    )
    assert code == 0
    lines = [x for x in json.loads(out)["summary"] if x["statistic"] == "share_above"]
    assert len(lines) == 6
    for line in lines:
        rows = slice(35) if line["group"] == "north" else slice(35, None)
        j = ["lead", "zinc", "iron"].index(line["column"])
        share = np.mean(truth[rows, j] > criterion)
        assert line["lower"] - 0.02 <= share <= line["upper"] + 0.02


@pytest.mark.parametrize("suffix", ["csv", "parquet", "xlsx"])
def test_the_list_is_written(capsys, wells, tmp_path, suffix):
    out = tmp_path / f"out.{suffix}"
    asked = ["--statistics", "mean,p90", "--imputations", 5, "-o", out]
    code, shown, _ = run(capsys, "summary", wells, *asked, "--ignore", "site", *FAST)
    assert code == 0
    assert "Intervals of 95% from 5 imputations" in shown
    if suffix == "csv":
        found = pl.read_csv(out)
        assert found["statistic"].to_list() == ["mean", "p90"] * 3
        assert found["kaplan_meier"].null_count() == 0
        assert (found["estimate"] == found["estimate"].round_sig_figs(6)).all()
    assert run(capsys, "summary", wells, *asked, *FAST)[0] == 1  # a file is in the way


@pytest.mark.parametrize(
    ("asked", "code", "message"),
    [
        (["--by", "plant"], 1, "there is no column 'plant'; there are 'well', 'site'"),
        (["--criterion", "5 ug/L"], 2, "--criterion must be a number in the units of the column"),
        (["--criterion", "1e9"], 1, "give it in the units of the column"),
        (["--criterion", "tin=3"], 1, "criterion names column 'tin'"),
        (["--criterion", "nan"], 1, "criterion must be a number in the units of its column"),
        (["--criterion", "lead=1,tin=3"], 1, "criterion names column 'tin'"),
        (["--statistics", "mode"], 1, "There is no statistic 'mode'"),
    ],
)
def test_what_cannot_be_asked_is_one_line(capsys, wells, asked, code, message):
    found, _, err = run(capsys, "summary", wells, "--ignore", "site", *FAST, *asked)
    assert found == code
    assert message in err
    assert len(err.strip().splitlines()) == 1


@pytest.mark.parametrize("asked", [["--criterion", "tin=3"], ["--statistics", "mode"]])
def test_what_cannot_be_asked_is_refused_before_anything_is_restored(
    capsys, wells, asked, monkeypatch
):
    monkeypatch.setattr("declip.options.Restoring.restore", lambda *_: pytest.fail("restored"))
    assert run(capsys, "summary", wells, "--ignore", "site", *FAST, *asked)[0] == 1


def test_too_few_rows_are_one_line(capsys, tmp_path):
    path = tmp_path / "two.csv"
    path.write_text("id,a,b\nx,1.5,2.5\ny,2.5,<1\n")
    code, _, err = run(capsys, "summary", path, *FAST)
    assert code == 1
    assert "at least 3 rows; the table has 2" in err


def test_imputations_are_written_as_mice_reads_them(capsys, wells, tmp_path):
    out = tmp_path / "restored.csv"
    asked = ["--ignore", "site", "--imputations", 4, "-o", out]
    assert run(capsys, "restore", wells, *asked, *FAST)[0] == 0
    long = pl.read_csv(tmp_path / "restored-imputations.csv")
    assert long.columns == [".imp", ".id", "lead", "zinc", "iron"]
    assert long[".imp"].to_list() == [k for k in range(5) for _ in range(60)]
    first = long.filter(pl.col(".imp") == 0)
    drawn = long.filter(pl.col(".imp") > 0)
    assert first["lead"].null_count() > 0
    assert drawn.null_count().sum_horizontal().item() == 0
    known = first["lead"].is_not_null()
    again = drawn.filter(pl.col(".imp") == 3)["lead"]
    assert again.filter(known).to_list() == first["lead"].drop_nulls().to_list()


def test_rows_of_one_name_have_ids_of_their_own(capsys, tmp_path):
    path, rng = tmp_path / "sites.csv", np.random.default_rng(0)
    values = np.maximum(rng.lognormal(size=(20, 3)), 0.5)
    names = ["B", *(f"A{i % 4}" for i in range(19))]
    lines = [f"{name},{a},{b},{c}" for name, (a, b, c) in zip(names, values, strict=True)]
    path.write_text("\n".join(["site,x,y,z", *lines]))
    assert run(capsys, "restore", path, "--floor", "0.5", "--imputations", 2, *FAST)[0] == 0
    long = pl.read_csv(tmp_path / "sites-restored-imputations.csv")
    assert long.filter(pl.col(".imp") == 0)[".id"].to_list()[:2] == ["B", "A0 / 1"]
    assert not long.select(".imp", ".id").is_duplicated().any()
