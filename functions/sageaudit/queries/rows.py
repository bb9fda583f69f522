"""Rows of lists: an audit as one flat row, or a finding with what is known of its audit."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from datetime import datetime
from decimal import Decimal
from operator import attrgetter
from typing import Any

from sageaudit.domain.audit.judgement import Judged
from sageaudit.domain.audit.record import FindingRow
from sageaudit.domain.audit.spend_qualifier import SpendQualifier
from sageaudit.domain.audit.summary import AuditSummary, JobKey
from sageaudit.domain.audit.sums import RuleSums
from sageaudit.domain.bill.finding import Bucket, Confidence, Severity
from sageaudit.domain.job.job import Purchase
from sageaudit.domain.job.ref import JobRef
from sageaudit.queries.question import AMOUNTS, Sort

_ZERO, _HOUR_S = Decimal(0), 3600
_INTERRUPTED = "Interrupted"
NEVER_STARTED = "Never started"
"""The status of jobs that failed or were stopped before their start; no word of AWS."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditRow:
    """The newest audit of one job. Unknown values are None.

    A roll-up (`rollup`: a tuning job) repeats the dollars of its training jobs, so its amounts are
    only what it adds itself: the columns of any list add up to the daily sums. The fields from
    `rule` on are those of a finding, in lists of one rule.
    """

    key: JobKey
    ended_at: datetime
    job: str
    kind: str
    status: str | None
    account: str
    region: str
    family: str
    owner: str | None
    rollup: bool = False
    total_usd: Decimal | None = None
    avoidable_usd: Decimal | None = None
    lost_usd: Decimal | None = None
    lost_up_to_usd: Decimal | None = None
    waste_usd: Decimal | None = None
    possible_usd: Decimal | None = None
    possible_incomplete: bool | None = None
    """Whether more may be possible than `possible_usd`: a finding's dollars are not known."""
    idle_usd: Decimal | None = None
    top_rule: str | None = None
    severity: Severity | None = None
    findings: int | None = None
    judged: Judged | None = None
    settled: bool | None = None
    spend_qualifier: SpendQualifier | None = None
    """How exactly `total_usd` is known: `upper_bound` and `incomplete` (a lower bound) say why."""
    estimated: bool = False
    incomplete: bool | None = None
    upper_bound: bool | None = None
    unauditable: str | None = None
    instance_type: str | None = None
    instance_count: int | None = None
    purchase: Purchase | None = None
    image: str | None = None
    tags: Mapping[str, str | None] = field(default_factory=dict)
    """The values of the policy's cost tags."""
    duration_s: int | None = None
    waiting_s: int | None = None
    """From creation to start; of a job that never started, until it was given up."""
    interrupted_s: int | None = None
    """For how long a spot job waited for capacity again."""
    reason: str | None = None
    """The kind of failure of a job that failed or was stopped."""
    instance_hours: Decimal | None = None
    """Billed, of all instances together."""
    gpu_hours: Decimal | None = None
    """The same of all GPUs, and those that were not used; None where that could not be judged."""
    idle_gpu_hours: Decimal | None = None
    storage_usd: Decimal | None = None
    warm_pool_usd: Decimal | None = None
    spot_saved_usd: Decimal | None = None
    usage_type: str | None = None
    usage_quantity: Decimal | None = None
    """Of a row by usage types: hours, or GB-months of volumes."""
    version: int | None = None
    ruleset: str | None = None
    policy: str | None = None
    rule: str | None = None
    rule_id: str | None = None
    confidence: Confidence | None = None
    bucket: Bucket | None = None
    saving_usd: Decimal | None = None
    saving_up_to_usd: Decimal | None = None
    saving_alone_usd: Decimal | None = None
    summary: str | None = None
    fix: str | None = None

    @property
    def waste_percent(self) -> Decimal | None:
        """Which part of the bill is avoidable or lost."""
        waste_usd, total_usd = self.waste_usd, self.total_usd
        return None if waste_usd is None or not total_usd else 100 * waste_usd / total_usd

    @property
    def arn(self) -> str | None:
        """None where a recording names none."""
        return self.key.arn if self.key.arn.startswith("arn:") else None

    @property
    def created_at(self) -> datetime:
        """When the run was created; its start where that is not known."""
        return self.key.created_at


OF_A_FINDING = frozenset(
    [
        *("ended_at", "job", "arn", "created_at", "kind", "account", "region", "family", "owner"),
        *("rollup", "severity", "estimated", "rule", "rule_id", "confidence", "bucket"),
        *("saving_usd", "saving_up_to_usd", "saving_alone_usd", "summary", "fix"),
    ]
)
"""The fields that a list of one rule knows without reading the audit's head."""


_SAME = sorted(
    {of.name for of in fields(AuditSummary)}
    & {of.name for of in fields(AuditRow)} - {"estimated", "incomplete", "spend_qualifier"}
)
"""Fields that a row has as its head does."""
_same_of = attrgetter(*_SAME)


