"""The version of the rules: it follows the code that decides."""

import json
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

import sageaudit
from sageaudit.rules import catalogue, version
from sageaudit.rules.version import digest, read_version

PACKAGE = Path(sageaudit.__file__).parent
RULE = "rules/utilisation/gpu_underused.py"
Edit = Callable[[str], str]


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


@pytest.mark.parametrize(
    ("name", "edit"),
    [
        (RULE, other_number),
        (RULE, other_code),
        ("rules/judge.py", other_code),
        ("workflows/audit/judge.py", other_code),
        ("domain/bill/bill.py", other_code),
        ("domain/resize/resize.py", other_code),
        ("domain/usage/measurements.py", other_code),
        ("domain/job/course.py", other_code),
        ("domain/prices/known_prices.py", other_code),
        ("domain/policy/policy.py", other_code),
        ("domain/audit/rollup.py", other_code),
    ],
)
def test_it_changes_with_what_decides(package: Path, before: str, name: str, edit: Edit) -> None:
    """A threshold, a rule's code, or what every rule stands on."""
    assert digest_after(package, name, edit) != before


@pytest.mark.parametrize(
    "name", ["workflows/audit/run.py", "domain/reconcile/reconcile.py", "output/text/money.py"]
)
def test_it_stays_when_what_decides_nothing_changes(package: Path, before: str, name: str) -> None:
    """When a job is audited, what its bill is compared with later, how it is written."""
    assert digest_after(package, name, other_code) == before


def test_a_module_that_moves_changes_it(package: Path, before: str) -> None:
    """The path is part of it: a rule's folder is its range of ids."""
    path = package / RULE
    new_path = path.with_name("renamed.py")
    path.rename(new_path)
    try:
        assert digest(package) != before
    finally:
        new_path.rename(path)


def test_a_built_package_says_what_its_sources_said(package: Path, before: str) -> None:
    """Also when a source is changed on the spot: the file is what was built."""
    built = package / version.BUILT_VERSION_FILE
    built.parent.mkdir()
    built.write_text(version.version_file_text(package), encoding="utf-8")
    try:
        with (package / RULE).open("a", encoding="utf-8") as source:
            source.write("UNHEARD_OF = 1")
        assert read_version(package) == f"{sageaudit.__version__}+{before}" == catalogue.version()
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
    built = json.loads(
        (tmp_path / "sageaudit" / version.BUILT_VERSION_FILE).read_text(encoding="utf-8")
    )
    assert built == {"version": catalogue.version()}
    assert not (PACKAGE / version.BUILT_VERSION_FILE).exists()
