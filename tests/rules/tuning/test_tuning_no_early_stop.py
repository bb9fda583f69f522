from __future__ import annotations

from decimal import Decimal

import pytest

from sageaudit.domain.audit.trials import Trial
from sageaudit.domain.bill.finding import Bucket, Clear, Found, NotApplicable, Unknown
from sageaudit.domain.job.job import Job
from sageaudit.domain.job.parts import Objective
from tests.fakes.families import trial
from tests.fakes.tuning import found_in, judged, priced_in, tuning_job

RULE = "tuning-no-early-stop"
TEN = [trial(number, "0.9") for number in range(1, 11)]


def minutes(count: int, each: int) -> list[Trial]:
    """Completed trials of so many minutes."""
    return [trial(n, "0.9", elapsed_s=Decimal(60 * each)) for n in range(count)]


def test_ten_long_trials_without_early_stopping_are_found() -> None:
    """The parameter is Auto."""
    what = found_in(RULE, TEN, tuning_job())
    assert what.summary == (
        "Early stopping is off: 10 trials ran to their end, in a median of 1 h."
    )
    [fix] = what.fix
    assert fix.path == "HyperParameterTuningJobConfig.TrainingJobEarlyStoppingType"
    assert (fix.old, fix.new) == ("Off", "Auto")


def test_it_has_no_dollars() -> None:
    """When each would have been stopped is not known; the evidence bounds the saving."""
    trials = [trial(1, "0.9"), trial(2, "0.8"), *TEN[2:]]
    finding = priced_in(RULE, trials, tuning_job())
    assert finding.found.bucket is Bucket.POSSIBLE
    assert (finding.alone_usd, finding.saving_usd, finding.severity.value) == (None, None, "info")
    assert finding.found.evidence["worse_than_median"] == 1
    assert finding.found.evidence["worse_than_median_usd"] == 1
    assert finding.found.caution is not None


def test_nine_trials_and_failed_ones_are_too_few() -> None:
    """A median of the others needs some that ended."""
    assert judged(RULE, TEN[:-1], tuning_job()) == Clear()
    failed = [*TEN[:-1], trial(10, None, status="Failed")]
    assert judged(RULE, failed, tuning_job()) == Clear()


def test_trials_under_ten_minutes_have_no_rest() -> None:
    """Exactly ten minutes in the median have."""
    assert isinstance(judged(RULE, minutes(10, 10), tuning_job()), Found)
    assert judged(RULE, minutes(10, 9), tuning_job()) == Clear()


def test_auto_is_clear() -> None:
    """So is the advised job."""
    assert judged(RULE, TEN, tuning_job(early_stopping="Auto")) == Clear()


def test_hyperband_is_not_judged() -> None:
    """It needs early stopping off."""
    answer = judged(RULE, TEN, tuning_job(strategy="Hyperband"))
    assert answer == NotApplicable("Hyperband stops trials early itself")


@pytest.mark.parametrize(
    ("of", "trials", "code"),
    [
        (None, TEN, "tuning_unread"),
        (tuning_job(early_stopping=None), TEN, "early_stopping_unknown"),
        (tuning_job(), [trial(n, "0.9", elapsed_s=None) for n in range(10)], "times_missing"),
    ],
)
def test_what_is_not_known_is_unknown(of: Job | None, trials: list[Trial], code: str) -> None:
    """Neither clear nor found."""
    answer = judged(RULE, trials, of)
    assert isinstance(answer, Unknown)
    assert answer.code == code


def test_without_a_direction_the_most_it_can_be_is_unknown() -> None:
    """The finding stays."""
    for objective in (None, Objective("odd", None)):
        what = found_in(RULE, TEN, tuning_job(objective=objective))
        assert what.evidence["worse_than_median_usd"] is None


def test_a_trial_without_objective_is_not_worse() -> None:
    """It reported nothing to compare."""
    what = found_in(RULE, [*TEN, trial(11, None)], tuning_job())
    assert what.evidence["worse_than_median"] == 0
