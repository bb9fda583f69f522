"""`make deploy` as a dialogue: what is stored, what is run, and what is never shown."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any
from unittest import mock

import boto3
import click
import pytest
from botocore.exceptions import ClientError
from click.testing import CliRunner, Result
from moto import mock_aws

from infra import deploy, subscribers
from infra.bootstrap import QUALIFIER_KEY, REQUIRED_VERSION
from infra.deploy_flags import Flags
from infra.kept_table import NotAHistoryTable
from infra.members import create_forwarding
from infra.names import FINGERPRINT_KEY, MEMBER_REGIONS
from infra.settings import Settings
from sageaudit.domain.policy.policy import Policy
from sageaudit.domain.policy.routes import ChannelConfig, default_channels
from sageaudit.domain.policy.scope import MemberAccounts
from sageaudit.workflows.doctor.deployment import DEFAULT_QUALIFIER
from tests.adapters.history.tables import new_table
from tests.fakes.aws_calls import aws_calls
from tests.infra.reading import read

VERSION = f"/cdk-bootstrap/{DEFAULT_QUALIFIER}/version"
SLACK_WEBHOOK = "sageaudit/channel/slack"
WEBHOOK = "https://hooks.slack.com/services/T0000/B0000/not-a-real-one"
OTHER_WEBHOOK = "https://hooks.slack-gov.com/services/T0000/B0000/another"


STACK = """{"Resources": {
    "Table": {"Type": "AWS::DynamoDB::Table", "Properties": {
      "TableName": "history", "BillingMode": "PAY_PER_REQUEST",
      "AttributeDefinitions": [{"AttributeName": "pk", "AttributeType": "S"}],
      "KeySchema": [{"AttributeName": "pk", "KeyType": "HASH"}]}},
    "Alarms": {"Type": "AWS::SNS::Topic"}, "Notices": {"Type": "AWS::SNS::Topic"}},
  "Outputs": {
    "TableName": {"Value": {"Ref": "Table"}},
    "AlarmsTopicArn": {"Value": {"Ref": "Alarms"}},
    "NoticesTopicArn": {"Value": {"Ref": "Notices"}}}}"""
"""What the rest of the deployment reads of the stack."""

OUTPUTS = '"Outputs": {'
WITH_SLACK = f'{OUTPUTS} "NoticesQueueUrlSlack": {{"Value": "url"}},'
NO_FLAGS = Flags()
PLAIN, OBSERVES = Policy(), Policy(mode="observe")
SLACK = Policy(channels={**default_channels(), "slack": ChannelConfig("slack", SLACK_WEBHOOK)})


class Runs:
    """Stands in for the CDK CLI: remembers what it was asked, and deploys two topics."""

    def __init__(self) -> None:
        self.calls: list[tuple[list[str], dict[str, str]]] = []

    def __call__(self, arguments: Sequence[str], environment: dict[str, str]) -> None:
        self.calls.append((list(arguments), environment))
        formation = boto3.client("cloudformation", region_name="us-east-1")
        stacks = {stack["StackName"] for stack in formation.describe_stacks()["Stacks"]}
        if arguments[0] == "deploy" and "SageAudit" not in stacks:
            formation.create_stack(StackName="SageAudit", TemplateBody=STACK)


@pytest.fixture
def runs() -> Runs:
    """A CLI that was not run yet."""
    return Runs()


@pytest.fixture(autouse=True)
def aws() -> Iterator[None]:
    """An account that was bootstrapped for the CDK."""
    with mock_aws():
        bootstrapped("21")
        yield


def bootstrapped(version: str, qualifier: str = DEFAULT_QUALIFIER) -> None:
    """Sets the parameter that every bootstrap has, whatever its stack is called."""
    boto3.client("ssm").put_parameter(
        Name=f"/cdk-bootstrap/{qualifier}/version", Value=version, Type="String", Overwrite=True
    )


def not_bootstrapped() -> None:
    """Deletes that parameter."""
    boto3.client("ssm").delete_parameter(Name=VERSION)


def dialogue(
    runs: Runs,
    typed: str,
    flags: Flags = NO_FLAGS,
    policy: Policy = PLAIN,
    *,
    profile: str | None = None,
) -> Result:
    """Answers each question with one line, and those that follow with Enter."""

    @click.command()
    def command() -> None:
        session = boto3.Session(region_name="us-east-1")
        deploy.deploy(session, runs, flags, policy, profile=profile)

    return CliRunner().invoke(command, input=typed + "\n\n")


def subscribed(output: str) -> list[tuple[str, str]]:
    """Who listens to the topic that an output of the stack names."""
    [stack] = boto3.client("cloudformation").describe_stacks(StackName="SageAudit")["Stacks"]
    arns = {output["OutputKey"]: output["OutputValue"] for output in stack["Outputs"]}
    listed = boto3.client("sns").list_subscriptions_by_topic(TopicArn=arns[output])
    return [
        (subscription["Protocol"], subscription["Endpoint"])
        for subscription in listed["Subscriptions"]
    ]


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
    result = dialogue(runs, f"y\n{WEBHOOK}\n", NO_FLAGS, SLACK, profile="prod")
    assert result.exit_code == 0, result.output
    assert stored(SLACK_WEBHOOK) == WEBHOOK
    assert len(stored(FINGERPRINT_KEY)) == 64
    [(arguments, environment)] = runs.calls
    # Credentials in the environment would come before AWS_PROFILE: another account's, perhaps.
    assert arguments == ["deploy", "--profile", "prod"]
    assert environment["AWS_REGION"] == "us-east-1"
    assert "AWS_PROFILE" not in environment
    assert WEBHOOK not in f"{result.output} {runs.calls}"
    assert stored(FINGERPRINT_KEY) not in result.output


def test_nothing_happens_in_an_account_that_is_not_confirmed(runs: Runs) -> None:
    """The question names account and region."""
    result = dialogue(runs, "n\n")
    assert "account 111122223333, region us-east-1" in result.output
    assert result.exit_code == 1
    assert names() == set()
    assert not runs.calls


NOBODY_IS_TOLD = ("Nobody gets alarms: if sageaudit itself fails", "--alarms-to")
NOBODY_HAS_MESSAGES = ("Nobody gets messages: findings are only in the table", "--notices-to")


@pytest.mark.parametrize(
    ("before", "typed", "flags", "policy", "kept", "said"),
    [
        ("", "", NO_FLAGS, PLAIN, None, (*NOBODY_IS_TOLD, *NOBODY_HAS_MESSAGES)),
        ("", f"{WEBHOOK}\n", NO_FLAGS, SLACK, WEBHOOK, ("Messages go to slack.\n",)),
        (WEBHOOK, "", NO_FLAGS, SLACK, WEBHOOK, NOBODY_IS_TOLD),
        (WEBHOOK, "", Flags(secrets={"slack": OTHER_WEBHOOK}), SLACK, OTHER_WEBHOOK, ()),
        (WEBHOOK, "", NO_FLAGS, PLAIN, WEBHOOK, ()),
    ],
    ids=["without", "first", "kept", "replaced", "gone"],
)
def test_a_channel_of_the_policy_has_its_secret(
    runs: Runs,
    before: str,
    typed: str,
    flags: Flags,
    policy: Policy,
    kept: str | None,
    said: Sequence[str],
) -> None:
    """Only one that is missing is asked for; a flag replaces one, as after a leak.

    The key of fingerprints stays: another would give every job of the past another fingerprint.
    The end says who is told, and with which flag somebody is.
    """
    keys = set()
    if before:
        dialogue(runs, f"y\n{before}\n", NO_FLAGS, SLACK)
        keys.add(stored(FINGERPRINT_KEY))
    result = dialogue(runs, f"y\n{typed}", flags, policy)
    assert result.exit_code == 0, result.output
    assert len(keys | {stored(FINGERPRINT_KEY)}) == 1
    assert (stored(SLACK_WEBHOOK) if SLACK_WEBHOOK in names() else None) == kept
    assert runs.calls[-1][0] == ["deploy"]
    assert not [text for text in said if text not in result.output]


@pytest.mark.parametrize(
    "wrong",
    [
        "http://hooks.slack.com/services/T/B/x",
        "https://hooks.slack.com.example.com/services/T/B/x",
        "hello",
    ],
)
def test_what_is_no_slack_webhook_is_asked_for_again(runs: Runs, wrong: str) -> None:
    """It is not repeated on the screen either: it may be a secret in the wrong place."""
    result = dialogue(runs, f"y\n{wrong}\n{OTHER_WEBHOOK}\n", NO_FLAGS, SLACK)
    assert result.exit_code == 0, result.output
    assert stored(SLACK_WEBHOOK) == OTHER_WEBHOOK
    assert wrong not in result.output


def test_a_region_is_bootstrapped_when_agreed(runs: Runs) -> None:
    """The CDK needs a bucket and roles of its own there, once; the question says what they may."""
    not_bootstrapped()
    assert "AdministratorAccess" in dialogue(runs, "y\ny\n").output
    bootstrap, deployment = (arguments for arguments, _ in runs.calls)
    assert bootstrap == ["bootstrap", "aws://111122223333/us-east-1"]
    assert deployment[0] == "deploy"


@pytest.mark.parametrize("is_interactive", [True, False])
def test_yes_alone_never_bootstraps(runs: Runs, is_interactive: bool) -> None:
    """It stops before anything is written, and says how: somebody must name --bootstrap."""
    not_bootstrapped()
    flags = Flags(is_interactive=is_interactive, assume_yes=True, secrets={"slack": WEBHOOK})
    result = dialogue(runs, "y\n", flags, SLACK)
    assert (result.exit_code, runs.calls, names()) == (1, [], set())
    assert f"there is no SSM parameter {VERSION}: add --bootstrap" in result.output


def test_a_bootstrap_with_another_qualifier_is_found(
    runs: Runs, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The setting is the CDK's own, in cdk.json."""
    not_bootstrapped()
    bootstrapped("21", "platform")
    context = {"stack": "SageAudit", QUALIFIER_KEY: "platform"}
    monkeypatch.setattr(deploy, "cdk_context", lambda: context)
    assert dialogue(runs, "y\n").exit_code == 0
    assert [arguments[0] for arguments, _ in runs.calls] == ["deploy"]


