"""`sageaudit backfill`: what it asks, says and leaves behind, and what ends it."""

import io
import json
import os
import signal
import sqlite3
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import product
from pathlib import Path
from typing import Any

import boto3
import pytest
from moto import mock_aws

from sageaudit.adapters.history.dynamo.history import DynamoHistory
from sageaudit.adapters.history.dynamo.sweep_notes import DynamoSweepStore
from sageaudit.adapters.history.sqlite.history import SqliteHistory
from sageaudit.cli.commands import backfill as command
from sageaudit.domain.audit.record import AuditEntry
from sageaudit.domain.job.kinds import JobKind
from sageaudit.domain.sweep import JobList, first_state
from sageaudit.structs import replace
from sageaudit.workflows.doctor import permissions
from tests.adapters.history.tables import new_table
from tests.fakes import documents
from tests.fakes.aws_calls import aws_calls
from tests.fakes.command_line import Result, Run
from tests.fakes.dead_letters import ACCOUNT, REGION, Stack
from tests.fakes.entries import DETAIL, entry_ending_at, key, with_detail

OTHER = "222233334444"
NOW = datetime.now(UTC).replace(microsecond=0)
DAY = timedelta(days=1)
FREE = {"sts:GetCallerIdentity"}


def listed(name: str, ended_at: datetime, account: str = ACCOUNT) -> dict[str, Any]:
    """List's row of a training job."""
    return {
        "TrainingJobName": name,
        "TrainingJobArn": f"arn:aws:sagemaker:{REGION}:{account}:training-job/{name}",
        "TrainingJobStatus": "Completed",
        "CreationTime": ended_at - timedelta(hours=1),
        "TrainingEndTime": ended_at,
        "LastModifiedTime": ended_at,
    }


@dataclass
class Deployed:
    """A stack that has swept, and the command for it."""

    stack: Stack
    run: Run

    def __call__(self, *words: str | Path) -> Result:
        """In the stack's region."""
        return self.run("backfill", *words, "--region", REGION)

    @property
    def table(self) -> DynamoHistory:
        """Its history."""
        client = boto3.client("dynamodb", region_name=REGION)
        return DynamoHistory(client, self.stack.outputs["TableName"])

    @property
    def sent(self) -> list[str]:
        """The names of the jobs whose events SQS was given."""
        calls = self.stack.calls.by_name("sqs:SendMessageBatch")
        bodies = [
            json.loads(one["MessageBody"]) for call in calls for one in call.params["Entries"]
        ]
        return [body["detail"]["TrainingJobName"] for body in bodies]

    def swept(self, *accounts: str) -> None:
        """The first sweep of these accounts."""
        client = boto3.client("dynamodb", region_name=REGION)
        notes = DynamoSweepStore(client, self.stack.outputs["TableName"])
        notes.record_installation()
        for account, kind in product(accounts, JobKind):
            notes.save_list_state(JobList(account, REGION, kind), first_state(NOW))

    def has(self, *rows: Mapping[str, Any], account: str = ACCOUNT) -> None:
        """An account's training jobs."""
        self.stack.calls.answer(
            "sagemaker:ListTrainingJobs",
            lambda asked, _: {"TrainingJobSummaries": rows if asked == account else []},
        )


@pytest.fixture
def deployed(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, run: Run) -> Iterator[Deployed]:
    """One that audits its own account and another, and has 12 jobs of the past."""
    monkeypatch.delenv("MOTO_ACCOUNT_ID")  # moto: the account of the credentials
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    with mock_aws(), aws_calls() as calls:
        made = Deployed(Stack(calls), run)
        made.stack.outputs["TableName"] = new_table(boto3.client("dynamodb", region_name=REGION))
        outputs = [{"OutputKey": k, "OutputValue": v} for k, v in made.stack.outputs.items()]
        calls.answer("cloudformation:DescribeStacks", lambda *_: {"Stacks": [{"Outputs": outputs}]})
        for kind in JobKind:
            rows: Mapping[str, Any] = {kind.spec.list_key: []}
            calls.answer(f"sagemaker:{kind.spec.list_call}", lambda *_, rows=rows: rows)
        for children in (kind.spec.rollup.child_list for kind in JobKind if kind.spec.rollup):
            none: Mapping[str, Any] = {children.rows_key: []}
            calls.answer(f"sagemaker:{children.action}", lambda *_, rows=none: rows)
        made.swept(ACCOUNT, OTHER, documents.ACCOUNT)
        made.has(*(listed(f"job-{number:02}", NOW - (50 - number) * DAY) for number in range(12)))
        yield made


