"""Reads one run for its audit: Describe, its tags, what it used, and how many jobs it launched.

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
from sageaudit.domain.job.describe import TagNames, parse, rejected_tags, tags_to_store
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
_HARDLY_RAN_S = 120
"""Own code that ran for less leaves one or two points, so one further read is enough."""
_LATE_METRICS_WITHIN = timedelta(minutes=20)
"""Metrics are expected this soon after a job's end; a later event does not wait for them."""


class DescribedJob(Struct, frozen=True):
    """Describe's answer; `event` has the ARN and creation time from Describe."""

    event: JobEndEvent
    response: Mapping[str, Any]
    modified_at: datetime | None


class DescribeFailure(Struct, frozen=True):
    """Why the run of `event` cannot be audited.

    `did_exist`: the run existed, according to SageMaker's event or Describe; a replayed event does
    not prove it. `can_appear_later`: Describe may answer with it later.
    """

    event: JobEndEvent
    reason: str
    did_exist: bool
    can_appear_later: bool = False


class Tags(Struct, frozen=True):
    """A job's tags. `notes`: why some were not read; `can_arrive_later`: a retry may read them."""

    tags: Mapping[str, str]
    notes: tuple[str, ...] = ()
    can_arrive_later: bool = False


def describe(ended: JobEndEvent, jobs: Jobs) -> DescribedJob | DescribeFailure:
    """Asks Describe for the run that ended.

    Raises RejectedEvent if it answers with another job, or AccessDenied, Throttled, Unavailable.
    """
    from_event = not ended.is_replayed
    try:
        answer = jobs.describe(ended.ref)
    except JobNotFound as error:
        return DescribeFailure(ended, str(error), did_exist=from_event, can_appear_later=from_event)
    try:
        run = parse_described_run(ended.ref, answer)
    except MalformedData as error:
        return _unreadable(ended, error)
    if not is_same_run(ended.created_at, run.created_at):
        return _wrong_run_failure(ended, run)
    named = replace(
        ended,
        ref=replace(ended.ref, arn=run.arn),
        created_at=run.created_at or ended.created_at,
    )
    return DescribedJob(named, answer, run.modified_at)


def _wrong_run_failure(ended: JobEndEvent, run: DescribedRun) -> DescribeFailure:
    """Describe names another run: a later one for good, an earlier one while it is stale."""
    from_event, at = not ended.is_replayed, run.created_at
    later = at is not None and ended.created_at is not None and at > ended.created_at
    which = f"the run that was created at {at:%Y-%m-%d %H:%M:%S} UTC" if at else "another run"
    reason = f"its name now belongs to {which}" if later else f"Describe still answers with {which}"
    return DescribeFailure(
        ended, reason, did_exist=from_event, can_appear_later=from_event and not later
    )


def _unreadable(ended: JobEndEvent, error: MalformedData) -> DescribeFailure:
    reason = f"its Describe answer cannot be read: {error}"
    return DescribeFailure(ended, reason, did_exist=True, can_appear_later=True)


def read_tags(attempt: Attempt) -> Tags:
    """Reads the job's tags: for its first audit from SageMaker's event, if it has any.

    Otherwise asks SageMaker. If that fails, uses those of an earlier audit, else the event's.
    """
    ended, summary, names = attempt.ended, attempt.latest_summary, attempt.deps.policy.tag_names
    if ended.tags and summary is None and not attempt.force:
        return _select_tags(ended.tags, names)
    try:
        tags = attempt.deps.jobs.tags(ended.ref)
        return _select_tags(tags, names, all_read=attempt.deps.has_all_tags)
    except AccessDenied as denied:
        reason, can_arrive_later = f"{denied.action} is not permitted", False
    except (Throttled, Unavailable) as error:
        reason, can_arrive_later = str(error).rstrip("."), True
    notes = (f"tags: {reason}",)
    detail = attempt.deps.history.detail(summary.key) if summary is not None else None
    last_tags = ended.tags if detail is None else detail.tags
    return Tags(tags_to_store(last_tags, names, is_complete=False), notes, can_arrive_later)


def _select_tags(tags: Mapping[str, str], names: TagNames, *, all_read: bool = True) -> Tags:
    notes = tuple(
        f"tags: the value of {name} was not read: it has the form of a secret"
        for name in rejected_tags(tags, names)
    )
    return Tags(tags_to_store(tags, names, is_complete=all_read), notes)


def read_job(described: DescribedJob, tags: Tags, attempt: Attempt) -> Job | DescribeFailure:
    """Returns the described job as of the attempt, or why it cannot be audited."""
    ended, ref = described.event, described.event.ref
    account, region = (None if name == UNKNOWN_NAME else name for name in (ref.account, ref.region))
    key = attempt.deps.fingerprint_key()
    try:
        job = parse(described.response, tags.tags, account=account, region=region, key=key)
        job = as_of(job, attempt.now)
    except MalformedData as error:
        return _unreadable(ended, error)
    if job.status.startswith("Delet"):
        return DescribeFailure(ended, f"its status is {job.status}", did_exist=True)
    return job


