"""A checkout that was moved or copied with its virtual environment says so, and what helps."""

import shutil
import subprocess
from pathlib import Path

import pytest

from infra.checkout import foreign_code_error
from tests.house.test_docs import ROOT


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    """A copied checkout, whose virtual environment finds the code of the original."""
    for folder in ("original/functions", "copy/functions"):
        (tmp_path / folder).mkdir(parents=True)
    packages = tmp_path / "copy/.venv/lib/python3.11/site-packages"
    packages.mkdir(parents=True)
    link = packages / "__editable__.sageaudit-0.1.0.pth"
    link.write_text(f"{tmp_path}/original/functions", encoding="utf-8")
    shutil.copy(ROOT / "Makefile", tmp_path / "copy")
    return tmp_path / "copy"


def make(checkout: Path, target: str) -> subprocess.CompletedProcess[str]:
    """Lets make print what it would run."""
    command = ["make", "--dry-run", target]
    return subprocess.run(command, cwd=checkout, capture_output=True, text=True, check=False)


@pytest.mark.parametrize("is_moved", [True, False], ids=["moved", "copied"])
@pytest.mark.parametrize("target", ["deploy", "synth", "test"])
def test_make_refuses_a_moved_or_copied_checkout(copy: Path, target: str, is_moved: bool) -> None:
    """In a copied one it would test or deploy the code of the original."""
    original = copy.parent / "original" / "functions"
    if is_moved:
        original.rmdir()
    result = make(copy, target)
    assert result.returncode == 2
    assert f"which finds sageaudit in {original}: run `rm -rf .venv`" in result.stderr


@pytest.mark.parametrize("target", ["help", "clean"])
def test_make_helps_and_cleans_in_a_copied_checkout(copy: Path, target: str) -> None:
    assert make(copy, target).returncode == 0


def test_make_accepts_the_environment_of_this_checkout(copy: Path) -> None:
    """Another name of the same folder is no other folder."""
    original = copy.parent / "original" / "functions"
    original.rmdir()
    original.symlink_to(copy / "functions")
    assert "moved or copied" not in make(copy, "deploy").stderr


def test_the_app_itself_refuses_the_code_of_another_checkout(tmp_path: Path) -> None:
    """A pipeline may run the CDK CLI without make."""
    functions = tmp_path / "functions"
    assert foreign_code_error(str(functions / "sageaudit" / "__init__.py"), functions) is None
    for other in (None, str(tmp_path / "other" / "sageaudit" / "__init__.py")):
        error = foreign_code_error(other, functions)
        assert error is not None
        assert "delete .venv, and run make again" in error
