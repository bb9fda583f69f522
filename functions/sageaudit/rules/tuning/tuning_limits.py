"""The limits of a tuning job let all its trials together cost a lot.

What it checks: The number of training jobs x their limit x the rate is above $1,000. Or neither the
    number of training jobs nor the time of the search is limited.
Why it costs: Each trial is billed as a training job. Trials that hang are billed until their limit.
Saving: None. The finding shows the most that the search can cost.
When it is wrong: The trials may need that long, and the cost may be planned.
What to do: Run fewer trials with Bayesian search, and limit each to three times a usual trial.
    Limit the whole search by ResourceLimits.MaxRuntimeInSeconds, and set completion criteria.
Sources: botocore, ResourceLimits, TuningJobCompletionCriteria. The $1,000 are our choice.
"""

from __future__ import annotations

from decimal import Decimal

from sageaudit.rules import api
from sageaudit.rules.tuning.trials import CONFIG, MAX_TRIALS

_LIMITS = f"{CONFIG}.ResourceLimits"
_TIME = f"{_LIMITS}.MaxRuntimeInSeconds"
MIN_EXPOSURE = api.Threshold("min_exposed_usd", 1000, "USD for all trials", "a large sum")


@api.rule(
    id="SA905",
    scope=api.RequestCase,
    kinds={api.JobKind.TUNING},
    thresholds=(MIN_EXPOSURE,),
    request_severity=api.Severity.MEDIUM,
    required_parameters=(MAX_TRIALS, _TIME, f"{CONFIG}.Strategy"),
)
def check(case: api.RequestCase) -> api.Outcome:
    """Judges the most that the trials can cost, by the request's definitions."""
    trials, time_s = case.request.value(MAX_TRIALS), case.request.value(_TIME)
    is_grid = case.request.value(f"{CONFIG}.Strategy") == "Grid"
    if trials is None and time_s is None and not is_grid:
        return api.measured_fact(
            "Neither the number of training jobs nor the time of the search is limited.",
            {"max_trials": None},
            fix=(api.Parameter(MAX_TRIALS, None, "<trials>"),),
            caution="AWS requires MaxNumberOfTrainingJobs for every strategy but Grid.",
        )
    usd = case.cost.usd
    if usd is None:
        return api.Unknown("cost_unknown", case.cost.unknown_because or "no rate is known")
    if usd <= Decimal(str(case.threshold(MIN_EXPOSURE))):
        return api.Clear()
    count_text = f"{trials} " if isinstance(trials, int) else ""
    return api.measured_fact(
        f"Its {count_text}training jobs may cost up to {api.format_usd(usd)} together.",
        {"max_trials": trials, "at_most_usd": round(usd, 6)},
        fix=(api.Parameter(_TIME, time_s, "<seconds for the whole search>"),),
        caution="A precaution: they cost this only if each one runs until its limit.",
    )
