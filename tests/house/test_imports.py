"""Imports go in one direction: domain <- rules <- workflows -> ports <- adapters <- entry
points.
"""

import ast
from collections.abc import Container, Iterator
from functools import cache
from graphlib import TopologicalSorter
from pathlib import Path

import pytest

FUNCTIONS = Path(__file__).parents[2] / "functions"
PACKAGE = FUNCTIONS / "sageaudit"

_FOUNDATIONS = ("errors", "structs", "token_shapes")
_BELOW_ADAPTERS = (*_FOUNDATIONS, "domain", "rules", "output", "ports")
_BELOW_WORKFLOWS = (*_BELOW_ADAPTERS, "exits", "queries", "adapters")
MAY_IMPORT = {
    "errors": {"token_shapes"},
    "token_shapes": set(),
    "structs": set(),
    "exits": {"errors"},
    "domain": {*_FOUNDATIONS},
    "rules": {*_FOUNDATIONS, "domain"},
    "output": {*_FOUNDATIONS, "domain"},
    "ports": {*_FOUNDATIONS, "domain"},
    "queries": {*_FOUNDATIONS, "domain", "output", "ports"},
    "adapters": {*_BELOW_ADAPTERS},
    "workflows": {*_BELOW_WORKFLOWS},
    "cli": {*_BELOW_WORKFLOWS, "workflows"},
    "api": {*_BELOW_WORKFLOWS, "workflows"},
    "__main__": {"cli"},
}
"""A part of the package, and the other parts that it may import."""
PURE_WORKFLOWS = (
    *("audit", "notify", "deliver", "side_by_side", "sweep", "watch"),
    *("digest", "digest_report", "report", "top_changes", "check", "budgets"),
)
"""They use only ports, because Lambda runs them, or both Lambda and a person. The
others, which a person alone starts, may use adapters."""
ORDER = {
    "domain": (
        *(
            "money",
            "nearest",
            "moments",
            "job",
            "prices",
            "usage",
            "bill",
            "resize",
            "policy",
            "members",
            "audit",
            "guides",
            "budget",
        ),
        *("advice", "alert", "sweep", "running", "request", "reconcile"),
    ),
    "workflows": (
        *("audit", "notify", "deliver", "side_by_side", "sweep", "watch", "budgets"),
        *("check", "check_files", "check_write", "top_changes", "report"),
        *("digest", "digest_report"),
        *("recordings", "preview", "live", "scan", "example", "redrive", "backfill", "pack"),
        "doctor",
    ),
    "output": ("text", "terminal", "html"),
    "cli": (
        *("clock", "messages", "completion", "options", "views", "interruption"),
        *("account_options", "query_options", "query_output", "recommendations"),
        *("check_outputs", "mcp_server", "commands", "shells", "main"),
    ),
}
"""The folders of a part in the order of the flow. Each may import those before it."""

PURE = ("domain", "rules", "output", "ports", "queries", *_FOUNDATIONS)
IMPURE_MODULES = {
    "aws_lambda_powertools",
    "boto3",
    "botocore",
    "http",
    "logging",
    "os",
    "pathlib",
    "random",
    "requests",
    "secrets",
    "socket",
    "subprocess",
    "sys",
    "tempfile",
    "threading",
    "time",
    "urllib",
    "uuid",
}
"""What a pure module must not import, except URL quoting."""
CLOCKS = {("datetime", "now"), ("datetime", "utcnow"), ("datetime", "today"), ("date", "today")}


def modules() -> list[Path]:
    """Returns every file of the package that belongs to a part."""
    return sorted(path for path in PACKAGE.rglob("*.py") if path != PACKAGE / "__init__.py")


def pure_modules() -> list[Path]:
    """Returns the modules that must import no clock, environment or I/O."""
    return [path for path in modules() if part_of(path) in PURE or is_pure_workflow(path)]


def is_pure_workflow(path: Path) -> bool:
    """Whether Lambda runs the workflow, so that it must use ports instead of adapters."""
    return part_of(path) == "workflows" and place(path, 1) in PURE_WORKFLOWS


def may_import(path: Path) -> set[str]:
    """Returns the parts of the package that a module may import."""
    parts = MAY_IMPORT.get(part_of(path), set()) | {part_of(path), "data", "__version__"}
    return parts - {"adapters", "exits"} if is_pure_workflow(path) else parts


