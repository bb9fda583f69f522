from decimal import Decimal
from functools import partial

from sageaudit.domain.audit.trials import Trial
from tests.fakes.families import trial
from tests.fakes.rule_cases import CLEAR, FOUND, cannot_judge, does_not_apply, finds
from tests.fakes.tuning import tuning_answer, tuning_job

RULE = "tuning-no-early-stop"
TEN = [trial(number, "0.9") for number in range(1, 11)]


def trials(count: int, each_minutes: int) -> list[Trial]:
    """Completed trials."""
    return [trial(n, "0.9", elapsed_s=Decimal(60 * each_minutes)) for n in range(count)]


verdict = partial(tuning_answer, RULE)


def test_ten_long_trials_without_early_stopping_are_found() -> None:
    """The parameter is Auto."""
    assert verdict(TEN, tuning_job()) == finds(
        "Early stopping is off: 10 trials ran to their end, with a median of 1 h.",
        fix=[("HyperParameterTuningJobConfig.TrainingJobEarlyStoppingType", "Off", "Auto")],
    )


def test_9_completed_trials_are_too_few() -> None:
    """Failed ones do not count."""
    assert verdict(TEN[:-1], tuning_job()) == CLEAR
    assert verdict([*TEN[:-1], trial(10, None, status="Failed")], tuning_job()) == CLEAR


def test_trials_with_a_median_of_10_minutes_are_found_and_of_9_minutes_they_are_clear() -> None:
    assert verdict(trials(count=10, each_minutes=10), tuning_job()) == FOUND
    assert verdict(trials(count=10, each_minutes=9), tuning_job()) == CLEAR


def test_auto_is_clear() -> None:
    """So is the advised job."""
    assert verdict(TEN, tuning_job(early_stopping="Auto")) == CLEAR


def test_hyperband_is_not_judged() -> None:
    """It needs early stopping off."""
    assert verdict(TEN, tuning_job(strategy="Hyperband")) == does_not_apply(
        "Hyperband stops trials early itself"
    )


def test_what_is_not_known_is_unknown() -> None:
    assert verdict(TEN, None) == cannot_judge("tuning_unread")
    assert verdict(TEN, tuning_job(early_stopping=None)) == cannot_judge("early_stopping_unknown")
    result = verdict([trial(n, "0.9", elapsed_s=None) for n in range(10)], tuning_job())
    assert result == cannot_judge("times_missing")


def test_it_has_no_dollars() -> None:
    """At which epoch each would have ended is not known."""
    assert verdict(TEN, tuning_job()) == finds(
        bucket="possible",
        alone=None,
        usd=None,
        severity="info",
        caution="….",
        evidence={"completed_trials": 10},
    )
