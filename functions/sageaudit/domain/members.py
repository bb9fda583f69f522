"""The members of a deployment: other accounts and regions, when they were heard, what they deny.

The schedule of infra/member.yaml puts an event on the member's bus each day, and the member's
forward rule sends it home: the heartbeat. It shows that the member has the template, and that its
events arrive. EventBridge sets the account and region of an event, so no account can send one for
another account. The events of jobs also count.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from datetime import datetime, timedelta
from typing import Any

from msgspec import Struct

from sageaudit.domain.job import fields
from sageaudit.domain.job.kinds import JobKind
from sageaudit.domain.job.ref import REGION, AccountRegion, is_account_id
from sageaudit.domain.policy.scope import MemberAccounts
from sageaudit.errors import AccessDenied, AwsError, MalformedData, NoCredentials, RejectedEvent

TEMPLATE_VERSION = 1
"""The version of infra/member.yaml that this home expects. A heartbeat has its template's version.
"""
HEARTBEAT_SOURCE = "sageaudit.member"
HEARTBEAT_DETAIL_TYPE = "sageaudit Member Heartbeat"
VERSION_KEY = "template_version"
"""The key of the template's version in a heartbeat's detail."""
_MAX_TEMPLATE_VERSION = 9_999
"""A larger number is not from infra/member.yaml. DynamoDB refuses numbers of more than 38 digits.
"""
SILENT_AFTER = timedelta(days=3)
"""After this time without an event, a member is silent: three heartbeats were missed. Our choice.
"""
CHECK_INTERVAL = timedelta(minutes=55)
"""How often a member that denies is checked again: hourly, since sweeps start at minutes that vary
by seconds."""
ASSUME_ROLE = "sts:AssumeRole"
_JOB_SERVICES = ("sagemaker", "sts", "cloudwatch")
"""The services that are called with a member's role, or for it."""


class Denial(Struct, frozen=True):
    """What a member denies: IAM actions, since when, and AWS's reason for the first of them."""

    since: datetime
    checked_at: datetime
    actions: tuple[str, ...]
    reason: str

    @classmethod
    def from_error(cls, error: AwsError, now: datetime) -> Denial:
        """Returns the denial that an error of a member shows."""
        return cls(now, now, (denied_action(error),), denial_reason(error))

    def denies(self, action: str) -> bool:
        """Returns whether a call is certain to be denied."""
        return action in self.actions or ASSUME_ROLE in self.actions

    def should_check(self, now: datetime) -> bool:
        """Returns whether it is time to ask the member again: at the next sweep, then hourly.

        A new role may be denied for some seconds.
        """
        is_unconfirmed = self.checked_at == self.since
        return is_unconfirmed or not self.checked_at <= now < self.checked_at + CHECK_INTERVAL


class Member(Struct, frozen=True):
    """What is known of another account or region.

    `first_seen_at`, `last_seen_at`: when its first and last event arrived; None if none did.
    `template_version`: that of its last heartbeat. `denial`: what it denied at the last attempt.
    """

    account_region: AccountRegion
    first_seen_at: datetime | None = None
    last_seen_at: datetime | None = None
    template_version: int | None = None
    denial: Denial | None = None

    def is_silent(self, now: datetime) -> bool:
        """Returns whether no event of a member arrives any more."""
        return self.last_seen_at is not None and now - self.last_seen_at > SILENT_AFTER

    def is_gone(self, now: datetime) -> bool:
        """Returns whether a member has left: it is silent, and denies access.

        A silent member whose lists can be read is still audited: only its forward rule is broken.
        """
        return self.is_silent(now) and self.denial is not None


