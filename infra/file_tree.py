"""Makes a folder equal on every machine: sets its file modes, hashes and packs its contents.

Lambda does not run as the owner of the unzipped files, so it can read only files that everybody may
read. The zip has the modes of this machine, whose umask may deny this access. CDK's own hash of an
asset is only over contents, so a corrected mode would not be deployed.
"""

from __future__ import annotations

import hashlib
import stat
import zipfile
from collections.abc import Iterator
from pathlib import Path

FOLDER_MODE = 0o755
FILE_MODE = 0o644


def set_modes(root: Path) -> None:
    """Sets the mode of every folder to 0755 and of every file to 0644, whatever the umask was."""
    for path, _, is_folder in _entries(root):
        mode = FOLDER_MODE if is_folder else FILE_MODE
        if stat.S_IMODE(path.stat().st_mode) != mode:
            path.chmod(mode)


def tree_hash(root: Path) -> str:
    """Returns the SHA-256 of all paths, modes and contents, as 64 hexadecimal digits."""
    digest = hashlib.sha256()
    for path, name, is_folder in _entries(root):
        mode = stat.S_IMODE(path.stat().st_mode)
        content = "" if is_folder else hashlib.sha256(path.read_bytes()).hexdigest()
        digest.update(f"{name}\0{mode:o}\0{content}\n".encode())
    return digest.hexdigest()


def _entries(root: Path) -> Iterator[tuple[Path, str, bool]]:
    """Yields the path, relative name and `is_folder` of the root and everything below it.

    Folders come before their contents, sorted by name.
    """
    yield root, ".", True
    for path in sorted(root.rglob("*")):
        yield path, path.relative_to(root).as_posix(), path.is_dir()


def pack_folder(folder: Path, target: Path) -> Path:
    """Writes a zip of a folder, with the same bytes for one version of zlib. Returns its path."""
    with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as archive:
        for path in sorted(path for path in folder.rglob("*") if path.is_file()):
            entry = zipfile.ZipInfo(path.relative_to(folder).as_posix(), (1980, 1, 1, 0, 0, 0))
            entry.external_attr = (0o100000 | path.stat().st_mode & 0o777) << 16
            entry.compress_type = zipfile.ZIP_DEFLATED
            archive.writestr(entry, path.read_bytes())
    return target
