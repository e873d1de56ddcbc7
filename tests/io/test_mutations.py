"""Whatever a file holds, reading it gives a table or one clear error."""

import io

import numpy as np
import polars as pl
import pytest
from scipy import io as scipy_io
from scipy import sparse

from declip import Intervals, read_limits, read_table, write_table
from declip.io import TableFileError

N_MUTATIONS = 250  # for each of the eight seeds below
WIDE = b'sample,iron,zinc,lead\ns1,<0.05,12,3\ns2,0.3,>40,0.1-0.5\ns3,NA,ND,7\n"s,4",1,2,-\n'
LONG = b"row;column;value;qualifier;limit\na;x;1,5;<;2\na;y;2;;\nb;x;3;>;1\nb;y;ND;;0,5\n"
MARKET = b"%%MatrixMarket matrix coordinate real general\n3 3 3\n1 1 1.5\n2 3 2.0\n3 2 -4\n"
PIECES = [
    b",",
    b";",
    b"\n",
    b"\r",
    b'"',
    b"<",
    b">",
    b"-",
    b"\0",
    b"\xff",
    b"\xfe\xff",
    b"NA",
    b"ND",
]
PIECES += [
    b"1e999",
    b"inf",
    b"nan",
    b"\xc3\xa9",
    b"  ",
    b"%",
    b"=1+1",
    b"\x1b[2J",
    b"9" * 400,
    b"\t",
]


def _npz():
    file = io.BytesIO()
    np.savez(file, table=np.arange(6.0).reshape(2, 3), row_labels=np.array(["a", "b"]))
    return file.getvalue()


def _sparse_npz():
    file = io.BytesIO()
    sparse.save_npz(file, sparse.random_array((6, 5), density=0.4, rng=np.random.default_rng(0)))
    return file.getvalue()


def _parquet():
    file = io.BytesIO()
    pl.DataFrame({"id": ["a", "b"], "x": ["<1", "2"], "y": [1.5, None]}).write_parquet(file)
    return file.getvalue()


def _excel(folder):
    cells = Intervals.from_table(np.array([[1.0, 5.0], [2.0, np.nan]]), ceiling=5)
    return write_table(cells, folder / "seed.xlsx").read_bytes()


def _dense_market():
    file = io.BytesIO()
    scipy_io.mmwrite(file, np.arange(6.0).reshape(2, 3))
    return file.getvalue()


SEEDS = {
    "wide.csv": lambda _: WIDE,
    "long.csv": lambda _: LONG,
    "wide.npz": lambda _: _npz(),
    "sparse.npz": lambda _: _sparse_npz(),
    "wide.parquet": lambda _: _parquet(),
    "wide.xlsx": _excel,
    "sparse.mtx": lambda _: MARKET,
    "dense.mtx": lambda _: _dense_market(),
}


def mutate(data, rng):
    """Cut, repeat, overwrite or insert, one to four times."""
    data = bytearray(data)
    for _ in range(rng.integers(1, 5)):
        at, end = sorted(rng.integers(0, len(data) + 1, 2))
        piece = PIECES[rng.integers(len(PIECES))]
        match rng.integers(6):
            case 0:
                data[at : at + 1] = bytes([rng.integers(256)])
            case 1:
                data[at:at] = piece
            case 2:
                data[at : at + len(piece)] = piece
            case 3:
                del data[at : min(end, at + 20)]
            case 4:
                data[at:at] = data[at : min(end, at + 40)]
            case 5:
                del data[at:]
    return bytes(data)


@pytest.mark.parametrize("name", SEEDS)
def test_a_mutated_file_gives_a_table_or_one_clear_error(tmp_path, name):
    rng = np.random.default_rng([ord(c) for c in name])
    seed, path = SEEDS[name](tmp_path), tmp_path / name
    refused = 0
    for _ in range(N_MUTATIONS):
        path.write_bytes(mutate(seed, rng))
        try:
            table = read_table(path, floor={"zinc": 0.1} if name == "wide.csv" else None)
        except TableFileError as error:
            text = str(error)
            assert text.startswith(str(path))
            assert text.isprintable()
            assert len(text) < 600
            refused += 1
        else:
            assert len(table.intervals) > 0
    assert 0 < refused < N_MUTATIONS or name.endswith(("xlsx", "npz", "dense.mtx"))


def test_mutated_tables_of_limits_give_limits_or_one_clear_error(tmp_path):
    rng, path = np.random.default_rng(0), tmp_path / "limits.csv"
    for _ in range(N_MUTATIONS):
        path.write_bytes(mutate(b"analyte,floor,ceiling\niron,0.5,\nzinc,1,40\n", rng))
        try:
            outcome = read_limits(path)
        except TableFileError as error:
            outcome = str(error)
        assert set(outcome) == {"floor", "ceiling"} or outcome.isprintable()
