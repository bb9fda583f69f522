"""`make deploy`: asks for what it needs, stores the secrets, and runs a pinned CDK CLI.

A channel's webhook goes from the keyboard to Secrets Manager. It is never printed, and is in no
environment variable, command line or template.
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
import botocore.session
import click
from botocore.exceptions import BotoCoreError, ClientError

from infra import NODE, NPX, listeners, subscribers
from infra.bundling import POLICY, checked_policy
from infra.deploy_flags import (
    AddressesType,
    ChannelFlags,
    Flags,
    ask_for_addresses,
    channel_flags,
    channel_options,
    secret_of,
    with_secrets,
)
from infra.names import ALARMS_TOPIC, FINGERPRINT_KEY, NOTICES_TOPIC, STACK, queue_output
from infra.subscribers import Address, Subscriber
from sageaudit.adapters.aws.clients import unanswered
from sageaudit.adapters.channels.catalogue import CHANNELS
from sageaudit.adapters.channels.channel import NoticeChannel, StoredSecret

CDK_CLI = "aws-cdk@2.1148.1"
"""Pinned to 2.x: a 3.x, the latest in the registry, cannot read assemblies of aws-cdk-lib 2."""
ROOT = Path(__file__).parent.parent

Run = Callable[[Sequence[str], dict[str, str]], None]
_DEFAULT = "default"
"""The word for no profile, where there is none of this name."""


def run_cdk(arguments: Sequence[str], environment: dict[str, str]) -> None:
    """Runs the CDK CLI on the Node of the virtual environment."""
    path = os.pathsep.join([str(NODE.parent), os.environ.get("PATH", os.defpath)])
    subprocess.run(
        [str(NODE), str(NPX), "--yes", CDK_CLI, *arguments],
        check=True,
        cwd=ROOT,
        env={
            **os.environ,
            **environment,
            "PATH": path,
            "npm_config_update_notifier": "false",
        },
    )


def deploy(
    session: Any,
    run: Run,
    flags: Flags,
    channels: Sequence[type[NoticeChannel]] = CHANNELS,
    *,
    profile: str | None = None,
    observes: bool = False,
) -> None:
    """Asks and deploys, subscribes, and says who is told. Raises ClickException, Abort.

    Nothing is written before the account is confirmed. `profile`: that of the session, None for
    credentials of the environment. `observes`: the policy posts nothing.
    """
    account = session.client("sts").get_caller_identity()["Account"]
    flags.confirm(f"Deploy sageaudit to account {account}, region {session.region_name}?")
    store = session.client("secretsmanager")
    keep_fingerprint_key(store)
    formation, sns = session.client("cloudformation"), session.client("sns")
    deployed = _outputs(formation, STACK) or {}
    switches = {
        channel: switch(store, channel, flags, deployed=queue_output(channel.name) in deployed)
        for channel in with_secrets(channels)
    }
    bootstrapped = _outputs(formation, "CDKToolkit") is not None
    if not bootstrapped:
        flags.confirm(
            "This region is not bootstrapped for the CDK (a bucket and roles for deployments). "
            "Do it now?"
        )
    wanted = _ask_who_is_told(flags, sns, deployed)
    environment = _environment(session)
    # As a flag: credentials in the environment would come before AWS_PROFILE.
    of_profile = [] if profile is None else ["--profile", profile]
    if not bootstrapped:
        run(["bootstrap", f"aws://{account}/{session.region_name}", *of_profile], environment)
    # The CDK CLI asks before it grants permissions, and fails where nobody can answer.
    approval = ["--require-approval", "never"] if flags.yes else []
    context = [f"{channel.name}={'on' if on else 'off'}" for channel, on in switches.items()]
    flagged = [word for one in context for word in ("--context", one)]
    run(["deploy", *of_profile, *approval, *flagged], environment)
    topics = _outputs(formation, STACK) or {}
    refused = list(_subscribed(sns, topics, wanted))
    services = [secret_of(channel).service for channel, on in switches.items() if on]
    for line in _who_is_told(sns, topics, services, observes=observes):
        click.echo(line)
    if refused:
        raise click.ClickException("sageaudit is deployed, but " + "; ".join(refused))


def _environment(session: Any) -> dict[str, str]:
    return {"AWS_REGION": session.region_name, "AWS_DEFAULT_REGION": session.region_name}


def _ask_who_is_told(
    flags: Flags, sns: Any, topics: Mapping[str, str]
) -> dict[str, tuple[Address, ...]]:
    """The addresses to subscribe, by the name of the topic's output."""
    return {
        topic: ask_for_addresses(answered, what, _known(sns, topics.get(topic)))
        for topic, what, answered in (
            (ALARMS_TOPIC, "Alarms of sageaudit", flags.alarms_to),
            (NOTICES_TOPIC, "Messages about jobs", flags.notices_to),
        )
    }


