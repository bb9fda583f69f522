"""One audit, and its document: schema 1, keys always present, money rounded to 6 decimals."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from decimal import Decimal

from sageaudit.domain.audit.document import (
    SCHEMA,
    AuditDocument,
    CoverageDocument,
    FindingDocument,
    FixDocument,
    JobDocument,
    LineDocument,
    NotApplicableDocument,
    SliceDocument,
    UnknownDocument,
)
from sageaudit.domain.bill.bill import Bill, Line
from sageaudit.domain.bill.bill_facts import BillFacts
from sageaudit.domain.bill.counterfactual import Savings
from sageaudit.domain.bill.finding import (
    Clear,
    Evidence,
    Finding,
    NotApplicable,
    Outcome,
    Parameter,
    RuleName,
    Scalar,
    Unknown,
)
from sageaudit.domain.job.job import Job
from sageaudit.domain.job.kinds import JobKind
from sageaudit.domain.usage.measurements import Measurements, Metric

_MICRO = Decimal("0.000001")
Outcomes = Sequence[tuple[RuleName, Outcome]]


@dataclass(frozen=True, slots=True)
class Audit:
    """Job, bill, outcomes and savings, with the versions that they were judged by."""

    job: Job
    family: str
    owner: str | None
    bill: Bill
    facts: BillFacts
    usage: Measurements
    outcomes: tuple[tuple[RuleName, Outcome], ...]
    savings: Savings
    settled: bool
    due_at: datetime | None
    ruleset: str
    policy: str
    notes: tuple[str, ...] = ()

    def document(self) -> AuditDocument:
        """The audit as it is stored and printed; History sets `audit.version`."""
        return {
            "schema": SCHEMA,
            "job": job_document(self.job, self.family, self.owner),
            "audit": {
                "version": 1,
                "settled": self.settled,
                "due_at": iso(self.due_at),
                "ruleset": self.ruleset,
                "policy": self.policy,
                "coverage": _coverage(self.usage, self.notes),
            },
            "phases": [
                {
                    "name": cost.phase.name,
                    "seconds": rounded(cost.phase.seconds),
                    "billed": cost.phase.billed,
                    "usd": rounded(cost.usd),
                }
                for cost in self.bill.phases
            ],
            "bill": {
                "total_usd": rounded(self.bill.total_usd),
                "complete": self.bill.complete,
                "missing": list(self.bill.missing),
                "basis": self.bill.basis,
                "lines": [_line(line) for line in self.bill.lines],
                "price_kind": self.facts.price_kind,
                "spot_saved_usd": rounded(self.facts.spot_saved_usd),
                "prepaid_value_usd": rounded(self.facts.prepaid_value_usd),
                "notes": list(self.facts.notes),
            },
            "avoidable_usd": rounded(self.savings.avoidable_usd),
            "lost_usd": rounded(self.savings.lost_usd),
            "possible_usd": rounded(self.savings.possible_usd),
            "findings": [finding_document(finding) for finding in self.savings.findings],
            "unknown": unknown_documents(self.outcomes),
            "not_applicable": not_applicable_documents(self.outcomes),
            "clear": clear_names(self.outcomes),
            "waterfall": self._waterfall(),
            "children": None,
            "rollup": self.job.kind is JobKind.TUNING,
            "unauditable": None,
        }

    def _waterfall(self) -> list[SliceDocument]:
        """The last slice takes what rounding left, so that the slices sum to the rounded bill."""
        total = rounded(self.bill.total_usd)
        if total is None:
            return []
        *counted, rest = (part.name for part in self.savings.waterfall)
        usd = [part.usd.quantize(_MICRO) for part in self.savings.waterfall[:-1]]
        slices: list[SliceDocument] = [
            {"slice": name, "usd": part} for name, part in zip(counted, usd, strict=True)
        ]
        return [*slices, {"slice": rest, "usd": total - sum(usd, Decimal(0))}]


def rounded(value: Decimal | None) -> Decimal | None:
    """At most 6 decimals; None stays None."""
    return None if value is None else value.quantize(_MICRO)


def iso(moment: datetime | None) -> str | None:
    """ISO 8601 in UTC, ending in Z."""
    if moment is None:
        return None
    return moment.astimezone(UTC).isoformat().replace("+00:00", "Z")


def unknown_documents(outcomes: Outcomes) -> list[UnknownDocument]:
    """The rules that could not judge, with their reasons."""
    return [
        {"rule": name.name, "code": outcome.code, "reason": outcome.reason}
        for name, outcome in outcomes
        if isinstance(outcome, Unknown)
    ]


def not_applicable_documents(outcomes: Outcomes) -> list[NotApplicableDocument]:
    """The rules that do not speak of this job, with their reasons."""
    return [
        {"rule": name.name, "reason": outcome.reason}
        for name, outcome in outcomes
        if isinstance(outcome, NotApplicable)
    ]


def clear_names(outcomes: Outcomes) -> list[str]:
    """The rules that judged and have nothing to say."""
    return [name.name for name, outcome in outcomes if isinstance(outcome, Clear)]


def job_document(job: Job, family: str, owner: str | None) -> JobDocument:
    """Which job, as documents name it."""
    return {
        "name": job.name,
        "arn": job.arn,
        "kind": job.kind.value,
        "status": job.status,
        "account": job.account,
        "region": job.region,
        "family": family,
        "owner": owner,
        "created_at": iso(job.created_at),
        "started_at": iso(job.started_at),
        "ended_at": iso(job.ended_at),
        "instances": job.instances,
        "purchase": job.purchase.value if job.kind.value != "tuning" else None,
        "parent": job.parent.arn if job.parent else None,
    }


def _coverage(usage: Measurements, notes: Iterable[str]) -> CoverageDocument:
    shares = {metric: usage.share(metric) for metric in Metric}
    absent = dict.fromkeys(
        f"{metric.value}: {missing.reason}"
        for metric, missing in usage.missing.items()
        if missing.code != "no_gpu"
    )
    return {
        "period_s": usage.period_s,
        "hosts": len(usage.hosts),
        "hosts_expected": usage.hosts_expected,
        "share": {
            metric.value: None if share is None else Decimal(share).quantize(Decimal("0.001"))
            for metric, share in shares.items()
        },
        "missing": [*absent, *usage.notes, *notes],
    }


def _line(line: Line) -> LineDocument:
    return {
        "item": line.item,
        "usage_type": line.usage_type,
        "quantity": rounded(line.quantity),
        "unit": line.unit,
        "rate_usd": rounded(line.rate.usd) if line.rate else None,
        "usd": rounded(line.usd),
        "price_as_of": line.rate.as_of if line.rate else None,
        "price_source": line.rate.source if line.rate else None,
        "price_kind": line.rate.kind if line.rate else None,
        "note": line.note,
    }


def finding_document(finding: Finding) -> FindingDocument:
    """One finding as documents show it."""
    found, exempt = finding.found, finding.exempt
    return {
        "rule": finding.rule.name,
        "id": finding.rule.id,
        "severity": finding.severity.value,
        "confidence": found.confidence.value,
        "bucket": found.bucket.value,
        "summary": found.summary,
        "saving_usd": rounded(finding.saving_usd),
        "saving_alone_usd": rounded(finding.alone_usd),
        "saving_range_usd": (
            [end.quantize(_MICRO) for end in finding.range_usd] if finding.range_usd else None
        ),
        "superseded_by": finding.superseded_by,
        "subsumed_by": finding.subsumed_by,
        "exempt": (
            {
                "by": exempt.by,
                "until": exempt.until.isoformat() if exempt.until else None,
                "reason": exempt.reason,
            }
            if exempt
            else None
        ),
        "evidence": {key: _evidence(value) for key, value in found.evidence.items()},
        "fix": [_parameter(item) for item in found.fix],
        "alternatives": [[_parameter(item) for item in way] for way in found.alternatives],
        "caution": found.caution,
        "in_chat": finding.rule.in_chat,
    }


def _parameter(item: Parameter) -> FixDocument:
    return {"parameter": item.path, "old": _scalar(item.old), "new": _scalar(item.new)}


def _evidence(value: Evidence) -> Evidence:
    return value if isinstance(value, list) else _scalar(value)


def _scalar(value: Scalar) -> Scalar:
    """Floats become decimals of what they print as: a document holds no float."""
    return Decimal(str(value)) if isinstance(value, float) else value
