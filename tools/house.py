"""Counts what a reader of this code has to hold: lines, folders, lone modules, names, classes.

`python -m tools.house` prints one line a measure, with its goal. A module counts as lone where
exactly one other module of `functions/` imports it; `commands/` and `rules/` are left out of the
folders, since they hold a file for each thing.
"""

from __future__ import annotations

import ast
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from pathlib import Path

ROOT = Path(__file__).parents[1]
FUNCTIONS = ROOT / "functions"
PACKAGE = FUNCTIONS / "sageaudit"
_A_FILE_EACH = ("commands", "rules")
_ALERT = ("domain/alert", "workflows/notify")


def main() -> None:
    """Prints the measures."""
    trees = {
        _name(path): ast.parse(path.read_text(encoding="utf-8"))
        for path in _files(FUNCTIONS)
        if path.name != "__init__.py"
    }
    importers = importers_of(trees)
    lone = [name for name, users in importers.items() if len(users) == 1]
    folder, modules = largest_folder()
    twice = [name for name, count in class_names(trees).items() if count > 1]
    rows = (
        ("lines of functions/", lines(FUNCTIONS), 50_000),
        ("lines of tests/", lines(ROOT / "tests"), 62_000),
        ("modules directly in sageaudit/", len(list(_modules(PACKAGE))), 5),
        (f"largest folder: {folder}", modules, 20),
        ("modules with exactly one importer", len(lone), 60),
        ("class names that stand for several things", len(twice), 0),
        ("classes for one decision to alert", sum(_alert_classes(trees)), 8),
    )
    for what, count, goal in rows:
        print(f"{what:<58}{count:>8,}  at most {goal:,}")
    for name in twice:
        print(f"  class {name}")


def lines(folder: Path) -> int:
    """All lines of all Python files below a folder."""
    return sum(len(path.read_text(encoding="utf-8").splitlines()) for path in _files(folder))


def largest_folder() -> tuple[str, int]:
    """The folder of the package with the most modules directly in it."""
    folders = {path.parent for path in _files(PACKAGE)}
    counted = {
        folder.relative_to(PACKAGE).as_posix(): len(list(_modules(folder)))
        for folder in folders
        if not set(folder.relative_to(PACKAGE).parts) & set(_A_FILE_EACH)
    }
    return max(counted.items(), key=lambda row: row[1])


def importers_of(trees: Mapping[str, ast.Module]) -> dict[str, set[str]]:
    """For each module, the other modules that import it."""
    found: dict[str, set[str]] = defaultdict(set)
    for name, tree in trees.items():
        for imported in imports(tree):
            if imported in trees and imported != name:
                found[imported].add(name)
    return found


def imports(tree: ast.Module) -> Iterator[str]:
    """The names of what a module imports; of `from a import b` both `a` and `a.b`."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield node.module
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def class_names(trees: Mapping[str, ast.Module]) -> Counter[str]:
    """How often each class name is defined."""
    return Counter(
        node.name for tree in trees.values() for node in tree.body if isinstance(node, ast.ClassDef)
    )


def _alert_classes(trees: Mapping[str, ast.Module]) -> Iterator[int]:
    for name, tree in trees.items():
        short = name.removeprefix("sageaudit.").replace(".", "/")
        if short.startswith(_ALERT):
            yield sum(isinstance(node, ast.ClassDef) for node in tree.body)


def _files(folder: Path) -> list[Path]:
    return sorted(folder.rglob("*.py"))


def _modules(folder: Path) -> Iterator[Path]:
    return (path for path in folder.glob("*.py") if path.name != "__init__.py")


def _name(path: Path) -> str:
    return ".".join(path.relative_to(FUNCTIONS).with_suffix("").parts)


if __name__ == "__main__":
    main()
