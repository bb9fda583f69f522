"""The scope of a deployment: `[accounts]`, `regions`, `[watch]` and `[digest]`."""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from functools import cache
from itertools import chain

from msgspec import Struct, field

from sageaudit.domain.job.ref import REGION, is_account_id
from sageaudit.domain.policy.table_reader import TableReader
from sageaudit.domain.usage.series import MIN_STANDSTILL_S

MEMBER_ROLE = "sageaudit-read"
"""The default name of the role that infra/member.yaml creates in each member account."""
WHOLE_ORGANIZATION = "organization"
"""The value of `members` with which every account of the organization may be a member."""
_ROLE_ARN = re.compile(r"arn:aws[a-z-]*:iam::(?P<account>\d{12}):role/[\w+=,.@/-]+\Z", re.ASCII)
_ROLE_NAME = re.compile(r"(?:[\w+=,.@-]{1,64}/){0,8}[\w+=,.@-]{1,64}\Z", re.ASCII)
"""The name of a role, with its path if it has one."""
_ORGANIZATION = re.compile(r"o-[a-z0-9]{10,32}\Z")
_EXTERNAL_ID = re.compile(r"[\w+=,.@:/-]{2,1224}\Z", re.ASCII)

MIN_IDLE_MINUTES = MIN_STANDSTILL_S // 60
"""The lowest `idle_minutes`: a standstill is at least half an hour."""
MAX_IDLE_MINUTES = 12 * 60
"""The highest `idle_minutes`: half of the time for which a running job's metrics are read."""

DAYS = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
OFF = "off"
WEEK_DAYS = 7
_LAST_HOUR = 22
"""The latest hour of a digest. A digest that is started again an hour later is still sent on the
same day."""
DEFAULT_TIMEZONE = "UTC"
_NO_PLACES = frozenset({"Factory", "localtime", "posixrules"})
"""Files among the time zones that differ between computers, or stand for no time zone."""
_MAX_TIMEZONE_LENGTH = 50
"""The maximum length of a schedule's time zone (ScheduleExpressionTimezone in the API)."""
_BUCKET = re.compile(r"[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]\Z")
_SOME_MONDAY = date(2026, 1, 5)
_AUDIT_DELAY = timedelta(hours=1)
"""A job's audit is written at most this long after the job's end. So a day is not summed before
then. Our choice."""


class MemberAccounts(Struct, frozen=True):
    """The other accounts and regions that a deployment audits.

    `role_by_account` has the ARN or name of the role to assume, by account id; a name may begin
    with a path. If `organization` is set, only its accounts may forward events. `organization_role`
    is the role's name in every account of the organization; None if only the accounts in
    `role_by_account` are members. `regions` does not include the deployment's own region.
    `regions_by_account` has all regions of the accounts for which these differ.
    """

    role_by_account: Mapping[str, str] = field(default_factory=dict)
    organization: str | None = None
    external_id: str | None = None
    regions: tuple[str, ...] = ()
    organization_role: str | None = None
    regions_by_account: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    @property
    def has_other_accounts(self) -> bool:
        """Whether accounts besides the deployment's own are audited."""
        return bool(self.role_by_account) or self.organization_role is not None

    @property
    def all_regions(self) -> tuple[str, ...]:
        """The regions that the policy names, for all accounts or for some."""
        return tuple(dict.fromkeys(chain(self.regions, *self.regions_by_account.values())))

    def includes_account(self, account: str) -> bool:
        """Returns whether another account may be a member.

        In an organization without a list, the bus and the account's role prove it.
        """
        return account in self.role_by_account or self.organization_role is not None

    def role(self, account: str) -> str | None:
        """Returns the ARN or name of the role to assume in an account; None if it has none."""
        return self.role_by_account.get(account) or self.organization_role

    def regions_of(self, account: str, home_region: str) -> tuple[str, ...]:
        """Returns the regions in which an account is audited."""
        default = tuple(dict.fromkeys([home_region, *self.regions]))
        return self.regions_by_account.get(account, default)


