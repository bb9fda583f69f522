from decimal import Decimal
from functools import partial

from sageaudit.domain.audit.trials import Trial
from tests.fakes.families import trial
from tests.fakes.rule_cases import CLEAR, FOUND, cannot_judge, does_not_apply, finds
from tests.fakes.tuning import tuning_answer, tuning_job

RULE = "tuning-no-early-stop"
TEN = [trial(number, "0.9") for number in range(1, 11)]


def minutes(count: int, each: int) -> list[Trial]:
    """Completed trials of so many minutes."""
    return [trial(n, "0.9", elapsed_s=Decimal(60 * each)) for n in range(count)]


verdict = partial(tuning_answer, RULE)


def test_ten_long_trials_without_early_stopping_are_found() -> None:
    """The parameter is Auto."""
    assert verdict(TEN, tuning_job()) == finds(
        "Early stopping is off: 10 trials ran to their end, in a median of 1 h.",
        fix=[("HyperParameterTuningJobConfig.TrainingJobEarlyStoppingType", "Off", "Auto")],
    )


def test_nine_trials_and_failed_ones_are_too_few() -> None:
    """A median of the others needs some that ended."""
    assert verdict(TEN[:-1], tuning_job()) == CLEAR
    assert verdict([*TEN[:-1], trial(10, None, status="Failed")], tuning_job()) == CLEAR


def test_trials_under_ten_minutes_have_no_rest() -> None:
    """Exactly ten minutes in the median have."""
    assert verdict(minutes(10, 10), tuning_job()) == FOUND
    assert verdict(minutes(10, 9), tuning_job()) == CLEAR


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
