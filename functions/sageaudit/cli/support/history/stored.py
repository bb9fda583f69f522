"""Reads runs to judge again from a history or from recordings, at packaged prices."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from sageaudit.adapters.files import recording
from sageaudit.adapters.history.in_memory import MemoryHistory
from sageaudit.adapters.prices import sources
from sageaudit.cli.support.recordings import recorded_run
from sageaudit.domain.audit.detail import detail_of
from sageaudit.domain.audit.document import document
from sageaudit.domain.audit.earlier import EarlierRun
from sageaudit.domain.audit.record import NOT_NAMED, Entry, Head, JobKey
from sageaudit.domain.job.family import FAMILY_VERSION, family
from sageaudit.domain.job.kinds import JobKind
from sageaudit.domain.policy.policy import Policy
from sageaudit.domain.usage.pooled_runs import PooledRuns
from sageaudit.errors import BadRecording, Malformed
from sageaudit.ports import History
from sageaudit.rules import catalogue
from sageaudit.workflows.audit import family_runs
from sageaudit.workflows.audit import reaudit as second_look
from sageaudit.workflows.audit.judge import audit_job, run_facts


@dataclass(frozen=True, slots=True)
class StoredRun:
    """One run as stored in the history, with the earlier runs of its family."""

    run: recorded_run.Run
    earlier: tuple[EarlierRun, ...]
    pool: PooledRuns | None


def history_of_recordings(paths: Sequence[Path]) -> tuple[History, list[Head]]:
    """An in-memory history of recorded jobs, and the heads of their runs, in order of job end.

    Raises BadRecording, naming file and key.
    """
    history, runs = MemoryHistory(), []
    for path in paths:
        recorded = recording.read(path)
        recordings = (recorded,) if isinstance(recorded, recording.Recording) else recorded.children
        try:
            runs += [(child, recorded_run.of_recording(child)) for child in recordings]
        except Malformed as error:
            raise BadRecording(f"{path}: {error}") from error
    # a tuning job without its training jobs has nothing to judge
    runs = [pair for pair in runs if pair[1].job.kind is not JobKind.TUNING]
    keys = [
        _keep(history, recorded, run)
        for recorded, run in sorted(runs, key=lambda pair: pair[1].now)
    ]
    return history, [head for key in dict.fromkeys(keys) if (head := history.head(key))]


def _keep(history: History, recorded: recording.Recording, run: recorded_run.Run) -> JobKey:
    """Audits one run under the default policy and records it."""
    job = replace(run.job, account=run.job.account or NOT_NAMED, region=run.job.region or NOT_NAMED)
    heads = family_runs.earlier_heads(job, family(job, Policy().family_tag), history, now=run.now)
    pool = family_runs.family_pool(job, run.usage, run.market, heads, history)
    ruleset = catalogue.ruleset()
    audit = audit_job(job, run.usage, run.market, Policy(), ruleset, now=run.now, pool=pool)
    key = JobKey(job.arn or job.name, job.created_at or job.started_at or run.now)
    history.record(
        Entry(
            key=key,
            last_modified_at=job.last_modified_at or run.now,
            document=document(audit),
            family_version=FAMILY_VERSION,
            fingerprint=job.fingerprint,
            detail=detail_of(recorded.describe, recorded.tags, run.usage),
            facts=run_facts(audit),
        )
    )
    return key


def stored_run(history: History, head: Head) -> StoredRun | None:
    """A run from the history; None if its details have expired or cannot be read."""
    kept = second_look.kept_run(head, history.detail(head.key))
    if kept is None:
        return None
    market = sources.offline_markets().market(kept.job, kept.now)
    run = recorded_run.Run(kept.job, kept.usage(market.types), market, kept.now)
    heads = family_runs.earlier_heads(run.job, head.family, history, now=run.now)
    pool = family_runs.family_pool(run.job, run.usage, run.market, heads, history)
    return StoredRun(run, family_runs.runs_of(heads), pool)
