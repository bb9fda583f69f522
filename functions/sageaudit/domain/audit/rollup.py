"""The audit of a roll-up: the sum of its children's audits, which no other sum includes.

The cost of a tuning or AutoML job is on the jobs that it launched.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from decimal import Decimal

from sageaudit.domain.audit.audit import Audit, Judged, Judgement, combine_judgements
from sageaudit.domain.audit.bill_document import is_upper_bound, undercounted_parts
from sageaudit.domain.audit.document import AuditDocument
from sageaudit.domain.audit.finding_document import (
    FindingDocument,
    Outcomes,
    is_standing,
    max_saving_usd,
    parse_finding,
)
from sageaudit.domain.audit.trials import TrialSavings
from sageaudit.domain.bill.bill import Basis, BillSum
from sageaudit.domain.bill.bill_facts import BillFacts
from sageaudit.domain.bill.counterfactual import REMAINDER, Savings, Severities, Slice
from sageaudit.domain.bill.finding import Bucket, Finding, Severity
from sageaudit.domain.job.job import Job, sum_if_complete
from sageaudit.domain.job.kinds import JobKind
from sageaudit.domain.job.ref import rollup_from_arn
from sageaudit.domain.moments import parse_moment
from sageaudit.domain.prices.market import PriceKind
from sageaudit.structs import replace

_ZERO = Decimal(0)
_FIRST_WORDS = frozenset({"After", "In", "It", "Its", "No", "On", "Runs", "The", "This"})
"""A summary that begins with one of these words gets a lower-case first letter inside a
sentence."""


def rollup_job_from_children(children: Sequence[AuditDocument]) -> Job:
    """Returns the roll-up's job as its children show it, for a roll-up that was not recorded
    itself.
    """
    rows = [child["job"] for child in children]
    first = rows[0]
    times = [
        (parse_moment(row["started_at"]), parse_moment(row["ended_at"]))
        for row in rows
        if row["started_at"] and row["ended_at"]
    ]
    parent = rollup_from_arn(first["parent"])
    return Job(
        kind=parent.kind if parent else JobKind.TUNING,
        name=(first["parent"] or first["family"]).rpartition("/")[2],
        arn=first["parent"],
        account=first["account"],
        region=first["region"],
        status="Unknown",
        started_at=min((start for start, _ in times), default=None),
        ended_at=max((end for _, end in times), default=None),
    )


def roll_up(
    job: Job,
    children: Sequence[AuditDocument],
    *,
    family: str,
    owner: str | None,
    launched_count: int | None,
    severities: Severities,
    ruleset: str,
    policy: str,
    outcomes: Outcomes,
    own_savings: TrialSavings,
) -> Audit:
    """Returns the audit of a roll-up: the sum of its children's audits.

    `launched_count`: the number of launched jobs; None if unknown. If it is 0, the cost is 0.
    `outcomes`: those of the roll-up's own rules. `own_savings`: what these rules save beyond the
    children's findings.
    """
    empty_sum = _ZERO if launched_count == 0 else None
    jobs_label = _children_label(job)
    missing_sentences = tuple(_missing(children, launched_count, jobs_label))
    estimated_count = sum(bool(child["bill"]["estimated"]) for child in children)
    estimate_sentence = (
        f"{estimated_count} of {len(children)} {jobs_label} are billed at an estimated rate"
    )
    estimate_sentences = (estimate_sentence,) if estimated_count else ()
    totals = [child["bill"]["total_usd"] for child in children]
    total_usd = sum_if_complete(totals) if totals else empty_sum
    judged = _judgement(children, launched_count, jobs_label)
    return Audit(
        job=job,
        family=family,
        owner=owner,
        bill=BillSum(
            total_usd=total_usd,
            complete=not missing_sentences and all(child["bill"]["complete"] for child in children),
            missing=(*missing_sentences, *_incomplete(children, jobs_label), *estimate_sentences),
            estimated=estimate_sentences,
            basis=_basis(children),
        ),
        bill_facts=_facts(children),
        usage=None,
        outcomes=tuple(outcomes),
        savings=judged.without_unknown_sums(
            _savings(children, total_usd, empty_sum, severities, own_savings, jobs_label)
        ),
        judgement=judged,
        is_settled=not missing_sentences and all(child["audit"]["settled"] for child in children),
        due_at=None,
        ruleset=ruleset,
        policy=policy,
        notes=missing_sentences,
        rollup_rules=tuple(finding.rule.name for finding in own_savings.findings),
    )


def _children_label(job: Job) -> str:
    rollup = job.kind.spec.rollup
    return rollup.children_label if rollup else "jobs"


def _basis(children: Sequence[AuditDocument]) -> Basis:
    has_upper_bound = any(is_upper_bound(child["bill"]) for child in children)
    return "upper_bound" if has_upper_bound else "none"


def _judgement(
    children: Sequence[AuditDocument], launched_count: int | None, jobs_label: str
) -> Judgement:
    if not children and launched_count != 0:
        return Judgement(Judged.NO, (f"Its {jobs_label} are not audited.",))
    unaudited = max((launched_count or 0) - len(children), 0)
    is_known = all(child["avoidable_usd"] is not None for child in children)
    combined = combine_judgements(list(map(_child_judgement, children)), unaudited, jobs_label)
    return replace(combined, is_answered=is_known)


def _child_judgement(child: AuditDocument) -> Judgement:
    judged, reasons = Judged(child["judged"]), tuple(child["not_judged"])
    if child["avoidable_usd"] is None and judged is not Judged.NO:
        return Judgement(Judged.PARTLY, (*reasons, "Its avoidable dollars are not known."))
    return Judgement(judged, reasons)


def _facts(children: Sequence[AuditDocument]) -> BillFacts:
    bills = [child["bill"] for child in children]
    kinds = {bill["price_kind"] for bill in bills if bill["price_kind"]}
    kind: PriceKind | None = next(iter(kinds)) if len(kinds) == 1 else None
    return BillFacts(
        price_kind="estimate" if "estimate" in kinds else kind,
        spot_saved_usd=_known_sum(bill["spot_saved_usd"] for bill in bills),
        prepaid_value_usd=_known_sum(bill["prepaid_value_usd"] for bill in bills),
        notes=tuple(dict.fromkeys(note for bill in bills for note in bill["notes"])),
    )


def _missing(
    children: Sequence[AuditDocument], launched_count: int | None, jobs_label: str
) -> Iterable[str]:
    if launched_count is None and not children:
        yield f"the {jobs_label} that it launched are not known"
    elif launched_count is not None and len(children) < launched_count:
        yield f"{launched_count - len(children)} of {launched_count} {jobs_label} are not audited"
    unpriced_count = sum(child["bill"]["total_usd"] is None for child in children)
    if unpriced_count:
        yield f"{unpriced_count} of {len(children)} {jobs_label} have no known cost"


def _incomplete(children: Sequence[AuditDocument], jobs_label: str) -> Iterable[str]:
    """Yields each reason why a child's bill lacks a part, with the number of children.

    Upper bounds are left out, because the bill's basis shows them.
    """
    counts: Counter[str] = Counter()
    for bill in (child["bill"] for child in children if child["bill"]["total_usd"] is not None):
        counts.update(undercounted_parts(bill))
    for missing, count in counts.items():
        yield f"in {count} of {len(children)} {jobs_label}, {missing}"


def _savings(
    children: Sequence[AuditDocument],
    total_usd: Decimal | None,
    empty_sum: Decimal | None,
    severities: Severities,
    own_savings: TrialSavings,
    jobs_label: str,
) -> Savings:
    def total(parts: Sequence[Decimal | None], bucket: Bucket) -> Decimal | None:
        usd = own_savings.usd(bucket)
        return sum_if_complete([*parts, usd]) if parts or usd else empty_sum

    # Unknown possible dollars show in the findings, unknown avoidable ones in `judged`.
    possible_amounts = [usd for child in children if (usd := child["possible_usd"]) is not None]
    possible_usd = total(possible_amounts, Bucket.POSSIBLE)
    if not possible_usd and len(possible_amounts) < len(children):
        possible_usd = None
    avoidable_amounts = [usd for child in children if (usd := child["avoidable_usd"]) is not None]
    findings = [*_merged_findings(children, severities, jobs_label), *own_savings.findings]
    findings.sort(key=lambda finding: (-(finding.saving_usd or _ZERO), finding.rule.id))
    return Savings(
        tuple(findings),
        total(avoidable_amounts, Bucket.AVOIDABLE),
        total([child["lost_usd"] for child in children], Bucket.LOST),
        possible_usd,
        () if total_usd is None else tuple(_waterfall(children, own_savings)),
        total([child["lost_up_to_usd"] for child in children], Bucket.LOST),
    )


def _merged_findings(
    children: Sequence[AuditDocument], severities: Severities, jobs_label: str
) -> Iterable[Finding]:
    by_rule: dict[str, list[FindingDocument]] = {}
    for child in children:
        for finding in filter(is_standing, child["findings"]):
            by_rule.setdefault(finding["rule"], []).append(finding)
    children_text = f"{len(children)} {jobs_label}"
    key = jobs_label.replace(" ", "_")
    return (
        _merge_rule_findings(documents, children_text, key, severities)
        for documents in by_rule.values()
    )


def _in_sentence(summary: str) -> str:
    first_word = summary.partition(" ")[0]
    return f"{summary[:1].lower()}{summary[1:]}" if first_word in _FIRST_WORDS else summary


def _merge_rule_findings(
    documents: Sequence[FindingDocument], scope_text: str, key: str, severities: Severities
) -> Finding:
    findings = list(map(parse_finding, documents))
    max_usd = sum((max_saving_usd(finding) or _ZERO for finding in documents), _ZERO)
    largest = max(findings, key=lambda finding: finding.saving_usd or _ZERO)
    rule, detection = largest.rule, largest.detection
    usd = sum_if_complete(finding.saving_usd for finding in findings)
    ranges = [finding.range_usd for finding in findings if finding.range_usd]
    span = None
    if ranges:
        span = (sum((low for low, _ in ranges), _ZERO), sum((high for _, high in ranges), _ZERO))
    # A fix without dollars in every child has none here; unknown dollars stay unknown, not 0.
    is_priced = usd is not None or any(
        finding.severity is not Severity.INFO for finding in findings
    )
    return replace(
        largest,
        severity=severities.severity_for(rule, detection.bucket, usd, span, is_priced=is_priced),
        detection=replace(
            detection,
            summary=(
                f"In {len(findings)} of {scope_text}; in one of them, "
                f"{_in_sentence(detection.summary)}"
            ),
            evidence={key: len(findings), **detection.evidence},
        ),
        saving_usd=usd,
        alone_usd=None,
        range_usd=(usd, max_usd) if usd is not None and max_usd > usd else None,
        estimated=any(finding.estimated for finding in findings),
        reported_for_run=None,
    )


def _waterfall(children: Sequence[AuditDocument], own_savings: TrialSavings) -> Iterable[Slice]:
    sums: dict[str, Decimal] = {}
    for child in children:
        for part in child["waterfall"]:
            sums[part["slice"]] = sums.get(part["slice"], _ZERO) + part["usd"]
    remainder_usd = sums.pop(REMAINDER, None)
    if remainder_usd is not None:
        for finding in own_savings.findings:
            bucket, usd = finding.detection.bucket, finding.saving_usd
            if usd and bucket.is_counted:
                sums[f"{bucket.value}: {finding.rule.name}"] = usd
                remainder_usd -= usd
        sums[REMAINDER] = remainder_usd
    return (Slice(name, usd) for name, usd in sums.items())


def _known_sum(values: Iterable[Decimal | None]) -> Decimal | None:
    known_values = [value for value in values if value is not None]
    return sum(known_values, _ZERO) if known_values else None
