"""Claims about declip.datasets."""

import os
from pathlib import Path

import numpy as np
import pytest

from declip.datasets import (
    fetch_filmtrust,
    fetch_movielens_100k,
    load_assay,
    make_clipped_low_rank,
    split_cells,
)

SMALL = {"n_rows": 30, "n_cols": 40, "rank": 3, "random_state": 0}


@pytest.fixture(scope="module")
def paper_size():
    return make_clipped_low_rank(ceiling=7, random_state=0)


# Synthetic tables.


def test_integer_truth_has_whole_entries(paper_size):
    np.testing.assert_array_equal(paper_size.truth, np.rint(paper_size.truth))


def test_integer_truth_has_exactly_the_requested_rank(paper_size):
    assert np.linalg.matrix_rank(paper_size.truth) == paper_size.rank == 30


@pytest.mark.parametrize(
    ("ceiling", "share"), [(5, 0.68), (6, 0.51), (7, 0.34), (8, 0.20), (9, 0.10)]
)
def test_share_above_the_ceiling_is_near_the_reference(paper_size, ceiling, share):
    # Seeds 0 to 4 stay within .026 of the reference shares; they spread by .012 among themselves.
    assert np.mean(paper_size.truth > ceiling) == pytest.approx(share, abs=0.03)


def test_rates_count_all_cells_beyond_and_at_the_limit(paper_size):
    assert paper_size.clip_rate == np.mean(paper_size.truth > 7)
    assert paper_size.at_limit_rate == np.mean(paper_size.truth >= 7)


def test_continuous_truth_has_exactly_the_requested_rank():
    data = make_clipped_low_rank(**SMALL, integer=False)
    assert np.linalg.matrix_rank(data.truth) == 3


def test_continuous_truth_is_not_integer():
    data = make_clipped_low_rank(**SMALL, integer=False)
    assert not np.any(data.truth == np.rint(data.truth))


def test_continuous_truth_approximates_entries_between_1_and_high():
    # A rank-3 approximation of independent entries stays near their mean, (1 + 15) / 2 = 8; the
    # mean of 1200 entries has a standard deviation of 4.3 / sqrt(1200) = .12.
    data = make_clipped_low_rank(**SMALL, integer=False)
    assert data.truth.mean() == pytest.approx(8, abs=0.5)


def test_same_seed_gives_same_data():
    a = make_clipped_low_rank(**SMALL, ceiling=9, noise=0.5)
    b = make_clipped_low_rank(**SMALL, ceiling=9, noise=0.5)
    np.testing.assert_array_equal(a.truth, b.truth)
    np.testing.assert_array_equal(a.table, b.table)


def test_other_seed_gives_other_data():
    a = make_clipped_low_rank(**SMALL)
    b = make_clipped_low_rank(**{**SMALL, "random_state": 1})
    assert np.any(a.truth != b.truth)


def test_generator_moves_on_between_calls():
    rng = np.random.default_rng(0)
    a = make_clipped_low_rank(10, 12, 2, random_state=rng)
    b = make_clipped_low_rank(10, 12, 2, random_state=rng)
    assert np.any(a.truth != b.truth)


def test_data_do_not_depend_on_the_number_of_threads():
    from threadpoolctl import threadpool_limits

    many = make_clipped_low_rank(200, 300, 10, integer=False, random_state=0)
    with threadpool_limits(1):
        one = make_clipped_low_rank(200, 300, 10, integer=False, random_state=0)
    np.testing.assert_array_equal(many.truth, one.truth)


@pytest.mark.parametrize("change", [{"ceiling": 6}, {"floor": 4}, {"noise": 1.0}])
def test_truth_and_observed_cells_do_not_depend_on_limits_and_noise(change):
    plain, changed = make_clipped_low_rank(**SMALL), make_clipped_low_rank(**SMALL, **change)
    np.testing.assert_array_equal(plain.truth, changed.truth)
    np.testing.assert_array_equal(plain.observed, changed.observed)


