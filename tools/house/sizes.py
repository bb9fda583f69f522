"""Counts lines, files, folders, classes and importers of Python files."""

from __future__ import annotations

import ast
import tokenize
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from pathlib import Path

_A_FILE_EACH = ("commands", "rules")
_ALERT = ("domain/alert", "workflows/notify")


def lines(folder: Path) -> int:
    """Returns the number of lines of all Python files below a folder."""
    return sum(len(path.read_text(encoding="utf-8").splitlines()) for path in files(folder))


def files(folder: Path) -> list[Path]:
    """Returns all Python files below a folder, including `__init__.py`; none if it does not
    exist.
    """
    return sorted(folder.rglob("*.py"))


def classes(trees: Mapping[str, ast.Module]) -> int:
    """Returns the number of classes, including those within classes and functions."""
    return sum(isinstance(node, ast.ClassDef) for tree in trees.values() for node in ast.walk(tree))


def skips(folder: Path) -> int:
    """Returns the number of comments `# fmt: skip` below a folder. The text in a string does not
    count.
    """
    return sum(
        token.type == tokenize.COMMENT and "fmt: skip" in token.string
        for path in files(folder)
        for token in _tokens(path)
    )


def _tokens(path: Path) -> Iterator[tokenize.TokenInfo]:
    with path.open("rb") as file:
        yield from tokenize.tokenize(file.readline)


def import_share(trees: Mapping[str, ast.Module], whole: int) -> float:
    """Returns the percent of `whole` lines that belong to import statements."""
    counted = sum(
        (node.end_lineno or node.lineno) - node.lineno + 1
        for tree in trees.values()
        for node in ast.walk(tree)
        if isinstance(node, ast.Import | ast.ImportFrom)
    )
    return 100 * counted / whole if whole else 0.0


def modules(folder: Path) -> Iterator[Path]:
    """Returns the modules directly in a folder, without `__init__.py`."""
    return (path for path in folder.glob("*.py") if path.name != "__init__.py")


def largest_folder(package: Path) -> tuple[str, int]:
    """Returns the folder of the package with the most modules directly in it, and their number.

    `commands/` and `rules/` are left out, because they have a file for each command or rule.
    """
    folders = {path.parent for path in files(package)}
    counted = {
        folder.relative_to(package).as_posix(): len(list(modules(folder)))
        for folder in sorted(folders)
        if not set(folder.relative_to(package).parts) & set(_A_FILE_EACH)
    }
    return max(counted.items(), key=lambda row: row[1])


def lone_modules(trees: Mapping[str, ast.Module]) -> list[str]:
    """Returns the modules that exactly one other module of `functions/` imports.

    A package's `__init__` is imported with each of its modules, and does not count.
    """
    users: dict[str, set[str]] = defaultdict(set)
    for name, tree in trees.items():
        for imported in imports(tree):
            if imported in trees and imported != name:
                users[imported].add(name)
    return sorted(name for name, importers in users.items() if len(importers) == 1)


def imports(tree: ast.Module) -> Iterator[str]:
    """Yields the names that a module imports; for `from a import b` both `a` and `a.b`."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield node.module
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def ambiguous_names(trees: Mapping[str, ast.Module]) -> list[str]:
    """Returns the class names that several modules define at their top level."""
    counted = Counter(
        node.name for tree in trees.values() for node in tree.body if isinstance(node, ast.ClassDef)
    )
    return sorted(name for name, count in counted.items() if count > 1)


def alert_classes(trees: Mapping[str, ast.Module]) -> list[str]:
    """Returns the classes of domain/alert and workflows/notify."""
    return [
        f"{name}.{node.name}"
        for name, tree in trees.items()
        if name.removeprefix("sageaudit.").replace(".", "/").startswith(_ALERT)
        for node in tree.body
        if isinstance(node, ast.ClassDef)
    ]
