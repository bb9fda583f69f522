"""Savings: each fix is billed alone, then all fixes are applied and billed in one fixed order.

The shares in this order sum to the totals, so avoidable + lost is never more than the bill. Of
several fixes of the instance type only one counts, and so for the instance count; of both together
only one counts when fewer hosts take over work. A fix whose rule is subsumed by another finding's
rule is counted there and gets no dollars. Fixes of the bucket `possible` are applied last and are
never in a sum with the others; of these a guess comes after what the family's own runs show.

A bill at an estimated rate gets its dollars, marked as estimated. What another type at an estimated
rate saves is possible at most: nothing says that SageMaker sells it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from decimal import Decimal

from msgspec import Struct, field

from sageaudit.domain.bill.bill import Bill
from sageaudit.domain.bill.billed_job import BilledJob, estimate_of, possible_at_most, refused
from sageaudit.domain.bill.change import Change, SetCount, Stage
from sageaudit.domain.bill.finding import Bucket, Exemption, Finding, Found, RuleName, Severity
from sageaudit.domain.job.job import Job
from sageaudit.domain.prices.market import Market
from sageaudit.structs import replace

REST = "rest"
"""The slice of a bill that no finding takes."""
_ZERO = Decimal(0)
_ONE_WINNER = (Stage.COUNT, Stage.TYPE, Stage.PURCHASE)

_SHOWN = Decimal("0.005")
"""Dollars: less is shown as under one cent, and nobody changes a run for that."""


class SeverityLimits(Struct, frozen=True):
    """Dollars of one run from which a finding is high or medium; below, it is low."""

    high_usd: Decimal = Decimal(100)
    medium_usd: Decimal = Decimal(10)


class Severities(Struct, frozen=True):
    """The severity of findings: set by the policy for a rule, else by dollars."""

    limits: SeverityLimits = SeverityLimits()
    by_rule: Mapping[str, Severity] = field(default_factory=dict)

    def of(
        self,
        rule: RuleName,
        bucket: Bucket,
        share: Decimal | None,
        span: tuple[Decimal, Decimal] | None = None,
        *,
        priced: bool,
    ) -> Severity:
        """The severity of one finding; a `possible` one, or a range counted as 0, is low at most;
        less than a cent is info, and so is advice without dollars, unless the rule's card says
        otherwise.

        `priced` is False for advice without dollars, in contrast to unknown dollars.
        """
        if rule.name in self.by_rule:
            return self.by_rule[rule.name]
        if bucket is Bucket.NONE or not priced:
            return rule.severity or Severity.INFO
        if share is None:
            return Severity.LOW
        if bucket.counted and share >= self.limits.high_usd:
            return Severity.HIGH
        if bucket.counted and share >= self.limits.medium_usd:
            return Severity.MEDIUM
        return Severity.LOW if max(share, span[1] if span else share) >= _SHOWN else Severity.INFO


class Slice(Struct, frozen=True):
    """One slice of the waterfall."""

    name: str
    usd: Decimal


class Savings(Struct, frozen=True):
    """Findings, the largest saving first, with their totals; None when the bill is unknown.

    `lost_up_to_usd`: the upper end of what is lost, beside the avoidable dollars; it is
    `lost_usd` itself where no loss is a range.
    """

    findings: tuple[Finding, ...]
    avoidable_usd: Decimal | None
    lost_usd: Decimal | None
    possible_usd: Decimal | None
    waterfall: tuple[Slice, ...]
    lost_up_to_usd: Decimal | None = None


def allocate(
    job: Job,
    billed: Bill,
    founds: Iterable[tuple[RuleName, Found]],
    market: Market,
    severities: Severities,
    exempt: Mapping[str, Exemption],
    *,
    savings_plan: bool = False,
) -> Savings:
    """Computes the dollars of every finding. Pure; independent of the order of `founds`."""
    pairs = [
        (name, possible_at_most(_compatible(found, job, savings_plan=savings_plan), job, market))
        for name, found in sorted(founds, key=lambda pair: pair[0].id)
    ]
    total = billed.total_usd
    today = BilledJob(job, billed, market)
    alone = {name.id: today.saving(found.change) if found.change else None for name, found in pairs}
    subsumed = _subsumed(pairs)
    superseded = _superseded(pairs, alone, subsumed, exempt)
    standing = [pair for pair in pairs if pair[0].name not in {*subsumed, *superseded, *exempt}]
    shares = _together(today, standing)
    findings = []
    for name, found in pairs:
        share = shares.get(name.id, _ZERO) if found.change and total is not None else None
        span = _range(today, found)
        priced = found.change is not None
        findings.append(
            Finding(
                rule=name,
                found=found,
                severity=severities.of(name, found.bucket, share, span, priced=priced),
                saving_usd=share,
                alone_usd=alone[name.id],
                range_usd=span,
                superseded_by=superseded.get(name.name),
                subsumed_by=subsumed.get(name.name),
                exempt=exempt.get(name.name),
                estimated=bool(billed.estimated) or estimate_of(found, job, market) is not None,
                alternatives_usd=tuple(map(today.saving, found.other_changes)),
            )
        )
    findings.sort(key=_rank)
    return Savings(
        tuple(findings),
        _sum(findings, Bucket.AVOIDABLE, total),
        _sum(findings, Bucket.LOST, total),
        _sum(findings, Bucket.POSSIBLE, total),
        tuple(_waterfall(findings, total)),
        _lost_up_to(findings, total),
    )


def _compatible(found: Found, job: Job, *, savings_plan: bool) -> Found:
    """The same advice, but without dollars when its fix is not possible for this job."""
    if found.change is None:
        return found
    if why := refused(found.change, job, savings_plan=savings_plan):
        return replace(
            found,
            bucket=Bucket.NONE,
            change=None,
            best=None,
            other_changes=(),
            caution=f"Nothing is counted: {why}.",
        )
    return found


def _range(today: BilledJob, found: Found) -> tuple[Decimal, Decimal] | None:
    """Lower and upper end of a finding's range, each billed alone; None without a range."""
    if found.change is None or found.best is None:
        return None
    ends = [today.saving(change) for change in (found.change, found.best)]
    known = sorted(end for end in ends if end is not None)
    return (known[0], known[1]) if len(known) == len(ends) else None


