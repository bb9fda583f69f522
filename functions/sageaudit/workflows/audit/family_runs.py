"""The earlier runs of a job's family: what a run is compared with, and judged by if it is short.

A run is judged by the runs that ended before it, whichever was audited first: `rechecks.py` makes
the audits due that were made without one of them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime, timedelta
from itertools import islice

from sageaudit.domain.audit.earlier import EarlierRun
from sageaudit.domain.audit.record import FAMILY_RUNS, Head, RunQuery, earlier_run
from sageaudit.domain.job.job import FINISHED, Job
from sageaudit.domain.prices.market import Market
from sageaudit.domain.usage.measurements import Measurements
from sageaudit.domain.usage.pooled_runs import PooledRuns, pooled, short_use
from sageaudit.domain.usage.series_codec import unpack
from sageaudit.ports import History

POOL_RUNS = 9
"""Most earlier runs that are read to judge a short one, each some 3 KB: our choice."""
_WORKED = frozenset({"Completed", "Stopped"})
"""A run that failed says little of one that works."""
POOL_WITHIN = timedelta(days=30)
"""Older runs of a family may be of other code: our choice, as for its dollars in messages."""


def earlier_heads(job: Job, named: str, history: History, *, now: datetime) -> tuple[Head, ...]:
    """The newest runs of a job's family that ended before it, in one query."""
    family = RunQuery.of_family(job.account or "", job.region or "", named)
    return _newest(history, family, job.ended_at or now)


def heads_before(head: Head, history: History) -> tuple[Head, ...]:
    """The same for a run that is known by its head alone."""
    family = RunQuery.of_family(head.account, head.region, head.family)
    return _newest(history, family, head.ended_at)


def _newest(history: History, family: RunQuery[Head], before: datetime) -> tuple[Head, ...]:
    runs = history.runs(family, before=before, page_size=FAMILY_RUNS)
    return tuple(islice(runs, FAMILY_RUNS))


def runs_of(heads: Sequence[Head]) -> tuple[EarlierRun, ...]:
    """Those that a rule may compare with: no roll-ups, and no run that has not ended."""
    ended = (head for head in heads if head.status in FINISHED)
    return tuple(run for head in ended if (run := earlier_run(head)) is not None)


def family_pool(
    job: Job, usage: Measurements, market: Market, heads: Sequence[Head], history: History
) -> PooledRuns | None:
    """The minutes of a short run with those of its family's last runs; None for any other run.

    Reads the details of at most POOL_RUNS earlier runs: short ones of one kind on the same
    instances that did not fail.
    """
    runs = ((head, run) for head in heads if (run := earlier_run(head)) is not None)
    alike = (head for head, run in runs if may_pool(job, run))
    return pool_of(job, usage, _uses(islice(alike, POOL_RUNS), job, market, history))


def pool_of(
    job: Job, usage: Measurements, runs: Iterable[tuple[str, Measurements]]
) -> PooledRuns | None:
    """The pool of a short run with these runs that it may be judged with, newest first."""
    own = short_use(usage)
    return None if own is None or not job.finished else pooled(own, runs)


def may_pool(job: Job, run: EarlierRun) -> bool:
    """Whether a short run may be judged with an earlier run of its family."""
    if job.ended_at is None or len(job.groups) != 1 or run.facts.use_digest is None:
        return False
    group, facts = job.groups[0], run.facts
    return (
        run.status in _WORKED
        and run.kind == job.kind.value
        and run.ended_at >= job.ended_at - POOL_WITHIN
        and (facts.instance_type, facts.instance_count) == (group.instance_type, group.count)
    )


def _uses(
    heads: Iterable[Head], job: Job, market: Market, history: History
) -> Iterator[tuple[str, Measurements]]:
    """What each run used; without those whose details have expired."""
    for head in heads:
        detail = history.detail(head.key)
        if detail is not None and detail.series:
            yield head.name, unpack(detail.series, job, market.types)