def _who_is_told(
    sns: Any, topics: Mapping[str, str], services: Sequence[str], *, observes: bool
) -> Iterator[str]:
    alarms, notices = (_known(sns, topics[name]) for name in (ALARMS_TOPIC, NOTICES_TOPIC))
    yield from listeners.alarms(alarms, topics[ALARMS_TOPIC])
    yield from listeners.notices(
        notices, topics[NOTICES_TOPIC], services=services, observes=observes
    )
    yield from listeners.unconfirmed([*alarms, *notices])


def _known(sns: Any, topic_arn: str | None) -> list[Subscriber]:
    return [] if topic_arn is None else subscribers.subscribers(sns, topic_arn)


def _subscribed(
    sns: Any, topics: Mapping[str, str], wanted: Mapping[str, Sequence[Address]]
) -> Iterator[str]:
    """Why AWS did not take an address, for each that it did not take."""
    for name, addresses in wanted.items():
        for address in addresses:
            try:
                subscribers.subscribe(sns, topics[name], [address])
            except ClientError as error:
                message = error.response["Error"].get("Message", "no reason given")
                yield f"{address} could not be subscribed to {topics[name]}: {message}"


def keep_fingerprint_key(store: Any) -> None:
    """Creates the key once: with a new key, old and new fingerprints of one job would differ."""
    if not _has(store, FINGERPRINT_KEY):
        _put(store, FINGERPRINT_KEY, secrets.token_hex(32), "Key of sageaudit's job fingerprints")


def switch(
    store: Any, channel: type[NoticeChannel], flags: Flags, *, deployed: bool = False
) -> bool:
    """Whether the channel is on; stores its secret when one is given. Raises ClickException.

    Where nobody can be asked, a channel without a flag stays as it is deployed, and a new one off.
    """
    wanted, answer = secret_of(channel), flags.channels.get(channel.name, ChannelFlags())
    if answer.secret is not None:
        _put(store, wanted.stored_as, answer.secret, f"{wanted.service} {wanted.kind} of sageaudit")
        return answer.on is not False
    on = deployed if answer.on is None and not flags.terminal else answer.on
    if on and not _has(store, wanted.stored_as):
        raise click.ClickException(
            f"no {wanted.service} {wanted.kind} is stored in this account and region: "
            f"add --{channel.name}-secret-file FILE"
        )
    return ask_for_secret(store, wanted) if on is None else on


def ask_for_secret(store: Any, wanted: StoredSecret) -> bool:
    """Asks until the answer is a valid address or empty; True when the channel has an address."""
    title = f"{wanted.service} {wanted.kind}"
    stored = _has(store, wanted.stored_as)
    otherwise = "keeps the stored one" if stored else f"goes without {wanted.service}"
    while text := click.prompt(
        f"{title} (hidden; Enter {otherwise})",
        hide_input=True,
        default="",
        show_default=False,
    ):
        if reason := wanted.refusal(text.strip()):
            click.echo(f"That is not a {title}: {reason}.")
            continue
        _put(store, wanted.stored_as, text.strip(), f"{title} of sageaudit")
        return True
    return stored and click.confirm(f"Post to {wanted.service}?", default=True)


