"""The course of a run: its phases, the phases in which its own code ran, and why the run ended.

A training job's phases come from its secondary status transitions. Downloading (with the image
pull), Training, Uploading and Stopping are billed. Starting, Pending and Interrupted are waiting
time. For managed Spot, "any repeated Downloading phases that occurred due to interruption are not
charged". Source: AWS blog "Analyze Amazon SageMaker spend", part 4. In 59 of 59 recorded jobs, the
training seconds are exactly Downloading to the end of Uploading.

SecondaryStatus is an enum, so it is checked before the free text of a failure message.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from decimal import Decimal
from typing import Any

from sageaudit.domain.job import fields
from sageaudit.domain.job.failure_words import MAX_RUNTIME, MAX_WAIT
from sageaudit.domain.job.job import Job, Phase, seconds_between, sum_if_complete
from sageaudit.domain.job.kinds import BILLED_KINDS
from sageaudit.structs import replace

DOWNLOADS = frozenset({"Downloading", "DownloadingTrainingImage"})
"""The phases in which the image is pulled and data is copied or mounted."""
_RUNNING = DOWNLOADS | {"Training", "Uploading"}
_BILLED = _RUNNING | {"Stopping"}
START_PHASES = ("Starting", "Pending", "LaunchingMLInstances", "PreparingTrainingStack")
"""The phases of waiting time before the first billed phase."""
_ROUNDING_S = 10
"""The largest difference from rounding: AWS rounds the times of phases and the billable time
separately."""
_WAITING = frozenset({*START_PHASES, "Interrupted", "Restarting"})
_WORK_PHASES = frozenset({"Running", *(kind.spec.prefix for kind in BILLED_KINDS)})
_ENDED = frozenset({"Completed", "Failed", "Stopped", "MaxRuntimeExceeded", "MaxWaitTimeExceeded"})

LIMIT_REACHED = "limit reached"
_CONTINUOUS_UPLOAD = "Continuous"
"""The mode of an output that is uploaded while the job runs."""
_LIMITS = {"MaxRuntimeExceeded": MAX_RUNTIME, "MaxWaitTimeExceeded": MAX_WAIT}


def phases_from_transitions(
    transitions: Sequence[Mapping[str, Any]],
    started_at: datetime | None,
    ended_at: datetime | None,
    billable_s: int | None = None,
) -> tuple[Phase, ...]:
    """Returns the phases in order, one entry for each occurrence, without the final status.

    A phase without an end lasts until the next phase starts, and the last one until the job ends.
    An unknown status counts as billed if it lies between the job's start and end. Without
    `started_at`, nothing was billed.

    `billable_s` is AWS's BillableTimeInSeconds. It shows whether a repeated download was charged.
    """
    rows = [
        (started_at_phase, fields.text(item, "Status") or "Unknown", item)
        for item in transitions
        if (started_at_phase := fields.time(item, "StartTime")) is not None
    ]
    rows.sort(key=lambda row: row[0])
    phases = []
    for position, (started_at_phase, name, item) in enumerate(rows):
        if name in _ENDED:
            continue
        next_start = rows[position + 1][0] if position + 1 < len(rows) else ended_at
        end = fields.time(item, "EndTime") or next_start
        if end is not None and next_start is not None and next_start < end:
            end = next_start  # phases follow each other: an overlap would be billed twice
        seconds = seconds_between(started_at_phase, end) if end else None
        phases.append(
            Phase(
                name,
                started_at_phase,
                seconds,
                _is_billed(name, started_at_phase, started_at, ended_at),
            )
        )
    charged = tuple(_mark_repeated_downloads(phases))
    charged_s = sum_if_complete([phase.seconds for phase in charged if phase.billed])
    if None in (billable_s, charged_s):
        return charged
    repeats_charged = (billable_s or 0) > (charged_s or 0) + _ROUNDING_S
    return tuple(phases) if repeats_charged else charged


def _mark_repeated_downloads(phases: Iterable[Phase]) -> Iterator[Phase]:
    downloaded = interrupted = False
    for phase in phases:
        interrupted |= downloaded and phase.name == "Interrupted"
        if phase.name not in DOWNLOADS:
            yield phase
            continue
        downloaded |= phase.billed
        repeated = interrupted and phase.billed
        yield replace(phase, billed=phase.billed and not repeated, is_repeated=repeated)


def run_times_from_transitions(
    transitions: Sequence[Mapping[str, Any]],
) -> tuple[datetime | None, datetime | None]:
    """Returns the start and end of the billed run, for answers that lack these times.

    60 of 60 recorded jobs start with Downloading and end when the final status starts.
    """
    moments = sorted(
        (moment, fields.text(item, "Status") or "")
        for item in transitions
        if (moment := fields.time(item, "StartTime")) is not None
    )
    start = next((moment for moment, name in moments if name in _RUNNING), None)
    end = next((moment for moment, name in moments if name in _ENDED), None)
    return start, end


def _is_billed(
    name: str,
    started_at_phase: datetime | None,
    started_at: datetime | None,
    ended_at: datetime | None,
) -> bool:
    if started_at is None or name in _WAITING:
        return False
    if name in _BILLED:
        return True
    return (
        started_at_phase is not None
        and started_at <= started_at_phase
        and (ended_at is None or started_at_phase < ended_at)
    )


def phases_without_transitions(
    name: str, created_at: datetime | None, started_at: datetime, ended_at: datetime | None
) -> tuple[Phase, ...]:
    """Returns a waiting phase (if the job waited) and one billed phase called `name`."""
    seconds = seconds_between(started_at, ended_at) if ended_at else None
    run = Phase(name, started_at, seconds, billed=True)
    waited = seconds_between(created_at, started_at) if created_at else None
    return (Phase("Starting", created_at, waited, billed=False), run) if waited else (run,)


def as_of(job: Job, time: datetime) -> Job:
    """Returns a running job as of `time`: its open phase lasts until then.

    A finished job is returned unchanged. If the open phase starts after `time`, because clocks
    differ, it stays open.
    """
    if job.finished:
        return job
    phases = [
        replace(phase, seconds=seconds_between(phase.started_at, time))
        if phase.seconds is None and phase.started_at
        else phase
        for phase in job.phases
    ]
    return replace(job, phases=tuple(phases), observed_until=time)


def work_phase_name(job: Job) -> str:
    """Returns the name of the first phase that ran the job's own code; "Training" if unknown."""
    return next((phase.name for phase in job.phases if is_work_phase(phase)), "Training")


