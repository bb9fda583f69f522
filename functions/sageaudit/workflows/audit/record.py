"""Judges a run, writes its audit into the history, and makes the audits due that depend on it."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from sageaudit.domain.audit.audit import Audit
from sageaudit.domain.audit.document import document
from sageaudit.domain.audit.record import NO_CREATION_TIME, Detail, Entry, Recorded, Verdict
from sageaudit.domain.audit.summary import AuditSummary, JobKey
from sageaudit.domain.job.family import FAMILY_VERSION
from sageaudit.domain.job.job import Job
from sageaudit.domain.job.kept import keep, kept_tags
from sageaudit.domain.prices.market import Market
from sageaudit.domain.usage.measurements import Measurements
from sageaudit.domain.usage.series_codec import pack
from sageaudit.errors import reading
from sageaudit.structs import replace
from sageaudit.workflows.audit.attempt import (
    Attempt,
    AuditDependencies,
    Audited,
    Caller,
    Repeated,
)
from sageaudit.workflows.audit.judge import audit_job, run_summary
from sageaudit.workflows.audit.read import RunUsage, Tags
from sageaudit.workflows.audit.reaudit import (
    amended,
    close_stored,
    closed,
    recheck_dependents,
    same_figures,
    with_recheck,
)
from sageaudit.workflows.audit.stored import FamilyRuns, earlier_heads, read_family, stored_run

MAX_BYTES = 200 * 1024
"""Of the packed series of one run."""


def judge_run(
    job: Job, usage: Measurements, market: Market, deps: AuditDependencies, *, now: datetime
) -> tuple[Audit, FamilyRuns]:
    """The audit of a run beside the earlier runs of its family."""
    family = read_family(job, usage, market, deps, now=now)
    audit = audit_job(
        job,
        usage,
        market,
        deps.policy,
        deps.ruleset,
        now=now,
        earlier=family.earlier,
        pool=family.pool,
    )
    return audit, family


def record_run(
    audit: Audit,
    attempt: Attempt,
    *,
    answer: Mapping[str, Any],
    tags: Tags,
    used: RunUsage,
    family: FamilyRuns,
) -> Audited:
    """Records the audit of a run that Describe answered, with what is kept to audit it again."""
    detail = detail_of(answer, tags.tags, used.usage)
    if used.stored is not None:
        detail = replace(detail, series=used.stored.series, note=used.stored.note)
    unread = (*attempt.deps.notes, *tags.notes, *filter(None, (detail.note,)))
    notes = tuple(dict.fromkeys(unread))
    audit = replace(audit, notes=(*audit.notes, *notes))
    complete = audit.job.finished and not used.late and not tags.late
    done = record(
        audit, attempt, complete=complete, detail=detail, used=used, compared=family.heads
    )
    _recheck_dependents(done.recorded, attempt)
    return replace(done, notes=notes)


def detail_of(answer: Mapping[str, Any], tags: Mapping[str, str], usage: Measurements) -> Detail:
    """The detail to store, with at most 200 KB of series; its note says what was left out."""
    packed, note = pack(usage), None
    if len(packed) > MAX_BYTES:
        packed = pack(usage, only_extremes=True)
        note = "series of the extreme hosts alone"
    if len(packed) > MAX_BYTES and usage.curves:
        packed = pack(usage, only_extremes=True, curves=False)
        note = "series of the extreme hosts alone; no curves"
    if len(packed) > MAX_BYTES:
        packed, note = b"", "the series were too large to keep"
    return Detail(keep(answer), kept_tags(tags), packed, note)


def record(
    audit: Audit,
    attempt: Attempt,
    *,
    complete: bool = True,
    detail: Detail | None = None,
    used: RunUsage | None = None,
    compared: tuple[AuditSummary, ...] | None = None,
) -> Audited:
    """Writes an audit under the job's ARN and creation time.

    `complete`: nothing of it was late. `used`: what its run used. `compared`: the earlier runs that
    it was judged with.
    """
    history, stored_use = attempt.deps.history, used is not None and used.stored is not None
    unread = used.unread if used else None
    blind = unread is not None and not stored_use
    audit = replace(audit, final=audit.final and complete)
    if attempt.deps.history_lasts or attempt.deps.metrics_may_come:
        audit = with_recheck(audit, attempt.now, reaudit=attempt.reaudits, unread=unread)
    job, ended = audit.job, attempt.ended
    created_at = job.created_at or job.started_at or ended.created_at or NO_CREATION_TIME
    modified_at = job.last_modified_at or job.ended_at or created_at
    key, made = JobKey(job.arn or ended.ref.arn, created_at), document(audit)
    run = run_summary(audit) if audit.usage is not None else None
    if attempt.known is not None and (attempt.reaudits or unread):
        stored = history.audit(key)
        with reading("stored audit"):
            if blind or (stored_use and stored is not None and same_figures(stored, made)):
                run = attempt.known
            made = amended(stored, made, blind=blind)
    entry = Entry(
        key=key,
        # An end time from the event alone must not look newer than a later Describe answer.
        last_modified_at=created_at if audit.unauditable else modified_at,
        document=made,
        family_version=FAMILY_VERSION,
        detail=None if blind else detail,
        run=run,
        compared=compared,
        again=attempt.again or attempt.reaudits,
    )
    return Audited(history.record(entry), key, made, audit, reaudited=attempt.reaudits)


def close(attempt: Attempt, known: AuditSummary, why: str) -> Audited | Repeated:
    """Makes the audit of a run that Describe does not answer any more final.

    It is judged once more by what the history keeps of the run, else it stands as it is.
    """
    history = attempt.deps.history
    stored = history.audit(known.key)
    if stored is None:
        return Repeated(known)
    with reading("stored audit"):
        made, run = close_stored(stored, why), known
        compared: tuple[AuditSummary, ...] | None = earlier_heads(known, history)
        if (judged := _judged_as_stored(known, attempt)) is not None:
            audit, family = judged
            again = document(audit if audit.final else closed(audit, why))
            run = known if same_figures(stored, again) else run_summary(audit)
            made, compared = amended(stored, again), family.heads
    entry = Entry(
        key=known.key,
        last_modified_at=known.last_modified_at,
        document=made,
        family_version=known.family_version,
        detail=None,
        again=True,
        run=run,
        compared=None if known.rollup else compared,
    )
    recorded = history.record(entry)
    if not known.rollup:
        _recheck_dependents(recorded, attempt)
    return Audited(recorded, known.key, made, None, reaudited=True)


def _recheck_dependents(recorded: Recorded, attempt: Attempt) -> None:
    if recorded.head is not None and recorded.verdict is not Verdict.OLDER:
        new = recorded.verdict is Verdict.RECORDED or attempt.caller is Caller.REDELIVERY
        recheck_dependents(recorded.head, attempt.deps.history, now=attempt.now, new_version=new)


def _judged_as_stored(known: AuditSummary, attempt: Attempt) -> tuple[Audit, FamilyRuns] | None:
    """The run judged by what is kept of it; None of a roll-up, and where its details are gone."""
    deps, now = attempt.deps, attempt.now
    run = None if known.rollup else stored_run(known, deps.history)
    if run is None or not run.job.finished:
        return None
    market = deps.markets.market(run.job, now)
    return judge_run(run.job, run.usage(market.types), market, deps, now=now)
