"""A tuning job: the sum of its children's audits, left out of every other sum.

The cost of a tuning job is on the training jobs that it launched. A child's own shares stand; a
finding of the roll-up is one rule's finding over all children, with the sum of their shares.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from decimal import Decimal

from sageaudit.domain.audit.audit import (
    Outcomes,
    clear_names,
    finding_document,
    job_document,
    not_applicable_documents,
    rounded,
    unknown_documents,
)
from sageaudit.domain.audit.document import (
    SCHEMA,
    AuditDocument,
    BillDocument,
    FindingDocument,
    JobDocument,
    Severity,
    SliceDocument,
    stands,
)
from sageaudit.domain.audit.tuning_savings import TrialSavings
from sageaudit.domain.bill.counterfactual import SeverityLimits
from sageaudit.domain.bill.finding import Bucket
from sageaudit.domain.job.job import Job

_ZERO = Decimal(0)


def of_job(job: Job, owner: str | None) -> JobDocument:
    """The tuning job's own row; its family is its ARN."""
    return job_document(job, job.arn or job.name, owner)


def of_children(children: Sequence[AuditDocument]) -> JobDocument:
    """What a set of children says of its tuning job, whose own answer was not recorded."""
    first = children[0]["job"]
    arn = first["parent"] or first["family"]
    times = [
        (child["job"]["started_at"], child["job"]["ended_at"])
        for child in children
        if child["job"]["started_at"] and child["job"]["ended_at"]
    ]
    return {
        **first,
        "name": arn.rpartition("/")[2],
        "arn": arn if first["parent"] else None,
        "kind": "tuning",
        "status": "Unknown",
        "created_at": None,
        "started_at": min((start for start, _ in times if start), default=None),
        "ended_at": max((end for _, end in times if end), default=None),
        "instances": None,
        "purchase": None,
        "parent": None,
    }


def roll_up(
    job: JobDocument,
    children: Sequence[AuditDocument],
    *,
    launched: int | None,
    limits: SeverityLimits,
    ruleset: str,
    policy: str,
    outcomes: Outcomes,
    own: TrialSavings,
) -> AuditDocument:
    """Adds the children up. `launched`: how many there should be, None where nobody says.

    One that launched nothing cost nothing. `outcomes` and `own` are what the tuning rules said of
    it, and their shares of what the children's findings left.
    """
    empty = _ZERO if launched == 0 else None
    missing = _missing(children, launched)
    settled = not missing and all(child["audit"]["settled"] for child in children)
    return {
        "schema": SCHEMA,
        "job": job,
        "audit": {
            "version": 1,
            "settled": settled,
            "due_at": None,
            "ruleset": ruleset,
            "policy": policy,
            "coverage": {
                "period_s": None,
                "hosts": 0,
                "hosts_expected": None,
                "share": {},
                "missing": missing,
            },
        },
        "phases": [],
        "bill": _bill(children, missing, empty),
        "avoidable_usd": _sum(
            [*(child["avoidable_usd"] for child in children), *_own(own, Bucket.AVOIDABLE)], empty
        ),
        "lost_usd": _sum(
            [*(child["lost_usd"] for child in children), *_own(own, Bucket.LOST)], empty
        ),
        "possible_usd": _sum(
            [*(child["possible_usd"] for child in children), *_own(own, Bucket.POSSIBLE)], empty
        ),
        "findings": _findings(children, limits, own),
        "unknown": unknown_documents(outcomes),
        "not_applicable": not_applicable_documents(outcomes),
        "clear": clear_names(outcomes),
        "waterfall": _waterfall(children, own),
        "children": list(children),
        "rollup": True,
        "unauditable": None,
    }


def _bill(
    children: Sequence[AuditDocument], missing: list[str], empty: Decimal | None
) -> BillDocument:
    kinds = {kind for child in children if (kind := child["bill"]["price_kind"])}
    return {
        "total_usd": _sum((child["bill"]["total_usd"] for child in children), empty),
        "complete": not missing and all(child["bill"]["complete"] for child in children),
        "missing": missing,
        "basis": "none",
        "lines": [],
        "price_kind": next(iter(kinds)) if len(kinds) == 1 else None,
        "spot_saved_usd": _known_sum(child["bill"]["spot_saved_usd"] for child in children),
        "prepaid_value_usd": _known_sum(child["bill"]["prepaid_value_usd"] for child in children),
        "notes": list(dict.fromkeys(n for child in children for n in child["bill"]["notes"])),
    }


