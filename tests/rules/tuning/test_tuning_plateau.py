from decimal import Decimal
from functools import partial

from sageaudit.domain.audit.trials import Trial
from sageaudit.domain.job.parts import Direction, Objective
from sageaudit.domain.policy.policy import Policy
from tests.fakes.families import trial
from tests.fakes.rule_cases import CLEAR, FOUND, cannot_judge, finds
from tests.fakes.tuning import AUC, tuning_answer, tuning_job

RULE = "tuning-plateau"
CONFIG = "HyperParameterTuningJobConfig"
CRITERIA = f"{CONFIG}.TuningJobCompletionCriteria"


def search(*objectives: str | None) -> list[Trial]:
    """One trial after the other, an hour and $1 each."""
    return [trial(number, objective) for number, objective in enumerate(objectives, 1)]


BEST_SECOND = search("0.70", "0.90", *["0.89"] * 10)
"""Ten trials after the second, which was the best."""


verdict = partial(tuning_answer, RULE)


def test_10_trials_after_the_best_are_found() -> None:
    # The second of twelve was the best. Five of the ten after it were needed to know that.
    assert verdict(BEST_SECOND, tuning_job()) == finds(
        "validation:auc last improved to 0.90; 10 of 12 trials started after that. 5 of them show "
        "that nothing improves; the other 5 cost $5.00.",
        builder="possible",
        alone="5.000000",
        evidence={"best_trial": "trial-2", "trials_extra": 5, "usd_extra": 5},
    )


def test_the_figure_is_what_the_trials_own_findings_left() -> None:
    # Five trials of $1, of which one has $0.25 avoidable and one $0.50 possible: $4.25 of $5.
    # The summary says so, since $5.00 would otherwise contradict the saving.
    result = verdict(
        [
            *BEST_SECOND[:10],
            trial(11, "0.89", counted_usd=Decimal("0.25")),
            trial(12, "0.89", possible_usd=Decimal("0.50")),
        ],
        tuning_job(),
    )
    assert result == finds(
        "…the other 5 cost $5.00, partly in findings of their own.",
        alone="5.000000",
        usd="4.250000",
    )


def test_9_trials_after_the_best_are_clear() -> None:
    # Random luck brings a few; the policy may say another number.
    assert verdict(BEST_SECOND[:-1], tuning_job()) == CLEAR
    assert verdict(BEST_SECOND[:-1], tuning_job(), limits={"min_trials_after": 9.0}) == FOUND


def test_the_trials_that_started_first_are_kept() -> None:
    """They may end last. The first five after the best are needed, in the order of their starts."""
    slow = trial(3, "0.89", ended_at=BEST_SECOND[-1].ended_at, total_usd=Decimal(7))
    assert verdict([*BEST_SECOND[:2], *BEST_SECOND[3:], slow], tuning_job()) == finds(
        alone="5.000000"
    )


def test_as_many_trials_are_kept_as_aws_needs_to_stop() -> None:
    """Its criterion counts at least three. A search that has no more than these is clear."""
    limits = {"min_trials_after": 3.0}
    assert verdict(BEST_SECOND[:5], tuning_job(), limits=limits) == CLEAR
    assert verdict(BEST_SECOND[:6], tuning_job(), limits=limits) == finds(
        alone="1.000000", fix=[(f"{CONFIG}.ResourceLimits.MaxNumberOfTrainingJobs", 20, 5)]
    )


def test_a_gain_of_1_percent_is_none_and_of_1_01_percent_it_is_one() -> None:
    # 0.909 after 0.90 is none; 0.9091 is one, and only six trials follow it.
    assert verdict(search(*["0.90", *["0.8"] * 4], "0.909", *(["0.8"] * 6)), tuning_job()) == FOUND
    assert verdict(search(*["0.90", *["0.8"] * 4], "0.9091", *(["0.8"] * 6)), tuning_job()) == CLEAR


def test_many_small_gains_are_a_gain() -> None:
    # Half a percent each time: compared with the last real gain, not with the last trial.
    result = verdict(
        search(*[str(Decimal("0.50") * Decimal("1.005") ** step) for step in range(15)]),
        tuning_job(),
    )
    assert result == CLEAR