def test_a_larger_share_adds_cells_and_keeps_those_seen_before():
    few = make_clipped_low_rank(**SMALL, observed=0.3).observed
    many = make_clipped_low_rank(**SMALL, observed=0.6).observed
    assert np.all(many[few])


def test_table_is_nan_exactly_where_unobserved(paper_size):
    np.testing.assert_array_equal(np.isnan(paper_size.table), ~paper_size.observed)


def test_observed_share_is_exact(paper_size):
    assert paper_size.observed.sum() == 0.8 * 500 * 800


def test_all_cells_are_observed_at_share_one():
    assert make_clipped_low_rank(**SMALL, observed=1.0).observed.all()


def test_clipped_cells_are_observed_cells_whose_value_changed(paper_size):
    changed = paper_size.observed & (paper_size.table != paper_size.truth)
    np.testing.assert_array_equal(paper_size.clipped, changed)


def test_at_limit_cells_stand_at_the_ceiling_in_the_table(paper_size):
    np.testing.assert_array_equal(paper_size.at_limit, paper_size.table == 7)


def test_ties_are_at_the_limit_but_not_clipped(paper_size):
    ties = paper_size.observed & (paper_size.truth == 7)
    assert ties.any()
    np.testing.assert_array_equal(paper_size.at_limit & ~paper_size.clipped, ties)


def test_without_limits_nothing_is_clipped():
    data = make_clipped_low_rank(**SMALL)
    assert not data.at_limit.any()
    assert data.clip_rate == data.at_limit_rate == 0
    assert data.ceiling is None
    assert data.floor is None


def test_floor_hides_what_lies_below_it():
    data = make_clipped_low_rank(**SMALL, floor=6)
    np.testing.assert_array_equal(data.clipped, data.observed & (data.truth < 6))
    np.testing.assert_array_equal(data.at_limit, data.table == 6)


def test_floor_and_ceiling_bound_the_table():
    data = make_clipped_low_rank(**SMALL, floor=6, ceiling=9, observed=1.0)
    np.testing.assert_array_equal(data.table, np.clip(data.truth, 6, 9))


@pytest.mark.parametrize("shape", [(40,), (1, 40), (30, 1), (30, 40)])
def test_limits_vary_by_column_row_or_cell(shape):
    ceiling = np.random.default_rng(0).uniform(6, 10, shape)
    data = make_clipped_low_rank(**SMALL, ceiling=ceiling, observed=1.0)
    np.testing.assert_array_equal(data.table, np.minimum(data.truth, ceiling))
    np.testing.assert_array_equal(data.ceiling, ceiling)


def test_infinite_entries_of_a_ceiling_are_no_limit():
    ceiling = np.where(np.arange(40) < 20, 7.0, np.inf)
    data = make_clipped_low_rank(**SMALL, ceiling=ceiling)
    assert data.clipped[:, :20].any()
    assert not data.at_limit[:, 20:].any()


def test_noise_has_the_requested_standard_deviation():
    data = make_clipped_low_rank(100, 200, 3, noise=0.5, observed=1.0, random_state=0)
    # The standard error of a standard deviation from 20,000 draws is .5 / sqrt(40,000) = .0025.
    assert np.std(data.table - data.truth) == pytest.approx(0.5, abs=4 * 0.0025)


def test_noisy_values_are_clipped_after_the_noise():
    data = make_clipped_low_rank(**SMALL, noise=1.0, ceiling=8)
    assert np.nanmax(data.table) == 8
    np.testing.assert_array_equal(data.clipped, data.table == 8)


