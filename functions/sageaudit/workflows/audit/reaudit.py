"""Repeats audits: when one is due again, what a reaudit records, and which others become due.

An audit is due again while a figure may still change: a warm pool has not ended, metrics were late,
jobs of a roll-up were not audited, or a run of the family was audited later. Reaudits stop a day
after the job's end, so that no audit is due for ever.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from decimal import Decimal
from itertools import islice

from sageaudit.domain.audit.audit import Audit
from sageaudit.domain.audit.document import AuditDocument
from sageaudit.domain.audit.finding_document import FindingDocument
from sageaudit.domain.audit.summary import AuditSummary, JobKey
from sageaudit.domain.job.ref import rollup_from_arn
from sageaudit.domain.sweep import LONGEST_LIFE
from sageaudit.domain.usage.measurements import METRIC_ARRIVAL_TIMEOUT
from sageaudit.ports import History
from sageaudit.structs import replace
from sageaudit.workflows.audit.stored import is_child, iterate_family_runs

LAST_REAUDIT_AFTER = METRIC_ARRIVAL_TIMEOUT
"""A day after the end, missing metrics and jobs of a roll-up are no longer expected: our choice. A
warm pool is kept for 6 hours at most."""
RECHECK_AFTER = timedelta(hours=1)
"""The first pause before an audit is repeated; each later one is as long as the time since the
end."""
_WARM_POOL_RECHECK_AFTER = timedelta(minutes=30)
"""SageMaker may report the end of a pool some minutes late."""
_ROLL_UP_FINAL_AFTER = timedelta(hours=1)
_NEWEST = 10
"""A roll-up ends after its jobs, or together with the last of them."""
_FINALIZED_PREFIX = "closed: "
"""Prefix of the note of an audit that is final although something was missing."""
_SAME_USD = Decimal("0.01")
_SAME_SHARE = Decimal("0.01")
"""Dollars that differ by less are the same, since series are stored to a tenth of a percent."""


def schedule_recheck(
    audit: Audit, now: datetime, *, is_reaudit: bool, metrics_error: str | None = None
) -> Audit:
    """Sets the time of the next reaudit of an audit that is not final, or makes it final.

    `metrics_error`: why a reaudit could not read metrics. The pauses grow with the time since the
    end. A job that has not ended is audited each hour, for as long as a job can last.
    """
    if audit.is_settled:
        return audit
    if not is_reaudit:
        return replace(audit, due_at=audit.due_at or now + RECHECK_AFTER)
    ended_at, created_at = audit.job.ended_at, audit.job.created_at
    if ended_at is None:
        if created_at is not None and now - created_at > LONGEST_LIFE + LAST_REAUDIT_AFTER:
            return finalize(audit, "it was audited again for 31 days and did not end")
        return replace(audit, due_at=now + RECHECK_AFTER)
    if now >= ended_at + LAST_REAUDIT_AFTER:
        missing = (
            f"its metrics could not be read again ({metrics_error})" if metrics_error else None
        )
        return finalize(audit, missing or "what was missing did not come within a day")
    if audit.due_at is not None:
        return replace(audit, due_at=max(audit.due_at, now + _WARM_POOL_RECHECK_AFTER))
    pause = max(RECHECK_AFTER, now - ended_at)
    return replace(audit, due_at=min(now + pause, ended_at + LAST_REAUDIT_AFTER))


def finalize(audit: Audit, why: str) -> Audit:
    """Makes an audit its run's last one, with the reason as its note."""
    return replace(
        audit, is_settled=True, due_at=None, notes=(*audit.notes, f"{_FINALIZED_PREFIX}{why}")
    )


def _finalize_document(document: AuditDocument, *notes: str) -> AuditDocument:
    """Makes a stored audit its run's last one, with unchanged figures and these notes."""
    audit = document["audit"]
    coverage = {**audit["coverage"], "missing": [*audit["coverage"]["missing"], *notes]}
    final = {**audit, "settled": True, "due_at": None, "coverage": coverage}
    return {**document, "audit": final}  # type: ignore[typeddict-item]


