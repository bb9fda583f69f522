"""The declared IAM actions of each command are exactly the calls that it makes."""

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
    """Returns the ARN of the one job of a kind."""
    return f"arn:aws:sagemaker:{REGION}:{OWN}:{kind.spec.arn_word}/{kind.value}-1"


def describe_response(kind: JobKind) -> dict[str, Any]:
    """Returns the Describe* response about that job, which ended well an hour after it began."""
    cluster = {"InstanceType": "ml.m5.large", "InstanceCount": 1, "VolumeSizeInGB": 5}
    inputs = {"DataSource": {"S3DataSource": {"S3DataType": "S3Prefix", "S3Uri": "s3://b/x"}}}
    extra_options: Mapping[JobKind, dict[str, Any]] = {
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
        **extra_options.get(kind, {}),
    }


def list_row(kind: JobKind) -> dict[str, Any]:
    """Returns that job's row of a List* response."""
    return {
        key: value for key, value in describe_response(kind).items() if not key.endswith("Config")
    }


def describe(kind: JobKind) -> Callable[[str, Mapping[str, Any]], Mapping[str, Any]]:
    """Responds about the one job only."""

    def answer(_: str, params: Mapping[str, Any]) -> Mapping[str, Any]:
        if params[kind.spec.name_key] != f"{kind.value}-1":
            error = {"Code": "ValidationException", "Message": "Requested resource not found."}
            raise ClientError({"Error": error, "ResponseMetadata": {}}, "Describe")
        return describe_response(kind)

    return answer


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[AwsCalls]:
    """Yields an account with one job of each kind, and a table with one audit."""
    monkeypatch.delenv("MOTO_ACCOUNT_ID")  # moto: the account of the credentials
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    with mock_aws(), aws_calls() as aws:
        for kind in JobKind:
            aws.answer(f"sagemaker:{kind.spec.describe_call}", describe(kind))
            rows = {kind.spec.list_key: [list_row(kind)]}
            aws.answer(f"sagemaker:{kind.spec.list_call}", lambda *_, rows=rows: rows)
        aws.answer("sagemaker:ListTags", lambda *_: {"Tags": []})
        aws.answer(
            "sagemaker:ListTrainingJobsForHyperParameterTuningJob",
            lambda *_: {"TrainingJobSummaries": [list_row(JobKind.TRAINING)]},
        )
        step = {"CandidateStepArn": arn(JobKind.PROCESSING), "CandidateStepName": "processing-1"}
        aws.answer(
            "sagemaker:ListCandidatesForAutoMLJob",
            lambda *_: {"Candidates": [{"CandidateSteps": [step]}]},
        )
        aws.answer("pricing:GetProducts", lambda *_: {"PriceList": []})
        aws.answer("ce:GetCostAndUsage", lambda *_: {"ResultsByTime": [{"Groups": []}]})
        aws.answer(
            "organizations:ListAccounts",
            lambda *_: {"Accounts": [{"Id": OWN, "State": "ACTIVE"}, {"Id": OTHER}]},
        )
        yield aws


@pytest.fixture
def table(calls: AwsCalls) -> str:
    """Returns a table with the audit of one recorded job, as if it ran yesterday."""
    client = boto3.client("dynamodb", region_name=REGION)
    name = new_table(client)
    audit = audit_recording(DATA / "profiled-061-m5-large.json", Policy())
    audit["job"]["created_at"] = audit["job"]["started_at"] = BEGUN.isoformat()
    audit["job"]["ended_at"] = ENDED.isoformat()
    DynamoHistory(client, name).record(entry_of(audit))
    calls.log.clear()
    return name


def called_actions(calls: AwsCalls) -> set[str]:
    """Returns the IAM actions of the calls so far."""
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
def test_a_command_calls_only_declared_actions(
    calls: AwsCalls, run: Run, command: str, calls_of_it: Sequence[Sequence[str]]
) -> None:
    """It is called with names and ARNs of every kind of job; `what-if` reads no tags."""
    for words in calls_of_it:
        run(command, *words)
    assert called_actions(calls) == permissions.READ_ONLY_COMMANDS[command].actions(())


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
def test_scan_calls_only_declared_actions(
    calls: AwsCalls, run: Run, tmp_path: Path, words: tuple[str, ...], options: tuple[str, ...]
) -> None:
    """This includes each option that needs more."""
    calls.answer(
        "organizations:ListAccounts",
        lambda *_: {
            "Accounts": [{"Id": action_name, "State": "ACTIVE"} for action_name in (OWN, OTHER)]
        },
    )
    run("scan", "--history", tmp_path / "h.db", "--region", REGION, *words)
    declared = permissions.READ_ONLY_COMMANDS["scan"].actions(options)
    assert called_actions(calls) == declared


