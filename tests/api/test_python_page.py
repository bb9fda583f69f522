"""The examples of docs/python.md run in their order on recorded jobs."""

import doctest
import re
import shutil
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

import sageaudit
from sageaudit.cli.main import cli

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "python.md"
JOBS = ROOT / "tests" / "recorded" / "data" / "jobs"
SCANNED = (
    "profiled-046-p3-2xlarge.json",
    "processing-067-failed.json",
    "training-020-c4-8xlarge-x2-failed.json",
)
BLOCK = re.compile(r"^```python\n(.*?)^```", re.MULTILINE | re.DOTALL)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Makes a working folder with the files that the page names."""
    shutil.copy(JOBS / SCANNED[0], tmp_path / "job.json")
    (tmp_path / "recordings").mkdir()
    for name in SCANNED:
        shutil.copy(JOBS / name, tmp_path / "recordings")
    monkeypatch.chdir(tmp_path)
    words = ["scan", "--recordings", "recordings", "--history", "audits.db"]
    assert CliRunner().invoke(cli, words, standalone_mode=False).exception is None
    return tmp_path


@pytest.mark.usefixtures("folder")
def test_the_examples_give_what_the_page_says() -> None:
    """Each block continues where the previous one ended."""
    names: dict[str, Any] = {}
    runner = doctest.DocTestRunner(optionflags=doctest.REPORT_ONLY_FIRST_FAILURE)
    failures: list[str] = []
    for number, block in enumerate(BLOCK.findall(PAGE.read_text(encoding="utf-8"))):
        test = doctest.DocTestParser().get_doctest(block, names, f"block {number}", None, 0)
        runner.run(test, out=failures.append, clear_globs=False)
        names.update(test.globs)
    assert not failures, "".join(failures)


def test_every_public_name_is_on_the_page_and_typed() -> None:
    """Every public name is documented, and `py.typed` exists."""
    page = PAGE.read_text(encoding="utf-8")
    assert [name for name in sageaudit.__all__ if f"{name.strip('_')}" not in page] == []
    assert all(getattr(sageaudit, name) is not None for name in sageaudit.__all__)
    assert (Path(sageaudit.__file__).parent / "py.typed").exists()