def part_of(path: Path) -> str:
    """Returns the first part of a module's path in the package."""
    return place(path, 0)


def place(path: Path, depth: int) -> str:
    """Returns the part of a module's path in the package at a depth, without the file's ending."""
    return path.relative_to(PACKAGE).parts[depth].removesuffix(".py")


def module_name(path: Path) -> str:
    """Returns the name by which a module is imported."""
    return ".".join(path.relative_to(FUNCTIONS).with_suffix("").parts).removesuffix(".__init__")


def owner(imported_name: str, names: Container[str]) -> str:
    """Returns the module that an imported name is, or is defined in; empty if it is not ours."""
    while imported_name and imported_name not in names:
        imported_name = imported_name.rpartition(".")[0]
    return imported_name


@cache
def nodes(path: Path) -> tuple[ast.AST, ...]:
    """Returns the imports and calls of a file."""
    whole = ast.walk(ast.parse(path.read_text(encoding="utf-8")))
    return tuple(n for n in whole if isinstance(n, ast.Import | ast.ImportFrom | ast.Call))


def imported(path: Path) -> Iterator[str]:
    """Yields every module that a file imports, with its full name."""
    for node in nodes(path):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path.name}: relative imports hide the direction"
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def test_every_part_may_import_listed_parts_only() -> None:
    """For a new folder of the package, `MAY_IMPORT` must say what it may import."""
    assert {part_of(path) for path in modules()} <= set(MAY_IMPORT) | {"data"}


def test_modules_import_only_allowed_parts() -> None:
    """A part imports only the parts that `MAY_IMPORT` allows."""
    outwards = [
        f"{path.relative_to(PACKAGE)} imports {name}"
        for path in modules()
        for name in imported(path)
        if name.startswith("sageaudit.") and name.split(".")[1] not in may_import(path)
    ]
    assert not outwards


@pytest.mark.parametrize("part", ORDER)
def test_the_folders_of_a_part_follow_the_flow(part: str) -> None:
    """A folder imports itself and the folders before it, never one after it."""
    order = ORDER[part]
    assert {place(path, 1) for path in modules() if part_of(path) == part} == {*order, "__init__"}
    backwards = [
        f"{path.relative_to(PACKAGE)} imports {name}"
        for path in modules()
        if part_of(path) == part and place(path, 1) in order
        for name in imported(path)
        if name.startswith(f"sageaudit.{part}.")
        and order.index(name.split(".")[2]) > order.index(place(path, 1))
    ]
    assert not backwards


def test_there_are_no_circular_imports() -> None:
    """`prepare` raises CycleError and names the circle."""
    names = {module_name(path): path for path in modules()}
    graph = {
        name: {
            target
            for imported_name in imported(path)
            if (target := owner(imported_name, names)) != name
        }
        for name, path in names.items()
    }
    TopologicalSorter(graph).prepare()


def test_a_pure_module_imports_no_client_clock_or_environment() -> None:
    """A client of AWS, the environment, a clock or a random source is an argument."""
    forbidden_imports = [
        f"{path.relative_to(PACKAGE)} imports {name}"
        for path in pure_modules()
        for name in imported(path)
        if name.split(".")[0] in IMPURE_MODULES
        and not name.startswith("urllib.parse")
        and name != "urllib"
    ]
    assert not forbidden_imports
    clock_calls = [
        f"{path.relative_to(PACKAGE)} calls {node.func.value.id}.{node.func.attr}"
        for path in pure_modules()
        for node in nodes(path)
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and isinstance(node.func.value, ast.Name)
        and (node.func.value.id, node.func.attr) in CLOCKS
    ]
    assert not clock_calls


@pytest.mark.parametrize("name", ["audit", "notify", "deliver"])
def test_handlers_do_not_import_each_other_or_the_command_line(name: str) -> None:
    """Nor do they import the command line, which is not in their asset."""
    imported_names = set(imported(FUNCTIONS / name / "handler.py"))
    other_handlers = {"audit", "notify", "deliver"} - {name}
    assert not {
        imported_name
        for imported_name in imported_names
        if imported_name.split(".")[0] in other_handlers
        or imported_name.startswith("sageaudit.cli")
    }
