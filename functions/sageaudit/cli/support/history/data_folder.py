"""The folder where programs of a user keep their data, as each system wants it."""

from __future__ import annotations

import os
import sys
from pathlib import Path

from sageaudit.errors import BadUsage

_NAME = "sageaudit"


def data_folder() -> Path:
    """The folder of this tool; it may not exist yet. Raises BadUsage for a user without a home.

    Below XDG_DATA_HOME where it is set; else ~/Library/Application Support on macOS, %LOCALAPPDATA%
    on Windows, ~/.local/share elsewhere.
    """
    if chosen := _named("XDG_DATA_HOME"):
        return chosen / _NAME
    if sys.platform == "darwin":
        return _home() / "Library" / "Application Support" / _NAME
    if sys.platform == "win32":
        return (_named("LOCALAPPDATA") or _home() / "AppData" / "Local") / _NAME
    return _home() / ".local" / "share" / _NAME


def made_data_folder() -> Path:
    """The folder, made where it is missing, for its user alone. Raises BadUsage."""
    folder = data_folder()
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        raise BadUsage(f"{folder} cannot be made: {error.strerror or error}") from error
    return folder


def _named(variable: str) -> Path | None:
    """The folder that a variable names; a relative one is ignored, as the XDG standard says."""
    path = Path(os.environ.get(variable, ""))
    return path if path.is_absolute() else None


def _home() -> Path:
    try:
        return Path.home()
    except RuntimeError as error:
        raise BadUsage("which folder is your home? set HOME, or name files yourself") from error
