"""The modes and the hash of a folder that is deployed."""

import os
from pathlib import Path

import pytest

from infra import file_tree


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Two files as umask 077 makes them, and an executable one."""
    root = tmp_path / "root"
    before = os.umask(0o077)
    try:
        (root / "inner").mkdir(parents=True)
        (root / "one.py").write_text("1", encoding="utf-8")
        (root / "inner" / "two.py").write_text("2", encoding="utf-8")
        (root / "inner" / "tool").touch(mode=0o700)
    finally:
        os.umask(before)
    return root


def modes(root: Path) -> dict[str, str]:
    """The mode of everything in a folder, and its own."""
    return {
        path.relative_to(root).as_posix(): f"{path.stat().st_mode & 0o7777:o}"
        for path in (root, *root.rglob("*"))
    }


def test_everybody_may_read_what_is_deployed(folder: Path) -> None:
    """Lambda's user is not the owner of the files."""
    file_tree.set_modes(folder)
    assert modes(folder) == {
        ".": "755",
        "inner": "755",
        "inner/tool": "644",
        "inner/two.py": "644",
        "one.py": "644",
    }


@pytest.mark.parametrize("name", [".", "inner", "one.py"])
def test_the_hash_depends_on_modes(folder: Path, name: str) -> None:
    """CDK's own hash does not: a deployment would skip the repaired files."""
    file_tree.set_modes(folder)
    before = file_tree.tree_hash(folder)
    (folder / name).chmod(0o700)
    assert file_tree.tree_hash(folder) != before


def test_the_hash_depends_on_names_and_contents_only_beside_modes(folder: Path) -> None:
    """Not on times, nor on where the folder is."""
    before = file_tree.tree_hash(folder)
    os.utime(folder / "one.py", (0, 0))
    moved = folder.rename(folder.parent / "moved")
    assert file_tree.tree_hash(moved) == before
    (moved / "one.py").rename(moved / "three.py")
    assert file_tree.tree_hash(moved) != before
    (moved / "three.py").rename(moved / "one.py")
    (moved / "one.py").write_text("3", encoding="utf-8")
    assert file_tree.tree_hash(moved) != before
