"""A run that explores settings made its last gain in its first minutes.

What it checks: The objective made its last gain of more than 1% in the first 20% of Training, which
    took at least 30 minutes, and the family explores: of its runs of the last 14 days at least 10
    completed, with at least half as many different settings as runs.
Why it costs: Each try of a setting pays for all of the data, where a part would have shown the
    same.
Saving: Possible, without a figure: how much data is enough is known only after a trial. What early
    stopping would have saved in this run is in metric-plateau.
When it is wrong: Rare classes need all of the data; some families aim for the last tenth of a
    percent; a metric of the training data does not show how the model does on new data.
What to do: Try settings on a sample (SageMaker Data Wrangler draws stratified samples), start from
    a pre-trained model, and train only the best settings on all data.
Sources: AWS blog "Analyze Amazon SageMaker spend", part 4: "consider training on a subset of your
    data", drawn with SageMaker Data Wrangler. AWS, API reference, ConvergenceDetected: a "lack of
    significant improvement (1% or less)".
"""

from __future__ import annotations

from sageaudit.domain.job.phases import work_windows
from sageaudit.rules import api
from sageaudit.rules.families.objective_curve import (
    POINTS,
    WINDOWS_MISSING,
    no_own_metric,
    objective_curve,
    worked_s,
)

EARLY = api.Threshold("early_percent", 20, "percent of Training", "a small part")
FROM = api.Threshold("from_s", 1800, "seconds", "a shorter try is cheap")
RUNS = api.Threshold("runs_from", 10, "runs", "fewer are no series of tries")
WITHIN = api.Threshold("within_days", 14, "days", "one phase of work")
DISTINCT = api.Threshold("distinct_percent", 50, "percent of runs", "they explore")


@api.rule(
    id="SA705",
    scope=api.FamilyCase,
    kinds={api.JobKind.TRAINING},
    thresholds=(EARLY, FROM, RUNS, WITHIN, DISTINCT, api.NO_GAIN, POINTS),
    not_applicable=(api.search_trial, api.serverless, api.not_completed, no_own_metric),
)
def check(case: api.FamilyCase) -> api.Outcome:
    """The family first: one that does not explore is clear, whatever the curve shows."""
    if case.earlier is None:
        return api.HISTORY_UNREAD
    recent = case.recent(case.limit(WITHIN)) or ()
    tries = [run for run in recent if run.status == "Completed"]
    if len(tries) < case.limit(RUNS):
        return api.Clear()
    known = [run.facts.fingerprint for run in tries if run.facts.fingerprint is not None]
    if len(known) < len(tries):
        reason = "whether the family's runs had different settings is not known"
        return api.Unknown("fingerprint_missing", reason)
    settings = len(set(known))
    if 100 * settings < case.limit(DISTINCT) * len(tries):
        return api.Clear()
    objective = objective_curve(case)
    if isinstance(objective, api.Missing):
        return api.unknown(objective)
    windows = list(work_windows(case.job))
    if not windows:
        return WINDOWS_MISSING
    whole_s = worked_s(windows, windows[0][0], windows[-1][1])
    gained_s = worked_s(windows, windows[0][0], objective.moment(objective.at))
    if whole_s < case.limit(FROM) or 100 * gained_s > case.limit(EARLY) * float(whole_s):
        return api.Clear()
    return api.possible(
        f"{objective.metric} made its last gain after {api.duration(gained_s)} of "
        f"{api.duration(whole_s)}, in one of {len(tries) + 1} runs with {settings} settings: try "
        "settings on a part of the data.",
        {
            "metric": objective.metric,
            "last_gain_s": gained_s,
            "training_s": whole_s,
            "best_value": objective.best,
            "earlier_tries": len(tries),
            "earlier_settings": settings,
        },
        caution="How much data is enough is known only after a trial.",
    )
