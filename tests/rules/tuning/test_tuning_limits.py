from __future__ import annotations

from decimal import Decimal

from sageaudit.domain.bill.finding import Clear, Unknown
from sageaudit.domain.job.kinds import JobKind
from sageaudit.domain.request.forecast import Cost, RunLimit
from tests.fakes.planned import LATER, said, told

RULE = "tuning-limits"
TUNING = JobKind.TUNING
LIMITS = "HyperParameterTuningJobConfig.ResourceLimits"


def trial(usd: int) -> Cost:
    """A training job of $1 an hour that may cost so much."""
    return Cost(RunLimit(Decimal(3600)), Decimal(usd), hourly_usd=Decimal(1))


def test_all_trials_together_are_priced() -> None:
    """Eight at $126 are $1,008; at $125 exactly $1,000."""
    assert "$1,008" in told(RULE, kind=TUNING, trials=[trial(126)]).found.summary
    assert said(RULE, kind=TUNING, trials=[trial(125)]) == Clear()


def test_the_time_of_the_search_is_a_limit_too() -> None:
    """Two at a time for an hour cost $2."""
    changes = {f"{LIMITS}.MaxRuntimeInSeconds": 3600}
    assert said(RULE, changes, kind=TUNING, trials=[trial(126)]) == Clear()


def test_a_search_without_any_limit_is_found() -> None:
    """Grid search ends by itself."""
    changes = {f"{LIMITS}.MaxNumberOfTrainingJobs": None}
    assert "limited" in told(RULE, changes, kind=TUNING, trials=[trial(1)]).found.summary


def test_a_number_that_is_known_later_is_not_judged() -> None:
    """And neither is a trial without a price."""
    later = {f"{LIMITS}.MaxNumberOfTrainingJobs": LATER}
    assert isinstance(said(RULE, later, kind=TUNING, trials=[trial(1)]), Unknown)
    assert isinstance(said(RULE, kind=TUNING), Unknown)
