"""`make deploy`: asks for missing settings, stores the secrets, and runs a pinned CDK CLI.

A channel's webhook goes from the keyboard to Secrets Manager. It is never printed, and never put
into an environment variable, command line or template.
"""

from __future__ import annotations

import os
import secrets
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import boto3
import click
from botocore.exceptions import BotoCoreError, ClientError, WaiterError

from infra import NODE, NPX, listeners, subscribers
from infra.bootstrap import bootstrap_qualifier, should_bootstrap
from infra.bundling import POLICY, load_policy
from infra.deploy_flags import (
    AddressesType,
    Flags,
    SecretFileType,
    ask_for_addresses,
    check_secrets,
)
from infra.kept_table import NotAHistoryTable, adopt_table, protect_table
from infra.members import create_forwarding, delete_forwarding
from infra.names import ALARMS_TOPIC, FINGERPRINT_KEY, MEMBER_REGIONS, NOTICES_TOPIC
from infra.settings import BadSetting, Settings, cdk_context, read_settings
from infra.stored_secrets import protect_secret, put_secret
from infra.subscribers import Subscriber
from sageaudit.adapters.aws.clients import no_answer_error
from sageaudit.adapters.aws.stack_outputs import QUEUE_URL_PREFIX, outputs_by_channel
from sageaudit.adapters.channels.channel import SecretFormat
from sageaudit.adapters.channels.services import SERVICES, ChannelChoices
from sageaudit.domain.policy.policy import Policy
from sageaudit.domain.policy.routes import OWN_TOPIC

CDK_CLI = "aws-cdk@2.1148.1"
"""The CDK CLI's package, pinned to 2.x: 3.x, the latest in the registry, cannot read assemblies of
aws-cdk-lib 2."""
ROOT = Path(__file__).parent.parent

RunCdk = Callable[[Sequence[str], dict[str, str]], None]


def run_cdk(arguments: Sequence[str], environment: dict[str, str]) -> None:
    """Runs the CDK CLI with the virtual environment's Node."""
    path = os.pathsep.join([str(NODE.parent), os.environ.get("PATH", os.defpath)])
    subprocess.run(
        [str(NODE), str(NPX), "--yes", CDK_CLI, *arguments],
        check=True,
        cwd=ROOT,
        env={**os.environ, **environment, "PATH": path, "npm_config_update_notifier": "false"},
    )


def deploy(
    session: Any, run: RunCdk, flags: Flags, policy: Policy, *, profile: str | None = None
) -> None:
    """Deploys the stack, subscribes addresses, and prints who gets messages.

    Raises ClickException or Abort. Writes nothing before the account is confirmed. `profile`: the
    session's profile; None for credentials in the environment.
    """
    account = session.client("sts").get_caller_identity()["Account"]
    flags.confirm(f"Deploy sageaudit to account {account}, region {session.region_name}?")
    context = cdk_context()
    is_bootstrap_missing = should_bootstrap(
        session.client("ssm"), flags, bootstrap_qualifier(context)
    )
    store = session.client("secretsmanager")
    formation, sns = session.client("cloudformation"), session.client("sns")
    dynamodb = session.client("dynamodb")
    stack, table = context["stack"], context.get("table_name")
    old_outputs = _outputs(formation, stack) or {}
    # The table's stream may have changed since the last deployment.
    table_stream_arn = adopt_table(dynamodb, table) if table else ""
    table_options = ["--context", f"table_stream_arn={table_stream_arn}"] if table else []
    settings = _read_settings({**context, "table_stream_arn": table_stream_arn})
    for name in outputs_by_channel(old_outputs, QUEUE_URL_PREFIX).keys() - policy.channels.keys():
        flags.confirm(
            f"The channel {name} is deployed, but no longer in {POLICY.name}: its queue is deleted"
            " with the messages in it. Continue?"
        )
    store_secrets(store, flags, policy.channels, settings)
    create_fingerprint_key(store, settings)
    addresses_by_topic = _ask_subscribers(flags, sns, old_outputs)
    environment = _environment(session)
    # As an option: credentials in the environment would take precedence over AWS_PROFILE.
    profile_options = [] if profile is None else ["--profile", profile]
    if is_bootstrap_missing:
        run(["bootstrap", f"aws://{account}/{session.region_name}", *profile_options], environment)
    # The CDK CLI asks before it grants permissions, and fails without a terminal.
    approval = ["--require-approval", "never"] if flags.assume_yes else []
    if account in policy.members.regions_by_account:
        raise click.ClickException(
            f"a group in [accounts] of {POLICY.name} names {account}, the account of this"
            " deployment: groups are for other accounts, and `regions` is for this one"
        )
    member_regions = [region for region in policy.members.regions if region != session.region_name]
    old_member_regions = old_outputs.get(MEMBER_REGIONS, "none").split(",")
    # Before the deployment, as only the stack's old output has the regions to remove.
    removed_regions = [
        region
        for region in old_member_regions
        if region not in {"none", session.region_name, *member_regions}
    ]
    delete_forwarding(session, stack, removed_regions)
    run(["deploy", *profile_options, *approval, *table_options], environment)
    outputs = _outputs(formation, stack) or {}
    protect_table(dynamodb, outputs["TableName"], settings.all_tags)
    create_forwarding(session, (account, session.region_name), settings, member_regions)
    refusals = list(_subscribe(sns, outputs, addresses_by_topic))
    channels = [name for name in policy.channels if name != OWN_TOPIC]
    for line in _describe_subscribers(
        sns, outputs, channels, is_observe_mode=policy.mode == "observe"
    ):
        click.echo(line)
    if refusals:
        raise click.ClickException("sageaudit is deployed, but " + "; ".join(refusals))


