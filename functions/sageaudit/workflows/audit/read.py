"""Reads one run for its audit: its Describe answer, tags, usage and number of launched jobs.

Anyone who may write to the event bus can name any job. So an answer is used only if its kind, name,
account, region and creation time match the event's.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any

from msgspec import Struct

from sageaudit.domain.audit.record import UNKNOWN_NAME
from sageaudit.domain.audit.summary import AuditSummary
from sageaudit.domain.job.course import as_of, own_code_s
from sageaudit.domain.job.describe import TagNames, rejected_tags, tags_to_store
from sageaudit.domain.job.job import FINISHED, Job
from sageaudit.domain.job.kinds import RollUp
from sageaudit.domain.job.ref import DescribedRun, JobEndEvent, is_same_run, parse_described_run
from sageaudit.domain.prices.market import InstanceType
from sageaudit.domain.usage.measurements import (
    METRIC_ARRIVAL_TIMEOUT,
    METRIC_DENIED_CODE,
    MIN_ACTIVE_MINUTES,
    MIN_COVERAGE,
    Measurements,
    Metric,
)
from sageaudit.errors import AccessDenied, JobNotFound, MalformedData, Throttled, Unavailable
from sageaudit.ports import Jobs
from sageaudit.structs import replace
from sageaudit.workflows.audit.attempt import Attempt, WaitReason
from sageaudit.workflows.audit.stored import RunUsage, stored_usage

_DETAILED_METRICS_KEPT = timedelta(days=15)
"""CloudWatch keeps one-minute points for this long, then only five-minute averages."""
_SHORT_CODE_S = 120
"""A job whose code ran for less has only one or two points. It gets only one further audit for late
metrics.
"""
_LATE_METRICS_WITHIN = timedelta(minutes=20)
"""Metrics are expected within this time after a job's end. A later event does not wait for them."""


class DescribedJob(Struct, frozen=True):
    """A run that Describe returned. `event` has the answer's ARN and creation time."""

    event: JobEndEvent
    response: Mapping[str, Any]
    modified_at: datetime | None


class DescribeFailure(Struct, frozen=True):
    """Why the run of `event` cannot be audited.

    `did_exist` means that a SageMaker event or a Describe answer proves that the run existed. A
    replayed event is no proof. `can_appear_later` means that a later Describe may find the run.
    """

    event: JobEndEvent
    reason: str
    did_exist: bool
    can_appear_later: bool = False


class ReadJob(Struct, frozen=True):
    """A described job with its tags, and the form in which its answer is stored."""

    job: Job
    stored_answer: Mapping[str, Any]


class Tags(Struct, frozen=True):
    """A job's tags. `notes` say why some tags were not read.

    `can_arrive_later` means that a retry may read them.
    """

    tags: Mapping[str, str]
    notes: tuple[str, ...] = ()
    can_arrive_later: bool = False


def describe(end_event: JobEndEvent, jobs: Jobs) -> DescribedJob | DescribeFailure:
    """Returns the run that ended, as Describe answers, or why it cannot be audited.

    Returns DescribeFailure if the run is not found, if another run has its name, or if the answer
    cannot be read. Raises RejectedEvent if the answer is about another job. Raises AccessDenied,
    Throttled or Unavailable.
    """
    is_from_aws = not end_event.is_replayed
    try:
        answer = jobs.describe(end_event.ref)
    except JobNotFound as error:
        return DescribeFailure(
            end_event, str(error), did_exist=is_from_aws, can_appear_later=is_from_aws
        )
    try:
        run = parse_described_run(end_event.ref, answer)
    except MalformedData as error:
        return _unreadable(end_event, error)
    if not is_same_run(end_event.created_at, run.created_at):
        return _wrong_run_failure(end_event, run)
    event_of_run = replace(
        end_event,
        ref=replace(end_event.ref, arn=run.arn),
        created_at=run.created_at or end_event.created_at,
    )
    return DescribedJob(event_of_run, answer, run.modified_at)


