"""The peak memory of a sparse fit, beside a bound that is linear in its cells and factors.

Prints as JSON the number of cells, the bytes by which the peak of the process grew from the moment
when the sparse matrix was there, and the bound.
"""

import json
import sys
import warnings
from pathlib import Path

import numpy as np
from scipy import sparse

from declip import FroCMC

RANK = 10
SIZES = [(5_000, 2_000, 200_000), (20_000, 8_000, 800_000), (80_000, 32_000, 3_200_000)]
# A cell has an index and a value by row and by column, its residual in two sparse matrices, and its
# positions while the columns are being made; a factor is kept several times (the model, the last,
# the extrapolated one, the one that is being made), and in double precision while it is balanced.
BYTES_A_CELL = {"float32": 40, "float64": 56}
COPIES_OF_A_FACTOR = 8
SPARE = 2**23


def bound(shape, cells, dtype):
    """Return the bytes that a fit may take."""
    numbers = sum(shape) * (RANK + 2)
    return BYTES_A_CELL[dtype] * cells + COPIES_OF_A_FACTOR * 8 * numbers + SPARE


def table_of(shape, cells, dtype):
    """Return a sparse table with as many cells in each row, made without detours."""
    each = cells // shape[0]
    step = shape[1] // each
    indices = np.add.outer(np.arange(shape[0]) % step, step * np.arange(each)).astype(np.int32)
    values = np.minimum(np.random.default_rng(0).random(cells, dtype), dtype.type(0.9))
    ptr = np.arange(0, cells + 1, each, dtype=np.int32)
    return sparse.csr_array((values, indices.ravel(), ptr), shape=shape)


def peak():
    """Return the largest resident memory of this process so far, in bytes."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("VmHWM:"):
            return int(line.split()[1]) * 1024
    raise OSError("/proc/self/status does not tell VmHWM")


def resident():
    return int(Path("/proc/self/statm").read_text().split()[1]) * 4096


def main(size, dtype):
    warnings.simplefilter("ignore")
    *shape, cells = SIZES[size]
    X = table_of(shape, cells, np.dtype(dtype))
    before = resident()
    FroCMC(RANK, ceiling=0.9, max_iter=3, random_state=0).fit(X)
    print(json.dumps([cells, peak() - before, bound(shape, cells, dtype)]))


if __name__ == "__main__":
    main(int(sys.argv[1]), sys.argv[2])
