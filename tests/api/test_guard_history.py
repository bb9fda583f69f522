"""A guard reads the history, but waits at most a second for it."""

import json
import re
import sqlite3
import threading
from collections.abc import Iterator
from contextlib import closing
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

import sageaudit
from sageaudit.adapters.history.opened import HistorySource
from sageaudit.api import guarded_call
from sageaudit.cli.main import cli
from sageaudit.domain.audit.summary import AuditSummary
from sageaudit.domain.job.kinds import JobKind
from sageaudit.errors import AccessDenied
from tests.fakes.families import earlier_run
from tests.fakes.guarded import Aws, train
from tests.fakes.planned import body

RECORDED = Path(__file__).parents[2] / "local" / "recordings" / "composed-g4dn-12xlarge.json"
_ANSWER = json.loads(RECORDED.read_text("utf-8"))["describe"]
AGAIN = {
    key: _ANSWER[key]
    for key in (
        *("TrainingJobName", "HyperParameters", "AlgorithmSpecification", "RoleArn"),
        *("InputDataConfig", "OutputDataConfig", "ResourceConfig", "StoppingCondition"),
    )
}
"""The request of the recorded job, which cost $14.67."""


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Returns a history file with the audit of the recorded job."""
    words = ["audit", "--recording", str(RECORDED), "--history", str(tmp_path / "history.db")]
    assert CliRunner().invoke(cli, words, standalone_mode=False).exception is None
    return tmp_path / "history.db"


@pytest.fixture
def history(path: Path) -> Iterator[sageaudit.AuditHistory]:
    with sageaudit.AuditHistory.open(path) as history:
        yield history


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Shortens the second that a call waits."""
    monkeypatch.setattr(guarded_call, "HISTORY_TIMEOUT_S", 0.1)


class FakeHistory:
    """A history that answers when it is told to, or fails."""

    def __init__(
        self, error: BaseException | None = None, runs: tuple[AuditSummary, ...] = ()
    ) -> None:
        self.answers = threading.Event()
        self.stored_runs = runs
        self.error = error
        self.reads = 0

    def runs(self, *_: Any, **__: Any) -> Iterator[Any]:
        self.reads += 1
        if self.error is not None:
            raise self.error
        assert self.stored_runs or self.answers.wait(30)
        return iter(self.stored_runs)

    def audit(self, *_: Any) -> None:
        return None

    def opened(self) -> sageaudit.AuditHistory:
        source: Any = self
        return sageaudit.AuditHistory(HistorySource(source, source, "fake"))


def printed_text(written: list[str]) -> str:
    """Returns all texts in one line."""
    return " ".join("".join(written).split())


def test_the_history_says_what_the_family_usually_costs(
    client: Any, aws: Aws, history: sageaudit.AuditHistory
) -> None:
    written: list[str] = []
    with sageaudit.guard(client, history=history, write=written.append):
        client.create_training_job(**AGAIN)
    assert (
        "Will probably cost about $14.67 in 3 h (median of 1 completed run of its family"
        in printed_text(written)
    )
    assert aws.sent == ["CreateTrainingJob"]


def test_a_new_family_is_its_first_run(client: Any, history: sageaudit.AuditHistory) -> None:
    written: list[str] = []
    with sageaudit.guard(client, history=history, write=written.append):
        train(client)
    assert "First run of its family" in printed_text(written)


def test_the_usual_cost_counts_where_the_highest_is_not_known(client: Any, aws: Aws) -> None:
    """A transform job has no limit. Its request has no role, so the guard needs the account."""
    run = earlier_run(kind="transform", total_usd=Decimal("80.12"))
    fake, written = FakeHistory(runs=(run,) * 3), list[str]()

    def transform(**options: Any) -> None:
        options = {"account": "111122223333", **options}
        with sageaudit.guard(client, history=fake.opened(), write=written.append, **options):
            client.create_transform_job(**body(JobKind.TRANSFORM))

    with pytest.raises(sageaudit.JobRefused, match=re.escape("its cost is usually about $80.12")):
        transform(max_usd=50)
    transform(max_usd=81)
    transform(max_usd=50, account=None)
    assert len(aws.sent) == 2
    note = "The history cannot be read without account (give account=...)."
    assert note in printed_text(written)


def test_a_history_that_hangs_costs_a_call_its_second_once(
    client: Any, aws: Aws, quick: None
) -> None:
    """While it hangs, later calls do not wait, and start no further thread."""
    fake, written = FakeHistory(), list[str]()
    with sageaudit.guard(client, history=fake.opened(), write=written.append):
        train(client)
        train(client, {"TrainingJobName": "train-2"})
        assert fake.reads == 1
        assert printed_text(written).count("The history did not answer within one second") == 2
        assert printed_text(written).count("At most $0.24") == 2
        fake.answers.set()
        for thread in threading.enumerate():
            if thread.name == "sageaudit-history":
                assert thread.daemon
                thread.join()
        train(client, {"TrainingJobName": "train-3"})
        assert fake.reads == 2
    assert len(aws.sent) == 3


def test_a_pipeline_waits_a_second_for_all_its_jobs(client: Any, quick: None) -> None:
    fake, written = FakeHistory(), list[str]()
    steps = [{"Name": f"s{n}", "Type": "Training", "Arguments": body()} for n in range(5)]
    definition = json.dumps({"Version": "2020-12-01", "Steps": steps})
    with sageaudit.guard(client, history=fake.opened(), write=written.append):
        client.update_pipeline(PipelineName="weekly", PipelineDefinition=definition)
    assert fake.reads == 1
    fake.answers.set()


def test_a_locked_file_does_not_stop_a_call(client: Any, aws: Aws, path: Path, quick: None) -> None:
    """Another process writes the file, in a mode in which nobody can read meanwhile."""
    written: list[str] = []
    with closing(sqlite3.connect(path, isolation_level=None)) as other:
        other.execute("PRAGMA journal_mode = DELETE")
        with sageaudit.AuditHistory.open(path) as history:
            other.execute("BEGIN EXCLUSIVE")
            with sageaudit.guard(client, history=history, write=written.append):
                client.create_training_job(**AGAIN)
            other.execute("ROLLBACK")
            for thread in threading.enumerate():
                if thread.name == "sageaudit-history":
                    thread.join()
    assert "The history did not answer within one second, so it was not used." in printed_text(
        written
    )
    assert aws.sent == ["CreateTrainingJob"]


@pytest.mark.parametrize(
    ("error", "reason"),
    [
        (
            AccessDenied("dynamodb:Query", "you may not read the table"),
            "you may not read the table",
        ),
        (RuntimeError(), "RuntimeError"),
    ],
)
def test_a_history_that_fails_is_not_used(
    error: Exception, reason: str, client: Any, aws: Aws
) -> None:
    written: list[str] = []
    with sageaudit.guard(client, history=FakeHistory(error).opened(), write=written.append):
        train(client)
    assert f"The history was not used: {reason}." in printed_text(written)
    assert "At most $0.24" in printed_text(written)
    assert aws.sent == ["CreateTrainingJob"]


def test_a_closed_history_is_not_used(client: Any, aws: Aws, path: Path) -> None:
    with sageaudit.AuditHistory.open(path) as history:
        pass
    written: list[str] = []
    with sageaudit.guard(client, history=history, write=written.append):
        train(client)
    assert "The history was not used: " in printed_text(written)
    assert aws.sent == ["CreateTrainingJob"]
