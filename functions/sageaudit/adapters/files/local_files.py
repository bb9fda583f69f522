"""The user's files: sageaudit's data folder, safe writes, and hints about wrong file formats."""

from __future__ import annotations

import codecs
import os
import re
import secrets
import stat
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path

from sageaudit.errors import BadUsage

_MODE = 0o644
_MAX_PREFIX_LENGTH = 40
"""How many characters of a file's name the name of its temporary file has."""
_HEAD_BYTES = 4096
_PLAN_TEXT = re.compile(
    rb"Terraform (used the selected providers|will perform)"
    rb"|^\s*(\x1b\[\d*m)*\s*# \S+ (will|must) be ",
    re.MULTILINE,
)
_MAKE_PLAN = "`terraform show -json PLANFILE > plan.json` makes it JSON"
_FORMS: tuple[tuple[re.Pattern[bytes], str, str], ...] = (
    (re.compile(rb"\x1f\x8b"), "compressed by gzip", "`gunzip {path}` unpacks it"),
    (
        re.compile(rb"PK\x03\x04"),
        "a ZIP archive, as `terraform plan -out` writes",
        "`terraform show -json {path} > plan.json` makes a plan JSON",
    ),
    (
        re.compile(rb'\{"@level"'),
        "the log of `terraform plan -json`",
        "write the plan with `terraform plan -out PLANFILE`, then " + _MAKE_PLAN,
    ),
    (re.compile(rb"\s*\[\s*[{\]\"\d]"), "a list", ""),
)
"""Wrong formats: a pattern of a file's first bytes, a description, and how to convert the file."""
_LOOP = "{path} is a link that leads to itself: name another file"
_NAME = "sageaudit"
_KEY_BYTES = 32
_PRIVATE = stat.S_IRUSR | stat.S_IWUSR


@contextmanager
def atomic_write(path: Path, mode: int | None = None) -> Iterator[Path]:
    """Yields a temporary file beside `path`, which replaces `path` at the end of the block.

    The file gets `mode`, by default that of the replaced file. A link's target is replaced; a
    device or pipe is written directly. Raises BadUsage if the file cannot be written, and keeps an
    older file.
    """
    try:
        if path.exists() and not path.is_file():
            yield path
            return
        target = path.resolve()
        if target.is_symlink():  # Python 3.13 and later raise no error
            raise BadUsage(_LOOP.format(path=path))
        handle, name = tempfile.mkstemp(
            dir=target.parent, prefix=f".{target.name[:_MAX_PREFIX_LENGTH]}."
        )
        os.close(handle)
        temporary = Path(name)
        try:
            yield temporary
            file_mode = target.stat().st_mode if target.exists() else _MODE
            temporary.chmod(file_mode if mode is None else mode)
            temporary.replace(target)
        finally:
            with suppress(OSError):
                temporary.unlink(missing_ok=True)
    except BrokenPipeError as error:
        raise BadUsage(f"the reader of {path} has closed it: name another file") from error
    except OSError as error:
        reason = error.strerror or str(error)
        raise BadUsage(f"{path} cannot be written ({reason}): name another file") from error
    except RuntimeError as error:
        if "loop" not in str(error).lower():
            raise
        raise BadUsage(_LOOP.format(path=path)) from error


def write_text(path: Path, text: str, mode: int | None = None) -> None:
    """Writes a whole file. Raises BadUsage if it cannot be written."""
    with atomic_write(path, mode) as temporary:
        temporary.write_text(text, encoding="utf-8", errors="replace")


def wrong_format_reason(path: Path, hint: str) -> str | None:
    """Returns why a file has the wrong format, such as `is a folder: ...`; None if not known.

    The reason ends with what to do: `hint`, if the format suggests nothing better.
    """
    if path.is_dir():
        return f"is a folder: {hint}"
    if not path.is_file():  # opening a pipe waits until somebody writes it
        return None
    with suppress(OSError), path.open("rb") as file:
        return wrong_format_reason_of_bytes(str(path), file.read(_HEAD_BYTES), hint)
    return None


def wrong_format_reason_of_bytes(path: str, content: bytes, hint: str) -> str | None:
    """Returns why `content` has the wrong format, and what to do; None if not known.

    `hint`: as for `wrong_format_reason`.
    """
    content = content.removeprefix(codecs.BOM_UTF8)
    if _PLAN_TEXT.search(content, 0, _HEAD_BYTES):
        return f"is a Terraform plan as text: {_MAKE_PLAN}"
    for beginning, kind, specific_hint in _FORMS:
        if beginning.match(content):
            return f"is {kind}: {specific_hint.format(path=path) or hint}"
    return None


def data_folder() -> Path:
    """Returns sageaudit's data folder, which may not exist yet.

    It is in XDG_DATA_HOME if that is set. Otherwise it is in ~/Library/Application Support on
    macOS, %LOCALAPPDATA% on Windows, and ~/.local/share elsewhere. Raises BadUsage without a home
    folder.
    """
    if xdg_folder := _folder_from_variable("XDG_DATA_HOME"):
        return xdg_folder / _NAME
    if sys.platform == "darwin":
        return _home() / "Library" / "Application Support" / _NAME
    if sys.platform == "win32":
        return (_folder_from_variable("LOCALAPPDATA") or _home() / "AppData" / "Local") / _NAME
    return _home() / ".local" / "share" / _NAME


@cache
def fingerprint_key() -> bytes | None:
    """Returns this machine's random key for fingerprints, creating it if needed.

    Runs with equal settings have equal fingerprints. Without the key, nobody can guess settings
    from them. Returns None if the key can be neither read nor stored: runs then have no
    fingerprint.
    """
    with suppress(OSError, BadUsage):
        path = data_folder() / "fingerprint.key"
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        with suppress(FileExistsError):
            descriptor = os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, _PRIVATE)
            with os.fdopen(descriptor, "wb") as file:
                file.write(secrets.token_bytes(_KEY_BYTES))
        key = path.read_bytes()
        return key if len(key) == _KEY_BYTES else None
    return None


def _folder_from_variable(variable: str) -> Path | None:
    """Returns the folder in a variable; None for a relative path, as the XDG standard requires."""
    path = Path(os.environ.get(variable, ""))
    return path if path.is_absolute() else None


def _home() -> Path:
    try:
        return Path.home()
    except RuntimeError as error:
        raise BadUsage("which folder is your home? set HOME, or name files yourself") from error
