"""The folder where programs of a user keep their data, as each system wants it."""

from __future__ import annotations

import os
import sys
from pathlib import Path

from sageaudit.errors import BadUsage

_NAME = "sageaudit"


def data_folder() -> Path:
    """The folder of this tool; it may not exist yet. Raises BadUsage for a user without a home.

    XDG_DATA_HOME or ~/.local/share; ~/Library/Application Support on macOS; %LOCALAPPDATA% on
    Windows.
    """
    if sys.platform == "darwin":
        return _home() / "Library" / "Application Support" / _NAME
    if sys.platform == "win32":
        return (_named("LOCALAPPDATA") or _home() / "AppData" / "Local") / _NAME
    return (_named("XDG_DATA_HOME") or _home() / ".local" / "share") / _NAME


def _named(variable: str) -> Path | None:
    """The folder that a variable names; a relative one is ignored, as the XDG standard says."""
    path = Path(os.environ.get(variable, ""))
    return path if path.is_absolute() else None


def _home() -> Path:
    try:
        return Path.home()
    except RuntimeError as error:
        raise BadUsage("which folder is your home? set HOME, or name files yourself") from error