def _wrong_run_failure(end_event: JobEndEvent, run: DescribedRun) -> DescribeFailure:
    # A run created later has replaced this run for good. An earlier run means a stale answer.
    is_from_aws, created_at = not end_event.is_replayed, run.created_at
    is_later_run = (
        created_at is not None
        and end_event.created_at is not None
        and created_at > end_event.created_at
    )
    run_text = (
        f"the run that was created at {created_at:%Y-%m-%d %H:%M:%S} UTC"
        if created_at
        else "another run"
    )
    reason = (
        f"its name now belongs to {run_text}"
        if is_later_run
        else f"Describe still answers with {run_text}"
    )
    return DescribeFailure(
        end_event, reason, did_exist=is_from_aws, can_appear_later=is_from_aws and not is_later_run
    )


def _unreadable(end_event: JobEndEvent, error: MalformedData) -> DescribeFailure:
    reason = f"its Describe answer cannot be read: {error}"
    return DescribeFailure(end_event, reason, did_exist=True, can_appear_later=True)


def read_tags(attempt: Attempt) -> Tags:
    """Returns the job's tags, from ListTags if possible.

    A first audit uses the tags of SageMaker's event, if there are any. If ListTags fails, the last
    audit's tags are used, or else the event's.
    """
    end_event, summary, tag_names = (
        attempt.end_event,
        attempt.latest_summary,
        attempt.deps.policy.tag_names,
    )
    if end_event.tags and summary is None and not attempt.force:
        return _select_tags(end_event.tags, tag_names)
    try:
        tags = attempt.deps.jobs.tags(end_event.ref)
        return _select_tags(tags, tag_names, all_read=attempt.deps.has_all_tags)
    except AccessDenied as error:
        reason, can_arrive_later = f"{error.action} is not permitted", False
    except (Throttled, Unavailable) as error:
        reason, can_arrive_later = str(error).rstrip("."), True
    notes = (f"tags: {reason}",)
    detail = attempt.deps.history.detail(summary.key) if summary is not None else None
    last_tags = end_event.tags if detail is None else detail.tags
    return Tags(tags_to_store(last_tags, tag_names, is_complete=False), notes, can_arrive_later)


def _select_tags(tags: Mapping[str, str], tag_names: TagNames, *, all_read: bool = True) -> Tags:
    notes = tuple(
        f"tags: the value of {name} was not read: it looks like a secret"
        for name in rejected_tags(tags, tag_names)
    )
    return Tags(tags_to_store(tags, tag_names, is_complete=all_read), notes)


def read_job(described: DescribedJob, tags: Tags, attempt: Attempt) -> ReadJob | DescribeFailure:
    """Returns the described job as of the attempt, or why it cannot be audited."""
    event, ref = described.event, described.event.ref
    account, region = (None if name == UNKNOWN_NAME else name for name in (ref.account, ref.region))
    key = attempt.deps.fingerprint_key()
    try:
        parsed = attempt.deps.parse_answer(described.response)
        job = parsed.job(tags.tags, account=account, region=region, key=key)
        job = as_of(job, attempt.now)
    except MalformedData as error:
        return _unreadable(event, error)
    if job.status.startswith("Delet"):
        return DescribeFailure(event, f"its status is {job.status}", did_exist=True)
    return ReadJob(job, parsed.stored_answer)


def count_launched(
    job: Job, rollup: RollUp, audited: Sequence[AuditSummary], attempt: Attempt
) -> int | None:
    """Returns how many jobs a roll-up launched; None if unknown.

    Describe has the number for some kinds. For others, the listed and the `audited` jobs are
    counted together. The list alone may lack deleted jobs. It also lacks jobs of an AutoML job that
    are not candidate steps.
    """
    if rollup.has_child_count:
        return job.tuning.launched_count if job.tuning else None
    listed_jobs = attempt.deps.jobs.children(attempt.end_event.ref)
    if listed_jobs is None:
        return None
    return len({child.arn for child in listed_jobs} | {summary.key.arn for summary in audited})


