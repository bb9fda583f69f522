"""Many trials started after the objective had stopped improving.

What it checks: The rule finds the last trial that improved the best objective by more than 1%, in
    the order in which trials ended. At least 10 trials started after that trial had ended.
Why it costs: Each trial is a training job at full price.
Saving: Possible: the cost of the later trials, without the dollars that their own findings count.
    The first 5 of them are kept, since only they show that nothing improves (half of
    `min_trials_after`, at least AWS's least of 3).
When it is wrong: Random search can find the best result in its last trial. 1% of an accuracy of
    0.99 is the whole remaining error. The trials may be meant to map the search space, not to find
    its best point.
What to do: Run fewer trials, or set a completion criterion, which stops the search only if nothing
    improves.
Sources: AWS, API reference: BestObjectiveNotImproving counts jobs that fail "to improve model
    performance by 1% or greater", at least 3; ConvergenceDetected is "a lack of significant
    improvement (1% or less)".
"""

from __future__ import annotations

from decimal import Decimal

from sageaudit.domain.usage.objective import objective_direction
from sageaudit.rules import api
from sageaudit.rules.tuning import trials

MIN_TRIALS_AFTER = api.Threshold("min_trials_after", 10, "trials", "a few may be bad luck")
_MIN_NOT_IMPROVING = 3
"""The least trials without an improvement that AWS's completion criterion takes."""


@api.rule(
    id="SA902",
    scope=api.RollUpCase,
    kinds={api.JobKind.TUNING},
    thresholds=(api.NO_GAIN, MIN_TRIALS_AFTER),
)
def check(case: api.RollUpCase) -> api.Outcome:
    """Counts the trials that started after the last improving trial had ended.

    The fix keeps as many of them as the completion criterion would.
    """
    tuning = case.tuning
    if tuning is None:
        return trials.TUNING_UNREAD
    objective = tuning.objective
    if objective is None:
        return api.Unknown("metric_missing", "the tuning job names no objective")
    better = objective_direction(objective, case.policy.objectives)
    if better is None:
        return api.Unknown(
            "direction_unknown",
            "whether its objective is to be maximised or minimised is not known",
        )
    best = trials.last_improving_trial(
        case.trials, better, Decimal(str(case.threshold(api.NO_GAIN)))
    )
    if best is None:
        return api.Unknown("metric_missing", "no trial is known to have reached an objective")
    if best.ended_at is None:
        return api.Unknown("times_missing", f"when {best.name} ended is not known")
    later = sorted(
        (trial.started_at, trial.name, trial)
        for trial in case.trials
        if trial.started_at and trial.started_at >= best.ended_at
    )
    min_trials_after = case.threshold(MIN_TRIALS_AFTER)
    not_improving = max(int(min_trials_after) // 2, _MIN_NOT_IMPROVING)
    extra = [trial for *_, trial in later[not_improving:]]
    if len(later) < min_trials_after or not extra:
        return api.Clear()
    extra_usd = trials.total_usd(extra)
    has_own_findings = any(trial.counted_usd or trial.possible_usd for trial in extra)
    own_text = ", partly in findings of their own" if has_own_findings else ""
    return api.possible_saving(
        f"{objective.metric} last improved to {best.objective:.4g}; {len(later)} of"
        f" {len(case.trials)} trials started after that. {not_improving} of them show that nothing"
        f" improves; the other {len(extra)} cost {trials.cost_text(extra_usd)}{own_text}.",
        {
            "metric": objective.metric,
            "direction": better.value,
            "best_trial": best.name,
            "best_value": best.objective,
            "trials": len(case.trials),
            "trials_after": len(later),
            "trials_extra": len(extra),
            "usd_extra": extra_usd,
        },
        fix=(api.Parameter(trials.MAX_TRIALS, tuning.max_jobs, len(case.trials) - len(extra)),),
        alternatives=_criteria(not_improving),
        change=api.DropTrials(frozenset(trial.name for trial in extra)),
        caution="It also depends on luck: a later trial can still find a better result.",
    )


def _criteria(not_improving: int) -> tuple[tuple[api.Parameter, ...], ...]:
    """Returns two alternative completion criteria: either of them ends the search.

    `not_improving`: the trials in a row without an improvement.
    """
    criteria_path = f"{trials.CONFIG}.TuningJobCompletionCriteria"
    not_improving_path = (
        f"{criteria_path}.BestObjectiveNotImproving.MaxNumberOfTrainingJobsNotImproving"
    )
    convergence_path = f"{criteria_path}.ConvergenceDetected.CompleteOnConvergence"
    return (
        (api.Parameter(not_improving_path, None, not_improving),),
        (api.Parameter(convergence_path, None, "Enabled"),),
    )
