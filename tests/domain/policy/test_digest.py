"""When the digest is sent, and which week it covers, in any time zone."""

import zoneinfo
from collections.abc import Iterator
from datetime import UTC, date, datetime, time, timedelta
from itertools import pairwise
from unittest import mock
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

import pytest

from sageaudit.adapters.files import stored_policy
from sageaudit.domain.policy import scope
from sageaudit.domain.policy.policy import Policy
from sageaudit.domain.policy.scope import DAYS, DigestSchedule, parse_digest
from sageaudit.domain.policy.table_reader import TableReader
from sageaudit.errors import BadPolicy

ZONES = (
    *("UTC", "Europe/Berlin", "Europe/London", "America/New_York", "America/Nuuk", "Asia/Tokyo"),
    *("Africa/Cairo", "Australia/Lord_Howe", "Pacific/Auckland", "Pacific/Kiritimati"),
    *("Pacific/Honolulu", "Asia/Kolkata"),
)


def read(**table: object) -> DigestSchedule | None:
    """Returns the digest of a table `[digest]`."""
    return parse_digest(TableReader(table, ("digest",)))


def starts(times: DigestSchedule) -> Iterator[datetime]:
    """Returns the times of 60 weeks at which it is sent, by the clocks of its zone."""
    first = date(2026, 1, 5) + timedelta(days=DAYS.index(times.day))
    for week in range(60):
        day = first + timedelta(weeks=week)
        yield datetime.combine(day, time(times.hour, tzinfo=ZoneInfo(times.timezone))).astimezone(
            UTC
        )


@pytest.mark.parametrize("zone", ZONES)
@pytest.mark.parametrize("day", ["monday", "sunday"])
def test_weeks_follow_each_other_without_gap_or_overlap(zone: str, day: str) -> None:
    """Through summer time, at each hour. The last day ended at least an hour and less than two days
    before. A second start an hour later has the same week.
    """
    for hour in range(23):
        times = read(day=day, hour=hour, timezone=zone)
        assert times is not None
        weeks = [times.last_full_week(moment) for moment in starts(times)]
        assert all(after[0] - before[1] == timedelta(days=1) for before, after in pairwise(weeks))
        for (first, last), moment in zip(weeks, starts(times), strict=True):
            over = datetime.combine(last, time(), UTC) + timedelta(days=1)
            assert timedelta(hours=1) <= moment - over <= timedelta(hours=27), (hour, moment)
            assert (last - first).days == 6
            assert times.last_full_week(moment + timedelta(hours=2)) == (first, last)


@pytest.mark.parametrize(
    ("table", "expected"),
    [
        ({}, DigestSchedule("monday", 8, "UTC", 0)),
        ({"day": "off"}, None),
        ({"day": "off", "timezone": "Europe/Berlin"}, None),
        (
            {"day": "friday", "hour": 17, "timezone": "Europe/Berlin"},
            DigestSchedule("friday", 17, "Europe/Berlin", 4),
        ),
        ({"hour": 1, "timezone": "Asia/Tokyo"}, DigestSchedule("monday", 1, "Asia/Tokyo", 6)),
        ({"report_bucket": "our-reports"}, DigestSchedule(report_bucket="our-reports")),
    ],
)
def test_a_table_is_read(table: dict[str, object], expected: DigestSchedule | None) -> None:
    """Each key has a default."""
    assert read(**table) == expected


@pytest.mark.parametrize(
    ("table", "reason"),
    [
        ({"day": "Monday"}, "digest.day is not one of monday"),
        ({"hour": 23}, "digest.hour is not a whole hour from 0 to 22"),
        ({"hour": True}, "digest.hour is not a whole hour"),
        (
            {"timezone": "Europe/Atlantis"},
            "digest.timezone is not a time zone that this computer knows",
        ),
        *(
            ({"timezone": name}, "digest.timezone is not a time zone")
            for name in ("../etc", "", "posixrules", "localtime", "Factory", "posix/UTC")
        ),
        # macOS and Windows find the file, EventBridge Scheduler does not
        ({"timezone": "europe/berlin"}, "digest.timezone is not a time zone"),
        ({"report_bucket": "s3://ours"}, "digest.report_bucket is not the name of a bucket"),
        ({"minute": 5}, "unknown key digest.minute"),
    ],
)
def test_a_wrong_value_is_refused(table: dict[str, object], reason: str) -> None:
    """The error has the key."""
    with pytest.raises(BadPolicy, match=reason.replace(".", r"\.")):
        read(**table)


@pytest.mark.parametrize(("hour", "weekday"), [(1, 0), (0, 6)])
def test_a_week_ends_an_hour_before_its_digest(hour: int, weekday: int) -> None:
    """On Monday at 1 in UTC, Sunday ended an hour ago. At midnight its last jobs lack audits."""
    times = read(hour=hour)
    assert times == DigestSchedule("monday", hour, "UTC", weekday)


def test_a_time_zone_is_as_long_as_a_schedule_allows() -> None:
    """A longer name, of which a computer may have one, is refused before the deployment."""
    names = {f"Area/{'x' * length}" for length in (45, 46)}
    with mock.patch.object(zoneinfo, "available_timezones", return_value=names):
        scope._timezones.cache_clear()
        accepted = scope._timezones()
    scope._timezones.cache_clear()
    assert [len(name) for name in accepted] == [50]


def test_the_functions_need_no_data_of_time_zones() -> None:
    """The deployer's computer decides: the stored policy has the day in UTC."""
    policy = Policy(digest=read(day="monday", hour=1, timezone="Asia/Tokyo"))
    with mock.patch.object(zoneinfo, "ZoneInfo", side_effect=ZoneInfoNotFoundError):
        assert stored_policy.from_text(stored_policy.to_text(policy)).digest == policy.digest
