"""Audits that are made once more: when, what is recorded of them, and which others follow.

An audit is due again while a figure may still change: a warm pool has not ended, metrics were late,
jobs of a roll-up were not audited, or a run of the family was audited later. That ends
a day after the job's end, so that no audit is due for ever.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from decimal import Decimal
from itertools import islice

from sageaudit.domain.audit.audit import Audit
from sageaudit.domain.audit.document import AuditDocument
from sageaudit.domain.audit.finding_document import FindingDocument
from sageaudit.domain.audit.summary import AuditSummary, JobKey
from sageaudit.domain.job.ref import rollup_of
from sageaudit.domain.sweep import LONGEST_LIFE
from sageaudit.domain.usage.measurements import METRICS_COME_WITHIN
from sageaudit.ports import History
from sageaudit.structs import replace
from sageaudit.workflows.audit.stored import family_runs, is_child

LAST_REAUDIT_AFTER = METRICS_COME_WITHIN
"""Metrics and jobs of a roll-up that are missing a day after the end do not come any more: our
choice. A warm pool is kept for 6 hours at most."""
RECHECK_AFTER = timedelta(hours=1)
"""The first pause before an audit is made again; each later one is as long as the time since the
end."""
_POOL_AGAIN = timedelta(minutes=30)
"""SageMaker may say some minutes later that a pool has ended."""
_SUM_FINAL_AFTER = timedelta(hours=1)
_NEWEST = 10
"""A roll-up ends after its jobs, or together with the last of them."""
_CLOSED = "closed: "
"""Begins the note of an audit that is final although something was missing."""
_SAME_USD = Decimal("0.01")
_SAME_SHARE = Decimal("0.01")
"""Series are kept to a tenth of a percent: dollars that differ less than this are the same."""


def with_recheck(audit: Audit, now: datetime, *, reaudit: bool, unread: str | None = None) -> Audit:
    """An audit that is not final, with the time at which it is made again, or closed.

    `unread`: why a reaudit could not read metrics. The pauses grow with the time since the end. A
    job that has not ended is audited each hour, for as long as a job can last.
    """
    if audit.final:
        return audit
    if not reaudit:
        return replace(audit, recheck_at=audit.recheck_at or now + RECHECK_AFTER)
    ended_at, created_at = audit.job.ended_at, audit.job.created_at
    if ended_at is None:
        if created_at is not None and now - created_at > LONGEST_LIFE + LAST_REAUDIT_AFTER:
            return closed(audit, "it was audited again for 31 days and did not end")
        return replace(audit, recheck_at=now + RECHECK_AFTER)
    if now >= ended_at + LAST_REAUDIT_AFTER:
        missing = f"its metrics could not be read again ({unread})" if unread else None
        return closed(audit, missing or "what was missing did not come within a day")
    if audit.recheck_at is not None:
        return replace(audit, recheck_at=max(audit.recheck_at, now + _POOL_AGAIN))
    pause = max(RECHECK_AFTER, now - ended_at)
    return replace(audit, recheck_at=min(now + pause, ended_at + LAST_REAUDIT_AFTER))


def closed(audit: Audit, why: str) -> Audit:
    """The audit as the last one of its run, with a note."""
    return replace(audit, final=True, recheck_at=None, notes=(*audit.notes, f"{_CLOSED}{why}"))


def _closed_document(document: AuditDocument, *notes: str) -> AuditDocument:
    """A stored audit as the last one of its run: its figures as they are, and these notes."""
    audit = document["audit"]
    coverage = {**audit["coverage"], "missing": [*audit["coverage"]["missing"], *notes]}
    final = {**audit, "settled": True, "due_at": None, "coverage": coverage}
    return {**document, "audit": final}  # type: ignore[typeddict-item]


def close_stored(document: AuditDocument, why: str) -> AuditDocument:
    """The same with the reason as its note; a final audit stays as it is."""
    final = document["audit"]["settled"]
    return document if final else _closed_document(document, f"{_CLOSED}{why}")


def amended(
    stored: AuditDocument | None, made: AuditDocument, *, keeps_figures: bool = False
) -> AuditDocument:
    """What a reaudit records: the stored audit, unless a figure of it has changed.

    A figure changes by more than the rounding of kept series. The stored audit is closed where this
    reaudit is the last. `keeps_figures`: it had no metrics to judge by, so that the stored stay.
    """
    if stored is None or not (keeps_figures or same_figures(stored, made)):
        return made
    before, after = stored["audit"], made["audit"]
    if before["settled"] or not after["settled"]:
        settled, due_at = after["settled"], after["due_at"]
        return {**stored, "audit": {**before, "settled": settled, "due_at": due_at}}
    return _closed_document(
        stored, *(n for n in after["coverage"]["missing"] if n.startswith(_CLOSED))
    )


def same_figures(one: AuditDocument, other: AuditDocument) -> bool:
    """Whether two audits of a run say the same in dollars, findings and what is not known."""
    amounts = (
        (one["bill"]["total_usd"], other["bill"]["total_usd"]),
        (one["lost_up_to_usd"], other["lost_up_to_usd"]),
        *((one[key], other[key]) for key in ("avoidable_usd", "lost_usd", "possible_usd")),
    )
    return (
        _words(one) == _words(other)
        and all(_same_usd(*pair) for pair in amounts)
        and _same_findings(one["findings"], other["findings"])
    )


def _words(document: AuditDocument) -> tuple[object, ...]:
    job, bill = document["job"], document["bill"]
    return (
        *(job["status"], job["family"], job["owner"], job["tags"], job["ended_at"]),
        *(bill["complete"], bill["missing"], document["judged"], document["unauditable"]),
    )


def _same_findings(one: list[FindingDocument], other: list[FindingDocument]) -> bool:
    """In any order: that of two findings may hang on a cent."""
    first, second = (sorted(rows, key=_identity) for rows in (one, other))
    return len(first) == len(second) and all(
        _identity(a) == _identity(b) and _same_usd(a["saving_usd"], b["saving_usd"])
        for a, b in zip(first, second, strict=True)
    )


def _identity(finding: FindingDocument) -> tuple[str, ...]:
    keys = ("id", "bucket", "severity", "confidence", "exempt", "reported_for_run")
    return tuple(str(finding.get(key)) for key in keys)


def _same_usd(one: Decimal | None, other: Decimal | None) -> bool:
    if one is None or other is None:
        return one is other
    return abs(one - other) <= max(_SAME_USD, _SAME_SHARE * max(abs(one), abs(other)))


def recheck_dependents(
    run: AuditSummary, history: History, *, now: datetime, new_version: bool = True
) -> None:
    """Makes due, as of `now`, the audits that would be other ones since this run was recorded.

    Those are runs of its family, itself among them, and of a new version the final sum of its
    roll-up: of a job's first audit soon after its end, no sum can be final yet. Of a sum, itself:
    it may have been made while one of its jobs was audited. A process can stop, or the
    table fail, between a record and this, so it is done again where the message comes back: a
    second time changes nothing.
    """
    if run.stamp is not None and not run.rollup:  # else no run is compared with it
        history.recheck_family(
            run.key,
            account=run.account,
            region=run.region,
            family=run.family,
            ended_at=run.ended_at,
            due_at=now,
        )
    for key in _final_sums(run, history, now=now, new_version=new_version):
        history.make_due(key, now)


def _final_sums(
    run: AuditSummary, history: History, *, now: datetime, new_version: bool
) -> list[JobKey]:
    """The final sums that have this run, or that this is."""
    if run.rollup:
        return [run.key] if run.settled else []
    soon = run.version == 1 and now - run.ended_at < _SUM_FINAL_AFTER
    if not new_version or soon or rollup_of(run.family) is None:
        return []
    newest = family_runs(history, run.account, run.region, run.family, page=_NEWEST)
    return [
        head.key
        for head in islice(newest, _NEWEST)
        if head.rollup and head.settled and is_child(run.key, head.key, head.ended_at)
    ]
