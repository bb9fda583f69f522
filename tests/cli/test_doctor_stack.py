"""`sageaudit doctor --stack`: dead letters, subscribers of alarms, and the last sweep."""

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
from sageaudit.domain.sweep import JobList, first_state, grace
from sageaudit.structs import replace
from sageaudit.workflows.doctor import permissions
from tests.adapters.history.tables import new_table
from tests.fakes.aws_calls import aws_calls
from tests.fakes.command_line import Run
from tests.fakes.dead_letters import DEAD, REGION, Stack, event
from tests.fakes.sweeps import store_list


@pytest.fixture
def stack(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Stack]:
    """Yields a stack with a table and a topic."""
    monkeypatch.delenv("MOTO_ACCOUNT_ID")  # moto: the account of the credentials
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    with mock_aws(), aws_calls() as aws:
        deployed = Stack(aws)
        deployed.outputs["TableName"] = new_table(boto3.client("dynamodb", region_name=REGION))
        topic = boto3.client("sns", region_name=REGION).create_topic(Name="SageAudit-alarms")
        deployed.outputs["AlarmsTopicArn"] = topic["TopicArn"]
        webhook = SlackChannel.secret_format.example
        boto3.client("secretsmanager", region_name=REGION).create_secret(
            Name="sageaudit/channel/slack", SecretString=webhook
        )
        deployed.outputs["AuditsAtOnce"] = "5"
        aws.answer("lambda:GetAccountSettings", concurrency_response(10))
        deployed.outputs["ChannelSlack"] = "slack sageaudit/channel/slack"
        message = [{"OutputKey": k, "OutputValue": v} for k, v in deployed.outputs.items()]
        aws.answer("cloudformation:DescribeStacks", lambda *_: {"Stacks": [{"Outputs": message}]})
        yield deployed


def concurrency_response(executions: int) -> Any:
    """Returns the response of an account with this concurrency limit."""
    return lambda *_: {"AccountLimit": {"UnreservedConcurrentExecutions": executions}}


def finish_sweep(
    stack: Stack,
    ago: timedelta,
    account: str = "123456789012",
    *,
    tried_ago: timedelta | None = None,
) -> None:
    """Records that a sweep read a list to its end; sweeps tried it since, if `tried_ago` is set."""
    client = boto3.client("dynamodb", region_name=REGION)
    at, tried_at = datetime.now(UTC) - ago, datetime.now(UTC) - (tried_ago or ago)
    watermark = at - grace(JobKind.TRAINING)
    state = replace(first_state(at), watermark=watermark, tried_at=tried_at)
    notes = DynamoSweepStore(client, stack.outputs["TableName"])
    store_list(notes, JobList(account, REGION, JobKind.TRAINING), state)


def subscribe(stack: Stack) -> None:
    """Adds a subscriber of the alarms."""
    boto3.client("sns", region_name=REGION).subscribe(
        TopicArn=stack.outputs["AlarmsTopicArn"], Protocol="email", Endpoint="ops@example.com"
    )


def checks(run: Run, *, exit_code: int) -> dict[str, dict[str, Any]]:
    """Returns the checks of the stack by name."""
    done = run("doctor", "doctor", "--stack", "SageAudit", "--region", REGION, "--output", "json")
    assert done.exit_code == exit_code, done.stdout
    rows = json.loads(done.stdout)["checks"]
    names = ("stack ", "dead letters", "alarms", "sweep", "channel ", "executions")
    return {row["name"]: row for row in rows if row["name"].startswith(names)}


def test_a_healthy_stack_is_0(stack: Stack, run: Run) -> None:
    """It has no dead letters, a subscriber, and a finished sweep."""
    finish_sweep(stack, timedelta(minutes=20))
    subscribe(stack)
    deployed = checks(run, exit_code=0)
    assert {row["state"] for row in deployed.values()} == {"ok"}
    assert [row["found"] for name, row in deployed.items() if name.startswith("dead")] == [
        "none"
    ] * 6
    assert deployed["alarms"]["found"] == "they go to 1 subscriber (email)"
    assert "it has read 1 list since" in deployed["sweep"]["found"]
    holds = "the secret sageaudit/channel/slack holds a Slack incoming webhook URL"
    assert deployed["channel slack"]["found"] == holds


@pytest.mark.parametrize(
    ("secret", "output", "state", "deployed"),
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
        (None, "sns {empty}", "failed", "the topic has no subscriber"),
        (None, "pager x", "not_checked", "pager is not known to this version"),
    ],
)
def test_each_channel_has_a_valid_secret_or_a_subscriber(
    stack: Stack, run: Run, secret: str | None, output: str, state: str, deployed: str
) -> None:
    """The address itself is never shown."""
    finish_sweep(stack, timedelta(minutes=20))
    subscribe(stack)
    topic = stack.outputs["AlarmsTopicArn"]
    empty = boto3.client("sns", region_name=REGION).create_topic(Name="empty")["TopicArn"]
    if secret is not None:
        boto3.client("secretsmanager", region_name=REGION).create_secret(
            Name="sageaudit/channel/ml", SecretString=secret
        )
    outputs = {**stack.outputs, "ChannelMlPlatform": output.format(topic=topic, empty=empty)}
    message = [{"OutputKey": k, "OutputValue": v} for k, v in outputs.items()]
    stack.calls.answer(
        "cloudformation:DescribeStacks", lambda *_: {"Stacks": [{"Outputs": message}]}
    )
    row = checks(run, exit_code=int(state == "failed"))
    assert row["channel ml-platform"]["state"] == state
    assert deployed in row["channel ml-platform"]["found"]
    assert "sig=local" not in str(row)


