"""The page is written from whatever has been run."""

import pytest
from experiments.paper import page, pictures, summary, tables
from experiments.paper.runner import run_one
from experiments.paper.summary import Mean


def test_the_page_of_nothing_says_so(tmp_path):
    text = page.write(tmp_path / "results" / "quick-paper", quick=True).read_text()
    assert "| all | 0 of " in text
    assert "$" not in text


def test_the_page_shows_the_illustration_once_it_was_run(tmp_path):
    (job,) = (job for job in pictures.jobs(True) if job.name == "illustration")
    run_one(job, tmp_path)
    written = page.write(tmp_path, quick=True)
    assert "| pictures | 1 of 3 |" in written.read_text()
    assert (tmp_path / "figures" / "illustration.png").stat().st_size > 1000


def test_means_are_over_the_seeds_of_equal_settings():
    results = [
        {"settings": {"C": C, "seed": seed}, "x": C + seed} for C in (5, 6) for seed in (0, 2)
    ]
    means = summary.averaged(results, ("C",), lambda r: r["x"])
    assert means == {(5,): Mean(6.0, 1.0, 2), (6,): Mean(7.0, 1.0, 2)}


def test_calling_every_cell_high_counts_each_split_once():
    def result(method, seed):
        settings = {"data": "toy", "task": 1, "seed": seed, "method": method}
        return {"settings": settings, "all_positive_f1": 0.4 + 0.1 * seed}

    results = [result("Fro-CMC", 0), result("Fro-MC", 0), result("Fro-CMC", 1)]
    assert summary.all_positive(results)["toy", 1].value == pytest.approx(0.45)


@pytest.mark.parametrize(
    ("values", "reached"), [((0.3, 0.41), True), ((0.29, 0.41), False), ((0.3, None), None)]
)
def test_a_mark_is_reached_when_every_number_is(values, reached):
    means = [Mean.of([] if x is None else [x]) for x in values]
    assert tables.at_least("what", (0.3, 0.4), means)[-1] is reached
