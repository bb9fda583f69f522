from decimal import Decimal
from functools import partial

from sageaudit.domain.job.kinds import JobKind
from sageaudit.domain.request.forecast import MaxCost, RunLimit
from tests.fakes.planned import LATER, request_answer
from tests.fakes.rule_cases import CLEAR, cannot_judge, finds

RULE = "tuning-limits"
TUNING = JobKind.TUNING
LIMITS = "HyperParameterTuningJobConfig.ResourceLimits"


def trial(usd: int) -> MaxCost:
    """A training job of $1 an hour that may cost this much."""
    return MaxCost(RunLimit(Decimal(3600)), Decimal(usd), hourly_usd=Decimal(1))


verdict = partial(request_answer, RULE)


def test_8_trials_for_1008_dollars_are_found_and_for_1000_dollars_they_are_clear() -> None:
    eight = {f"{LIMITS}.MaxNumberOfTrainingJobs": 8}
    assert verdict(eight, kind=TUNING, trials=[trial(usd=126)]) == finds("…$1,008…")
    assert verdict(eight, kind=TUNING, trials=[trial(usd=125)]) == CLEAR


def test_the_time_of_the_search_is_a_limit_too() -> None:
    """8 trials of $126 are $1,008; two at a time at $1 an hour, ended after an hour, are $2."""
    search = {f"{LIMITS}.MaxNumberOfTrainingJobs": 8, f"{LIMITS}.MaxParallelTrainingJobs": 2}
    hour, trials = {f"{LIMITS}.MaxRuntimeInSeconds": 3600}, [trial(usd=126)]
    assert verdict(search, kind=TUNING, trials=trials) == finds("…$1,008…")
    assert verdict(search | hour, kind=TUNING, trials=trials) == CLEAR


def test_a_search_without_any_limit_is_found() -> None:
    """Grid search ends by itself."""
    result = verdict(
        {f"{LIMITS}.MaxNumberOfTrainingJobs": None}, kind=TUNING, trials=[trial(usd=1)]
    )
    assert result == finds("…limited…")


def test_a_number_that_is_known_later_is_not_judged() -> None:
    """And neither is a trial without a price."""
    result = verdict(
        {f"{LIMITS}.MaxNumberOfTrainingJobs": LATER}, kind=TUNING, trials=[trial(usd=1)]
    )
    assert result == cannot_judge("…")
    assert verdict(kind=TUNING) == cannot_judge("…")