def test_a_trial_that_ran_beside_the_best_is_not_blamed() -> None:
    # It started before anybody knew: 9 of the 10 later ones are left.
    result = verdict(
        [
            *BEST_SECOND[:2],
            trial(3, "0.89", started_at=BEST_SECOND[0].started_at),
            *BEST_SECOND[3:],
        ],
        tuning_job(),
    )
    assert result == CLEAR
    result = verdict(
        [
            *[
                *BEST_SECOND[:2],
                trial(3, "0.89", started_at=BEST_SECOND[0].started_at),
                *BEST_SECOND[3:],
            ],
            trial(13, "0.89"),
        ],
        tuning_job(),
    )
    assert result == FOUND


def test_the_advised_tuning_job_gets_no_advice() -> None:
    """Its seven trials."""
    assert verdict(BEST_SECOND[:7], tuning_job(max_jobs=7)) == CLEAR


def test_less_is_better_when_the_tuning_job_says_so() -> None:
    """A loss that falls until the end."""
    result = verdict(
        search(*[str(20 - number) for number in range(15)]),
        tuning_job(objective=Objective("odd", Direction.MINIMIZE)),
    )
    assert result == CLEAR
    result = verdict(
        search(*[str(20 - number) for number in range(15)]),
        tuning_job(objective=Objective("odd", Direction.MAXIMIZE)),
    )
    assert result == finds(evidence={"trials_after": 14})


def test_a_direction_that_nobody_states_is_by_name_or_policy_or_unknown() -> None:
    # The name `odd` gives no direction; the policy does.
    result = verdict(BEST_SECOND, tuning_job(objective=Objective("odd", None)))
    assert result == cannot_judge("direction_unknown")
    result = verdict(
        BEST_SECOND,
        tuning_job(objective=Objective("odd", None)),
        policy=Policy(objectives={"odd": Direction.MAXIMIZE}),
    )
    assert result == FOUND
    assert verdict(BEST_SECOND, tuning_job(objective=Objective("validation:auc", None))) == FOUND


def test_what_is_not_known_is_unknown() -> None:
    assert verdict(BEST_SECOND, None) == cannot_judge("tuning_unread")
    assert verdict(BEST_SECOND, tuning_job(objective=None)) == cannot_judge("metric_missing")
    assert verdict(search(*[None] * 12), tuning_job()) == cannot_judge("metric_missing")
    assert verdict([], tuning_job()) == cannot_judge("metric_missing")
    result = verdict([trial(1, "0.9", ended_at=None), *BEST_SECOND[2:]], tuning_job())
    assert result == cannot_judge("times_missing")
    assert verdict(BEST_SECOND, tuning_job("InProgress")) == cannot_judge("job_not_finished")


def test_failed_trials_after_the_best_count_without_an_objective() -> None:
    # They would not have run; an unpriced one makes the sum unknown.
    result = verdict(
        [*BEST_SECOND[:11], trial(12, None, status="Failed", total_usd=None)],
        tuning_job(objective=AUC),
    )
    assert result == finds("…an unknown sum…", evidence={"usd_extra": None})


def test_a_trial_without_a_start_is_not_named() -> None:
    """When it ran is not known."""
    result = verdict([*BEST_SECOND, trial(13, "0.8", started_at=None)], tuning_job())
    assert result == finds(evidence={"trials_after": 10})


def test_the_fix_is_fewer_trials_or_a_criterion() -> None:
    """Two of twelve were enough, and five more to know it: both ways keep these five."""
    assert verdict(BEST_SECOND, tuning_job()) == finds(
        fix=[(f"{CONFIG}.ResourceLimits.MaxNumberOfTrainingJobs", 20, 7)],
        ways=[
            [(f"{CRITERIA}.BestObjectiveNotImproving.MaxNumberOfTrainingJobsNotImproving", 5)],
            [(f"{CRITERIA}.ConvergenceDetected.CompleteOnConvergence", "Enabled")],
        ],
    )
