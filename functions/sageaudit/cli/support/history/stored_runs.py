"""Reads what is stored of runs: to judge them again, or a run that has not begun by them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

from sageaudit.adapters.history.sqlite.history import SqliteHistory
from sageaudit.adapters.prices import sources
from sageaudit.cli.support.recordings.recorded_audits import audit_recordings
from sageaudit.cli.support.recordings.recorded_jobs import Run, recorded_jobs
from sageaudit.domain.audit.earlier import EarlierRun
from sageaudit.domain.audit.record import FAMILY_RUNS, NOT_NAMED, Head, RunQuery
from sageaudit.domain.policy.policy import Policy
from sageaudit.domain.usage.pooled_runs import PooledRuns
from sageaudit.errors import BadRecording
from sageaudit.ports import History
from sageaudit.workflows.audit.family import earlier_heads, family_pool, runs_of
from sageaudit.workflows.audit.read import stored_run
from sageaudit.workflows.audit.whole_audit import whole_audit
from sageaudit.workflows.check.run import FamilyHistory, PlannedJob

_AUDITS = 3
"""The newest audits whose advice is compared with a request: older advice may be outdated."""


@dataclass(frozen=True, slots=True)
class FamilyRun:
    """One run as stored in the history, with the earlier runs of its family."""

    run: Run
    earlier: tuple[EarlierRun, ...]
    pool: PooledRuns | None


def history_of_recordings(paths: Sequence[Path]) -> tuple[History, list[Head]]:
    """An in-memory history of recorded jobs, and the heads of their runs, in order of job end.

    Raises BadRecording, naming file and key.
    """
    history = SqliteHistory()
    for audit in audit_recordings(paths, Policy(), history, lasts=False):
        if isinstance(audit, BadRecording):
            raise audit
    # a tuning job without its training jobs has nothing to judge
    jobs = [job for path in paths for job in recorded_jobs(path) if not job.is_rollup]
    keys = dict.fromkeys(job.key for job in sorted(jobs, key=lambda job: job.read_at))
    return history, [head for key in keys if (head := history.head(key))]


def run_of_head(history: History, head: Head) -> FamilyRun | None:
    """A run from the history; None if its details have expired or cannot be read."""
    stored = stored_run(head, history)
    if stored is None:
        return None
    market = sources.offline_markets().market(stored.job, stored.now)
    run = Run(stored.job, stored.usage(market.types), market, stored.now)
    heads = earlier_heads(head, history)
    pool = family_pool(run.job, run.usage, run.market, heads, history)
    return FamilyRun(run, runs_of(heads), pool)


def read_family(history: History, planned: PlannedJob) -> FamilyHistory:
    """The family of a job that has not run: its newest runs in one query, and the last audits,
    those of runs on the same instances first.

    Raises AwsError.
    """
    job = planned.job
    query = RunQuery.of_family(job.account or NOT_NAMED, job.region or NOT_NAMED, planned.family)
    heads = tuple(islice(history.runs(query, page_size=FAMILY_RUNS), FAMILY_RUNS))
    group = job.groups[0] if len(job.groups) == 1 else None
    asked = (group.instance_type, group.count) if group else None
    first = sorted(heads, key=lambda head: asked is None or _instances(head) != asked)[:_AUDITS]
    found = (whole_audit(history, head.key) for head in first)
    return FamilyHistory(runs_of(heads), tuple(audit for audit in found if audit is not None))


def _instances(head: Head) -> tuple[str | None, int | None]:
    facts = head.facts
    return (facts.instance_type, facts.instance_count) if facts else (None, None)
