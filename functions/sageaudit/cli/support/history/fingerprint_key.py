"""The key of the fingerprints that this machine's scans store: random, in the user's data folder.

A fingerprint is a hash of image, data, entry point and hyperparameters, by which runs with the same
settings are found. Without the key nobody can guess settings from it.
"""

from __future__ import annotations

import os
import secrets
import stat
from contextlib import suppress
from functools import cache

from sageaudit.cli.support.history.data_folder import data_folder
from sageaudit.errors import BadUsage

_BYTES = 32
_PRIVATE = stat.S_IRUSR | stat.S_IWUSR


@cache
def fingerprint_key() -> bytes | None:
    """The key, made when it is first asked for.

    None where it can be neither read nor kept: runs are then audited without a fingerprint.
    """
    with suppress(OSError, BadUsage):
        path = data_folder() / "fingerprint.key"
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        with suppress(FileExistsError):
            made = os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, _PRIVATE)
            with os.fdopen(made, "wb") as file:
                file.write(secrets.token_bytes(_BYTES))
        key = path.read_bytes()
        return key if len(key) == _BYTES else None
    return None
