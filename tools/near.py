"""Runs the tests that cover a file: `make near FILE=functions/sageaudit/rules/judge.py`.

These are the tests of the same name and the tests that import the file. If they are few, the tests
that import its importers follow. A test file is run itself.
"""

from __future__ import annotations

import ast
import subprocess
import sys
from collections import defaultdict
from functools import cache
from pathlib import Path

from tools.house.sizes import imports

ROOT = Path(__file__).parent.parent
_MAX_FILES = 24
"""The most test files, including those of the importers of importers: they take about a minute."""


def nearest_tests(path: Path) -> list[Path]:
    """Returns the test files to run for a file, the nearest first."""
    if path.parts[0] == "tests" and path.name.startswith("test_"):
        return [path]
    users = _users()
    selected, ring, visited = dict.fromkeys(_mirror(path)), {path}, {path}
    while ring:
        ring = {user for file in ring for user in users[file]} - visited
        visited |= ring
        tests = sorted(file for file in ring if file.name.startswith("test_"))
        if selected and len(selected) + len(tests) > _MAX_FILES:
            break
        selected |= dict.fromkeys(tests)
        ring -= {*tests}
    return [*selected]


def _mirror(path: Path) -> list[Path]:
    """Returns the tests of the same name, in the folder of the same name; of a command, all of its
    own.
    """
    is_in_package = path.parts[:2] == ("functions", "sageaudit")
    inside = Path(*path.parts[2:]) if is_in_package else path
    if inside.parts[:2] == ("cli", "commands"):
        tests = sorted((ROOT / "tests/cli").glob(f"test_{path.stem}*.py"))
    else:
        tests = [ROOT / "tests" / inside.parent / f"test_{path.name}"]
    return [test.relative_to(ROOT) for test in tests if test.exists()]


@cache
def _users() -> dict[Path, set[Path]]:
    """Returns for each file of the project the files that import it."""
    files = [
        path.relative_to(ROOT)
        for folder in ("functions", "tests", "infra", "local", "tools")
        for path in (ROOT / folder).rglob("*.py")
    ]
    names = {_name(path): path for path in files}
    users: dict[Path, set[Path]] = defaultdict(set)
    for path in files:
        for name in imports(ast.parse((ROOT / path).read_text(encoding="utf-8"))):
            if name in names:
                users[names[name]].add(path)
    return users


def _name(path: Path) -> str:
    parts = path.parts[1:] if path.parts[0] == "functions" else path.parts
    return ".".join(parts).removesuffix(".py")


def main() -> int:
    """Runs the tests near the named file."""
    path = Path(sys.argv[1]).resolve().relative_to(ROOT)
    tests = nearest_tests(path)
    if not tests:
        print(f"no test imports {path}: make test runs all of them")
        return 1
    print(f"{len(tests)} test files: {', '.join(map(str, tests))}", flush=True)
    command = [sys.executable, "-m", "pytest", "-q", "--numprocesses", "auto", *map(str, tests)]
    return subprocess.run(command, cwd=ROOT, check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
