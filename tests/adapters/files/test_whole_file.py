"""A file is written whole or not at all; what is no plain file is never replaced."""

import os
from pathlib import Path

import pytest

from sageaudit.adapters.files.local_files import atomic_write
from sageaudit.errors import SageauditError


def write(path: Path, text: str = "new", *, fails: bool = False) -> None:
    """Writes a file, perhaps not to its end."""
    with atomic_write(path) as part:
        part.write_text(text)
        if fails:
            raise ZeroDivisionError


def test_a_file_is_replaced_by_a_whole_one(tmp_path: Path) -> None:
    """Nothing else is left in the folder; one that fails midway leaves the old file."""
    path = tmp_path / "audits.csv"
    write(path, "old")
    with pytest.raises(ZeroDivisionError):
        write(path, "half", fails=True)
    assert path.read_text() == "old"
    write(path)
    assert path.read_text() == "new"
    assert list(tmp_path.iterdir()) == [path]


def test_a_link_and_a_file_named_part_stay(tmp_path: Path) -> None:
    """The link's file is written, with the mode that it had."""
    real, link, other = (tmp_path / name for name in ("real.csv", "link.csv", "link.csv.part"))
    real.write_text("older")
    real.chmod(0o600)
    link.symlink_to("real.csv")
    other.write_text("somebody's")
    write(link)
    assert link.is_symlink()
    assert (real.read_text(), other.read_text()) == ("new", "somebody's")
    assert real.stat().st_mode & 0o777 == 0o600


def test_a_pipe_and_a_device_are_written_to(tmp_path: Path) -> None:
    """Root's `-o /dev/null` must not make a file of it."""
    write(Path("/dev/null"))
    assert Path("/dev/null").is_char_device()
    pipe = tmp_path / "audits.csv"
    os.mkfifo(pipe)
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    try:
        write(pipe)
        assert os.read(reader, 8) == b"new"
        assert pipe.is_fifo()
    finally:
        os.close(reader)


def test_a_path_that_can_be_no_file_is_one_sentence(tmp_path: Path) -> None:
    """A link that leads to itself stays what it is."""
    loop = tmp_path / "loop.csv"
    loop.symlink_to("loop.csv")
    for path in (loop, tmp_path / "no-folder" / "a.csv", tmp_path / f"{'a' * 300}.csv"):
        with pytest.raises(SageauditError, match=r"cannot be written|leads to itself"):
            write(path)
    assert loop.is_symlink()
