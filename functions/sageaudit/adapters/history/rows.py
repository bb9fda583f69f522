"""Builds the rows that lists show: an entry's summary and its findings."""

from __future__ import annotations

from collections import defaultdict
from datetime import datetime
from decimal import Decimal
from typing import Any, Literal

from sageaudit.adapters.files.exact_json import replace_surrogates
from sageaudit.adapters.history.codec import (
    MAX_TEXT_LENGTH,
)
from sageaudit.domain.alert.audit_figures import read_recommendations
from sageaudit.domain.audit.audit import Judged
from sageaudit.domain.audit.bill_document import BillDocument, qualify_bill, undercounted_parts
from sageaudit.domain.audit.document import AuditDocument
from sageaudit.domain.audit.finding_document import FindingDocument, is_standing, max_saving_usd
from sageaudit.domain.audit.record import UNKNOWN_NAME, AuditEntry, FindingRow, RuleFinding
from sageaudit.domain.audit.summary import RUN_FIELDS, AuditSummary, JobKey, comparison_stamp
from sageaudit.domain.audit.sums import storable_usd, sums_from_document
from sageaudit.domain.bill.finding import Bucket, Confidence, Severity
from sageaudit.domain.job.job import round_half_up, seconds_between, sum_if_complete
from sageaudit.domain.job.ref import JobRef
from sageaudit.domain.moments import as_utc, parse_moment
from sageaudit.domain.reconcile.lines import full_usage_type, lines_from_audit
from sageaudit.output.text.finding import fix_text
from sageaudit.structs import replace

_HOUR_S = 3600
MAX_FINDING_ROWS = 40
"""The maximum number of a run's finding rows.

A transaction has at most 100 actions: 40 puts, 40 deletes of old rows, and up to 13 others.
"""


def make_summary(entry: AuditEntry, version: int, digest: str) -> AuditSummary:
    """Returns the summary of an entry that becomes this version of the audit."""
    document = entry.document
    job, audit = document["job"], document["audit"]
    due_at = None if audit["settled"] or audit["due_at"] is None else parse_moment(audit["due_at"])
    summary = AuditSummary(
        key=normalized_key(entry),
        version=version,
        settled=audit["settled"],
        due_at=due_at,
        last_modified_at=as_utc(entry.last_modified_at),
        job=clip_text(job["name"]),
        kind=job["kind"],
        status=clip_text(job["status"]),
        account=job["account"] or UNKNOWN_NAME,
        region=job["region"] or UNKNOWN_NAME,
        family=clip_text(job["family"]),
        owner=_owner(document),
        ended_at=_ended_at(entry),
        rollup=document["rollup"],
        total_usd=storable_usd(document["bill"]["total_usd"]),
        avoidable_usd=storable_usd(document["avoidable_usd"]),
        lost_usd=storable_usd(document["lost_usd"]),
        costliest_rule=_top_rule(document["findings"]),
        unauditable=None if document["unauditable"] is None else clip_text(document["unauditable"]),
        digest=digest,
        ruleset=audit["ruleset"],
        policy=audit["policy"],
        family_version=entry.family_version,
        finding_ids=tuple(finding.rule_id for finding in finding_rows(entry)),
        **_run_fields(entry),
        judged=Judged(document["judged"]) if document["judged"] else None,
        estimated=bool(document["bill"]["estimated"]),
        incomplete=bool(undercounted_parts(document["bill"])),
        spend_qualifier=qualify_bill(document["bill"]),
        findings_without_row=unlisted_finding_count(document) or None,
        sums=sums_from_document(document),
        severity=_severity(document["findings"]),
        tags={name: value and clip_text(value) for name, value in job["tags"].items()},
        image=job["image"] and clip_text(job["image"]),
        duration_s=_seconds(job["started_at"], job["ended_at"]),
        waiting_s=_seconds(job["created_at"], job["started_at"]),
        instance=job["instances"] and clip_text(job["instances"]),
        possible_usd=storable_usd(document["possible_usd"]),
        **_parts(document),
    )
    if _has_never_started(summary):
        summary = replace(summary, never_started=True, waiting_s=_total_wait_s(summary))
    has_stamp = summary.is_comparable and job["ended_at"] is not None
    return replace(summary, stamp=comparison_stamp(summary)) if has_stamp else summary


def _has_never_started(summary: AuditSummary) -> bool:
    if summary.purchase is None or summary.total_usd is None:
        return False
    durations = (summary.elapsed_s, summary.billable_s)
    return summary.status != "Completed" and not summary.total_usd and not any(durations)


def _total_wait_s(summary: AuditSummary) -> int | None:
    total_wait_s = sum(summary.phase_s.values()) or None
    return None if total_wait_s is None else round(total_wait_s)


def _seconds(begin: str | None, end: str | None) -> int | None:
    if begin is None or end is None:
        return None
    seconds = seconds_between(parse_moment(begin), parse_moment(end))
    return None if seconds is None else round_half_up(seconds)


def _parts(document: AuditDocument) -> dict[str, Any]:
    """Returns an empty dict if the bill has no lines."""
    bill = document["bill"]
    if not bill["lines"]:
        return {}
    instance_hours, idle_capacity = _part(bill, "compute", "quantity"), document["idle_capacity"]
    gpu_idle_capacity = (
        idle_capacity if idle_capacity and idle_capacity["unit"] == "gpu_hours" else None
    )
    return {
        "instance_s": None if instance_hours is None else round(instance_hours * _HOUR_S),
        "gpu_s": gpu_idle_capacity and round(gpu_idle_capacity["paid"] * _HOUR_S),
        "idle_gpu_s": gpu_idle_capacity and round(gpu_idle_capacity["idle"] * _HOUR_S),
        "storage_usd": _part(bill, "storage", "usd"),
        "warm_pool_usd": _part(bill, "warm_pool", "usd"),
        "spot_saved_usd": storable_usd(bill["spot_saved_usd"]),
        **_usage(document),
    }


