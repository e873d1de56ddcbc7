"""Tables of every kind: the same answer for the same cells, given back in the form they came."""

import warnings

import numpy as np
import pandas as pd
import polars as pl
import pytest
from numpy.testing import assert_array_equal

import declip
from declip import FroCMC, Intervals
from declip.report import View

rng = np.random.default_rng(0)
TRUTH = 3 + rng.normal(size=(60, 1)) + 0.3 * rng.normal(size=(60, 4))
CEILING = np.array([4.0, 4.5, 4.0, 4.25])
TABLE = np.minimum(TRUTH, CEILING)
TABLE[[3, 50], [2, 0]] = np.nan
NAMES = ["iron", "zinc", "lead", "tin"]
HOW = {"method": "column"}
PLAIN = declip.restore(TABLE, CEILING, **HOW)


def frame(**how):
    return pd.DataFrame(TABLE, columns=NAMES, **how)


def numbers(table):
    return np.asarray(table.to_numpy() if hasattr(table, "to_numpy") else table, float)


@pytest.mark.parametrize(
    ("kind", "dtype"),
    [
        ("float64", "float64"),
        ("Float64", "Float64"),
        ("double[pyarrow]", "double[pyarrow]"),
        ("Float32", "Float32"),
    ],
)
def test_a_pandas_frame_keeps_its_kind_of_columns(kind, dtype):
    r = declip.restore(frame().astype(kind), CEILING, **HOW)
    assert {str(column) for column in r.table.dtypes} == {dtype}
    np.testing.assert_allclose(numbers(r.table), PLAIN.table, rtol=1e-3 if "32" in kind else 0)
    assert "restored" in r.flags["iron"].tolist()
    assert np.isfinite(View(r).column(0).value).all()


def test_whole_numbers_that_may_be_missing_become_such_fractions():
    counts = pd.DataFrame(np.round(TABLE * 4), columns=NAMES).clip(upper=15).astype("Int64")
    r = declip.restore(counts, 15, **HOW)
    assert {str(column) for column in r.table.dtypes} == {"Float64"}
    plain = declip.restore(counts.to_numpy(float, na_value=np.nan), 15, **HOW)
    assert_array_equal(numbers(r.table), plain.table)


def test_labels_of_several_levels_come_back_with_their_names():
    rows = pd.MultiIndex.from_product([["a", "b"], range(30)], names=["site", "day"])
    cols = pd.MultiIndex.from_product([["metal", "other"], ["x", "y"]], names=["group", "analyte"])
    given = pd.DataFrame(TABLE, rows, cols)
    r = declip.restore(given, CEILING, **HOW)
    for part in (r.table, r.flags, r.lower, r.upper):
        pd.testing.assert_index_equal(part.index, rows)
        pd.testing.assert_index_equal(part.columns, cols)
    assert_array_equal(r.table.to_numpy(), PLAIN.table)
    assert "('b', 29)" in str(Intervals.from_table(given).row_labels[-1])


def test_what_stays_missing_is_null_where_there_is_a_null():
    table = np.column_stack([TABLE, np.full(60, np.nan)])
    names = [*NAMES, "empty"]
    for given, nulls in (
        (pl.DataFrame(table, schema=names), lambda t: t["empty"].null_count()),
        (
            pd.DataFrame(table, columns=names).astype("Float64"),
            lambda t: int(t["empty"].isna().sum()),
        ),
    ):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            assert nulls(declip.restore(given, 5, **HOW).table) == 60