def test_a_bootstrap_that_is_too_old_stops_the_deployment(runs: Runs) -> None:
    """Also with --bootstrap: its stack may have another name, and its roles other policies."""
    bootstrapped(str(REQUIRED_VERSION - 1))
    result = dialogue(runs, "y\n", Flags(bootstrap=True))
    assert (result.exit_code, runs.calls) == (1, [])
    assert "has version 5, and sageaudit needs 6 or newer" in result.output
    bootstrapped(str(REQUIRED_VERSION))
    assert dialogue(runs, "y\n").exit_code == 0


def test_a_bootstrap_whose_version_may_not_be_read_stops_the_deployment(runs: Runs) -> None:
    """Nothing is bootstrapped only because a permission is missing."""
    with aws_calls() as calls:
        calls.refuse("ssm:GetParameter", "AccessDeniedException")
        result = dialogue(runs, "y\n", Flags(bootstrap=True))
    assert (result.exit_code, runs.calls) == (1, [])
    assert f"ssm:GetParameter on {VERSION} is denied" in result.output


def test_the_required_version_is_that_of_the_template(templates: Path) -> None:
    """CloudFormation refuses the template with an older bootstrap."""
    template = read(templates, "assembly/SageAudit.template.json")
    [rule] = template["Rules"]["CheckBootstrapVersion"]["Assertions"]
    assert f"version {REQUIRED_VERSION} required" in rule["AssertDescription"]
    assert template["Parameters"]["BootstrapVersion"]["Default"] == VERSION