def _environment(session: Any) -> dict[str, str]:
    return {"AWS_REGION": session.region_name, "AWS_DEFAULT_REGION": session.region_name}


def _ask_subscribers(
    flags: Flags, sns: Any, outputs: Mapping[str, str]
) -> dict[str, tuple[str, ...]]:
    """Returns the addresses to subscribe, by the name of the topic's output."""
    return {
        output_name: ask_for_addresses(
            flag_value, topic_name, _read_subscribers(sns, outputs.get(output_name))
        )
        for output_name, topic_name, flag_value in (
            (ALARMS_TOPIC, "Alarms of sageaudit", flags.alarms_to),
            (NOTICES_TOPIC, "Messages about jobs", flags.notices_to),
        )
    }


def _describe_subscribers(
    sns: Any, outputs: Mapping[str, str], channels: Sequence[str], *, is_observe_mode: bool
) -> Iterator[str]:
    alarms, notices = (
        _read_subscribers(sns, outputs[name]) for name in (ALARMS_TOPIC, NOTICES_TOPIC)
    )
    yield from listeners.alarm_lines(alarms, outputs[ALARMS_TOPIC])
    yield from listeners.notice_lines(
        notices, outputs[NOTICES_TOPIC], channels=channels, is_observe_mode=is_observe_mode
    )
    yield from listeners.unconfirmed_lines([*alarms, *notices])


def _read_subscribers(sns: Any, topic_arn: str | None) -> list[Subscriber]:
    return [] if topic_arn is None else subscribers.list_subscribers(sns, topic_arn)


def _subscribe(
    sns: Any, outputs: Mapping[str, str], addresses_by_topic: Mapping[str, Sequence[str]]
) -> Iterator[str]:
    """Subscribes addresses; yields a sentence for each address that AWS refused."""
    for output_name, addresses in addresses_by_topic.items():
        for address in addresses:
            try:
                subscribers.subscribe(sns, outputs[output_name], [address])
            except ClientError as error:
                message = error.response["Error"].get("Message", "no reason given")
                yield f"{address} could not be subscribed to {outputs[output_name]}: {message}"


def create_fingerprint_key(store: Any, settings: Settings) -> None:
    """Creates the fingerprint key if there is none. With a new key, a job's old and new
    fingerprints would differ.
    """
    if not _has_secret(store, FINGERPRINT_KEY):
        description = "Key of sageaudit's job fingerprints"
        put_secret(store, FINGERPRINT_KEY, secrets.token_hex(32), description, settings)
    protect_secret(store, FINGERPRINT_KEY, settings)


def store_secrets(store: Any, flags: Flags, channels: ChannelChoices, settings: Settings) -> None:
    """Stores the secrets in `flags`, and asks for missing secrets.

    Raises ClickException if a secret is missing and nobody can be asked.
    """
    secret_by_channel = {
        name: channel.secret
        for name, channel in channels.items()
        if channel.secret and (name in flags.secrets or not _has_secret(store, channel.secret))
    }
    missing_channels = [name for name in secret_by_channel if name not in flags.secrets]
    if missing_channels and not flags.is_interactive:
        files = " ".join(f"--secret-file {name}=FILE" for name in missing_channels)
        raise click.ClickException(
            f"no secret is stored for {', '.join(missing_channels)}: add {files}"
        )
    secret_formats_by_channel = secret_forms(channels)
    for name, secret in secret_by_channel.items():
        text = flags.secrets.get(name) or ask_for_secret(name, secret_formats_by_channel[name])
        description = f"{secret_formats_by_channel[name].kind} of sageaudit's channel {name}"
        put_secret(store, secret, text, description, settings)
    for channel in channels.values():
        if channel.secret:
            protect_secret(store, channel.secret, settings)