def count_launched(
    job: Job, rollup: RollUp, audited: Sequence[AuditSummary], attempt: Attempt
) -> int | None:
    """How many jobs a roll-up launched: Describe's count, else all listed or audited ones.

    A list may lack audited jobs: an AutoML job's has only the steps of its candidates. An audited
    job may have been deleted since. None if it is not known.
    """
    if rollup.has_child_count:
        return job.tuning.launched_count if job.tuning else None
    listed = attempt.deps.jobs.children(attempt.ended.ref)
    if listed is None:
        return None
    return len({child.arn for child in listed} | {head.key.arn for head in audited})


def read_usage(job: Job, types: Mapping[str, InstanceType], attempt: Attempt) -> RunUsage:
    """What the run used, from CloudWatch or the history.

    Raises Throttled or Unavailable if CloudWatch is asked and does not answer.
    """
    now, waited = (
        attempt.now,
        attempt.is_reaudit or attempt.wait_counts.get(WaitReason.LATE_METRICS, 0) > 0,
    )
    used = _usage(job, types, attempt)
    late = attempt.deps.can_metrics_arrive and _are_metrics_late(
        job, used.usage, now=now, has_waited=waited
    )
    late = late or used.metrics_error is not None
    soon = job.ended_at is not None and now - job.ended_at < _LATE_METRICS_WITHIN
    return replace(used, is_late=late, should_wait=late and soon)


def _usage(job: Job, types: Mapping[str, InstanceType], attempt: Attempt) -> RunUsage:
    """What the run used; never less than the history has if the run was audited after its end.

    CloudWatch is not asked if it has nothing more: every metric was complete, only averages are
    left, or the run's own code hardly ran and its audit is final. An audit made before the run
    ended lacks its end.
    """
    head, ended_at, now = attempt.latest_summary, job.ended_at, attempt.now
    stored: RunUsage | None = None
    audited_before = head is not None and head.status in FINISHED and ended_at is not None
    if head is not None and ended_at is not None and audited_before:
        stored = stored_usage(head.key, job, types, attempt.deps.history)
        old, last = now - ended_at > _DETAILED_METRICS_KEPT, head.settled and _hardly_ran(job)
        complete = stored is not None and stored.has_all_hosts and _has_enough_points(stored.usage)
        if stored is not None and (old or last or complete):
            return stored
    usage = attempt.deps.metrics.read(job, now)
    error = _read_error(usage, stored) if audited_before else None
    if error is None:
        return RunUsage(usage)
    # a run judged by all hosts is not judged again by only some
    kept = stored if stored is not None and stored.has_all_hosts else RunUsage(usage)
    return replace(kept, metrics_error=error)


def _read_error(usage: Measurements, stored: RunUsage | None) -> str | None:
    """Why the answer is incomplete: denied, or with fewer points than stored; or None."""
    denied = [gap.reason for gap in usage.missing.values() if gap.code == METRIC_DENIED_CODE]
    if denied:
        return denied[0]
    fewer = stored is not None and _points(usage) < _points(stored.usage)
    return "CloudWatch answered with fewer points than before" if fewer else None


def _points(usage: Measurements) -> int:
    """The number of recorded points of all hosts and metrics."""
    return sum(len(line.present) for hosts in usage.series.values() for line in hosts.values())


def _has_enough_points(usage: Measurements) -> bool:
    """Whether the hosts' main metrics have enough points to judge by."""
    metrics = [Metric.CPU, *([Metric.GPU] if usage.gpus else [])]
    return all((usage.share(metric) or 0.0) >= MIN_COVERAGE for metric in metrics)


def _hardly_ran(job: Job) -> bool:
    seconds = own_code_s(job)
    return seconds is not None and seconds < _HARDLY_RAN_S


def _are_metrics_late(
    job: Job, usage: Measurements, *, now: datetime, has_waited: bool = False
) -> bool:
    """Whether metrics are incomplete and may still arrive, or the audit waited for them.

    However late a run's first audit is, another one follows while metrics may arrive. A run whose
    own code hardly ran gets only one more.
    """
    if has_waited and _hardly_ran(job):
        return False
    may_come = job.ended_at is not None and now - job.ended_at < METRIC_ARRIVAL_TIMEOUT
    if not (may_come or has_waited) or not job.elapsed_s or job.elapsed_s < MIN_ACTIVE_MINUTES * 60:
        return False
    missing = usage.missing.get(Metric.CPU)
    if missing is not None:
        return missing.code == "metric_missing"
    return not _has_enough_points(usage)
