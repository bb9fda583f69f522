"""The earlier runs of a job's family: what a run is compared with, and judged by if it is short.

A run is judged by the runs that ended before it, whichever was audited first: audits that were made
without one of them are made again (`recheck_dependents`).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta
from itertools import islice

from msgspec import Struct

from sageaudit.domain.audit.record import FAMILY_RUNS, NOT_NAMED, RunQuery
from sageaudit.domain.audit.summary import AuditSummary
from sageaudit.domain.job.family import family
from sageaudit.domain.job.job import FINISHED, Job
from sageaudit.domain.prices.market import Market
from sageaudit.domain.usage.judged_use import PooledRuns, pooled, short_use
from sageaudit.domain.usage.measure import unpack
from sageaudit.domain.usage.measurements import Measurements
from sageaudit.ports import History
from sageaudit.workflows.audit.attempt import AuditDependencies

POOL_RUNS = 9
"""Most earlier runs that are read to judge a short one, each some 3 KB: our choice."""
POOL_WITHIN = timedelta(days=30)
"""Older runs of a family may be of other code: our choice, as for its dollars in messages."""
_WORKED = frozenset({"Completed", "Stopped"})
"""A run that failed says little of one that works."""


class FamilyRuns(Struct, frozen=True):
    """The runs of a family that ended before one of its runs, newest first.

    `heads` are all of them, `earlier` those that a rule may compare with; both are None where no
    history was read. `pool`: the minutes of a short run
    with those of its family's last runs; None for any other run.
    """

    heads: tuple[AuditSummary, ...] | None
    earlier: tuple[AuditSummary, ...] | None
    pool: PooledRuns | None


def read_family(
    job: Job, usage: Measurements, market: Market, deps: AuditDependencies, *, now: datetime
) -> FamilyRuns:
    """The runs that ended before a run, in one query; for a short one some of their details."""
    place = job.account or NOT_NAMED, job.region or NOT_NAMED
    name, before = family(job, deps.policy.family_tag), job.ended_at or now
    heads = _newest(deps.history, RunQuery.of_family(*place, name), before)
    pool = family_pool(job, usage, market, heads, deps.history)
    if not deps.history_lasts:
        return FamilyRuns(None, None, pool)
    return FamilyRuns(heads, runs_of(heads), pool)


def earlier_heads(head: AuditSummary, history: History) -> tuple[AuditSummary, ...]:
    """The same for a run that is known by its head alone."""
    query = RunQuery.of_family(head.account, head.region, head.family)
    return _newest(history, query, head.ended_at)


def _newest(
    history: History, query: RunQuery[AuditSummary], before: datetime
) -> tuple[AuditSummary, ...]:
    runs = history.runs(query, before=before, page_size=FAMILY_RUNS)
    return tuple(islice(runs, FAMILY_RUNS))


def runs_of(heads: Sequence[AuditSummary]) -> tuple[AuditSummary, ...]:
    """Those that a rule may compare with: no roll-ups, and no run that has not ended."""
    ended = (head for head in heads if head.status in FINISHED)
    return tuple(head for head in ended if head.is_comparable)


def family_pool(
    job: Job, usage: Measurements, market: Market, heads: Sequence[AuditSummary], history: History
) -> PooledRuns | None:
    """The minutes of a short run with those of its family's last runs; None for any other run.

    Those are short runs of one kind on the same instances that did not fail.
    """
    own = short_use(usage)
    if own is None or not job.finished:
        return None
    alike = [head for head in heads if _may_pool(job, head)]
    return pooled(own, _uses(alike[:POOL_RUNS], job, market, history))


def _may_pool(job: Job, head: AuditSummary) -> bool:
    """Whether a short run may be judged with an earlier run of its family."""
    if job.ended_at is None or len(job.groups) != 1 or head.use_digest is None:
        return False
    group = job.groups[0]
    return (
        head.is_comparable
        and head.status in _WORKED
        and head.kind == job.kind.value
        and head.ended_at >= job.ended_at - POOL_WITHIN
        and (head.instance_type, head.instance_count) == (group.instance_type, group.count)
    )


def _uses(
    heads: Sequence[AuditSummary], job: Job, market: Market, history: History
) -> Iterator[tuple[str, Measurements]]:
    """What each run used; without those whose details have expired. Read as they are needed."""
    for head in heads:
        detail = history.detail(head.key)
        if detail is not None and detail.series:
            yield head.job, unpack(detail.series, job, market.types)
