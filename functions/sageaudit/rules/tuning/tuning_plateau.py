"""Most of the trials came after the objective had stopped improving.

## What it checks
In the order in which trials ended, the best objective gained more than 1% for the last time; at
least 10 trials started after that.

## Why it costs
Each trial is a training job at full price.

## Saving
Possible, never in a sum with others: what those later trials cost, less what their own findings
took.

## When it is wrong
It is luck too: random search can find the best in its last trial. 1% of an accuracy of 0.99 is the
whole error that is left. Trials can be wanted for the map of the space, not for its best point.

## What to do
Fewer trials, or a completion criterion, which stops when nothing improves and goes on when
something does.

## Sources
AWS, API reference: BestObjectiveNotImproving counts jobs that fail "to improve model performance by
1% or greater", at least 3; ConvergenceDetected is "a lack of significant improvement (1% or less)".
"""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal

from sageaudit.domain.audit.trial import Trial
from sageaudit.domain.bill.change import DropTrials
from sageaudit.domain.bill.finding import (
    Bucket,
    Clear,
    Confidence,
    Found,
    Outcome,
    Parameter,
    Unknown,
)
from sageaudit.domain.job.kinds import JobKind
from sageaudit.domain.usage.objective import last_gain, settled_direction
from sageaudit.rules.card import Threshold, TuningCase, rule

NO_GAIN = Threshold(
    "no_gain_percent", 1, "percent of the best value", "no gain worth it", "AWS ConvergenceDetected"
)
AFTER = Threshold("trials_after", 10, "trials", "random luck brings a few", "our choice")
UNREAD = Unknown("tuning_unread", "the tuning job's own answer is not known")
_CONFIG = "HyperParameterTuningJobConfig"
_FEWEST_NOT_IMPROVING = 3
"""MaxNumberOfTrainingJobsNotImproving: minimum value."""


@rule(id="SA902", scope=TuningCase, kinds={JobKind.TUNING}, thresholds=(NO_GAIN, AFTER))
def check(case: TuningCase) -> Outcome:
    """Trials that ran beside the best one are not blamed: nobody knew it yet."""
    job = case.job
    if job is None or job.tuning is None:
        return UNREAD
    if job.tuning.objective is None:
        return Unknown("metric_missing", "the tuning job names no objective")
    better = settled_direction(job.tuning.objective, case.policy.objectives)
    if better is None:
        return Unknown("direction_unknown", "nobody says which way its objective is better")
    reached = [trial for trial in case.trials if trial.objective is not None]
    values = [trial.objective for trial in reached if trial.objective is not None]
    if not values:
        return Unknown("metric_missing", "no trial is known to have reached an objective")
    best = reached[last_gain(values, better, Decimal(str(case.limit(NO_GAIN))))]
    if best.ended_at is None:
        return Unknown("times_missing", f"when {best.name} ended is not known")
    later = [one for one in case.trials if one.started_at and one.started_at >= best.ended_at]
    if len(later) < case.limit(AFTER):
        return Clear()
    cost_usd = total_usd(later)
    cost = "an unknown sum" if cost_usd is None else f"${cost_usd:,.2f}"
    kept = len(case.trials) - len(later)
    not_improving = max(int(case.limit(AFTER)) // 2, _FEWEST_NOT_IMPROVING)
    criteria = f"{_CONFIG}.TuningJobCompletionCriteria"
    return Found(
        confidence=Confidence.HEURISTIC,
        bucket=Bucket.POSSIBLE,
        summary=(
            f"{job.tuning.objective.metric} last improved to {best.objective:.4g}; "
            f"{len(later)} of {len(case.trials)} trials started after that, for {cost}."
        ),
        evidence={
            "metric": job.tuning.objective.metric,
            "direction": better.value,
            "best_trial": best.name,
            "best_value": best.objective,
            "trials": len(case.trials),
            "trials_after": len(later),
            "usd_after": cost_usd,
        },
        fix=(
            Parameter(
                f"{_CONFIG}.ResourceLimits.MaxNumberOfTrainingJobs", job.tuning.max_jobs, kept
            ),
        ),
        alternatives=(
            (
                Parameter(
                    f"{criteria}.BestObjectiveNotImproving.MaxNumberOfTrainingJobsNotImproving",
                    None,
                    not_improving,
                ),
            ),
            (Parameter(f"{criteria}.ConvergenceDetected.CompleteOnConvergence", None, "Enabled"),),
        ),
        change=DropTrials(frozenset(trial.name for trial in later)),
        caution="It is luck too: a later trial can still find a better one.",
    )


def total_usd(trials: Sequence[Trial]) -> Decimal | None:
    """What trials cost together; None where one is not known."""
    known = [trial.total_usd for trial in trials if trial.total_usd is not None]
    return sum(known, Decimal(0)) if len(known) == len(trials) else None
