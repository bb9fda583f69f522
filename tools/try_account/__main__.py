"""Asks, tries a deployment, writes the checklist, and removes everything: `make try`.

`--cleanup` removes what an earlier try left, for example because its machine was switched off.
"""

from __future__ import annotations

import shlex
import signal
import subprocess
import sys
import time
from datetime import UTC, datetime
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import click
from botocore.exceptions import BotoCoreError, ClientError

from infra import file_tree
from infra.bundling import ROOT, build_asset, lambda_target
from infra.names import FINGERPRINT_KEY
from infra.runtimes import PINNED_PYTHON
from sageaudit import __version__
from sageaudit.adapters.aws.accounts import open_session
from sageaudit.adapters.aws.clients import no_answer_error
from sageaudit.adapters.files.local_files import write_text
from sageaudit.errors import SageauditError
from tools.try_account.account import Account, Names, new_names
from tools.try_account.checklist import EXPECTED, checklist_text
from tools.try_account.cost import (
    INSTANCE_TYPE,
    OTHER_JOB_USD,
    CannotTry,
    Cost,
    image_uri,
    max_cost,
)
from tools.try_account.policy import POLICY
from tools.try_account.removal import find_stacks, remove
from tools.try_account.resources import Package
from tools.try_account.trial import Trial

TARGET = lambda_target(PINNED_PYTHON, "arm64")


@click.command()
@click.option("--profile", help="AWS profile; by default AWS_PROFILE, or AWS's own default.")
@click.option("--region", help="AWS region; by default that of the environment or the profile.")
@click.option("--yes", is_flag=True, help="Do not ask before starting.")
@click.option("--cleanup", is_flag=True, help="Only remove what earlier tries left.")
def main(profile: str | None, region: str | None, yes: bool, cleanup: bool) -> None:
    """Deploys sageaudit in your account, tests it, and removes it.

    It runs one processing job of two minutes, and writes a checklist that you can send.
    """
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        account = _open_account(profile, region)
        sys.exit(_run(account, assume_yes=yes, only_cleanup=cleanup))
    except (CannotTry, SageauditError) as error:
        raise click.ClickException(str(error)) from error
    except (BotoCoreError, ClientError) as error:
        reason = no_answer_error(error, "AWS") if isinstance(error, BotoCoreError) else error
        raise click.ClickException(str(reason)) from error


def _run(account: Account, *, assume_yes: bool, only_cleanup: bool) -> int:
    action = _clean_up if only_cleanup else _try
    try:
        return action(account, assume_yes=assume_yes)
    except KeyboardInterrupt:
        remedy = _cleanup_text(account)
        raise click.ClickException(f"interrupted before all was removed: {remedy}") from None


def _cleanup_text(account: Account) -> str:
    """Returns the command that removes the rest in this account and region."""
    words = ["--cleanup"]
    if (profile := account.session.profile_name) != "default":
        words += ["--profile", profile]
    words += ["--region", account.region]
    return f'`make try ARGS="{shlex.join(words)}"` removes the rest'


def try_deployment(
    account: Account, names: Names, package: Package, title: str
) -> tuple[str, bool]:
    """Tries the deployment, removes it in any case, and returns the checklist.

    Also returns whether all of it is as on the local AWS. After KeyboardInterrupt the list has the
    checks up to there. A second KeyboardInterrupt ends the removal, and passes through.
    """
    trial = Trial(account, names, package)
    try:
        trial.run()
    except KeyboardInterrupt:
        account.say("interrupted; wait until all is removed")
    finally:
        left = remove(account, names.stack)
    if left:
        account.say(_cleanup_text(account))
    checks = trial.all_checks("; ".join(left) or EXPECTED["removal"])
    text = account.without_id(checklist_text(title, checks, trial.facts))
    return text, all(check.is_same for check in checks)


def _open_account(profile: str | None, region: str | None) -> Account:
    session: Any = open_session(profile, region)
    if session.region_name is None:
        raise click.UsageError("no region is configured: add --region")
    identity = session.client("sts").get_caller_identity()
    click.echo(f"Account {identity['Account']}, region {session.region_name}, {identity['Arn']}")
    return Account(
        session,
        identity["Account"],
        session.region_name,
        now=lambda: datetime.now(UTC),
        sleep=time.sleep,
        say=_say,
    )


def _say(text: str) -> None:
    click.echo(f"{datetime.now(UTC):%H:%M:%S}  {text}")


def _try(account: Account, *, assume_yes: bool) -> int:
    cost, image, names = max_cost(account), image_uri(account.region), new_names(account.region)
    click.echo(_question(cost, names))
    if not assume_yes:
        click.confirm("Try it in this account?", abort=True)
    package = Package(_zip_asset(), _make_template(), image, cost.rate.usd)
    title = f"sageaudit {__version__}, tried in {account.region} on {account.now():%Y-%m-%d}"
    text, is_same = try_deployment(account, names, package, title)
    click.echo(f"\n{text}")
    path = Path(f"{names.stack}.txt")
    write_text(path, text)
    click.echo(
        f"The list is in {path}, without your account's id.\n"
        'Please send it with the issue form "A first real account" of the repository.'
    )
    return int(not is_same)


def _question(cost: Cost, names: Names) -> str:
    about = "about " if cost.rate.is_estimate else ""
    return f"""
It takes about half an hour and costs at most ${cost.max_usd}.
It creates these, and removes them at the end:
- the stack {names.stack}, whose schedules are off
- a bucket, a queue and a role
- the secret {FINGERPRINT_KEY}, unless there is one already
- one processing job of 2 minutes (10 at most) on 1 x {INSTANCE_TYPE}
  ({about}${cost.rate.usd:f} an hour)
Other jobs that end meanwhile are audited too, which is not included: at most
${OTHER_JOB_USD} each.
"""


def _make_template() -> str:
    # In a process of its own: the CDK's Node would end at Ctrl-C, and its client then complains.
    command = [sys.executable, "-m", "tools.try_account.template"]
    return subprocess.run(command, cwd=ROOT, check=True, stdout=subprocess.PIPE, text=True).stdout


def _zip_asset() -> bytes:
    click.echo("Building the asset of the functions ...")
    asset = build_asset(TARGET, POLICY)
    if asset.compiled_by is None:
        click.echo(f"There is no Python {PINNED_PYTHON} here: cold starts will be slower.")
    with TemporaryDirectory() as folder:
        return file_tree.pack_folder(asset.folder, Path(folder, "asset.zip")).read_bytes()


def _clean_up(account: Account, *, assume_yes: bool) -> int:
    stacks, unread = find_stacks(account)
    for text in unread:
        click.echo(f"cannot be listed: {text}", err=True)
    if not stacks:
        click.echo("Nothing is left of earlier tries." if not unread else "Nothing was found.")
        return int(bool(unread))
    click.echo(f"Leftovers of earlier tries: {', '.join(stacks)}")
    if not assume_yes:
        click.confirm("Remove all of it?", abort=True)
    left = [text for stack in stacks for text in remove(account, stack)]
    for text in left:
        click.echo(f"not removed: {text}", err=True)
    return int(bool(left or unread))


if __name__ == "__main__":
    main(prog_name="make try")
