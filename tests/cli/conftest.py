"""Runs the command line in this process: a process of its own takes half a second to start."""

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from local import example
from sageaudit.adapters.history import opened as histories
from sageaudit.adapters.history.dynamo.history import DynamoHistory
from sageaudit.adapters.history.sqlite.history import SqliteHistory
from sageaudit.cli.main import main
from sageaudit.ports import History
from tests.adapters.history.tables import dynamodb, new_table
from tests.fakes.command_line import Result, Run
from tests.fakes.live_account import LiveAccount, live_account
from tests.fakes.once import make_once
from tests.fakes.random_history import fill


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    """Returns a function that calls the console script with these words, as typed in a terminal."""

    def call(*words: str | Path) -> Result:
        monkeypatch.setattr(sys, "argv", ["sageaudit", *map(str, words)])
        capsys.readouterr()
        with pytest.raises(SystemExit) as stopped:
            main()
        printed = capsys.readouterr()
        return Result(int(str(stopped.value.code)), printed.out, printed.err)

    return call


@pytest.fixture
def account(monkeypatch: pytest.MonkeyPatch) -> Iterator[LiveAccount]:
    """Yields a live account without jobs."""
    with live_account(monkeypatch) as live:
        yield live


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Returns a history of 150 audits in 40 days."""
    path = tmp_path_factory.mktemp("asked") / "history.db"
    with SqliteHistory(path) as history:
        fill(history, 150)
    return path


@pytest.fixture(scope="session")
def company(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Returns the history of the example company, up to its fixed last day.

    No test writes to it.
    """

    def write(folder: Path) -> None:
        example.write_history(folder / "example.db")

    return make_once(tmp_path_factory, "example-company", write) / "example.db"


@pytest.fixture(scope="module")
def demo_path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Returns the path for the scan of the demo's recordings."""
    return tmp_path_factory.mktemp("history") / "history.db"


@pytest.fixture
def recordings_history(run: Run, demo_path: Path) -> Path:
    """Returns a history of the demo's recordings."""
    if not demo_path.exists():
        recordings = Path(__file__).parents[2] / "local" / "recordings"
        done = run("scan", "--recordings", recordings, "--history", demo_path)
        assert done.exit_code == 0, done.stderr
    return demo_path


@pytest.fixture
def table(monkeypatch: pytest.MonkeyPatch) -> Iterator[History]:
    """Yields a history in a table of its own."""
    with dynamodb() as client:
        name = new_table(client)
        history, decisions = DynamoHistory(client, name), DynamoHistory(client, name)
        monkeypatch.setattr(histories, "_open_table", lambda *_: (None, history, decisions))
        yield history
