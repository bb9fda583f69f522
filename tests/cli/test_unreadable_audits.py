"""A stored audit that cannot be read loses only its own detail, on the page and in every query."""

import shutil
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from sageaudit.adapters.files.exact_json import gzip_text
from sageaudit.cli import clock
from tests.fakes.command_line import Run
from tests.fakes.random_history import NOW

OTHER = {
    "empty": "{}",
    "list": "[]",
    "text": "no JSON",
    "deep": '{"job":' * 10_000 + "1" + "}" * 10_000,
    "hollow": '{"job": {}, "findings": [1]}',
}
QUESTIONS = (
    "history --all --output csv",
    "history --rule gpu-idle --all --output csv",
    "top --output csv",
    "families --output csv",
    "owners --output csv",
    "trend --output csv",
    "by rule",
    "export -o - --format csv",
    "export --findings -o - --format csv",
)


@pytest.fixture(autouse=True)
def _clock(monkeypatch: pytest.MonkeyPatch) -> None:
    """Sets the time of the history's audits."""
    monkeypatch.setattr(clock, "utc_now", lambda: NOW)


@pytest.fixture(params=OTHER)
def damaged(request: pytest.FixtureRequest, file: Path, tmp_path: Path) -> Path:
    """Returns the history in which the audit of the newest job cannot be read."""
    path = tmp_path / "damaged.db"
    shutil.copy(file, path)
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute(
            "UPDATE audits SET document = ? WHERE run ="
            " (SELECT run FROM runs ORDER BY ended_at DESC, run_key DESC LIMIT 1)",
            [gzip_text(OTHER[request.param])],
        )
    return path


def test_every_list_is_the_same(run: Run, file: Path, damaged: Path) -> None:
    """The job's row and dollars are kept."""
    for question in QUESTIONS:
        before, after = (run(*question.split(), "--history", path) for path in (file, damaged))
        assert (after.exit_code, after.stdout) == (0, before.stdout), question


def test_the_page_lacks_one_detail(run: Run, file: Path, damaged: Path) -> None:
    """Every row and every other detail is there."""
    before, after = (run("report", "--history", path, "-o", "-") for path in (file, damaged))
    assert (before.exit_code, after.exit_code) == (0, 0)
    assert after.stdout.count('class="job"') == before.stdout.count('class="job"') - 1 > 100
    rows = [page.stdout.partition("<tfoot")[0].count(" data-u=") for page in (before, after)]
    assert rows[0] == rows[1]


def test_the_job_itself_says_that_its_audit_cannot_be_read(run: Run, damaged: Path) -> None:
    """The error is one sentence with a next step; every other job is shown."""
    listing = run("history", "--history", damaged, "--output", "jsonl", "--fields", "job").stdout
    names = [line.split('"')[-2] for line in listing.splitlines()]
    for command in (("show",), ("report", "-o", "-")):
        done = run(*command, names[0], "--history", damaged)
        assert (done.exit_code, done.stdout) == (3, "")
        message = f"the stored audit of {names[0]} cannot be read: audit it again"
        assert message in done.stderr
    assert run("show", names[1], "--history", damaged).exit_code == 0
