"""Opens a boto3 session with the user's own credentials."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

import boto3
import click
from botocore.exceptions import BotoCoreError
from msgspec import Struct

from sageaudit.adapters.aws import organization
from sageaudit.adapters.aws.accounts import Accounts, Role
from sageaudit.adapters.aws.clients import aws_errors, client, part_of, unanswered
from sageaudit.adapters.aws.organization import NamedAccount
from sageaudit.cli import options
from sageaudit.domain.job.ref import REGION, partition_of
from sageaudit.errors import BadUsage


def open_session(profile: str | None, region: str | None) -> Any:
    """A session for a profile and region, by default those of the AWS settings.

    Its region may be None. Raises NoCredentials, or BadUsage for an invalid region name.
    """
    try:
        session = boto3.Session(profile_name=profile, region_name=region)
    except BotoCoreError as error:
        raise unanswered(error, "AWS's configuration") from error
    name = session.region_name
    if name is not None and not REGION.fullmatch(name):
        raise BadUsage(f"{name!r} is not a region; a region looks like eu-west-1")
    return session


class Identity(Struct, frozen=True):
    """Whose credentials a session has."""

    account: str
    arn: str


class AccountList(Struct, frozen=True):
    """The accounts that were asked for, and the role to assume in those that are not the own."""

    own: Identity
    accounts: tuple[NamedAccount, ...]
    role: Role | None

    @property
    def names(self) -> dict[str, str | None]:
        """What the organization calls each account."""
        return {account.id: account.name for account in self.accounts}

    def clients(self, session: Any, region: str) -> Accounts:
        """Clients of all of them; roles are assumed in `region`."""
        own, role = self.own.account, self.role
        others = [name for name in self.names if name != own] if role else []
        return Accounts(
            session,
            own,
            {account: role.arn(account, region) for account in others if role},
            time.time,
            external_id=role.external_id if role else None,
            region=region,
        )


def home_region(session: Any, regions: Sequence[str], *, every: bool) -> str:
    """Where STS is asked: an enabled region, in the partition of the regions to scan.

    The first of all regions may be one that the account has not enabled. Empty without regions.
    """
    if not regions:
        return ""
    own, partition = session.region_name, partition_of(regions[0])
    if own is not None and partition_of(own) == partition:
        return str(own)
    return "us-east-1" if every and partition == "aws" else regions[0]


def identity(session: Any, region: str | None) -> Identity:
    """The account and ARN of the session's credentials. Raises AwsError."""
    with aws_errors("sts"):
        answer = client(session, "sts", region).get_caller_identity()
    return Identity(str(part_of(answer, "Account")), str(part_of(answer, "Arn")))


class OtherAccounts(Struct, frozen=True):
    """Which other accounts are asked, and by which role."""

    accounts: tuple[str, ...]
    organization: bool
    role: str | None
    external_id: str | None

    def check(self) -> None:
        """Raises BadUsage where the options do not fit together."""
        if self.accounts and self.organization:
            raise BadUsage("name the accounts once: either --account ID or --organization")
        for account in self.accounts:
            options.account_id(account, "--account")
        if self.external_id is not None and self.role is None:
            raise BadUsage("--external-id needs --role NAME")
        if self.role is not None and not self:
            raise BadUsage("--role needs the accounts that have it: --account ID or --organization")
        if self.organization and self.role is None:
            raise BadUsage("--organization needs --role NAME: the role to assume in each account")
        self._role()

    def __bool__(self) -> bool:
        return bool(self.accounts) or self.organization

    def listed(self, session: Any, region: str) -> AccountList:
        """The accounts that are named; without one, the active accounts of the organization.

        Raises BadUsage or AwsError.
        """
        own = identity(session, region)
        listed = [NamedAccount(account) for account in dict.fromkeys(self.accounts)]
        if not listed:
            with aws_errors("organizations"):
                listed = organization.active_accounts(client(session, "organizations", region))
        role = self._role()
        others = [account.id for account in listed if account.id != own.account]
        if others and role is None:
            raise BadUsage(
                f"--account names {others[0]}, which is not your own account {own.account}: give"
                " the role to assume there with --role NAME"
            )
        return AccountList(own, tuple(listed), role)

    def _role(self) -> Role | None:
        return None if self.role is None else Role(self.role, self.external_id)


OTHER_ACCOUNTS = options.together(
    "others",
    OtherAccounts,
    click.option(
        "--account",
        "accounts",
        metavar="ID",
        multiple=True,
        help="Account to ask; may be repeated.",
    ),
    click.option(
        "--organization",
        is_flag=True,
        help="Ask all active accounts of your organization; needs credentials of its management"
        " account or of a delegated administrator.",
    ),
    click.option(
        "--role",
        metavar="NAME",
        help="Role to assume in each account except your own; its name, with its path if it has"
        " one.",
    ),
    click.option(
        "--external-id", metavar="TEXT", help="External id that the role's trust policy wants."
    ),
)
