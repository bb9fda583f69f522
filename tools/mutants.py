"""Which small faults do the tests not notice? `make mutants N=10 SEED=1 OF=shell` prints them.

A mutant is one changed expression: another sign, a whole number one higher, any other number a
tenth higher, None returned, half of a condition. The seed chooses them, of the core (which decides)
or of the shell (which talks to AWS, files and people), in a copy of the project. One that survives
needs a test, or makes no difference. The nearest tests run first, all of them only for a mutant
that may survive.
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

from tools.near import near

ROOT = Path(__file__).parent.parent
FUNCTIONS = Path("functions")
MODULES = {
    "core": ("domain", "rules", "workflows"),
    "shell": ("workflows", "adapters", "cli/commands"),
}
HANDLERS = ("audit", "notify", "deliver", "sweep", "digest")
"""Of the shell too; they stand beside the package."""
_OF_CORE = (
    *("domain", "rules", "workflows", "output", "queries", "adapters", "properties"),
    *("recorded", "labelled", "cli"),
)
_OF_SHELL = ("integration", "faults", "fuzz", "api")
TESTS = {
    "core": tuple(f"tests/{name}" for name in _OF_CORE),
    "shell": tuple(f"tests/{name}" for name in (*_OF_CORE, *_OF_SHELL)),
}
"""Those that look at what a part answers; a mutant shows there or nowhere."""
_OTHER: dict[type[ast.AST], Any] = {
    ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt, ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq, ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.Div, ast.Div: ast.Mult,
    ast.And: ast.Or, ast.Or: ast.And,
}  # fmt: skip
_SKIPPED = {"annotation", "returns", "decorator_list"}
_WORDS = {ast.JoinedStr, ast.List, ast.Tuple, ast.ListComp}  # joined, never added up


@dataclass(frozen=True)
class Mutant:
    """One expression of a module, what stands there instead, and the whole module with it."""

    path: Path
    line: int
    before: str
    after: str
    module: bytes


def _changed(node: ast.expr) -> ast.expr | None:
    """The expression with one fault in it; None where there is nothing to change."""
    other = copy.deepcopy(node)
    match other:
        case ast.Compare(ops=[operator, *_]) if type(operator) in _OTHER:
            other.ops[0] = _OTHER[type(operator)]()
        case ast.BinOp(left, _, right) if {type(left), type(right)} & _WORDS:
            return None
        case ast.BoolOp(op=operator) | ast.BinOp(op=operator) if type(operator) in _OTHER:
            other.op = _OTHER[type(operator)]()
        case ast.Constant(int() as value):
            other.value = not value if isinstance(value, bool) else value + 1
        case ast.Constant(float() as value):
            other.value = value * 1.1
        case ast.Call(ast.Name("Decimal"), [ast.Constant(str() as value)]):
            other.args = [ast.Constant(str(Decimal(value) * Decimal("1.1")))]
        case ast.UnaryOp(ast.Not(), operand):
            return operand
        case ast.Call(ast.Name("min" | "max" as name)):
            other.func = ast.Name("max" if name == "min" else "min")
        case _:
            return None
    return other


def _faults(node: ast.AST) -> Iterator[tuple[ast.expr, ast.expr]]:
    """Each expression below a node beside a wrong one, without annotations and f-strings."""
    if isinstance(node, ast.JoinedStr):
        return
    if isinstance(node, ast.expr) and (other := _changed(node)) is not None:
        yield node, other
    if isinstance(node, ast.If):
        yield from ((node.test, ast.Constant(value)) for value in (True, False))
    if isinstance(node, ast.Return) and node.value and ast.unparse(node.value) != "None":
        yield node.value, ast.Constant(None)
    for name, value in ast.iter_fields(node):
        for child in value if isinstance(value, list) else [value]:
            if isinstance(child, ast.AST) and name not in _SKIPPED:
                yield from _faults(child)


def mutants(path: Path, root: Path = ROOT) -> Iterator[Mutant]:
    """Every mutant of a module."""
    text = (root / path).read_bytes()
    rows = text.splitlines(keepends=True)
    for node, other in _faults(ast.parse(text)):
        start = sum(map(len, rows[: node.lineno - 1])) + node.col_offset
        stop = sum(map(len, rows[: (node.end_lineno or 0) - 1])) + (node.end_col_offset or 0)
        whole = text[:start] + f"({ast.unparse(other)})".encode() + text[stop:]
        yield Mutant(path, node.lineno, ast.unparse(node), ast.unparse(other), whole)


def files(part: str, root: Path = ROOT) -> list[Path]:
    """The modules of the core or the shell."""
    folders = [FUNCTIONS / "sageaudit" / name for name in MODULES[part]]
    folders += [FUNCTIONS / name for name in HANDLERS if part == "shell"]
    return sorted(file for folder in folders for file in (root / folder).rglob("*.py"))


def chosen(count: int, seed: int, part: str = "core", root: Path = ROOT) -> list[Mutant]:
    """As many mutants by the seed, at most one of a module as long as there are modules."""
    modules = [
        found for file in files(part, root) if (found := [*mutants(file.relative_to(root), root)])
    ]
    dice = random.Random(seed)
    sizes = (min(len(modules), count - start) for start in range(0, count, len(modules)))
    return [dice.choice(module) for size in sizes for module in dice.sample(modules, size)]


def _pass(root: Path, tests: Sequence[str]) -> bool:
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
        with suppress(ProcessLookupError):  # a worker may go round in circles
            os.killpg(process.pid, signal.SIGKILL)


def survives(mutant: Mutant, part: str, root: Path) -> bool:
    """Tries it in a copy of the project: the tests near it, then all of its part."""
    tests = [str(path) for path in near(mutant.path) if (root / path).exists()]
    original = (root / mutant.path).read_bytes()
    (root / mutant.path).write_bytes(mutant.module)
    try:
        return (not tests or _pass(root, tests)) and _pass(root, TESTS[part])
    finally:
        (root / mutant.path).write_bytes(original)


def main(count: int, seed: int, part: str) -> None:
    """Prints what became of each mutant."""
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder) / ROOT.name
        shutil.copytree(ROOT, root, ignore=shutil.ignore_patterns(".*", "build", "cdk.out"))
        if not _pass(root, TESTS[part]):
            sys.exit("The tests must pass without a mutant first.")
        for mutant in chosen(count, seed, part):
            word = "SURVIVES" if survives(mutant, part, root) else "dies"
            before, after = (shorten(text, 70) for text in (mutant.before, mutant.after))
            print(f"{word} {mutant.path}:{mutant.line}: {before} -> {after}", flush=True)


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]), sys.argv[3])
