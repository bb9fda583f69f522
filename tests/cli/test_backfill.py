"""`sageaudit backfill`: what it reads, prints and writes, and what stops it."""

import io
import json
import os
import signal
import sqlite3
from collections.abc import Iterator, Mapping
from contextlib import closing
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
from tests.fakes.sweeps import store_list

OTHER = "222233334444"
NOW = datetime.now(UTC).replace(microsecond=0)
DAY = timedelta(days=1)
FREE = {"sts:GetCallerIdentity"}


def list_row(name: str, ended_at: datetime, account: str = ACCOUNT) -> dict[str, Any]:
    """Returns a training job's row of a List* response."""
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
    """A stack after its first sweep, and the command for it."""

    stack: Stack
    run: Run

    def __call__(self, *words: str | Path) -> Result:
        """Runs the command in the stack's region."""
        return self.run("backfill", *words, "--region", REGION)

    @property
    def table(self) -> DynamoHistory:
        """Returns the stack's history."""
        client = boto3.client("dynamodb", region_name=REGION)
        return DynamoHistory(client, self.stack.outputs["TableName"])

    @property
    def sent_jobs(self) -> list[str]:
        """Returns the names of the jobs whose events were sent to SQS."""
        calls = self.stack.calls.by_name("sqs:SendMessageBatch")
        bodies = [
            json.loads(item["MessageBody"]) for call in calls for item in call.params["Entries"]
        ]
        return [body["detail"]["TrainingJobName"] for body in bodies]

    def sweep(self, *accounts: str) -> None:
        """Runs the first sweep of these accounts."""
        client = boto3.client("dynamodb", region_name=REGION)
        notes = DynamoSweepStore(client, self.stack.outputs["TableName"])
        notes.record_installation()
        for account, kind in product(accounts, JobKind):
            store_list(notes, JobList(account, REGION, kind), first_state(NOW))

    def add_jobs(self, *rows: Mapping[str, Any], account: str = ACCOUNT) -> None:
        """Adds training jobs to an account."""
        self.stack.calls.answer(
            "sagemaker:ListTrainingJobs",
            lambda arguments, _: {"TrainingJobSummaries": rows if arguments == account else []},
        )


@pytest.fixture
def deployed(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, run: Run) -> Iterator[Deployed]:
    """Yields a stack that audits its own account and another one, with 12 past jobs."""
    monkeypatch.delenv("MOTO_ACCOUNT_ID")  # moto: the account of the credentials
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    with mock_aws(), aws_calls() as calls:
        deployed_stack = Deployed(Stack(calls), run)
        deployed_stack.stack.outputs["TableName"] = new_table(
            boto3.client("dynamodb", region_name=REGION)
        )
        outputs = [
            {"OutputKey": k, "OutputValue": v} for k, v in deployed_stack.stack.outputs.items()
        ]
        calls.answer("cloudformation:DescribeStacks", lambda *_: {"Stacks": [{"Outputs": outputs}]})
        for kind in JobKind:
            rows: Mapping[str, Any] = {kind.spec.list_key: []}
            calls.answer(f"sagemaker:{kind.spec.list_call}", lambda *_, rows=rows: rows)
        for children in (kind.spec.rollup.child_list for kind in JobKind if kind.spec.rollup):
            none: Mapping[str, Any] = {children.rows_key: []}
            calls.answer(f"sagemaker:{children.action}", lambda *_, rows=none: rows)
        deployed_stack.sweep(ACCOUNT, OTHER, documents.ACCOUNT)
        deployed_stack.add_jobs(
            *(list_row(f"job-{number:02}", NOW - (50 - number) * DAY) for number in range(12))
        )
        yield deployed_stack


