"""Savings: each fix is billed alone, then all fixes are applied and billed in one fixed order.

The shares in this order sum to the totals, so avoidable + lost is never above the bill. A job can
have one fix of the type and one of the count. If the fix of the count gives hosts more work, the
job can have only one of these two. A fix whose rule another finding subsumes gets no dollars.
Possible fixes are applied last and are never added to the others. Fixes that the family's own runs
show come before guesses.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from decimal import Decimal

from msgspec import Struct, field

from sageaudit.domain.bill.bill import Bill
from sageaudit.domain.bill.billed_job import (
    BilledJob,
    change_refusal,
    limit_to_possible,
    rate_estimate_basis,
)
from sageaudit.domain.bill.change import Change, SetCount, Stage
from sageaudit.domain.bill.finding import Bucket, Detection, Exemption, Finding, RuleInfo, Severity
from sageaudit.domain.job.job import Job
from sageaudit.domain.prices.market import Market
from sageaudit.structs import replace

REMAINDER = "rest"
"""The name of the part of a bill that is in no finding."""
_ZERO = Decimal(0)
_EXCLUSIVE_STAGES = (Stage.COUNT, Stage.TYPE, Stage.PURCHASE)
"""A job can have only one fix of each of these stages."""

_MIN_SHOWN_USD = Decimal("0.005")
"""A finding that can save less than this many USD has severity info: it would read $0.00."""


class SeverityLimits(Struct, frozen=True):
    """The least USD of one run for severities high and medium. Less is low."""

    high_usd: Decimal = Decimal(100)
    medium_usd: Decimal = Decimal(10)


class Severities(Struct, frozen=True):
    """The severity of findings: what the policy sets for a rule, else by their dollars."""

    limits: SeverityLimits = SeverityLimits()
    by_rule: Mapping[str, Severity] = field(default_factory=dict)

    def severity_for(
        self,
        rule: RuleInfo,
        bucket: Bucket,
        saving_usd: Decimal | None,
        range_usd: tuple[Decimal, Decimal] | None = None,
        *,
        is_priced: bool,
    ) -> Severity:
        """Returns the severity of one finding.

        `is_priced`: False if the finding never has dollars; True even if its dollars are unknown. A
        possible finding, or a range counted as 0, is at most low. Without dollars a finding is info
        unless its rule says otherwise.
        """
        if rule.name in self.by_rule:
            return self.by_rule[rule.name]
        if bucket is Bucket.NONE or not is_priced:
            return rule.severity or Severity.INFO
        if saving_usd is None:
            return Severity.LOW
        if bucket.is_counted and saving_usd >= self.limits.high_usd:
            return Severity.HIGH
        if bucket.is_counted and saving_usd >= self.limits.medium_usd:
            return Severity.MEDIUM
        return (
            Severity.LOW
            if max(saving_usd, range_usd[1] if range_usd else saving_usd) >= _MIN_SHOWN_USD
            else Severity.INFO
        )


class Slice(Struct, frozen=True):
    """One slice of the bill in the waterfall."""

    name: str
    usd: Decimal


class Savings(Struct, frozen=True):
    """The findings, the largest saving first, and their totals.

    Totals are None if the bill is unknown. `lost_up_to_usd`: the most that may be lost; equal to
    `lost_usd` if no loss is a range.
    """

    findings: tuple[Finding, ...]
    avoidable_usd: Decimal | None
    lost_usd: Decimal | None
    possible_usd: Decimal | None
    waterfall: tuple[Slice, ...]
    lost_up_to_usd: Decimal | None = None


def allocate_savings(
    job: Job,
    job_bill: Bill,
    detections: Iterable[tuple[RuleInfo, Detection]],
    market: Market,
    severities: Severities,
    exemptions: Mapping[str, Exemption],
    *,
    has_savings_plan: bool = False,
) -> Savings:
    """Returns every finding with its dollars, and the totals.

    `detections`: in any order. `exemptions`: by the name of the rule.
    """
    pairs = [
        (
            rule,
            limit_to_possible(
                _drop_impossible_change(detection, job, savings_plan=has_savings_plan), job, market
            ),
        )
        for rule, detection in sorted(detections, key=lambda pair: pair[0].id)
    ]
    total_usd = job_bill.total_usd
    billed_job = BilledJob(job, job_bill, market)
    alone_usd = {
        rule.id: billed_job.saving_usd(detection.change) if detection.change else None
        for rule, detection in pairs
    }
    subsumed = _subsumed(pairs)
    superseded = _superseded(pairs, alone_usd, subsumed, exemptions)
    standing = [pair for pair in pairs if pair[0].name not in {*subsumed, *superseded, *exemptions}]
    shares = _combined_shares(billed_job, standing)
    findings = []
    for rule, detection in pairs:
        share = shares.get(rule.id, _ZERO) if detection.change and total_usd is not None else None
        range_usd = _range(billed_job, detection)
        is_priced = detection.change is not None
        findings.append(
            Finding(
                rule=rule,
                detection=detection,
                severity=severities.severity_for(
                    rule, detection.bucket, share, range_usd, is_priced=is_priced
                ),
                saving_usd=share,
                alone_usd=alone_usd[rule.id],
                range_usd=range_usd,
                superseded_by=superseded.get(rule.name),
                subsumed_by=subsumed.get(rule.name),
                exempt=exemptions.get(rule.name),
                estimated=bool(job_bill.estimated)
                or rate_estimate_basis(detection, job, market) is not None,
                alternatives_usd=tuple(map(billed_job.saving_usd, detection.other_changes)),
            )
        )
    findings.sort(key=_rank)
    return Savings(
        tuple(findings),
        _sum(findings, Bucket.AVOIDABLE, total_usd),
        _sum(findings, Bucket.LOST, total_usd),
        _sum(findings, Bucket.POSSIBLE, total_usd),
        tuple(_waterfall(findings, total_usd)),
        _lost_up_to(findings, total_usd),
    )


def _drop_impossible_change(detection: Detection, job: Job, *, savings_plan: bool) -> Detection:
    if detection.change is None:
        return detection
    if reason := change_refusal(detection.change, job, savings_plan=savings_plan):
        return replace(
            detection,
            bucket=Bucket.NONE,
            change=None,
            best=None,
            other_changes=(),
            caution=f"Nothing is counted: {reason}.",
        )
    return detection


def _range(billed_job: BilledJob, detection: Detection) -> tuple[Decimal, Decimal] | None:
    if detection.change is None or detection.best is None:
        return None
    ends = [billed_job.saving_usd(change) for change in (detection.change, detection.best)]
    known_ends = sorted(end for end in ends if end is not None)
    return (known_ends[0], known_ends[1]) if len(known_ends) == len(ends) else None


def _subsumed(pairs: list[tuple[RuleInfo, Detection]]) -> dict[str, str]:
    rule_names = {rule.name for rule, _ in pairs}
    return {
        subsumed: rule.name
        for rule, _ in pairs
        for subsumed in sorted(rule.subsumes & rule_names)
        if subsumed != rule.name
    }


def _superseded(
    pairs: list[tuple[RuleInfo, Detection]],
    alone_usd: Mapping[str, Decimal | None],
    subsumed: Mapping[str, str],
    exemptions: Mapping[str, Exemption],
) -> dict[str, str]:
    """Returns, for each superseded rule, the rule that wins.

    A fix that saves something wins over a surer fix that may save nothing. Fixes of type and count
    exclude each other if fewer instances take over work: another type may be too small for it.
    """
    superseded: dict[str, str] = {}
    rivals = [
        (rule, detection)
        for rule, detection in pairs
        if detection.change and rule.name not in subsumed and rule.name not in exemptions
    ]
    rivals.sort(
        key=lambda pair: (
            not alone_usd[pair[0].id],
            *pair[1].certainty_order,
            -(alone_usd[pair[0].id] or _ZERO),
        )
    )
    count_rivals, type_rivals, purchase_rivals = (
        [pair for pair in rivals if pair[1].change and pair[1].change.stage is stage]
        for stage in _EXCLUSIVE_STAGES
    )
    change = count_rivals[0][1].change if count_rivals else None
    if isinstance(change, SetCount) and change.redistributes_work:
        rivals_of_both = [pair for pair in rivals if pair in count_rivals or pair in type_rivals]
        count_rivals, type_rivals = rivals_of_both, []
    for contenders in (count_rivals, type_rivals, purchase_rivals):
        superseded |= {rule.name: contenders[0][0].name for rule, _ in contenders[1:]}
    return superseded


def _combined_shares(
    billed_job: BilledJob, standing: list[tuple[RuleInfo, Detection]]
) -> dict[str, Decimal | None]:
    ordered = sorted(
        (detection.certainty_order, detection.change.stage, rule.id, detection.change)
        for rule, detection in standing
        if detection.change is not None
    )
    shares: dict[str, Decimal | None] = {}
    applied: Change | None = None
    for _, _, rule_id, change in ordered:
        billed_job = billed_job.with_change(applied) if applied else billed_job
        saving_usd = shares[rule_id] = billed_job.saving_usd(change)
        applied = change if saving_usd else None
    return shares


def _rank(finding: Finding) -> tuple[bool, bool, Decimal, Decimal, str]:
    return (
        not finding.is_standing,
        not finding.detection.bucket.is_counted,
        -(finding.saving_usd or _ZERO),
        -(finding.alone_usd or _ZERO),
        finding.rule.id,
    )


def _sum(findings: list[Finding], bucket: Bucket, total_usd: Decimal | None) -> Decimal | None:
    if total_usd is None:
        return None
    return sum((f.saving_usd or _ZERO for f in findings if f.detection.bucket is bucket), _ZERO)


def _lost_up_to(findings: list[Finding], total_usd: Decimal | None) -> Decimal | None:
    avoidable_usd, lost_usd = (
        _sum(findings, Bucket.AVOIDABLE, total_usd),
        _sum(findings, Bucket.LOST, total_usd),
    )
    if total_usd is None or avoidable_usd is None or lost_usd is None:
        return None
    upper_ends = [
        max(finding.range_usd[1] if finding.range_usd else _ZERO, finding.saving_usd or _ZERO)
        for finding in findings
        if finding.detection.bucket is Bucket.LOST and finding.is_standing
    ]
    return max(lost_usd, min(sum(upper_ends, _ZERO), total_usd - avoidable_usd))


def _waterfall(findings: list[Finding], total_usd: Decimal | None) -> Iterable[Slice]:
    if total_usd is None:
        return
    remaining_usd = total_usd
    for bucket in (Bucket.LOST, Bucket.AVOIDABLE):
        for finding in findings:
            if finding.detection.bucket is bucket and finding.saving_usd:
                remaining_usd -= finding.saving_usd
                yield Slice(f"{bucket.value}: {finding.rule.name}", finding.saving_usd)
    yield Slice(REMAINDER, remaining_usd)