@pytest.mark.parametrize(
    ("request_", "message"),
    [
        ({"rank": 31}, "rank must be in 1..30"),
        ({"rank": 0}, "rank must be in 1..30"),
        ({"high": 0}, "high must be at least 1"),
        ({"noise": -1}, "noise is a standard deviation"),
        ({"observed": 0}, "observed is a share"),
        ({"observed": 1.5}, "observed is a share"),
        ({"ceiling": np.zeros(30)}, r"ceiling must be a scalar.*\(30,\)"),
        ({"floor": 5, "ceiling": 5}, r"floor must lie below ceiling: cell \(0, 0\)"),
        ({"ceiling": np.nan}, "floor must lie below ceiling"),
        ({"rank": 30, "high": 1}, "no matrix of rank 30.*integer=False"),
    ],
)
def test_impossible_requests_are_refused(request_, message):
    with pytest.raises(ValueError, match=message):
        make_clipped_low_rank(**{**SMALL, **request_})


# Splits.


def test_split_parts_have_the_requested_shares():
    assert [part.sum() for part in split_cells((50, 80), random_state=0)] == [3200, 400, 400]


def test_split_parts_are_disjoint_and_make_up_the_cells():
    cells = np.random.default_rng(0).random((50, 80)) < 0.7
    parts = split_cells(cells, random_state=0)
    np.testing.assert_array_equal(np.sum(parts, axis=0), cells)


def test_split_is_the_same_for_the_same_seed():
    np.testing.assert_array_equal(
        split_cells((9, 9), random_state=3), split_cells((9, 9), random_state=3)
    )


@pytest.mark.parametrize("ratios", [(0.8, 0.1), (1.2, -0.2)])
def test_split_refuses_ratios_that_are_no_shares(ratios):
    with pytest.raises(ValueError, match="sum to one"):
        split_cells((4, 4), ratios)


def test_split_refuses_a_table_of_values():
    with pytest.raises(ValueError, match="boolean mask or a shape"):
        split_cells(np.ones((4, 4)))


# Ratings.


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "ml-100k").mkdir()
    (tmp_path / "ml-100k" / "u.data").write_text("7\t20\t3\t881\n2\t10\t5\t882\n7\t10\t1\t883\n")
    (tmp_path / "filmtrust").mkdir()
    (tmp_path / "filmtrust" / "ratings.txt").write_text("1 5 2\n1 3 3.5\n4 3 4\n1 5 0.5\n")
    return tmp_path


@pytest.fixture
def no_folder_named(monkeypatch):
    monkeypatch.delenv("DECLIP_DATA", raising=False)


def test_users_and_items_are_numbered_in_the_order_of_their_ids(folder):
    ratings = fetch_movielens_100k(folder)
    np.testing.assert_array_equal(ratings.user_ids, [2, 7])
    np.testing.assert_array_equal(ratings.item_ids, [10, 20])
    np.testing.assert_array_equal(ratings.to_sparse().toarray(), [[5, 0], [1, 3]])


def test_environment_variable_names_the_folder(folder, monkeypatch):
    monkeypatch.setenv("DECLIP_DATA", str(folder))
    assert fetch_movielens_100k().values.size == 3


def test_argument_goes_before_environment_variable(folder, monkeypatch):
    monkeypatch.setenv("DECLIP_DATA", str(folder / "elsewhere"))
    assert fetch_movielens_100k(folder).values.size == 3


def test_filmtrust_is_doubled_to_whole_numbers(folder):
    ratings = fetch_filmtrust(folder)
    np.testing.assert_array_equal(ratings.values, [7, 8, 1])
    assert ratings.ceiling == 8


def test_filmtrust_keeps_half_stars_on_request(folder):
    ratings = fetch_filmtrust(folder, doubled=False)
    np.testing.assert_array_equal(ratings.values, [3.5, 4, 0.5])
    assert ratings.ceiling == 4


def test_last_of_duplicated_ratings_counts(folder):
    ratings = fetch_filmtrust(folder)
    assert ratings.n_duplicates == 1
    np.testing.assert_array_equal(ratings.to_sparse().toarray(), [[7, 1], [8, 0]])