def read_usage(job: Job, types: Mapping[str, InstanceType], attempt: Attempt) -> RunUsage:
    """Returns the run's usage, from CloudWatch or the history.

    Raises Throttled or Unavailable if CloudWatch does not answer.
    """
    now, has_waited = (
        attempt.now,
        attempt.is_reaudit or attempt.wait_counts.get(WaitReason.LATE_METRICS, 0) > 0,
    )
    run_usage = _usage(job, types, attempt)
    is_late = attempt.deps.can_metrics_arrive and _are_metrics_late(
        job, run_usage.usage, now=now, has_waited=has_waited
    )
    is_late = is_late or run_usage.metrics_error is not None
    has_just_ended = job.ended_at is not None and now - job.ended_at < _LATE_METRICS_WITHIN
    return replace(run_usage, is_late=is_late, should_wait=is_late and has_just_ended)


def _usage(job: Job, types: Mapping[str, InstanceType], attempt: Attempt) -> RunUsage:
    """Returns the stored usage if CloudWatch cannot add to it, else CloudWatch's usage.

    CloudWatch cannot add to complete main metrics. It also cannot if it has only averages by now,
    or if the code ran briefly and the audit is final. If CloudWatch's answer is incomplete, stored
    usage of all hosts is kept. Usage that was stored before the run's end is ignored.
    """
    summary, ended_at, now = attempt.latest_summary, job.ended_at, attempt.now
    stored: RunUsage | None = None
    was_audited_after_end = (
        summary is not None and summary.status in FINISHED and ended_at is not None
    )
    if summary is not None and ended_at is not None and was_audited_after_end:
        stored = stored_usage(summary.key, job, types, attempt.deps.history)
        has_only_averages, is_last_read = (
            now - ended_at > _DETAILED_METRICS_KEPT,
            summary.settled and _has_run_briefly(job),
        )
        is_complete = (
            stored is not None and stored.has_all_hosts and _has_enough_points(stored.usage)
        )
        if stored is not None and (has_only_averages or is_last_read or is_complete):
            return stored
    usage = attempt.deps.metrics.read(job, now)
    error = _read_error(usage, stored) if was_audited_after_end else None
    if error is None:
        return RunUsage(usage)
    # A run that was judged by all hosts must not be judged again by some of them.
    run_usage = stored if stored is not None and stored.has_all_hosts else RunUsage(usage)
    return replace(run_usage, metrics_error=error)


def _read_error(usage: Measurements, stored_usage: RunUsage | None) -> str | None:
    """Returns why CloudWatch's metrics are incomplete; None if they are complete.

    They are incomplete if access was denied, or if they have fewer points than `stored_usage`.
    """
    denial_reasons = [
        gap.reason for gap in usage.missing.values() if gap.code == METRIC_DENIED_CODE
    ]
    if denial_reasons:
        return denial_reasons[0]
    has_fewer_points = stored_usage is not None and _count_points(usage) < _count_points(
        stored_usage.usage
    )
    return "CloudWatch answered with fewer points than before" if has_fewer_points else None


def _count_points(usage: Measurements) -> int:
    return sum(len(line.present) for hosts in usage.series.values() for line in hosts.values())


def _has_enough_points(usage: Measurements) -> bool:
    metrics = [Metric.CPU, *([Metric.GPU] if usage.gpus else [])]
    return all((usage.share(metric) or 0.0) >= MIN_COVERAGE for metric in metrics)


def _has_run_briefly(job: Job) -> bool:
    seconds = own_code_s(job)
    return seconds is not None and seconds < _SHORT_CODE_S


def _are_metrics_late(
    job: Job, usage: Measurements, *, now: datetime, has_waited: bool = False
) -> bool:
    # A run whose code ran briefly gets only one further audit.
    if has_waited and _has_run_briefly(job):
        return False
    can_arrive = job.ended_at is not None and now - job.ended_at < METRIC_ARRIVAL_TIMEOUT
    if (
        not (can_arrive or has_waited)
        or not job.elapsed_s
        or job.elapsed_s < MIN_ACTIVE_MINUTES * 60
    ):
        return False
    gap = usage.missing.get(Metric.CPU)
    if gap is not None:
        return gap.code == "metric_missing"
    return not _has_enough_points(usage)
