"""The demo restores the panel that ships with declip, says so, and draws it."""

import numpy as np
import pytest

from declip import demo


@pytest.fixture(scope="module")
def result():
    return demo.restore_assay()


def test_the_demo_prints_the_counts_and_the_path_of_a_picture(tmp_path, capsys):
    demo.main([str(tmp_path / "new folder")])
    out = capsys.readouterr().out
    path = tmp_path / "new folder" / "declip-demo.png"
    assert path.read_bytes().startswith(b"\x89PNG\r\n\x1a\n")
    assert str(path) in out
    assert "79 of 720 cells below" in out
    assert "52 of 720 cells above" in out
    assert "36 of 720 cells missing" in out


def test_by_default_the_picture_goes_to_the_current_folder(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    demo.main([])
    assert (tmp_path / "declip-demo.png").is_file()


def test_restoring_halves_the_error_of_leaving_the_limit_in_place(result):
    left = result.error(result.assay.table, result.clipped)
    restored = result.error(result.restored, result.clipped)
    # Measured: 0.17 against 0.46. The noise of the simulation, 0.15, cannot be restored.
    assert restored < 0.5 * left


def test_exact_cells_are_untouched_and_clipped_ones_lie_beyond_their_limit(result):
    assay, exact = result.assay, ~(result.clipped | result.missing)
    # log and exp round each cell by a few units in the last place
    np.testing.assert_allclose(result.restored[exact], assay.table[exact], rtol=1e-13)
    floor, ceiling = (np.broadcast_to(x, exact.shape) for x in (assay.floor, assay.ceiling))
    assert np.all(result.restored[result.below] <= floor[result.below] * (1 + 1e-13))
    assert np.all(result.restored[result.above] >= ceiling[result.above] * (1 - 1e-13))


def test_every_gap_is_filled(result):
    assert np.isfinite(result.restored).all()
