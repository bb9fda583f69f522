"""The folder of this user's own data: the history of scans, and refreshed price tables."""

from __future__ import annotations

import os
import sys
from pathlib import Path

from sageaudit.errors import BadUsage

_NAME = "sageaudit"


def path() -> Path:
    """Where the platform keeps data of programs; XDG_DATA_HOME wins. It may not exist."""
    if chosen := os.environ.get("XDG_DATA_HOME"):
        return Path(chosen) / _NAME
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Application Support" / _NAME
    if sys.platform == "win32":
        local = os.environ.get("LOCALAPPDATA")
        return Path(local) / _NAME if local else Path.home() / "AppData" / "Local" / _NAME
    return Path.home() / ".local" / "share" / _NAME


def made() -> Path:
    """The folder, made where it is missing, readable by its user alone. Raises BadUsage."""
    folder = path()
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        raise BadUsage(f"{folder} cannot be made: {error.strerror or error}") from error
    return folder