def parse_members(reader: TableReader, regions: list[str]) -> MemberAccounts:
    """Reads the table `[accounts]`. Raises BadPolicy."""
    role = _text(reader, "role", _ROLE_NAME, "is not the name of a role") or MEMBER_ROLE
    organization = _text(
        reader, "organization", _ORGANIZATION, "is not an organization such as o-a1b2c3d4e5"
    )
    roles, organization_role = dict[str, str](), None
    if reader.table.get("members") == WHOLE_ORGANIZATION:
        reader.read_keys.add("members")
        if organization is None:
            raise reader.error("members", "needs organization, such as o-a1b2c3d4e5")
        organization_role = role
    else:
        roles = dict.fromkeys(_account_ids(reader, "members"), role)
    members = MemberAccounts(
        roles,
        organization,
        _text(
            reader, "external_id", _EXTERNAL_ID, "has not 2 to 1,224 letters, digits or +=,.@:/-"
        ),
        tuple(dict.fromkeys(regions)),
        organization_role,
        _regions_by_account(reader),
    )
    for account in reader.unread_keys():
        roles[account] = _role_arn(reader, account)
    for account in members.regions_by_account:
        if not members.includes_account(account):
            raise reader.error("group", f"names {account}, which is not a member")
    return members


def _account_ids(reader: TableReader, key: str) -> list[str]:
    accounts = reader.strings(key)
    for account in accounts:
        if not is_account_id(account):
            raise reader.error(key, f"names {account!r}, which has not 12 digits")
    return accounts


def _regions_by_account(reader: TableReader) -> dict[str, tuple[str, ...]]:
    """Reads the array `[[accounts.group]]`: accounts that are audited only in some regions."""
    regions_by_account: dict[str, tuple[str, ...]] = {}
    for group in reader.table_array("group"):
        accounts = _account_ids(group, "accounts")
        regions = tuple(dict.fromkeys(region_names(group)))
        group.reject_unread_keys()
        for key, names in (("accounts", accounts), ("regions", regions)):
            if not names:
                raise group.error(key, "is empty")
        for account in accounts:
            if account in regions_by_account:
                raise group.error("accounts", f"names {account}, which is in an earlier group")
            regions_by_account[account] = regions
    return regions_by_account


def _role_arn(reader: TableReader, account: str) -> str:
    role = reader.table[account]
    if not is_account_id(account):
        raise reader.error(account, "is not an account id of 12 digits")
    arn = _ROLE_ARN.match(role) if isinstance(role, str) else None
    if arn is None:
        raise reader.error(account, "is not the ARN of a role to assume")
    if arn["account"] != account:
        raise reader.error(account, f"names a role of another account, {arn['account']}")
    return str(role)


def _text(reader: TableReader, key: str, form: re.Pattern[str], refusal_reason: str) -> str | None:
    value: str | None = reader.read(key, str, None)
    if value is not None and not form.match(value):
        raise reader.error(key, refusal_reason)
    return value


def region_names(reader: TableReader) -> list[str]:
    """Reads the key `regions` of the policy or of a group of accounts. Raises BadPolicy."""
    names = reader.strings("regions")
    for name in names:
        if not REGION.fullmatch(name):
            raise reader.error("regions", f"names {name!r}: a region looks like eu-west-1")
    return names


class WatchSettings(Struct, frozen=True):
    """Which running jobs are watched, and when a message about a job is due.

    All values are our choice. Jobs above `usd_per_hour` are watched: $5 an hour is a mid-size GPU
    instance. If the price is unknown, jobs with at least `gpus_unpriced` GPUs are watched.

    A message is due after `idle_minutes` without work: 45 minutes are longer than checkpoints and
    evaluations. It is also due when a job has run `longest_times` as long as its family's longest
    run.
    """

    usd_per_hour: Decimal = Decimal(5)
    gpus_unpriced: int = 4
    idle_minutes: int = 45
    longest_times: Decimal = Decimal(3)

    def should_watch(self, usd_per_hour: Decimal | None, gpus: int) -> bool:
        """Returns whether a job is watched. If its rate is None, the number of its GPUs decides."""
        if usd_per_hour is None:
            return gpus >= max(self.gpus_unpriced, 1)
        return usd_per_hour > self.usd_per_hour


def parse_watch(reader: TableReader) -> WatchSettings | None:
    """Reads the table `[watch]`; None if watching is off. Raises BadPolicy."""
    is_on, default = reader.read("on", bool, True), WatchSettings()
    idle_minutes = _whole_number(reader, "idle_minutes", default.idle_minutes)
    settings = WatchSettings(
        usd_per_hour=reader.amount("usd_per_hour", default.usd_per_hour),
        gpus_unpriced=_whole_number(reader, "gpus_unpriced", default.gpus_unpriced),
        idle_minutes=idle_minutes,
        longest_times=reader.amount("longest_times", default.longest_times, ""),
    )
    reader.reject_unread_keys()
    if not MIN_IDLE_MINUTES <= idle_minutes <= MAX_IDLE_MINUTES:
        raise reader.error("idle_minutes", f"is not from {MIN_IDLE_MINUTES} to {MAX_IDLE_MINUTES}")
    if settings.longest_times < 1:
        raise reader.error("longest_times", "is below 1: every run would be too long")
    return settings if is_on else None


