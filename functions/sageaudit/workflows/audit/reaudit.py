"""Decides when an audit is repeated, what a reaudit records, and which other audits become due.

An audit stays due while a figure may change: a warm pool has not ended, metrics were late, a
roll-up's jobs were not audited, or an earlier run of the family was audited later. Reaudits stop a
day after the job's end, so that no audit stays due for ever.
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
"""How long after a job's end missing metrics and a roll-up's jobs are expected (our choice).

A warm pool lasts 6 hours at most.
"""
RECHECK_AFTER = timedelta(hours=1)
"""The shortest pause before an audit is repeated. Later pauses equal the time since
the job's end.
"""
_WARM_POOL_RECHECK_AFTER = timedelta(minutes=30)
"""The shortest pause before a warm pool is read again. SageMaker may report its end late."""
_ROLL_UP_FINAL_AFTER = timedelta(hours=1)
_NEWEST_RUNS = 10
"""How many of a family's newest runs are searched for its roll-up, which ends last."""
_FINALIZED_PREFIX = "closed: "
"""Begins the note of an audit that is final although data was missing."""
_TOLERANCE_USD = Decimal("0.01")
_TOLERANCE_SHARE = Decimal("0.01")
"""Amounts that differ by less than this share or $0.01 count as equal.

Series are stored to a tenth of a percent.
"""


def schedule_recheck(
    audit: Audit, now: datetime, *, is_reaudit: bool, metrics_error: str | None = None
) -> Audit:
    """Returns the audit with the time of its next reaudit, or as final if no reaudit follows.

    `metrics_error` says why a reaudit could not read metrics. The pauses grow with the time since
    the job's end. A job that has not ended is audited each hour, for up to 31 days.
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
        read_error_text = (
            f"its metrics could not be read again ({metrics_error})" if metrics_error else None
        )
        return finalize(audit, read_error_text or "what was missing did not arrive within a day")
    if audit.due_at is not None:
        return replace(audit, due_at=max(audit.due_at, now + _WARM_POOL_RECHECK_AFTER))
    pause = max(RECHECK_AFTER, now - ended_at)
    return replace(audit, due_at=min(now + pause, ended_at + LAST_REAUDIT_AFTER))


def finalize(audit: Audit, reason: str) -> Audit:
    """Returns the audit as final, with the reason in its notes."""
    return replace(
        audit, is_settled=True, due_at=None, notes=(*audit.notes, f"{_FINALIZED_PREFIX}{reason}")
    )


def _finalize_document(document: AuditDocument, *notes: str) -> AuditDocument:
    audit = document["audit"]
    coverage = {**audit["coverage"], "missing": [*audit["coverage"]["missing"], *notes]}
    final_audit = {**audit, "settled": True, "due_at": None, "coverage": coverage}
    return {**document, "audit": final_audit}  # type: ignore[typeddict-item]


def finalize_stored(document: AuditDocument, reason: str) -> AuditDocument:
    """Returns a stored audit as final, with the reason in its notes. A final one is unchanged."""
    is_final = document["audit"]["settled"]
    return document if is_final else _finalize_document(document, f"{_FINALIZED_PREFIX}{reason}")


def merge_with_stored(
    stored_document: AuditDocument | None,
    new_document: AuditDocument,
    *,
    keep_figures: bool = False,
) -> AuditDocument:
    """Returns the document that a reaudit records: the stored one, unless a figure has changed.

    Differences from the rounding of stored series do not count. If the new audit is final, the
    recorded document is too. `keep_figures` keeps the stored figures, since the reaudit had no
    metrics.
    """
    if stored_document is None or not (
        keep_figures or has_same_figures(stored_document, new_document)
    ):
        return new_document
    stored_audit, new_audit = stored_document["audit"], new_document["audit"]
    if stored_audit["settled"] or not new_audit["settled"]:
        settled, due_at = new_audit["settled"], new_audit["due_at"]
        return {**stored_document, "audit": {**stored_audit, "settled": settled, "due_at": due_at}}
    return _finalize_document(
        stored_document,
        *(note for note in new_audit["coverage"]["missing"] if note.startswith(_FINALIZED_PREFIX)),
    )


def has_same_figures(first: AuditDocument, second: AuditDocument) -> bool:
    """Returns True if two audits of a run have the same dollars, findings and unknowns."""
    amounts = (
        (first["bill"]["total_usd"], second["bill"]["total_usd"]),
        (first["lost_up_to_usd"], second["lost_up_to_usd"]),
        *((first[key], second[key]) for key in ("avoidable_usd", "lost_usd", "possible_usd")),
    )
    return (
        _compared_facts(first) == _compared_facts(second)
        and all(_is_same_usd(*pair) for pair in amounts)
        and _has_same_findings(first["findings"], second["findings"])
    )


def _compared_facts(document: AuditDocument) -> tuple[object, ...]:
    job, bill = document["job"], document["bill"]
    return (
        *(job["status"], job["family"], job["owner"], job["tags"], job["ended_at"]),
        *(bill["complete"], bill["missing"], document["judged"], document["unauditable"]),
    )


def _has_same_findings(first: list[FindingDocument], second: list[FindingDocument]) -> bool:
    # The order does not matter.
    first_sorted, second_sorted = (sorted(rows, key=_identity) for rows in (first, second))
    return len(first_sorted) == len(second_sorted) and all(
        _identity(a) == _identity(b) and _is_same_usd(a["saving_usd"], b["saving_usd"])
        for a, b in zip(first_sorted, second_sorted, strict=True)
    )


def _identity(finding: FindingDocument) -> tuple[str, ...]:
    keys = ("id", "bucket", "severity", "confidence", "exempt", "reported_for_run")
    return tuple(str(finding.get(key)) for key in keys)


def _is_same_usd(first: Decimal | None, second: Decimal | None) -> bool:
    if first is None or second is None:
        return first is second
    return abs(first - second) <= max(
        _TOLERANCE_USD, _TOLERANCE_SHARE * max(abs(first), abs(second))
    )


def recheck_dependents(
    run: AuditSummary, history: History, *, now: datetime, is_new_version: bool = True
) -> None:
    """Schedules a new audit of each run whose result this recorded run changes.

    Schedules the runs of the family that were judged without this run. Schedules this run itself if
    it was judged without an earlier run. A final roll-up is also scheduled itself, since its jobs
    may have been audited meanwhile.

    If this is a new version, schedules the final roll-up that launched this run. A first audit
    within an hour of the job's end does not schedule the roll-up.

    A second call changes nothing. A redelivered message calls this function again, since the
    process may have stopped before the first call.
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
    for key in _final_sums(run, history, now=now, is_new_version=is_new_version):
        history.schedule_reaudit(key, now)


def _final_sums(
    run: AuditSummary, history: History, *, now: datetime, is_new_version: bool
) -> list[JobKey]:
    """Returns the final roll-ups that launched this run, or the run itself if it is a final
    roll-up.
    """
    if run.rollup:
        return [run.key] if run.settled else []
    is_first_audit = run.version == 1 and now - run.ended_at < _ROLL_UP_FINAL_AFTER
    if not is_new_version or is_first_audit or rollup_from_arn(run.family) is None:
        return []
    newest_runs = iterate_family_runs(
        history, run.account, run.region, run.family, page_size=_NEWEST_RUNS
    )
    return [
        summary.key
        for summary in islice(newest_runs, _NEWEST_RUNS)
        if summary.rollup and summary.settled and is_child(run.key, summary.key, summary.ended_at)
    ]
