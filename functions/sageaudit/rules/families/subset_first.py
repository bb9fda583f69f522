"""An exploring family's run learnt what it learns in its first minutes.

## What it checks
The objective made its last gain of more than 1% in the first 20% of Training, which took at least
30 minutes, and the family explores: of its runs of the last 14 days at least 10 completed, and
there are half as many settings as runs or more. All of it, or nothing is said.

## Why it costs
While settings are tried out, each try pays for all of the data, and a part of it would have told
the same.

## Saving
Possible, and no figure: how much data suffices is known only after a trial. What early stopping
would have saved of this very run is metric-plateau's finding.

## When it is wrong
Rare classes need all of the data; the last tenth of a percent is the goal of some families; a
metric of the training data says nothing of new data.

## What to do
Try settings on a sample (SageMaker Data Wrangler draws stratified ones), start from a pre-trained
model, and give all data to the winner only.

## Sources
AWS blog "Analyze Amazon SageMaker spend", part 4: "consider training on a subset of your data",
drawn with SageMaker Data Wrangler. AWS, API reference, ConvergenceDetected: a "lack of significant
improvement (1% or less)".
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta

from sageaudit.domain.audit.earlier import EarlierRun
from sageaudit.domain.bill.finding import Bucket, Clear, Confidence, Found, Outcome, Unknown
from sageaudit.domain.job.job import ParentKind
from sageaudit.domain.job.kinds import JobKind
from sageaudit.domain.usage.measurements import Missing
from sageaudit.domain.usage.work_windows import work_windows
from sageaudit.rules.card import FamilyCase, Threshold, rule
from sageaudit.rules.families.metric_plateau import NO_GAIN, POINTS, watched
from sageaudit.rules.families.metric_plateau import excuse as no_curve_to_judge
from sageaudit.rules.families.work_time import worked_s

EARLY = Threshold("early_percent", 20, "percent of Training", "little of the data", "our choice")
FROM = Threshold("from_s", 1800, "seconds", "a shorter try is cheap", "our choice")
RUNS = Threshold("runs_from", 10, "runs", "fewer are no series of tries", "our choice")
WITHIN = Threshold("within_days", 14, "days", "one phase of work", "our choice")
DISTINCT = Threshold("distinct_percent", 50, "percent of runs", "they explore", "our choice")


def _excuse(case: FamilyCase) -> str | None:
    parent = case.job.parent
    if parent is not None and parent.kind in {ParentKind.TUNING, ParentKind.AUTOML}:
        return f"its {parent.kind.value} decides what is tried"
    return no_curve_to_judge(case)


@rule(
    id="SA705",
    scope=FamilyCase,
    kinds={JobKind.TRAINING},
    thresholds=(EARLY, FROM, RUNS, WITHIN, DISTINCT, NO_GAIN, POINTS),
    excuse=_excuse,
)
def check(case: FamilyCase) -> Outcome:
    """The family first: a steady one is clear whatever its curve says."""
    if case.earlier is None:
        return Unknown("history_unread", "the earlier runs of its family were not read")
    tries = _tries(case)
    if len(tries) < case.limit(RUNS):
        return Clear()
    prints = [run.facts.fingerprint for run in tries if run.facts.fingerprint is not None]
    if len(prints) < len(tries):
        return Unknown("fingerprint_missing", "without fingerprints tries are not told apart")
    if 100 * len(set(prints)) < case.limit(DISTINCT) * len(tries):
        return Clear()
    usage = watched(case, NO_GAIN, POINTS)
    if isinstance(usage, Missing):
        return Unknown(usage.code, usage.reason)
    windows = list(work_windows(case.job))
    if not windows:
        return Unknown("phases_missing", "when Training ran is not known")
    whole_s = worked_s(windows, windows[0][0], windows[-1][1])
    gained_s = worked_s(windows, windows[0][0], usage.moment(usage.at))
    if whole_s < case.limit(FROM) or 100 * gained_s > case.limit(EARLY) * float(whole_s):
        return Clear()
    return Found(
        confidence=Confidence.HEURISTIC,
        bucket=Bucket.POSSIBLE,
        summary=(
            f"{usage.metric} made its last gain {gained_s / 60:.0f} minutes into "
            f"{whole_s / 60:.0f}, in one of {len(tries) + 1} tries with {len(set(prints))} "
            "settings: try them on a part of the data."
        ),
        evidence={
            "metric": usage.metric,
            "last_gain_s": gained_s,
            "training_s": whole_s,
            "best_value": usage.best,
            "earlier_tries": len(tries),
            "earlier_settings": len(set(prints)),
        },
        caution="No figure: how much data suffices is known after a trial on a part of it.",
    )


def _tries(case: FamilyCase) -> Sequence[EarlierRun]:
    begun = case.job.started_at or case.job.created_at
    if begun is None:
        return ()
    days = timedelta(days=case.limit(WITHIN))
    return [
        run
        for run in case.runs
        if run.status == "Completed" and timedelta(0) <= begun - run.ended_at <= days
    ]
