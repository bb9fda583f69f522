"""Builds the rows that lists show from an entry: its head and its findings."""

from __future__ import annotations

from collections import defaultdict
from datetime import datetime
from decimal import Decimal
from typing import Any, Literal

from sageaudit.adapters.files.exact_json import whole_text
from sageaudit.adapters.history.codec import LONGEST_TEXT, as_utc, read_moment
from sageaudit.domain.alert.audit_figures import advised_in
from sageaudit.domain.audit.audit import Judged
from sageaudit.domain.audit.bill_document import BillDocument, lower_gaps, qualifier_of_bill
from sageaudit.domain.audit.document import AuditDocument
from sageaudit.domain.audit.finding_document import FindingDocument, most_usd, stands
from sageaudit.domain.audit.record import NOT_NAMED, Entry, FindingRow, RuleFinding
from sageaudit.domain.audit.summary import RUN_FIELDS, AuditSummary, JobKey, run_stamp
from sageaudit.domain.audit.sums import storable_usd, sums_of
from sageaudit.domain.bill.finding import Bucket, Confidence, Severity
from sageaudit.domain.job.job import seconds_between, whole_sum
from sageaudit.domain.job.ref import JobRef
from sageaudit.domain.reconcile.lines import lines_of, usage_type_of
from sageaudit.output.text.finding import fix_text
from sageaudit.structs import replace

_HOUR_S = 3600
MOST_FINDING_ROWS = 40
"""A transaction has at most 100 actions: 40 puts, 40 deletes of old rows, and up to 13 others."""


def head_of(entry: Entry, version: int, digest: str) -> AuditSummary:
    """HEAD, the summary of an entry that becomes this version."""
    document = entry.document
    job, audit = document["job"], document["audit"]
    due_at = None if audit["settled"] or audit["due_at"] is None else read_moment(audit["due_at"])
    head = AuditSummary(
        key=run_of(entry),
        version=version,
        settled=audit["settled"],
        due_at=due_at,
        last_modified_at=as_utc(entry.last_modified_at),
        job=row_text(job["name"]),
        kind=job["kind"],
        status=row_text(job["status"]),
        account=job["account"] or NOT_NAMED,
        region=job["region"] or NOT_NAMED,
        family=row_text(job["family"]),
        owner=_owner(document),
        ended_at=_ended_at(entry),
        rollup=document["rollup"],
        total_usd=storable_usd(document["bill"]["total_usd"]),
        avoidable_usd=storable_usd(document["avoidable_usd"]),
        lost_usd=storable_usd(document["lost_usd"]),
        costliest_rule=_top_rule(document["findings"]),
        unauditable=None if document["unauditable"] is None else row_text(document["unauditable"]),
        digest=digest,
        ruleset=audit["ruleset"],
        policy=audit["policy"],
        family_version=entry.family_version,
        finding_ids=tuple(finding.rule_id for finding in finding_rows(entry)),
        **_of_the_run(entry),
        judged=Judged(document["judged"]) if document["judged"] else None,
        estimated=bool(document["bill"]["estimated"]),
        incomplete=bool(lower_gaps(document["bill"])),
        spend_qualifier=qualifier_of_bill(document["bill"]),
        findings_without_row=findings_without_row(document) or None,
        sums=sums_of(document),
        severity=_severity(document["findings"]),
        tags={name: value and row_text(value) for name, value in job["tags"].items()},
        image=job["image"] and row_text(job["image"]),
        duration_s=_seconds(job["started_at"], job["ended_at"]),
        waiting_s=_seconds(job["created_at"], job["started_at"]),
        instance=job["instances"] and row_text(job["instances"]),
        possible_usd=storable_usd(document["possible_usd"]),
        **_parts(document),
    )
    compared = head.is_comparable and job["ended_at"] is not None
    return replace(head, stamp=run_stamp(head)) if compared else head


def _seconds(begin: str | None, end: str | None) -> int | None:
    if begin is None or end is None:
        return None
    seconds = seconds_between(read_moment(begin), read_moment(end))
    return None if seconds is None else round(seconds)


def _parts(document: AuditDocument) -> dict[str, Any]:
    """The parts of a bill that lists show. Without lines, as of a roll-up, none is known."""
    bill = document["bill"]
    if not bill["lines"]:
        return {}
    hours, idle = _part(bill, "compute", "quantity"), document["idle_capacity"]
    gpus = idle if idle and idle["unit"] == "gpu_hours" else None
    return {
        "instance_s": None if hours is None else round(hours * _HOUR_S),
        "gpu_s": gpus and round(gpus["paid"] * _HOUR_S),
        "idle_gpu_s": gpus and round(gpus["idle"] * _HOUR_S),
        "storage_usd": _part(bill, "storage", "usd"),
        "warm_pool_usd": _part(bill, "warm_pool", "usd"),
        "spot_saved_usd": storable_usd(bill["spot_saved_usd"]),
        **_usage(document),
    }


