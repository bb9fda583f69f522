"""`--history FILE` and `--table NAME`: what commands read, and what `audit` records."""

import json
import stat
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import SimpleNamespace

import pytest

from sageaudit.adapters.history import opened as histories
from sageaudit.adapters.history.dynamo.history import DynamoHistory
from sageaudit.adapters.history.dynamo.sweep_notes import DynamoSweepStore
from sageaudit.adapters.history.sqlite.history import SqliteHistory
from sageaudit.cli.messages import print_message
from sageaudit.domain.audit.record import RunQuery
from sageaudit.domain.audit.summary import AuditSummary
from sageaudit.domain.policy.policy import Policy
from sageaudit.errors import BadRecording, BadUsage, NoHistory
from sageaudit.exits import Exit
from sageaudit.ports import History
from sageaudit.structs import replace
from sageaudit.workflows.recordings.run import audit_recordings, recorded_files
from tests.adapters.history.tables import dynamodb, new_table
from tests.fakes.command_line import Run
from tests.fakes.documents import ACCOUNT
from tests.fakes.entries import entry, entry_ending_at
from tests.labelled.machine import Doing, one_host
from tests.labelled.made_up_job import BEGIN, Plot, training

DATA = Path(__file__).parents[1] / "recorded" / "data" / "jobs"
SET = DATA / "tuning-set-bayesian-221019-1807.json"
SHORT = Plot("ml.g5.xlarge", one_host(Doing(14, cores=2.0, gpus=(0.12,), gib=4, gpu_gib=(2,))))


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Returns a data folder that does not exist yet."""
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    return tmp_path / "data" / "sageaudit"


@pytest.fixture
def nightly(tmp_path: Path) -> list[Path]:
    """Returns three runs of 14 minutes, a day apart, which are too short to be judged alone."""
    paths = []
    for number in range(3):
        plot = replace(SHORT, name="nightly", begin=BEGIN + timedelta(days=number))
        paths.append(tmp_path / f"{number}.json")
        paths[-1].write_text(json.dumps(training(plot, number)))
    return paths


def yesterday() -> datetime:
    """Returns an end within the days that commands read by default."""
    return datetime.now(UTC).replace(microsecond=0) - timedelta(days=1)


def summaries(path: Path) -> list[AuditSummary]:
    """Returns the summaries in a history file, newest first."""
    with SqliteHistory(path, create=False) as history:
        return list(history.runs(RunQuery.for_account(ACCOUNT)))


def test_the_users_own_file_is_read_by_default(home: Path, run: Run) -> None:
    """It is in the user's data folder, which only the owner can read."""
    arguments = ("account", ACCOUNT, "--output", "json")
    missing = run(*arguments)
    assert missing.exit_code == Exit.NOT_FOUND
    assert "`sageaudit scan` makes one" in missing.stderr
    with histories.open_history(None, None, None, None, create=True, warn=print_message) as source:
        source.history.record(replace(entry_ending_at("job", yesterday()), run_summary=None))
        assert source.name == str(home / "history.db") == str(histories.default_path())
    assert stat.S_IMODE(home.stat().st_mode) == 0o700
    assert run(*arguments).exit_code == Exit.NOT_FOUND  # no facts: nothing to judge
    assert f"no audited run of account {ACCOUNT}" in run(*arguments).stderr


def test_reading_creates_no_file(tmp_path: Path) -> None:
    """A mistyped name is reported."""
    path = tmp_path / "typo.db"
    with pytest.raises(NoHistory, match="makes one"):
        histories.open_history(path, None, None, None, warn=print_message)
    assert not path.exists()


def test_a_user_without_a_home_names_a_file(monkeypatch: pytest.MonkeyPatch) -> None:
    """The error is one sentence."""
    monkeypatch.delenv("XDG_DATA_HOME")
    monkeypatch.setattr(Path, "home", lambda: (_ for _ in ()).throw(RuntimeError("no home")))
    with pytest.raises(BadUsage, match="set HOME"):
        histories.default_path()


def test_audit_judges_with_the_named_history(nightly: list[Path], tmp_path: Path, run: Run) -> None:
    """One call is made each night.

    The third run is judged with the earlier ones, as by the Lambda.
    """
    path, pools = tmp_path / "history.db", []
    for file in nightly:
        with_history = run("audit", "--recording", file, "--history", path, "--output", "json")
        pools.append(with_history.document()["audit"].get("pool"))
    assert [pool and pool["runs"] for pool in pools] == [None, 2, 3]
    assert [head.job for head in summaries(path)] == ["nightly-2", "nightly-1", "nightly-0"]
    assert not any(head.due_at for head in summaries(path))


def test_a_set_is_recorded_with_its_training_jobs(tmp_path: Path, run: Run) -> None:
    """Each training job is a run of the history.

    The tuning job is printed, as without a history.
    """
    path = tmp_path / "history.db"
    stored = run("audit", "--recording", SET, "--history", path, "--output", "json").document()
    alone = run("audit", "--recording", SET, "--output", "json").document()
    assert stored["bill"] == alone["bill"]
    assert len(summaries(path)) == len(stored["children"]) == len(alone["children"])


def test_a_recording_that_cannot_be_read_does_not_stop_the_others(
    nightly: list[Path], tmp_path: Path, run: Run
) -> None:
    """The error is printed in its place."""
    path, broken = tmp_path / "history.db", tmp_path / "broken.json"
    broken.write_text("{")
    done = run("audit", "--recording", broken, "--recording", nightly[0], "--history", path)
    assert done.exit_code == Exit.USAGE
    assert str(broken) in done.stderr
    assert len(summaries(path)) == 1