def _subsumed(pairs: list[tuple[RuleName, Found]]) -> dict[str, str]:
    present = {name.name for name, _ in pairs}
    return {
        inner: name.name
        for name, _ in pairs
        for inner in sorted(name.subsumes & present)
        if inner != name.name
    }


def _superseded(
    pairs: list[tuple[RuleName, Found]],
    alone: Mapping[str, Decimal | None],
    subsumed: Mapping[str, str],
    exempt: Mapping[str, Exemption],
) -> dict[str, str]:
    """By losing rule, the rule that wins its stage: the largest saving alone, of the surest ones.

    One that may save nothing wins over none that saves something, however sure it is.
    Fewer instances that take over work, and another type chosen for the work recorded before,
    compete with each other: whether the type could do both is unknown.
    """
    losers: dict[str, str] = {}
    rivals = [
        (name, found)
        for name, found in pairs
        if found.change and name.name not in subsumed and name.name not in exempt
    ]
    rivals.sort(
        key=lambda pair: (
            not alone[pair[0].id],
            *pair[1].unsure,
            -(alone[pair[0].id] or _ZERO),
        )
    )
    count, instance_type, purchase = (
        [pair for pair in rivals if pair[1].change and pair[1].change.stage is stage]
        for stage in _ONE_WINNER
    )
    first = count[0][1].change if count else None
    if isinstance(first, SetCount) and first.refills:
        either = [pair for pair in rivals if pair in count or pair in instance_type]
        count, instance_type = either, []
    for contest in (count, instance_type, purchase):
        losers |= {name.name: contest[0][0].name for name, _ in contest[1:]}
    return losers


def _together(
    today: BilledJob, standing: list[tuple[RuleName, Found]]
) -> dict[str, Decimal | None]:
    """Each finding's share: counted fixes in the order of stages, then the possible ones."""
    ordered = sorted(
        (found.unsure, found.change.stage, name.id, found.change)
        for name, found in standing
        if found.change is not None
    )
    shares: dict[str, Decimal | None] = {}
    applied: Change | None = None
    for _, _, rule_id, change in ordered:
        today = today.after(applied) if applied else today
        gain = shares[rule_id] = today.saving(change)
        applied = change if gain else None
    return shares


def _rank(finding: Finding) -> tuple[bool, bool, Decimal, Decimal, str]:
    return (
        not finding.stands,
        not finding.found.bucket.counted,
        -(finding.saving_usd or _ZERO),
        -(finding.alone_usd or _ZERO),
        finding.rule.id,
    )


def _sum(findings: list[Finding], bucket: Bucket, total: Decimal | None) -> Decimal | None:
    if total is None:
        return None
    return sum((f.saving_usd or _ZERO for f in findings if f.found.bucket is bucket), _ZERO)


def _lost_up_to(findings: list[Finding], total: Decimal | None) -> Decimal | None:
    """The lost shares, or the upper ends of their ranges; never more than avoidable ones leave."""
    avoidable, lost = _sum(findings, Bucket.AVOIDABLE, total), _sum(findings, Bucket.LOST, total)
    if total is None or avoidable is None or lost is None:
        return None
    upper = [
        max(finding.range_usd[1] if finding.range_usd else _ZERO, finding.saving_usd or _ZERO)
        for finding in findings
        if finding.found.bucket is Bucket.LOST and finding.stands
    ]
    return max(lost, min(sum(upper, _ZERO), total - avoidable))


def _waterfall(findings: list[Finding], total: Decimal | None) -> Iterable[Slice]:
    """Lost, then avoidable by finding, then the rest; the slices sum to the bill."""
    if total is None:
        return
    left = total
    for bucket in (Bucket.LOST, Bucket.AVOIDABLE):
        for finding in findings:
            if finding.found.bucket is bucket and finding.saving_usd:
                left -= finding.saving_usd
                yield Slice(f"{bucket.value}: {finding.rule.name}", finding.saving_usd)
    yield Slice(REST, left)
