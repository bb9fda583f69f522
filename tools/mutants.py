"""Prints small code changes that no test notices: `make mutants N=10 SEED=1 OF=shell`.

A mutant is one changed expression: another sign, a whole number one higher, any other number a
tenth higher, None returned, half of a condition. The seed chooses them in a copy of the project,
from the core (which decides) or from the shell (which calls AWS, files and people). A mutant that
survives needs a test, or makes no difference. The nearest tests run first, all tests only for a
mutant that may survive.
"""

from __future__ import annotations

import ast
import copy
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from textwrap import shorten
from typing import Any

from tools.near import nearest_tests

ROOT = Path(__file__).parent.parent
FUNCTIONS = Path("functions")
MODULES = {
    "core": ("domain", "rules", "workflows"),
    "shell": ("workflows", "adapters", "cli/commands"),
}
HANDLERS = ("audit", "notify", "deliver", "sweep", "watch", "digest")
"""The handlers, which are in the shell too, but outside the package."""
_OF_CORE = (
    *("domain", "rules", "workflows", "output", "queries", "adapters", "properties"),
    *("recorded", "labelled", "cli"),
)
_OF_SHELL = ("integration", "faults", "fuzz", "api")
TESTS = {
    "core": tuple(f"tests/{name}" for name in _OF_CORE),
    "shell": tuple(f"tests/{name}" for name in (*_OF_CORE, *_OF_SHELL)),
}
"""By part, the tests that check its results: only they can notice a mutant."""
_SWAPPED: dict[type[ast.AST], Any] = {
    ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt, ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq, ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.Div, ast.Div: ast.Mult,
    ast.And: ast.Or, ast.Or: ast.And,
}  # fmt: skip
_SKIPPED = {"annotation", "returns", "decorator_list"}
_SEQUENCES = {ast.JoinedStr, ast.List, ast.Tuple, ast.ListComp}  # joined, never added up


@dataclass(frozen=True)
class Mutant:
    """One expression of a module, what replaces it, and the whole module with it."""

    path: Path
    line: int
    before: str
    after: str
    module: bytes


def _mutate(node: ast.expr) -> ast.expr | None:
    """Returns the expression with one change; None if there is nothing to change."""
    mutated = copy.deepcopy(node)
    match mutated:
        case ast.Compare(ops=[operator, *_]) if type(operator) in _SWAPPED:
            mutated.ops[0] = _SWAPPED[type(operator)]()
        case ast.BinOp(left, _, right) if {type(left), type(right)} & _SEQUENCES:
            return None
        case ast.BoolOp(op=operator) | ast.BinOp(op=operator) if type(operator) in _SWAPPED:
            mutated.op = _SWAPPED[type(operator)]()
        case ast.Constant(int() as value):
            mutated.value = not value if isinstance(value, bool) else value + 1
        case ast.Constant(float() as value):
            mutated.value = value * 1.1
        case ast.Call(ast.Name("Decimal"), [ast.Constant(str() as value)]):
            mutated.args = [ast.Constant(str(Decimal(value) * Decimal("1.1")))]
        case ast.UnaryOp(ast.Not(), operand):
            return operand
        case ast.Call(ast.Name("min" | "max" as name)):
            mutated.func = ast.Name("max" if name == "min" else "min")
        case _:
            return None
    return mutated


def _mutations(node: ast.AST) -> Iterator[tuple[ast.expr, ast.expr]]:
    """Yields each expression below a node with a changed one, without annotations and f-strings."""
    if isinstance(node, ast.JoinedStr):
        return
    if isinstance(node, ast.expr) and (mutated := _mutate(node)) is not None:
        yield node, mutated
    if isinstance(node, ast.If):
        yield from ((node.test, ast.Constant(value)) for value in (True, False))
    if isinstance(node, ast.Return) and node.value and ast.unparse(node.value) != "None":
        yield node.value, ast.Constant(None)
    for name, value in ast.iter_fields(node):
        for child in value if isinstance(value, list) else [value]:
            if isinstance(child, ast.AST) and name not in _SKIPPED:
                yield from _mutations(child)


def mutants(path: Path, root: Path = ROOT) -> Iterator[Mutant]:
    """Yields every mutant of a module."""
    text = (root / path).read_bytes()
    rows = text.splitlines(keepends=True)
    for node, mutated in _mutations(ast.parse(text)):
        start = sum(map(len, rows[: node.lineno - 1])) + node.col_offset
        stop = sum(map(len, rows[: (node.end_lineno or 0) - 1])) + (node.end_col_offset or 0)
        module = text[:start] + f"({ast.unparse(mutated)})".encode() + text[stop:]
        yield Mutant(path, node.lineno, ast.unparse(node), ast.unparse(mutated), module)


def files(part: str, root: Path = ROOT) -> list[Path]:
    """Returns the modules of the core or the shell."""
    folders = [FUNCTIONS / "sageaudit" / name for name in MODULES[part]]
    folders += [FUNCTIONS / name for name in HANDLERS if part == "shell"]
    return sorted(file for folder in folders for file in (root / folder).rglob("*.py"))


def choose(count: int, seed: int, part: str = "core", root: Path = ROOT) -> list[Mutant]:
    """Returns `count` mutants by the seed, at most one of a module until each module has one."""
    modules = [
        module_mutants
        for file in files(part, root)
        if (module_mutants := [*mutants(file.relative_to(root), root)])
    ]
    dice = random.Random(seed)
    sizes = (min(len(modules), count - start) for start in range(0, count, len(modules)))
    return [dice.choice(module) for size in sizes for module in dice.sample(modules, size)]


def _has_passed(root: Path, tests: Sequence[str]) -> bool:
    command = [sys.executable, "-m", "pytest", "-x", "-q", "-p", "no:cacheprovider", *tests]
    command += ["-n", "auto", "--dist", "loadfile"] if len(tests) > 1 else []
    env = {**os.environ, "PYTHONPATH": str(root / "functions")}
    process = subprocess.Popen(
        command, cwd=root, env=env, stdout=subprocess.DEVNULL, start_new_session=True
    )
    try:
        return process.wait(600) == 0
    except subprocess.TimeoutExpired:
        return False
    finally:
        with suppress(ProcessLookupError):  # a worker may be in an endless loop
            os.killpg(process.pid, signal.SIGKILL)


def can_survive(mutant: Mutant, part: str, root: Path) -> bool:
    """Whether no test fails with the mutant: first the tests near it, then all of its part."""
    nearest = [str(path) for path in nearest_tests(mutant.path) if (root / path).exists()]
    original = (root / mutant.path).read_bytes()
    (root / mutant.path).write_bytes(mutant.module)
    try:
        return (not nearest or _has_passed(root, nearest)) and _has_passed(root, TESTS[part])
    finally:
        (root / mutant.path).write_bytes(original)


def main(count: int, seed: int, part: str) -> None:
    """Prints whether each mutant survives."""
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder) / ROOT.name
        shutil.copytree(ROOT, root, ignore=shutil.ignore_patterns(".*", "build", "cdk.out"))
        if not _has_passed(root, TESTS[part]):
            sys.exit("The tests must pass without a mutant first.")
        for mutant in choose(count, seed, part):
            result = "SURVIVES" if can_survive(mutant, part, root) else "dies"
            before, after = (shorten(text, 70) for text in (mutant.before, mutant.after))
            print(f"{result} {mutant.path}:{mutant.line}: {before} -> {after}", flush=True)


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]), sys.argv[3])
