"""The declared IAM actions are the calls that each command makes: none is missing, none spare."""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import boto3
import pytest
from botocore.exceptions import ClientError
from moto import mock_aws

from sageaudit.adapters.history.dynamo.history import DynamoHistory
from sageaudit.cli.main import COMMAND_GROUPS, CommandGroup
from sageaudit.domain.job.kinds import JobKind
from sageaudit.domain.policy.policy import Policy
from sageaudit.workflows.doctor import permissions
from sageaudit.workflows.recordings.run import audit_recording
from tests.adapters.history.tables import new_table
from tests.fakes.aws_calls import AwsCalls, aws_calls
from tests.fakes.command_line import Run
from tests.fakes.cost_reports import ACCOUNT, Charge, cur2
from tests.fakes.entries import entry_of
from tools.pages import permissions as permissions_page

DATA = Path(__file__).parents[1] / "recorded" / "data" / "jobs"
OWN, OTHER = "123456789012", "222233334444"
REGION = "us-east-1"
STORED = audit_recording(DATA / "profiled-061-m5-large.json", Policy())["job"]["arn"] or ""
"""The job whose audit is in the table."""
FREE = {"sts:GetCallerIdentity"}
"""Calls that need no permission."""
BEGUN = datetime.now(UTC) - timedelta(days=1)
ENDED = BEGUN + timedelta(hours=1)


def arn(kind: JobKind) -> str:
    """The ARN of the one job of a kind."""
    return f"arn:aws:sagemaker:{REGION}:{OWN}:{kind.spec.arn_word}/{kind.value}-1"


def described(kind: JobKind) -> dict[str, Any]:
    """Describe's answer about that job: it ended well, an hour after it began."""
    cluster = {"InstanceType": "ml.m5.large", "InstanceCount": 1, "VolumeSizeInGB": 5}
    inputs = {"DataSource": {"S3DataSource": {"S3DataType": "S3Prefix", "S3Uri": "s3://b/x"}}}
    more: Mapping[JobKind, dict[str, Any]] = {
        JobKind.TRAINING: {
            "TrainingTimeInSeconds": 3600,
            "BillableTimeInSeconds": 3600,
            "ResourceConfig": cluster,
            "InputDataConfig": [{"ChannelName": "train", **inputs}],
        },
        JobKind.PROCESSING: {"ProcessingResources": {"ClusterConfig": cluster}},
        JobKind.TRANSFORM: {"TransformResources": cluster},
        JobKind.TUNING: {"TrainingJobStatusCounters": {"Completed": 1}},
    }
    return {
        kind.spec.name_key: f"{kind.value}-1",
        kind.spec.arn_key: arn(kind),
        kind.spec.status_key: "Completed",
        "CreationTime": BEGUN,
        "LastModifiedTime": ENDED,
        kind.spec.start_key: BEGUN,
        kind.spec.end_key: ENDED,
        **more.get(kind, {}),
    }


def summary(kind: JobKind) -> dict[str, Any]:
    """List's row of that job."""
    return {key: value for key, value in described(kind).items() if not key.endswith("Config")}


def describe(kind: JobKind) -> Callable[[str, Mapping[str, Any]], Mapping[str, Any]]:
    """Answers about the one job, and about no other."""

    def answer(_: str, params: Mapping[str, Any]) -> Mapping[str, Any]:
        if params[kind.spec.name_key] != f"{kind.value}-1":
            error = {"Code": "ValidationException", "Message": "Requested resource not found."}
            raise ClientError({"Error": error, "ResponseMetadata": {}}, "Describe")
        return described(kind)

    return answer


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[AwsCalls]:
    """An account with one job of each kind, and a table with one audit."""
    monkeypatch.delenv("MOTO_ACCOUNT_ID")  # moto: the account of the credentials
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    with mock_aws(), aws_calls() as made:
        for kind in JobKind:
            made.answer(f"sagemaker:{kind.spec.describe_call}", describe(kind))
            rows = {kind.spec.list_key: [summary(kind)]}
            made.answer(f"sagemaker:{kind.spec.list_call}", lambda *_, rows=rows: rows)
        made.answer("sagemaker:ListTags", lambda *_: {"Tags": []})
        made.answer(
            "sagemaker:ListTrainingJobsForHyperParameterTuningJob",
            lambda *_: {"TrainingJobSummaries": [summary(JobKind.TRAINING)]},
        )
        step = {"CandidateStepArn": arn(JobKind.PROCESSING), "CandidateStepName": "processing-1"}
        made.answer(
            "sagemaker:ListCandidatesForAutoMLJob",
            lambda *_: {"Candidates": [{"CandidateSteps": [step]}]},
        )
        made.answer("pricing:GetProducts", lambda *_: {"PriceList": []})
        made.answer("ce:GetCostAndUsage", lambda *_: {"ResultsByTime": [{"Groups": []}]})
        made.answer(
            "organizations:ListAccounts",
            lambda *_: {"Accounts": [{"Id": OWN, "State": "ACTIVE"}, {"Id": OTHER}]},
        )
        yield made


@pytest.fixture
def table(calls: AwsCalls) -> str:
    """A table with the audit of one recorded job, as if it had run yesterday."""
    client = boto3.client("dynamodb", region_name=REGION)
    name = new_table(client)
    audit = audit_recording(DATA / "profiled-061-m5-large.json", Policy())
    audit["job"]["created_at"] = audit["job"]["started_at"] = BEGUN.isoformat()
    audit["job"]["ended_at"] = ENDED.isoformat()
    DynamoHistory(client, name).record(entry_of(audit))
    calls.log.clear()
    return name


