"""restore with cells that are missing because their values were low."""

import numpy as np
import pytest
from scipy.special import ndtr

import declip
from declip import BayesCMC, soft_reclip_test

QUICK = {"effort": "quick", "progress": False}


@pytest.fixture(scope="module")
def intensities():
    rng = np.random.default_rng(0)
    truth = rng.standard_normal((100, 2)) @ rng.standard_normal((2, 8)) + 20
    truth += 0.3 * rng.standard_normal((100, 8))
    limit = np.quantile(truth, 0.35, axis=0)
    seen = rng.random(truth.shape) < 0.97 * ndtr((truth - limit) / 0.2)
    return truth, np.where(seen, truth, np.nan)


@pytest.fixture(scope="module")
def restored(intensities):
    return declip.restore(intensities[1], missing="low", **QUICK)


def error(found, truth, table):
    cells = np.isnan(table) & ~np.isnan(found)
    return np.sqrt(np.mean((found - truth)[cells] ** 2))


def test_low_cells_are_filled_below_and_the_page_says_how_well(intensities, restored):
    truth, table = intensities
    random = declip.restore(table, **QUICK)
    assert error(restored.table, truth, table) < 0.7 * error(random.table, truth, table)
    assert restored.chosen["method"] == "bayes"
    [line] = [w for w in restored.warnings if "taken as missing for their values" in w]
    assert "8 columns as low" in line
    assert "values hidden by the fitted curve" in line
    assert line in str(restored).replace("\n", " ") or line[:60] in str(restored)


def test_bands_of_low_cells_hold_the_truth(intensities, restored):
    truth, table = intensities
    cells = np.isnan(table) & ~np.isnan(restored.table)
    inside = (restored.lower <= truth) & (truth <= restored.upper)
    assert 0.8 < inside[cells].mean() < 0.99  # 290 cells, not independent


def test_rows_never_seen_stay_empty_unless_asked(intensities):
    _, table = intensities
    table = np.vstack([table, np.full((1, 8), np.nan)])
    assert np.isnan(declip.restore(table, missing="low", **QUICK).table[-1]).all()
    asked = declip.restore(table, missing="low", fill="all", **QUICK).table
    assert np.isfinite(asked[-1]).all()
    # of a row of which nothing was seen, the model still knows that all was too low
    assert asked[-1].mean() < np.nanmean(table)


def test_auto_leaves_random_tables_as_they_are_and_says_so(intensities):
    truth, _ = intensities
    table = np.where(np.random.default_rng(1).random(truth.shape) < 0.2, np.nan, truth)
    auto, random = (declip.restore(table, missing=m, **QUICK) for m in ("auto", "random"))
    np.testing.assert_array_equal(auto.table, random.table)
    assert auto.warnings[0].startswith('missing="auto" took "random"')


def test_other_methods_are_refused(intensities):
    with pytest.raises(ValueError, match='goes with method="bayes"'):
        declip.restore(intensities[1], missing="low", method="tobit", **QUICK)


def test_the_soft_reclip_test_hides_low_values_and_sees_the_gain(intensities):
    _, table = intensities
    model = BayesCMC(missing="low", n_samples=60, burn_in=60, chains=1, random_state=0)
    found = soft_reclip_test(table, model)
    assert len(found) > 50
    assert np.array_equal(found.truth, table[found.rows, found.cols])
    shown = np.nanmedian(table, axis=0)[found.cols]
    assert np.mean(found.truth < shown) > 0.9
    assert found.error < 0.8 * found.error_at_random
    assert found.half_width(0.9) >= 1.64


def test_a_method_that_nobody_asked_for_is_not_said_to_be_asked_for(restored):
    assert restored.chosen["why"].startswith("It is the only one that knows of cells")


def test_tables_drawn_from_an_anndata_are_frames_with_its_labels(intensities):
    ad, pd = pytest.importorskip("anndata"), pytest.importorskip("pandas")
    genes = pd.DataFrame(index=[f"g{j}" for j in range(8)])
    adata = ad.AnnData(intensities[1], var=genes)
    (table,) = declip.restore(adata, method="column", **QUICK).sample(1)
    assert table.columns.tolist() == genes.index.tolist()