def audit_row(head: AuditSummary) -> AuditRow:
    """The row of an audit."""
    values: dict[str, Any] = dict(zip(_SAME, _same_of(head), strict=True))
    sums = head.sums
    values |= _amounts(head)
    if _never_started(head) and not head.rollup:
        waited = _whole(sum(head.phase_s.values()) or None)
        values |= {"status": NEVER_STARTED, "judged": None, "waiting_s": waited}
    return AuditRow(
        **values,
        findings=len(head.finding_ids),
        estimated=bool(head.estimated),
        spend_qualifier=SpendQualifier.EXACT if head.rollup else head.spend_qualifier,
        incomplete=bool(head.incomplete),
        possible_incomplete=bool(sums.possible_unknown),
        upper_bound=bool(sums.upper_bounds),
        interrupted_s=_whole(head.phase_s.get(_INTERRUPTED)),
        instance_hours=_hours(head.instance_s),
        gpu_hours=_hours(head.gpu_s),
        idle_gpu_hours=_hours(head.idle_gpu_s),
    )


def _amounts(head: AuditSummary) -> dict[str, Decimal | None]:
    """What of a row's dollars is not as its head has it."""
    sums = head.sums
    if head.rollup:
        own: dict[str, Decimal | None] = {f"{sort.value}_usd": sort.of(sums) for sort in AMOUNTS}
        own["possible_usd"] = sums.known_possible_usd
        return own | {"lost_up_to_usd": sums.lost_up_to_usd}
    return {
        "lost_up_to_usd": sums.known_lost_up_to_usd,
        "waste_usd": _sum(head.avoidable_usd, head.lost_usd),
        "possible_usd": sums.known_possible_usd,
        "idle_usd": sums.known_idle_usd,
    }


def _hours(seconds: int | None) -> Decimal | None:
    return None if seconds is None else Decimal(seconds) / _HOUR_S


def _whole(seconds: Decimal | None) -> int | None:
    return None if seconds is None else round(seconds)


def _never_started(head: AuditSummary) -> bool:
    """Whether a job ended before its start: it has no times, and its bill is known to be 0."""
    if head.purchase is None or head.total_usd is None:
        return False
    times = (head.elapsed_s, head.billable_s)
    return head.status != "Completed" and not head.total_usd and not any(times)


def finding_row(finding: FindingRow, head: AuditSummary | None) -> AuditRow:
    """The row of a finding, with its audit's fields where its head was read.

    Of a roll-up, whose head must be read, the savings are those that no training job counts.
    """
    ref = JobRef.from_arn(finding.key.arn)
    row = audit_row(head) if head else _of_arn(finding, ref)
    saving, up_to = finding.saving_usd, finding.saving_up_to_usd
    if head is not None and head.rollup:
        own = head.sums.rules.get(finding.rule, RuleSums())
        has_dollars = finding.bucket is not Bucket.NONE
        saving = own.known_usd(finding.bucket) if has_dollars else None
        up_to = own.most_usd(finding.bucket) if has_dollars else None
    return replace(
        row,
        severity=finding.severity,
        estimated=bool(finding.estimated),
        rule=finding.rule,
        rule_id=finding.rule_id,
        confidence=finding.confidence,
        bucket=finding.bucket,
        saving_usd=saving,
        saving_up_to_usd=up_to,
        saving_alone_usd=finding.saving_alone_usd,
        summary=finding.summary,
        fix=finding.fix,
    )


def needs_head(finding: FindingRow) -> bool:
    """True where the finding alone does not tell account, region, kind and what it adds."""
    ref = JobRef.from_arn(finding.key.arn)
    return ref is None or bool(ref.kind.row.rollup)


def _of_arn(finding: FindingRow, ref: JobRef | None) -> AuditRow:
    return AuditRow(
        key=finding.key,
        ended_at=finding.ended_at,
        job=finding.job,
        kind=ref.kind.value if ref else "unknown",
        status=None,
        account=ref.account if ref else "unknown",
        region=ref.region if ref else "unknown",
        family=finding.family,
        owner=finding.owner,
    )


def amount(row: AuditRow, sort: Sort) -> Decimal:
    """What a row is sorted by; 0 if it is not known. A finding: its saving."""
    if row.rule is not None:
        return row.saving_usd or _ZERO
    return Decimal(getattr(row, sort.field) or 0)


def head_amount(head: AuditSummary, sort: Sort) -> Decimal:
    """The same of an audit's row, without the row where the head has the amount."""
    if sort is Sort.WASTE and not head.rollup:
        return (head.avoidable_usd or _ZERO) + (head.lost_usd or _ZERO)
    return amount(audit_row(head), sort)


def _sum(avoidable: Decimal | None, lost: Decimal | None) -> Decimal | None:
    """The sum of what is known; 0 only where both are."""
    sum_usd = (avoidable or _ZERO) + (lost or _ZERO)
    return None if not sum_usd and (avoidable is None or lost is None) else sum_usd
