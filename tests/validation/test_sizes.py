"""Ranks that fit the table and results that fit in memory."""

import subprocess
import sys

import numpy as np
import pytest

from declip.validation import check_memory, check_quantiles, check_rank, free_memory, sizes

GIB = 2**30


@pytest.mark.parametrize("rank", [1, 5, np.int64(3)])
def test_ranks_up_to_the_smaller_side_are_integers(rank):
    assert check_rank(rank, (5, 9)) == rank
    assert type(check_rank(rank, (5, 9))) is int


@pytest.mark.parametrize("rank", [0, -1, 6])
def test_a_rank_that_does_not_fit_is_refused_with_the_shape(rank):
    message = rf"from 1 to 5, the smaller side of the \(9, 5\) table; got {rank}\."
    with pytest.raises(ValueError, match=message):
        check_rank(rank, (9, 5))


@pytest.mark.parametrize("rank", [2.0, "2", None, True])
def test_a_rank_that_is_no_integer_is_refused(rank):
    with pytest.raises(TypeError, match="n_components must be an integer"):
        check_rank(rank, (5, 9))


def test_an_array_that_cannot_fit_is_refused_with_the_figure_and_the_way_out(monkeypatch):
    monkeypatch.setattr(sizes, "free_memory", lambda: 3.2 * GIB)
    message = (
        "reconstruct needs 74.5 GiB for a 100000 x 100000 table of float64, "
        "but about 3.2 GiB is free; ask for fewer rows"
    )
    with pytest.raises(MemoryError, match=message):
        check_memory((100_000, 100_000), np.float64, "reconstruct", "ask for fewer rows")


def test_an_array_that_fits_is_accepted(monkeypatch):
    monkeypatch.setattr(sizes, "free_memory", lambda: 800)
    check_memory((10, 10), np.float64, "fit", "")


def test_sizes_beyond_64_bits_do_not_wrap_around():
    with pytest.raises(MemoryError):
        check_memory((2**31, 2**31), np.float64, "fit", "")


def test_this_machine_has_some_free_memory():
    assert free_memory() > 0


@pytest.fixture
def files(monkeypatch):
    contents = {"/proc/meminfo": "MemTotal: 9 kB\nMemAvailable: 8192 kB\n"}
    monkeypatch.setattr(sizes, "_read", lambda path: contents.get(str(path), ""))
    return contents


def test_available_memory_is_read_from_the_system(files):
    assert free_memory() == 8192 * 1024


def test_a_system_without_meminfo_tells_its_physical_memory(files, monkeypatch):
    files.clear()

    def sysconf(name):
        if name == "SC_AVPHYS_PAGES":
            raise ValueError("unrecognized configuration name")
        return {"SC_PHYS_PAGES": 3, "SC_PAGE_SIZE": 100}[name]

    monkeypatch.setattr(sizes.os, "sysconf", sysconf)
    assert free_memory() == 300


def test_a_system_that_tells_nothing_refuses_nothing(files, monkeypatch):
    files.clear()
    monkeypatch.delattr(sizes.os, "sysconf")
    assert free_memory() == np.inf


def test_a_control_group_of_version_2_counts_without_its_file_cache(files):
    files["/proc/self/cgroup"] = "0::/job/step\n"
    files["/sys/fs/cgroup/job/step/memory.max"] = "max\n"
    files["/sys/fs/cgroup/job/memory.max"] = "1000\n"
    files["/sys/fs/cgroup/job/memory.current"] = "900\n"
    files["/sys/fs/cgroup/job/memory.stat"] = "anon 600\ninactive_file 300\n"
    assert free_memory() == 400


def test_a_control_group_of_version_1_counts(files):
    files["/proc/self/cgroup"] = "5:cpu:/\n4:memory:/job\n"
    files["/sys/fs/cgroup/memory/job/memory.limit_in_bytes"] = "1000\n"
    files["/sys/fs/cgroup/memory/job/memory.usage_in_bytes"] = "300\n"
    assert free_memory() == 700


def test_a_group_that_is_over_its_limit_leaves_nothing(files):
    files["/proc/self/cgroup"] = "0::/\n"
    files["/sys/fs/cgroup/memory.max"] = "1000\n"
    files["/sys/fs/cgroup/memory.current"] = "1200\n"
    assert free_memory() == 0


@pytest.mark.skipif(sys.platform != "linux", reason="address space limits are read from /proc")
def test_a_limit_on_the_address_space_counts():
    code = (
        "import resource; from declip.validation import free_memory;"
        f"resource.setrlimit(resource.RLIMIT_AS, ({64 * GIB}, {64 * GIB}));"
        "resource.setrlimit(resource.RLIMIT_AS, ("
        "int(open('/proc/self/statm').read().split()[0]) * resource.getpagesize() + 2**28,"
        f" {64 * GIB})); print(free_memory())"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert float(run.stdout) <= 2**28


def test_quantiles_are_a_list_of_numbers_between_0_and_1():
    assert check_quantiles(0.5) == [0.5]
    assert check_quantiles(np.array([0.9, 0.1])) == [0.9, 0.1]


@pytest.mark.parametrize("quantiles", [[], 0, 1.0, [0.5, 1.2], [-0.1], np.nan])
def test_other_quantiles_are_refused(quantiles):
    with pytest.raises(ValueError, match="between 0 and 1, both excluded; got"):
        check_quantiles(quantiles)
