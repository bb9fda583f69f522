"""Prints files and functions above the usual size that have grown since the last commit.

This is advice, not a limit. A longer one often mixes two ideas, which can be split; one idea stays
whole. `--all` also prints those that did not grow.
"""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parent.parent
FOLDERS = ("functions", "infra", "local", "tools")
USUAL_FILE_LINES = 300
USUAL_FUNCTION_LINES = 40


def functions(source: str) -> Iterator[tuple[str, int]]:
    """Yields each function of a file with its number of lines, without the docstring."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            documented = ast.get_docstring(node, clean=False) is not None
            body = node.body[1] if documented and len(node.body) > 1 else node.body[0]
            first = node.lineno if not documented else body.lineno
            yield node.name, (node.end_lineno or 0) - first + 1


def large_parts(source: str) -> dict[str, int]:
    """Returns what is above the usual size in a file: lines by name, the file's under an empty
    name.
    """
    sizes = {"": len(source.splitlines())} if len(source.splitlines()) > USUAL_FILE_LINES else {}
    return sizes | {
        name: count for name, count in functions(source) if count > USUAL_FUNCTION_LINES
    }


def committed_source(place: str) -> str:
    """Returns the file as last committed; empty if it is new, or nothing was committed."""
    command = ["git", "show", f"HEAD:{place}"]
    process = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    return process.stdout if process.returncode == 0 else ""


def oversized_parts(*, grown_only: bool) -> Iterator[str]:
    """Yields one line for each file and function above the usual size."""
    for path in sorted(path for folder in FOLDERS for path in (ROOT / folder).rglob("*.py")):
        place = path.relative_to(ROOT).as_posix()
        if not (sizes := large_parts(path.read_text(encoding="utf-8"))):
            continue
        before = large_parts(committed_source(place)) if grown_only else {}
        for name, lines in sizes.items():
            usual = USUAL_FUNCTION_LINES if name else USUAL_FILE_LINES
            if lines > before.get(name, 0 if before or not grown_only else usual):
                yield f"{place}: {name or 'it'} has {lines} lines, usually up to {usual}"


if __name__ == "__main__":
    for line in oversized_parts(grown_only="--all" not in sys.argv):
        print(line)
