from __future__ import annotations

from decimal import Decimal

import pytest

from sageaudit.domain.audit.trials import Trial
from sageaudit.domain.bill.finding import Bucket, Clear, Confidence, Found, Unknown
from sageaudit.domain.job.job import Job
from sageaudit.domain.job.parts import Direction, Objective
from sageaudit.domain.policy.policy import Policy
from tests.fakes.families import trial
from tests.fakes.tuning import AUC, found_in, judged, priced_in, tuning_job

RULE = "tuning-plateau"


def search(*objectives: str | None) -> list[Trial]:
    """One trial after the other, an hour and $1 each."""
    return [trial(number, objective) for number, objective in enumerate(objectives, 1)]


BEST_SECOND = search("0.70", "0.90", *["0.89"] * 10)
"""Ten trials after the second, which was the best."""


def test_ten_trials_after_the_best_are_found() -> None:
    """The second of twelve was the best; the figure is what those ten cost."""
    what = found_in(RULE, BEST_SECOND, tuning_job())
    assert what.summary == (
        "validation:auc last improved to 0.90; 10 of 12 trials started after that, for $10.00."
    )
    assert (what.confidence, what.bucket) == (Confidence.HEURISTIC, Bucket.POSSIBLE)
    assert what.evidence["best_trial"] == "trial-2"
    assert what.evidence["usd_after"] == 10


def test_the_fix_is_fewer_trials_or_a_criterion() -> None:
    """Two of twelve were enough."""
    what = found_in(RULE, BEST_SECOND, tuning_job())
    config = "HyperParameterTuningJobConfig"
    assert [(p.path, p.old, p.new) for p in what.fix] == [
        (f"{config}.ResourceLimits.MaxNumberOfTrainingJobs", 20, 2)
    ]
    criteria = f"{config}.TuningJobCompletionCriteria"
    not_improving = f"{criteria}.BestObjectiveNotImproving.MaxNumberOfTrainingJobsNotImproving"
    assert [[(p.path, p.new) for p in way] for way in what.alternatives] == [
        [(not_improving, 5)],
        [(f"{criteria}.ConvergenceDetected.CompleteOnConvergence", "Enabled")],
    ]


def test_the_figure_is_what_the_trials_own_findings_left() -> None:
    """Ten trials of $1, of which one has $0.25 avoidable and one $0.50 possible: $9.25 of $10."""
    trials = [
        *BEST_SECOND[:10],
        trial(11, "0.89", claimed_usd=Decimal("0.25")),
        trial(12, "0.89", possible_usd=Decimal("0.50")),
    ]
    finding = priced_in(RULE, trials, tuning_job())
    assert (finding.alone_usd, finding.saving_usd) == (Decimal(10), Decimal("9.25"))


def test_nine_trials_after_the_best_are_clear() -> None:
    """Random luck brings a few; the policy may say another number."""
    assert judged(RULE, BEST_SECOND[:-1], tuning_job()) == Clear()
    limits = {"trials_after": 9.0}
    assert isinstance(judged(RULE, BEST_SECOND[:-1], tuning_job(), limits=limits), Found)


def test_exactly_one_percent_is_no_gain() -> None:
    """0.909 after 0.90 is none; 0.9091 is one, and only six trials follow it."""
    before, after = ["0.90", *["0.8"] * 4], ["0.8"] * 6
    assert isinstance(judged(RULE, search(*before, "0.909", *after), tuning_job()), Found)
    assert judged(RULE, search(*before, "0.9091", *after), tuning_job()) == Clear()


def test_many_small_gains_are_a_gain() -> None:
    """Half a percent each time: compared with the last real gain, not with the last trial."""
    climbing = [str(Decimal("0.50") * Decimal("1.005") ** step) for step in range(15)]
    assert judged(RULE, search(*climbing), tuning_job()) == Clear()


def test_a_trial_that_ran_beside_the_best_is_not_blamed() -> None:
    """It started before anybody knew: 9 of the 10 later ones are left."""
    beside = trial(3, "0.89", started_at=BEST_SECOND[0].started_at)
    trials = [*BEST_SECOND[:2], beside, *BEST_SECOND[3:]]
    assert judged(RULE, trials, tuning_job()) == Clear()
    assert isinstance(judged(RULE, [*trials, trial(13, "0.89")], tuning_job()), Found)


def test_the_advised_tuning_job_gets_no_advice() -> None:
    """Its two trials."""
    assert judged(RULE, BEST_SECOND[:2], tuning_job(max_jobs=2)) == Clear()


def test_less_is_better_when_the_tuning_job_says_so() -> None:
    """A loss that falls until the end."""
    falling = search(*[str(20 - number) for number in range(15)])
    less = tuning_job(objective=Objective("odd", Direction.MINIMIZE))
    assert judged(RULE, falling, less) == Clear()
    more = tuning_job(objective=Objective("odd", Direction.MAXIMIZE))
    assert found_in(RULE, falling, more).evidence["trials_after"] == 14


def test_a_direction_that_nobody_states_is_by_name_or_policy_or_unknown() -> None:
    """The name `odd` gives no direction; the policy does."""
    odd = tuning_job(objective=Objective("odd", None))
    answer = judged(RULE, BEST_SECOND, odd)
    assert isinstance(answer, Unknown)
    assert answer.code == "direction_unknown"
    policy = Policy(objectives={"odd": Direction.MAXIMIZE})
    assert isinstance(judged(RULE, BEST_SECOND, odd, policy=policy), Found)
    by_name = tuning_job(objective=Objective("validation:auc", None))
    assert isinstance(judged(RULE, BEST_SECOND, by_name), Found)


@pytest.mark.parametrize(
    ("of", "trials", "code"),
    [
        (None, BEST_SECOND, "tuning_unread"),
        (tuning_job(objective=None), BEST_SECOND, "metric_missing"),
        (tuning_job(), search(*[None] * 12), "metric_missing"),
        (tuning_job(), [], "metric_missing"),
        (tuning_job(), [trial(1, "0.9", ended_at=None), *BEST_SECOND[2:]], "times_missing"),
        (tuning_job("InProgress"), BEST_SECOND, "job_not_finished"),
    ],
)
def test_what_is_not_known_is_unknown(of: Job | None, trials: list[Trial], code: str) -> None:
    """Neither clear nor found."""
    answer = judged(RULE, trials, of)
    assert isinstance(answer, Unknown)
    assert answer.code == code


def test_failed_trials_after_the_best_count_without_an_objective() -> None:
    """They would not have run; an unpriced one makes the sum unknown."""
    trials = [*BEST_SECOND[:11], trial(12, None, status="Failed", total_usd=None)]
    what = found_in(RULE, trials, tuning_job(objective=AUC))
    assert what.evidence["usd_after"] is None
    assert "an unknown sum" in what.summary


def test_a_trial_without_a_start_is_not_named() -> None:
    """When it ran is not known."""
    trials = [*BEST_SECOND, trial(13, "0.8", started_at=None)]
    assert found_in(RULE, trials, tuning_job()).evidence["trials_after"] == 10