def finalize_stored(document: AuditDocument, why: str) -> AuditDocument:
    """Makes a stored audit final, with the reason as its note, unless it already is."""
    final = document["audit"]["settled"]
    return document if final else _finalize_document(document, f"{_FINALIZED_PREFIX}{why}")


def merge_with_stored(
    stored_document: AuditDocument | None,
    new_document: AuditDocument,
    *,
    keep_figures: bool = False,
) -> AuditDocument:
    """Returns what a reaudit records: the stored audit, unless one of its figures has changed.

    Differences from the rounding of stored series do not count. The stored audit becomes final if
    this reaudit is the last. `keep_figures`: the reaudit had no metrics, so stored figures stay.
    """
    if stored_document is None or not (
        keep_figures or has_same_figures(stored_document, new_document)
    ):
        return new_document
    before, after = stored_document["audit"], new_document["audit"]
    if before["settled"] or not after["settled"]:
        settled, due_at = after["settled"], after["due_at"]
        return {**stored_document, "audit": {**before, "settled": settled, "due_at": due_at}}
    return _finalize_document(
        stored_document,
        *(note for note in after["coverage"]["missing"] if note.startswith(_FINALIZED_PREFIX)),
    )


def has_same_figures(one: AuditDocument, other: AuditDocument) -> bool:
    """Whether two audits of a run have the same dollars, findings and unknowns."""
    amounts = (
        (one["bill"]["total_usd"], other["bill"]["total_usd"]),
        (one["lost_up_to_usd"], other["lost_up_to_usd"]),
        *((one[key], other[key]) for key in ("avoidable_usd", "lost_usd", "possible_usd")),
    )
    return (
        _compared_facts(one) == _compared_facts(other)
        and all(_same_usd(*pair) for pair in amounts)
        and _same_findings(one["findings"], other["findings"])
    )


def _compared_facts(document: AuditDocument) -> tuple[object, ...]:
    job, bill = document["job"], document["bill"]
    return (
        *(job["status"], job["family"], job["owner"], job["tags"], job["ended_at"]),
        *(bill["complete"], bill["missing"], document["judged"], document["unauditable"]),
    )


def _same_findings(one: list[FindingDocument], other: list[FindingDocument]) -> bool:
    """Compares findings in any order, since a cent may swap two of them."""
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
    run: AuditSummary, history: History, *, now: datetime, is_new_version: bool = True
) -> None:
    """Makes the audits due, as of `now`, that would change since this run was recorded.

    Those are runs of its family, itself included. For a new version it is also the final sum of its
    roll-up, except for a first audit soon after the job's end, when no sum can be final. For a sum
    it is the sum itself, which may have been made while one of its jobs was audited. A process can
    stop, or the table fail, between a record and this call. So it is repeated if the message is
    redelivered; a second call changes nothing.
    """
    if run.stamp is not None and not run.rollup:  # otherwise no run is compared with it
        history.recheck_family(
            run.key,
            account=run.account,
            region=run.region,
            family=run.family,
            ended_at=run.ended_at,
            due_at=now,
        )
    for key in _final_sums(run, history, now=now, new_version=is_new_version):
        history.schedule_reaudit(key, now)


def _final_sums(
    run: AuditSummary, history: History, *, now: datetime, new_version: bool
) -> list[JobKey]:
    """The final sums that include this run, or the run itself if it is a final sum."""
    if run.rollup:
        return [run.key] if run.settled else []
    soon = run.version == 1 and now - run.ended_at < _ROLL_UP_FINAL_AFTER
    if not new_version or soon or rollup_from_arn(run.family) is None:
        return []
    newest = iterate_family_runs(history, run.account, run.region, run.family, page_size=_NEWEST)
    return [
        head.key
        for head in islice(newest, _NEWEST)
        if head.rollup and head.settled and is_child(run.key, head.key, head.ended_at)
    ]