@pytest.mark.parametrize(
    ("fetch", "file"),
    [(fetch_movielens_100k, "ml-100k/u.data"), (fetch_filmtrust, "filmtrust/ratings.txt")],
)
def test_missing_file_error_names_layout_and_url(fetch, file, tmp_path):
    with pytest.raises(FileNotFoundError, match=rf"DECLIP_DATA must hold {file}.*https://.*\.zip"):
        fetch(tmp_path)


def test_failed_download_error_names_variable_layout_and_url(no_folder_named, monkeypatch):
    def unreachable(*args, **kwargs):
        raise OSError("no route to host")

    monkeypatch.setattr("pooch.retrieve", unreachable)
    expected = r"ml-100k\.zip \(no route to host\).*ml-100k/u\.data.*DECLIP_DATA"
    with pytest.raises(OSError, match=expected):
        fetch_movielens_100k()


def test_downloaded_file_with_other_content_is_refused(no_folder_named, monkeypatch, folder):
    files = [str(folder / "filmtrust" / "ratings.txt")]
    monkeypatch.setattr("pooch.retrieve", lambda *args, **kwargs: files)
    with pytest.raises(OSError, match="expected md5 4a463fd55c8741491e876fbd2865ed84"):
        fetch_filmtrust()


def test_archive_without_the_file_is_refused(no_folder_named, monkeypatch):
    monkeypatch.setattr("pooch.retrieve", lambda *args, **kwargs: [])
    with pytest.raises(OSError, match="found no such file"):
        fetch_filmtrust()


def needs(file):
    """Skip unless the real file is there; tests do not download."""
    pooch = pytest.importorskip("pooch")
    home = os.environ.get("DECLIP_DATA")
    name = Path(file).name
    there = (Path(home) / file).is_file() if home else any(pooch.os_cache("declip").rglob(name))
    return pytest.mark.skipif(
        not there, reason=f"needs {file} in the folder DECLIP_DATA or in the download cache"
    )


@needs("ml-100k/u.data")
def test_movielens_100k_has_its_published_size():
    ratings = fetch_movielens_100k()
    assert ratings.shape == (943, 1682)
    assert ratings.values.size == 100_000
    assert ratings.n_duplicates == 0
    assert set(ratings.values) == {1, 2, 3, 4, 5}


@needs("filmtrust/ratings.txt")
def test_filmtrust_has_its_published_size_without_duplicates():
    ratings = fetch_filmtrust()
    assert ratings.shape == (1508, 2071)
    assert ratings.values.size == 35_494
    assert ratings.n_duplicates == 3
    assert set(ratings.values) == set(range(1, 9))


# The simulated assay.


@pytest.fixture(scope="module")
def assay():
    return load_assay()


def test_assay_is_the_same_at_every_call(assay):
    np.testing.assert_array_equal(assay.table, load_assay().table)


def test_assay_is_labelled(assay):
    assert assay.table.shape == (60, 12)
    assert len(set(assay.sample_ids)) == 60
    assert len(set(assay.analyte_names)) == 12


def test_assay_has_the_stated_shares(assay):
    # Each share is met to within half a sample per analyte, 1 / 120.
    assert np.mean(assay.truth < assay.floor) == pytest.approx(0.12, abs=1 / 120)
    assert np.mean(assay.truth > assay.ceiling) == pytest.approx(0.08, abs=1 / 120)
    assert np.mean(np.isnan(assay.table)) == pytest.approx(0.05, abs=1 / 720)


def test_assay_table_is_the_truth_within_its_limits(assay):
    seen = ~np.isnan(assay.table)
    within = np.clip(assay.truth, assay.floor, assay.ceiling)
    np.testing.assert_array_equal(assay.table[seen], within[seen])


def test_assay_logarithms_are_rank_three_up_to_the_noise(assay):
    residual = np.linalg.svd(np.log(assay.truth), compute_uv=False)[3:]
    # Noise of .15 outside a rank-3 fit: .15 sqrt((60 - 3) (12 - 3)) = 3.4, give or take 10 %.
    assert np.linalg.norm(residual) == pytest.approx(3.4, rel=0.1)
