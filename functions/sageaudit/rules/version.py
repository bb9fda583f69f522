"""The version of a ruleset: a digest of the code that decides.

It changes with every line that can change a judgement, and with no docstring, comment or blank
line: a rule's page may be corrected without a new ruleset. A built package carries its version in a
file; a source checkout computes it when asked.
"""

from __future__ import annotations

import hashlib
import io
import json
import tokenize
from collections.abc import Iterator
from importlib import resources
from importlib.resources.abc import Traversable

from sageaudit import __version__

DECIDES = (
    "workflows/audit/judge.py",
    "domain/job",
    "domain/prices",
    "domain/usage",
    "domain/bill",
    "domain/policy",
    "domain/audit",
    "rules",
)
"""Everything between a job's description and its audit. Left out: `domain/reconcile`, which
compares finished audits with a bill, the words that are chosen (`output`), and where inputs come
from (`adapters`): prices have a version of their own."""
BUILT = "data/ruleset.json"
"""Where a built package keeps its version."""

Position = tuple[int, int]
"""A line from 1, and a column from 0 in characters."""


def version_of(package: Traversable) -> str:
    """The built version of a package's folder, or what its sources say where there is none."""
    built = package.joinpath(BUILT)
    if built.is_file():
        return str(json.loads(built.read_text(encoding="utf-8"))["version"])
    return f"{__version__}+{digest(package)}"


def installed_version() -> str:
    """The version of the package that is running."""
    return version_of(resources.files("sageaudit"))


def built_text(package: Traversable) -> str:
    """What a build writes to `BUILT`."""
    return json.dumps({"version": f"{__version__}+{digest(package)}"}) + "\n"


def digest(package: Traversable) -> str:
    """Eight hexadecimal digits of the code that decides, the same on every Python."""
    hashed = hashlib.sha256()
    for path, source in sorted(_sources(package)):
        hashed.update(f"{path}\0{deciding_lines(source)}\0".encode())
    return hashed.hexdigest()[:8]


def deciding_lines(source: str) -> str:
    """A module without docstrings, comments and blank lines."""
    lines = source.split("\n")
    for first, last in sorted(_undecided(source), reverse=True):
        (start, left), (end, right) = first, last
        lines[start - 1 : end] = [lines[start - 1][:left] + lines[end - 1][right:]]
    return "\n".join(line.rstrip() for line in lines if line.strip())


def _undecided(source: str) -> Iterator[tuple[Position, Position]]:
    """Where comments are, and statements that are only a string: of a module, a class, a function
    or an attribute.
    """
    opens = True
    lone: list[tokenize.TokenInfo] = []
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type == tokenize.COMMENT:
            yield token.start, token.end
        elif token.type == tokenize.NEWLINE and len(lone) == 1:
            yield lone[0].start, lone[0].end
        if token.type in {tokenize.COMMENT, tokenize.NL}:
            continue
        lone = [token] if token.type == tokenize.STRING and opens else []
        begins = token.type in {tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT}
        opens = begins or token.string == ";"


def _sources(package: Traversable) -> Iterator[tuple[str, str]]:
    for name in DECIDES:
        yield from _walked(package.joinpath(name), name)


def _walked(entry: Traversable, path: str) -> Iterator[tuple[str, str]]:
    if entry.is_dir():
        for inner in entry.iterdir():
            yield from _walked(inner, f"{path}/{inner.name}")
    elif path.endswith(".py"):
        yield path, entry.read_text(encoding="utf-8")