def test_the_cli_is_a_2_x() -> None:
    """The registry's newest is a 3.x that cannot read this library's assemblies."""
    assert deploy.CDK_CLI.startswith("aws-cdk@2.")


def test_alarms_and_messages_go_to_the_addresses_that_were_typed(runs: Runs) -> None:
    """After the deployment, which makes the topics; the end says who is told."""
    result = dialogue(runs, "y\nops@example.com\nteam@example.com, lead@example.com\n")
    assert result.exit_code == 0, result.output
    assert subscribed("AlarmsTopicArn") == [("email", "ops@example.com")]
    assert subscribed("NoticesTopicArn") == [
        ("email", "team@example.com"),
        ("email", "lead@example.com"),
    ]
    assert "Alarms go to ops@example.com.\n" in result.output
    assert "Messages go to team@example.com, lead@example.com.\n" in result.output


def test_an_address_is_subscribed_once(runs: Runs) -> None:
    """A second deployment shows who is told; Enter keeps them, and the same address adds none."""
    dialogue(runs, "y\nops@example.com\n")
    again = dialogue(runs, "y\nOps@Example.com\n")
    assert "Enter keeps ops@example.com)" in again.output
    assert subscribed("AlarmsTopicArn") == [("email", "ops@example.com")]
    dialogue(runs, "y\n\n")
    assert subscribed("AlarmsTopicArn") == [("email", "ops@example.com")]


