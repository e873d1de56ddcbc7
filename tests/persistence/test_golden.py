"""Files of the first version are still read, and still say the same."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from tests.persistence.golden import FOLDER, NAMES
from tests.persistence.models import FRAME, answers

import declip


@pytest.fixture(scope="module")
def told():
    with np.load(FOLDER / "answers.npz", allow_pickle=False) as file:
        return {name: file[name] for name in file.files}


@pytest.mark.parametrize("name", NAMES)
def test_a_golden_file_gives_the_stored_answers(name, told):
    found = answers(declip.load(FOLDER / f"{name}.npz"))
    assert {f"{name}: {question}" for question in found} == {
        key for key in told if key.startswith(f"{name}: ")
    }
    # Bitwise on the machine that wrote them; other processors round otherwise, and the samples of
    # BayesCMC are in single precision.
    rtol = 1e-4 if name == "BayesCMC" else 1e-9
    for question, value in found.items():
        assert_allclose(value, told[f"{name}: {question}"], rtol=rtol, atol=rtol)


@pytest.mark.parametrize("name", NAMES)
def test_a_golden_file_has_the_labels_of_its_table(name):
    model = declip.load(FOLDER / f"{name}.npz")
    columns = model.table.columns if name == "Restoration" else model.feature_names_in_
    assert list(columns) == list(FRAME.columns)
