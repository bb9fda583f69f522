"""`--history FILE` and `--table NAME`: what commands read, and what `audit` records when told."""

import json
import stat
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from sageaudit.adapters.history import opened as histories
from sageaudit.adapters.history.sqlite.history import SqliteHistory
from sageaudit.cli.messages import print_message
from sageaudit.domain.audit.record import RunQuery
from sageaudit.domain.audit.summary import AuditSummary
from sageaudit.domain.policy.policy import Policy
from sageaudit.errors import BadRecording, BadUsage, NoHistory
from sageaudit.exits import Exit
from sageaudit.ports import History
from sageaudit.structs import replace
from sageaudit.workflows.recordings.run import audit_recordings
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
    """A data folder that does not exist yet."""
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    return tmp_path / "data" / "sageaudit"


@pytest.fixture
def nightly(tmp_path: Path) -> list[Path]:
    """Three runs of 14 minutes, a day apart: too short to be judged alone."""
    paths = []
    for number in range(3):
        plot = replace(SHORT, name="nightly", begin=BEGIN + timedelta(days=number))
        paths.append(tmp_path / f"{number}.json")
        paths[-1].write_text(json.dumps(training(plot, number)))
    return paths


def yesterday() -> datetime:
    """An end within the days that commands look back."""
    return datetime.now(UTC).replace(microsecond=0) - timedelta(days=1)


def heads(path: Path) -> list[AuditSummary]:
    """What a history file has, the newest first."""
    with SqliteHistory(path, create=False) as history:
        return list(history.runs(RunQuery.for_account(ACCOUNT)))


def test_the_users_own_file_is_read_where_none_is_named(home: Path, run: Run) -> None:
    """It lies in the user's data folder, which is made for its owner alone."""
    asked = ("account", ACCOUNT, "--output", "json")
    missing = run(*asked)
    assert missing.exit_code == Exit.NOT_FOUND
    assert "make one with `sageaudit scan`" in missing.stderr
    with histories.open_history(None, None, None, None, create=True, warn=print_message) as source:
        source.history.record(replace(entry_ending_at("job", yesterday()), run_summary=None))
        assert source.name == str(home / "history.db") == str(histories.default_path())
    assert stat.S_IMODE(home.stat().st_mode) == 0o700
    assert run(*asked).exit_code == Exit.NOT_FOUND  # no facts: nothing to judge
    assert f"no audited run of account {ACCOUNT}" in run(*asked).stderr


def test_reading_makes_no_file(tmp_path: Path) -> None:
    """A mistyped name is said, and stays a name."""
    path = tmp_path / "typo.db"
    with pytest.raises(NoHistory, match="makes one"):
        histories.open_history(path, None, None, None, warn=print_message)
    assert not path.exists()


def test_a_user_without_a_home_names_a_file(monkeypatch: pytest.MonkeyPatch) -> None:
    """One sentence in place of a guess."""
    monkeypatch.delenv("XDG_DATA_HOME")
    monkeypatch.setattr(Path, "home", lambda: (_ for _ in ()).throw(RuntimeError("no home")))
    with pytest.raises(BadUsage, match="set HOME"):
        histories.default_path()


def test_audit_judges_with_the_history_that_it_is_told(
    nightly: list[Path], tmp_path: Path, run: Run
) -> None:
    """One call a night: the third run is judged with those before it, as by the Lambda."""
    path, pools = tmp_path / "history.db", []
    for file in nightly:
        told = run("audit", "--recording", file, "--history", path, "--output", "json")
        pools.append(told.document()["audit"].get("pool"))
    assert [pool and pool["runs"] for pool in pools] == [None, 2, 3]
    assert [head.job for head in heads(path)] == ["nightly-2", "nightly-1", "nightly-0"]
    assert not any(head.due_at for head in heads(path))


def test_a_set_is_recorded_with_its_training_jobs(tmp_path: Path, run: Run) -> None:
    """Each training job is a run of the history; shown is the tuning job, as without one."""
    path = tmp_path / "history.db"
    kept = run("audit", "--recording", SET, "--history", path, "--output", "json").document()
    alone = run("audit", "--recording", SET, "--output", "json").document()
    assert kept["bill"] == alone["bill"]
    assert len(heads(path)) == len(kept["children"]) == len(alone["children"])


def test_a_recording_that_cannot_be_read_does_not_stop_the_others(
    nightly: list[Path], tmp_path: Path, run: Run
) -> None:
    """It is said in its place."""
    path, broken = tmp_path / "history.db", tmp_path / "broken.json"
    broken.write_text("{")
    done = run("audit", "--recording", broken, "--recording", nightly[0], "--history", path)
    assert done.exit_code == Exit.USAGE
    assert str(broken) in done.stderr
    assert len(heads(path)) == 1


