"""Every instruction set that this machine has."""

import pytest

from declip import kernels


@pytest.fixture(params=kernels.isa_names())
def isa(request):
    before = kernels.current_isa()
    kernels.use_isa(request.param)
    yield request.param
    kernels.use_isa(before)
