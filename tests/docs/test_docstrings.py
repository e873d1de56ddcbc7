"""Every public name has a docstring that numpydoc can read, with an example."""

import pytest
from _pages import api
from numpydoc.validate import validate

import declip

NAMES = [name for names in api.by_module().values() for name in names]
# No section "See Also" and no second paragraph is asked for. Objects that users are given, and do
# not make, list attributes and no parameters.
NOT_ASKED = {"SA01", "ES01"}
ONLY_GIVEN = {
    *("BlockTable", "ModelFileError"),
    *(
        "Restoration",
        "ReclipResult",
        "SoftReclipResult",
        "Recovery",
        "Diagnosis",
        "TableFile",
        "Pooled",
        "Intervals",
    ),
    *("PooledFit", "Summary"),
    *("Assay", "BlockTable", "ClippedLowRank", "Ratings", "ModelFileError", "TableFileError"),
    *("Problem", "ReadingPlan", "Remedy"),
}


@pytest.mark.parametrize("name", NAMES)
def test_a_public_name_has_a_valid_docstring_with_an_example(name):
    excused = NOT_ASKED | ({"PR01"} if name.rpartition(".")[2] in ONLY_GIVEN else set())
    found = [(code, what) for code, what in validate(name)["errors"] if code not in excused]
    assert found == []


def test_the_reference_lists_every_public_name():
    listed = {name.removeprefix("declip.") for name in NAMES}
    assert set(declip.__all__) - {"__version__"} <= listed


def test_methods_of_estimators_are_documented():
    for name in ("FroCMC", "TrCMC", "DTrCMC", "ExactCMC", "BayesCMC"):
        estimator = getattr(declip, name)
        methods = [m for m in vars(estimator) if callable(getattr(estimator, m)) and m[0] != "_"]
        assert all(getattr(estimator, m).__doc__ for m in methods)
