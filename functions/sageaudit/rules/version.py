"""The version of a ruleset: the package's version, and a digest of the files that decide.

A built package has its version in a file. A source checkout computes it.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from importlib.resources.abc import Traversable
from itertools import chain

from sageaudit import __version__

RULESET_PATHS = (
    "workflows/audit/judge.py",
    "domain/money.py",
    "domain/job",
    "domain/prices",
    "domain/usage",
    "domain/bill",
    "domain/resize",
    "domain/policy",
    "domain/audit",
    "rules",
)
"""The files that decide an audit: all code between a job's description and its audit.

Not included are `domain/reconcile`, which compares finished audits with a bill, `output`, which
only words them, and `adapters`, which read inputs. Prices have their own version.
"""
BUILT_VERSION_FILE = "data/ruleset.json"
"""The file in which a built package stores its version."""


def read_version(package: Traversable) -> str:
    """Returns the stored version of a package, or one computed from the sources."""
    version_file = package.joinpath(BUILT_VERSION_FILE)
    if version_file.is_file():
        return str(json.loads(version_file.read_text(encoding="utf-8"))["version"])
    return f"{__version__}+{digest(package)}"


def version_file_text(package: Traversable) -> str:
    """Returns the text that a build writes to `BUILT_VERSION_FILE`."""
    return json.dumps({"version": f"{__version__}+{digest(package)}"}) + "\n"


def digest(package: Traversable) -> str:
    """Returns eight hexadecimal digits that identify the deciding files, equal on every Python."""
    hashed = hashlib.sha256()
    sources = (_walk_files(package.joinpath(name), name) for name in RULESET_PATHS)
    for path, source in sorted(chain.from_iterable(sources)):
        hashed.update(f"{path}\0{source}\0".encode())
    return hashed.hexdigest()[:8]


def _walk_files(entry: Traversable, path: str) -> Iterator[tuple[str, str]]:
    if entry.is_dir():
        for child in entry.iterdir():
            yield from _walk_files(child, f"{path}/{child.name}")
    elif path.endswith(".py"):
        yield path, entry.read_text(encoding="utf-8")