def secret_forms(channels: ChannelChoices) -> dict[str, SecretFormat]:
    """Returns the format of each channel's secret, without channels that have no secret."""
    secret_formats_by_channel = {
        name: SERVICES[channel.service].secret_format for name, channel in channels.items()
    }
    return {
        name: secret_format
        for name, secret_format in secret_formats_by_channel.items()
        if secret_format is not None
    }


def ask_for_secret(name: str, secret_format: SecretFormat) -> str:
    """Asks for a channel's secret until the answer is valid."""
    while True:
        text = str(
            click.prompt(f"{secret_format.kind} for the channel {name} (hidden)", hide_input=True)
        )
        if (reason := secret_format.invalid_reason(text.strip())) is None:
            return text.strip()
        click.echo(f"That is not a {secret_format.kind}: {reason}.")


def _has_secret(store: Any, name: str) -> bool:
    """Whether the secret exists. Raises ClickException if it is scheduled for deletion."""
    try:
        secret = store.describe_secret(SecretId=name)
    except store.exceptions.ResourceNotFoundException:
        return False
    if secret.get("DeletedDate"):
        raise click.ClickException(
            f"the secret {name} is scheduled for deletion and cannot be read: restore it "
            f"with `aws secretsmanager restore-secret --secret-id {name}`"
        )
    return True


def _read_settings(context: Mapping[str, Any]) -> Settings:
    try:
        return read_settings(context)
    except BadSetting as error:
        raise click.ClickException(str(error)) from error


def _outputs(formation: Any, stack: str) -> dict[str, str] | None:
    """Returns the outputs of a stack; None if there is no such stack."""
    try:
        [description] = formation.describe_stacks(StackName=stack)["Stacks"]
    except ClientError as error:
        if error.response["Error"]["Code"] != "ValidationError":
            raise
        return None
    return {output["OutputKey"]: output["OutputValue"] for output in description.get("Outputs", ())}


@click.command()
@click.option("--profile", help="AWS profile; by default AWS_PROFILE, or AWS's own default.")
@click.option("--region", help="AWS region; by default that of the environment or the profile.")
@click.option(
    "--alarms-to",
    type=AddressesType(),
    help="E-mail addresses that get alarms about sageaudit, or: nobody.",
)
@click.option(
    "--notices-to",
    type=AddressesType(),
    help="E-mail addresses that get messages about jobs, or: nobody.",
)
@click.option(
    "--secret-file",
    "secret_files",
    type=SecretFileType(),
    multiple=True,
    help="CHANNEL=FILE: the address to store for a channel of the policy; - is stdin.",
)
@click.option(
    "--yes",
    is_flag=True,
    help="Answers yes to: the account, permissions, and queues to delete.",
)
@click.option(
    "--bootstrap",
    is_flag=True,
    help="Bootstraps the region for the CDK if needed: CloudFormation's role then gets"
    " AdministratorAccess.",
)
def main(
    profile: str | None,
    region: str | None,
    alarms_to: tuple[str, ...] | None,
    notices_to: tuple[str, ...] | None,
    secret_files: tuple[tuple[str, str], ...],
    yes: bool,
    bootstrap: bool,
) -> None:
    """Deploys sageaudit to one account and region.

    Without a terminal it asks nothing, and every question needs its option.
    """
    policy = load_policy(POLICY)
    check_secrets(secret_files, secret_forms(policy.channels))
    flags = Flags(
        is_interactive=sys.stdin.isatty(),
        assume_yes=yes,
        bootstrap=bootstrap,
        secrets=dict(secret_files),
        alarms_to=alarms_to,
        notices_to=notices_to,
    )
    try:
        profile = profile or os.environ.get("AWS_PROFILE")
        session = boto3.Session(profile_name=profile, region_name=region)
        missing_flags = [*([] if session.region_name else ["--region"]), *flags.missing_flags()]
        if missing_flags and not flags.is_interactive:
            raise click.UsageError(
                "cannot ask questions, because the input is not a terminal: add "
                + ", ".join(missing_flags)
            )
        if session.region_name is None:
            raise click.UsageError("no region is configured: add --region")
        deploy(session, run_cdk, flags, policy, profile=profile)
    except BotoCoreError as error:
        raise click.ClickException(str(no_answer_error(error, "AWS"))) from error
    except ClientError as error:
        raise click.ClickException(str(error)) from error
    except (NotAHistoryTable, WaiterError) as error:
        raise click.ClickException(str(error)) from error
    except subprocess.CalledProcessError as error:
        raise click.ClickException("the CDK CLI failed; its output is above") from error


if __name__ == "__main__":
    main(prog_name=f"{os.path.relpath(sys.executable)} -m infra.deploy")