def called(calls: AwsCalls) -> set[str]:
    """The IAM actions of the calls so far."""
    return calls.names - FREE


_BY_ARN = (JobKind.TRANSFORM, JobKind.TUNING, JobKind.AUTOML)
JOB_WORDS = (("training-1", "--region", REGION), *((arn(kind),) for kind in _BY_ARN))


@pytest.mark.parametrize(
    ("command", "calls_of_it"),
    [
        ("audit", JOB_WORDS),
        ("record", [(*words, "-o", "-") for words in JOB_WORDS]),
        ("what-if", JOB_WORDS),
    ],
)
def test_a_command_calls_what_it_declares(
    calls: AwsCalls, run: Run, command: str, calls_of_it: Sequence[Sequence[str]]
) -> None:
    """By name and by ARN, every kind of job; `what-if` reads no tags."""
    for words in calls_of_it:
        run(command, *words)
    assert called(calls) == permissions.READ_ONLY_COMMANDS[command].actions(())


@pytest.mark.parametrize(
    ("words", "options"),
    [
        ((), ()),
        (("--coverage",), (permissions.COVERAGE,)),
        (("--organization", "--role", "reader"), (permissions.ORGANIZATION, permissions.ROLE)),
        (
            ("--organization", "--role", "reader", "--coverage"),
            (permissions.ORGANIZATION, permissions.ROLE, permissions.COVERAGE),
        ),
    ],
)
def test_scan_calls_what_it_declares(
    calls: AwsCalls, run: Run, tmp_path: Path, words: tuple[str, ...], options: tuple[str, ...]
) -> None:
    """With each option that needs more."""
    calls.answer(
        "organizations:ListAccounts",
        lambda *_: {"Accounts": [{"Id": one, "State": "ACTIVE"} for one in (OWN, OTHER)]},
    )
    run("scan", "--history", tmp_path / "h.db", "--region", REGION, *words)
    declared = permissions.READ_ONLY_COMMANDS["scan"].actions(options)
    assert called(calls) == declared


def test_a_role_calls_what_it_is_said_to_need(calls: AwsCalls, run: Run, tmp_path: Path) -> None:
    """Prices are read with the user's own credentials."""
    words = ("--account", OTHER, "--role", "reader", "--region", REGION)
    run("scan", "--history", tmp_path / "h.db", *words)
    in_role = {call.name for call in calls.log if call.account == OTHER} - FREE
    listed = {f"sagemaker:{kind.spec.list_call}" for kind in JobKind}
    assert listed <= in_role <= {*permissions.ACCOUNT_ACTIONS}


def test_the_commands_that_ask_a_history_only_read_the_table(
    calls: AwsCalls, run: Run, table: str, tmp_path: Path
) -> None:
    """Each makes only declared calls, and all of these are made by some."""
    request = tmp_path / "request.json"
    request.write_text(json.dumps({"TrainingJobName": "x"}))
    bill = tmp_path / "cur.csv"
    bill.write_text(cur2([Charge(ENDED)]))
    month = f"{ENDED:%Y-%m}"
    words: Mapping[str, tuple[str | Path, ...]] = {
        "account": ("account", "111122223333"),
        "by": ("by", "family,kind"),
        "changes": ("changes",),
        "check": ("check", request, "--region", REGION),
        "export": ("export", "--format", "jsonl", "-o", tmp_path / "e.jsonl"),
        "history": ("history",),
        "reconcile": ("reconcile", "--cur", bill, "--month", month, "--account", ACCOUNT),
        "report": ("report", "-o", tmp_path / "r.html"),
        "show": ("show", STORED),
        "top": ("top",),
    }
    every: set[str] = set()
    for name, call in words.items():
        if name not in CommandGroup().list_commands(None):  # type: ignore[arg-type]
            continue
        calls.log.clear()
        run(*call, "--table", table)
        assert called(calls) <= permissions.READ_ONLY_COMMANDS[name].actions([permissions.TABLE]), (
            name
        )
        every |= called(calls)
    assert every == permissions.READ_ONLY_COMMANDS["history"].actions([permissions.TABLE])


def test_every_command_declares_what_it_needs() -> None:
    """A new one has its row."""
    names = {name for members in COMMAND_GROUPS.values() for name in members}
    declared = {*permissions.READ_ONLY_COMMANDS, *permissions.WRITING_COMMANDS}
    assert names | {*CommandGroup().list_commands(None)} == declared  # type: ignore[arg-type]


def test_every_action_has_a_resource_and_none_writes() -> None:
    """Except AssumeRole, all actions list, read or describe."""
    options = (permissions.TABLE, permissions.ROLE, permissions.ORGANIZATION, permissions.COVERAGE)
    every = permissions.actions_of_commands(permissions.READ_ONLY_COMMANDS, options)
    reads = ("Describe", "Get", "List", "Query")
    assert [one for one in every if not one.partition(":")[2].startswith(reads)] == [
        "sts:AssumeRole"
    ]
    policy = permissions.make_policy(every, permissions.PolicyScope())
    assert sorted(one for part in policy["Statement"] for one in part["Action"]) == every
    assert len(json.dumps(policy)) < 2_048, "the most that an inline policy of a user has"


def test_the_page_is_what_the_lists_say() -> None:
    """`make docs` writes it."""
    text = permissions_page.PAGE.read_text(encoding="utf-8")
    assert permissions_page.page(text) == text
