"""The version of the rules: it follows the code that decides, and no text about it."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path

import pytest

import sageaudit
from sageaudit.rules import catalogue, version
from sageaudit.rules.version import deciding_lines, digest, version_of

PACKAGE = Path(sageaudit.__file__).parent
RULE = "rules/utilisation/gpu_underused.py"
Edit = Callable[[str], str]


@pytest.fixture(scope="module", autouse=True)
def _each_source_is_read_once() -> Iterator[None]:
    """A digest reads all of them; an edit changes one."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(version, "deciding_lines", cache(deciding_lines))
        yield


@pytest.fixture(scope="module")
def package(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the sources."""
    copy = tmp_path_factory.mktemp("sources") / "sageaudit"
    ignored = shutil.ignore_patterns("__pycache__", "cli", "data")
    return Path(shutil.copytree(PACKAGE, copy, ignore=ignored))


@pytest.fixture(scope="module")
def before(package: Path) -> str:
    """Its digest."""
    return digest(package)


def digest_after(package: Path, name: str, edit: Edit) -> str:
    """The digest with one file edited, which is put back."""
    path = package / name
    before = path.read_text(encoding="utf-8")
    after = edit(before)
    assert after != before, f"{name} was not edited"
    path.write_text(after, encoding="utf-8")
    try:
        return digest(package)
    finally:
        path.write_text(before, encoding="utf-8")


def other_number(source: str) -> str:
    """The first threshold with a nine before its number."""
    return re.sub(r'(Threshold\(\s*"\w+",\s*)(?=\d)', r"\g<1>9", source, count=1)


def other_code(source: str) -> str:
    """One more statement."""
    return f"{source}\nUNHEARD_OF = 1\n"


def other_page(source: str) -> str:
    """A corrected word in the page, the module's docstring."""
    return source.replace('"""', '"""Corrected: ', 1)


def other_docstrings(source: str) -> str:
    """A corrected word in every docstring: of functions and of constants too."""
    return re.sub(r'^(\s*)"""(?=\S)', r'\1"""Corrected. ', source, flags=re.MULTILINE)


def other_comments(source: str) -> str:
    """A comment above the code, and one behind an import."""
    return "# Why.\n\n" + re.sub(
        r"^(from .+ import \w+)$", r"\1  # why", source, flags=re.MULTILINE
    )


@pytest.mark.parametrize(
    ("name", "edit"),
    [
        (RULE, other_number),
        (RULE, other_code),
        ("rules/judge.py", other_code),
        ("workflows/audit/judge.py", other_code),
        ("domain/bill/resize.py", other_code),
        ("domain/usage/measurements.py", other_code),
        ("domain/job/phases.py", other_code),
        ("domain/prices/known_prices.py", other_code),
        ("domain/policy/policy.py", other_code),
        ("domain/audit/rollup.py", other_code),
    ],
)
def test_it_changes_with_what_decides(package: Path, before: str, name: str, edit: Edit) -> None:
    """A threshold, a rule's code, or what every rule stands on."""
    assert digest_after(package, name, edit) != before


@pytest.mark.parametrize("edit", [other_page, other_docstrings, other_comments])
@pytest.mark.parametrize("name", [RULE, "domain/bill/resize.py", "workflows/audit/judge.py"])
def test_it_stays_when_only_words_change(package: Path, before: str, name: str, edit: Edit) -> None:
    """Pages, docstrings, comments and blank lines."""
    assert digest_after(package, name, edit) == before


@pytest.mark.parametrize(
    "name", ["workflows/audit/run.py", "domain/reconcile/reconcile.py", "output/text/money.py"]
)
def test_it_stays_when_what_decides_nothing_changes(package: Path, before: str, name: str) -> None:
    """When a job is audited, what its bill is compared with later, how it is written."""
    assert digest_after(package, name, other_code) == before


def test_a_module_that_moves_changes_it(package: Path, before: str) -> None:
    """The path is part of it: a rule's folder is its range of ids."""
    path = package / RULE
    moved = path.with_name("renamed.py")
    path.rename(moved)
    try:
        assert digest(package) != before
    finally:
        moved.rename(path)


@pytest.mark.parametrize(
    ("source", "left"),
    [
        ('x = "# no comment"  # why', 'x = "# no comment"'),
        ('"""Page."""\n\nx = 1\n"""Of x."""\n', "x = 1"),
        ('class A:\n    """é."""\n    b = 1; """é"""\n', "class A:\n    b = 1;"),
        ('def f() -> str:\n    """Page\n    # of two lines."""\n    return """kept"""', None),
        ("def f(): ...  # why\n\n\n", "def f(): ..."),
        ('x = """a\n# kept\n"""', None),
        (
            "match x:\n    case 1:\n        'gone'\n        y = 2",
            "match x:\n    case 1:\n        y = 2",
        ),
    ],
)
def test_what_is_left_of_a_module(source: str, left: str | None) -> None:
    """Strings that are values stay, whatever is in them."""
    kept = (
        'def f() -> str:\n    return """kept"""' if source.startswith("def f() -> str") else source
    )
    assert deciding_lines(source) == (kept if left is None else left)


def test_a_built_package_says_what_its_sources_said(package: Path, before: str) -> None:
    """Also when a source is changed on the spot: the file is what was built."""
    built = package / version.BUILT
    built.parent.mkdir()
    built.write_text(version.built_text(package), encoding="utf-8")
    try:
        with (package / RULE).open("a", encoding="utf-8") as source:
            source.write("UNHEARD_OF = 1")
        assert version_of(package) == f"{sageaudit.__version__}+{before}" == catalogue.version()
        assert digest(package) != before
    finally:
        shutil.rmtree(built.parent)
        shutil.copy(PACKAGE / RULE, package / RULE)


def test_the_name_of_a_ruleset() -> None:
    """The package's version and eight digits, as the history keeps it."""
    assert re.fullmatch(rf"{re.escape(sageaudit.__version__)}\+[0-9a-f]{{8}}", catalogue.version())


def test_a_package_is_built_with_its_version(tmp_path: Path) -> None:
    """As pip builds a wheel: nothing is computed when it is used."""
    subprocess.run(
        [sys.executable, "setup.py", "--quiet", "build_py", "--build-lib", str(tmp_path)],
        cwd=PACKAGE.parents[1],
        check=True,
    )
    built = json.loads((tmp_path / "sageaudit" / version.BUILT).read_text(encoding="utf-8"))
    assert built == {"version": catalogue.version()}
    assert not (PACKAGE / version.BUILT).exists()