def test_a_role_calls_only_declared_actions(calls: AwsCalls, run: Run, tmp_path: Path) -> None:
    """Prices are read with the user's own credentials."""
    words = ("--account", OTHER, "--role", "reader", "--region", REGION)
    run("scan", "--history", tmp_path / "h.db", *words)
    in_role = {call.name for call in calls.log if call.account == OTHER} - FREE
    listing = {f"sagemaker:{kind.spec.list_call}" for kind in JobKind}
    assert listing <= in_role <= {*permissions.ACCOUNT_ACTIONS}


def test_the_commands_that_read_a_history_only_read_the_table(
    calls: AwsCalls, run: Run, table: str, tmp_path: Path
) -> None:
    """Each makes only declared calls, and together they make all of them."""
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
    all_actions: set[str] = set()
    for name, call in words.items():
        if name not in CommandGroup().list_commands(None):  # type: ignore[arg-type]
            continue
        calls.log.clear()
        run(*call, "--table", table)
        assert called_actions(calls) <= permissions.READ_ONLY_COMMANDS[name].actions(
            [permissions.TABLE]
        ), name
        all_actions |= called_actions(calls)
    assert all_actions == permissions.READ_ONLY_COMMANDS["history"].actions([permissions.TABLE])


def test_every_command_declares_what_it_needs() -> None:
    """A new command needs a row of its own."""
    names = {name for members in COMMAND_GROUPS.values() for name in members}
    declared = {*permissions.READ_ONLY_COMMANDS, *permissions.WRITING_COMMANDS}
    assert names | {*CommandGroup().list_commands(None)} == declared  # type: ignore[arg-type]


def test_every_action_has_a_resource_and_none_writes() -> None:
    """Except AssumeRole, all actions list, read or describe."""
    options = (permissions.TABLE, permissions.ROLE, permissions.ORGANIZATION, permissions.COVERAGE)
    all_actions = permissions.actions_of_commands(permissions.READ_ONLY_COMMANDS, options)
    reads = ("Describe", "Get", "List", "Query")
    assert [
        action_name
        for action_name in all_actions
        if not action_name.partition(":")[2].startswith(reads)
    ] == ["sts:AssumeRole"]
    policy = permissions.make_policy(all_actions, permissions.PolicyScope())
    assert (
        sorted(action_name for part in policy["Statement"] for action_name in part["Action"])
        == all_actions
    )
    assert len(json.dumps(policy)) < 2_048, "the most that an inline policy of a user has"


@pytest.mark.parametrize(
    ("command", "option", "partition_keys"),
    [
        ("advice", permissions.TABLE, ["ADVICE"]),
        ("backfill", permissions.FROM_HISTORY, ["JOB#*", "RUNS#*", "SUM#*"]),
    ],
)
def test_a_policy_allows_a_person_to_write_only_the_items_of_the_command(
    command: str, option: str, partition_keys: list[str]
) -> None:
    """No other statement of the policy allows a write of an item."""
    policy = permissions.make_policy(
        permissions.ALL_COMMANDS[command].actions([option]),
        permissions.PolicyScope(),
        permissions.writes_of_commands([command], [option]),
    )
    [statement] = [
        statement for statement in policy["Statement"] if "dynamodb:PutItem" in statement["Action"]
    ]
    assert statement["Condition"] == {
        "ForAllValues:StringLike": {"dynamodb:LeadingKeys": partition_keys},
        "Null": {"dynamodb:LeadingKeys": "false"},
    }


def test_the_page_matches_the_lists() -> None:
    """`make docs` writes it."""
    text = permissions_page.PAGE.read_text(encoding="utf-8")
    assert permissions_page.page(text) == text