def test_a_history_that_cannot_be_written_is_said_once(
    nightly: list[Path], tmp_path: Path, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Not once for each job."""
    path = tmp_path / "history.db"
    run("audit", "--recording", nightly[0], "--history", path)
    words = [word for file in nightly for word in ("--recording", file)]
    content = path.read_bytes()
    path.write_bytes(content[:4096] + bytes(len(content) - 4096))
    done = run("audit", *words, "--history", path)
    assert done.exit_code == Exit.USAGE
    assert done.stderr.count("is damaged") == 1


def copied(source: Path, target: History) -> None:
    """Records in the target what the Lambdas would have recorded there."""
    with SqliteHistory(source, create=False) as history:
        for head in heads(source):
            document = history.audit(head.key)
            assert document is not None
            kept = replace(
                entry(), key=head.key, document=document, detail=history.detail(head.key)
            )
            modified = replace(kept, last_modified_at=head.last_modified_at, run_summary=head)
            target.record(modified)


def test_an_audit_beside_a_table_records_nothing_in_it(
    table: History, nightly: list[Path], tmp_path: Path, run: Run
) -> None:
    """Its notices come from the Lambdas alone; runs of one call see each other all the same."""
    path = tmp_path / "history.db"
    run("audit", "--recording", nightly[0], "--history", path)
    copied(path, table)
    audits = audit_recordings(nightly[1:], Policy(), histories.TableOverlay(table))
    pools = [None if isinstance(one, BadRecording) else one["audit"].get("pool") for one in audits]
    assert [pool and pool["runs"] for pool in pools] == [2, 3]
    assert [head.job for head in table.runs(RunQuery.for_account(ACCOUNT))] == ["nightly-0"]


@pytest.mark.parametrize(("mode", "said"), [(0o600, 0), (0o644, 0), (0o664, 1), (0o602, 1)])
def test_a_file_that_others_may_write_is_said_once(
    run: Run, tmp_path: Path, mode: int, said: int
) -> None:
    """On stderr, with what ends it; the answer is the same."""
    path = tmp_path / "history.db"
    with SqliteHistory(path) as history:
        history.record(entry_ending_at("job", yesterday()))
    path.chmod(mode)
    done = run("history", "--history", path)
    assert (done.exit_code, "job" in done.stdout) == (0, True)
    assert done.stderr.count(f"others may write {path}") == said
    assert done.stderr.count("`chmod go-w ") == said


@pytest.fixture
def two(tmp_path: Path) -> tuple[Path, Path]:
    """Two histories, of a job each."""
    paths = tmp_path / "one.db", tmp_path / "two.db"
    for number, path in enumerate(paths, start=1):
        with SqliteHistory(path) as history:
            history.record(entry_ending_at(f"job-{number}", yesterday()))
    return paths


def test_the_environment_names_the_history_of_every_command_that_takes_one(
    two: tuple[Path, Path], run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An option wins over it; both variables at once are refused, and an option ends that too."""
    first, second = two
    monkeypatch.setenv("SAGEAUDIT_HISTORY", str(first))
    assert "job-1" in run("history").stdout
    assert "job-2" in run("history", "--history", second).stdout
    monkeypatch.setenv("SAGEAUDIT_TABLE", "a-table")
    both = run("history")
    assert both.exit_code == 2
    assert "SAGEAUDIT_HISTORY or SAGEAUDIT_TABLE" in both.stderr
    assert "job-2" in run("history", "--history", second).stdout
    monkeypatch.delenv("SAGEAUDIT_HISTORY")
    asked = []

    def open_table(table: str, *_: object) -> None:
        asked.append(table)
        raise NoHistory("it is asked for")

    monkeypatch.setattr(histories, "_open_table", open_table)
    run("history")
    run("history", "--table", "another")
    assert asked == ["a-table", "another"]
    assert "job-1" in run("history", "--history", first).stdout


@pytest.mark.parametrize("command", ["history", "show", "advice snooze", "check", "reconcile"])
def test_the_help_names_the_variables(command: str, run: Run) -> None:
    """Beside the options whose defaults they are."""
    shown = " ".join(run(*command.split(), "--help").stdout.split())
    assert "[env var: SAGEAUDIT_HISTORY]" in shown
    assert "[env var: SAGEAUDIT_TABLE]" in shown


def test_audit_says_where_it_records(tmp_path: Path, run: Run) -> None:
    """Once, on stderr; without a history it writes nothing, and says nothing."""
    recordings = Path(__file__).parents[2] / "local" / "recordings"
    recording = recordings / "training-048-g4dn-xlarge-completed.json"
    path = tmp_path / "kept.db"
    said = run("audit", "--recording", recording, "--history", path).stderr
    assert said.count(f"the audits are kept in {path}\n") == 1
    assert run("audit", "--recording", recording).stderr == ""