def test_a_policy_that_only_observes_is_said(runs: Runs) -> None:
    """Otherwise people wait for messages."""
    output = dialogue(runs, "y\n", NO_FLAGS, OBSERVES).output
    assert 'No messages are sent: policy.toml has mode = "observe"' in output


@pytest.mark.parametrize("wrong", ["ops", "ops@", "ops@localhost", "https://[x", WEBHOOK])
def test_what_is_no_address_is_asked_for_again(runs: Runs, wrong: str) -> None:
    """With what takes it. The answer is not repeated after it was typed."""
    result = dialogue(runs, f"y\n{wrong}\nops@example.com\n")
    assert "Not accepted: not an e-mail address; `aws sns subscribe`" in result.output
    assert result.output.count(WEBHOOK) == (wrong == WEBHOOK)  # as it was typed
    assert subscribed("AlarmsTopicArn") == [("email", "ops@example.com")]


def test_an_address_that_aws_refuses_does_not_hide_the_deployment(
    runs: Runs, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The stack is there; the exit code says that something was not done."""

    def refuse(*_: Any) -> None:
        raise ClientError({"Error": {"Code": "InvalidParameter", "Message": "bad"}}, "Subscribe")

    monkeypatch.setattr(subscribers, "subscribe", refuse)
    result = dialogue(runs, "y\nops@example.com\n")
    assert result.exit_code == 1
    assert "sageaudit is deployed, but ops@example.com could not be subscribed" in result.output
    assert "Nobody gets alarms" in result.output


def test_flags_answer_every_question(runs: Runs) -> None:
    """A pipeline types nothing; the CDK CLI asks nothing either."""
    not_bootstrapped()
    everything = Flags(
        is_interactive=False,
        assume_yes=True,
        bootstrap=True,
        secrets={"slack": WEBHOOK},
        alarms_to=("ops@example.com",),
        notices_to=(),
    )
    assert not list(everything.missing_flags())
    result = dialogue(runs, "", everything, SLACK)
    assert result.exit_code == 0, result.output
    assert stored(SLACK_WEBHOOK) == WEBHOOK
    assert WEBHOOK not in result.output
    assert [arguments for arguments, _ in runs.calls] == [
        ["bootstrap", "aws://111122223333/us-east-1"],
        ["deploy", "--require-approval", "never"],
    ]
    assert subscribed("AlarmsTopicArn") == [("email", "ops@example.com")]
    assert subscribed("NoticesTopicArn") == []


def test_a_script_stops_where_a_secret_is_missing(runs: Runs) -> None:
    """Every notice would fail."""
    flags = Flags(is_interactive=False, assume_yes=True, alarms_to=(), notices_to=())
    result = dialogue(runs, "", flags, SLACK)
    assert result.exit_code == 1
    assert "no secret is stored for slack: add --secret-file slack=FILE" in result.output
    assert (runs.calls, names()) == ([], set())


def test_a_channel_that_the_policy_names_no_more_is_asked_about(runs: Runs) -> None:
    """Its queue goes with what waits in it."""
    dialogue(runs, "y\n")
    boto3.client("cloudformation").update_stack(
        StackName="SageAudit", TemplateBody=STACK.replace(OUTPUTS, WITH_SLACK)
    )
    calls = len(runs.calls)
    result = dialogue(runs, "y\nn\n")
    assert "The channel slack is deployed, but no longer in policy.toml: its queue" in result.output
    assert (result.exit_code, len(runs.calls)) == (1, calls)
    assert dialogue(runs, "y\ny\n").exit_code == 0


def command(*arguments: str, typed: str = "") -> Result:
    """`make deploy` with these flags, and no terminal."""
    with mock.patch.object(deploy, "load_policy", return_value=SLACK):
        return CliRunner().invoke(deploy.main, arguments, input=typed)


def test_without_a_terminal_the_missing_flags_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """All of them at once, before anything is done."""
    with monkeypatch.context() as no_region:
        for name in ("AWS_REGION", "AWS_DEFAULT_REGION", "AWS_PROFILE"):
            no_region.delenv(name, raising=False)
        result = command("--notices-to", "nobody")
    assert result.exit_code == 2
    assert (
        "cannot ask questions, because the input is not a terminal: "
        "add --region, --yes, --alarms-to ADDRESS|nobody\n"
    ) in result.output
    assert names() == set()


def test_a_file_without_a_webhook_is_refused_without_showing_it(tmp_path: Path) -> None:
    """It may hold another secret."""
    file = tmp_path / "webhook"
    file.write_text("xoxb-a-token", encoding="utf-8")
    for given, why in (
        (f"slack={file}", "the file for slack is not a Slack incoming webhook URL"),
        (f"slak={file}", "the policy has slack, not 'slak'"),
        (str(file), "it is not of the form CHANNEL=FILE"),
    ):
        result = command("--secret-file", given)
        assert result.exit_code == 2
        assert why in " ".join(result.output.split())
        assert "xoxb" not in result.output


def test_a_pipeline_deploys_with_flags_only(runs: Runs, monkeypatch: pytest.MonkeyPatch) -> None:
    """The webhook may come from stdin, which no list of processes shows."""
    monkeypatch.setattr(deploy, "run_cdk", runs)
    flags = ("--region", "us-east-1", "--yes", "--secret-file", "slack=-")
    result = command(
        *flags,
        "--alarms-to",
        "ops@example.com,b@example.com",
        "--notices-to",
        "nobody",
        typed=WEBHOOK,
    )
    assert result.exit_code == 0, result.output
    assert stored(SLACK_WEBHOOK) == WEBHOOK
    assert [address for _, address in subscribed("AlarmsTopicArn")] == [
        "ops@example.com",
        "b@example.com",
    ]


def test_a_region_must_be_configured_or_named(runs: Runs, monkeypatch: pytest.MonkeyPatch) -> None:
    """By a flag, the environment or the profile; nobody is asked for it."""
    monkeypatch.setattr(deploy, "run_cdk", runs)
    for name in ("AWS_REGION", "AWS_DEFAULT_REGION", "AWS_PROFILE"):
        monkeypatch.delenv(name, raising=False)
    result = command("--yes", "--alarms-to", "nobody", "--notices-to", "nobody")
    assert (result.exit_code, runs.calls) == (2, [])
    assert "--region" in result.output


def test_a_secret_that_is_about_to_be_deleted_stops_the_deployment(runs: Runs) -> None:
    """Nobody can read it; after a removal it is there for some days."""
    dialogue(runs, f"y\n{WEBHOOK}\n", NO_FLAGS, SLACK)
    boto3.client("secretsmanager").delete_secret(SecretId=SLACK_WEBHOOK)
    calls = len(runs.calls)
    result = dialogue(runs, "y\n\n", NO_FLAGS, SLACK)
    assert result.exit_code == 1
    assert f"restore-secret --secret-id {SLACK_WEBHOOK}" in result.output
    assert len(runs.calls) == calls


def test_the_history_is_protected_once_it_is_deployed(runs: Runs) -> None:
    """By the template, CloudFormation could not roll a first deployment back."""
    assert dialogue(runs, "y\n").exit_code == 0
    table = boto3.client("dynamodb").describe_table(TableName="history")["Table"]
    assert table["DeletionProtectionEnabled"]


def test_a_table_that_is_named_is_adopted_with_its_stream_of_today(
    runs: Runs, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The setting is in cdk.json, so that the next deployment has it too."""
    existing_table = new_table(boto3.client("dynamodb"))
    monkeypatch.setattr(
        deploy, "cdk_context", lambda: {"stack": "SageAudit", "table_name": existing_table}
    )
    assert dialogue(runs, "y\n").exit_code == 0
    stream = boto3.client("dynamodb").describe_table(TableName=existing_table)["Table"][
        "LatestStreamArn"
    ]
    assert runs.calls[-1][0] == ["deploy", "--context", f"table_stream_arn={stream}"]


def test_the_regions_of_the_policy_forward_after_the_deployment(runs: Runs) -> None:
    """That of the deployment itself has no rule to make."""
    policy = Policy(members=MemberAccounts(regions=("us-east-1", "eu-west-1")))
    assert dialogue(runs, "y\n", policy=policy).exit_code == 0
    there = boto3.client("cloudformation", region_name="eu-west-1").describe_stacks()["Stacks"]
    assert [stack["StackName"] for stack in there] == ["SageAudit-member"]
    [rule] = boto3.client("events", region_name="eu-west-1").list_rules()["Rules"]
    [target] = boto3.client("events", region_name="eu-west-1").list_targets_by_rule(
        Rule=rule["Name"]
    )["Targets"]
    assert target["Arn"] == "arn:aws:events:us-east-1:111122223333:event-bus/SageAudit"


def test_a_region_that_leaves_the_policy_is_cleared_before_the_deployment(
    runs: Runs, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The outputs name it until then: what fails later is made up for by the next deployment."""
    session = boto3.Session(region_name="us-east-1")
    create_forwarding(session, ("111122223333", "us-east-1"), Settings(), ["eu-west-1"])
    old_outputs = {MEMBER_REGIONS: "eu-west-1,us-east-1"}
    monkeypatch.setattr(deploy, "_outputs", lambda *_: old_outputs)
    monkeypatch.setattr(
        deploy, "protect_table", mock.Mock(side_effect=NotAHistoryTable("not protected"))
    )
    assert dialogue(runs, "y\n").exit_code == 1
    assert not boto3.client("events", region_name="eu-west-1").list_rules()["Rules"]


def test_secrets_have_the_tags_and_the_key_of_the_settings(
    runs: Runs, monkeypatch: pytest.MonkeyPatch
) -> None:
    """New ones and those of an earlier version; a secret of somebody else stays as it is."""
    key = boto3.client("kms").create_key()["KeyMetadata"]["Arn"]
    store = boto3.client("secretsmanager")
    store.create_secret(Name=FINGERPRINT_KEY, SecretString="0" * 64)
    store.create_secret(Name="vision/workflow", SecretString=OTHER_WEBHOOK)
    own, others = ChannelConfig("slack", SLACK_WEBHOOK), ChannelConfig("slack", "vision/workflow")
    policy = Policy(channels={**default_channels(), "slack": own, "vision": others})
    context = {"stack": "SageAudit", "kms_key_arn": key, "tags": {"team": "ml"}}
    monkeypatch.setattr(deploy, "cdk_context", lambda: context)
    assert dialogue(runs, f"y\n{WEBHOOK}\n", policy=policy).exit_code == 0
    expected = {"sageaudit": "SageAudit", "team": "ml"}
    for name, tags, used in (
        (SLACK_WEBHOOK, expected, key),
        (FINGERPRINT_KEY, expected, key),
        ("vision/workflow", {}, None),
    ):
        secret = store.describe_secret(SecretId=name)
        assert {tag["Key"]: tag["Value"] for tag in secret.get("Tags", [])} == tags
        assert secret.get("KmsKeyId") == used


def test_a_setting_that_is_refused_stops_before_anything_is_written(
    runs: Runs, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In the sentence of the synthesis."""
    context = {"stack": "SageAudit", "architecture": "arm"}
    monkeypatch.setattr(deploy, "cdk_context", lambda: context)
    result = dialogue(runs, "y\n")
    assert (result.exit_code, names(), runs.calls) == (1, set(), [])
    assert "Error: context architecture: must be arm64 or x86_64, not 'arm'" in result.output
