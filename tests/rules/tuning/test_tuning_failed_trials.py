from decimal import Decimal
from functools import partial

from sageaudit.domain.audit.trials import Trial
from tests.fakes.families import trial
from tests.fakes.rule_cases import CLEAR, FOUND, cannot_judge, finds
from tests.fakes.tuning import tuning_answer, tuning_job

RULE = "tuning-failed-trials"


def trials(completed: int, failed: int) -> list[Trial]:
    """$1 each; the dollars of failed trials are lost in their own audits."""
    good = [trial(n, "0.9") for n in range(completed)]
    bad = [
        trial(completed + n, None, status="Failed", counted_usd=Decimal(1)) for n in range(failed)
    ]
    return [*good, *bad]


verdict = partial(tuning_answer, RULE)


def test_3_failed_trials_of_9_are_found_with_what_they_cost() -> None:
    assert verdict(trials(completed=6, failed=3), tuning_job()) == finds(
        "3 of 9 trials failed (33%), for $3.00.",
        builder="lost",
        evidence={"failed_usd": 3, "total_usd": 9},
    )


def test_no_dollar_is_counted_twice() -> None:
    """$3 alone; the trials' own findings took all of it."""
    assert verdict(trials(completed=6, failed=3), tuning_job()) == finds(
        alone="3.000000", usd="0.000000"
    )


def test_2_failed_trials_of_10_a_fifth_are_found_and_2_of_11_are_not() -> None:
    assert verdict(trials(completed=8, failed=2), tuning_job()) == FOUND
    assert verdict(trials(completed=9, failed=2), tuning_job()) == CLEAR


def test_one_failed_trial_is_an_accident() -> None:
    """Even one of one."""
    assert verdict(trials(completed=1, failed=1), tuning_job()) == CLEAR
    assert verdict(trials(completed=0, failed=1), tuning_job()) == CLEAR
    assert (
        verdict(trials(completed=1, failed=1), tuning_job(), limits={"min_failed_trials": 1})
        == FOUND
    )


def test_it_needs_no_answer_of_the_tuning_job() -> None:
    # A recorded set has its children only; none of them is no failure.
    assert verdict(trials(completed=1, failed=3), None) == FOUND
    assert verdict([], None, limits={"min_failed_trials": 0}) == CLEAR


def test_an_unpriced_trial_makes_the_sum_unknown() -> None:
    """Never the sum of the others."""
    result = verdict(
        [*trials(completed=2, failed=2), trial(9, None, status="Failed", total_usd=None)],
        tuning_job(),
    )
    assert result == finds("3 of 5 trials failed (60%), for an unknown sum.", alone=None, usd=None)


def test_a_stopped_trial_did_not_fail() -> None:
    """Early stopping stops trials."""
    assert verdict([trial(n, "0.8", status="Stopped") for n in range(5)], tuning_job()) == CLEAR


def test_a_tuning_job_that_goes_on_is_not_judged() -> None:
    """Its share still moves."""
    assert verdict(trials(completed=1, failed=3), tuning_job("InProgress")) == cannot_judge(
        "job_not_finished"
    )
