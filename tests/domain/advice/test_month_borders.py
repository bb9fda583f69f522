"""Values at both sides of each threshold for a month of recommendations."""

from datetime import datetime, timedelta
from decimal import Decimal

import pytest

from sageaudit.domain.advice.advice import FamilyRecommendation
from sageaudit.domain.advice.totals import Month, estimate_month, monthly_severity
from sageaudit.domain.audit.finding_document import AmountKind
from sageaudit.domain.bill.finding import Severity
from sageaudit.structs import replace
from tests.fakes.messages import NINE
from tests.fakes.story_lines import Story

DAY = timedelta(days=1)
HOUR = timedelta(hours=1)
SECOND = timedelta(seconds=1)


def recommendation(*ends: datetime) -> FamilyRecommendation:
    """Runs that ended then, with $6 each."""
    one = Story("03-01 $6").recommendation("A", NINE)
    return replace(one, occurrences=tuple((end, Decimal(6)) for end in ends), since=ends[0])


def month(*before: timedelta) -> Month:
    """Returns the month of runs that ended this long before now, the oldest first."""
    return estimate_month(
        [recommendation(*(NINE - ago for ago in before))], AmountKind.COUNTED, NINE
    )


@pytest.mark.parametrize(("ago", "total"), [(30 * DAY, 0), (30 * DAY - SECOND, 6)])
def test_a_run_that_ended_30_days_ago_is_in_no_month(ago: timedelta, total: int) -> None:
    """A run that ended less than 30 days ago is in the month."""
    assert month(ago).total == total


@pytest.mark.parametrize(("ago", "is_known"), [(29 * DAY, True), (29 * DAY - SECOND, False)])
def test_a_month_is_known_once_its_recommendation_is_29_days_old(
    ago: timedelta, is_known: bool
) -> None:
    """Until then it is projected from the runs so far."""
    result = month(ago)
    assert (result.projected == result.total) is is_known


@pytest.mark.parametrize(("apart", "occasions"), [(20 * HOUR, 1), (20 * HOUR + SECOND, 2)])
def test_runs_within_20_hours_are_one_occasion(apart: timedelta, occasions: int) -> None:
    """A nightly job that ends a little later each day has several occasions."""
    assert month(apart + HOUR, HOUR).occasions == occasions


def test_one_occasion_is_projected_as_weekly() -> None:
    """$7 in a week are $30 in a month."""
    one = replace(recommendation(NINE - HOUR), occurrences=((NINE - HOUR, Decimal(7)),))
    assert estimate_month([one], AmountKind.COUNTED, NINE).projected == 30


@pytest.mark.parametrize(
    ("usd", "severity"),
    [
        ("500", Severity.HIGH),
        ("499.99", Severity.MEDIUM),
        ("100", Severity.MEDIUM),
        ("99.99", Severity.LOW),
    ],
)
def test_the_severity_of_a_month_depends_on_its_dollars(usd: str, severity: Severity) -> None:
    """$500 a month is high, and $100 is medium."""
    assert monthly_severity(Decimal(usd)) is severity
