"""What the sums of many jobs are called: unknown amounts are never shown as 0."""

from __future__ import annotations

from decimal import Decimal

import pytest

from sageaudit.domain.audit.sums import Sums
from sageaudit.output.text.account_words import account_headline, avoidable_of, lost_of, spend_of

USD = Decimal("6.06")


@pytest.mark.parametrize(
    ("sums", "spend", "avoidable", "lost"),
    [
        (Sums(), "$0.00", "$0.00", "$0.00"),
        (Sums(jobs=1, total_usd=USD), "$6.06", "$0.00", "$0.00"),
        (Sums(jobs=1, not_judged=1, total_usd=USD), "$6.06", "not judged", "$0.00"),
        (Sums(jobs=2, not_judged=1, total_usd=USD), "$6.06", "$0.00", "$0.00"),
        (
            Sums(jobs=2, not_judged=1, unauditable=1, total_usd=USD),
            "$6.06",
            "not judged",
            "$0.00",
        ),
        (Sums(jobs=1, unpriced=1), "unknown", "unknown", "unknown"),
        (Sums(jobs=2, unpriced=1, total_usd=USD), "$6.06 or more", "$0.00", "$0.00"),
        (Sums(jobs=1, unauditable=1), "unknown", "not judged", "unknown"),
    ],
)
def test_what_is_not_known_of_any_job_is_not_0(
    sums: Sums, spend: str, avoidable: str, lost: str
) -> None:
    """Neither for jobs without a price nor for jobs that could not be judged."""
    assert (spend_of(sums), avoidable_of(sums), lost_of(sums)) == (spend, avoidable, lost)


def test_a_headline_of_jobs_that_were_not_judged_does_not_say_that_nothing_was_found() -> None:
    """It says that it is not known."""
    headline = account_headline(Sums(jobs=2, not_judged=2, total_usd=USD))
    assert headline == "2 jobs cost $6.06: how much of it was avoidable is not known"