def test_a_history_that_cannot_be_written_is_reported_once(
    nightly: list[Path], tmp_path: Path, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is not repeated for each job."""
    path = tmp_path / "history.db"
    run("audit", "--recording", nightly[0], "--history", path)
    words = [word for file in nightly for word in ("--recording", file)]
    content = path.read_bytes()
    path.write_bytes(content[:4096] + bytes(len(content) - 4096))
    done = run("audit", *words, "--history", path)
    assert done.exit_code == Exit.USAGE
    assert done.stderr.count("is damaged") == 1


def record_copies(source: Path, target: History) -> None:
    """Records in the target what the Lambdas would have recorded there."""
    with SqliteHistory(source, create=False) as history:
        for head in summaries(source):
            document = history.audit(head.key)
            assert document is not None
            stored = replace(
                entry(), key=head.key, document=document, detail=history.detail(head.key)
            )
            modified = replace(stored, last_modified_at=head.last_modified_at, run_summary=head)
            target.record(modified)


def test_an_audit_with_a_table_records_nothing_in_it(
    table: History, nightly: list[Path], tmp_path: Path, run: Run
) -> None:
    """Only the Lambdas write notices. Runs of one call still see each other."""
    path = tmp_path / "history.db"
    run("audit", "--recording", nightly[0], "--history", path)
    record_copies(path, table)
    audits = audit_recordings(
        recorded_files(nightly[1:], is_history_persistent=True),
        Policy(),
        histories.TableOverlay(table),
        is_history_persistent=True,
    )
    pools = [
        None if isinstance(audited, BadRecording) else audited["audit"].get("pool")
        for audited in audits
    ]
    assert [pool and pool["runs"] for pool in pools] == [2, 3]
    assert [head.job for head in table.runs(RunQuery.for_account(ACCOUNT))] == ["nightly-0"]


@pytest.mark.parametrize(("mode", "message"), [(0o600, 0), (0o644, 0), (0o664, 1), (0o602, 1)])
def test_a_file_that_others_may_write_is_reported_once(
    run: Run, tmp_path: Path, mode: int, message: int
) -> None:
    """The warning on stderr says how to end it; the output is the same."""
    path = tmp_path / "history.db"
    with SqliteHistory(path) as history:
        history.record(entry_ending_at("job", yesterday()))
    path.chmod(mode)
    done = run("history", "--history", path)
    assert (done.exit_code, "job" in done.stdout) == (0, True)
    assert done.stderr.count(f"others may write {path}") == message
    assert done.stderr.count("`chmod go-w ") == message


@pytest.fixture
def two_histories(tmp_path: Path) -> tuple[Path, Path]:
    """Returns two histories with one job each."""
    paths = tmp_path / "one.db", tmp_path / "two.db"
    for number, path in enumerate(paths, start=1):
        with SqliteHistory(path) as history:
            history.record(entry_ending_at(f"job-{number}", yesterday()))
    return paths


def test_the_environment_names_the_history_of_every_command_that_takes_one(
    two_histories: tuple[Path, Path], run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An option overrides a variable.

    Both variables at once are refused, unless an option is given.
    """
    first, second = two_histories
    monkeypatch.setenv("SAGEAUDIT_HISTORY", str(first))
    assert "job-1" in run("history").stdout
    assert "job-2" in run("history", "--history", second).stdout
    monkeypatch.setenv("SAGEAUDIT_TABLE", "a-table")
    both = run("history")
    assert both.exit_code == 2
    assert "SAGEAUDIT_HISTORY or SAGEAUDIT_TABLE" in both.stderr
    assert "job-2" in run("history", "--history", second).stdout
    monkeypatch.delenv("SAGEAUDIT_HISTORY")
    arguments = []

    def open_table(table: str, *_: object) -> None:
        arguments.append(table)
        raise NoHistory("it is asked for")

    monkeypatch.setattr(histories, "_open_table", open_table)
    run("history")
    run("history", "--table", "another")
    assert arguments == ["a-table", "another"]
    assert "job-1" in run("history", "--history", first).stdout


@pytest.mark.parametrize("command", ["history", "show", "advice snooze", "check", "reconcile"])
def test_the_help_names_the_variables(command: str, run: Run) -> None:
    """They are shown with the options whose defaults they are."""
    output = " ".join(run(*command.split(), "--help").stdout.split())
    assert "[env var: SAGEAUDIT_HISTORY]" in output
    assert "[env var: SAGEAUDIT_TABLE]" in output


def test_audit_says_where_it_records(tmp_path: Path, run: Run) -> None:
    """It prints this once, on stderr; without a history it writes and prints nothing."""
    recordings = Path(__file__).parents[2] / "local" / "recordings"
    recording = recordings / "training-048-g4dn-xlarge-completed.json"
    path = tmp_path / "kept.db"
    message = run("audit", "--recording", recording, "--history", path).stderr
    assert message.count(f"the audits are saved in {path}\n") == 1
    assert run("audit", "--recording", recording).stderr == ""


def test_a_table_knows_when_its_deployment_was_installed(tmp_path: Path) -> None:
    """By the first sweep. A file has no installation."""
    with dynamodb() as client:
        name = new_table(client)
        history, session = (
            DynamoHistory(client, name),
            SimpleNamespace(client=lambda *_, **__: client),
        )
        source = histories.HistorySource(history, history, name, session)
        assert source.installed_at() is None
        DynamoSweepStore(client, name).record_installation()
        installed_at = source.installed_at()
    assert installed_at is not None
    assert abs(datetime.now(UTC) - installed_at) < timedelta(hours=1)
    with SqliteHistory(tmp_path / "history.db") as file_history:
        assert histories.HistorySource(file_history, file_history, "file").installed_at() is None
