"""One audit in hand: how it is judged, when it is due again, and how it is recorded."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from sageaudit.domain.audit.audit import Audit
from sageaudit.domain.audit.document import document
from sageaudit.domain.audit.record import NO_CREATION_TIME, Detail, Entry, Head, JobKey
from sageaudit.domain.audit.well_formed import reading
from sageaudit.domain.job.event import JobEnded
from sageaudit.domain.job.family import FAMILY_VERSION, family
from sageaudit.domain.job.job import Job
from sageaudit.domain.prices.market import Market
from sageaudit.domain.usage.measurements import Measurements
from sageaudit.workflows.audit.family_runs import earlier_heads, family_pool, runs_of
from sageaudit.workflows.audit.judge import audit_job, run_facts
from sageaudit.workflows.audit.outcomes import AuditDependencies, Done
from sageaudit.workflows.audit.reaudit import Used, amended, same_figures, with_next_look
from sageaudit.workflows.audit.waits import Deliveries, Later, Wait, later

RECHECK_AFTER = timedelta(hours=1)


@dataclass(frozen=True, slots=True)
class AuditInHand:
    """One audit in hand: of which event, with what, as of when, and what it may wait for."""

    ended: JobEnded
    deps: AuditDependencies
    now: datetime
    deliveries: Deliveries | None
    again: bool
    retried: bool = False
    """Whether an earlier delivery may have recorded it and done nothing more."""
    known: Head | None = None
    """The newest audit of the run."""
    due: Head | None = None
    """The same, where it is due: this is a second look."""

    def later(self, wait: Wait, reason: str) -> Later | None:
        """The next wait for this reason, if there is one."""
        return later(wait, self.deliveries, reason)


def judged(
    job: Job, usage: Measurements, market: Market, audit: AuditInHand
) -> tuple[Audit, tuple[Head, ...] | None]:
    """The audit, and the earlier runs that it was judged with."""
    deps, heads = audit.deps, _earlier(job, audit.deps, now=audit.now)
    made = audit_job(
        job,
        usage,
        market,
        deps.policy,
        deps.ruleset,
        now=audit.now,
        earlier=None if heads is None else runs_of(heads),
        pool=None if heads is None else family_pool(job, usage, market, heads, deps.history),
    )
    return made, heads


def provisional(audit: Audit, now: datetime) -> Audit:
    """The audit of a job that is due again: it has not ended, or its metrics are late."""
    return replace(audit, final=False, recheck_at=audit.recheck_at or now + RECHECK_AFTER)


def open_again(made: Audit, audit: AuditInHand) -> Audit:
    """An audit that is due again; of a second look, `with_next_look` says when."""
    return provisional(made, audit.now) if audit.due is None else replace(made, final=False)


def _earlier(job: Job, deps: AuditDependencies, *, now: datetime) -> tuple[Head, ...] | None:
    if not deps.history_is_whole:
        return None
    named = family(job, deps.policy.family_tag)
    return earlier_heads(job, named, deps.history, now=now)


def record(
    made: Audit,
    audit: AuditInHand,
    detail: Detail | None = None,
    *,
    compared: tuple[Head, ...] | None = None,
    of: Used | None = None,
) -> Done:
    """Writes an audit under the job's ARN and creation time. `of`: what its run used."""
    kept, unread = (of.kept is not None, of.unread) if of else (False, None)
    blind = unread is not None and not kept
    if audit.due is not None:
        made = with_next_look(made, audit.now, unread)
    known = audit.due or (audit.known if unread else None)
    job, ended = made.job, audit.ended
    created_at = job.created_at or job.started_at or ended.created_at or NO_CREATION_TIME
    modified_at = job.last_modified_at or job.ended_at or created_at
    key, written = JobKey(job.arn or ended.ref.arn, created_at), document(made)
    facts = run_facts(made) if made.usage is not None else None
    if known is not None:
        stored = audit.deps.history.audit(key)
        with reading(stored):
            if blind or (kept and stored is not None and same_figures(stored, written)):
                facts = known.facts
            written = amended(stored, written, blind=blind)
    recorded = audit.deps.history.record(
        Entry(
            key=key,
            # An end time from the event alone must not look newer than a later Describe answer.
            last_modified_at=created_at if made.unauditable else modified_at,
            document=written,
            family_version=FAMILY_VERSION,
            fingerprint=job.fingerprint,
            detail=None if blind else detail,
            facts=facts,
            compared=compared,
            again=audit.again,
        )
    )
    return Done(recorded, key, made, written, was_due=audit.due is not None)