@pytest.mark.parametrize(("executions", "state"), [(10, "ok"), (9, "failed"), (1000, "ok")])
def test_audits_may_take_half_of_the_accounts_executions(
    stack: Stack, run: Run, executions: int, state: str
) -> None:
    """A new account has ten, which is enough for five audits."""
    finish_sweep(stack, timedelta(minutes=20))
    subscribe(stack)
    stack.calls.answer("lambda:GetAccountSettings", concurrency_response(executions))
    row = checks(run, exit_code=int(state == "failed"))["executions"]
    assert row["state"] == state
    assert f"5 audits at once; this account may run {executions} functions at once" in row["found"]


def test_the_own_topic_may_have_no_subscribers(stack: Stack, run: Run) -> None:
    """People who read chat need no mail."""
    finish_sweep(stack, timedelta(minutes=20))
    subscribe(stack)
    empty = boto3.client("sns", region_name=REGION).create_topic(Name="own")["TopicArn"]
    message = [{"OutputKey": k, "OutputValue": v} for k, v in stack.outputs.items()]
    message.append({"OutputKey": "ChannelSns", "OutputValue": f"sns {empty}"})
    stack.calls.answer(
        "cloudformation:DescribeStacks", lambda *_: {"Stacks": [{"Outputs": message}]}
    )
    row = checks(run, exit_code=0)["channel sns"]
    assert (row["state"], row["found"]) == ("ok", "the stack's own topic has no subscriber")


@pytest.mark.parametrize("kind", [*DEAD, "sweep", "watch", "digest"])
def test_dead_letters_are_counted_and_lead_to_redrive(stack: Stack, run: Run, kind: str) -> None:
    """The exit code is 1.

    A failed scheduled start is not sent again: the next start does the same work.
    """
    finish_sweep(stack, timedelta(minutes=20))
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
    """It is not swept any more; its stored state remains."""
    subscribe(stack)
    finish_sweep(stack, timedelta(minutes=20))
    finish_sweep(stack, timedelta(days=30), account="1" * 12)
    row = checks(run, exit_code=0)["sweep"]
    assert (row["state"], "1 list since" in row["found"]) == ("ok", True)


def test_no_subscribers_and_no_sweep_are_reported(stack: Stack, run: Run) -> None:
    """Each has a next step. A stack that never swept is not checked."""
    deployed = checks(run, exit_code=1)
    assert deployed["alarms"]["found"] == "they have no subscriber"
    assert "make deploy" in deployed["alarms"]["next"]
    assert deployed["sweep"]["state"] == "not_checked"


@pytest.mark.parametrize(
    ("read_ago_min", "tried_ago_min", "state", "found", "runbook"),
    [
        (50, 50, "ok", "it has read 2 lists since", ""),
        (70, 70, "failed", "the last sweep was at", "Sweep silent"),
        (170, 10, "ok", "it has read 2 lists since", ""),
        (190, 10, "failed", "that of the training jobs of 222233334444 in us-east-1", "Lists late"),
    ],
    ids=["in time", "no sweep for an hour", "a list not for hours", "a list is late"],
)
def test_a_silent_sweep_and_a_late_list_are_told_apart(
    stack: Stack,
    run: Run,
    read_ago_min: int,
    tried_ago_min: int,
    state: str,
    found: str,
    runbook: str,
) -> None:
    """Sweeps that do not run, and sweeps that cannot read one of two accounts to its end."""
    subscribe(stack)
    read_ago, tried_ago = timedelta(minutes=read_ago_min), timedelta(minutes=tried_ago_min)
    finish_sweep(stack, tried_ago)
    finish_sweep(stack, read_ago, account="222233334444", tried_ago=tried_ago)
    row = checks(run, exit_code=int(state == "failed"))["sweep"]
    assert row["state"] == state
    assert found in row["found"]
    assert runbook in (row["next"] or "")


def test_it_calls_only_declared_actions_and_a_refusal_is_one_line(stack: Stack, run: Run) -> None:
    """The other lines are still printed."""
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


def test_a_stack_that_does_not_exist_or_is_not_ours_is_one_line(stack: Stack, run: Run) -> None:
    """The exit code is 3 or 2."""
    stack.calls.answer("cloudformation:DescribeStacks", lambda *_: {"Stacks": [{"Outputs": []}]})
    assert list(checks(run, exit_code=2)) == ["stack SageAudit"]
    stack.calls.answers.clear()
    assert list(checks(run, exit_code=3)) == ["stack SageAudit"]


def test_without_a_region_the_stack_is_named_as_not_checked(
    stack: Stack, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An option is never ignored silently."""
    for name in ("AWS_REGION", "AWS_DEFAULT_REGION"):
        monkeypatch.delenv(name, raising=False)
    done = run("doctor", "doctor", "--stack", "SageAudit", "--output", "json")
    [row] = [row for row in json.loads(done.stdout)["checks"] if row["name"].startswith("stack ")]
    assert (row["state"], row["found"]) == ("not_checked", "cannot be checked without a region")