def _missing(children: Sequence[AuditDocument], launched: int | None) -> list[str]:
    missing = []
    if launched is None and not children:
        missing.append("the training jobs that it launched are not known")
    elif launched is not None and len(children) < launched:
        missing.append(f"{launched - len(children)} of {launched} training jobs are not audited")
    unpriced = sum(child["bill"]["total_usd"] is None for child in children)
    if unpriced:
        missing.append(f"{unpriced} of {len(children)} training jobs have no known cost")
    return missing


def _sum(values: Iterable[Decimal | None], empty: Decimal | None) -> Decimal | None:
    """`empty` when there is nothing to add, None when a part is not known."""
    parts = list(values)
    known = [part for part in parts if part is not None]
    if not parts:
        return empty
    return sum(known, _ZERO) if len(known) == len(parts) else None


def _known_sum(values: Iterable[Decimal | None]) -> Decimal | None:
    """The parts that speak of something; None when none does."""
    known = [value for value in values if value is not None]
    return sum(known, _ZERO) if known else None


def _own(own: TrialSavings, bucket: Bucket) -> list[Decimal | None]:
    """The tuning findings' part of a sum, where they have one."""
    usd = own.usd(bucket)
    return [rounded(usd)] if usd else []


def _findings(
    children: Sequence[AuditDocument], limits: SeverityLimits, own: TrialSavings
) -> list[FindingDocument]:
    by_rule: dict[str, list[FindingDocument]] = {}
    for child in children:
        for finding in child["findings"]:
            if stands(finding):
                by_rule.setdefault(finding["rule"], []).append(finding)
    merged = [_merged(rows, len(children), limits) for rows in by_rule.values()]
    merged += [finding_document(finding) for finding in own.findings]
    return sorted(merged, key=lambda row: (-(row["saving_usd"] or _ZERO), row["id"]))


def _merged(rows: list[FindingDocument], children: int, limits: SeverityLimits) -> FindingDocument:
    dearest = max(rows, key=lambda row: row["saving_usd"] or _ZERO)
    usd = _sum((row["saving_usd"] for row in rows), empty=None)
    return {
        **dearest,
        "severity": _severity(dearest["severity"], dearest["bucket"], usd, limits),
        "summary": f"In {len(rows)} of {children} training jobs, such as: {dearest['summary']}",
        "saving_usd": usd,
        "saving_alone_usd": None,
        "saving_range_usd": None,
        "evidence": {"training_jobs": len(rows), **dearest["evidence"]},
    }


def _severity(one: Severity, bucket: str, usd: Decimal | None, limits: SeverityLimits) -> Severity:
    if bucket not in {"avoidable", "lost"} or not usd:
        return one
    if usd >= limits.high_usd:
        return "high"
    return "medium" if usd >= limits.medium_usd else "low"


def _waterfall(children: Sequence[AuditDocument], own: TrialSavings) -> list[SliceDocument]:
    if any(child["bill"]["total_usd"] is None for child in children):
        return []
    sums: dict[str, Decimal] = {}
    for child in children:
        for part in child["waterfall"]:
            sums[part["slice"]] = sums.get(part["slice"], _ZERO) + part["usd"]
    rest = sums.pop("rest", None)
    for finding in own.findings:
        usd = rounded(finding.saving_usd)
        if usd and finding.found.bucket in {Bucket.LOST, Bucket.AVOIDABLE} and rest is not None:
            sums[f"{finding.found.bucket.value}: {finding.rule.name}"] = usd
            rest -= usd
    slices: list[SliceDocument] = [{"slice": name, "usd": usd} for name, usd in sums.items()]
    return slices if rest is None else [*slices, {"slice": "rest", "usd": rest}]
