"""`make mutants`: which changes are tried, and what is printed about them."""

import ast
from collections.abc import Sequence
from pathlib import Path

import pytest

from tools import mutants

MODULE = Path("functions/sageaudit/domain/share.py")
SOURCE = '''"""A module."""


def share(part: int, whole: int | None = 1) -> float | None:
    """Half of it, at most."""
    if not whole or part < 0:
        return None
    return min(part / whole, 0.5)
'''


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """Returns a project whose core is one module."""
    (tmp_path / MODULE).parent.mkdir(parents=True)
    (tmp_path / MODULE).write_text(SOURCE, encoding="utf-8")
    return tmp_path


def test_a_mutant_is_one_expression_of_the_module(project: Path) -> None:
    """Annotations and strings do not change. Each mutant is a different module that can be
    parsed.
    """
    mutants_ = list(mutants.mutants(MODULE, project))
    assert {(mutant.line, mutant.before, mutant.after) for mutant in mutants_} == {
        (4, "1", "2"),
        (6, "not whole or part < 0", "not whole and part < 0"),
        (6, "not whole or part < 0", "True"),
        (6, "not whole or part < 0", "False"),
        (6, "not whole", "whole"),
        (6, "part < 0", "part <= 0"),
        (6, "0", "1"),
        (8, "min(part / whole, 0.5)", "None"),
        (8, "min(part / whole, 0.5)", "max(part / whole, 0.5)"),
        (8, "part / whole", "part * whole"),
        (8, "0.5", "0.55"),
    }
    trees = {ast.dump(ast.parse(mutant.module)) for mutant in mutants_}
    assert len(trees | {ast.dump(ast.parse(SOURCE))}) == len(mutants_) + 1


@pytest.mark.parametrize(
    ("number", "higher"),
    [
        ("15", "16"),
        ("7.5", "8.25"),
        ("Decimal('0.01')", "Decimal('0.011')"),
        ("Decimal(10)", "Decimal(11)"),
        ("timedelta(days=15)", "timedelta(days=16)"),
    ],
)
def test_a_number_is_a_little_higher(project: Path, number: str, higher: str) -> None:
    """This applies to times, money and limits: a test at the limit notices it."""
    (project / MODULE).write_text(f"LIMIT = {number}\n", encoding="utf-8")
    modules = {mutant.module.decode() for mutant in mutants.mutants(MODULE, project)}
    assert {ast.unparse(ast.parse(module)) for module in modules} == {f"LIMIT = {higher}"}


def test_a_seed_always_chooses_the_same(project: Path) -> None:
    """So a surviving mutant can be tried again after a test was added."""
    assert mutants.choose(3, 1, root=project) == mutants.choose(3, 1, root=project)
    assert len(mutants.choose(3, 1, root=project)) == 3


def test_the_shell_is_handlers_workflows_adapters_and_commands() -> None:
    """The core decides. Workflows belong to both."""
    core, shell = (
        {path.relative_to(mutants.ROOT).as_posix() for path in mutants.files(part)}
        for part in ("core", "shell")
    )
    shared_module = "functions/sageaudit/workflows/notify.py"
    assert {shared_module, "functions/sageaudit/domain/bill/bill.py"} <= core
    assert {
        shared_module,
        "functions/deliver/handler.py",
        "functions/sageaudit/adapters/aws/sqs.py",
        "functions/sageaudit/cli/commands/scan.py",
    } <= shell
    assert core & shell == {path for path in core if "/workflows/" in path}


@pytest.mark.parametrize(
    ("by_near", "by_all", "survives"),
    [(True, True, True), (True, False, False), (False, True, False)],
)
def test_a_mutant_survives_when_no_test_fails(
    project: Path, monkeypatch: pytest.MonkeyPatch, *, by_near: bool, by_all: bool, survives: bool
) -> None:
    """The module has the change only while the tests run."""
    test = "tests/domain/test_share.py"
    (project / test).parent.mkdir(parents=True)
    (project / test).touch()
    ran: list[list[str]] = []

    def passes(root: Path, tests: Sequence[str]) -> bool:
        assert b"max(part" in (root / MODULE).read_bytes()
        ran.append([*tests])
        return by_near if [*tests] == [test] else by_all

    monkeypatch.setattr(mutants, "_has_passed", passes)
    monkeypatch.setattr(
        mutants, "nearest_tests", lambda _: [Path(test), Path("tests/of/another/copy.py")]
    )
    mutant = next(
        candidate
        for candidate in mutants.mutants(MODULE, project)
        if candidate.after.startswith("max")
    )
    assert mutants.can_survive(mutant, "core", project) is survives
    assert ran == [[test], [*mutants.TESTS["core"]]][: 2 if by_near else 1]
    assert (project / MODULE).read_text(encoding="utf-8") == SOURCE
