"""Sizes that must fit: the rank in the table, and a table in memory."""

import os
from collections.abc import Iterator
from math import inf, prod
from numbers import Integral
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import DTypeLike

GIB = 2**30
_DENSE_COPIES = 12  # of a table that the splitting holds at a time
ALWAYS_TRIED = 2**26  # bytes that are asked for whatever the system says is free

MOST_STEPS = 1000  # of an order: their covariances are held as a table


def check_rank(n_components: Any, shape: tuple[int, int]) -> int:
    """Check that a rank is an integer from 1 to the smaller side of the table."""
    allowed = f"an integer from 1 to {min(shape)}, the smaller side of the {shape} table"
    if not isinstance(n_components, Integral) or isinstance(n_components, bool):
        raise TypeError(f"n_components must be {allowed}; got {n_components!r}.")
    if not 1 <= int(n_components) <= min(shape):
        raise ValueError(f"n_components must be {allowed}; got {n_components}.")
    return int(n_components)


def rank_to_fit(n_components: Any, shape: tuple[int, int], most: int = 10) -> int:
    """Return the rank that was asked for, checked; "auto" is ``most``, or less in a narrow table.

    One less than the smaller side: as many factors as columns would leave nothing to the noise.
    """
    if isinstance(n_components, str):
        return max(1, min(most, min(shape) - 1))
    return check_rank(n_components, shape)


def check_sweeps(sweeps: Any) -> int:
    """Check a number of sweeps: 1 or more."""
    if not isinstance(sweeps, Integral) or isinstance(sweeps, bool) or sweeps < 1:
        raise ValueError(f"sweeps must be 1, 2, 3, ...; got {sweeps!r}.")
    return int(sweeps)


def check_steps(axis: str, n: int, periods: tuple[float, ...]) -> None:
    """Refuse an order of too many steps, and seasons that no order of so many can show."""
    if n > MOST_STEPS:
        raise ValueError(
            f"order={axis!r} is for up to {MOST_STEPS} {axis}; the table has {n}. Take longer "
            "steps (weeks for days), or leave the order out."
        )
    for period in periods:
        if not 1 < period < n:
            raise ValueError(
                f"period={period:g} must lie between 1 and the number of {axis}, {n}: a season is "
                "seen from a length of two steps on, and by its return."
            )


def check_same_shape(
    name: str, shape: tuple[int, int], expected: tuple[int, int], what: str
) -> None:
    """Refuse a table of another shape than the one it belongs to."""
    if tuple(shape) != tuple(expected):
        raise ValueError(
            f"{name} has the shape {tuple(shape)}, but {what} has the shape {tuple(expected)}."
        )


def check_choice(name: str, given: Any, allowed: tuple[str, ...]) -> None:
    """Check that a word is one of those allowed."""
    if given not in allowed:
        raise ValueError(f"{name} must be one of {allowed}, got {given!r}")


def check_quantiles(quantiles: Any) -> list[float]:
    """Check that there are quantiles, each strictly between 0 and 1."""
    found = [float(q) for q in np.atleast_1d(np.asarray(quantiles, float))]
    if not found or not all(0 < q < 1 for q in found):
        raise ValueError(f"quantiles must lie between 0 and 1, both excluded; got {quantiles!r}.")
    return found


def check_splitting(
    estimator: str, shape: tuple[int, int], alpha: float | str, max_rank: int | None
) -> None:
    """Refuse what the splitting cannot do: no penalty, a given rank, a table beyond memory."""
    other = 'use solver="auto".'
    if alpha == 0:
        raise ValueError(f'{estimator}(solver="splitting") needs an alpha above 0; {other}')
    if max_rank is not None:
        raise ValueError(f'{estimator}(solver="splitting") takes no max_rank; {other}')
    check_memory((_DENSE_COPIES, *shape), np.float64, f'{estimator}(solver="splitting")', other)


def check_memory(shape: tuple[int, ...], dtype: DTypeLike, what: str, remedy: str) -> None:
    """Refuse an array that cannot fit in memory, before it is allocated.

    Parameters
    ----------
    shape, dtype
        The array to come.
    what : str
        What needs it, at the head of the message.
    remedy : str
        The way out, at its end.
    """
    needed = prod(int(size) for size in shape) * np.dtype(dtype).itemsize
    if needed > ALWAYS_TRIED and needed > (free := free_memory()):
        raise MemoryError(
            f"{what} needs {needed / GIB:.1f} GiB for a {' x '.join(map(str, shape))} table of "
            f"{np.dtype(dtype)}, but about {free / GIB:.1f} GiB is free; {remedy}"
        )


def free_memory() -> float:
    """Bytes that this process can still take; infinite where the system does not tell."""
    return max(0, min(_machine_memory(), _address_space(), *_cgroup_memory()))


def _machine_memory() -> float:
    for line in _read("/proc/meminfo").splitlines():
        if line.startswith("MemAvailable:"):
            return int(line.split()[1]) * 1024
    for pages in ("SC_AVPHYS_PAGES", "SC_PHYS_PAGES"):
        try:
            return os.sysconf(pages) * os.sysconf("SC_PAGE_SIZE")
        except (AttributeError, ValueError, OSError):
            continue
    return inf


def _address_space() -> float:
    try:
        import resource
    except ImportError:  # Windows
        return inf
    limit, _ = resource.getrlimit(resource.RLIMIT_AS)
    used = _read("/proc/self/statm").split()
    if limit == resource.RLIM_INFINITY or not used:
        return inf
    return limit - int(used[0]) * resource.getpagesize()


def _cgroup_memory() -> Iterator[float]:
    """Yield what is left in each control group around this process, of version 2 or 1."""
    yield inf
    for line in _read("/proc/self/cgroup").splitlines():
        _, controllers, group = line.split(":", 2)
        if not controllers:
            root, limit, used, cache = "", "memory.max", "memory.current", "inactive_file"
        elif "memory" in controllers.split(","):
            root, limit, used = "memory", "memory.limit_in_bytes", "memory.usage_in_bytes"
            cache = "total_inactive_file"
        else:
            continue
        top = Path("/sys/fs/cgroup", root)
        for folder in (here := top / group.lstrip("/"), *here.parents):
            if top in (folder, *folder.parents):
                yield _left(folder, limit, used, cache)


def _left(folder: Path, limit: str, used: str, cache: str) -> float:
    most, now = _read(folder / limit).strip(), _read(folder / used).strip()
    if not (most.isdigit() and now.isdigit()):
        return inf
    # Cached files are given back on demand, and do not count as used.
    stat = dict(line.split() for line in _read(folder / "memory.stat").splitlines())
    return int(most) - int(now) + int(stat.get(cache, 0))


def _read(path: str | Path) -> str:
    try:
        return Path(path).read_text()
    except OSError:
        return ""
