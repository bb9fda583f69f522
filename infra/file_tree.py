"""Makes a folder equal on every machine: sets its file modes, and hashes all that is in it.

Lambda runs as another user than the owner of the unzipped files, so it can read only what everybody
may read; the zip keeps the modes of this machine, where the umask may have taken that away. CDK's
own hash of an asset has contents only: a repaired mode would not be deployed.
"""

from __future__ import annotations

import hashlib
import stat
from collections.abc import Iterator
from pathlib import Path

FOLDER_MODE = 0o755
FILE_MODE = 0o644


def set_modes(root: Path) -> None:
    """Gives every folder 0755 and every file 0644, whatever the umask was."""
    for path, _, is_folder in _entries(root):
        wanted = FOLDER_MODE if is_folder else FILE_MODE
        if stat.S_IMODE(path.stat().st_mode) != wanted:
            path.chmod(wanted)


def tree_hash(root: Path) -> str:
    """Returns the SHA-256 of every path, mode and content, as 64 hexadecimal digits."""
    digest = hashlib.sha256()
    for path, name, is_folder in _entries(root):
        mode = stat.S_IMODE(path.stat().st_mode)
        content = "" if is_folder else hashlib.sha256(path.read_bytes()).hexdigest()
        digest.update(f"{name}\0{mode:o}\0{content}\n".encode())
    return digest.hexdigest()


def _entries(root: Path) -> Iterator[tuple[Path, str, bool]]:
    """Yields the root and all below it: folders before their contents, in the order of names."""
    yield root, ".", True
    for path in sorted(root.rglob("*")):
        yield path, path.relative_to(root).as_posix(), path.is_dir()
