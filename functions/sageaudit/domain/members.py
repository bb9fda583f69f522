"""The members of a deployment: other accounts and regions, when they were heard, what they deny.

The schedule of infra/member.yaml puts an event on the member's bus each day, and the member's
forward rule sends it home: the heartbeat. It shows that the member has the template, and that its
events arrive. EventBridge sets the account and region of an event, so no account can send one for
another account. The events of jobs also count.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from datetime import UTC, datetime, timedelta
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
_NEVER = datetime(1970, 1, 1, tzinfo=UTC)
_JOB_SERVICES = ("sagemaker", "sts", "cloudwatch")
"""The services that are called with a member's role, or for it."""


class Denial(Struct, frozen=True):
    """What a member denies: IAM actions, since when, and AWS's reason for the first of them.

    `is_confirmed`: whether the member was asked again since then.
    """

    since: datetime
    checked_at: datetime
    actions: tuple[str, ...]
    reason: str
    is_confirmed: bool = False

    @classmethod
    def from_error(cls, error: AwsError, now: datetime, *, is_confirmed: bool = False) -> Denial:
        """Returns the denial that an error of a member shows."""
        action = (isinstance(error, AccessDenied) and error.action) or ASSUME_ROLE
        return cls(now, now, (action,), denial_reason(error), is_confirmed)

    def denies(self, action: str) -> bool:
        """Returns whether a call is certain to be denied."""
        return action in self.actions or ASSUME_ROLE in self.actions

    def denies_job(self, kind: JobKind) -> bool:
        """Returns whether a job of this kind is certain not to be described."""
        return self.denies(f"sagemaker:{kind.spec.describe_call}")

    def should_check(self, now: datetime) -> bool:
        """Returns whether it is time to ask the member again: at the next sweep, then hourly.

        A new role may be denied for some seconds.
        """
        is_recent = self.checked_at <= now < self.checked_at + CHECK_INTERVAL
        return not (self.is_confirmed and is_recent)


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

    def denies_job(self, kind: JobKind) -> bool:
        """Returns whether a job of this kind is certain not to be described."""
        return self.denial is not None and self.denial.denies_job(kind)

    def is_silent(self, now: datetime) -> bool:
        """Returns whether no event of a member arrives any more.

        A member that never sent a heartbeat may only have had no jobs.
        """
        if self.template_version is None or self.last_seen_at is None:
            return False
        return now - self.last_seen_at > SILENT_AFTER

    def is_gone(self, heard_at: datetime) -> bool:
        """Returns whether a member has left: it is silent, and denies access.

        `heard_at`: when the last event of any member arrived. If none arrives any more, the cause
        is at home. A silent member whose lists can be read is still audited: only its forward rule
        is broken.
        """
        return self.is_silent(heard_at) and self.denial is not None


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
        return self.includes_account(account) and region in self._regions(account)

    def _regions(self, account: str) -> tuple[str, ...]:
        # Groups are for other accounts.
        if account == self.home.account:
            return (self.home.region, *self.members.regions)
        return self.members.regions_of(account, self.home.region)

    def audited(self, registered: Mapping[AccountRegion, Member]) -> list[AccountRegion]:
        """Returns the accounts and regions whose lists are read, sorted.

        They are those that the policy names. If the policy names the whole organization, they are
        also those from which an event has arrived and that are not gone.
        """
        listed = (
            AccountRegion(account, region)
            for account in (self.home.account, *self.members.role_by_account)
            for region in self._regions(account)
        )
        heard_at = last_heard_at(registered.values())
        present = (
            account_region
            for account_region, member in registered.items()
            if member.last_seen_at is not None and not member.is_gone(heard_at)
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


def last_heard_at(members: Iterable[Member]) -> datetime:
    """Returns when the last event of any member arrived; the earliest time if none did."""
    return max((member.last_seen_at for member in members if member.last_seen_at), default=_NEVER)


def denial_reason(error: AwsError) -> str:
    """Returns why a member denies access, for people who can do something about it."""
    if isinstance(error, NoCredentials):
        return "AWS does not accept the role's credentials there: the region may not be enabled."
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


def unreadable_members(
    members: Mapping[AccountRegion, Member], is_audited: Callable[[AccountRegion], bool]
) -> list[Member]:
    """Returns the audited members that deny something and are not gone, in order."""
    heard_at = last_heard_at(members.values())
    denying = (
        member
        for account_region, member in members.items()
        if member.denial and not member.is_gone(heard_at) and is_audited(account_region)
    )
    return sorted(denying, key=lambda member: member.account_region)
