"""Just inside and just outside of what a month of advice is made of."""

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

DAY, HOUR, SECOND = timedelta(days=1), timedelta(hours=1), timedelta(seconds=1)


def recommendation(*ends: datetime) -> FamilyRecommendation:
    """Runs that ended then, with $6 each."""
    one = Story("03-01 $6").recommendation("A", NINE)
    return replace(one, occurrences=tuple((end, Decimal(6)) for end in ends), since=ends[0])


def month(*before: timedelta) -> Month:
    """The month of runs that ended so long before now, the oldest first."""
    return estimate_month(
        [recommendation(*(NINE - ago for ago in before))], AmountKind.COUNTED, NINE
    )


@pytest.mark.parametrize(("ago", "total"), [(30 * DAY, 0), (30 * DAY - SECOND, 6)])
def test_a_run_that_ended_30_days_ago_is_in_no_month(ago: timedelta, total: int) -> None:
    """Under 30 days ago it is."""
    assert month(ago).total == total


@pytest.mark.parametrize(("ago", "is_known"), [(29 * DAY, True), (29 * DAY - SECOND, False)])
def test_a_month_is_known_once_its_advice_is_29_days_old(ago: timedelta, is_known: bool) -> None:
    """Until then it is projected from what there is."""
    found = month(ago)
    assert (found.projected == found.total) is is_known


@pytest.mark.parametrize(("apart", "occasions"), [(20 * HOUR, 1), (20 * HOUR + SECOND, 2)])
def test_runs_within_20_hours_are_one_occasion(apart: timedelta, occasions: int) -> None:
    """A nightly job that ends a little later each day is not one."""
    assert month(apart + HOUR, HOUR).occasions == occasions


def test_one_occasion_is_projected_as_if_it_came_each_week() -> None:
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
def test_a_months_severity_goes_by_its_dollars(usd: str, severity: Severity) -> None:
    """$500 a month are much, and $100 are something."""
    assert monthly_severity(Decimal(usd)) is severity
