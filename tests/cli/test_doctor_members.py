"""`sageaudit doctor --members` shows what each account lacks, as the deployed function finds it."""

import io
import json
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import boto3
import pytest
from moto import mock_aws

from sageaudit.adapters.aws.probes import MEMBER_ACTIONS
from sageaudit.adapters.history.dynamo.history import DynamoHistory
from sageaudit.adapters.history.dynamo.sweep_notes import DynamoSweepStore
from sageaudit.domain.members import TEMPLATE_VERSION
from sageaudit.domain.policy.policy import Policy
from sageaudit.domain.policy.scope import MemberAccounts
from sageaudit.domain.sweep import SentEvent
from sageaudit.workflows.doctor import permissions
from sweep import handler
from tests.adapters.history.tables import new_table
from tests.fakes.aws_calls import AwsCalls, aws_calls
from tests.fakes.command_line import Run
from tests.fakes.entries import entry_ending_at

REGION, FINE, DENIED, GONE = "us-east-1", "222233334444", "333344445555", "444455556666"
ARN = "arn:aws:sagemaker:us-east-1:{}:training-job/{}"
POLICY = Policy(members=MemberAccounts(dict.fromkeys((FINE, DENIED, GONE), "sageaudit-read")))


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[AwsCalls]:
    """Yields a stack whose function calls itself, and three members; two of them lack something."""
    monkeypatch.delenv("MOTO_ACCOUNT_ID")  # moto: the account of the credentials
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    with mock_aws(), aws_calls() as recorded_calls:
        table = new_table(boto3.client("dynamodb", region_name=REGION))
        outputs = {"TableName": table, "SweepFunctionName": "SageAudit-Sweep"}
        message = [{"OutputKey": key, "OutputValue": value} for key, value in outputs.items()]
        recorded_calls.answer(
            "cloudformation:DescribeStacks", lambda *_: {"Stacks": [{"Outputs": message}]}
        )
        recorded_calls.refuse("sagemaker:ListTags", "AccessDeniedException", DENIED)
        refused = recorded_calls.answers[
            "sagemaker:ListTags"
        ]  # moto has no answer for a job that is not there
        recorded_calls.answer(
            "sagemaker:ListTags", lambda *arguments: refused(*arguments) or {"Tags": []}
        )
        recorded_calls.answer("sagemaker:ListCandidatesForAutoMLJob", lambda *_: {"Candidates": []})
        recorded_calls.refuse(
            "sts:AssumeRole", "AccessDenied", when=lambda arguments: GONE in arguments["RoleArn"]
        )
        function = handler.build(
            {
                "TABLE_NAME": table,
                "FINISHED_QUEUE_URL": "https://sqs.invalid/q",
                "ACCOUNT_ID": "123456789012",
                "AWS_REGION": REGION,
                "POWERTOOLS_SERVICE_NAME": "sweep",
                "POWERTOOLS_METRICS_NAMESPACE": "sageaudit",
            },
            session=boto3.Session(region_name=REGION),
            policy=POLICY,
        )

        class Context:
            aws_request_id = "one"

            def get_remaining_time_in_millis(self) -> int:
                return 600_000

        def invoked(_: str, arguments: Any) -> dict[str, Any]:
            answer = function(json.loads(arguments["Payload"]), Context())
            return {"Payload": io.BytesIO(json.dumps(answer).encode())}

        recorded_calls.answer("lambda:Invoke", invoked)
        yield recorded_calls


def checks(run: Run) -> dict[str, dict[str, Any]]:
    """Returns the checks of members by name."""
    arguments = ("--stack", "SageAudit", "--members", "--region", REGION, "--output", "json")
    done = run("doctor", "doctor", *arguments)
    assert done.stdout, done.stderr
    rows = json.loads(done.stdout)["checks"]
    names = ("member", "events of", "template of")
    return {row["name"]: row for row in rows if row["name"].startswith(names)}


def row_of(account: str, **known: Any) -> dict[str, Any]:
    """Returns what the sweep function answers about a member; by default all is well."""
    return {
        "account": account,
        "region": REGION,
        "is_audited": True,
        "missing_permissions": {},
        "first_seen_at": "2026-05-11T12:00:00+00:00",
        "last_seen_at": "2026-05-20T12:00:00+00:00",
        "denied_since": None,
        "is_gone": False,
        "is_silent": False,
        "template_version": TEMPLATE_VERSION,
        "waiting_events": 0,
        **known,
    }


def answer_rows(calls: AwsCalls, *rows: dict[str, Any]) -> None:
    """Lets the sweep function answer with these rows."""

    def invoked(*_: Any) -> dict[str, Any]:
        answer = {"members": rows, "next": None}
        return {"Payload": io.BytesIO(json.dumps(answer).encode())}

    calls.answer("lambda:Invoke", invoked)


def test_each_member_shows_what_it_lacks(calls: AwsCalls, run: Run) -> None:
    """It lacks the role, or one action."""
    result = checks(run)
    fine, denied, gone = (result[f"member {member} in {REGION}"] for member in (FINE, DENIED, GONE))
    assert fine["state"] == "ok"
    assert denied["found"].startswith("not permitted: sagemaker:ListTags: ")
    assert gone["found"].startswith("not permitted: sts:AssumeRole: ")
    assert {denied["exit_code"], gone["exit_code"]} == {4}
    arguments = {call.account for call in calls.by_name("sagemaker:DescribeTrainingJob")}
    assert {FINE, DENIED} <= arguments


