"""The version of a ruleset: the package's, and a digest of the files that decide.

A built package carries its version in a file; a source checkout computes it when asked.
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
    "domain/job",
    "domain/prices",
    "domain/usage",
    "domain/bill",
    "domain/resize",
    "domain/policy",
    "domain/audit",
    "rules",
)
"""Everything between a job's description and its audit. Left out: `domain/reconcile`, which
compares finished audits with a bill, the words that are chosen (`output`), and where inputs come
from (`adapters`): prices have a version of their own."""
BUILT_VERSION_FILE = "data/ruleset.json"
"""Where a built package keeps its version."""


def read_version(package: Traversable) -> str:
    """The built version of a package's folder, or what its sources say where there is none."""
    built = package.joinpath(BUILT_VERSION_FILE)
    if built.is_file():
        return str(json.loads(built.read_text(encoding="utf-8"))["version"])
    return f"{__version__}+{digest(package)}"


def version_file_text(package: Traversable) -> str:
    """What a build writes to `BUILT`."""
    return json.dumps({"version": f"{__version__}+{digest(package)}"}) + "\n"


def digest(package: Traversable) -> str:
    """Eight hexadecimal digits of the files that decide, the same on every Python."""
    hashed = hashlib.sha256()
    sources = (_walk_files(package.joinpath(name), name) for name in RULESET_PATHS)
    for path, source in sorted(chain.from_iterable(sources)):
        hashed.update(f"{path}\0{source}\0".encode())
    return hashed.hexdigest()[:8]


def _walk_files(entry: Traversable, path: str) -> Iterator[tuple[str, str]]:
    if entry.is_dir():
        for inner in entry.iterdir():
            yield from _walk_files(inner, f"{path}/{inner.name}")
    elif path.endswith(".py"):
        yield path, entry.read_text(encoding="utf-8")
