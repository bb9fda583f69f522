from __future__ import annotations

from decimal import Decimal

from sageaudit.domain.audit.trials import Trial
from sageaudit.domain.bill.finding import Bucket, Clear, Confidence, Found, Unknown
from tests.fakes.families import trial
from tests.fakes.tuning import found_in, judged, priced_in, tuning_job

RULE = "tuning-failed-trials"


def trials(completed: int, failed: int) -> list[Trial]:
    """$1 each; the dollars of failed trials are lost in their own audits."""
    good = [trial(n, "0.9") for n in range(completed)]
    bad = [
        trial(completed + n, None, status="Failed", claimed_usd=Decimal(1)) for n in range(failed)
    ]
    return [*good, *bad]


def test_a_third_of_failed_trials_is_found() -> None:
    """With what they cost."""
    what = found_in(RULE, trials(6, 3), tuning_job())
    assert what.summary == "3 of 9 trials failed (33%), for $3.00."
    assert (what.confidence, what.bucket) == (Confidence.MEASURED, Bucket.LOST)
    assert (what.evidence["failed_usd"], what.evidence["total_usd"]) == (3, 9)


def test_no_dollar_is_counted_twice() -> None:
    """$3 alone; the trials' own findings took all of it."""
    finding = priced_in(RULE, trials(6, 3), tuning_job())
    assert (finding.alone_usd, finding.saving_usd) == (Decimal(3), Decimal(0))


def test_exactly_a_fifth_is_found_and_less_is_not() -> None:
    """2 of 10, 2 of 11."""
    assert isinstance(judged(RULE, trials(8, 2), tuning_job()), Found)
    assert judged(RULE, trials(9, 2), tuning_job()) == Clear()


def test_one_failed_trial_is_an_accident() -> None:
    """Even one of one."""
    assert judged(RULE, trials(1, 1), tuning_job()) == Clear()
    assert judged(RULE, trials(0, 1), tuning_job()) == Clear()
    assert isinstance(judged(RULE, trials(1, 1), tuning_job(), limits={"failed_from": 1}), Found)


def test_it_needs_no_answer_of_the_tuning_job() -> None:
    """A recorded set has its children only; none of them is no failure."""
    assert isinstance(judged(RULE, trials(1, 3), None), Found)
    assert judged(RULE, [], None, limits={"failed_from": 0}) == Clear()


def test_an_unpriced_trial_makes_the_sum_unknown() -> None:
    """Never the sum of the others."""
    unpriced = [*trials(2, 2), trial(9, None, status="Failed", total_usd=None)]
    finding = priced_in(RULE, unpriced, tuning_job())
    assert finding.found.summary == "3 of 5 trials failed (60%), for an unknown sum."
    assert (finding.alone_usd, finding.saving_usd) == (None, None)


def test_a_stopped_trial_did_not_fail() -> None:
    """Early stopping stops trials."""
    stopped = [trial(n, "0.8", status="Stopped") for n in range(5)]
    assert judged(RULE, stopped, tuning_job()) == Clear()


def test_a_tuning_job_that_goes_on_is_not_judged() -> None:
    """Its share still moves."""
    answer = judged(RULE, trials(1, 3), tuning_job("InProgress"))
    assert isinstance(answer, Unknown)
    assert answer.code == "job_not_finished"