def test_events_of_a_member_arrive_if_a_job_was_audited_that_no_sweep_found(
    calls: AwsCalls, run: Run
) -> None:
    """A member without jobs has no check of its events."""
    table, now = boto3.client("dynamodb", region_name=REGION), datetime.now(UTC)
    name = table.list_tables()["TableNames"][0]
    history, notes = DynamoHistory(table, name), DynamoSweepStore(table, name)
    replies, lost = (
        entry_ending_at(
            job, now, job={"account": account, "arn": ARN.format(account, job), "region": REGION}
        )
        for job, account in (("told", FINE), ("lost", DENIED))
    )
    for entry in (replies, lost):
        history.record(entry)
    notes.record_event_sent(lost.key, SentEvent(now, None))
    result = checks(run)
    states = [result[f"events of {member} in {REGION}"]["state"] for member in (FINE, DENIED, GONE)]
    assert states == ["ok", "failed", "not_checked"]
    declared = permissions.READ_ONLY_COMMANDS["doctor"].actions([permissions.MEMBERS_OPTION])
    used = {name.replace("lambda:Invoke", "lambda:InvokeFunction") for name in calls.names}
    assert declared <= used


def test_300_accounts_have_one_line_for_success_and_named_failures(
    calls: AwsCalls, run: Run
) -> None:
    """Each request takes at most 40 seconds if a call to AWS takes a tenth of one."""
    names = [str(200000000000 + number) for number in range(300)]
    a_member_s = (len(MEMBER_ACTIONS) + 1) / 10
    a_turn = int(handler.MEMBER_CHECK_LIMIT.total_seconds() / a_member_s) + 1
    turns: list[float] = []

    def invoked(_: str, arguments: Any) -> dict[str, Any]:
        after = json.loads(arguments["Payload"])["continue_after"]
        turn = [name for name in names if name > after][:a_turn]
        turns.append(len(turn) * a_member_s)
        rows = [
            row_of(
                member,
                missing_permissions=lacks(member),
                **dict.fromkeys(("last_seen_at", "template_version")),
            )
            for member in turn
        ]
        message = {"members": rows, "next": None if turn[-1] == names[-1] else turn[-1]}
        return {"Payload": io.BytesIO(json.dumps(message).encode())}

    def lacks(account: str) -> dict[str, str]:
        return {"sts:AssumeRole": "there is no such role"} if account.endswith("77") else {}

    calls.answer("lambda:Invoke", invoked)
    done = run("doctor", "doctor", "--stack", "SageAudit", "--members", "--region", REGION)
    lines = [line for line in done.stdout.splitlines() if "member" in line or "events of" in line]
    message = " ".join(done.stdout.split())
    assert f"member {names[0]} in {REGION}, " in message
    assert "and 294 more: its role can be assumed, and allows what an audit needs" in message
    assert "and 297 more: no heartbeat arrived, and no job in 20 days" in message
    for name in ("200000000077", "200000000177", "200000000277"):
        assert f"member {name} in {REGION}" in message
    assert len(lines) < 12
    assert max(turns) < 60
    assert sum(turns) < 8 * 60


def test_a_healthy_member_is_known_by_its_heartbeat(calls: AwsCalls, run: Run) -> None:
    """No run in the history is needed, and its template has no row."""
    answer_rows(calls, row_of(FINE))
    assert {name: row["state"] for name, row in checks(run).items()} == {
        f"member {FINE} in {REGION}": "ok",
        f"events of {FINE} in {REGION}": "ok",
    }


@pytest.mark.parametrize(
    ("known", "name", "found", "remedy"),
    [
        pytest.param(
            {"is_audited": False},
            "member",
            "the policy does not include this account and region",
            "add it to policy.toml, or remove infra/member.yaml there",
            id="not in the policy",
        ),
        pytest.param(
            {"is_gone": True, "is_silent": True, "missing_permissions": {"sts:AssumeRole": "x"}},
            "member",
            "gone: its last event arrived at 2026-05-20T12:00:00+00:00, and it denies access",
            "if it has not left, deploy infra/member.yaml there",
            id="gone",
        ),
        pytest.param(
            {"is_silent": True},
            "events of",
            "the last one arrived at 2026-05-20T12:00:00+00:00",
            "deploy infra/member.yaml there",
            id="silent",
        ),
        pytest.param(
            {"template_version": TEMPLATE_VERSION + 1},
            "template of",
            f"it has version {TEMPLATE_VERSION + 1} of infra/member.yaml",
            "update sageaudit here, and at home",
            id="newer template",
        ),
        pytest.param(
            {"template_version": TEMPLATE_VERSION - 1},
            "template of",
            f"this one is {TEMPLATE_VERSION}",
            "update the StackSet",
            id="older template",
        ),
        pytest.param(
            {"missing_permissions": {"sts:AssumeRole": "no such role"}, "waiting_events": 200},
            "member",
            "no such role; 200 events will be audited when it can be read",
            "deploy infra/member.yaml there",
            id="events wait",
        ),
    ],
)
def test_what_is_wrong_with_a_member_has_one_row_and_a_next_step(
    calls: AwsCalls, run: Run, known: dict[str, Any], name: str, found: str, remedy: str
) -> None:
    """The other rows of the member are as usual."""
    answer_rows(calls, row_of(DENIED, **known))
    row = checks(run)[f"{name} {DENIED} in {REGION}"]
    assert row["state"] == "failed"
    assert found in row["found"]
    assert remedy in row["next"]


def test_a_member_that_the_policy_does_not_include_has_no_other_row(
    calls: AwsCalls, run: Run
) -> None:
    """Its events are refused, so nothing else counts."""
    answer_rows(calls, row_of(FINE, is_audited=False, is_silent=True, template_version=99))
    assert list(checks(run)) == [f"member {FINE} in {REGION}"]
