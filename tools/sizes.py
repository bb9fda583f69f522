"""Prints files and functions that are longer than usual here: advice for a reader, not a limit.

A longer one often mixes two ideas, which can be split. One that is a single idea stays whole.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parent.parent
FOLDERS = ("docs", "functions", "infra", "local", "tools")
USUAL_FILE_LINES = 300
USUAL_FUNCTION_LINES = 40


def functions(source: str) -> Iterator[tuple[str, int]]:
    """Each function of a file with its number of lines, without the docstring."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            documented = ast.get_docstring(node, clean=False) is not None
            body = node.body[1] if documented and len(node.body) > 1 else node.body[0]
            first = node.lineno if not documented else body.lineno
            yield node.name, (node.end_lineno or 0) - first + 1


def advice() -> Iterator[str]:
    """One line for each file and function above the usual size."""
    for path in sorted(path for folder in FOLDERS for path in (ROOT / folder).rglob("*.py")):
        source = path.read_text(encoding="utf-8")
        place = path.relative_to(ROOT)
        lines = len(source.splitlines())
        if lines > USUAL_FILE_LINES:
            yield f"{place}: {lines} lines, usually up to {USUAL_FILE_LINES}"
        for name, long in functions(source):
            if long > USUAL_FUNCTION_LINES:
                yield f"{place}: {name} has {long} lines, usually up to {USUAL_FUNCTION_LINES}"


if __name__ == "__main__":
    print("\n".join(advice()))
