"""Reads a run from the history: its audit, details, jobs, and the earlier runs of its family."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from itertools import islice
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from sageaudit.domain.audit.document import SCHEMA, AuditDocument
from sageaudit.domain.audit.record import MAX_EARLIER_RUNS, NO_CREATION_TIME, Detail, RunQuery
from sageaudit.domain.audit.summary import COMPARED_FIELDS, AuditSummary, JobKey
from sageaudit.domain.job.course import as_of
from sageaudit.domain.job.describe import filter_tags, latest_time, parse
from sageaudit.domain.job.job import FINISHED, Job
from sageaudit.domain.moments import parse_moment
from sageaudit.domain.prices.market import InstanceType, Market
from sageaudit.domain.usage.judged_use import PooledRuns, pool_runs, short_run_usage
from sageaudit.domain.usage.measurements import Measurements
from sageaudit.domain.usage.packing import pack, unpack
from sageaudit.errors import JobNotFound, MalformedData, UnreadableItem
from sageaudit.output.text.words import count_text
from sageaudit.ports import History
from sageaudit.structs import replace

if TYPE_CHECKING:
    from sageaudit.domain.guides import GuideDocument

MAX_DETAIL_BYTES = 200 * 1024
"""The maximum size of a run's packed series in its details."""
_POOL_RUNS = 9
"""How many earlier runs are read to judge a short run (our choice). Each has about 3 KB."""
_POOL_WITHIN = timedelta(days=30)
"""The measurements of a short run are judged together with those of earlier runs. Runs that are
older than this are not used, as they may have run other code (our choice)."""
_POOLED_STATUSES = frozenset({"Completed", "Stopped"})
"""The statuses of the earlier runs that are used. A failed run says little about a working run."""


def read_audit(history: History, key: JobKey, version: int | None = None) -> AuditDocument | None:
    """Returns an audit's document, by default of the newest version.

    Returns None if it does not exist, is damaged, or has the schema of another release.
    """
    try:
        document = history.audit(key, version)
    except UnreadableItem:
        return None
    return document if document and document.get("schema") == SCHEMA else None


def require_audit(
    history: History, summary: AuditSummary, version: int | None = None
) -> AuditDocument:
    """Returns a run's audit, by default its newest version.

    Raises JobNotFound if it cannot be read, or if there is no such version.
    """
    document = read_audit(history, summary.key, version)
    if document is None and version in {None, *range(1, summary.version + 1)}:
        raise JobNotFound(f"the stored audit of {summary.job} cannot be read: audit it again")
    if document is None:
        raise JobNotFound(
            f"{summary.job} has no version {version}: it has"
            f" {count_text(summary.version, 'version')}"
        )
    return document


def make_detail(
    stored_answer: Mapping[str, Any],
    tags: Mapping[str, str],
    usage: Measurements,
    stored_detail: Detail | None = None,
) -> Detail:
    """Returns the detail to store, with at most 200 KB of series. Its note says what was left out.

    `stored_answer` is the stored form of the Describe answer.
    If `stored_detail` is given, its series are kept.
    """
    if stored_detail is not None:
        return replace(stored_detail, describe={**stored_answer}, tags=filter_tags(tags))
    packed_series, note = pack(usage, MAX_DETAIL_BYTES)
    return Detail({**stored_answer}, filter_tags(tags), packed_series, note)


class RunUsage(Struct, frozen=True):
    """What a run used.

    `stored_detail` is the source of `usage`; None if CloudWatch was read. `metrics_error` says why
    CloudWatch could not be read again. `is_late` means that metrics may still arrive, `should_wait`
    that they may arrive soon enough to wait for them.
    """

    usage: Measurements
    stored_detail: Detail | None = None
    metrics_error: str | None = None
    is_late: bool = False
    should_wait: bool = False

    @property
    def has_nothing_to_judge(self) -> bool:
        """True if metrics could not be read and the history has none."""
        return self.metrics_error is not None and self.stored_detail is None

    @property
    def has_all_hosts(self) -> bool:
        """True if `usage` has the series of all hosts."""
        return self.stored_detail is None or self.stored_detail.note is None


def stored_usage(
    key: JobKey, job: Job, types: Mapping[str, InstanceType], history: History
) -> RunUsage | None:
    """Returns a run's usage from the history; None if no series are stored."""
    detail = _detail_with_series(key, history)
    return RunUsage(unpack(detail.series, job, types), detail) if detail else None


def _detail_with_series(key: JobKey, history: History) -> Detail | None:
    detail = history.detail(key)
    return detail if detail and detail.series else None


def stored_run(summary: AuditSummary, history: History) -> tuple[Job, Detail] | None:
    """Returns a run's job as of its end, and its details.

    Returns None if the details have expired, have no series, or cannot be read.
    """
    detail = _detail_with_series(summary.key, history)
    if detail is None:
        return None
    try:
        job = parse(detail.describe, detail.tags, account=summary.account, region=summary.region)
    except MalformedData:
        return None
    job = replace(job, fingerprint=summary.fingerprint)
    return as_of(job, job.ended_at or latest_time(detail.describe) or summary.ended_at), detail


def read_earlier_runs(summary: AuditSummary, history: History) -> tuple[AuditSummary, ...]:
    """Returns the earlier runs of a run's family, newest first."""
    return runs_before(summary.ended_at, history, summary.account, summary.region, summary.family)


