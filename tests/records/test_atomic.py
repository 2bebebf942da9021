"""A file that appears whole or not at all, and whose name an error has."""

from pathlib import Path

import pytest

from vertumnus.records.atomic import write_whole


def test_a_file_that_cannot_be_made_is_named_as_asked(tmp_path: Path) -> None:
    """Not by the hidden file that stands for it meanwhile; a folder in its place is left alone."""
    missing, folder = tmp_path / "none" / "t.jsonl", tmp_path / "folder"
    folder.mkdir()
    for path, kind in ((missing, FileNotFoundError), (folder, IsADirectoryError)):
        with pytest.raises(kind) as raised:
            write_whole(path, lambda file: file.write(b"x"))
        assert raised.value.filename == str(path)
    assert list(tmp_path.iterdir()) == [folder] and not list(folder.iterdir())


def test_an_error_while_it_is_filled_goes_through(tmp_path: Path) -> None:
    """It names what it is about, nothing is left, and what was there stays."""
    path = tmp_path / "t.jsonl"
    path.write_bytes(b"old")

    def fill(_file: object) -> None:
        (tmp_path / "source").read_bytes()

    with pytest.raises(FileNotFoundError) as raised:
        write_whole(path, fill)
    assert raised.value.filename == str(tmp_path / "source")
    assert [(file.name, file.read_bytes()) for file in tmp_path.iterdir()] == [("t.jsonl", b"old")]