def _has(store: Any, name: str) -> bool:
    """Raises ClickException for a secret that is deleted in some days: it cannot be read."""
    try:
        found = store.describe_secret(SecretId=name)
    except store.exceptions.ResourceNotFoundException:
        return False
    if found.get("DeletedDate"):
        raise click.ClickException(
            f"the secret {name} is scheduled for deletion, so that nobody can read it: restore it "
            f"with `aws secretsmanager restore-secret --secret-id {name}`"
        )
    return True


def _put(store: Any, name: str, value: str, description: str) -> None:
    try:
        store.create_secret(Name=name, SecretString=value, Description=description)
    except store.exceptions.ResourceExistsException:
        store.put_secret_value(SecretId=name, SecretString=value)


def _outputs(formation: Any, stack: str) -> dict[str, str] | None:
    """The outputs of a stack, or None when there is no such stack."""
    try:
        [found] = formation.describe_stacks(StackName=stack)["Stacks"]
    except ClientError as error:
        if error.response["Error"]["Code"] != "ValidationError":
            raise
        return None
    return {output["OutputKey"]: output["OutputValue"] for output in found.get("Outputs", ())}


def _profile(named: str | None, *, terminal: bool) -> str | None:
    """The profile to use; None where there is none, as with credentials of the environment only."""
    if named is None:
        named = os.environ.get("AWS_PROFILE")
        named = click.prompt("AWS profile", named or _DEFAULT) if terminal else named
    known = botocore.session.get_session().available_profiles
    none = named == _DEFAULT and _DEFAULT not in known and "AWS_PROFILE" not in os.environ
    return None if none else named


def _session(name: str | None, region: str | None, *, terminal: bool) -> tuple[Any, str | None]:
    """A session, and its region where one is known or was asked for."""
    region = region or (None if terminal else boto3.Session(profile_name=name).region_name)
    if region is None and terminal:
        known = boto3.Session(profile_name=name).region_name
        region = click.prompt("AWS region", known or "us-east-1")
    return boto3.Session(profile_name=name, region_name=region), region


@click.command()
@click.option("--profile", help="AWS profile; you are asked when it is not given.")
@click.option("--region", help="AWS region; you are asked when it is not given.")
@click.option(
    "--alarms-to",
    type=AddressesType(),
    help="E-mail addresses or https endpoints that alarms about sageaudit go to, or: nobody.",
)
@click.option(
    "--notices-to",
    type=AddressesType(),
    help="E-mail addresses or https endpoints that messages about jobs go to, or: nobody.",
)
@channel_options(CHANNELS)
@click.option("--yes", is_flag=True, help="Agrees to the account, the bootstrap and permissions.")
def main(
    profile: str | None,
    region: str | None,
    alarms_to: tuple[Address, ...] | None,
    notices_to: tuple[Address, ...] | None,
    yes: bool,
    **channels: Any,
) -> None:
    """Deploys sageaudit to one account and region.

    Without a terminal nothing is asked, and every question needs its flag; the region may also come
    from the environment or the profile.
    """
    flags = Flags(
        terminal=sys.stdin.isatty(),
        yes=yes,
        channels=channel_flags(CHANNELS, channels),
        alarms_to=alarms_to,
        notices_to=notices_to,
    )
    try:
        profile = _profile(profile, terminal=flags.terminal)
        session, region = _session(profile, region, terminal=flags.terminal)
        missing = [*([] if region else ["--region"]), *flags.missing()]
        if missing and not flags.terminal:
            raise click.UsageError(
                "nothing can be asked, because the input is no terminal: add " + ", ".join(missing)
            )
        observes = checked_policy(POLICY).mode == "observe"
        deploy(session, run_cdk, flags, profile=profile, observes=observes)
    except BotoCoreError as error:
        raise click.ClickException(str(unanswered(error, "AWS"))) from error
    except ClientError as error:
        raise click.ClickException(str(error)) from error
    except subprocess.CalledProcessError as error:
        raise click.ClickException("the CDK CLI failed; its output is above") from error


if __name__ == "__main__":
    main(prog_name=f"{os.path.relpath(sys.executable)} -m infra.deploy")