def runs_before(
    moment: datetime, history: History, account: str, region: str, family: str
) -> tuple[AuditSummary, ...]:
    """Returns a family's last runs that ended before `moment`, newest first.

    They have only the COMPARED_FIELDS.
    """
    query = RunQuery.for_family(account, region, family)
    runs = history.runs(
        query, ended_before=moment, page_size=MAX_EARLIER_RUNS, fields=COMPARED_FIELDS
    )
    return tuple(islice(runs, MAX_EARLIER_RUNS))


def iterate_family_runs(
    history: History,
    account: str,
    region: str,
    family: str,
    *,
    page_size: int | None = None,
) -> Iterator[AuditSummary]:
    """Yields a family's runs, newest first. One query reads `page_size` runs."""
    return history.runs(RunQuery.for_family(account, region, family), page_size=page_size)


def comparable_runs(summaries: Sequence[AuditSummary]) -> tuple[AuditSummary, ...]:
    """Returns the runs with which a rule may compare: finished runs that are not roll-ups."""
    finished = (summary for summary in summaries if summary.status in FINISHED)
    return tuple(summary for summary in finished if summary.is_comparable)


def pool_of(
    job: Job,
    usage: Measurements,
    market: Market,
    family_runs: Sequence[AuditSummary],
    history: History,
) -> PooledRuns | None:
    """Returns the minutes of a short run and of its family's last runs; None for a longer run.

    The last runs are short, of the same kind, on the same instances, and did not fail.
    """
    short_usage = short_run_usage(usage)
    if short_usage is None or not job.finished:
        return None
    similar_runs = [run for run in family_runs if _can_pool(job, run)]
    return pool_runs(short_usage, _iterate_usages(similar_runs[:_POOL_RUNS], job, market, history))


def _can_pool(job: Job, earlier_run: AuditSummary) -> bool:
    if job.ended_at is None or len(job.groups) != 1 or earlier_run.use_digest is None:
        return False
    group = job.groups[0]
    return (
        earlier_run.is_comparable
        and earlier_run.status in _POOLED_STATUSES
        and earlier_run.kind == job.kind.value
        and earlier_run.ended_at >= job.ended_at - _POOL_WITHIN
        and (earlier_run.instance_type, earlier_run.instance_count)
        == (group.instance_type, group.count)
    )


def _iterate_usages(
    runs: Sequence[AuditSummary], job: Job, market: Market, history: History
) -> Iterator[tuple[str, Measurements]]:
    # Leaves out runs whose details have expired.
    for run in runs:
        if run_usage := stored_usage(run.key, job, market.types, history):
            yield run.job, run_usage.usage


def read_children(job: Job, history: History) -> list[AuditSummary]:
    """Returns a roll-up's audited jobs, without those of an earlier roll-up with the same name."""
    key = JobKey(job.arn or "", job.created_at) if job.created_at else None
    return [
        summary
        for summary in iterate_family_runs(
            history, job.account or "", job.region or "", job.arn or ""
        )
        if not summary.rollup and (key is None or is_child(summary.key, key, job.ended_at))
    ]


def count_children(rollup: AuditSummary, history: History) -> int:
    """Returns the number of a roll-up's audited jobs. Their costs add up to its cost."""
    return sum(
        not run.rollup and is_child(run.key, rollup.key, rollup.ended_at)
        for run in iterate_family_runs(history, rollup.account, rollup.region, rollup.family)
    )


def is_child(key: JobKey, rollup: JobKey, rollup_ended_at: datetime | None) -> bool:
    """Returns True if the job was created while the roll-up ran, or if a creation
    time is unknown.
    """
    if NO_CREATION_TIME in {key.created_at, rollup.created_at}:
        return True
    is_after_end = rollup_ended_at is not None and key.created_at > rollup_ended_at
    return key.created_at >= rollup.created_at and not is_after_end


def version_keys(summaries: Sequence[AuditSummary]) -> set[tuple[JobKey, int]]:
    """Returns the key and version of each run."""
    return {(summary.key, summary.version) for summary in summaries}


def read_guides(
    history: History, document: AuditDocument, types: Mapping[str, InstanceType]
) -> list[GuideDocument]:
    """Returns the guides for an audit, chosen by the stored run and its family. Raises AwsError."""
    from sageaudit.domain.guides import select_guides, traits_of_audit  # noqa: PLC0415 - Lambda needs none

    job = document["job"]
    created_text = job["created_at"] or job["started_at"]
    created_at = parse_moment(created_text) if created_text else NO_CREATION_TIME
    summary = history.summary(JobKey(job["arn"] or job["name"], created_at))
    if summary is None:
        return select_guides(traits_of_audit(document, None, None, (), types))
    runs = comparable_runs(read_earlier_runs(summary, history))
    return select_guides(
        traits_of_audit(document, _described_job(summary, history), summary, runs, types)
    )


def _described_job(summary: AuditSummary, history: History) -> Job | None:
    """Returns a run's job; None if its details have expired (after 90 days) or cannot be read."""
    try:
        detail = history.detail(summary.key)
        if detail is None:
            return None
        return parse(detail.describe, detail.tags, account=summary.account, region=summary.region)
    except MalformedData:
        return None
