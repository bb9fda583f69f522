"""Training went on long after its objective stopped improving.

## What it checks
After its last gain of more than 1% the objective stayed where it was for at least 25% of Training,
and at least 15 minutes of that came after 10 points of patience. The objective is its tuning job's,
else what the policy names under `objectives`, else by a table of names, validation before training.
A trial knows its objective's name, not its direction: that is the policy's or the table's too. It
needs 20 points, whose running median of 5 is judged. The plateau ends with the last point, and
where an idle tail begins, which is another finding.

## Why it costs
The seconds after the best model are billed like those before it.

## Saving
Possible, never in a sum with others: what came after the best point and 10 points of patience,
which early stopping would have waited for.

## When it is wrong
Cosine and linear schedules gain late: with one of these only 0.1% is no gain. A step schedule, or a
loss that falls after hours on a plateau, looks the same until it falls. 1% of an accuracy of 0.99
is the whole error that is left. A metric of the training data says nothing of new data.

## What to do
Stop early: the algorithm's own parameter where it has one, else a callback of the framework that
keeps the best checkpoint. MaxRuntimeInSeconds is the blunt way; it leaves the last checkpoint, and
nothing at all without CheckpointConfig.

## Sources
AWS, API reference, ConvergenceDetected: a "lack of significant improvement (1% or less)". H2O,
stopping_tolerance: 0.001. LightGBM, XGBoost guides: early_stopping_rounds 10 in examples.
"""

from __future__ import annotations

import math
from decimal import Decimal

from sageaudit.domain.bill.change import CutPhase
from sageaudit.domain.bill.finding import (
    Bucket,
    Clear,
    Confidence,
    Found,
    Outcome,
    Parameter,
    Unknown,
)
from sageaudit.domain.job.family import repository
from sageaudit.domain.job.job import Job, Purchase
from sageaudit.domain.job.kinds import JobKind
from sageaudit.domain.usage.edges import work_phase
from sageaudit.domain.usage.measurements import Missing
from sageaudit.domain.usage.objective import Watched, watch
from sageaudit.domain.usage.plot import plot_curve
from sageaudit.domain.usage.work_windows import work_windows
from sageaudit.rules.card import JobCase, Threshold, rule
from sageaudit.rules.families.work_time import busy_until, worked_s

FLAT_SHARE = Threshold(
    "flat_share_percent", 25, "percent of Training", "the last part of it", "our choice"
)
CUT_FROM = Threshold("cut_from_s", 900, "seconds", "a shorter cut saves cents", "our choice")
NO_GAIN = Threshold(
    "no_gain_percent", 1, "percent of the best value", "no gain worth it", "AWS ConvergenceDetected"
)
LATE_NO_GAIN = Threshold(
    "late_no_gain_percent", 0.1, "percent of the best value", "schedules that gain late",
    "H2O stopping_tolerance",
)  # fmt: skip
POINTS = Threshold("points_from", 20, "points", "fewer draw no curve", "our choice")
PATIENCE = Threshold(
    "patience_points", 10, "points", "early stopping waits for a gain", "early_stopping_rounds 10"
)
_LATE = frozenset({"cosine", "linear"})
_OWN_PARAMETERS = {
    "xgboost": ("HyperParameters.early_stopping_rounds", "10"),
    "image-classification": ("HyperParameters.early_stopping", "True"),
    "object-detection": ("HyperParameters.early_stopping", "True"),
    "semantic-segmentation": ("HyperParameters.early_stopping", "True"),
}
"""By the last word of the image's repository; only without a script of the user's own."""


def excuse(case: JobCase) -> str | None:
    """Why an objective's curve says nothing of what the run cost, or None."""
    if case.job.purchase is Purchase.SERVERLESS:
        return "it is serverless"
    if case.job.status != "Completed":
        return "the run did not complete"
    reports = case.job.metric_names or case.whole.curves
    return None if reports else "its container defines no metric of its own"


@rule(
    id="SA701",
    scope=JobCase,
    kinds={JobKind.TRAINING},
    thresholds=(FLAT_SHARE, CUT_FROM, NO_GAIN, LATE_NO_GAIN, POINTS, PATIENCE),
    excuse=excuse,
)
def check(case: JobCase) -> Outcome:
    """Of the hosts' metrics it takes only where the idle tail begins."""
    job = case.job
    usage = watched(case, NO_GAIN if job.hints.schedule not in _LATE else LATE_NO_GAIN, POINTS)
    if isinstance(usage, Missing):
        return Unknown(usage.code, usage.reason)
    windows = list(work_windows(job))
    if not windows:
        return Unknown("phases_missing", "when Training ran is not known")
    ends_at = min(busy_until(windows, case.whole), usage.moment(-1))
    whole_s = worked_s(windows, windows[0][0], windows[-1][1])
    flat_s = worked_s(windows, usage.moment(usage.at), ends_at)
    waited = min(usage.at + int(case.limit(PATIENCE)), len(usage.values) - 1)
    cut_s = worked_s(windows, usage.moment(waited), ends_at)
    percent = 100 * flat_s / whole_s if whole_s else Decimal(0)
    if cut_s < case.limit(CUT_FROM) or percent < case.limit(FLAT_SHARE):
        return Clear()
    phase = work_phase(job)
    return Found(
        confidence=Confidence.HEURISTIC,
        bucket=Bucket.POSSIBLE,
        summary=(
            f"{usage.metric} last improved to {usage.best:.4g}; {flat_s / 60:.0f} of "
            f"{whole_s / 60:.0f} minutes of {phase} ({percent:.0f}%) came after that, for nothing."
        ),
        evidence={
            "metric": usage.metric,
            "direction": usage.direction.value,
            "best_value": usage.best,
            "last_value": usage.last,
            "points": len(usage.values),
            "flat_s": flat_s,
            "training_s": whole_s,
            "cut_s": cut_s,
            "series": plot_curve(usage.metric, usage.curve),
        },
        fix=_fix(job, cut_s),
        change=CutPhase(phase, cut_s),
        caution=_caution(job),
    )


def watched(case: JobCase, no_gain: Threshold, points: Threshold) -> Watched | Missing:
    """The objective of this run, judged with one of a rule's own tolerances."""
    return watch(
        case.whole.curves,
        case.policy.objectives,
        case.job.objective,
        min_points=int(case.limit(points)),
        tolerance_percent=Decimal(str(case.limit(no_gain))),
    )


def _fix(job: Job, cut_s: Decimal) -> tuple[Parameter, ...]:
    """A limit only with checkpoints: else the next run ends with nothing, and is all lost."""
    algorithm = (repository(job.image) or "").rpartition("/")[2].removeprefix("sagemaker-")
    if job.entry_point is None and algorithm in _OWN_PARAMETERS:
        path, value = _OWN_PARAMETERS[algorithm]
        return (Parameter(path, None, value),)
    if job.elapsed_s is None or job.interruptions or job.elapsed_s <= cut_s:
        return ()
    limit_s = math.ceil((job.elapsed_s - cut_s) / 60) * 60
    limit = Parameter("StoppingCondition.MaxRuntimeInSeconds", job.max_runtime_s, limit_s)
    if job.checkpointed:
        return (limit,)
    return (limit, Parameter("CheckpointConfig.S3Uri", None, "s3://<bucket>/<prefix>"))


def _caution(job: Job) -> str:
    late = f"Its {job.hints.schedule} schedule gains late. " if job.hints.schedule in _LATE else ""
    return (
        f"{late}A later gain cannot be excluded: try it once. Better than a limit: a callback that "
        "stops early and keeps the best checkpoint."
    )
