"""The last look at a run that Describe does not answer any more, by what the history keeps."""

from __future__ import annotations

from sageaudit.domain.audit.document import AuditDocument, document
from sageaudit.domain.audit.record import Entry, Head, Verdict
from sageaudit.domain.audit.well_formed import reading
from sageaudit.workflows.audit.family_runs import heads_before
from sageaudit.workflows.audit.judge import run_facts
from sageaudit.workflows.audit.outcomes import Repeated, Settled
from sageaudit.workflows.audit.reaudit import (
    KeptRun,
    amended,
    kept_run,
    same_figures,
    settled,
    settled_document,
)
from sageaudit.workflows.audit.rechecks import RecordedRun, recheck_others
from sageaudit.workflows.audit.record import AuditInHand, judged


def settle(due: Head, why: str, audit: AuditInHand) -> Settled | Repeated:
    """A second look without Describe: judged by what is kept, else as it stands; the last one."""
    deps = audit.deps
    stored, kept = deps.history.audit(due.key), kept_run(due, deps.history.detail(due.key))
    if stored is None:
        return Repeated(due)
    with reading(stored):
        return _settled(due, stored, kept, why, audit)


def _settled(
    due: Head, stored: AuditDocument, kept: KeptRun | None, why: str, audit: AuditInHand
) -> Settled:
    deps, now = audit.deps, audit.now
    written, heads = settled_document(stored, why), heads_before(due, deps.history)
    facts, fingerprint = due.facts, due.fingerprint
    if kept is not None and kept.job.finished and not due.rollup:
        market = deps.markets.market(kept.job, now)
        made, _ = judged(kept.job, kept.usage(market.types), market, audit)
        made = made if made.final else settled(made, why)
        written = document(made)
        facts = due.facts if same_figures(stored, written) else run_facts(made)
        written = amended(stored, written)
    entry = Entry(
        key=due.key,
        last_modified_at=due.last_modified_at,
        document=written,
        family_version=due.family_version,
        fingerprint=fingerprint,
        detail=None,
        again=True,
        facts=facts,
        compared=None if due.rollup else heads,
    )
    recorded = deps.history.record(entry)
    if kept is not None and (recorded.verdict is Verdict.RECORDED or audit.retried):
        run = RecordedRun.of_job(kept.job, due.family, due.key, recorded.version)
        recheck_others(run, deps.history, now=now)
    return Settled(recorded, due.key, written)