def test_it_calls_what_it_declares(deployed: Deployed, tmp_path: Path) -> None:
    """Jobs are sent, and nothing is written; a file is written, and no job is asked for."""
    for kind in (
        one.spec for one in JobKind if one.spec.rollup and not one.spec.rollup.has_name_prefix
    ):
        job = {
            kind.name_key: "churn",
            kind.arn_key: f"arn:aws:sagemaker:{REGION}:{ACCOUNT}:{kind.arn_word}/churn",
            kind.status_key: "Completed",
            "CreationTime": NOW - 41 * DAY,
            kind.end_key: NOW - 40 * DAY,
            "LastModifiedTime": NOW - 40 * DAY,
        }
        rows = {kind.list_key: [job]}
        deployed.stack.calls.answer(f"sagemaker:{kind.list_call}", lambda *_, rows=rows: rows)
    deployed.stack.calls.log.clear()
    assert deployed("--since", "60d", "--yes", "--per-minute", "6000").exit_code == 0
    needs = permissions.WRITING_COMMANDS["backfill"]
    called = {one.removesuffix("Batch") for one in deployed.stack.calls.names}
    assert called - FREE == needs.actions(())
    deployed.stack.calls.log.clear()
    path = a_history(
        tmp_path,
        entry_ending_at("train-1", NOW - 40 * DAY),
        entry_ending_at("train-2", NOW - 39 * DAY),
    )
    assert deployed("--from-history", path, "--yes").exit_code == 0
    called = deployed.stack.calls.names
    assert called <= {*needs.actions((permissions.FROM_HISTORY,)), "dynamodb:TransactWriteItems"}
    assert not [one for one in called if one.startswith(("sagemaker:", "sqs:"))]


def test_an_other_account_is_asked_by_its_role(deployed: Deployed) -> None:
    """One that the stack does not audit is left out: its events would be dead letters."""
    deployed.has(listed("theirs", NOW - 40 * DAY, account=OTHER), account=OTHER)
    words = ("--since", "60d", "--account", OTHER, "--role", "reader", "--yes")
    assert "1 of 1 job sent" in deployed(*words).stderr
    assert deployed.sent == ["theirs"]
    strange = "999999999999"
    deployed.has(listed("x", NOW - 40 * DAY, account=strange), account=strange)
    said = deployed("--since", "60d", "--account", strange, "--role", "reader", "--yes").stderr
    assert "1 job: 1 of accounts or regions that the stack does not audit" in said