def _usage(document: AuditDocument) -> dict[str, dict[str, Decimal | None]]:
    """Quantity and dollars of each usage type; a sum with an unknown part is unknown."""
    quantities: dict[str, list[Decimal | None]] = defaultdict(list)
    costs: dict[str, list[Decimal | None]] = defaultdict(list)
    for line in lines_of(document, None):
        if line.paid:
            usage_type = usage_type_of(line)
            quantities[usage_type].append(line.quantity)
            costs[usage_type].append(line.usd)
    return {
        "usage_quantities": {name: storable_usd(whole_sum(of)) for name, of in quantities.items()},
        "usage_costs": {name: storable_usd(whole_sum(of)) for name, of in costs.items()},
    }


def _part(bill: BillDocument, item: str, figure: Literal["quantity", "usd"]) -> Decimal | None:
    """Of all lines whose item begins so; None where one of them, or their absence, is a gap."""
    parts = [line[figure] for line in bill["lines"] if line["item"].startswith(item)]
    gap = any(text.startswith(item.replace("_", " ")) for text in bill["missing"])
    return None if gap and not parts else storable_usd(whole_sum(parts))


def _of_the_run(entry: Entry) -> dict[str, Any]:
    """What its document does not have, and what it was advised."""
    if entry.run is None:
        return {}
    known = {name: getattr(entry.run, name) for name in RUN_FIELDS}
    return known | {"advised": advised_in(entry.document)}


def finding_rows(entry: Entry) -> tuple[FindingRow, ...]:
    """One row per rule with a finding, at most 40, in the document's order.

    A roll-up repeats its training jobs' findings, which have their rows: it has those of its own.
    """
    findings = _own_findings(entry.document)
    first_of = {finding["id"]: finding for finding in reversed(findings)}
    chosen = [finding for finding in findings if first_of[finding["id"]] is finding]
    return tuple(_finding_row(finding) for finding in chosen[:MOST_FINDING_ROWS])


def findings_without_row(document: AuditDocument) -> int:
    """How many findings of an audit no list shows: beyond 40, and further ones of one rule."""
    findings = _own_findings(document)
    return len(findings) - min(len({finding["id"] for finding in findings}), MOST_FINDING_ROWS)


def _own_findings(document: AuditDocument) -> list[FindingDocument]:
    if not document["rollup"]:
        return document["findings"]
    own = set(document.get("rollup_rules") or ())
    return [finding for finding in document["findings"] if finding["rule"] in own]


def _finding_row(finding: FindingDocument) -> FindingRow:
    fix = fix_text(finding)
    return FindingRow(
        rule_id=finding["id"],
        rule=finding["rule"],
        severity=Severity(finding["severity"]),
        confidence=Confidence(finding["confidence"]),
        bucket=Bucket(finding["bucket"]),
        saving_usd=storable_usd(finding["saving_usd"]),
        saving_alone_usd=storable_usd(finding["saving_alone_usd"]),
        summary=row_text(finding["summary"]),
        fix=fix if fix is None else row_text(fix),
        estimated=bool(finding.get("estimated")),
        saving_up_to_usd=storable_usd(most_usd(finding)),
    )


def rule_finding(
    finding: FindingRow,
    *,
    key: JobKey,
    job: str,
    family: str,
    ended_at: datetime,
    owner: str | None = None,
) -> RuleFinding:
    """A finding with what its row and the ARN tell of its run."""
    ref = JobRef.from_arn(key.arn)
    summary = AuditSummary(
        key=key,
        last_modified_at=ended_at,
        settled=False,
        ended_at=ended_at,
        job=job,
        kind=ref.kind.value if ref else NOT_NAMED,
        status="",
        account=ref.account if ref else NOT_NAMED,
        region=ref.region if ref else NOT_NAMED,
        family=family,
        owner=owner,
        rollup=ref is not None and ref.kind.row.rollup is not None,
        severity=finding.severity,
        estimated=finding.estimated,
    )
    return RuleFinding(finding, summary)


def run_of(entry: Entry) -> JobKey:
    """The entry's key with its creation time in UTC."""
    return JobKey(whole_text(entry.key.arn), as_utc(entry.key.created_at))


def _ended_at(entry: Entry) -> datetime:
    ended = entry.document["job"]["ended_at"]
    return as_utc(entry.key.created_at) if ended is None else read_moment(ended)


def _owner(document: AuditDocument) -> str | None:
    return row_text(document["job"]["owner"] or "") or None


def row_text(text: str) -> str:
    """A text as rows have it: valid Unicode, and cut."""
    return whole_text(text)[:LONGEST_TEXT]


def _top_rule(findings: list[FindingDocument]) -> str | None:
    """The rule of the most important finding: by counted dollars, then severity, then order."""
    effective = list(filter(stands, findings))
    return max(effective, key=_weight)["rule"] if effective else None


def _severity(findings: list[FindingDocument]) -> Severity | None:
    """Of the most severe standing finding."""
    severities = (Severity(finding["severity"]) for finding in filter(stands, findings))
    return max(severities, key=lambda severity: severity.rank, default=None)


def _weight(finding: FindingDocument) -> tuple[Decimal, int]:
    counted = Bucket(finding["bucket"]).counted
    saving = (storable_usd(finding["saving_usd"]) if counted else None) or Decimal(0)
    return saving, Severity(finding["severity"]).rank
