"""Training continued long after its objective had stopped improving.

What it checks: After its last gain of more than 1%, the objective did not improve for at least 25%
    of Training. Early stopping would have waited for 10 more points. The run went on for at least
    15 minutes after these.
    - The objective is the tuning job's. Without one, it is one of the policy's `objectives`, then a
      metric with a well-known name. Validation metrics come before training metrics.
    - The policy or the name says whether higher is better.
    - The rule needs at least 20 points, and judges a running median of 5.
    - The plateau ends with the last point, or when the idle tail begins.
Why it costs: The time after the best model is billed like the time before it.
Saving: Possible: the time after the 10 points, until the plateau ends.
When it is wrong: Cosine and linear schedules gain late, so for them any gain above 0.1% counts.
    With a step schedule, the loss may fall again after hours on a plateau. 1% of an accuracy of
    0.99 is the whole remaining error. A metric of the training data does not show how good the
    model is on new data.
What to do: Stop training early, with the algorithm's own parameter or a framework callback that
    keeps the best checkpoint. MaxRuntimeInSeconds is the last resort: it leaves the last
    checkpoint, and without CheckpointConfig nothing.
Sources: AWS, API reference, ConvergenceDetected: a "lack of significant improvement (1% or less)".
    H2O, stopping_tolerance: 0.001. LightGBM, XGBoost guides: early_stopping_rounds of 10 in their
    examples.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from decimal import Decimal

from sageaudit.domain.job.addresses import repository
from sageaudit.domain.job.course import work_phase_name, work_windows
from sageaudit.domain.usage.edges import idle_tail
from sageaudit.domain.usage.objective import find_objective_curve
from sageaudit.rules import api

POINTS = api.Threshold("min_points", 20, "points", "fewer do not make a curve")
WINDOWS_MISSING = api.Unknown("phases_missing", "when Training ran is not known")
Windows = Sequence[tuple[datetime, datetime]]
"""The start and end of each period in which the code ran."""
FLAT_SHARE = api.Threshold("flat_share_percent", 25, "percent of Training", "the last quarter")
MIN_CUT = api.Threshold("min_cut_s", 900, "seconds", "less time saves cents")
LATE_MIN_GAIN = api.Threshold(
    "late_no_gain_percent", 0.1, "percent of the best value", "schedules that gain late",
    "H2O stopping_tolerance",
)  # fmt: skip
PATIENCE = api.Threshold(
    "patience_points", 10, "points", "early stopping waits for a gain", "early_stopping_rounds 10"
)
_EARLY_STOPPING = {
    "xgboost": ("HyperParameters.early_stopping_rounds", "10"),
    "image-classification": ("HyperParameters.early_stopping", "True"),
    "object-detection": ("HyperParameters.early_stopping", "True"),
    "semantic-segmentation": ("HyperParameters.early_stopping", "True"),
}
"""The parameter and value for early stopping, by the end of a built-in algorithm's image
repository. Not for jobs that run a script of their own."""


def _no_metric_reason(case: api.JobCase) -> str | None:
    has_metrics = case.job.metric_names or case.whole_run.curves
    return None if has_metrics else "its container defines no metric of its own"


@api.rule(
    id="SA701",
    scope=api.JobCase,
    kinds={api.JobKind.TRAINING},
    thresholds=(FLAT_SHARE, MIN_CUT, api.NO_GAIN, LATE_MIN_GAIN, POINTS, PATIENCE),
    not_applicable=(api.serverless_reason, api.not_completed_reason, _no_metric_reason),
)
def check(case: api.JobCase) -> api.Outcome:
    """Judges the curve of the objective metric."""
    job = case.job
    gains_late = job.hints.schedule is not None
    objective = find_objective_curve(
        case.whole_run.curves,
        case.policy.objectives,
        job.objective,
        min_points=int(case.threshold(POINTS)),
        tolerance_percent=Decimal(
            str(case.threshold(LATE_MIN_GAIN if gains_late else api.NO_GAIN))
        ),
    )
    if isinstance(objective, api.MissingMetrics):
        return api.unknown_from_missing(objective)
    windows = list(work_windows(job))
    if not windows:
        return WINDOWS_MISSING
    ended_at = min(work_end(windows, case.whole_run), objective.time_of_point(-1))
    training_s = work_seconds(windows, windows[0][0], windows[-1][1])
    flat_s = work_seconds(windows, objective.time_of_point(objective.last_gain_index), ended_at)
    stop_index = min(
        objective.last_gain_index + int(case.threshold(PATIENCE)), len(objective.values) - 1
    )
    saved_s = work_seconds(windows, objective.time_of_point(stop_index), ended_at)
    percent = 100 * flat_s / training_s if training_s else Decimal(0)
    if saved_s < case.threshold(MIN_CUT) or percent < case.threshold(FLAT_SHARE):
        return api.Clear()
    phase = work_phase_name(job)
    return api.possible_saving(
        f"{objective.metric} last improved to {objective.best_value:.4g}; after that, "
        f"{api.duration_text(flat_s)} of {api.duration_text(training_s)} of {phase} "
        f"({percent:.0f}%) brought no gain.",
        {
            "metric": objective.metric,
            "direction": objective.direction.value,
            "best_value": objective.best_value,
            "last_value": objective.last_value,
            "points": len(objective.values),
            "flat_s": flat_s,
            "training_s": training_s,
            "cut_s": saved_s,
        },
        fix=_fix(job, saved_s),
        change=api.CutPhase(phase, saved_s),
        caution=(
            f"{f'Its {job.hints.schedule} schedule gains late. ' if gains_late else ''}A later "
            "gain is possible, so try it on one run. A callback that stops early and keeps the "
            "best "
            "checkpoint is better than a limit."
        ),
    )


def _fix(job: api.Job, saved_s: Decimal) -> tuple[api.Parameter, ...]:
    """Returns the parameters that end the next run `saved_s` seconds earlier.

    These are the algorithm's early stopping, or a limit. Without checkpoints a limit would leave no
    result, so they are added.
    """
    algorithm = (repository(job.image) or "").rpartition("/")[2].removeprefix("sagemaker-")
    if job.entry_point is None and algorithm in _EARLY_STOPPING:
        path, value = _EARLY_STOPPING[algorithm]
        return (api.Parameter(path, None, value),)
    if job.elapsed_s is None or job.interruptions or job.elapsed_s <= saved_s:
        return ()
    limit_s = math.ceil((job.elapsed_s - saved_s) / 60) * 60
    limit = api.Parameter(api.RUN_LIMIT, job.max_runtime_s, limit_s)
    return (limit,) if job.checkpointed else (limit, api.CHECKPOINTS)


def work_seconds(windows: Windows, start: datetime, end: datetime) -> Decimal:
    """Returns how many whole seconds of `windows` are between `start` and `end`."""
    overlaps = (
        min(window_end, end) - max(window_start, start) for window_start, window_end in windows
    )
    positive = (overlap for overlap in overlaps if overlap > timedelta())
    return Decimal(int(sum(positive, timedelta()).total_seconds()))


def work_end(windows: Windows, whole: api.Measurements) -> datetime:
    """Returns when the idle tail begins, rounded to a metric period.

    Without an idle tail, returns the end of the last window.
    """
    ended_at = windows[-1][1]
    idle_periods = len(idle_tail(whole))
    if not idle_periods or not whole.period_s:
        return ended_at
    last_period = ended_at.timestamp() // whole.period_s * whole.period_s
    return datetime.fromtimestamp(last_period - idle_periods * whole.period_s, UTC)