def test_it_calls_only_declared_actions(deployed: Deployed, tmp_path: Path) -> None:
    """Jobs are sent without other writes; a file is copied without reading jobs."""
    for kind in (
        item.spec for item in JobKind if item.spec.rollup and not item.spec.rollup.has_name_prefix
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
    called = {item.removesuffix("Batch") for item in deployed.stack.calls.names}
    assert called - FREE == needs.actions(())
    deployed.stack.calls.log.clear()
    path = scanned_history(
        tmp_path,
        entry_ending_at("train-1", NOW - 40 * DAY),
        entry_ending_at("train-2", NOW - 39 * DAY),
    )
    assert deployed("--from-history", path, "--yes").exit_code == 0
    called = deployed.stack.calls.names
    assert called <= {*needs.actions((permissions.FROM_HISTORY,)), "dynamodb:TransactWriteItems"}
    assert not [item for item in called if item.startswith(("sagemaker:", "sqs:"))]


def test_another_account_is_read_with_its_role(deployed: Deployed) -> None:
    """An account that the stack does not audit is left out, since its events would become dead
    letters.
    """
    deployed.add_jobs(list_row("theirs", NOW - 40 * DAY, account=OTHER), account=OTHER)
    words = ("--since", "60d", "--account", OTHER, "--role", "reader", "--yes")
    assert "1 of 1 job sent" in deployed(*words).stderr
    assert deployed.sent_jobs == ["theirs"]
    strange = "999999999999"
    deployed.add_jobs(list_row("x", NOW - 40 * DAY, account=strange), account=strange)
    message = deployed("--since", "60d", "--account", strange, "--role", "reader", "--yes").stderr
    assert "1 job: 1 of accounts or regions that the stack does not audit" in message


def test_jobs_cost_and_hours_are_printed_before_anything_is_sent(
    deployed: Deployed, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The warning about old metrics comes before the list.

    Without an answer, or with a no, nothing is sent.
    """
    message = deployed("--since", "100d", "--dry-run").stderr.splitlines()
    assert "have metrics with a period of an hour at best" in message[0]
    assert message[1].startswith("sageaudit: this lists only your account, of 3 in the stack")
    assert message[2].startswith("sageaudit: listing the jobs that ended")
    assert message[3] == "sageaudit: 12 jobs: 12 to send"
    assert "costs <$0.01" in message[4]
    assert "it takes 36 s, at 20 jobs a minute" in message[4]
    assert "5 minutes at best" in deployed("--since", "40d", "--dry-run").stderr
    assert "at best" not in deployed("--since", "10d", "--dry-run").stderr
    assert deployed("--since", "60d").exit_code == 2
    monkeypatch.setattr(command, "can_ask", lambda: True)
    monkeypatch.setattr("sys.stdin", io.StringIO("n\n"))
    assert deployed("--since", "60d").exit_code != 0
    assert not deployed.sent_jobs


@pytest.mark.parametrize(
    ("words", "code", "expected"),
    [
        ((), 2, "give --since, such as"),
        (("--since", "2099-01-01"), 2, "is in the future"),
        (("--since", "500d"), 2, "are kept for 455 days"),
        (("--since", "soon"), 2, "is not a time"),
        (("--since", "9d", "--per-minute", "0"), 2, "0 is not in the range"),
        (("--from-history", "h.db", "--account", OTHER, "--role", "r"), 2, "reads no account"),
        (("--from-history", "absent.db"), 3, "absent.db"),
        (("--from-history", "other.db"), 2, "other.db"),
    ],
)
def test_bad_input_is_one_sentence(
    deployed: Deployed, tmp_path: Path, words: tuple[str, ...], code: int, expected: str
) -> None:
    """Nothing is sent or written."""
    (tmp_path / "other.db").write_text('{"describe": {}}')
    result = deployed(*(tmp_path / item if item.endswith(".db") else item for item in words))
    assert (result.exit_code, expected in result.stderr) == (code, True), result.stderr
    assert "Traceback" not in result.stderr


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
def test_an_aws_error_sets_the_exit_code(
    deployed: Deployed, call: str, refusal: str, code: int
) -> None:
    """If a list is throttled, its kind is left out, and a message says so."""
    deployed.stack.calls.refuse(call, refusal)
    result = deployed("--since", "60d", "--yes", "--per-minute", "6000")
    assert result.exit_code == code, result.stderr
    assert "Traceback" not in result.stderr


def test_no_job_and_an_older_stack_are_reported(deployed: Deployed) -> None:
    """Before the first sweep, it is not known which jobs ended before the deployment."""
    deployed.add_jobs()
    result = deployed("--since", "60d", "--yes")
    assert (result.exit_code, "0 jobs" in result.stderr) == (0, True)
    deployed.stack.calls.answer(
        "cloudformation:DescribeStacks", lambda *_: {"Stacks": [{"Outputs": []}]}
    )
    result = deployed("--since", "60d", "--yes")
    assert (result.exit_code, "has no output TableName" in result.stderr) == (2, True)


def test_ctrl_c_keeps_sent_jobs_and_the_next_call_continues(deployed: Deployed) -> None:
    """A job that was sent but is not audited yet may be sent again; `audit` handles it once."""

    def interrupted(_: str, __: Mapping[str, Any]) -> None:
        del deployed.stack.calls.answers["sqs:SendMessageBatch"]
        os.kill(os.getpid(), signal.SIGINT)

    deployed.stack.calls.answer("sqs:SendMessageBatch", interrupted)
    result = deployed("--since", "60d", "--yes", "--per-minute", "60")
    assert (result.exit_code, "10 of 12 jobs sent" in result.stderr) == (130, True), result.stderr
    assert "run the same command again" in result.stderr
    assert deployed("--since", "60d", "--yes", "--per-minute", "6000").exit_code == 0
    assert len({*deployed.sent_jobs}) == 12


def scanned_history(folder: Path, *entries: AuditEntry) -> Path:
    """Returns the path of a scan's history file."""
    path = folder / "history.db"
    with SqliteHistory(path) as history:
        for item in entries:
            history.record(item)
    return path


def test_a_scans_audits_are_copied_once_and_do_not_replace_newer_ones(
    deployed: Deployed, tmp_path: Path
) -> None:
    """They keep their rules and policy.

    The table's audits and recently ended jobs are left alone.
    """
    old = with_detail(entry_ending_at("train-1", NOW - 200 * DAY), DETAIL)
    known = entry_ending_at("train-2", NOW - 190 * DAY)
    deployed.table.record(replace(known, last_modified_at=NOW))
    recent = entry_ending_at("train-3", datetime.now(UTC))  # after the installation
    path = scanned_history(tmp_path, old, known, recent)
    result = deployed("--from-history", path, "--yes")
    words = "3 jobs: 1 written to history-"
    assert (result.exit_code, words in result.stderr) == (0, True), result.stderr
    assert "3 of them are of another version of the rules" in result.stderr
    table = deployed.table
    with SqliteHistory(path) as file:
        assert table.audit(key("train-1")) == file.audit(key("train-1"))
    assert table.detail(key("train-1")) == DETAIL
    head, before = table.summary(key("train-2")), table.summary(key("train-3"))
    assert head is not None
    assert (head.last_modified_at, head.version, before) == (NOW, 1, None)
    again = deployed("--from-history", path, "--since", "250d", "--yes").stderr
    assert "3 jobs: 2 audited, 1 too recent" in again
    assert "0 audits" in deployed("--from-history", path, "--since", "2020-01", "--yes").stderr


def test_an_unreadable_audit_of_the_file_does_not_stop_the_others(
    deployed: Deployed, tmp_path: Path
) -> None:
    """It is counted, and the others are written."""
    runs = [entry_ending_at(f"train-{day}", NOW - day * DAY) for day in (200, 190, 180)]
    path = scanned_history(tmp_path, *runs)
    with closing(sqlite3.connect(path)) as sql, sql:
        sql.execute(
            "UPDATE audits SET document = '{' WHERE run ="
            " (SELECT run FROM runs WHERE job = 'train-190')"
        )
    result = deployed("--from-history", path, "--yes")
    assert (result.exit_code, "2 written to history-" in result.stderr) == (0, True), result.stderr
    assert "1 that cannot be read" in result.stderr
    assert deployed.table.summary(key("train-180")) is not None
