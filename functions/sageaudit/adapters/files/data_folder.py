"""The folder where this tool keeps a user's data, and the key of their fingerprints in it."""

from __future__ import annotations

import os
import secrets
import stat
import sys
from contextlib import suppress
from functools import cache
from pathlib import Path

from sageaudit.errors import BadUsage

_NAME = "sageaudit"
_KEY_BYTES = 32
_PRIVATE = stat.S_IRUSR | stat.S_IWUSR


def data_folder() -> Path:
    """The folder of this tool; it may not exist yet. Raises BadUsage for a user without a home.

    As each system wants it: below XDG_DATA_HOME where it is set; else ~/Library/Application Support
    on macOS, %LOCALAPPDATA% on Windows, ~/.local/share elsewhere.
    """
    if chosen := _named("XDG_DATA_HOME"):
        return chosen / _NAME
    if sys.platform == "darwin":
        return _home() / "Library" / "Application Support" / _NAME
    if sys.platform == "win32":
        return (_named("LOCALAPPDATA") or _home() / "AppData" / "Local") / _NAME
    return _home() / ".local" / "share" / _NAME


@cache
def fingerprint_key() -> bytes | None:
    """The random key of the fingerprints that this machine's scans store, made when first needed.

    A fingerprint is a hash of image, data, entry point and hyperparameters, by which runs with the
    same settings are found; without the key nobody can guess settings from it. None where it can be
    neither read nor kept: runs are then audited without a fingerprint.
    """
    with suppress(OSError, BadUsage):
        path = data_folder() / "fingerprint.key"
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        with suppress(FileExistsError):
            made = os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, _PRIVATE)
            with os.fdopen(made, "wb") as file:
                file.write(secrets.token_bytes(_KEY_BYTES))
        key = path.read_bytes()
        return key if len(key) == _KEY_BYTES else None
    return None


def _named(variable: str) -> Path | None:
    """The folder that a variable names; a relative one is ignored, as the XDG standard says."""
    path = Path(os.environ.get(variable, ""))
    return path if path.is_absolute() else None


def _home() -> Path:
    try:
        return Path.home()
    except RuntimeError as error:
        raise BadUsage("which folder is your home? set HOME, or name files yourself") from error
