"""`sageaudit doctor --stack`: dead letters, who is told of alarms, when the sweep last ran."""

import json
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import boto3
import pytest
from moto import mock_aws

from sageaudit.adapters.channels.services import SlackChannel, TeamsChannel
from sageaudit.adapters.history.dynamo.sweep_notes import DynamoSweepStore
from sageaudit.domain.job.kinds import JobKind
from sageaudit.domain.sweep import JobList, first_state
from sageaudit.structs import replace
from sageaudit.workflows.doctor import permissions
from tests.adapters.history.tables import new_table
from tests.fakes.aws_calls import aws_calls
from tests.fakes.command_line import Run
from tests.fakes.dead_letters import DEAD, REGION, Stack, event


@pytest.fixture
def stack(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Stack]:
    """With a table and a topic."""
    monkeypatch.delenv("MOTO_ACCOUNT_ID")  # moto: the account of the credentials
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    with mock_aws(), aws_calls() as made:
        found = Stack(made)
        found.outputs["TableName"] = new_table(boto3.client("dynamodb", region_name=REGION))
        topic = boto3.client("sns", region_name=REGION).create_topic(Name="SageAudit-alarms")
        found.outputs["AlarmsTopicArn"] = topic["TopicArn"]
        webhook = SlackChannel.secret_format.example
        boto3.client("secretsmanager", region_name=REGION).create_secret(
            Name="sageaudit/channel/slack", SecretString=webhook
        )
        found.outputs["AuditsAtOnce"] = "5"
        made.answer("lambda:GetAccountSettings", account_of(10))
        found.outputs["ChannelSlack"] = "slack sageaudit/channel/slack"
        said = [{"OutputKey": k, "OutputValue": v} for k, v in found.outputs.items()]
        made.answer("cloudformation:DescribeStacks", lambda *_: {"Stacks": [{"Outputs": said}]})
        yield found


def account_of(executions: int) -> Any:
    """The answer of an account that may run so many functions at once."""
    return lambda *_: {"AccountLimit": {"UnreservedConcurrentExecutions": executions}}


def swept(stack: Stack, ago: timedelta, account: str = "123456789012") -> None:
    """A sweep of a list ended."""
    client = boto3.client("dynamodb", region_name=REGION)
    at = datetime.now(UTC) - ago
    state = replace(first_state(at), watermark=at, tried_at=at)
    notes = DynamoSweepStore(client, stack.outputs["TableName"])
    notes.save_list_state(JobList(account, REGION, JobKind.TRAINING), state)


def subscribe(stack: Stack) -> None:
    """Somebody is told of alarms."""
    boto3.client("sns", region_name=REGION).subscribe(
        TopicArn=stack.outputs["AlarmsTopicArn"], Protocol="email", Endpoint="ops@example.com"
    )


def checks(run: Run, *, exit_code: int) -> dict[str, dict[str, Any]]:
    """The checks of the stack, by name."""
    done = run("doctor", "doctor", "--stack", "SageAudit", "--region", REGION, "--output", "json")
    assert done.exit_code == exit_code, done.stdout
    rows = json.loads(done.stdout)["checks"]
    names = ("stack ", "dead letters", "alarms", "sweep", "channel ", "executions")
    return {row["name"]: row for row in rows if row["name"].startswith(names)}


def test_a_stack_in_order_is_0(stack: Stack, run: Run) -> None:
    """No letters, somebody is told, a sweep ended."""
    swept(stack, timedelta(minutes=20))
    subscribe(stack)
    found = checks(run, exit_code=0)
    assert {row["state"] for row in found.values()} == {"ok"}
    assert [row["found"] for name, row in found.items() if name.startswith("dead")] == ["none"] * 5
    assert found["alarms"]["found"] == "they go to 1 subscriber (email)"
    assert "has looked for all jobs" in found["sweep"]["found"]
    holds = "the secret sageaudit/channel/slack holds a Slack incoming webhook URL"
    assert found["channel slack"]["found"] == holds


@pytest.mark.parametrize(
    ("secret", "output", "state", "found"),
    [
        (None, "teams sageaudit/channel/ml", "failed", "there is no such secret"),
        ("https://x", "teams sageaudit/channel/ml", "failed", "holds no Microsoft Teams workflow"),
        (
            TeamsChannel.secret_format.example,
            "teams sageaudit/channel/ml",
            "ok",
            "holds a Microsoft",
        ),
        (None, "sns {topic}", "ok", "the topic has 1 subscriber (email)"),
        (None, "sns {empty}", "failed", "nobody gets the topic"),
        (None, "pager x", "not_checked", "pager is not known to this version"),
    ],
)
def test_each_channel_has_its_secret_in_its_form_or_a_listener(
    stack: Stack, run: Run, secret: str | None, output: str, state: str, found: str
) -> None:
    """The address itself is never shown."""
    swept(stack, timedelta(minutes=20))
    subscribe(stack)
    topic = stack.outputs["AlarmsTopicArn"]
    empty = boto3.client("sns", region_name=REGION).create_topic(Name="empty")["TopicArn"]
    if secret is not None:
        boto3.client("secretsmanager", region_name=REGION).create_secret(
            Name="sageaudit/channel/ml", SecretString=secret
        )
    outputs = {**stack.outputs, "ChannelMlPlatform": output.format(topic=topic, empty=empty)}
    said = [{"OutputKey": k, "OutputValue": v} for k, v in outputs.items()]
    stack.calls.answer("cloudformation:DescribeStacks", lambda *_: {"Stacks": [{"Outputs": said}]})
    row = checks(run, exit_code=int(state == "failed"))
    assert row["channel ml-platform"]["state"] == state
    assert found in row["channel ml-platform"]["found"]
    assert "sig=local" not in str(row)


