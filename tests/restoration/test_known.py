"""restore with features, groups, weights and errors: used where they help, and said so."""

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose

import declip


@pytest.fixture(scope="module")
def plates():
    """150 rows on 6 plates that shift every column, clipped at limits of the plates."""
    rng = np.random.default_rng(0)
    n, m = 150, 6
    plate = rng.integers(0, 6, n)
    truth = rng.standard_normal((n, 2)) @ rng.standard_normal((2, m))
    truth += 0.4 * rng.standard_normal((n, m)) + 1.5 * rng.standard_normal((6, m))[plate]
    limit = np.quantile(truth, 0.8, axis=0) + 0.2 * rng.standard_normal((6, m))[plate]
    return plate, truth, limit


def rmse(r, truth, at):
    return float(np.sqrt(np.mean((np.asarray(r.table) - truth)[at] ** 2)))


def test_groups_that_help_count_and_the_result_says_so(plates, tmp_path):
    plate, truth, limit = plates
    seen, at = np.minimum(truth, limit), truth > limit
    names = [f"plate {p}" for p in plate]
    r = declip.restore(seen, limit, groups=names, effort="quick")
    plain = declip.restore(seen, limit, effort="quick")
    assert rmse(r, truth, at) < rmse(plain, truth, at)
    assert r.chosen["weights"]["bayes+known"] > 0.3
    assert "With groups, a cell that was held out is" in " ".join(r.warnings)
    assert "With groups" in str(r)
    twin = declip.load(r.save(tmp_path / "r.npz"))
    new = {"ceiling": limit[:4], "groups": names[:4]}
    assert_allclose(twin.transform(seen[:4], **new), r.transform(seen[:4], **new))


def test_features_of_chance_do_not_count_for_much(plates):
    _, truth, limit = plates
    seen = np.minimum(truth, limit)
    noise = pd.DataFrame({"lot": np.random.default_rng(1).choice(list("abcdefgh"), len(truth))})
    r = declip.restore(seen, limit, row_features=noise, effort="quick")
    line = next(line for line in r.warnings if line.startswith("With row_features"))
    times = float(line.split("held out is ")[1].split(" times")[0])
    assert 0.9 < times < 1.05


def test_weights_and_errors_are_taken(plates):
    _, truth, limit = plates
    seen = np.minimum(truth, limit)
    weighed = declip.restore(seen, limit, weights=2.0, effort="quick", method="bayes+known")
    errors = declip.restore(seen, limit, errors=0.4, effort="quick", method="bayes+known")
    assert np.isfinite(weighed.table).all()
    # errors that are the same everywhere say nothing of one cell beside another
    assert_allclose(errors.table, weighed.table, atol=0.6)


def test_what_does_not_go_with_it_is_named(plates):
    _, truth, _ = plates
    with pytest.raises(ValueError, match='use scale="columns"'):
        declip.restore(truth, groups=np.zeros(len(truth)), scale="rows")
    with pytest.raises(ValueError, match='use missing="random"'):
        declip.restore(truth, groups=np.zeros(len(truth)), missing="low")
    r = declip.restore(truth, method="column")
    with pytest.raises(ValueError, match="made without groups"):
        r.transform(truth[:2], groups=["a", "b"])
