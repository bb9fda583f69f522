"""The Lambda asset of a release, as a ZIP file: its version, and a copy with another policy."""

from __future__ import annotations

import json
import zipfile
import zlib
from pathlib import Path
from shutil import copyfileobj

from sageaudit.adapters.files import stored_policy
from sageaudit.adapters.files.local_files import atomic_write, wrong_format_reason
from sageaudit.domain.policy.policy import Policy
from sageaudit.errors import BadUsage
from sageaudit.rules.version import BUILT_VERSION_FILE

_VERSION_FILE = f"sageaudit/{BUILT_VERSION_FILE}"
_HINT = "give the file sageaudit-lambda-VERSION.zip of a release"
_DAMAGED = (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, RuntimeError)
"""What zipfile raises for files that are damaged, encrypted or compressed in another way."""


def read_version(asset: Path) -> str:
    """Returns the version of the rules in an asset. Raises BadUsage if the file is not an asset."""
    try:
        with zipfile.ZipFile(asset) as archive:
            archive.getinfo(stored_policy.FILE_NAME)
            return str(json.loads(archive.read(_VERSION_FILE))["version"])
    except FileNotFoundError as error:
        raise BadUsage(f"{asset} does not exist: {_HINT}") from error
    except OSError as error:
        reason = wrong_format_reason(asset, _HINT) or f"cannot be read ({error.strerror}): {_HINT}"
        raise BadUsage(f"{asset} {reason}") from error
    except (*_DAMAGED, LookupError, TypeError, ValueError) as error:
        raise BadUsage(f"{asset} is not an asset of sageaudit, or damaged: {_HINT}") from error


def write_with_policy(asset: Path, target: Path, policy: Policy) -> None:
    """Writes a copy of an asset that has this policy. The same inputs give the same bytes.

    Raises BadUsage if the asset is damaged, or if `target` cannot be written.
    """
    text = stored_policy.to_text(policy)
    try:
        with (
            atomic_write(target) as temporary,
            zipfile.ZipFile(asset) as archive,
            zipfile.ZipFile(temporary, "w") as copy,
        ):
            for entry in archive.infolist():
                if entry.filename == stored_policy.FILE_NAME:
                    copy.writestr(entry, text)
                    continue
                with archive.open(entry) as source, copy.open(entry, "w") as packed:
                    copyfileobj(source, packed)
    except _DAMAGED as error:
        raise BadUsage(f"{asset} is damaged: {_HINT}") from error