def test_jobs_cost_and_hours_are_said_before_anything_is_sent(
    deployed: Deployed, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Old metrics before the list; nobody to answer ends it, and a no sends nothing."""
    said = deployed("--since", "100d", "--dry-run").stderr.splitlines()
    assert "have metrics of an hour at best" in said[0]
    assert said[1].startswith("sageaudit: of 3 accounts of the stack this lists yours")
    assert said[2].startswith("sageaudit: listing the jobs that ended")
    assert said[3] == "sageaudit: 12 jobs: 12 to send"
    assert "costs <$0.01" in said[4]
    assert "it takes 36 s, at 20 jobs a minute" in said[4]
    assert "5 minutes at best" in deployed("--since", "40d", "--dry-run").stderr
    assert "at best" not in deployed("--since", "10d", "--dry-run").stderr
    assert deployed("--since", "60d").exit_code == 2
    monkeypatch.setattr(command, "may_ask", lambda: True)
    monkeypatch.setattr("sys.stdin", io.StringIO("n\n"))
    assert deployed("--since", "60d").exit_code != 0
    assert not deployed.sent


@pytest.mark.parametrize(
    ("words", "code", "says"),
    [
        ((), 2, "how far back?"),
        (("--since", "2999-01-01"), 2, "is in the future"),
        (("--since", "500d"), 2, "are kept for 455 days"),
        (("--since", "soon"), 2, "is not a time"),
        (("--since", "9d", "--per-minute", "0"), 2, "0 is not in the range"),
        (("--from-history", "h.db", "--account", OTHER, "--role", "r"), 2, "asks no account"),
        (("--from-history", "absent.db"), 3, "absent.db"),
        (("--from-history", "other.db"), 2, "other.db"),
    ],
)
def test_bad_input_is_one_sentence(
    deployed: Deployed, tmp_path: Path, words: tuple[str, ...], code: int, says: str
) -> None:
    """Nothing is sent or written."""
    (tmp_path / "other.db").write_text('{"describe": {}}')
    found = deployed(*(tmp_path / one if one.endswith(".db") else one for one in words))
    assert (found.exit_code, says in found.stderr) == (code, True), found.stderr
    assert "Traceback" not in found.stderr


@pytest.mark.parametrize(
    ("call", "refusal", "code"),
    [
        ("cloudformation:DescribeStacks", "AccessDenied", 4),
        ("dynamodb:Query", "ResourceNotFoundException", 3),
        ("dynamodb:GetItem", "ExpiredTokenException", 4),
        ("sagemaker:ListTrainingJobs", "ThrottlingException", 5),
        ("sqs:SendMessageBatch", "AWS.SimpleQueueService.NonExistentQueue", 3),
        ("sqs:SendMessageBatch", "ExpiredToken", 4),
        ("sqs:GetQueueAttributes", "AccessDenied", 4),
    ],
)
def test_what_aws_refuses_ends_it_with_its_code(
    deployed: Deployed, call: str, refusal: str, code: int
) -> None:
    """A list that is throttled leaves its kind out, and says so."""
    deployed.stack.calls.refuse(call, refusal)
    found = deployed("--since", "60d", "--yes", "--per-minute", "6000")
    assert found.exit_code == code, found.stderr
    assert "Traceback" not in found.stderr


def test_no_job_and_a_stack_of_an_older_version_are_said(deployed: Deployed) -> None:
    """Before the first sweep, nobody knows which jobs are of the past."""
    deployed.has()
    found = deployed("--since", "60d", "--yes")
    assert (found.exit_code, "0 jobs" in found.stderr) == (0, True)
    deployed.stack.calls.answer(
        "cloudformation:DescribeStacks", lambda *_: {"Stacks": [{"Outputs": []}]}
    )
    found = deployed("--since", "60d", "--yes")
    assert (found.exit_code, "has no output TableName" in found.stderr) == (2, True)


def test_ctrl_c_keeps_what_was_sent_and_the_next_call_goes_on(deployed: Deployed) -> None:
    """What was sent and is not audited may be sent once more; `audit` takes it once."""

    def interrupted(_: str, __: Mapping[str, Any]) -> None:
        del deployed.stack.calls.answers["sqs:SendMessageBatch"]
        os.kill(os.getpid(), signal.SIGINT)

    deployed.stack.calls.answer("sqs:SendMessageBatch", interrupted)
    found = deployed("--since", "60d", "--yes", "--per-minute", "60")
    assert (found.exit_code, "10 of 12 jobs sent" in found.stderr) == (130, True), found.stderr
    assert "run the same command again" in found.stderr
    assert deployed("--since", "60d", "--yes", "--per-minute", "6000").exit_code == 0
    assert len({*deployed.sent}) == 12


def a_history(folder: Path, *entries: AuditEntry) -> Path:
    """A scan's file."""
    path = folder / "history.db"
    with SqliteHistory(path) as history:
        for one in entries:
            history.record(one)
    return path


def test_a_scans_audits_are_written_once_and_no_newer_one_is_touched(
    deployed: Deployed, tmp_path: Path
) -> None:
    """With what they were judged by; what the table has stays, and what ended lately is left."""
    old = with_detail(entry_ending_at("train-1", NOW - 200 * DAY), DETAIL)
    known = entry_ending_at("train-2", NOW - 190 * DAY)
    deployed.table.record(replace(known, last_modified_at=NOW))
    recent = entry_ending_at("train-3", datetime.now(UTC))  # after the installation
    path = a_history(tmp_path, old, known, recent)
    found = deployed("--from-history", path, "--yes")
    words = "3 jobs: 1 written to history-"
    assert (found.exit_code, words in found.stderr) == (0, True), found.stderr
    assert "3 of them were made by rules of another version" in found.stderr
    table, file = deployed.table, SqliteHistory(path)
    assert table.audit(key("train-1")) == file.audit(key("train-1"))
    assert table.detail(key("train-1")) == DETAIL
    head, before = table.summary(key("train-2")), table.summary(key("train-3"))
    assert head is not None
    assert (head.last_modified_at, head.version, before) == (NOW, 1, None)
    again = deployed("--from-history", path, "--since", "250d", "--yes").stderr
    assert "3 jobs: 2 audited, 1 not of the past" in again
    assert "0 audits" in deployed("--from-history", path, "--since", "2020-01", "--yes").stderr


def test_an_audit_of_the_file_that_cannot_be_read_stops_no_other(
    deployed: Deployed, tmp_path: Path
) -> None:
    """It is counted, and the others are written."""
    runs = [entry_ending_at(f"train-{day}", NOW - day * DAY) for day in (200, 190, 180)]
    path = a_history(tmp_path, *runs)
    with sqlite3.connect(path) as sql:
        sql.execute(
            "UPDATE audits SET document = '{' WHERE run ="
            " (SELECT run FROM runs WHERE job = 'train-190')"
        )
    found = deployed("--from-history", path, "--yes")
    assert (found.exit_code, "2 written to history-" in found.stderr) == (0, True), found.stderr
    assert "1 that cannot be read" in found.stderr
    assert deployed.table.summary(key("train-180")) is not None
