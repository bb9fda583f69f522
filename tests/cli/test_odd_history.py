"""No command ends as a bug because of one odd value in a history, and what else it lists stays."""

import shutil
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from itertools import product
from pathlib import Path

import pytest

from sageaudit.adapters.files.exact_json import gzip_json
from sageaudit.adapters.history.sqlite.history import SqliteHistory
from sageaudit.cli import clock
from tests.adapters.history.test_odd_items import fill, odd_files
from tests.cli.test_commands import commands
from tests.fakes.command_line import Run
from tests.fakes.entries import NOON, document
from tests.properties import odd_values
from tests.properties.odd_values import ABSENT, ODD_VALUES, replaced, some_of

ARGUMENTS = {
    "account": ("111122223333",),
    "advice accept": ("abcdefgh", "--by", "ana"),
    "advice exempt": ("abcdefgh", "--by", "ana", "--until", "2026-12-31", "--reason", "x"),
    "advice reopen": ("abcdefgh", "--by", "ana"),
    "advice snooze": ("abcdefgh", "--by", "ana"),
    "by": ("family",),
    "check": ("--all-rules",),
    "export": ("-o", "-", "--format", "csv"),
    "notify": ("b",),
    "report": ("-o", "-"),
    "show": ("b",),
}
"""What a command needs beside its history; a new command without arguments is run as it is."""
NOT_RUN = {"audit", "scan", "reconcile", "check", "doctor", "mcp"}
"""They need AWS or another file beside the history; mcp serves until its input ends, and has tests
of its own."""


def reading_commands() -> Iterator[tuple[str, ...]]:
    """Yields every command that reads a history."""
    for path, command in commands():
        if path[0] not in NOT_RUN and any(option.name == "history" for option in command.params):
            yield (*path, *ARGUMENTS.get(" ".join(path), ()))
    yield ("history", "--rule", "gpu-underused")
    yield ("history", "--all", "--output", "csv")
    yield ("show", "a")
    yield ("report", "a", "-o", "-")
    yield ("export", "--findings", "-o", "-", "--format", "csv")
    yield ("notify", "--digest")


@pytest.fixture(autouse=True)
def _clock(monkeypatch: pytest.MonkeyPatch) -> None:
    """Sets the time a day after the history's audits."""
    monkeypatch.setattr(clock, "utc_now", lambda: NOON.replace(day=21))


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Returns a history of three runs and two decisions."""
    file = tmp_path / "history.db"
    with SqliteHistory(file, clock=lambda: NOON) as history:
        fill(history)
    return file


def odd_documents(path: Path, copy: Path) -> Iterator[str]:
    """Yields the name of each odd leaf of a run's document, while `copy` has this document."""
    whole = document("a")
    cases = product(odd_values.paths(whole), (*ODD_VALUES, ABSENT))
    for leaf, value in some_of(cases, each=401):
        shutil.copy(path, copy)
        with closing(sqlite3.connect(copy)) as sql, sql:
            odd = gzip_json(replaced(whole, leaf, value))
            sql.execute("UPDATE audits SET document = ? WHERE run = 1", [odd])
        yield f"{leaf} = {value!r}"


@pytest.mark.parametrize("make", [odd_files, odd_documents])
def test_an_odd_value_ends_no_command_as_a_bug(
    run: Run, path: Path, make: Callable[[Path, Path], Iterator[str]]
) -> None:
    """Each command prints or says in a sentence what it cannot read."""
    copy = path.with_name("copy.db")
    failed = []
    for place in make(path, copy):
        for words in reading_commands():
            done = run(*words, "--history", copy)
            if "a bug in sageaudit" in done.stderr or "Traceback" in done.stderr:
                failed.append((place, " ".join(words), done.stderr[-200:]))
    assert failed == []