class TestXarray:
    xr = pytest.importorskip("xarray")

    def array(self):
        coords = {"sample": [f"s{i}" for i in range(60)], "analyte": NAMES}
        return self.xr.DataArray(
            TABLE, coords, ("sample", "analyte"), "dose", attrs={"units": "mg/l"}
        )

    def test_an_array_comes_back_with_its_dimensions_and_attributes(self):
        r = declip.restore(self.array(), dict(zip(NAMES, CEILING, strict=True)), **HOW)
        assert_array_equal(r.table.values, PLAIN.table)
        assert r.table.dims == ("sample", "analyte")
        assert (r.table.name, r.table.attrs) == ("dose", {"units": "mg/l"})
        assert r.flags.sel(analyte="iron").values.tolist().count("restored") > 0
        self.xr.testing.assert_equal(r.lower.coords.to_dataset(), self.array().coords.to_dataset())
        assert View(r).col_names == NAMES

    def test_the_dimensions_of_a_cube_before_the_last_are_its_rows(self):
        cube = self.xr.DataArray(
            TABLE.reshape(5, 12, 4),
            {"site": list("abcde"), "analyte": NAMES},
            ("site", "month", "analyte"),
        )
        r = declip.restore(cube, CEILING, **HOW)
        assert r.table.shape == (5, 12, 4)
        assert_array_equal(r.table.values.reshape(60, 4), PLAIN.table)
        assert r.intervals.row_labels[13] == ("b", 1)

    def test_limits_are_spread_over_the_dimensions_that_they_lack(self):
        limits = self.xr.DataArray(CEILING[::-1], {"analyte": NAMES[::-1]}, ("analyte",))
        assert_array_equal(declip.restore(self.array(), limits, **HOW).table.values, PLAIN.table)
        other = self.xr.DataArray([1.0], dims="plate")
        with pytest.raises(ValueError, match="ceiling has the dimension 'plate'"):
            declip.restore(self.array(), other)

    def test_an_array_of_one_dimension_is_no_table(self):
        with pytest.raises(ValueError, match="a table needs two or more"):
            declip.restore(self.array()[:, 0])

    def test_an_estimator_takes_an_array_and_knows_its_columns(self):
        model = FroCMC(1, ceiling=4.5, random_state=0)
        restored = model.fit_transform(self.array())
        assert model.feature_names_in_.tolist() == NAMES
        assert_array_equal(restored, FroCMC(1, ceiling=4.5, random_state=0).fit_transform(TABLE))
        assert model.transform(self.array()[:3]).shape == (3, 4)
        with pytest.raises(ValueError, match="feature names should match"):
            model.transform(self.array()[:, ::-1])


class TestAnnData:
    ad = pytest.importorskip("anndata")

    def adata(self):
        made = self.ad.AnnData(
            np.zeros_like(TABLE),
            pd.DataFrame({"run": 1}, index=[f"s{i}" for i in range(60)]),
            pd.DataFrame({"uloq": CEILING}, index=NAMES),
        )
        made.layers["raw"] = TABLE.copy()
        return made

    def test_a_layer_is_restored_in_a_copy_with_flags_and_bands_beside_it(self, tmp_path):
        given = self.adata()
        r = declip.restore(given, "uloq", layer="raw", **HOW)
        assert_array_equal(r.table.layers["raw"], PLAIN.table)
        assert_array_equal(r.table.layers["raw_flag"], PLAIN.flags)
        assert_array_equal(r.table.layers["raw_band_lower"], PLAIN.lower)
        assert_array_equal(r.table.layers["raw_band_upper"], PLAIN.upper)
        assert list(given.layers) == ["raw"]
        assert_array_equal(given.layers["raw"], TABLE)
        r.table.write_h5ad(tmp_path / "a.h5ad")
        back = self.ad.read_h5ad(tmp_path / "a.h5ad")
        assert_array_equal(back.layers["raw_flag"], PLAIN.flags)
        assert list(r.flags.columns) == NAMES
        assert_array_equal(View(r).column(1).value, PLAIN.table[:, 1])

    def test_without_a_copy_it_is_changed_itself(self):
        given = self.adata()
        given.X = TABLE.copy()
        given.layers["limit"] = np.tile(CEILING, (60, 1))
        r = declip.restore(given, "limit", copy=False, **HOW)
        assert r.table is given
        assert_array_equal(given.X, PLAIN.table)
        assert_array_equal(given.layers["flag"], PLAIN.flags)

    def test_a_missing_limit_in_var_is_none(self):
        given = self.adata()
        given.var.loc["tin", "uloq"] = np.nan
        cells = declip.restore(given, "uloq", layer="raw", **HOW).intervals
        assert_array_equal(np.diff(cells.by_col.censored_ptr) > 0, [True, True, True, False])

    def test_wrong_names_and_sparse_layers_are_told(self):
        given = self.adata()
        with pytest.raises(ValueError, match="no layer 'row': it has 'raw'"):
            declip.restore(given, "uloq", layer="row")
        with pytest.raises(ValueError, match="ceiling: the AnnData has no 'lloq' in var"):
            declip.restore(given, "lloq", layer="raw")
        from scipy.sparse import csr_matrix

        given.X = csr_matrix(np.nan_to_num(TABLE))
        with pytest.raises(TypeError, match="absent ones are zeros"):
            declip.restore(given, "uloq")
        with pytest.raises(TypeError, match="are for an AnnData; X is a ndarray"):
            declip.restore(TABLE, layer="raw")

    def test_an_estimator_takes_it_with_limits_by_name(self):
        given = self.adata()
        given.X = TABLE.copy()
        model = FroCMC(1, ceiling="uloq", random_state=0).fit(given)
        plain = FroCMC(1, ceiling=CEILING, random_state=0).fit(TABLE)
        assert_array_equal(model.components_, plain.components_)
        assert_array_equal(model.transform(given[:5].copy()), plain.transform(TABLE[:5]))
