"""Which tests `make near` runs."""

from pathlib import Path

import pytest

from tools.near import nearest_tests

PACKAGE = Path("functions/sageaudit")


@pytest.mark.parametrize(
    ("file", "test"),
    [
        (PACKAGE / "domain/bill/bill.py", "tests/domain/bill/test_bill.py"),
        (PACKAGE / "cli/commands/scan.py", "tests/cli/test_scan.py"),
        (PACKAGE / "rules/utilisation/gpu_idle.py", "tests/rules/utilisation/test_gpu_idle.py"),
        (Path("tests/tools/test_near.py"), "tests/tools/test_near.py"),
    ],
)
def test_the_test_of_the_same_name_comes_first(file: Path, test: str) -> None:
    """For a command, these are all tests that begin with its name. A test file is its own nearest
    test.
    """
    assert Path(test) in nearest_tests(file)[:6]


def test_the_tests_that_import_a_file_follow() -> None:
    """They may be in another folder."""
    assert Path("tests/workflows/audit/test_families.py") in nearest_tests(
        PACKAGE / "workflows/audit/run.py"
    )


def test_they_take_about_a_minute() -> None:
    """A module that nearly everything imports is covered by its own tests, or by its direct
    importers' tests.
    """
    assert 0 < len(nearest_tests(PACKAGE / "errors.py")) <= 200
    assert len(nearest_tests(PACKAGE / "domain/bill/run_time.py")) <= 30
