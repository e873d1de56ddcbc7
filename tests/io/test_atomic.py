"""A file appears whole or not at all, and never in place of another unless asked."""

import os

import numpy as np
import pytest

from declip import write_table
from declip.io import TableFileError, new_file

TABLE = np.array([[1.5, 2.5]])


def test_a_file_is_not_replaced_unless_asked(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("precious")
    with pytest.raises(TableFileError, match="the file exists"):
        write_table(TABLE, path)
    assert path.read_text() == "precious"
    write_table(TABLE, path, overwrite=True)
    assert path.read_text() == "1.5,2.5\n"


def test_a_block_that_fails_leaves_nothing_behind_and_the_old_file_untouched(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("precious")

    def interrupted():
        with new_file(path, overwrite=True) as temporary:
            temporary.write_text("half")
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert [p.name for p in tmp_path.iterdir()] == ["t.csv"]
    assert path.read_text() == "precious"


def test_the_new_file_is_seen_only_at_the_end(tmp_path):
    path = tmp_path / "t.csv"
    with new_file(path) as temporary:
        temporary.write_text("whole")
        assert not path.exists()
    assert path.read_text() == "whole"


def test_the_content_is_on_the_disk_before_the_name_and_the_name_before_the_end(
    tmp_path, monkeypatch
):
    steps = []
    fsync, replace = os.fsync, os.replace

    def synced(descriptor):
        steps.append(os.readlink(f"/proc/self/fd/{descriptor}"))
        fsync(descriptor)

    def renamed(source, target):
        steps.append("rename")
        replace(source, target)

    monkeypatch.setattr(os, "fsync", synced)
    monkeypatch.setattr(os, "replace", renamed)
    with new_file(tmp_path / "t.csv") as temporary:
        temporary.write_text("whole")
    assert steps == [str(temporary), "rename", str(tmp_path)]


def test_a_table_that_cannot_be_written_leaves_nothing_behind(tmp_path):
    words = np.array([["a", "b"]])
    with pytest.raises(TableFileError, match=r"t\.mtx: cannot be written: .* holds numbers only"):
        write_table(words, tmp_path / "t.mtx")
    assert list(tmp_path.iterdir()) == []


def test_a_missing_folder_and_a_folder_in_the_way_are_named(tmp_path):
    with pytest.raises(TableFileError, match="its folder does not exist"):
        write_table(TABLE, tmp_path / "no" / "t.csv")
    (tmp_path / "t.csv").mkdir()
    with pytest.raises(TableFileError, match="this is a folder"):
        write_table(TABLE, tmp_path / "t.csv", overwrite=True)


def test_a_link_stays_a_link(tmp_path):
    (tmp_path / "real.csv").write_text("old")
    (tmp_path / "link.csv").symlink_to(tmp_path / "real.csv")
    write_table(TABLE, tmp_path / "link.csv", overwrite=True)
    assert (tmp_path / "link.csv").is_symlink()
    assert (tmp_path / "real.csv").read_text() == "1.5,2.5\n"


def test_the_new_file_has_the_usual_permissions(tmp_path):
    mask = os.umask(0o022)
    try:
        path = write_table(TABLE, tmp_path / "t.csv")
    finally:
        os.umask(mask)
    assert path.stat().st_mode & 0o777 == 0o644


def test_two_columns_of_one_name_are_refused(tmp_path):
    import pandas as pd

    frame = pd.DataFrame([[1.0, 2.0]], columns=["a", "b"])
    frame.columns = [1, "1"]
    with pytest.raises(TableFileError, match="two columns are named '1'"):
        write_table(frame, tmp_path / "t.csv")


def test_wide_text_has_no_room_for_flags(tmp_path):
    with pytest.raises(TableFileError, match="no room for flags"):
        write_table(TABLE, tmp_path / "t.csv", flags=np.array([["a", "b"]]))


def test_flags_of_another_shape_are_refused(tmp_path):
    with pytest.raises(ValueError, match="flag has shape"):
        write_table(TABLE, tmp_path / "t.csv", layout="long", flags=np.array([["a"]]))
