"""Files that are made, or damaged, so as to break a reader or to be taken for something else."""

import io
import subprocess
import sys
import zipfile

import numpy as np
import polars as pl
import pytest
from reliability import files
from scipy import sparse

from declip import Intervals, read_table, write_table
from declip.io import TableFileError


def refused(path, **options):
    with pytest.raises(TableFileError) as caught:
        read_table(path, **options)
    return str(caught.value).removeprefix(str(path)).lstrip(",: ")


@pytest.fixture
def text(tmp_path):
    def make(content):
        path = tmp_path / "table.csv"
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return path

    return make


@pytest.fixture
def book(tmp_path):
    """Return a function that writes a book whose sheet has been edited."""

    def make(old, new, part="xl/worksheets/sheet1.xml"):
        cells = Intervals.from_table(np.array([[1.5, 5.0], [2.0, 3.0]]), ceiling=5)
        seed = write_table(cells, tmp_path / "seed.xlsx", overwrite=True)
        path = tmp_path / "book.xlsx"
        with zipfile.ZipFile(seed) as source, zipfile.ZipFile(path, "w") as out:
            for name in source.namelist():
                data = source.read(name)
                if name == part:
                    assert old in data
                    data = data.replace(old, new)
                out.writestr(name, data)
        return path

    return make


def test_a_cell_at_a_far_address_is_refused_before_the_sheet_is_expanded(book):
    far = b'<row r="1048576"><c r="XFD1048576"><v>1</v></c></row></sheetData>'
    told = refused(book(b"</sheetData>", far))
    assert told.startswith("5 cells are spread over 1048576 rows and 16384 columns")


def test_a_row_at_a_far_number_is_refused_too(book):
    far = b'<row r="1048576"><c><v>1</v></c></row></sheetData>'
    assert "spread over 1048576 rows" in refused(book(b"</sheetData>", far))


@pytest.mark.parametrize(
    ("new", "told"),
    [
        (b'<c r="A1" t="e"><f>1/0</f><v>#DIV/0!</v></c>', "the cell A1 holds the error '#DIV/0!'"),
        (b'<c r="B1"><v>7</v></c>', "the cell B1 is given twice"),
        (b'<c r="A1" t="odd"><v>7</v></c>', "a cell is of no known kind: 'odd'"),
        (b'<c r="A1"><v>7</c>', "cannot be read as Excel: mismatched tag"),
    ],
)
def test_a_sheet_that_is_read_in_part_only_is_refused(book, new, told):
    old = b'<c r="A1" t="inlineStr"><is><t>1.5</t></is></c>'
    assert refused(book(old, new)).startswith(told)


def test_a_book_that_unpacks_to_more_than_memory_is_refused(book, monkeypatch):
    path = book(b"1.5", b"1.5" + b" " * 2**27)
    monkeypatch.setattr("declip.validation.sizes.free_memory", lambda: 2**26)
    assert "the unpacked book needs" in refused(path)


@pytest.mark.parametrize(
    ("body", "told"),
    [
        ("2 2 2\n1 1 1.0\n0 1 2.0\n", "line 4: the entry lies outside of the matrix"),
        ("2 2 2\n1 1 1.0\n99999999999 1 2.0\n", "line 4: the entry lies outside of the matrix"),
        ("2 2 2\n1 1 1.0\n", "it has 1 entries, where its header gives 2"),
        ("2 2 2\n1 1 1.0\n2 1 x\n", "line 4: it is not a row, a column and a number"),
        ("2 2 2\n1 1 1.0\n2 1\n", "line 4: it is not a row, a column and a number"),
        ("2 2 99999999999999\n1 1 1.0\n", "it is too short for 99999999999999 entries"),
        ("-2 2 1\n1 1 1.0\n", "the line with its size is damaged"),
    ],
)
def test_a_damaged_matrix_market_file_is_refused(tmp_path, body, told):
    path = tmp_path / "x.mtx"
    path.write_text("%%MatrixMarket matrix coordinate real general\n" + body)
    assert refused(path).startswith(told)


def test_a_sparse_matrix_with_cells_outside_of_it_is_refused(tmp_path):
    table = sparse.csr_array(np.eye(3))
    np.savez(
        tmp_path / "x.npz",
        format=b"csr",
        shape=(3, 3),
        data=table.data,
        indptr=table.indptr,
        indices=np.array([0, 1, 2**30], np.int32),
    )
    assert "cannot be read as npz" in refused(tmp_path / "x.npz")