def _usage(document: AuditDocument) -> dict[str, dict[str, Decimal | None]]:
    # A usage type with an unknown line has the value None.
    quantities: dict[str, list[Decimal | None]] = defaultdict(list)
    costs: dict[str, list[Decimal | None]] = defaultdict(list)
    for line in lines_from_audit(document, None):
        if line.is_metered:
            usage_type = full_usage_type(line)
            quantities[usage_type].append(line.quantity)
            costs[usage_type].append(line.usd)
    return {
        "usage_quantities": {
            name: storable_usd(sum_if_complete(usd)) for name, usd in quantities.items()
        },
        "usage_costs": {name: storable_usd(sum_if_complete(usd)) for name, usd in costs.items()},
    }


def _part(
    bill: BillDocument, item_prefix: str, figure_name: Literal["quantity", "usd"]
) -> Decimal | None:
    """Returns the sum of the bill's lines whose item begins with `item_prefix`.

    Returns None if a line has no figure, or if the bill reports the item as missing.
    """
    figures = [line[figure_name] for line in bill["lines"] if line["item"].startswith(item_prefix)]
    is_missing = any(text.startswith(item_prefix.replace("_", " ")) for text in bill["missing"])
    return None if is_missing and not figures else storable_usd(sum_if_complete(figures))


def _run_fields(entry: AuditEntry) -> dict[str, Any]:
    if entry.run_summary is None:
        return {}
    run_fields = {name: getattr(entry.run_summary, name) for name in RUN_FIELDS}
    return run_fields | {"recommendations": read_recommendations(entry.document)}


def finding_rows(entry: AuditEntry) -> tuple[FindingRow, ...]:
    """Returns one row per rule with a finding, at most 40, in the document's order.

    A roll-up's document repeats its training jobs' findings, which have rows of their own. Only the
    roll-up's own findings are returned.
    """
    findings = _own_findings(entry.document)
    first_by_rule = {finding["id"]: finding for finding in reversed(findings)}
    first_findings = [finding for finding in findings if first_by_rule[finding["id"]] is finding]
    return tuple(_finding_row(finding) for finding in first_findings[:MAX_FINDING_ROWS])


def unlisted_finding_count(document: AuditDocument) -> int:
    """Returns how many findings have no row: those beyond 40, and a rule's further findings."""
    findings = _own_findings(document)
    return len(findings) - min(len({finding["id"] for finding in findings}), MAX_FINDING_ROWS)


def _own_findings(document: AuditDocument) -> list[FindingDocument]:
    if not document["rollup"]:
        return document["findings"]
    own_rules = set(document.get("rollup_rules") or ())
    return [finding for finding in document["findings"] if finding["rule"] in own_rules]


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
        summary=clip_text(finding["summary"]),
        fix=fix if fix is None else clip_text(fix),
        estimated=bool(finding.get("estimated")),
        saving_up_to_usd=storable_usd(max_saving_usd(finding)),
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
    """Returns a finding with a partial summary of its run, from the arguments and the ARN."""
    ref = JobRef.from_arn(key.arn)
    summary = AuditSummary(
        key=key,
        last_modified_at=ended_at,
        settled=False,
        ended_at=ended_at,
        job=job,
        kind=ref.kind.value if ref else UNKNOWN_NAME,
        status="",
        account=ref.account if ref else UNKNOWN_NAME,
        region=ref.region if ref else UNKNOWN_NAME,
        family=family,
        owner=owner,
        rollup=ref is not None and ref.kind.spec.rollup is not None,
        severity=finding.severity,
        estimated=finding.estimated,
    )
    return RuleFinding(finding, summary)


def normalized_key(entry: AuditEntry) -> JobKey:
    """Returns the entry's key with its creation time in UTC."""
    return JobKey(replace_surrogates(entry.key.arn), as_utc(entry.key.created_at))


def _ended_at(entry: AuditEntry) -> datetime:
    ended_text = entry.document["job"]["ended_at"]
    return as_utc(entry.key.created_at) if ended_text is None else parse_moment(ended_text)


def _owner(document: AuditDocument) -> str | None:
    return clip_text(document["job"]["owner"] or "") or None


def clip_text(text: str) -> str:
    """Returns a text for rows: valid Unicode, cut to the maximum length."""
    return replace_surrogates(text)[:MAX_TEXT_LENGTH]


def _top_rule(findings: list[FindingDocument]) -> str | None:
    """Returns the rule of the most important standing finding; None without one.

    The finding with the most counted dollars is the most important, then the most severe.
    """
    standing_findings = list(filter(is_standing, findings))
    return max(standing_findings, key=_weight)["rule"] if standing_findings else None


def _severity(findings: list[FindingDocument]) -> Severity | None:
    severities = (Severity(finding["severity"]) for finding in filter(is_standing, findings))
    return max(severities, key=lambda severity: severity.rank, default=None)


def _weight(finding: FindingDocument) -> tuple[Decimal, int]:
    is_counted = Bucket(finding["bucket"]).is_counted
    saving_usd = (storable_usd(finding["saving_usd"]) if is_counted else None) or Decimal(0)
    return saving_usd, Severity(finding["severity"]).rank
