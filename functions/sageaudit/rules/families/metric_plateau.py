"""Training went on long after its objective stopped improving.

What it checks: After its last gain of more than 1% the objective did not improve for at least 25%
    of Training. Early stopping would wait for 10 more points; at least 15 minutes must follow
    these. The objective is that of the tuning job, else the policy's `objectives`, else from a
    table of names, validation before training. Its direction comes from the policy or the table,
    because AWS does not give it. At least 20 points are needed; a running median of 5 is judged.
    The plateau ends with the last point, or when idle-tail begins.
Why it costs: The seconds after the best model are billed like those before it.
Saving: Possible, never in a total: the time after these 10 points, until the plateau ends.
When it is wrong: Cosine and linear schedules gain late, so for these any gain above 0.1% counts. A
    step schedule, or a loss that falls after hours on a plateau, looks the same until it falls. 1%
    of an accuracy of 0.99 is the whole remaining error. A metric of the training data does not show
    how the model does on new data.
What to do: Stop early: with the algorithm's own parameter if it has one, else with a callback of
    the framework that keeps the best checkpoint. MaxRuntimeInSeconds is the last resort: it leaves
    the last checkpoint, and nothing at all without CheckpointConfig.
Sources: AWS, API reference, ConvergenceDetected: a "lack of significant improvement (1% or less)".
    H2O, stopping_tolerance: 0.001. LightGBM, XGBoost guides: early_stopping_rounds 10 in examples.
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

POINTS = api.Threshold("min_points", 20, "points", "fewer draw no curve")
WINDOWS_MISSING = api.Unknown("phases_missing", "when Training ran is not known")
Windows = Sequence[tuple[datetime, datetime]]
"""Start and end of each time that the code ran, as `work_windows` gives them."""
FLAT_SHARE = api.Threshold("flat_share_percent", 25, "percent of Training", "the last part of it")
MIN_CUT = api.Threshold("min_cut_s", 900, "seconds", "a shorter cut saves cents")
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
"""By the last word of the image's repository; only without a script of the user's own."""


def _no_own_metric(case: api.JobCase) -> str | None:
    """Without an algorithm metric there is no curve."""
    reports = case.job.metric_names or case.whole_run.curves
    return None if reports else "its container defines no metric of its own"


@api.rule(
    id="SA701",
    scope=api.JobCase,
    kinds={api.JobKind.TRAINING},
    thresholds=(FLAT_SHARE, MIN_CUT, api.NO_GAIN, LATE_MIN_GAIN, POINTS, PATIENCE),
    not_applicable=(api.serverless, api.not_completed, _no_own_metric),
)
def check(case: api.JobCase) -> api.Outcome:
    """Of the hosts' metrics it uses only the start of the idle tail."""
    job = case.job
    late = job.hints.schedule is not None
    objective = find_objective_curve(
        case.whole_run.curves,
        case.policy.objectives,
        job.objective,
        min_points=int(case.threshold(POINTS)),
        tolerance_percent=Decimal(str(case.threshold(LATE_MIN_GAIN if late else api.NO_GAIN))),
    )
    if isinstance(objective, api.Missing):
        return api.unknown_from_missing(objective)
    windows = list(work_windows(job))
    if not windows:
        return WINDOWS_MISSING
    ended_at = min(work_end(windows, case.whole_run), objective.time_of_point(-1))
    whole_s = work_seconds(windows, windows[0][0], windows[-1][1])
    flat_s = work_seconds(windows, objective.time_of_point(objective.last_gain_index), ended_at)
    stop = min(objective.last_gain_index + int(case.threshold(PATIENCE)), len(objective.values) - 1)
    cut_s = work_seconds(windows, objective.time_of_point(stop), ended_at)
    percent = 100 * flat_s / whole_s if whole_s else Decimal(0)
    if cut_s < case.threshold(MIN_CUT) or percent < case.threshold(FLAT_SHARE):
        return api.Clear()
    phase = work_phase_name(job)
    return api.possible_saving(
        f"{objective.metric} last improved to {objective.best_value:.4g}; after that, "
        f"{api.duration_text(flat_s)} of {api.duration_text(whole_s)} of {phase} ({percent:.0f}%)"
        " brought "
        "no gain.",
        {
            "metric": objective.metric,
            "direction": objective.direction.value,
            "best_value": objective.best_value,
            "last_value": objective.last_value,
            "points": len(objective.values),
            "flat_s": flat_s,
            "training_s": whole_s,
            "cut_s": cut_s,
        },
        fix=_fix(job, cut_s),
        change=api.CutPhase(phase, cut_s),
        caution=(
            f"{f'Its {job.hints.schedule} schedule gains late. ' if late else ''}A later gain "
            "cannot be excluded: try it once. Better than a limit: a callback that stops early and "
            "keeps the best checkpoint."
        ),
    )


def _fix(job: api.Job, cut_s: Decimal) -> tuple[api.Parameter, ...]:
    """A limit only with checkpoints: else the next run ends with nothing, and is all lost."""
    algorithm = (repository(job.image) or "").rpartition("/")[2].removeprefix("sagemaker-")
    if job.entry_point is None and algorithm in _EARLY_STOPPING:
        path, value = _EARLY_STOPPING[algorithm]
        return (api.Parameter(path, None, value),)
    if job.elapsed_s is None or job.interruptions or job.elapsed_s <= cut_s:
        return ()
    limit_s = math.ceil((job.elapsed_s - cut_s) / 60) * 60
    limit = api.Parameter(api.RUN_LIMIT, job.max_runtime_s, limit_s)
    return (limit,) if job.checkpointed else (limit, api.CHECKPOINTS)


def work_seconds(windows: Windows, start: datetime, end: datetime) -> Decimal:
    """Whole seconds of the work windows between two moments, without interruptions."""
    overlaps = (min(stop, end) - max(begin, start) for begin, stop in windows)
    positive = (overlap for overlap in overlaps if overlap > timedelta())
    return Decimal(int(sum(positive, timedelta()).total_seconds()))


def work_end(windows: Windows, whole: api.Measurements) -> datetime:
    """When the idle tail begins, to the period; without a tail, the end of the last window."""
    ended_at = windows[-1][1]
    idle_periods = len(idle_tail(whole))
    if not idle_periods or not whole.period_s:
        return ended_at
    last_period = ended_at.timestamp() // whole.period_s * whole.period_s
    return datetime.fromtimestamp(last_period - idle_periods * whole.period_s, UTC)
