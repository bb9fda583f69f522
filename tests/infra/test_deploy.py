"""`make deploy` as a dialogue: what is stored, what is run, and what is never shown."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import boto3
import click
import pytest
from click.testing import CliRunner, Result
from moto import mock_aws

from infra import deploy
from infra.names import FINGERPRINT_KEY
from sageaudit.adapters.channels.slack import SlackChannel
from sageaudit.adapters.channels.sns import SnsChannel

SLACK_WEBHOOK = "sageaudit/slack-webhook"
WEBHOOK = "https://hooks.slack.com/services/T0000/B0000/not-a-real-one"
OTHER_WEBHOOK = "https://hooks.slack-gov.com/services/T0000/B0000/another"


class Runs:
    """Stands in for the CDK CLI and remembers what it was asked."""

    def __init__(self) -> None:
        self.calls: list[tuple[list[str], dict[str, str]]] = []

    def __call__(self, arguments: Sequence[str], environment: dict[str, str]) -> None:
        self.calls.append((list(arguments), environment))


@pytest.fixture
def runs() -> Runs:
    """A CLI that was not run yet."""
    return Runs()


@pytest.fixture(autouse=True)
def aws() -> Iterator[None]:
    """An account that was bootstrapped for the CDK."""
    with mock_aws():
        boto3.client("cloudformation").create_stack(
            StackName="CDKToolkit",
            TemplateBody='{"Resources": {"Bucket": {"Type": "AWS::S3::Bucket"}}}',
        )
        yield


def dialogue(runs: Runs, typed: str) -> Result:
    """Answers each question with one line."""

    @click.command()
    def command() -> None:
        deploy.deploy(boto3.Session(region_name="us-east-1"), runs, [SnsChannel, SlackChannel])

    return CliRunner().invoke(command, input=typed)


def stored(name: str) -> str:
    """A secret's value."""
    value: str = boto3.client("secretsmanager").get_secret_value(SecretId=name)["SecretString"]
    return value


def names() -> set[str]:
    """The secrets that exist."""
    listed: list[dict[str, Any]] = boto3.client("secretsmanager").list_secrets()["SecretList"]
    return {secret["Name"] for secret in listed}


def test_a_first_deployment_stores_the_webhook_and_a_key(runs: Runs) -> None:
    """The webhook is in Secrets Manager only: not on the screen, nor in what is run."""
    result = dialogue(runs, f"y\n{WEBHOOK}\n")
    assert result.exit_code == 0, result.output
    assert stored(SLACK_WEBHOOK) == WEBHOOK
    assert len(stored(FINGERPRINT_KEY)) == 64
    [(arguments, environment)] = runs.calls
    assert arguments == ["deploy", "--context", "slack=on"]
    assert environment["AWS_REGION"] == "us-east-1"
    assert WEBHOOK not in f"{result.output} {runs.calls}"
    assert stored(FINGERPRINT_KEY) not in result.output


def test_enter_goes_without_slack(runs: Runs) -> None:
    """Notices then go to the topic only."""
    dialogue(runs, "y\n\n")
    assert names() == {FINGERPRINT_KEY}
    assert runs.calls[0][0] == ["deploy", "--context", "slack=off"]


def test_nothing_happens_in_an_account_that_is_not_confirmed(runs: Runs) -> None:
    """The question names account and region."""
    result = dialogue(runs, "n\n")
    assert "account 111122223333, region us-east-1" in result.output
    assert result.exit_code == 1
    assert names() == set()
    assert not runs.calls


@pytest.mark.parametrize(
    "wrong",
    [
        "http://hooks.slack.com/services/T/B/x",
        "https://example.com/services/T/B/x",
        "https://hooks.slack.com.example.com/services/T/B/x",
        "https://hooks.slack.com@example.com/services/T/B/x",
        "https://hooks.slack.com:8443/services/T/B/x",
        "hello",
    ],
)
def test_what_is_no_slack_webhook_is_asked_for_again(runs: Runs, wrong: str) -> None:
    """It is not repeated on the screen either: it may be a secret in the wrong place."""
    result = dialogue(runs, f"y\n{wrong}\n{OTHER_WEBHOOK}\n")
    assert result.exit_code == 0, result.output
    assert stored(SLACK_WEBHOOK) == OTHER_WEBHOOK
    assert wrong not in result.output


def test_a_second_deployment_keeps_both_secrets(runs: Runs) -> None:
    """Another key would give every job of the past another fingerprint."""
    dialogue(runs, f"y\n{WEBHOOK}\n")
    key = stored(FINGERPRINT_KEY)
    dialogue(runs, "y\n\n\n")
    assert (stored(FINGERPRINT_KEY), stored(SLACK_WEBHOOK)) == (key, WEBHOOK)
    assert runs.calls[-1][0] == ["deploy", "--context", "slack=on"]


def test_a_webhook_can_be_replaced(runs: Runs) -> None:
    """As after a leak."""
    dialogue(runs, f"y\n{WEBHOOK}\n")
    dialogue(runs, f"y\n{OTHER_WEBHOOK}\n")
    assert stored(SLACK_WEBHOOK) == OTHER_WEBHOOK


def test_slack_can_be_switched_off(runs: Runs) -> None:
    """The stored webhook stays for another day."""
    dialogue(runs, f"y\n{WEBHOOK}\n")
    dialogue(runs, "y\n\nn\n")
    assert runs.calls[-1][0] == ["deploy", "--context", "slack=off"]
    assert stored(SLACK_WEBHOOK) == WEBHOOK


def test_a_region_is_bootstrapped_when_agreed(runs: Runs) -> None:
    """The CDK needs a bucket and roles of its own there, once."""
    boto3.client("cloudformation").delete_stack(StackName="CDKToolkit")
    result = dialogue(runs, "y\n\ny\n")
    assert "not bootstrapped" in result.output
    assert [arguments[:2] for arguments, _ in runs.calls] == [
        ["bootstrap", "aws://111122223333/us-east-1"],
        ["deploy", "--context"],
    ]


def test_the_cli_is_a_2_x() -> None:
    """The registry's newest is a 3.x that cannot read this library's assemblies."""
    assert deploy.CDK_CLI.startswith("aws-cdk@2.")