def is_work_phase(phase: Phase) -> bool:
    """Returns whether the job's own code runs in this phase."""
    return phase.name in _WORK_PHASES


def own_code_s(job: Job) -> Decimal | None:
    """Returns the seconds in which the job's own code ran; None if the phases do not show it."""
    work_seconds = (phase.seconds for phase in job.phases if is_work_phase(phase))
    return sum_if_complete(work_seconds) if job.phases else None


def work_windows(job: Job) -> Iterator[tuple[datetime, datetime]]:
    """Yields the start and end of each period in which the job's own code ran."""
    for phase in job.phases:
        if is_work_phase(phase) and phase.started_at is not None and phase.seconds:
            yield phase.started_at, phase.started_at + timedelta(seconds=float(phase.seconds))


def reached_limit(job: Job) -> str | None:
    """Returns the request parameter of the limit that ended the run, or None.

    A processing job has no secondary status. If it was stopped after its limit, the limit is the
    reason: SageMaker stops jobs late, never early.
    """
    if job.status == "Completed":
        return None
    if job.secondary_status in _LIMITS:
        return _LIMITS[job.secondary_status]
    failure_meaning = job.failure.meaning if job.failure else None
    if failure_meaning in {MAX_RUNTIME, MAX_WAIT}:
        return failure_meaning
    has_reached_runtime = (
        not job.kind.spec.has_transitions
        and job.status == "Stopped"
        and job.max_runtime_s is not None
        and job.elapsed_s is not None
        and job.elapsed_s >= job.max_runtime_s
    )
    return MAX_RUNTIME if has_reached_runtime else None


def seconds_until_limit(job: Job, limit: str) -> Decimal | None:
    """Returns the seconds of the run that count towards `limit`, in all attempts; None if unknown.

    MaxWait counts waiting and work since the request, MaxRuntime only the work. AWS does not say
    whether the training seconds include every attempt, so a restarted run's phases are summed.
    """
    if limit == MAX_WAIT:
        if job.created_at is None or job.ended_at is None:
            return None
        return seconds_between(job.created_at, job.ended_at)
    return job.ran_s if job.has_restarted else job.elapsed_s


def failure_class(job: Job) -> str:
    """Returns why the run did not complete, in a word or two, such as "code error"."""
    if reached_limit(job):
        return LIMIT_REACHED
    if job.failure and job.failure.meaning:
        return job.failure.meaning
    return "stopped" if job.status == "Stopped" else "reason unknown"


def kept_results(job: Job) -> str | None:
    """Returns what a run that ended early left in S3: "an artifact", "checkpoints", or None."""
    if job.has_artifact:
        return "an artifact"
    return "checkpoints" if job.checkpointed and can_have_worked(job) else None


def can_have_worked(job: Job) -> bool:
    """Returns whether the job's own code may have run. Without phases, it may have."""
    return not job.phases or any(is_work_phase(phase) for phase in job.phases)


def possible_resume_source(job: Job) -> str | None:
    """Returns what may hold work of a run that ended early, such as "its checkpoints", or None."""
    if not can_have_worked(job):
        return None
    if job.checkpointed:
        return "its checkpoints"
    if job.hints.own_checkpoints:
        return "checkpoints or outputs of its script's own"
    if any(upload.mode == _CONTINUOUS_UPLOAD for upload in job.uploads):
        return "outputs that were uploaded while it ran"
    return None


def is_trial(job: Job) -> bool:
    """Returns whether a search, such as a tuning job, started the job.

    A trial's metric is a result even without a model.
    """
    rollup = job.parent.rollup if job.parent else None
    return rollup is not None and rollup.is_search
