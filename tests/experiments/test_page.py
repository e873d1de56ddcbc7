"""The page is written from whatever has been run."""

import pytest
from experiments.paper import facts, page, pictures, summary, tables
from experiments.paper.runner import Job, run_and_keep
from experiments.paper.summary import Mean


def test_the_page_of_nothing_says_so(tmp_path):
    text = page.write(tmp_path / "results" / "quick-paper", quick=True).read_text()
    assert "| all | 0 of " in text
    assert "$" not in text


def test_the_page_shows_the_illustration_once_it_was_run(tmp_path):
    (job,) = (job for job in pictures.jobs(True) if job.name == "illustration")
    run_and_keep(job, tmp_path)
    written = page.write(tmp_path, quick=True)
    assert "| pictures | 1 of 3 |" in written.read_text()
    assert (tmp_path / "figures" / "illustration.png").stat().st_size > 1000


def test_the_runs_of_bayes_are_found():
    scores = summary.beyond_scores([])
    assert {key[0] for key in scores} == {summary.SAMPLED}
    assert {tuple(key[1:]) for key in scores} == set(summary.TASKS)
    assert all(x["seeds"] == 5 for x in scores.values())


def test_runs_that_are_not_there_are_expected_to_take_what_those_of_their_kind_did():
    def run(method, seconds):
        return {"settings": {"method": method}, "seconds": {"cpu": seconds}}

    jobs = [Job("x", str(i), {"method": method}) for i, method in enumerate("aaabbc")]
    runs = [run("a", 2.0), run("a", 4.0), run("b", 9.0)]
    # two of a, one of b, and a third a, a second b, and a c, of which nothing is known
    assert summary.expected_seconds(jobs, runs) == 6 + 9 + 3 + 9 + 5


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


def rating_run(seed, points, method="Fro-CMC"):
    settings = {"data": "FilmTrust", "task": 1, "seed": seed, "method": method}
    names = ("k", "alpha", "max_iter", "validation", "test")
    grid = [dict(zip(names, point, strict=True)) for point in points]
    return {"settings": settings, "grid": grid, "chosen": grid[0]}


def test_the_best_setting_for_the_test_cells_is_one_that_every_split_was_given():
    results = [
        rating_run(0, [(24, 0.1, 25, 0.3, 0.30), (28, 0.1, 25, 0.3, 0.40)]),
        rating_run(1, [(24, 0.1, 25, 0.3, 0.36), (28, 0.1, 25, 0.3, 0.10)]),
        rating_run(2, [(24, 0.1, 25, 0.3, 0.33), (32, 0.1, 25, 0.3, 0.90)]),
    ]
    assert facts.fro_at_best(results, "Fro-CMC") == ".330 / - / - / -"


def test_falls_from_100_to_500_sweeps_are_counted_for_the_longest_fit():
    falls = [(24, 0.1, 100, 0.3, 0), (28, 0.1, 100, 0.4, 0), (28, 0.1, 500, 0.35, 0)]
    rises = [(24, 0.1, 100, 0.3, 0), (28, 0.1, 100, 0.2, 0), (24, 0.1, 500, 0.31, 0)]
    results = [rating_run(0, falls), rating_run(1, rises), rating_run(2, falls, "DTr-CMC")]
    assert facts.fro_500(results) == "falls in 1 of 2 runs"


def pair(alpha, beta, validation, all_cells, **more):
    point = {"alpha": alpha, "alpha_clipped": beta, "validation": validation}
    return {**point, "all_cells": all_cells, "converged": True, **more}


PAIRS = [
    pair(0.0, 0.0, 0.01, 0.01),  # no penalty on X: not a fit
    pair(0.2, 0.0, 0.30, 0.50),
    pair(0.4, 0.0, 0.20, 0.60),
    pair(0.2, 0.2, 0.05, 0.05, screened=True),  # not carried to the end
    pair(0.2, 0.4, 0.25, 0.40),
    pair(0.4, 0.4, 0.24, 0.45),
]


def test_the_best_pairs_are_of_fits_that_were_carried_to_the_end():
    one, two = summary.best_pairs(PAIRS)
    assert (one["alpha"], two["alpha"]) == (0.4, 0.4)
    one, two = summary.best_pairs(PAIRS, "all_cells")
    assert (one["alpha"], two["alpha"]) == (0.2, 0.2)


def test_what_the_second_norm_adds_is_said_by_validation_and_by_the_truth():
    run = {"settings": {"C": 7, "seed": 0, "what": "grid"}, "share_above": 0.3, "grid": PAIRS}
    says = facts.second_norm([run])
    assert "preferred two norms in 0 of 1 tables" in says
    assert "better in 1 of 1, at 0.800 to 0.80 times" in says
    assert "| 7 | 0.30 | 0.6 | 0.45 | 0.5 | 0.4 | 0 of 1 |" in tables.second_norm([run])


def test_figures_of_fits_that_were_cut_off_are_marked():
    def run(seed, converged):
        settings = {"generator": "rounded", "C": 8, "method": "Tr-MCi", "seed": seed}
        chosen = {"all_cells": 0.5, "unclipped_test_cells": 0.5, "converged": converged}
        shares = {"share_above": 0.2, "share_at_or_above": 0.3}
        return {"settings": settings, "chosen": chosen, **shares}

    assert "| 0.5 (0)* |" in tables.sweep([run(0, True), run(1, False)], "rounded")
    assert "*" not in tables.sweep([run(0, True), run(1, True)], "rounded")


def test_steps_of_dtr_are_means_over_the_splits():
    results = [rating_run(seed, [(1, 1, n, 0, 0)], "DTr-CMC") for seed, n in enumerate((20, 40))]
    assert facts.dtr_stops(results) == "chosen in the mean 30 steps (FilmTrust, task 1)"


def test_marks_that_are_missed_beyond_the_paper_are_named(monkeypatch):
    scores = {"F1": (0.5, 0.01), "AP": (0.6, 0.01), "seeds": 5}
    found = {("BayesCMC", "FilmTrust", 1): scores}
    monkeypatch.setattr(summary, "beyond_scores", lambda _: found)
    said = facts.scores_short({"faithful": [], "beyond": []})
    assert said == "F1 of BayesCMC, FilmTrust, task 1: 0.5000, by 0.5"
