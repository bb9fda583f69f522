"""`sageaudit demo`: what it writes and prints, and which files it never changes."""

import shlex
import shutil
from pathlib import Path

import pytest

from local import example
from sageaudit.adapters.history.sqlite.history import SqliteHistory
from sageaudit.cli import clock
from sageaudit.cli.commands.demo import EXAMPLE_COMMANDS, example_command
from sageaudit.workflows.example import company as example_company
from tests.fakes.command_line import Run
from tests.fakes.random_history import fill

FEW = ("price-search", "map-tiles")
"""Enough of the company for what is not about its figures."""


@pytest.fixture(autouse=True)
def _clock(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Makes the command run on the day after the company's last day. The user has no history."""
    monkeypatch.setattr(clock, "utc_now", lambda: example.NOW)
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    monkeypatch.setenv("COLUMNS", "120")
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def small_company(monkeypatch: pytest.MonkeyPatch) -> None:
    """Reduces the company to two workloads."""
    workloads = tuple(workload for workload in example_company.WORKLOADS if workload.name in FEW)
    monkeypatch.setattr(example_company, "WORKLOADS", workloads)


@pytest.mark.usefixtures("small_company")
def test_each_printed_command_works(run: Run, tmp_path: Path, company: Path) -> None:
    """Each command is pasted unchanged, for the whole company."""
    done = run("demo", "--history", "the example's.db")
    assert done.exit_code == 0, done.stderr
    shutil.copy(company, "the example's.db")
    arguments = [line for line in done.stdout.splitlines() if line.startswith("sageaudit ")]
    assert len(arguments) == len(EXAMPLE_COMMANDS)
    for line in arguments:
        result = run(*shlex.split(line)[1:])
        assert result.exit_code == 0, result.stderr
        assert len(result.stdout.splitlines()) > 1 or "wrote example.html" in result.stderr
    assert (tmp_path / "example.html").stat().st_size > 100_000


@pytest.mark.usefixtures("small_company")
def test_it_does_not_change_the_users_own_history(run: Run, tmp_path: Path) -> None:
    """It prints the path and the last day. A second run replaces its own file."""
    for _ in range(2):
        done = run("demo")
        assert done.exit_code == 0, done.stderr
        path = tmp_path / "data" / "sageaudit" / "example-company.db"
        assert done.stdout.splitlines()[:2] == [
            (
                "The example company is made up. The history has 96 audits of its jobs; the last "
                "job ended on 2026-11-27."
            ),
            f"Written to {path}",
        ]
        assert example_command("advice", path) in done.stdout
    assert not (path.parent / "history.db").exists()


@pytest.mark.usefixtures("small_company")
def test_a_history_with_other_audits_is_refused(run: Run, tmp_path: Path) -> None:
    """So is an example into which the user recorded another job."""
    users_file, mixed = tmp_path / "own.db", tmp_path / "mixed.db"
    run("demo", "--history", mixed)
    for path in (users_file, mixed):
        with SqliteHistory(path) as history:
            fill(history, 1)
        before = path.read_bytes()
        done = run("demo", "--history", path)
        assert done.exit_code == 2
        assert f"{path} has audits of other jobs than the example company's" in done.stderr
        assert path.read_bytes() == before


def test_a_file_that_is_no_history_is_refused(run: Run, tmp_path: Path) -> None:
    """The file is not changed."""
    path = tmp_path / "notes.txt"
    path.write_text("mine")
    done = run("demo", "--history", path)
    assert done.exit_code != 0
    assert "is not a history of sageaudit" in done.stderr
    assert path.read_text() == "mine"
