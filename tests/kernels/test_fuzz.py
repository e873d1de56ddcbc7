"""A few random tables in every run of the tests; `make fuzz` goes on for minutes."""

import pytest
from tests.kernels.fuzz import run_case


@pytest.mark.parametrize("seed", range(20))
def test_a_random_table_does_no_kernel_any_harm(seed):
    run_case(seed)


def test_without_a_ridge_conjugate_gradients_do_not_run_off_along_free_directions():
    for seed in (25, 33, 53, 83, 112, 113, 129, 133, 136):  # tables in which the objective rose
        run_case(seed)


def test_without_a_ridge_no_row_runs_off_along_a_slope_that_rounding_made():
    run_case(759)  # Tobit, two censored cells, 15 factors: the row came to 1e217
