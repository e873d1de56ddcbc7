"""How many examples a property is tried on."""

from hypothesis import settings


def costly(test):
    """Try a slow property on a tenth of the usual examples; on all of them in the long run."""
    usual = settings().max_examples
    return settings(max_examples=usual if usual >= 1000 else max(usual // 10, 1))(test)