def _whole_number(reader: TableReader, key: str, default: int) -> int:
    value = reader.read(key, int, default)
    if isinstance(value, bool) or value < 0:
        raise reader.error(key, "is not a whole number of 0 or more")
    return int(value)


class DigestSchedule(Struct, frozen=True):
    """When the digest is sent, in a time zone, and the bucket for its report.

    A digest covers seven whole UTC days, which begin on `week_start_utc_day` (0 is Monday). The
    last day ends at least an hour before the digest is sent, in winter and in summer time. So the
    weeks of two digests neither overlap nor leave a gap.
    """

    day: str = DAYS[0]
    hour: int = 8
    timezone: str = DEFAULT_TIMEZONE
    week_start_utc_day: int = 0
    report_bucket: str | None = None

    @property
    def cron(self) -> str:
        """The expression for EventBridge Scheduler: the digest's hour, and the hour after it.

        The second invocation normally finds that the digest was written. It is needed if the first
        invocation failed, or if daylight saving time skips the first hour.
        """
        return f"cron(0 {self.hour},{self.hour + 1} ? * {self.day[:3].upper()} *)"

    def last_full_week(self, now: datetime) -> tuple[date, date]:
        """Returns the first and last UTC day of the newest full week."""
        today = now.astimezone(UTC).date()
        after = today - timedelta(days=(today.weekday() - self.week_start_utc_day) % WEEK_DAYS)
        return after - timedelta(days=WEEK_DAYS), after - timedelta(days=1)


def parse_digest(reader: TableReader) -> DigestSchedule | None:
    """Reads the table `[digest]`; None if the digest is off. Raises BadPolicy."""
    day = reader.read("day", str, DAYS[0])
    hour, timezone = reader.read("hour", int, 8), reader.read("timezone", str, DEFAULT_TIMEZONE)
    bucket = reader.read("report_bucket", str, None)
    reader.reject_unread_keys()
    if day not in {*DAYS, OFF}:
        raise reader.error("day", f"is not one of {', '.join((*DAYS, OFF))}")
    if isinstance(hour, bool) or not 0 <= hour <= _LAST_HOUR:
        raise reader.error("hour", f"is not a whole hour from 0 to {_LAST_HOUR}")
    if bucket is not None and not _BUCKET.match(bucket):
        raise reader.error("report_bucket", "is not the name of a bucket")
    if day == OFF:
        return None
    if timezone != DEFAULT_TIMEZONE and timezone not in _timezones():
        text = "is not a time zone that this computer knows, such as Europe/Berlin"
        raise reader.error("timezone", text)
    utc_day = _utc_day(DAYS.index(day), hour, timezone)
    return DigestSchedule(day, hour, timezone, utc_day, bucket)


@cache
def _timezones() -> frozenset[str]:
    """Returns the names of time zones that EventBridge Scheduler accepts.

    The functions need no data of time zones: the stored policy has the day in UTC.
    """
    from zoneinfo import available_timezones  # noqa: PLC0415 - the functions need none

    names = available_timezones() - _NO_PLACES
    return frozenset(name for name in names if len(name) <= _MAX_TIMEZONE_LENGTH)


def _utc_day(day: int, hour: int, timezone: str) -> int:
    """Returns the UTC weekday on which a digest's week starts (0 is Monday).

    The week ends at least `_AUDIT_DELAY` before the digest, all year.
    """
    from zoneinfo import ZoneInfo  # noqa: PLC0415 - the functions need none

    send_time = time(hour, tzinfo=ZoneInfo(timezone))
    days = (_SOME_MONDAY + timedelta(days=day, weeks=week) for week in range(52))
    moments = (
        datetime.combine(day_of_week, send_time).astimezone(UTC) - _AUDIT_DELAY
        for day_of_week in days
    )
    return min(moments, key=lambda moment: (moment.weekday() - day + 3) % WEEK_DAYS).weekday()
