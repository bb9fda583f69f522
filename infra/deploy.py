"""`make deploy`: asks for what it needs, stores the secrets, and runs a pinned CDK CLI.

A channel's webhook goes from the keyboard to Secrets Manager. It is never printed, and is in no
environment variable, command line or template.
"""

from __future__ import annotations

import os
import secrets
import subprocess
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import boto3
import click
from botocore.exceptions import BotoCoreError, ClientError

from infra import NODE, NPX
from infra.names import FINGERPRINT_KEY
from sageaudit.adapters.channels.catalogue import CHANNELS
from sageaudit.adapters.channels.channel import NoticeChannel, StoredSecret

CDK_CLI = "aws-cdk@2.1148.1"
"""Pinned to 2.x: a 3.x, the latest in the registry, cannot read assemblies of aws-cdk-lib 2."""
ROOT = Path(__file__).parent.parent

Run = Callable[[Sequence[str], dict[str, str]], None]


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


def deploy(session: Any, run: Run, channels: Sequence[type[NoticeChannel]] = CHANNELS) -> None:
    """Asks and deploys. Nothing is written before the account is confirmed."""
    account = session.client("sts").get_caller_identity()["Account"]
    region = session.region_name
    click.confirm(f"Deploy sageaudit to account {account}, region {region}?", abort=True)
    store = session.client("secretsmanager")
    keep_fingerprint_key(store)
    switches = {
        channel.name: "on" if ask_for_secret(store, channel.address) else "off"
        for channel in channels
        if isinstance(channel.address, StoredSecret)
    }
    environment = {"AWS_REGION": region, "AWS_DEFAULT_REGION": region}
    if session.profile_name != "default":
        environment["AWS_PROFILE"] = session.profile_name
    if not _exists(session.client("cloudformation"), "CDKToolkit"):
        click.confirm(
            "This region is not bootstrapped for the CDK (a bucket and roles for deployments). "
            "Do it now?",
            abort=True,
        )
        run(["bootstrap", f"aws://{account}/{region}"], environment)
    context = [word for name, on in switches.items() for word in ("--context", f"{name}={on}")]
    run(["deploy", *context], environment)


def keep_fingerprint_key(store: Any) -> None:
    """Creates the key once: with a new key, old and new fingerprints of one job would differ."""
    if not _has(store, FINGERPRINT_KEY):
        _put(store, FINGERPRINT_KEY, secrets.token_hex(32), "Key of sageaudit's job fingerprints")


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
    try:
        store.describe_secret(SecretId=name)
    except store.exceptions.ResourceNotFoundException:
        return False
    return True


def _put(store: Any, name: str, value: str, description: str) -> None:
    try:
        store.create_secret(Name=name, SecretString=value, Description=description)
    except store.exceptions.ResourceExistsException:
        store.put_secret_value(SecretId=name, SecretString=value)


def _exists(formation: Any, stack: str) -> bool:
    try:
        formation.describe_stacks(StackName=stack)
    except ClientError as error:
        if error.response["Error"]["Code"] != "ValidationError":
            raise
        return False
    return True


@click.command()
@click.option("--profile", help="AWS profile; you are asked when it is not given.")
@click.option("--region", help="AWS region; you are asked when it is not given.")
def main(profile: str | None, region: str | None) -> None:
    """Deploys sageaudit to one account and region."""
    profile = profile or click.prompt("AWS profile", os.environ.get("AWS_PROFILE", "default"))
    try:
        # With credentials from the environment only, there is no profile, not even "default".
        name = None if profile == "default" else profile
        known = boto3.Session(profile_name=name).region_name
        region = region or click.prompt("AWS region", known or "us-east-1")
        deploy(boto3.Session(profile_name=name, region_name=region), run_cdk)
    except (BotoCoreError, ClientError) as error:
        raise click.ClickException(str(error)) from error
    except subprocess.CalledProcessError as error:
        raise click.ClickException("the CDK CLI failed; its output is above") from error


if __name__ == "__main__":
    main()
