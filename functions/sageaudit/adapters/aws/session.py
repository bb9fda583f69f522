"""A boto3 session with the user's own credentials, whose they are, and the accounts to ask."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

import boto3
from botocore.exceptions import BotoCoreError
from msgspec import Struct

from sageaudit.adapters.aws.accounts import Accounts, NamedAccount, Role
from sageaudit.adapters.aws.clients import aws_errors, client, part_of, unanswered
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