class AuditScope(Struct, frozen=True):
    """The accounts and regions that a deployment audits. Implements AuditedScope."""

    home: AccountRegion
    members: MemberAccounts

    def includes_account(self, account: str) -> bool:
        """Returns whether jobs of the account are audited."""
        return account == self.home.account or self.members.includes_account(account)

    def includes(self, account_region: AccountRegion) -> bool:
        """Returns whether jobs of the account in this region are audited."""
        account, region = account_region.account, account_region.region
        if account_region == self.home:
            return True
        is_in_region = region in self.members.regions_of(account, self.home.region)
        return is_in_region and self.includes_account(account)

    def audited(
        self, registered: Mapping[AccountRegion, Member], now: datetime
    ) -> list[AccountRegion]:
        """Returns the accounts and regions whose lists are read, sorted.

        They are those that the policy names. If the policy names the whole organization, they are
        also those from which an event has arrived and that are not gone.
        """
        listed = (
            AccountRegion(account, region)
            for account in (self.home.account, *self.members.role_by_account)
            for region in self.members.regions_of(account, self.home.region)
        )
        present = (
            account_region
            for account_region, member in registered.items()
            if member.last_seen_at is not None and not member.is_gone(now)
        )
        return sorted(filter(self.includes, {self.home, *listed, *present}))

    def is_denied_by_member(self, account_region: AccountRegion, error: AwsError) -> bool:
        """Returns whether an error about a job shows that another account or region denies access.

        A region that its account has not enabled answers that the credentials are not valid.
        """
        if account_region == self.home:
            return False
        if isinstance(error, AccessDenied):
            return not error.action or error.action.startswith(_JOB_SERVICES)
        return isinstance(error, NoCredentials)


def denied_action(error: AwsError) -> str:
    """Returns the action that an error of a member names; AssumeRole if it names none."""
    return (isinstance(error, AccessDenied) and error.action) or ASSUME_ROLE


def denial_reason(error: AwsError) -> str:
    """Returns why a member denies access. `sageaudit` itself has credentials that are valid."""
    if isinstance(error, NoCredentials):
        return (
            "AWS does not accept the credentials of the member's role in this region: the account"
            " has probably not enabled it"
        )
    return str(error)


class Heartbeat(Struct, frozen=True):
    """The daily event of a member's template."""

    account_region: AccountRegion
    sent_at: datetime
    template_version: int


def parse_heartbeat(body: str) -> Heartbeat | None:
    """Returns the heartbeat that an event is; None for any other event.

    Raises RejectedEvent if a heartbeat lacks a part.
    """
    try:
        event: Any = json.loads(body)
    except (ValueError, RecursionError):
        return None
    if not isinstance(event, dict) or event.get("source") != HEARTBEAT_SOURCE:
        return None
    account, region, detail = event.get("account"), event.get("region"), event.get("detail")
    version = detail.get(VERSION_KEY) if isinstance(detail, dict) else None
    if (
        not isinstance(account, str)
        or not is_account_id(account)
        or not isinstance(region, str)
        or not REGION.fullmatch(region)
        or not isinstance(version, int)
        or isinstance(version, bool)
        or not 0 < version <= _MAX_TEMPLATE_VERSION
    ):
        raise RejectedEvent(
            "malformed", f"a heartbeat has an account, a region and a {VERSION_KEY}"
        )
    try:
        sent_at = fields.parsed_time(event.get("time"), "time")
    except MalformedData as error:
        raise RejectedEvent("malformed", f"heartbeat: {error}") from error
    if sent_at is None:
        raise RejectedEvent("malformed", "a heartbeat has a time")
    return Heartbeat(AccountRegion(account, region), sent_at, version)


class WaitingEvent(Struct, frozen=True):
    """The event of a job whose account and region cannot be read. `body` is the event as JSON."""

    account_region: AccountRegion
    kind: JobKind
    body: str
    arrived_at: datetime


def unreadable_members(members: Iterable[Member], now: datetime) -> list[Member]:
    """Returns the members that deny something and are not gone, sorted by account and region."""
    denying = (member for member in members if member.denial and not member.is_gone(now))
    return sorted(denying, key=lambda member: member.account_region)