@pytest.mark.parametrize(("executions", "state"), [(10, "ok"), (9, "failed"), (1000, "ok")])
def test_audits_may_take_half_of_the_accounts_executions(
    stack: Stack, run: Run, executions: int, state: str
) -> None:
    """A new account has ten, which is enough for five audits."""
    swept(stack, timedelta(minutes=20))
    subscribe(stack)
    stack.calls.answer("lambda:GetAccountSettings", account_of(executions))
    row = checks(run, exit_code=int(state == "failed"))["executions"]
    assert row["state"] == state
    assert f"5 audits at once, of {executions} functions" in row["found"]


def test_the_own_topic_may_have_nobody(stack: Stack, run: Run) -> None:
    """Whoever reads chat needs no mail."""
    swept(stack, timedelta(minutes=20))
    subscribe(stack)
    empty = boto3.client("sns", region_name=REGION).create_topic(Name="own")["TopicArn"]
    said = [{"OutputKey": k, "OutputValue": v} for k, v in stack.outputs.items()]
    said.append({"OutputKey": "ChannelSns", "OutputValue": f"sns {empty}"})
    stack.calls.answer("cloudformation:DescribeStacks", lambda *_: {"Stacks": [{"Outputs": said}]})
    row = checks(run, exit_code=0)["channel sns"]
    assert (row["state"], row["found"]) == ("ok", "nobody gets the stack's own topic")


@pytest.mark.parametrize("kind", [*DEAD, "sweep", "digest"])
def test_dead_letters_are_counted_and_lead_to_redrive(stack: Stack, run: Run, kind: str) -> None:
    """Exit 1. A start is not sent again: the next one does the same work."""
    swept(stack, timedelta(minutes=20))
    subscribe(stack)
    url = stack.outputs[DEAD.get(kind, f"{kind.capitalize()}DeadLettersUrl")]
    stack.sqs.send_message(QueueUrl=url, MessageBody=event())
    row = checks(run, exit_code=1)[f"dead letters, {kind}"]
    assert (row["state"], row["found"]) == ("failed", "about 1 letter")
    recommendation = "docs/runbook.md#dead-letters says how to read and delete them"
    if kind in DEAD:
        recommendation = f"`sageaudit redrive {kind} --dry-run` shows why"
    assert row["next"] == recommendation


def test_a_list_of_an_account_that_left_does_not_fail_the_sweep(stack: Stack, run: Run) -> None:
    """Nobody sweeps it any more; its note stays."""
    subscribe(stack)
    swept(stack, timedelta(minutes=20))
    swept(stack, timedelta(days=30), account="1" * 12)
    row = checks(run, exit_code=0)["sweep"]
    assert (row["state"], "in 1 list" in row["found"]) == ("ok", True)


def test_nobody_told_and_a_late_sweep_are_said(stack: Stack, run: Run) -> None:
    """With what to do; a stack that never swept is not checked."""
    found = checks(run, exit_code=1)
    assert found["alarms"]["found"] == "nobody gets them"
    assert "make deploy" in found["alarms"]["next"]
    assert found["sweep"]["state"] == "not_checked"
    swept(stack, timedelta(hours=4))
    late = checks(run, exit_code=1)["sweep"]
    assert (late["state"], "no sweep has looked" in late["found"]) == ("failed", True)


def test_it_calls_what_it_declares_and_a_refusal_is_one_line(stack: Stack, run: Run) -> None:
    """The other lines are there all the same."""
    stack.calls.log.clear()
    checks(run, exit_code=1)
    free = {"sts:GetCallerIdentity"}
    declared = permissions.READ_ONLY_COMMANDS["doctor"].actions([permissions.STACK_OPTION])
    assert {call.name for call in stack.calls.log} - free == declared
    for action in declared - {"cloudformation:DescribeStacks"}:
        stack.calls.refuse(action, "AccessDeniedException")
        failed = [row for row in checks(run, exit_code=4).values() if row["exit_code"] == 4]
        assert failed
        assert all(action in row["found"] for row in failed)
        stack.calls.answers.pop(action)


def test_a_stack_that_is_not_there_or_not_ours_is_one_line(stack: Stack, run: Run) -> None:
    """Exit 3, or 2."""
    stack.calls.answer("cloudformation:DescribeStacks", lambda *_: {"Stacks": [{"Outputs": []}]})
    assert list(checks(run, exit_code=2)) == ["stack SageAudit"]
    stack.calls.answers.clear()
    assert list(checks(run, exit_code=3)) == ["stack SageAudit"]


def test_without_a_region_the_stack_is_named_as_not_checked(
    stack: Stack, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A flag that is given does not vanish."""
    for name in ("AWS_REGION", "AWS_DEFAULT_REGION"):
        monkeypatch.delenv(name, raising=False)
    done = run("doctor", "doctor", "--stack", "SageAudit", "--output", "json")
    [row] = [row for row in json.loads(done.stdout)["checks"] if row["name"].startswith("stack ")]
    assert (row["state"], row["found"]) == ("not_checked", "without a region nothing can be asked")