def test_an_array_that_says_more_than_it_holds_is_refused(tmp_path):
    head, path = io.BytesIO(), tmp_path / "x.npz"
    described = {"descr": "<f8", "fortran_order": False, "shape": (10**9, 10**3)}
    np.lib.format.write_array_header_1_0(head, described)
    with zipfile.ZipFile(path, "w") as file:
        file.writestr("table.npy", head.getvalue() + b"\0" * 64)
    assert refused(path) == "its array 'table' is not as large as its header says"


@pytest.mark.parametrize(
    ("content", "told"),
    [
        ("id,x\na,<\uff15\nb,2\n", "line 2, column 'x': '<\uff15' has digits other than 0 to 9"),
        ("id,x\na,\u0661\nb,2\n", "line 2, column 'x': '\u0661' has digits other than 0 to 9"),
        ("id;x\na;1,5\nb;2.5\n", "line 2, column 'x': '1,5' is not a number"),
        ("id,x\na,1\rb,2\nc,3\n", "line 2: a line ends differently"),
        ('id,x\na"b,1\nc,2\n', "line 2: its quotation marks do not match"),
        ("id,x\na\x07,1\nb,2\n", "the text is damaged: it holds U+0007"),
        ("id,x\né\ufffd,1\nb,2\n", "line 2: the text is damaged: it holds U+FFFD"),
        ("id,é\na,1\nb,2\n".encode() + b"\xff,3\n", "line 4: the text is not utf-8, or is damaged"),
        ("id,x\na,1\nb,2\n".encode("utf-16") + b"\0", "the text is not utf-16"),
        ("id;x;y\na;1,5;2,5\nb;1,5 2,5\n", "line 3: it has 2 fields, where the first has 3"),
        ("id,x\na,1\nb,>9.=\n", "line 3, column 'x': '>9.=' is neither a number"),
    ],
)
def test_text_that_is_understood_in_part_only_is_named(text, content, told):
    assert told in refused(text(content))


def test_a_first_record_with_limits_is_no_header(text):
    table = read_table(text("1.5,>5,2\n2.25,,0.5\n")).intervals
    assert table.shape == (2, 3)
    assert table.n_censored == 1


@pytest.mark.parametrize("name", files.NAMES)
def test_what_is_read_of_a_damaged_file_is_what_another_reader_reads(tmp_path, name):
    path = tmp_path / f"table.{name.rpartition('.')[2]}"
    raw = files.TEXTS[name].raw() if name in files.TEXTS else files.BINARY[name](tmp_path)
    for i in range(25):
        path.write_bytes(files.damaged(name, raw, np.random.default_rng((1, i))))
        assert files.outcome(name, path) in ("same", "refused"), i


def parquet(path, **how):
    frame = pl.DataFrame({"id": ["a", "b"], "x": ["<1", "2"], "y": [1.5, None]})
    frame.write_parquet(path, **how)
    return bytearray(path.read_bytes())


def test_pages_of_parquet_that_claim_other_numbers_of_values_are_refused(tmp_path):
    # A page of -1 values asks its reader for 2^61 bytes, which ends the process.
    path = tmp_path / "t.parquet"
    data = parquet(path, compression="uncompressed")
    places = [k for k in range(4, len(data) - 8) if data[k] == 4]  # 2, as the protocol writes it
    for k in places:
        (tmp_path / f"{k}.parquet").write_bytes(data[:k] + bytes([1]) + data[k + 1 :])
    script = """import pathlib, sys, declip.io as io
for path in pathlib.Path(sys.argv[1]).glob('*.parquet'):
    try:
        io.read_table(path)
    except io.TableFileError as error:
        print(error)
print('end')"""
    done = subprocess.run(
        [sys.executable, "-c", script, tmp_path], capture_output=True, text=True, check=False
    )
    assert done.stdout.endswith("end\n")
    assert done.stdout.count("its pages are not what it says") > 2


def test_missing_cells_of_parquet_that_no_page_should_hold_are_refused(tmp_path):
    path = tmp_path / "t.parquet"
    data = parquet(path)
    refused = []
    for k in range(60, 100):  # among them the marks of which cells are missing
        path.write_bytes(data[:k] + bytes([65]) + data[k + 1 :])
        try:
            read_table(path)
        except TableFileError as error:
            refused.append(str(error))
    assert any("its pages are not what it says" in text for text in refused)


@pytest.mark.parametrize(
    "how", [{}, {"row_group_size": 3}, {"data_page_size": 16}, {"statistics": "full"}]
)
def test_sound_parquet_of_many_forms_is_read(tmp_path, how):
    frame = pl.DataFrame({"id": [f"r{i}" for i in range(20)], "x": [1.5, None] * 10})
    frame.write_parquet(tmp_path / "t.parquet", **how)
    assert read_table(tmp_path / "t.parquet").intervals.n_exact == 10
