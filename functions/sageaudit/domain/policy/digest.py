"""`[digest]` of a policy: when the weekly digest is sent, and where its report is kept."""

from __future__ import annotations

import re
from datetime import UTC, date, datetime, time, timedelta
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from msgspec import Struct

from sageaudit.domain.policy.table_reader import TableReader

DAYS = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
OFF = "off"
WEEK_DAYS = 7
_LAST_HOUR = 22
"""The digest is started again an hour later, on the same day."""
_BUCKET = re.compile(r"[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]\Z")
_A_MONDAY = date(2026, 1, 5)
_AUDITED_AFTER = timedelta(hours=1)
"""A job's audit is written within it: no day is summed up earlier. Our choice."""


class DigestTimes(Struct, frozen=True):
    """When the digest is sent, in a time zone, and the bucket for its report.

    It covers seven whole UTC days. The last one, the day before `utc_day` (0 is Monday), ends at
    least an hour before the digest is sent, in winter and in summer time. So the weeks of two
    digests neither overlap nor leave a gap, and a function that knows no time zones finds the same.
    """

    day: str = DAYS[0]
    hour: int = 8
    timezone: str = "UTC"
    utc_day: int = 0
    report_bucket: str | None = None

    def week(self, now: datetime) -> tuple[date, date]:
        """The first and the last day of the newest week that is over, in UTC."""
        today = now.astimezone(UTC).date()
        after = today - timedelta(days=(today.weekday() - self.utc_day) % WEEK_DAYS)
        return after - timedelta(days=WEEK_DAYS), after - timedelta(days=1)


def parse(reader: TableReader) -> DigestTimes | None:
    """Reads the table; None where the digest is off. Raises BadPolicy."""
    day = reader.take("day", str, DAYS[0])
    hour, timezone = reader.take("hour", int, 8), reader.take("timezone", str, "UTC")
    bucket = reader.take("report_bucket", str, None)
    reader.done()
    if day not in {*DAYS, OFF}:
        raise reader.refusal("day", f"is not one of {', '.join((*DAYS, OFF))}")
    if isinstance(hour, bool) or not 0 <= hour <= _LAST_HOUR:
        raise reader.refusal("hour", f"is not a whole hour from 0 to {_LAST_HOUR}")
    if bucket is not None and not _BUCKET.match(bucket):
        raise reader.refusal("report_bucket", "is not the name of a bucket")
    if day == OFF:
        return None
    try:
        utc_day = _utc_day(DAYS.index(day), hour, ZoneInfo(timezone))
    except (ZoneInfoNotFoundError, ValueError, OSError) as error:
        why = "is no time zone that this computer knows, such as Europe/Berlin"
        raise reader.refusal("timezone", why) from error
    return DigestTimes(day, hour, timezone, utc_day, bucket)


def _utc_day(day: int, hour: int, zone: ZoneInfo) -> int:
    """The weekday (UTC) before which the week ends: an hour or more before the digest, all year."""
    at = time(hour, tzinfo=zone)
    days = (_A_MONDAY + timedelta(days=day, weeks=week) for week in range(52))
    in_utc = (datetime.combine(one, at).astimezone(UTC) - _AUDITED_AFTER for one in days)
    return min(in_utc, key=lambda moment: (moment.weekday() - day + 3) % WEEK_DAYS).weekday()
